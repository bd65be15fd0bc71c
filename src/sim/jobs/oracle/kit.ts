// What the oracle is made with, and small questions that it asks of what it sees.

import type { LeaseSecrets } from "../../../controller/jobs/lease-secrets.ts";
import type { Moment } from "./history.ts";
import type { JobsKnobs } from "../knobs.ts";
import type { JobsProbeCounts } from "../probes.ts";

export interface JobsOracleOptions {
  readonly probes: JobsProbeCounts;
  readonly secrets: LeaseSecrets;
  /** So many events apart states are compared. */
  readonly statesEvery: number;
  /** What a book keeps of finished jobs. */
  readonly finished: Pick<JobsKnobs, "finishedMax" | "finishedBytesMax">;
  readonly report: (node: string, error: unknown) => void;
  /** The world's own. */
  readonly nowMs: () => number;
  /** What is wrong with an event's time; null: nothing. */
  readonly timeProblem: (timestamp: number) => string | null;
}

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
