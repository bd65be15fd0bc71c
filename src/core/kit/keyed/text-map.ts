// A map by text that leaves its keys as they are. The engine's own `Map` and `Set` intern each text that they are asked about: it goes
// into a table of the whole process, which each full collection has to walk through, and which is slow to enter (decision 52).
// This one is for texts of which there are many, and new ones all the time: ids of jobs and leases, idempotency keys.
//
//   #links, for n places:  n × first slot of a chain │ n × hash of a slot │ n × next slot of its chain     (slots plus one; 0: none)
//
// Invariants:
// - An entry keeps its slot until it is deleted: whoever walks through the map while others come and go meets each entry that is there
//   all the time once. Where the map has moved its entries meanwhile, the walk goes on over the keys as they were.
// - No chain is longer than `CHAIN_MAX`. Nobody's texts make one that long by chance; those of somebody who chooses them to meet in one
//   chain are in a `Map`, which hashes by a secret.

import { CHAIN_MAX, PLACES_KEPT, PLACES_MIN } from "../limits.ts";

/** FNV-1a, with its bits mixed at the end: texts may differ in their last letters only. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) | 0;
}

export class TextMap<V> {
  #places = PLACES_MIN;
  #links = new Int32Array(3 * PLACES_MIN);
  /** By slot; undefined where it is free. */
  #keys: (string | undefined)[] = [];
  #values: (V | undefined)[] = [];
  /** The first free slot, plus one; the others are chained to it. */
  #free = 0;
  #size = 0;
  #crowded: Map<string, V> | null = null;

  get size(): number {
    return this.#size;
  }

  /** The length of the longest chain: what a search walks through, at most. */
  get longest(): number {
    const chains = new Map<number, number>();
    for (const key of this.#keys) {
      const place = key === undefined ? -1 : placeOf(hashOf(key), this.#places);
      if (place >= 0) chains.set(place, (chains.get(place) ?? 0) + 1);
    }
    return Math.max(0, ...chains.values());
  }

  has(key: string, hash = hashOf(key)): boolean {
    return this.#size > 0 && (this.#find(key, hash) > 0 || this.#crowded?.has(key) === true);
  }

  get(key: string, hash = hashOf(key)): V | undefined {
    if (this.#size === 0) return undefined;
    const found = this.#find(key, hash);
    return found > 0 ? this.#values[found - 1] : this.#crowded?.get(key);
  }

  set(key: string, value: V, hash = hashOf(key)): void {
    const found = this.#find(key, hash);
    if (found > 0) this.#values[found - 1] = value;
    else if (this.#crowded?.has(key) === true) this.#crowded.set(key, value);
    else this.#add(key, value, hash);
  }

  delete(key: string, hash = hashOf(key)): boolean {
    if (this.#size === 0) return false;
    if (!this.#unlink(key, hash) && this.#crowded?.delete(key) !== true) return false;
    this.#size--;
    if (this.#places > PLACES_KEPT && 8 * this.#size < this.#places) this.#shrink();
    return true;
  }

  clear(): void {
    // Also for those who walk through it.
    this.#crowded?.clear();
    this.#crowded = null;
    this.#reset(PLACES_MIN);
  }

  /** In the order of their slots, which is that of their coming as long as none has gone. */
  *entries(): Generator<readonly [string, V], void, void> {
    // First, for one that has a slot may come to be among them, and none of them gets a slot.
    if (this.#crowded !== null) yield* this.#crowded;
    const keys = this.#keys;
    for (let slot = 0; slot < keys.length; slot++) {
      const key = keys[slot];
      if (key === undefined) continue;
      if (keys === this.#keys) yield [key, this.#values[slot] as V];
      else if (this.has(key)) yield [key, this.get(key) as V];
    }
  }

  *keys(): Generator<string, void, void> {
    for (const [key] of this.entries()) yield key;
  }

  /** Its slot plus one; 0: it is in no chain. */
  #find(key: string, hash: number): number {
    const [links, places] = [this.#links, this.#places];
    let at = links[placeOf(hash, places)] as number;
    while (at > 0 && (links[places + at - 1] !== hash || this.#keys[at - 1] !== key)) at = nextOf(links, places, at);
    return at;
  }

  #add(key: string, value: V, hash: number): void {
    if (this.#free === 0 && this.#keys.length === this.#places) this.#grow();
    this.#size++;
    const [links, places] = [this.#links, this.#places];
    let length = 0;
    for (let at = links[placeOf(hash, places)] as number; at > 0; at = nextOf(links, places, at)) length++;
    if (length >= CHAIN_MAX) {
      (this.#crowded ??= new Map()).set(key, value);
      return;
    }
    const at = this.#free > 0 ? this.#free : this.#keys.length + 1;
    if (this.#free > 0) this.#free = nextOf(links, places, at);
    this.#keys[at - 1] = key;
    this.#values[at - 1] = value;
    link(links, places, at, hash);
  }

  #unlink(key: string, hash: number): boolean {
    const found = this.#find(key, hash);
    if (found === 0) return false;
    const [links, places] = [this.#links, this.#places];
    let from = placeOf(hash, places);
    while (links[from] !== found) from = 2 * places + (links[from] as number) - 1;
    links[from] = nextOf(links, places, found);
    links[2 * places + found - 1] = this.#free;
    this.#free = found;
    this.#keys[found - 1] = undefined;
    this.#values[found - 1] = undefined;
    return true;
  }

  /** No slot is free, and each entry stays in its own. */
  #grow(): void {
    const [former, before] = [this.#links, this.#places];
    this.#places = 2 * before;
    this.#links = new Int32Array(3 * this.#places);
    for (let slot = 0; slot < before; slot++)
      link(this.#links, this.#places, slot + 1, former[before + slot] as number);
  }

  #shrink(): void {
    const [former, before, keys, values] = [this.#links, this.#places, this.#keys, this.#values];
    this.#reset(before / 2);
    for (const [slot, key] of keys.entries()) {
      if (key !== undefined) this.#add(key, values[slot] as V, former[before + slot] as number);
    }
  }

  #reset(places: number): void {
    this.#places = places;
    this.#links = new Int32Array(3 * places);
    this.#keys = [];
    this.#values = [];
    this.#free = 0;
    this.#size = this.#crowded?.size ?? 0;
  }
}

function placeOf(hash: number, places: number): number {
  return (hash >>> 8) & (places - 1);
}

function nextOf(links: Int32Array, places: number, at: number): number {
  return links[2 * places + at - 1] as number;
}

function link(links: Int32Array, places: number, at: number, hash: number): void {
  const place = placeOf(hash, places);
  links[places + at - 1] = hash;
  links[2 * places + at - 1] = links[place] as number;
  links[place] = at;
}
