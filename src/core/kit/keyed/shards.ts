// A map by text that may become large, as many small ones. One that grows or shrinks past a power of two copies all of itself, in one turn of
// the loop: of 131,072 texts in a `Map` that took 132 ms on a busy machine. Here a sixty-fourth of them is copied.

import { hashOf, TextMap } from "./text-map.ts";

const SHARDS = 64;

export class Shards<V> {
  /** Each is made with the first key that belongs there, and the list with the first of all: many a map stays empty. */
  #maps: (TextMap<V> | undefined)[] = [];
  #size = 0;
  /** Where whoever takes some begins. */
  #next = 0;

  get size(): number {
    return this.#size;
  }

  /** Of the map that has most: what is copied at once, at most. */
  get largest(): number {
    return Math.max(...this.#maps.map((map) => map?.size ?? 0));
  }

  has(key: string): boolean {
    if (this.#size === 0) return false;
    const hash = hashOf(key);
    return this.#maps[shardOf(hash)]?.has(key, hash) === true;
  }

  get(key: string): V | undefined {
    if (this.#size === 0) return undefined;
    const hash = hashOf(key);
    return this.#maps[shardOf(hash)]?.get(key, hash);
  }

  set(key: string, value: V): void {
    if (this.#maps.length === 0) this.#maps = new Array<TextMap<V> | undefined>(SHARDS).fill(undefined);
    const hash = hashOf(key);
    const map = (this.#maps[shardOf(hash)] ??= new TextMap<V>());
    this.#size -= map.size;
    map.set(key, value, hash);
    this.#size += map.size;
  }

  delete(key: string): boolean {
    if (this.#size === 0) return false;
    const hash = hashOf(key);
    const isGone = this.#maps[shardOf(hash)]?.delete(key, hash) === true;
    if (isGone) this.#size--;
    return isGone;
  }

  clear(): void {
    // Also for those who walk through them.
    for (const map of this.#maps) map?.clear();
    this.#maps = [];
    this.#size = 0;
  }

  /** In no order, and to be walked through while others come and go. */
  *keys(): Generator<string, void, void> {
    for (const map of this.#maps) if (map !== undefined) yield* map.keys();
  }

  *values(): Generator<V, void, void> {
    for (const map of this.#maps) if (map !== undefined) for (const [, value] of map.entries()) yield value;
  }

  /** One after the other is taken out, as long as whoever asks goes on. Nobody is left for ever because others come. */
  *taken(): Generator<readonly [string, V], void, void> {
    for (let visited = 0; visited < SHARDS; visited++) {
      for (const entry of this.#maps[this.#next]?.entries() ?? []) {
        this.delete(entry[0]);
        yield entry;
      }
      this.#next = (this.#next + 1) % SHARDS;
    }
  }
}

function shardOf(hash: number): number {
  return hash & (SHARDS - 1);
}
