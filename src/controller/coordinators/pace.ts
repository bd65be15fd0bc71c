// How far apart candidates are to begin, so that one has won before the next one begins: as calls and disks take between these nodes. Candidates that
// begin together hold each other's votes, and all of them lose.

import { PACE_KEPT, CANDIDATE_TURN_MS_MAX, CANDIDATE_TURN_MS_MIN } from "./limits.ts";

export class Pace {
  /** What the last calls took that were answered, and the last writes of the ledger here; in the order in which they were. */
  readonly #callsMs: number[] = [];
  readonly #writesMs: number[] = [];

  called(tookMs: number): void {
    keep(this.#callsMs, tookMs);
  }

  wrote(tookMs: number): void {
    keep(this.#writesMs, tookMs);
  }

  /** A candidate asks who leads, writes its own grant, and is granted by others: most do all of it within this. */
  get turnMs(): number {
    const tookMs = 2 * most(this.#callsMs) + most(this.#writesMs);
    return Math.min(CANDIDATE_TURN_MS_MAX, Math.max(CANDIDATE_TURN_MS_MIN, tookMs));
  }
}

function keep(times: number[], tookMs: number): void {
  times.push(tookMs);
  if (times.length > PACE_KEPT) times.shift();
}

/** Three of four took no longer. */
function most(times: readonly number[]): number {
  const inOrder = times.toSorted((a, b) => a - b);
  return inOrder[Math.floor(inOrder.length * 0.75)] ?? 0;
}
