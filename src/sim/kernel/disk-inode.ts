// The bytes of one file: what is on the platter, and the writes that only the page cache knows.
// Invariants:
// - `durable` changes only by a sync that covers a write, by a crash, or by corruption put there on purpose.
// - A sync covers exactly the writes that had completed when it was called: one that was not awaited is not in it.
// - A write whose sync failed is abandoned (trap 23): its pages count as clean, so no later sync writes them; if
//   the file grows past them, zeros stand in their place.
// - A crash never harms bytes that were durable, except by a truncation that was pending.

import type { Random } from "../../core/kit/random.ts";

/**
 * What becomes of unsynced writes at a crash. `keep`: the kernel lived on (kill -9) and writes all of them.
 * `vanish`: none. `torn`: a prefix, cut at any byte. `sectors`: the file has its full size, each 512-byte sector
 * of new data is there or is zeros.
 */
export type Tear = "keep" | "vanish" | "torn" | "sectors";
export const TEARS: readonly Tear[] = ["keep", "vanish", "torn", "sectors"];

export const SECTOR_BYTES = 512;
const CAPACITY_MIN_BYTES = 256;

interface PendingWrite {
  /** Bytes to append, or the size to cut to. */
  readonly change: Uint8Array | number;
  completed: boolean;
  abandoned: boolean;
}

export class Inode {
  #bytes = new Uint8Array(CAPACITY_MIN_BYTES);
  #durableBytes = 0;
  #durableBeforeBytes = 0;
  #sizeBytes = 0;
  #pending: PendingWrite[] = [];
  /** How many writes were folded before `#pending[0]`: sync points are absolute, for two syncs can overlap. */
  #folded = 0;
  /** When the last operation in this file's queue completes: one file's completions keep their order. */
  laneMs = 0;

  get durableBytes(): number {
    return this.#durableBytes;
  }

  /** The durable size before the last sync that added bytes: what lies below is testified by later data. */
  get durableBeforeBytes(): number {
    return this.#durableBeforeBytes;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get pendingWrites(): number {
    return this.#pending.length;
  }

  /** Returns the function to call when the operation completes. */
  append(bytes: Uint8Array): () => void {
    this.#sizeBytes += bytes.length;
    return this.#push(new Uint8Array(bytes));
  }

  truncate(sizeBytes: number): () => void {
    this.#sizeBytes = Math.min(this.#sizeBytes, sizeBytes);
    return this.#push(sizeBytes);
  }

  /** The point up to which a sync that is called now makes writes durable. */
  syncPoint(): number {
    let point = 0;
    while (this.#pending[point]?.completed === true) point++;
    return this.#folded + point;
  }

  sync(point: number): void {
    const beforeBytes = this.#durableBytes;
    while (this.#folded < point) {
      const write = this.#pending.shift();
      if (write === undefined) return;
      this.#folded++;
      this.#fold(write);
    }
    if (this.#durableBytes > beforeBytes) this.#durableBeforeBytes = beforeBytes;
    this.#durableBeforeBytes = Math.min(this.#durableBeforeBytes, this.#durableBytes);
  }

  abandon(point: number): void {
    for (const write of this.#pending.slice(0, point - this.#folded)) write.abandoned = true;
  }

  /** What a reader sees through the page cache. */
  content(): Uint8Array {
    if (this.#pending.length === 0) return this.#bytes.slice(0, this.#durableBytes);
    const view = new Inode();
    view.#put(this.#bytes.subarray(0, this.#durableBytes));
    for (const write of this.#pending) view.#fold({ ...write, abandoned: false });
    return view.#bytes.slice(0, view.#durableBytes);
  }

  durableContent(): Uint8Array {
    return this.#bytes.slice(0, this.#durableBytes);
  }

  flip(offset: number, mask: number): void {
    this.#bytes[offset] = (this.#bytes[offset] as number) ^ mask;
  }

  crash(tear: Tear, random: Random): void {
    const writes = this.#pending;
    this.#pending = [];
    this.#folded += writes.length;
    if (tear === "keep") for (const write of writes) this.#fold(write);
    if (tear === "torn") this.#tearPrefix(writes, random);
    if (tear === "sectors") this.#tearSectors(writes, random);
    this.#sizeBytes = this.#durableBytes;
    this.#durableBeforeBytes = Math.min(this.#durableBeforeBytes, this.#durableBytes);
    this.laneMs = 0;
  }

  #tearPrefix(writes: readonly PendingWrite[], random: Random): void {
    const survivors = random.below(writes.length + 1);
    for (const [index, write] of writes.entries()) {
      if (write.abandoned) return;
      if (index < survivors) {
        this.#fold(write);
        continue;
      }
      if (typeof write.change !== "number") this.#put(write.change.subarray(0, random.below(write.change.length + 1)));
      return;
    }
  }

  /** A sector is decided once, although several appends may share it; its older durable bytes stay. */
  #tearSectors(writes: readonly PendingWrite[], random: Random): void {
    const kept = new Map<number, boolean>();
    for (const write of writes) {
      if (typeof write.change === "number" || write.abandoned) {
        this.#fold(write);
        continue;
      }
      const survived = write.change.slice();
      for (let i = 0; i < survived.length; i++) {
        const sector = Math.floor((this.#durableBytes + i) / SECTOR_BYTES);
        let keep = kept.get(sector);
        if (keep === undefined) kept.set(sector, (keep = random.chance(0.5)));
        if (!keep) survived[i] = 0;
      }
      this.#put(survived);
    }
  }

  #push(change: Uint8Array | number): () => void {
    const write: PendingWrite = { change, completed: false, abandoned: false };
    this.#pending.push(write);
    return () => {
      write.completed = true;
    };
  }

  #fold(write: PendingWrite): void {
    if (typeof write.change === "number") this.#durableBytes = Math.min(this.#durableBytes, write.change);
    else this.#put(write.abandoned ? new Uint8Array(write.change.length) : write.change);
  }

  #put(bytes: Uint8Array): void {
    const needed = this.#durableBytes + bytes.length;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, this.#durableBytes));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#durableBytes);
    this.#durableBytes = needed;
  }
}
