// The options of `postgres()`, checked at the call, and what follows from them.
//
// Two numbers decide the rest: `heartbeatMs`, how often a leader proves itself, and `serverTimeoutMs`, after how much
// silence the database gives the scope away. Each default follows from what was given, so that one option can be
// set alone.
//
//   sentAt ─────────── gate open ───────────▶│◀─ margin ─▶│ the server ends the session
//            beat    beat    beat    beat    │            sentAt + serverTimeoutMs

import { TenureError } from "../../core/kit/errors.ts";
import { HEARTBEAT_JITTER } from "../../core/kit/limits.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { SessionRules } from "../../postgres/ready.ts";
import { parseLockKey } from "../../postgres/lock-key.ts";
import { DEFAULT_CHANNEL, DEFAULT_SCHEMA, quoteSchema } from "../../postgres/schema/schema.ts";
import * as limits from "./limits.ts";

export interface PostgresOptions<Client> {
  /** `postgres://user:password@host:port/database`. Leadership has sessions of its own, made from it. */
  readonly url?: string | undefined;
  /** Your pool: `term.tx` takes its clients from it, and so do the sessions if there is no `url`. */
  readonly connect?: (() => Promise<Client>) | undefined;
  /** The Postgres schema with Tenure's tables and functions. Default: `public`. */
  readonly schema?: string | undefined;
  /** `auto` (default) creates and migrates tables and functions; `check` only looks whether they are there. */
  readonly migrate?: "auto" | "check" | undefined;
  /** `block` (default): one session for each elector, fastest takeover. `poll`: one session for all of them. */
  readonly wait?: "block" | "poll" | undefined;
  /** How often a leader proves that it holds the scope. Default 1 s, or a sixth of `serverTimeoutMs` if that is less. */
  readonly heartbeatMs?: number | undefined;
  /** After how much silence the server ends a leader's session. Default 6 s, more if the heartbeat needs it. */
  readonly serverTimeoutMs?: number | undefined;
  /** How much earlier than the server the gate closes. Default 1.5 s, or a quarter of `serverTimeoutMs` if that is less. */
  readonly marginMs?: number | undefined;
  /** Closes the gate when the last heartbeat is older than this, where that is earlier than the margin. */
  readonly lateThresholdMs?: number | undefined;
  /** Instead of the key that is derived from the scope: for one scope alone. A signed 64-bit integer. */
  readonly lockKey?: bigint | number | string | undefined;
  /** The NOTIFY channel. Default `tenure_leader_change`. */
  readonly channel?: string | undefined;
  /** Between two attempts: after an error, and while polling. Default 200 ms to 800 ms, jittered. */
  readonly retryMinMs?: number | undefined;
  readonly retryMaxMs?: number | undefined;
  /** Whoever observes logs a warning when the leader's heartbeat is older than this. Default: never. */
  readonly epochStaleThresholdMs?: number | undefined;
}

export interface PostgresSettings extends SessionRules {
  readonly wait: "block" | "poll";
  readonly lockKey: bigint | undefined;
  readonly channel: string;
  readonly epochStaleThresholdMs: number | undefined;
  readonly timing: Timing;
}

/** Every option; docs/reference/configuration.md lists the same, and a test compares. */
export const OPTION_NAMES = [
  "url",
  "connect",
  "schema",
  "migrate",
  "wait",
  "heartbeatMs",
  "serverTimeoutMs",
  "marginMs",
  "lateThresholdMs",
  "lockKey",
  "channel",
  "retryMinMs",
  "retryMaxMs",
  "epochStaleThresholdMs",
] as const satisfies readonly (keyof PostgresOptions<unknown>)[];

export function settingsOf(options: PostgresOptions<unknown>): PostgresSettings {
  // From plain JavaScript, most often an environment variable that is not set.
  if (typeof options !== "object" || options === null) {
    refuse("url", "is missing; is the variable that it comes from set?");
  }
  for (const field of Object.keys(options)) {
    if (!OPTION_NAMES.some((known) => known === field)) {
      refuse(field, `is not an option; the options are ${OPTION_NAMES.join(", ")}`);
    }
  }
  checkSource(options);
  const timing = timingOf(options);
  const part = (most: number, divisor: number): number => Math.min(most, Math.ceil(timing.serverTimeoutMs / divisor));
  return {
    schema: schemaName(options.schema ?? DEFAULT_SCHEMA),
    migrate: oneOf("migrate", options.migrate ?? "auto", ["auto", "check"]),
    wait: oneOf("wait", options.wait ?? "block", ["block", "poll"]),
    lockKey: options.lockKey === undefined ? undefined : parseLockKey(options.lockKey),
    channel: name("channel", options.channel ?? DEFAULT_CHANNEL),
    epochStaleThresholdMs: duration("epochStaleThresholdMs", options.epochStaleThresholdMs),
    timing,
    session: {
      waitingIdleMs: part(limits.STATEMENT_TIMEOUT_MS, 3),
      lockMs: part(limits.LOCK_TIMEOUT_MS, 6),
      statementMs: part(limits.STATEMENT_TIMEOUT_MS, 3),
    },
  };
}

