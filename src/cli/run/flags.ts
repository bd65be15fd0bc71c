// The command line and the environment of `tenure run`: what may be asked for, checked before anything is started.

import { kindsOf } from "../kit/description.ts";
import { RUN } from "./help.ts";
import { RUN_GRACE_MS } from "./limits.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { GuardPlan } from "../../core/supervise/guard.ts";
import { backendUrl } from "../connection/backend.ts";
import { oneOf, parseDuration, parseFlags, UsageError } from "../kit/flags.ts";

const ON_LOSE = ["stop", "kill"] as const;
const LOG = ["text", "json"] as const;

const KINDS = kindsOf(RUN);

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
  if (onLose === "kill") return { onLose, graceMs: graceMs ?? RUN_GRACE_MS };
  const trustMs = timing.serverTimeoutMs - timing.marginMs;
  const mostMs = Math.max(0, Math.floor(trustMs - 2 * timing.heartbeatMs));
  if (graceMs !== undefined && graceMs > mostMs) {
    throw new UsageError(
      `--grace ${graceMs}ms does not fit: trust lasts ${trustMs}ms beyond a heartbeat, and two heartbeats of ${timing.heartbeatMs}ms must fit in front of the grace. Give at most ${mostMs}ms, or raise TENURE_SERVER_TIMEOUT_MS`,
    );
  }
  return { onLose, graceMs: graceMs ?? Math.min(RUN_GRACE_MS, mostMs) };
}
