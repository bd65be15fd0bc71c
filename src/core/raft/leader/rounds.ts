// The leader's heartbeat rounds. Every round has a number and the time at which it was sent; every
// message to a follower carries the latest number and every answer returns it. One mechanism then serves
//   check-quorum  a majority answered something that was sent no longer ago than T,
//   the lease     it starts when the confirmed round was SENT, not when the answers came (traps 21, 44),
//   read index    the confirming round starts after the request (trap 20).
// Invariant: confirmed ≤ latest, and the time of the confirmed round is always known.

import { assert } from "../../kit/assert.ts";
import { HEARTBEAT_ROUNDS_MAX } from "../../kit/limits.ts";
import type { Strain } from "../strain.ts";

export class Rounds {
  #latest = 0;
  #confirmed = 0;
  #confirmedSentMs: number;
  #confirmedAtMs = -Infinity;
  readonly #strain: Strain;
  readonly #sentMs = new Map<number, number>();

  /** `sinceMs`: when the votes that made this leader were asked for, which is its first proof of contact. */
  constructor(sinceMs: number, strain: Strain) {
    this.#confirmedSentMs = sinceMs;
    this.#strain = strain;
  }

  get latest(): number {
    return this.#latest;
  }

  get confirmed(): number {
    return this.#confirmed;
  }

  /** A majority was in contact at least as recently as this. */
  get confirmedSentMs(): number {
    return this.#confirmedSentMs;
  }

  /** Half of what is remembered is for reads: their rounds must never push out those that prove contact. */
  get hasRoom(): boolean {
    return this.#latest - this.#confirmed < HEARTBEAT_ROUNDS_MAX / 2;
  }

  start(nowMs: number): number {
    this.#latest++;
    this.#sentMs.set(this.#latest, nowMs);
    this.#sentMs.delete(this.#latest - HEARTBEAT_ROUNDS_MAX);
    return this.#latest;
  }

  /** A majority has answered `round` or a later one. Returns whether that was news. */
  confirm(round: number, nowMs: number): boolean {
    assert(round <= this.#latest, "only rounds that were started are confirmed");
    if (round <= this.#confirmed) return false;
    const sentMs = this.#sentMs.get(round);
    // A round so old that its time was forgotten proves nothing that is still useful.
    if (sentMs === undefined) return false;
    for (const known of this.#sentMs.keys()) if (known < round) this.#sentMs.delete(known);
    // From answer to answer: how far away the others are is no lateness.
    this.#strain.gapEnded(nowMs - this.#confirmedAtMs, nowMs);
    this.#confirmedAtMs = nowMs;
    this.#confirmed = round;
    this.#confirmedSentMs = sentMs;
    return true;
  }
}
