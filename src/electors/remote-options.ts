// What the options of backends over HTTP have in common: endpoints as a text or a list, and the timing of a lease. Each
// says in its own words what is wrong: `invalid` makes the error.

import type { TenureError } from "../core/kit/errors.ts";
import type { Timing } from "../core/trust/window.ts";
import { HEARTBEAT_MS_MIN, REMOTE_HEARTBEAT_MS } from "./limits.ts";

/** `a,b` or `["a", "b"]`, trimmed. Undefined where it is neither; JavaScript's callers may give anything. */
export function endpointTexts(given: unknown): readonly string[] | undefined {
  const texts: unknown = typeof given === "string" ? given.split(",") : given;
  if (!Array.isArray(texts) || !texts.every((one) => typeof one === "string")) return undefined;
  return texts.map((one) => one.trim());
}

export function leaseTiming(
  serverTimeoutMs: number,
  options: { readonly marginMs?: number | undefined; readonly heartbeatMs?: number | undefined },
  invalid: (why: string) => TenureError,
): Timing {
  const marginMs = options.marginMs ?? serverTimeoutMs / 4;
  if (!(marginMs >= 0 && marginMs <= serverTimeoutMs / 2)) {
    throw invalid(`"marginMs" is ${marginMs}; it must be from 0 to half of the TTL (${serverTimeoutMs / 2})`);
  }
  const trustMs = serverTimeoutMs - marginMs;
  const heartbeatMs = options.heartbeatMs ?? Math.min(REMOTE_HEARTBEAT_MS, Math.floor(trustMs / 4));
  if (!(heartbeatMs >= HEARTBEAT_MS_MIN && heartbeatMs <= trustMs / 2)) {
    throw invalid(
      `"heartbeatMs" is ${heartbeatMs}; two of them must fit into TTL - margin (${trustMs} ms), at least ${HEARTBEAT_MS_MIN}`,
    );
  }
  return {
    serverTimeoutMs,
    marginMs,
    heartbeatMs,
    retryMinMs: 50,
    retryMaxMs: 2_000,
    holdBackMs: 500,
    releaseTimeoutMs: Math.min(2_000, trustMs),
  };
}
