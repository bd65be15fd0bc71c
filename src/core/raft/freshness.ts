// How fresh a follower's applied state is: the latest moment at which it is known to have held everything committed, as
// its leader announced it. A heartbeat announces the leader's commit index and echoes a round that this follower answered:
// the announcement was made after that answer left, so that moment counts, and not when the heartbeat came: it may have lain
// in a socket for a minute (trap 44).
//
// One announcement is kept until it is reached, and only then the next: under load a newer one is always ahead of what is
// applied, and waiting for the newest would never end.
// Invariant: `asOfMs` never falls.

import { HEARTBEAT_ROUNDS_MAX } from "../kit/limits.ts";

interface Announcement {
  readonly commit: number;
  readonly atMs: number;
}

export class Freshness {
  asOfMs = 0;
  #term = 0;
  /** When rounds of this term's leader were first answered; as many as a leader remembers. */
  readonly #answered = new Map<number, number>();
  #waitingFor: Announcement | null = null;
  #latest: Announcement | null = null;

  /** This server led until now, and had everything. */
  raise(atMs: number): void {
    this.asOfMs = Math.max(this.asOfMs, atMs);
  }

  answered(term: number, round: number, atMs: number): void {
    if (term !== this.#term) this.#answered.clear();
    this.#term = term;
    if (this.#answered.has(round)) return;
    this.#answered.set(round, atMs);
    if (this.#answered.size > HEARTBEAT_ROUNDS_MAX) this.#answered.delete(this.#answered.keys().next().value!);
  }

  /** `commit` is 0 where the leader does not know yet how far the log was committed before it. */
  announced(term: number, commit: number, echo: number): void {
    const atMs = term === this.#term && commit > 0 ? this.#answered.get(echo) : undefined;
    if (atMs === undefined) return;
    this.#latest = { commit, atMs };
    this.#waitingFor ??= this.#latest;
  }

  applied(index: number): void {
    if (this.#waitingFor === null || index < this.#waitingFor.commit) return;
    this.raise(this.#waitingFor.atMs);
    // One that came meanwhile may be reached as well.
    const next = this.#latest === this.#waitingFor ? null : this.#latest;
    this.#waitingFor = next;
    if (next !== null && index >= next.commit) {
      this.raise(next.atMs);
      this.#waitingFor = null;
    }
  }
}
