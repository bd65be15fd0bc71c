// A map by text that may become large, as many small ones. The engine copies a whole map when it grows or shrinks past a power
// of two, in one turn of the loop: of 131,072 texts that took 132 ms on a busy machine. Here it copies a sixty-fourth of them.

const SHARDS = 64;

/** FNV-1a, with its bits mixed at the end: texts may differ in their last letters only. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) | 0;
}

export class Shards<V> {
  readonly #maps: readonly Map<string, V>[] = Array.from({ length: SHARDS }, () => new Map<string, V>());
  #size = 0;
  /** Where whoever takes some begins. */
  #next = 0;

  get size(): number {
    return this.#size;
  }

  /** Of the map that has most: what is copied at once, at most. */
  get largest(): number {
    return Math.max(...this.#maps.map(({ size }) => size));
  }

  has(key: string): boolean {
    return this.#size > 0 && this.#mapOf(key).has(key);
  }

  get(key: string): V | undefined {
    return this.#size > 0 ? this.#mapOf(key).get(key) : undefined;
  }

  set(key: string, value: V): void {
    const map = this.#mapOf(key);
    this.#size -= map.size;
    map.set(key, value);
    this.#size += map.size;
  }

  delete(key: string): boolean {
    const isGone = this.#mapOf(key).delete(key);
    if (isGone) this.#size--;
    return isGone;
  }

  clear(): void {
    for (const map of this.#maps) map.clear();
    this.#size = 0;
  }

  /** In no order, and to be walked through while others come and go. */
  *keys(): Generator<string, void, void> {
    for (const map of this.#maps) yield* map.keys();
  }

  *values(): Generator<V, void, void> {
    for (const map of this.#maps) yield* map.values();
  }

  /** One after the other is taken out, as long as whoever asks goes on. Nobody is left for ever because others come. */
  *taken(): Generator<readonly [string, V], void, void> {
    for (let visited = 0; visited < SHARDS; visited++) {
      const map = this.#maps[this.#next] as Map<string, V>;
      for (const entry of map) {
        this.delete(entry[0]);
        yield entry;
      }
      this.#next = (this.#next + 1) % SHARDS;
    }
  }

  #mapOf(key: string): Map<string, V> {
    return this.#maps[hashOf(key) & (SHARDS - 1)] as Map<string, V>;
  }
}
