// What an agent needs of the cluster: two calls. `tenure/client` makes them over HTTP; tests make them up.

import type { LeaseAnswer, LeaseCall, ResultAnswer, ResultCall } from "../ports/jobs.ts";

export interface DeskOptions {
  readonly signal: AbortSignal;
  /** For the call as a whole. */
  readonly timeoutMs: number;
  /** How long one node may say nothing, where the call may be repeated; else the desk's own. */
  readonly attemptMs?: number | undefined;
}

/** Rejects with a TenureError. What is only renewed and reported (`max` 0) may be repeated on the way; a lease may not. */
export interface LeaseDesk {
  lease(call: Omit<LeaseCall, "leaderEpoch" | "caller">, options: DeskOptions): Promise<LeaseAnswer>;
  /** An answer for each, in order. */
  results(session: string, results: readonly ResultCall[], options: DeskOptions): Promise<readonly ResultAnswer[]>;
}
