// Bytes of slots, one pack each, in large chunks outside of the heap. A chunk is written from its beginning to its end; what
// is dropped leaves a hole, and when holes are more than half of all, the emptiest chunk is moved together.
//
//   [slot u32 | length u32 | bytes] [slot | length | bytes] …
//
// Invariants:
// - `live` of a chunk is what its packs take that a slot still points to.
// - Of all bytes that are written, at most half are holes, give or take CHUNKS_SPARE chunks.

import { assert } from "../../kit/assert.ts";
import { PACK_CHUNK_BYTES } from "../limits.ts";
import type { Slots } from "./slots.ts";

const HEAD_BYTES = 8;
/** Holes of so many chunks are nobody's business. */
const CHUNKS_SPARE = 8;
const NOWHERE = -1;

interface Chunk {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  used: number;
  live: number;
}

export class Packs {
  readonly #slots: Slots;
  readonly #chunks: (Chunk | undefined)[] = [];
  readonly #freeChunks: number[] = [];
  #current = NOWHERE;
  #used = 0;
  #live = 0;

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /** What is held in memory, holes included. */
  get heldBytes(): number {
    return this.#chunks.reduce((sum, chunk) => sum + (chunk?.bytes.length ?? 0), 0);
  }

  put(slot: number, pack: Uint8Array): void {
    const size = HEAD_BYTES + pack.length;
    const at = this.#chunkFor(size);
    const chunk = this.#chunks[at] as Chunk;
    const offset = chunk.used;
    chunk.view.setUint32(offset, slot);
    chunk.view.setUint32(offset + 4, pack.length);
    chunk.bytes.set(pack, offset + HEAD_BYTES);
    chunk.used += size;
    chunk.live += size;
    this.#used += size;
    this.#live += size;
    this.#slots.locate(slot, at, offset);
  }

  /** A view, good until the next change. */
  get(slot: number): Uint8Array {
    const chunk = this.#chunks[this.#slots.chunkOf(slot)] as Chunk;
    const from = this.#slots.offsetOf(slot) + HEAD_BYTES;
    return chunk.bytes.subarray(from, from + chunk.view.getUint32(from - 4));
  }

  /** Where its bytes lie, for whoever looks at a few of them: a view of its own would cost more than the look. */
  chunkOf(slot: number): Uint8Array {
    return (this.#chunks[this.#slots.chunkOf(slot)] as Chunk).bytes;
  }

  /** In its chunk. */
  startOf(slot: number): number {
    return this.#slots.offsetOf(slot) + HEAD_BYTES;
  }

  drop(slot: number): void {
    const at = this.#slots.chunkOf(slot);
    const chunk = this.#chunks[at] as Chunk;
    const size = HEAD_BYTES + chunk.view.getUint32(this.#slots.offsetOf(slot) + 4);
    this.#slots.locate(slot, NOWHERE, 0);
    chunk.live -= size;
    this.#live -= size;
    if (chunk.live === 0) this.#empty(at, chunk);
    else if (this.#used > 2 * this.#live + CHUNKS_SPARE * PACK_CHUNK_BYTES) this.#moveTogether();
  }

  /** The one with room for it. */
  #chunkFor(size: number): number {
    const current = this.#chunks[this.#current];
    if (current !== undefined && current.used + size <= current.bytes.length) return this.#current;
    const bytes = new Uint8Array(Math.max(PACK_CHUNK_BYTES, size));
    const chunk = { bytes, view: new DataView(bytes.buffer), used: 0, live: 0 };
    const at = this.#freeChunks.pop() ?? this.#chunks.length;
    this.#chunks[at] = chunk;
    // A pack that has a chunk to itself does not end the one that others share.
    if (size <= PACK_CHUNK_BYTES) this.#current = at;
    return at;
  }

  #empty(at: number, chunk: Chunk): void {
    this.#used -= chunk.used;
    chunk.used = 0;
    if (at === this.#current) return;
    this.#chunks[at] = undefined;
    this.#freeChunks.push(at);
  }

  #moveTogether(): void {
    let emptiest = NOWHERE;
    let least = Infinity;
    for (const [at, chunk] of this.#chunks.entries()) {
      if (chunk === undefined || at === this.#current || chunk.live >= least) continue;
      emptiest = at;
      least = chunk.live;
    }
    const chunk = this.#chunks[emptiest];
    if (chunk === undefined) return;
    for (let offset = 0; offset < chunk.used;) {
      const slot = chunk.view.getUint32(offset);
      const length = chunk.view.getUint32(offset + 4);
      const from = offset + HEAD_BYTES;
      if (this.#slots.chunkOf(slot) === emptiest && this.#slots.offsetOf(slot) === offset) {
        this.put(slot, chunk.bytes.subarray(from, from + length));
        this.#live -= HEAD_BYTES + length;
        chunk.live -= HEAD_BYTES + length;
      }
      offset = from + length;
    }
    assert(chunk.live === 0, "all that is alive in a chunk is found in it", () => String(chunk.live));
    this.#empty(emptiest, chunk);
  }
}
