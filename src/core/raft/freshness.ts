// How fresh a follower's applied state is: the latest moment at which it is known to have held everything committed, as
// its leader announced it. Heartbeats announce the leader's commit index; that moment counts once so much is applied.
//
// One announcement is kept until it is reached, and only then the next: under load a newer one is always ahead of what is
// applied, and waiting for the newest would never end.
// Invariant: `asOfMs` never falls.

export class Freshness {
  asOfMs = 0;
  #waitingFor: { readonly commit: number; readonly atMs: number } | null = null;
  #latest: { readonly commit: number; readonly atMs: number } | null = null;

  /** This server led until now, and had everything. */
  raise(atMs: number): void {
    this.asOfMs = Math.max(this.asOfMs, atMs);
  }

  announced(commit: number, atMs: number): void {
    this.#latest = { commit, atMs };
    this.#waitingFor ??= this.#latest;
  }

  applied(index: number): void {
    if (this.#waitingFor === null || index < this.#waitingFor.commit) return;
    this.asOfMs = Math.max(this.asOfMs, this.#waitingFor.atMs);
    // A heartbeat that came meanwhile may be reached as well.
    const next = this.#latest === this.#waitingFor ? null : this.#latest;
    this.#waitingFor = next;
    if (next !== null && index >= next.commit) {
      this.asOfMs = Math.max(this.asOfMs, next.atMs);
      this.#waitingFor = null;
    }
  }
}
