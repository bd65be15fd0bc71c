// Things in an order, in chunks: adding and removing cost a binary search and moving part of one chunk, walking from the first
// costs nothing, and a million of them are little more than a million pointers. `frozen` is all of them as of now, at the cost
// of one pointer for each chunk: a chunk that is in somebody's hands is copied before it is changed.
//
// Invariants:
// - No two are equal in the order. What the order looks at does not change while a thing is inside.
// - No chunk is empty, and none has more than RANKED_CHUNK_MAX. A chunk in `shared` is never changed.

import { assert } from "../../kit/assert.ts";
import { RANKED_CHUNK_MAX } from "../limits.ts";

/** Below 0: the first goes before the second. */
export type Order<T> = (one: T, other: T) => number;

export class Ranked<T> {
  readonly #order: Order<T>;
  readonly #chunks: T[][] = [];
  /** Those that `frozen` has given out, as far as they are still in the list. */
  readonly #shared = new Set<T[]>();
  #size = 0;

  constructor(order: Order<T>) {
    this.#order = order;
  }

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#chunks[0]?.[0];
  }

  add(item: T): void {
    this.#size++;
    const last = this.#chunks.at(-1);
    // Most come in order: they fill one chunk after the other.
    if (last === undefined || this.#order(last[last.length - 1] as T, item) < 0) {
      if (last === undefined || last.length >= RANKED_CHUNK_MAX) this.#chunks.push([item]);
      else this.#own(this.#chunks.length - 1).push(item);
      return;
    }
    const at = this.#chunkOf(item);
    const chunk = this.#own(at);
    chunk.splice(this.#placeIn(chunk, item), 0, item);
    if (chunk.length > RANKED_CHUNK_MAX) this.#chunks.splice(at + 1, 0, chunk.splice(RANKED_CHUNK_MAX / 2));
  }

  remove(item: T): void {
    const at = this.#chunkOf(item);
    const known = this.#chunks[at];
    const place = known === undefined ? 0 : this.#placeIn(known, item);
    const found = known?.[place];
    assert(found !== undefined && this.#order(found, item) === 0, "what is removed is inside");
    const chunk = this.#own(at);
    this.#size--;
    if (place === 0) chunk.shift();
    else chunk.splice(place, 1);
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  clear(): void {
    this.#chunks.length = 0;
    this.#shared.clear();
    this.#size = 0;
  }

  /** From the first on. Ends where it is used after a change. */
  cursor(): Cursor<T> {
    return new Cursor(this.#chunks);
  }

  /** From the first on that is not before what is looked for; those that are come first. */
  cursorFrom(isBefore: (item: T) => boolean): Cursor<T> {
    const chunk = firstNot(this.#chunks, (one) => isBefore(one[one.length - 1] as T));
    return new Cursor(this.#chunks, chunk, firstNot(this.#chunks[chunk] ?? [], isBefore));
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const chunk of this.#chunks) yield* chunk;
  }

  /** All of them as of now, in order, whatever becomes of the list. */
  frozen(): readonly (readonly T[])[] {
    for (const chunk of this.#chunks) this.#shared.add(chunk);
    return this.#chunks.slice();
  }

  /** A chunk that may be changed. */
  #own(at: number): T[] {
    const chunk = this.#chunks[at] as T[];
    if (this.#shared.size === 0 || !this.#shared.delete(chunk)) return chunk;
    return (this.#chunks[at] = chunk.slice());
  }

  /** The first chunk whose last is not before the item. */
  #chunkOf(item: T): number {
    return firstNot(this.#chunks, (chunk) => this.#order(chunk[chunk.length - 1] as T, item) < 0);
  }

  #placeIn(chunk: readonly T[], item: T): number {
    return firstNot(chunk, (one) => this.#order(one, item) < 0);
  }
}

/** Those that are before come first. */
function firstNot<T>(items: readonly T[], isBefore: (item: T) => boolean): number {
  let from = 0;
  let to = items.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (isBefore(items[middle] as T)) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** A place in a list that does not change meanwhile. */
export class Cursor<T> {
  readonly #chunks: readonly (readonly T[])[];
  #chunk: number;
  #at: number;

  constructor(chunks: readonly (readonly T[])[], chunk = 0, at = 0) {
    this.#chunks = chunks;
    this.#chunk = chunk;
    this.#at = at;
  }

  get current(): T | undefined {
    return this.#chunks[this.#chunk]?.[this.#at];
  }

  next(): T | undefined {
    this.#at++;
    if (this.#at >= (this.#chunks[this.#chunk]?.length ?? 0)) {
      this.#chunk++;
      this.#at = 0;
    }
    return this.current;
  }
}
