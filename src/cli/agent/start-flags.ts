// The command line of `tenure agent start`, checked before anything is started.

import { AGENT_LEASE_MS } from "../../agent/limits.ts";
import { AGENT_CAPACITY_MAX, LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN } from "../../core/kit/limits.ts";
import { CONNECTION_KINDS } from "../kit/connection-help.ts";
import { kindsOf } from "../kit/description.ts";
import { LEVELS, START } from "./help.ts";
import type { LogLevel } from "../../contract/index.ts";
import { AGENT_DRAIN_MS, AGENT_GRACE_MS } from "../../contract/timeouts.ts";
import type { ConnectionValues } from "../connection/connection.ts";
import { oneOf, parseDuration, parseFlags, UsageError } from "../kit/flags.ts";
import { nameOf, pairs, wholeNumber } from "../job/spec-flags.ts";

const { output: _output, ...CONNECTION } = CONNECTION_KINDS;
const KINDS = { ...CONNECTION, ...kindsOf(START) };

export interface AgentStartFlags {
  readonly connection: ConnectionValues;
  /** Null: one that fits this process. */
  readonly name: string | null;
  readonly capacity: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly platform: string;
  readonly leaseMs: number;
  /** From SIGTERM to SIGKILL for a job. */
  readonly graceMs: number;
  readonly drainMs: number;
  readonly logLevel: LogLevel;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** `args`: what is after `start`. */
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
    capacity: values.capacity === undefined ? 1 : wholeNumber("--capacity", values.capacity, 1, AGENT_CAPACITY_MAX),
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
  if (text === undefined) return AGENT_LEASE_MS;
  const leaseMs = Math.round(parseDuration("--lease", text, LEASE_TTL_MS_MAX));
  if (leaseMs < LEASE_TTL_MS_MIN) throw new UsageError(`--lease takes at least 1s, not ${text}`);
  return leaseMs;
}

function withoutGaps(values: Record<string, string | undefined>): ConnectionValues {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
