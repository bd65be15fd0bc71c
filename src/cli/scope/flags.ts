// The command line of `tenure scope`: which question, about which scope, checked before anything is asked.

import { backendUrl } from "../connection/backend.ts";
import { oneOf, parseDuration, parseFlags, suggestion, UsageError } from "../kit/flags.ts";
import { type Output, OUTPUTS, withLongOutput } from "../kit/output.ts";

const VERBS = ["list", "show", "watch", "history", "resign"] as const;
const WAIT_DEFAULT_MS = 10_000;

export const SCOPE_HELP = `tenure scope VERB [SCOPE] --backend URL [-o table|json]: who leads what.

  list               every scope: its state, epoch, leader, since when, age of the last heartbeat
  show SCOPE         one scope, with its metadata, keys and sessions, and who waits (Postgres)
  watch SCOPE        a line for each change of the leader, until SIGINT; goes on over restarts of the backend
  history SCOPE      the last transitions, newest first
  resign SCOPE       asks the present leader to step down, and waits until its epoch is over

  --backend URL      postgres://user:password@host/database, etcd://host:port[,host:port…], or https://host:port[,…]
                     for Tenure's own servers (or TENURE_BACKEND, or TENURE_URL)
  --scope SCOPE      the same as the word SCOPE; for names that begin with a dash
  --wait 10s         resign: how long to wait for the end of the epoch (default 10s)
  --force            resign: take the scope away: end its session (Postgres), delete its key (etcd), end its lease
                     (Tenure's servers). The old leader may believe in its term a moment longer; only a fence keeps
                     its writes out
  -o table|json      for people (default), or one JSON object on a line; watch: one for each change; --json is -o json
  --help             this text

States: held; free (nobody leads); stale (a leader is named, but its session is gone, or its heartbeat is late).

exit codes: 0 done; 64 wrong use; 66 there is no such scope; 69, 77, 78 the backend (docs/errors.md); 75 the leader
did not step down within --wait; 130 and 143 watch was ended by SIGINT or SIGTERM
`;

const KINDS = {
  backend: "value",
  scope: "value",
  wait: "value",
  force: "switch",
  output: "value",
  help: "switch",
} as const;

export type ScopeVerb = (typeof VERBS)[number];

export interface ScopeFlags {
  readonly verb: ScopeVerb;
  readonly backend: string;
  /** "" with list. */
  readonly scope: string;
  readonly waitMs: number;
  readonly force: boolean;
  readonly output: Output;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function readScopeFlags(args: readonly string[], environment: Environment): ScopeFlags | "help" {
  const { values, words, rest } = parseFlags(withLongOutput(args), KINDS);
  if (values.help !== undefined) return "help";
  const [verbWord, ...names] = [...words, ...(rest ?? [])];
  if (verbWord === undefined) throw new UsageError(`say what to do: ${VERBS.join(", ")}`);
  const verb = VERBS.find((one) => one === verbWord);
  if (verb === undefined) {
    const near = suggestion(verbWord, VERBS);
    throw new UsageError(`there is no ${JSON.stringify(verbWord)}${near === "" ? `; give ${VERBS.join(", ")}` : near}`);
  }
  if (verb !== "resign" && (values.wait !== undefined || values.force !== undefined)) {
    throw new UsageError(`--${values.wait === undefined ? "force" : "wait"} belongs to resign, not to ${verb}`);
  }
  return {
    verb,
    scope: scopeOf(verb, [...names, ...(values.scope === undefined ? [] : [values.scope])]),
    backend: backendUrl(values.backend, environment),
    waitMs: values.wait === undefined ? WAIT_DEFAULT_MS : parseDuration("--wait", values.wait),
    force: values.force !== undefined,
    output: oneOf("-o", values.output ?? "table", OUTPUTS),
  };
}

function scopeOf(verb: ScopeVerb, names: readonly string[]): string {
  const [scope, second] = names;
  if (verb === "list") {
    if (scope !== undefined) throw new UsageError(`list takes no scope; for one scope: tenure scope show ${scope}`);
    return "";
  }
  if (scope === undefined || scope === "") throw new UsageError(`${verb} needs a scope: tenure scope ${verb} SCOPE`);
  if (second !== undefined) throw new UsageError(`${verb} takes one scope, not ${names.length}`);
  return scope;
}
