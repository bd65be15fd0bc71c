// Small questions that the oracle asks of what it sees.

import type { Moment } from "./history.ts";

/** Said by the agent itself, not taken from it. */
export function isReported(cause: string | undefined): boolean {
  return cause !== undefined && !["lost", "timed-out", "undelivered", "asked"].includes(cause);
}

export function isForgotten({ state }: Moment): boolean {
  return state === "forgotten";
}

export function describe(
  state: string | undefined,
  jobEpoch: number | undefined,
  leaseId: string | null | undefined,
): string {
  return state === undefined ? "unknown" : `${state}/${jobEpoch}/${leaseId ?? "-"}`;
}

export function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
