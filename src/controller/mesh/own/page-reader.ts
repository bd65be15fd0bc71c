// Cuts pages of the own line out of the site's events, at any place: what a page holds, which of it is withheld, and the tree after it.
//
// Points of the tree are kept for the ends of the last pages, because whoever pulls asks for what follows the page that it has just had;
// any other point comes from the archive, which walks through one segment for it.
//
// Invariants:
// - A page holds applied events only, in order and without gaps.
// - The text of a withheld event is never in an item.
// - Memory: two pages at one moment, and POINTS_KEPT_MAX points of about a kilobyte.

import { bytesOfHash, hexOf, MerkleFrontier } from "../../../core/events/index.ts";
import type { PageItem } from "../../../core/mesh/model.ts";
import { isWithheld, PAGE_BYTES_MAX, PAGE_ITEMS_MAX, withheldHash } from "../../../core/mesh/proof/index.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { EventRecord, Events } from "../../../ports/events.ts";
import { Turns } from "../../turns.ts";
import { PAGES_AT_ONCE_MAX, PAGES_WAITING_MAX, POINTS_KEPT_MAX } from "../limits.ts";

/** What is needed of the archive. */
export interface PointHistory {
  /** The chain after this event; LOG_COMPACTED where it is cut off. */
  pointAt(sequence: number): Promise<{ readonly frontier: Uint8Array }>;
}

/** A page without its signature. */
export interface CutPage {
  readonly after: number;
  readonly items: readonly PageItem[];
  readonly size: number;
  /** Of the tree of the first `size` events, 64 digits. */
  readonly root: string;
  /** Over the sequences that are withheld. */
  readonly withheld: string;
}

export interface PageReaderOptions {
  readonly events: Pick<Events, "read" | "head" | "onReplaced">;
  readonly history: PointHistory;
  readonly digest: Digest;
}

export class PageReader {
  readonly #options: PageReaderOptions;
  readonly #turns = new Turns({
    atOnceMax: PAGES_AT_ONCE_MAX,
    waitingMax: PAGES_WAITING_MAX,
    doing: "pages of this site's line are cut",
  });
  /** By size, the oldest first. */
  readonly #points = new Map<number, MerkleFrontier>();
  readonly #decoder = new TextDecoder();

  constructor(options: PageReaderOptions) {
    this.#options = options;
    // What is under a sequence now may be another event than before.
    options.events.onReplaced(() => this.#points.clear());
  }

  /** What follows `after`, up to `through` at most; null: nothing does. */
  cut(after: number, through: number): Promise<CutPage | null> {
    return this.#turns.take(async () => {
      const max = Math.min(PAGE_ITEMS_MAX, through - after);
      if (max < 1) return null;
      const { events } = await this.#options.events.read(after, { filter: null, max, bytesMax: PAGE_BYTES_MAX });
      const taken = fitting(events.filter(({ sequence }) => sequence <= through));
      return taken.length === 0 ? null : this.#page(after, taken, await this.#pointAt(after));
    });
  }

  /** The root of the first `size` events, 64 digits. */
  root(size: number): Promise<string> {
    return this.#turns.take(async () => hexOf((await this.#pointAt(size)).root()));
  }

  #page(after: number, taken: readonly EventRecord[], before: MerkleFrontier): CutPage {
    const { digest } = this.#options;
    const tree = before.copy();
    for (const { eventHash } of taken) tree.append(bytesOfHash(eventHash));
    this.#keep(tree);
    const hidden = taken.filter(({ eventType }) => isWithheld(eventType)).map(({ sequence }) => sequence);
    const items = taken.map(({ eventType, bytes, eventHash }) =>
      isWithheld(eventType) ? { hash: eventHash } : this.#decoder.decode(bytes),
    );
    return { after, items, size: tree.size, root: hexOf(tree.root()), withheld: withheldHash(hidden, digest) };
  }

  async #pointAt(size: number): Promise<MerkleFrontier> {
    const { history, digest } = this.#options;
    const kept = this.#points.get(size);
    if (kept !== undefined) return kept;
    if (size === 0) return new MerkleFrontier(digest);
    const { frontier } = await history.pointAt(size);
    const tree = MerkleFrontier.decode(frontier, digest);
    this.#keep(tree);
    return tree;
  }

  #keep(tree: MerkleFrontier): void {
    this.#points.delete(tree.size);
    this.#points.set(tree.size, tree);
    if (this.#points.size <= POINTS_KEPT_MAX) return;
    const [oldest] = this.#points.keys();
    this.#points.delete(oldest!);
  }
}

/** From the first on, as many as a page may hold: one at least. */
function fitting(events: readonly EventRecord[]): readonly EventRecord[] {
  let bytes = 0;
  const end = events.findIndex(({ eventType, bytes: text, eventHash }) => {
    bytes += isWithheld(eventType) ? eventHash.length : text.length;
    return bytes > PAGE_BYTES_MAX;
  });
  return end === -1 ? events : events.slice(0, Math.max(1, end));
}
