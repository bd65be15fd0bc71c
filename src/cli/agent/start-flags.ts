// The command line of `tenure agent start`, checked before anything is started.

import type { LogLevel } from "../../contract/index.ts";
import { AGENT_DRAIN_MS, AGENT_GRACE_MS } from "../../contract/timeouts.ts";
import { CONNECTION_HELP, CONNECTION_KINDS, type ConnectionValues } from "../connection/connection.ts";
import { oneOf, parseDuration, parseFlags, UsageError } from "../kit/flags.ts";
import { nameOf, pairs, wholeNumber } from "../job/spec-flags.ts";

/** As the contract has them (AGENT_CAPACITY_MAX, LEASE_TTL_MS_MIN, LEASE_TTL_MS_MAX; a test compares). */
export const AGENT_BOUNDS = { capacityMax: 1_000, leaseMsMin: 1_000, leaseMsMax: 600_000 } as const;
const LEASE_MS = 15_000;
const LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;

export const START_FLAGS_HELP = `  --server URL       start: one of the servers; may be given again (or --url)
  --name N           start: its name among agents; another process of the same name takes its jobs away (default HOST-PID)
  --capacity N       start: so many jobs at once (default 1)
  --label NAME=VALUE start: what it offers; jobs with labels go to agents that have them all; may be given again
  --platform P       start: jobs for a platform go to agents of it (default: this one's, such as linux)
  --kinds exec       start: the kinds that it runs; exec is the only one
  --lease D          start: after so long without a word from it, its jobs go to another agent (default 15s)
  --grace D          start: from SIGTERM to SIGKILL for a job that is cancelled, takes too long or is handed back (default 5s);
                     none where another agent may have it
  --drain D          start: how long running jobs may go on after SIGTERM before they are handed back (default 30s)
  --log-level L      start: ${LEVELS.join(", ")} (or TENURE_LOG_LEVEL; default info)
`;

export const AGENT_START_HELP = `tenure agent start [--server URL]… [--name N] [--capacity N] [--label NAME=VALUE]…: runs the commands of exec jobs
(\`tenure job submit -- COMMAND\`) on this machine, until SIGTERM or SIGINT.

${START_FLAGS_HELP.replaceAll(" start: ", " ")}${CONNECTION_HELP.replace(/^ {2}-o .*\n/m, "")}
It needs the role agent. Log lines are JSON, on stderr. A job is a process group of its own; when it ends, is cancelled or lost,
everything that it started is killed. SIGTERM and SIGINT: no new jobs, running ones have --drain; a second one ends it at once.
SIGHUP: the files of --ca, --cert and --client-key are read again.

exit codes: 0 stopped in order; 64 wrong use; 76 another process has taken over its name, or it was removed; 77 the key may not run
jobs; 78 a certificate that is not trusted; 130, 143 ended by a second SIGINT or SIGTERM (docs/errors.md)
`;

const { output: _output, ...CONNECTION } = CONNECTION_KINDS;
const KINDS = {
  ...CONNECTION,
  server: "list",
  name: "value",
  capacity: "value",
  label: "list",
  platform: "value",
  kinds: "list",
  lease: "value",
  grace: "value",
  drain: "value",
  "log-level": "value",
} as const;

export interface AgentStartFlags {
  readonly connection: ConnectionValues;
  /** Null: one that fits this process. */
  readonly name: string | null;
  readonly capacity: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly platform: string;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly drainMs: number;
  readonly logLevel: LogLevel;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** `args`: what stands behind `start`. */
export function readAgentStartFlags(args: readonly string[], environment: Environment): AgentStartFlags | "help" {
  const { values, lists, words, rest } = parseFlags(args, KINDS);
  if (values.help !== undefined) return "help";
  const stray = words[0] ?? rest?.[0];
  if (stray !== undefined) throw new UsageError(`start takes no ${JSON.stringify(stray)}; its name is --name`);
  for (const kind of (lists.kinds ?? []).flatMap((text) => text.split(","))) oneOf("--kinds", kind, ["exec"]);
  const level = values["log-level"] ?? (environment["TENURE_LOG_LEVEL"] || "info");
  const { ca, cert, key, "client-key": clientKey } = values;
  return {
    connection: withoutGaps({ ca, cert, key, "client-key": clientKey, url: urlOf(values.url, lists.server) }),
    name: values.name === undefined ? null : nameOf("--name", values.name),
    capacity:
      values.capacity === undefined ? 1 : wholeNumber("--capacity", values.capacity, 1, AGENT_BOUNDS.capacityMax),
    labels: pairs("--label", lists.label ?? []),
    platform: nameOf("--platform", values.platform ?? process.platform),
    leaseMs: leaseOf(values.lease),
    graceMs: values.grace === undefined ? AGENT_GRACE_MS : Math.round(parseDuration("--grace", values.grace)),
    drainMs: values.drain === undefined ? AGENT_DRAIN_MS : Math.round(parseDuration("--drain", values.drain)),
    logLevel: oneOf(values["log-level"] === undefined ? "TENURE_LOG_LEVEL" : "--log-level", level, LEVELS),
  };
}

function urlOf(url: string | undefined, servers: readonly string[] | undefined): string | undefined {
  if (url !== undefined && servers !== undefined) throw new UsageError("give --server or --url, not both");
  return servers?.join(",") ?? url;
}

function leaseOf(text: string | undefined): number {
  if (text === undefined) return LEASE_MS;
  const leaseMs = Math.round(parseDuration("--lease", text, AGENT_BOUNDS.leaseMsMax));
  if (leaseMs < AGENT_BOUNDS.leaseMsMin) throw new UsageError(`--lease takes at least 1s, not ${text}`);
  return leaseMs;
}

function withoutGaps(values: Record<string, string | undefined>): ConnectionValues {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
