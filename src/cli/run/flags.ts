// The command line and the environment of `tenure run`: what may be asked for, checked before anything is started.

import type { Timing } from "../../core/trust/window.ts";
import type { GuardPlan } from "../../core/supervise/guard.ts";
import { backendUrl } from "../connection/backend.ts";
import { oneOf, parseDuration, parseFlags, UsageError } from "../kit/flags.ts";

const GRACE_DEFAULT_MS = 2_000;
const ON_LOSE = ["stop", "kill"] as const;
const LOG = ["text", "json"] as const;

export const RUN_HELP = `tenure run --scope S --backend URL [options] -- CMD [ARG…]: runs CMD only while this instance leads S.

  --scope S          what is led: instances that compete write the same text
  --backend URL      postgres://user:password@host/database, etcd://host:port[,host:port…], or https://host:port[,…]
                     for Tenure's own servers (or TENURE_BACKEND, or TENURE_URL)
  --on-lose stop     leadership is lost: SIGTERM, then SIGKILL when the grace is over (default)
  --on-lose kill     leadership is lost: SIGKILL at once
  --grace 2s         between SIGTERM and SIGKILL. SIGTERM comes so much before trust in the leadership ends
  --drain 2s         between SIGTERM and SIGKILL when you stop \`tenure run\` itself (default: as --grace)
  --once             leadership is lost: exit 76 once CMD is dead, instead of campaigning again
  --forever          start CMD again whenever it ends by itself, after 100ms to 5s, until a signal comes
  --wait 30s         exit 75 if leadership was not won within this time (default: wait for ever)
  --identity I       who this instance is, for people (default: scope, host, process and a random part)
  --quiet            say errors only
  --log text|json    how to say it, on stderr (default text)
  --help             this text

CMD ends by itself: exit with its code (128 + n for signal n). CMD gets TENURE_SCOPE and TENURE_EPOCH; check the
epoch where you write (tenure_require_epoch in Postgres), because only the resource itself can refuse a late write.
SIGTERM and SIGINT end CMD, then release the scope; a second one kills. SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and
SIGWINCH are passed on. TENURE_LEADER_ENABLED=false: never lead. Knobs of the backend: docs/run.md.

CMD runs in a process group of its own under a guard process, which kills the group when \`tenure run\` dies, freezes
or is cut off. What no guard can do: stop a process that left the group (setsid, a daemon) or runs as another user;
act while the whole machine is paused, or while both \`tenure run\` and the guard are stopped or killed in one blow; see
a pause in which both clocks stood still (a hypervisor's pause, a snapshot, a live migration) before the next heartbeat
fails; recall what CMD has already sent. After a loss that is known at once, CMD may run on beside the next leader: for
the grace with --on-lose stop, for some milliseconds with --on-lose kill and after a kill -9 of \`tenure run\`; and for
up to the trust window (4.5s) if \`tenure run\` is frozen or cut off and its session ends at the server meanwhile.

exit codes: CMD's own; 64 wrong use; 69, 77, 78 the backend (docs/errors.md); 70 the guard failed; 75 never won;
76 lost, with --once; 126 CMD can't be run; 127 CMD was not found; 128 + n ended by signal n while waiting
`;

const KINDS = {
  scope: "value",
  backend: "value",
  "on-lose": "value",
  grace: "value",
  drain: "value",
  once: "switch",
  forever: "switch",
  wait: "value",
  identity: "value",
  quiet: "switch",
  log: "value",
  help: "switch",
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

export interface RunFlags {
  readonly scope: string;
  readonly backend: string;
  readonly onLose: "stop" | "kill";
  readonly graceMs: number | undefined;
  readonly drainMs: number | undefined;
  readonly mode: "to-the-end" | "once" | "forever";
  readonly waitMs: number | undefined;
  readonly identity: string | undefined;
  readonly enabled: boolean;
  readonly quiet: boolean;
  readonly json: boolean;
  readonly command: string;
  readonly args: readonly string[];
}

export function readRunFlags(args: readonly string[], environment: Environment): RunFlags | "help" {
  const { values, words, rest } = parseFlags(args, KINDS);
  if (values.help !== undefined) return "help";
  if (words.length > 0) {
    throw new UsageError(
      `${JSON.stringify(words[0])} belongs to no flag; the command goes after --: tenure run … -- CMD`,
    );
  }
  const { scope } = values;
  if (scope === undefined) throw new UsageError("--scope is missing: name what is led, such as --scope reports");
  if (scope === "") throw new UsageError("--scope must not be empty: instances compete by writing the same name");
  const backend = backendUrl(values.backend, environment);
  if (values.once !== undefined && values.forever !== undefined) {
    throw new UsageError("--once ends with the first loss and --forever never ends; give one of them");
  }
  const [command, ...commandArgs] = rest ?? [];
  if (command === undefined || command === "") {
    throw new UsageError("the command is missing: write it after --, such as: tenure run --scope S -- ./job");
  }
  const duration = (name: "grace" | "drain" | "wait"): number | undefined => {
    const text = values[name];
    return text === undefined ? undefined : parseDuration(`--${name}`, text);
  };
  return {
    scope,
    backend,
    onLose: oneOf("--on-lose", values["on-lose"] ?? "stop", ON_LOSE),
    graceMs: duration("grace"),
    drainMs: duration("drain"),
    mode: values.once !== undefined ? "once" : values.forever !== undefined ? "forever" : "to-the-end",
    waitMs: duration("wait"),
    identity: values.identity,
    enabled: isEnabled(environment["TENURE_LEADER_ENABLED"]),
    quiet: values.quiet !== undefined,
    json: oneOf("--log", values.log ?? "text", LOG) === "json",
    command,
    args: commandArgs,
  };
}

/** Unset means enabled: running the command is the opt-in (design D21). A typing mistake must not lead. */
export function isEnabled(text: string | undefined): boolean {
  if (text === undefined || text === "" || /^(true|1|yes|on)$/i.test(text)) return true;
  if (/^(false|0|no|off)$/i.test(text)) return false;
  throw new UsageError(`TENURE_LEADER_ENABLED is true or false, not ${JSON.stringify(text)}`);
}

/**
 * SIGTERM comes a grace before the end of trust, and each heartbeat moves that end: a grace that leaves no room for
 * two heartbeats would end a healthy command as soon as one was late.
 */
export function guardPlan(flags: Pick<RunFlags, "onLose" | "graceMs">, timing: Timing): GuardPlan {
  const { onLose, graceMs } = flags;
  if (onLose === "kill") return { onLose, graceMs: graceMs ?? GRACE_DEFAULT_MS };
  const trustMs = timing.serverTimeoutMs - timing.marginMs;
  const mostMs = Math.max(0, Math.floor(trustMs - 2 * timing.heartbeatMs));
  if (graceMs !== undefined && graceMs > mostMs) {
    throw new UsageError(
      `--grace ${graceMs}ms does not fit: trust lasts ${trustMs}ms beyond a heartbeat, and two heartbeats of ${timing.heartbeatMs}ms must fit in front of the grace. Give at most ${mostMs}ms, or raise TENURE_SERVER_TIMEOUT_MS`,
    );
  }
  return { onLose, graceMs: graceMs ?? Math.min(GRACE_DEFAULT_MS, mostMs) };
}
