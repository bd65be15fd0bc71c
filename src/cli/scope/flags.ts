// The command line of `tenure scope`: which question, about which scope, checked before anything is asked.

import { kindsOf, verbsOf } from "../kit/description.ts";
import { SCOPE } from "./help.ts";
import { backendUrl } from "../connection/backend.ts";
import { oneOf, parseDuration, parseFlags, UsageError } from "../kit/flags.ts";
import { type Output, OUTPUTS, withLongOutput } from "../kit/output.ts";
import { chosen } from "../kit/words.ts";
import { SCOPE_CHANGE_MS } from "../limits.ts";

const VERBS = verbsOf(SCOPE);

const KINDS = kindsOf(SCOPE);

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
  const verb = chosen(verbWord, VERBS);
  if (verb !== "resign" && (values.wait !== undefined || values.force !== undefined)) {
    throw new UsageError(`--${values.wait === undefined ? "force" : "wait"} belongs to resign, not to ${verb}`);
  }
  return {
    verb,
    scope: scopeOf(verb, [...names, ...(values.scope === undefined ? [] : [values.scope])]),
    backend: backendUrl(values.backend, environment),
    waitMs: values.wait === undefined ? SCOPE_CHANGE_MS : parseDuration("--wait", values.wait),
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