function timingOf(options: PostgresOptions<unknown>): Timing {
  const given = duration("serverTimeoutMs", options.serverTimeoutMs);
  const heartbeatMs =
    duration("heartbeatMs", options.heartbeatMs) ??
    Math.min(limits.HEARTBEAT_MS, Math.ceil((given ?? limits.SERVER_TIMEOUT_MS) / 6));
  const lateMs = duration("lateThresholdMs", options.lateThresholdMs);
  const marginGiven = duration("marginMs", options.marginMs);
  const marginMs = marginGiven ?? Math.min(limits.MARGIN_MS, Math.ceil((given ?? limits.SERVER_TIMEOUT_MS) / 4));
  const serverTimeoutMs =
    given ??
    Math.max(limits.SERVER_TIMEOUT_MS, limits.BEATS_PER_TIMEOUT * heartbeatMs + marginMs, (lateMs ?? 0) + marginMs);
  const beatMs = Math.ceil(heartbeatMs * (1 + HEARTBEAT_JITTER));
  if (serverTimeoutMs <= marginMs + beatMs) {
    const sum = `marginMs (${marginMs}) + heartbeatMs with its jitter (${beatMs})`;
    refuse(
      "serverTimeoutMs",
      `is ${serverTimeoutMs}, and must be larger than ${sum}, or the gate closes between beats`,
    );
  }
  if (lateMs !== undefined && lateMs <= beatMs) {
    refuse("lateThresholdMs", `is ${lateMs}, and must be larger than heartbeatMs with its jitter (${beatMs})`);
  }
  if (lateMs !== undefined && lateMs > serverTimeoutMs - marginMs) {
    const trust = `serverTimeoutMs − marginMs (${serverTimeoutMs - marginMs})`;
    refuse("lateThresholdMs", `is ${lateMs}, and may be at most ${trust}, when the gate closes anyway`);
  }
  const retryMinMs =
    duration("retryMinMs", options.retryMinMs) ??
    Math.min(limits.POLL_RETRY_MS_MIN, options.retryMaxMs ?? limits.POLL_RETRY_MS_MIN);
  const retryMaxMs = duration("retryMaxMs", options.retryMaxMs) ?? Math.max(limits.POLL_RETRY_MS_MAX, retryMinMs);
  if (retryMinMs > retryMaxMs) refuse("retryMinMs", `is ${retryMinMs}, more than retryMaxMs (${retryMaxMs})`);
  return {
    serverTimeoutMs,
    marginMs: lateMs === undefined ? marginMs : Math.max(marginMs, serverTimeoutMs - lateMs),
    heartbeatMs,
    retryMinMs,
    retryMaxMs,
    // A poller looks this often; a waiter in the server's queue is served at once.
    holdBackMs: options.wait === "poll" ? retryMaxMs + limits.HOLD_BACK_MS : limits.HOLD_BACK_MS,
    releaseTimeoutMs: limits.RELEASE_TIMEOUT_MS,
  };
}

function checkSource({ url, connect }: PostgresOptions<unknown>): void {
  if (connect !== undefined && typeof connect !== "function") {
    refuse("connect", "must be a function that gives a client, such as () => pool.connect()");
  }
  if (url === undefined) {
    if (connect === undefined) refuse("url", "is missing; give a URL such as postgres://user@host:5432/database");
    return;
  }
  // The value may hold a password: it is never shown.
  const example = "write it as postgres://user:password@host:5432/database";
  if (typeof url !== "string" || !/^postgres(ql)?:\/\//.test(url)) refuse("url", `is not a Postgres URL; ${example}`);
  if (!URL.canParse(url)) {
    refuse("url", `can't be read; ${example}, and percent-encode what is special in the password`);
  }
  // What comes before it would be taken for the host, part of a password perhaps, and shown in every message.
  if (url.includes("#")) {
    refuse(
      "url",
      `has a # in it, which ends a URL; ${example}, and percent-encode what is special in the password (%23)`,
    );
  }
}

function duration(field: string, value: number | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (Number.isInteger(value) && value >= 1 && value <= limits.DURATION_MS_MAX) return value;
  return refuse(
    field,
    `is ${String(value)}, and must be a whole number of milliseconds from 1 to ${limits.DURATION_MS_MAX}`,
  );
}

function name(field: string, value: unknown): string {
  if (typeof value !== "string") return refuse(field, "must be a text");
  const bytes = new TextEncoder().encode(value).length;
  if (bytes >= 1 && bytes <= limits.IDENTIFIER_BYTES_MAX && !value.includes("\0")) return value;
  return refuse(
    field,
    `must have 1 to ${limits.IDENTIFIER_BYTES_MAX} bytes, as every name in Postgres, and has ${bytes}`,
  );
}

function oneOf<T extends string>(field: string, value: T, values: readonly T[]): T {
  if (values.includes(value)) return value;
  return refuse(field, `is ${JSON.stringify(value)}, and must be ${values.map((one) => `"${one}"`).join(" or ")}`);
}

/** `quoteSchema` is the judge; the quotes are for those who write statements. */
function schemaName(schema: string): string {
  quoteSchema(schema);
  return schema;
}

function refuse(field: string, why: string): never {
  throw new TenureError("CONFIG_INVALID", `postgres(): ${field} ${why}`);
}
