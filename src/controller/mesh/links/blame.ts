// What each peer has delivered that was not in order, counted by reason. Whoever delivers a page is answerable for its bytes; the line that
// it names may be another site's, and is never blamed for them. A page after a gap is no reason: what was before it may have been lost here.

import { PEERS_BLAMED_MAX } from "../limits.ts";

/** `malformed`: no page, or no note. `invalid`: bytes, hashes, root or signature. `oversized`, `flood`: more than one may send. */
export type BlameReason = "malformed" | "invalid" | "suspected" | "unknown-line" | "flood" | "impostor";

export class Blame {
  readonly #byPeer = new Map<string, Map<BlameReason, number>>();

  count(peer: string, reason: BlameReason): void {
    let counts = this.#byPeer.get(peer);
    if (counts === undefined) {
      // Peers are registered or hold a key, so there are few; should that change, the first ones stay.
      if (this.#byPeer.size >= PEERS_BLAMED_MAX) return;
      this.#byPeer.set(peer, (counts = new Map()));
    }
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }

  of(peer: string): Readonly<Partial<Record<BlameReason, number>>> {
    return Object.fromEntries(this.#byPeer.get(peer) ?? []);
  }

  peers(): readonly string[] {
    return [...this.#byPeer.keys()];
  }
}
