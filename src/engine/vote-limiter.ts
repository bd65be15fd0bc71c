// How often one peer may ask for votes: so often and no more, however fast it asks. Honest peers stay far below it; what
// is past it is dropped as if it were lost, which an election survives.
// Invariant: as many buckets as peers that have asked, at most LIMITED_PEERS_MAX; the one that was idle longest goes first.

import type { PeerKey } from "../core/kit/ids.ts";
import { VOTE_REQUESTS_BURST_MAX, VOTE_REQUESTS_PER_S_MAX } from "../core/kit/limits.ts";
import { LIMITED_PEERS_MAX } from "./limits.ts";

interface Bucket {
  tokens: number;
  atMs: number;
}

export class VoteLimiter {
  /** In the order of last use. */
  readonly #buckets = new Map<PeerKey, Bucket>();

  admits(peer: PeerKey, nowMs: number): boolean {
    const bucket = this.#buckets.get(peer) ?? { tokens: VOTE_REQUESTS_BURST_MAX, atMs: nowMs };
    const refill = ((nowMs - bucket.atMs) / 1000) * VOTE_REQUESTS_PER_S_MAX;
    bucket.tokens = Math.min(VOTE_REQUESTS_BURST_MAX, bucket.tokens + refill);
    bucket.atMs = nowMs;
    this.#buckets.delete(peer);
    this.#buckets.set(peer, bucket);
    if (this.#buckets.size > LIMITED_PEERS_MAX) this.#buckets.delete(this.#buckets.keys().next().value!);
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}
