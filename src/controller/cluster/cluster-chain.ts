// The last few thousand points of a hash chain: which hash the state had at which index. Nodes that compare their states
// are rarely at the same index, so each has to know its recent past.
// Invariant: indexes grow strictly; between two points the state, and so the hash, is that of the lower one.

import { assert } from "../../core/kit/assert.ts";
import { type ByteReader, type ByteWriter, DecodeError } from "../../core/kit/bytes.ts";
import { CHAIN_POINTS_MAX } from "./limits.ts";

export const CHAIN_POINT_BYTES = 12;

export interface ChainPoint {
  readonly index: number;
  readonly hash: number;
}

export class ChainRing {
  readonly #indexes = new Float64Array(CHAIN_POINTS_MAX);
  readonly #hashes = new Uint32Array(CHAIN_POINTS_MAX);
  /** How many were ever pushed since the last `replace`; the newest is at (pushed − 1) modulo the size. */
  #pushed = 0;

  get head(): ChainPoint {
    return this.#pushed === 0 ? { index: 0, hash: 0 } : this.#at(this.#pushed - 1);
  }

  get headHash(): number {
    return this.#pushed === 0 ? 0 : (this.#hashes[(this.#pushed - 1) % CHAIN_POINTS_MAX] as number);
  }

  push(index: number, hash: number): void {
    assert(
      index > this.head.index,
      "entries are applied in their order, each once",
      () => `${index} after ${this.head.index}`,
    );
    const slot = this.#pushed % CHAIN_POINTS_MAX;
    this.#indexes[slot] = index;
    this.#hashes[slot] = hash;
    this.#pushed++;
  }

  /** Null above the head, where nothing is known yet, and below the oldest point. */
  hashAt(index: number): number | null {
    let low = this.#pushed - this.#length;
    let high = this.#pushed - 1;
    if (high < low || index > this.#at(high).index || index < this.#at(low).index) return null;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#at(middle).index <= index) low = middle;
      else high = middle - 1;
    }
    return this.#at(low).hash;
  }

  /** The oldest first. */
  points(): ChainPoint[] {
    return Array.from({ length: this.#length }, (_, at) => this.#at(this.#pushed - this.#length + at));
  }

  replace(points: readonly ChainPoint[]): void {
    this.#pushed = 0;
    for (const { index, hash } of points) this.push(index, hash);
  }

  get #length(): number {
    return Math.min(this.#pushed, CHAIN_POINTS_MAX);
  }

  #at(count: number): ChainPoint {
    const slot = count % CHAIN_POINTS_MAX;
    return { index: this.#indexes[slot] as number, hash: this.#hashes[slot] as number };
  }
}

export function writeChainPoints(writer: ByteWriter, points: readonly ChainPoint[]): void {
  writer.u32(points.length);
  for (const { index, hash } of points) {
    writer.uint53(index);
    writer.u32(hash);
  }
}

/** Throws a DecodeError where they are no such chain. */
export function readChainPoints(reader: ByteReader): ChainPoint[] {
  const count = reader.u32();
  if (count > CHAIN_POINTS_MAX) throw new DecodeError("malformed", `${count} points of a chain`);
  const points: ChainPoint[] = [];
  for (let i = 0; i < count; i++) {
    const point = { index: reader.uint53(), hash: reader.u32() };
    if (point.index <= (points.at(-1)?.index ?? 0)) throw new DecodeError("malformed", "a chain that runs backwards");
    points.push(point);
  }
  return points;
}
