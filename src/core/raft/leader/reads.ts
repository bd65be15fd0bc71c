// Linearizable reads (Raft thesis §6.4). A read waits, in this order, for
//   term    the leader has committed an entry of its own term, so its commit index is current;
//   round   a heartbeat round that STARTS after the request is confirmed by a majority (trap 20);
// and is then answered with the commit index it was registered at. All of it is dropped when the
// leadership ends, so an answer never outlives the term in which it was asked.

import { PENDING_READS_MAX } from "../../kit/limits.ts";
import type { PeerKey } from "../../kit/ids.ts";

/** `from`: the follower that forwarded it, or null for a read of this node. */
export interface PendingRead {
  readonly context: number;
  readonly from: PeerKey | null;
}

export class Reads {
  #waitingForTerm: PendingRead[] = [];
  #waitingForRound: (PendingRead & { readonly index: number })[] = [];
  #unsent = 0;
  #rounds: { readonly round: number; count: number }[] = [];

  get size(): number {
    return this.#waitingForTerm.length + this.#waitingForRound.length;
  }

  get isFull(): boolean {
    return this.size >= PENDING_READS_MAX;
  }

  /** Some reads still need a round of their own. */
  get needsRound(): boolean {
    return this.#unsent > 0;
  }

  addBeforeTerm(read: PendingRead): void {
    this.#waitingForTerm.push(read);
  }

  add(read: PendingRead, commit: number): void {
    this.#waitingForRound.push({ ...read, index: commit });
    this.#unsent++;
  }

  /** The term's first entry is committed: what waited for it now needs a round. */
  termCommitted(commit: number): void {
    for (const read of this.#waitingForTerm) this.add(read, commit);
    this.#waitingForTerm = [];
  }

  /** `round` has just been started, after every read added so far. */
  roundStarted(round: number): void {
    if (this.#unsent === 0) return;
    this.#rounds.push({ round, count: this.#unsent });
    this.#unsent = 0;
  }

  /** The reads that the confirmed round releases, oldest first. */
  confirmed(round: number): readonly (PendingRead & { readonly index: number })[] {
    let count = 0;
    while (this.#rounds.length > 0 && this.#rounds[0]!.round <= round) count += this.#rounds.shift()!.count;
    return count === 0 ? [] : this.#waitingForRound.splice(0, count);
  }

  /** Leadership is over: everything that was asked gets no answer. */
  drop(): readonly PendingRead[] {
    const dropped = [...this.#waitingForTerm, ...this.#waitingForRound];
    this.#waitingForTerm = [];
    this.#waitingForRound = [];
    this.#rounds = [];
    this.#unsent = 0;
    return dropped;
  }
}
