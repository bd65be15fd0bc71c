// From a text to the slot that has it: open addressing in many small tables, so that none takes long to grow.
//
// Invariants:
// - A slot is in the table that its hash names, at its place or after it, with no empty place between.
// - No table is more than half full: an id that is not there, as each new one is, is looked for up to the next empty place.

import { ID_PLACES_MIN } from "../limits.ts";

const TABLES = 256;
const EMPTY = -1;

export class IdIndex {
  readonly #tables: Int32Array[] = [];
  readonly #used = new Int32Array(TABLES);
  readonly #hashAt: (slot: number) => number;
  readonly #has: (slot: number, text: string) => boolean;

  constructor(hashAt: (slot: number) => number, has: (slot: number, text: string) => boolean) {
    this.#hashAt = hashAt;
    this.#has = has;
    for (let at = 0; at < TABLES; at++) this.#tables.push(new Int32Array(ID_PLACES_MIN).fill(EMPTY));
  }

  /** Below 0: nobody has it. */
  find(text: string, hash: number): number {
    const table = this.#tableOf(hash);
    const mask = table.length - 1;
    for (let at = placeOf(hash, mask); ; at = (at + 1) & mask) {
      const slot = table[at] as number;
      if (slot === EMPTY || (this.#hashAt(slot) === hash && this.#has(slot, text))) return slot;
    }
  }

  add(slot: number, hash: number): void {
    const of = hash & (TABLES - 1);
    const used = (this.#used[of] as number) + 1;
    this.#used[of] = used;
    let table = this.#tableOf(hash);
    if (2 * used > table.length) table = this.#tables[of] = this.#grown(table);
    put(table, slot, hash);
  }

  remove(slot: number, hash: number): void {
    const table = this.#tableOf(hash);
    const mask = table.length - 1;
    let hole = placeOf(hash, mask);
    while (table[hole] !== slot) hole = (hole + 1) & mask;
    (this.#used[hash & (TABLES - 1)] as number)--;
    // Those after it move up, as far as their own place lets them: nobody is looked for past an empty place.
    for (let at = (hole + 1) & mask; table[at] !== EMPTY; at = (at + 1) & mask) {
      const own = placeOf(this.#hashAt(table[at] as number), mask);
      if (((at - own) & mask) < ((at - hole) & mask)) continue;
      table[hole] = table[at] as number;
      hole = at;
    }
    table[hole] = EMPTY;
  }

  #grown(table: Int32Array): Int32Array {
    const grown = new Int32Array(2 * table.length).fill(EMPTY);
    for (const slot of table) if (slot !== EMPTY) put(grown, slot, this.#hashAt(slot));
    return grown;
  }

  #tableOf(hash: number): Int32Array {
    return this.#tables[hash & (TABLES - 1)] as Int32Array;
  }
}

function placeOf(hash: number, mask: number): number {
  return (hash >>> 8) & mask;
}

function put(table: Int32Array, slot: number, hash: number): void {
  const mask = table.length - 1;
  let at = placeOf(hash, mask);
  while (table[at] !== EMPTY) at = (at + 1) & mask;
  table[at] = slot;
}
