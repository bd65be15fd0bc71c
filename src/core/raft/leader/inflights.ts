// The appends that were sent to one peer and not yet answered: a ring, oldest first, bounded by count
// and by bytes (trap 28).
//
// Invariants:
// - Indexes strictly grow: each is the last entry of its message.
// - The byte bound is soft by one message, so that an entry larger than the bound can still be sent.

import { assert } from "../../kit/assert.ts";

export interface InflightLimits {
  readonly messagesMax: number;
  readonly bytesMax: number;
}

export class Inflights {
  readonly #bytesMax: number;
  // Two arrays of doubles instead of objects: sending an append allocates nothing here.
  readonly #indexes: Float64Array;
  readonly #sizes: Float64Array;
  #start = 0;
  #count = 0;
  #bytes = 0;

  constructor(limits: InflightLimits) {
    assert(limits.messagesMax >= 1 && limits.bytesMax >= 1, "inflight limits admit a message");
    this.#bytesMax = limits.bytesMax;
    this.#indexes = new Float64Array(limits.messagesMax);
    this.#sizes = new Float64Array(limits.messagesMax);
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#count === this.#indexes.length || this.#bytes >= this.#bytesMax;
  }

  add(lastIndex: number, bytes: number): void {
    assert(!this.isFull, "inflights have room", () => `${this.#count} messages, ${this.#bytes} bytes`);
    const newest = this.#count === 0 ? -1 : this.#indexAt(this.#count - 1);
    assert(lastIndex > newest, "inflight indexes grow", () => `${lastIndex} after ${newest}`);
    const slot = this.#slot(this.#count);
    this.#indexes[slot] = lastIndex;
    this.#sizes[slot] = bytes;
    this.#count++;
    this.#bytes += bytes;
  }

  /** An answer for `index` answers every message before it too: the log is accepted in order. */
  freeUpTo(index: number): void {
    while (this.#count > 0 && this.#indexAt(0) <= index) {
      this.#bytes -= this.#sizes[this.#start] as number;
      this.#start = this.#slot(1);
      this.#count--;
    }
  }

  clear(): void {
    this.#start = 0;
    this.#count = 0;
    this.#bytes = 0;
  }

  #indexAt(position: number): number {
    return this.#indexes[this.#slot(position)] as number;
  }

  #slot(position: number): number {
    const slot = this.#start + position;
    return slot < this.#indexes.length ? slot : slot - this.#indexes.length;
  }
}
