// A history of a site as somebody tells it: the one that is true, or one in which an event is another and everything after it is linked to
// that. Both are sealed as production seals, so that only signatures and roots tell them apart.

import {
  bytesOfHash,
  consistencyRanges,
  decodeEvent,
  eventHashOf,
  hexOf,
  MerkleFrontier,
  type StoredEvent,
} from "../../core/events/index.ts";
import { encodeEvent } from "../../core/events/event.ts";
import { isWithheld } from "../../core/mesh/proof/index.ts";
import type { PageItem } from "../../core/mesh/model.ts";
import type { Digest } from "../../ports/digest.ts";
import type { LineConsistency } from "../../ports/mesh/sites.ts";
import type { OwnEvent } from "./ledger.ts";

const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder();

/** What is said instead of the first event that is another. */
export type Retell = (event: StoredEvent) => StoredEvent;

export class Branch {
  readonly #events: () => readonly OwnEvent[];
  /** The first event that is another; Infinity: none is. */
  readonly from: number;
  readonly #digest: Digest;
  readonly #retell: Retell;
  readonly #tree: MerkleFrontier;
  readonly #items: PageItem[] = [];
  readonly #hashes: string[] = [];
  readonly #roots: string[] = [];

  constructor(events: () => readonly OwnEvent[], from: number, digest: Digest, retell: Retell = marked) {
    this.#events = events;
    this.from = from;
    this.#digest = digest;
    this.#retell = retell;
    this.#tree = new MerkleFrontier(digest);
  }

  /** How much of it there is. */
  get size(): number {
    this.#grow();
    return this.#items.length;
  }

  items(after: number, count: number): readonly PageItem[] {
    this.#grow();
    return this.#items.slice(after, after + count);
  }

  hash(sequence: number): string {
    this.#grow();
    return this.#hashes[sequence - 1] ?? "";
  }

  /** Of the first so many events; null: there are fewer. */
  root(size: number): string | null {
    this.#grow();
    return size === 0 ? hexOf(new MerkleFrontier(this.#digest).root()) : (this.#roots[size - 1] ?? null);
  }

  consistency(from: number, to: number): LineConsistency | null {
    const [fromRoot, root] = [this.root(from), this.root(to)];
    if (fromRoot === null || root === null || from > to) return null;
    const path = consistencyRanges(from, to).map((range) => {
      const tree = new MerkleFrontier(this.#digest);
      for (const hash of this.#hashes.slice(range.from, range.to)) tree.append(bytesOfHash(hash));
      return hexOf(tree.root());
    });
    return { fromRoot, root, path };
  }

  #grow(): void {
    for (const { sequence, text, eventType } of this.#events().slice(this.#items.length)) {
      const told = sequence < this.from ? text : this.#retold(sequence, text);
      const isStub = isWithheld(eventType);
      const hash = eventHashOf(textEncoder.encode(isStub ? text : told), this.#digest);
      this.#items.push(isStub ? { hash } : told);
      this.#hashes.push(hash);
      this.#tree.append(bytesOfHash(hash));
      this.#roots.push(hexOf(this.#tree.root()));
    }
  }

  /** Linked to what was retold before it. */
  #retold(sequence: number, text: string): string {
    const read = decodeEvent(textEncoder.encode(text));
    if (read.kind !== "event") return text;
    const { event } = read;
    const told = sequence === this.from ? this.#retell(event) : event;
    const previousHash = sequence === 1 ? null : (this.#hashes[sequence - 2] ?? null);
    return textDecoder.decode(encodeEvent({ ...told, previousHash }));
  }
}

function marked(event: StoredEvent): StoredEvent {
  return { ...event, payload: { ...event.payload, retold: true } };
}
