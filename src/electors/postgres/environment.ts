// The specification's knobs as environment variables, for commands: the library itself reads no environment. Pure:
// the caller passes the variables. Unknown ones of the same prefix are not ours to refuse.
// docs/reference/configuration.md lists the same, and a test compares.

import { TenureError } from "../../core/kit/errors.ts";
import type { PostgresOptions } from "./options.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface PostgresEnvironment {
  /** TENURE_LEADER_ENABLED; unset means yes (design D21). */
  readonly enabled: boolean;
  /** Only what was set. */
  readonly options: PostgresOptions<never>;
}

type Knob = { readonly option: keyof PostgresOptions<never> | "enabled"; readonly read: (text: string) => unknown };

/** Every variable that is read, with the option that it sets. */
export const ENVIRONMENT = {
  TENURE_PG_CONN_STRING: { option: "url", read: (text) => text },
  TENURE_LEADER_ENABLED: { option: "enabled", read: readBoolean },
  TENURE_LEADER_LOCK_KEY: { option: "lockKey", read: (text) => text },
  TENURE_HEARTBEAT_INTERVAL_MS: { option: "heartbeatMs", read: readInteger },
  TENURE_HEARTBEAT_LATE_THRESHOLD_MS: { option: "lateThresholdMs", read: readInteger },
  TENURE_ACQUIRE_BACKOFF_MS_MIN: { option: "retryMinMs", read: readInteger },
  TENURE_ACQUIRE_BACKOFF_MS_MAX: { option: "retryMaxMs", read: readInteger },
  TENURE_EPOCH_STALE_THRESHOLD_MS: { option: "epochStaleThresholdMs", read: readInteger },
  TENURE_PG_LISTEN_CHANNEL: { option: "channel", read: (text) => text },
} as const satisfies Readonly<Record<`TENURE_${string}`, Knob>>;

/** An empty variable counts as unset, as in most shells' habits. `check` may be the whole validation of the options. */
export function readEnvironment(
  env: Environment,
  check: (options: PostgresOptions<never>) => void,
): PostgresEnvironment {
  const options: Record<string, unknown> = {};
  let enabled = true;
  for (const [name, { option, read }] of Object.entries(ENVIRONMENT)) {
    const text = env[name]?.trim() ?? "";
    if (text === "") continue;
    const value = read(text);
    if (value === undefined) throw refused(name, text, option === "enabled" ? "true or false" : "a whole number");
    if (option === "enabled") enabled = value === true;
    else options[option] = value;
  }
  try {
    check(options);
  } catch (error) {
    throw named(error);
  }
  return { enabled, options };
}

function readInteger(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function readBoolean(text: string): boolean | undefined {
  if (/^(true|1|yes|on)$/i.test(text)) return true;
  return /^(false|0|no|off)$/i.test(text) ? false : undefined;
}

/** No variable of ours that is read as a number or a boolean is secret, so its text may be shown. */
function refused(name: string, text: string, wanted: string): TenureError {
  return new TenureError("CONFIG_INVALID", `${name} is ${JSON.stringify(text)}, and must be ${wanted}.`);
}

/** Who set a variable looks for its name, not for the option's. */
function named(error: unknown): unknown {
  if (!TenureError.is(error)) return error;
  let { message } = error;
  for (const [name, { option }] of Object.entries(ENVIRONMENT)) {
    message = message.replaceAll(new RegExp(`\\b${option}\\b`, "g"), name);
  }
  return new TenureError(error.code, message.replace(/^postgres\(\): /, ""), { cause: error });
}
