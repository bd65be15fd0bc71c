// Which process speaks for a disk. Every process draws a random mark at its start and shows it in its hello. A process that
// was replaced by a later one never dials again, because it is dead: one that does is the holder of a copy of that disk,
// and both may vote (trap 13).
// Invariant: for each of at most BOOTS_PEERS_MAX disks, the present mark and at most BOOTS_MARKS_MAX former ones are kept; the disks and
// marks that were seen longest ago go first. A thousand copies that took turns would not be noticed; two are what happens.

import type { PeerKey } from "../../../core/kit/ids.ts";
import { nodeIdOf } from "../../../core/kit/ids.ts";
import { BOOTS_MARKS_MAX, BOOTS_PEERS_MAX, CLONED_FOR_MS } from "../limits.ts";

interface Marks {
  present: string;
  readonly former: Set<string>;
}

export class Boots {
  readonly #marks = new Map<PeerKey, Marks>();
  readonly #clonedAtMs = new Map<string, number>();

  /** A process with this mark dials in the name of that disk. Returns whether it was replaced before, and so is a copy. */
  isFormer(peer: PeerKey, mark: string, nowMs: number): boolean {
    if (this.#marks.get(peer)?.former.has(mark) !== true) return false;
    this.#clonedAtMs.set(nodeIdOf(peer), nowMs);
    return true;
  }

  accepted(peer: PeerKey, mark: string): void {
    const marks = this.#marks.get(peer) ?? { present: mark, former: new Set() };
    if (marks.present !== mark) {
      marks.former.add(marks.present);
      if (marks.former.size > BOOTS_MARKS_MAX) marks.former.delete(marks.former.values().next().value!);
      marks.present = mark;
    }
    this.#marks.delete(peer);
    this.#marks.set(peer, marks);
    if (this.#marks.size > BOOTS_PEERS_MAX) this.#marks.delete(this.#marks.keys().next().value!);
  }

  /** Node ids of whose disk there were two holders recently. */
  cloned(nowMs: number): readonly string[] {
    for (const [nodeId, atMs] of this.#clonedAtMs) if (nowMs - atMs >= CLONED_FOR_MS) this.#clonedAtMs.delete(nodeId);
    return [...this.#clonedAtMs.keys()].sort();
  }
}
