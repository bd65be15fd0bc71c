// The bytes of one file: what is on the platter, and the writes that only the page cache knows.
// Invariants:
// - `durable` changes only by a sync that covers a write, by a crash, or by corruption put there on purpose.
// - A sync covers exactly the writes that had completed when it was called: one that was not awaited is not in it.
// - A write whose sync failed is abandoned (trap 23): its pages count as clean, so no later sync writes them; if
//   the file grows past them, zeros stand in their place.
// - A crash never harms bytes that were durable, except by a truncation that was pending. An append into reserved
//   zeros is torn like any other; where it is not there, zeros are.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";

/**
 * What becomes of unsynced writes at a crash. `keep`: the kernel lived on (kill -9) and writes all of them.
 * `vanish`: none. `torn`: a prefix, cut at any byte. `sectors`: the file has its full size, but for zeros that were
 * reserved after it, and each 512-byte sector of new data is there or is what was there before, or zeros.
 */
export type Tear = "keep" | "vanish" | "torn" | "sectors";
export const TEARS: readonly Tear[] = ["keep", "vanish", "torn", "sectors"];

export const SECTOR_BYTES = 512;
const CAPACITY_MIN_BYTES = 256;

type Change =
  | { readonly kind: "put"; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: "reserve" | "cut"; readonly sizeBytes: number };

interface PendingWrite {
  readonly change: Change;
  completed: boolean;
  abandoned: boolean;
}

export class Inode {
  #bytes = new Uint8Array(CAPACITY_MIN_BYTES);
  #durableBytes = 0;
  /** Of the durable bytes, those that were appended; what lies after was reserved. */
  #writtenBytes = 0;
  #durableBeforeBytes = 0;
  #sizeBytes = 0;
  /** Where the next append goes: after it there is nothing, or reserved zeros. */
  #endBytes = 0;
  /** Where each durable append begins. */
  #starts: number[] = [];
  #pending: PendingWrite[] = [];
  /** How many writes were folded before `#pending[0]`: sync points are absolute, for two syncs can overlap. */
  #folded = 0;
  /** When the last operation in this file's queue completes: one file's completions keep their order. */
  laneMs = 0;

  get durableBytes(): number {
    return this.#durableBytes;
  }

  /** What had been written before the last sync that added bytes: what lies below is testified by later data. */
  get durableBeforeBytes(): number {
    return this.#durableBeforeBytes;
  }

  get reservedBytes(): number {
    return this.#durableBytes - this.#writtenBytes;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get pendingWrites(): number {
    return this.#pending.length;
  }

  /** Who opens a file anew continues after all that is there. */
  open(): void {
    this.#endBytes = this.#sizeBytes;
  }

  /** Returns the function to call when the operation completes. */
  append(bytes: Uint8Array): () => void {
    const at = this.#endBytes;
    this.#endBytes += bytes.length;
    this.#sizeBytes = Math.max(this.#sizeBytes, this.#endBytes);
    return this.#push({ kind: "put", at, bytes: new Uint8Array(bytes) });
  }

  reserve(sizeBytes: number): () => void {
    this.#sizeBytes = Math.max(this.#sizeBytes, sizeBytes);
    return this.#push({ kind: "reserve", sizeBytes });
  }

  truncate(sizeBytes: number): () => void {
    this.#sizeBytes = Math.min(this.#sizeBytes, sizeBytes);
    this.#endBytes = this.#sizeBytes;
    return this.#push({ kind: "cut", sizeBytes });
  }

  /** The point up to which a sync that is called now makes writes durable. */
  syncPoint(): number {
    let point = 0;
    while (this.#pending[point]?.completed === true) point++;
    return this.#folded + point;
  }

  sync(point: number): void {
    const beforeBytes = this.#writtenBytes;
    while (this.#folded < point) {
      const write = this.#pending.shift();
      if (write === undefined) return;
      this.#folded++;
      this.#fold(write);
    }
    if (this.#writtenBytes > beforeBytes) this.#durableBeforeBytes = beforeBytes;
    this.#durableBeforeBytes = Math.min(this.#durableBeforeBytes, this.#writtenBytes);
  }

  abandon(point: number): void {
    for (const write of this.#pending.slice(0, point - this.#folded)) write.abandoned = true;
  }

  /** What a reader sees through the page cache. */
  content(): Uint8Array {
    if (this.#pending.length === 0) return this.#bytes.slice(0, this.#durableBytes);
    const view = new Inode();
    view.#put(this.#bytes.subarray(0, this.#durableBytes), 0);
    for (const write of this.#pending) view.#fold({ ...write, abandoned: false });
    return view.#bytes.slice(0, view.#durableBytes);
  }

  durableContent(): Uint8Array {
    return this.durableView().slice();
  }

  /** Without a copy: for whoever reads it at once. */
  durableView(): Uint8Array {
    return this.#bytes.subarray(0, this.#durableBytes);
  }

  flip(offset: number, mask: number): void {
    this.#bytes[offset] = (this.#bytes[offset] as number) ^ mask;
  }

  /**
   * The sector in which the append that covers `offset` begins still is what it was before that append: its write was
   * lost. False where that is the same.
   */
  lose(offset: number): boolean {
    const next = this.#starts.findIndex((start) => start > offset);
    const start = this.#starts[(next < 0 ? this.#starts.length : next) - 1];
    if (start === undefined) return false;
    const sectorEnd = (Math.floor(start / SECTOR_BYTES) + 1) * SECTOR_BYTES;
    const lost = this.#bytes.subarray(start, Math.min(sectorEnd, this.#starts[next] ?? this.#writtenBytes));
    const isNews = lost.some((byte) => byte !== 0);
    lost.fill(0);
    return isNews;
  }

  crash(tear: Tear, random: Random): void {
    const writes = this.#pending;
    this.#pending = [];
    this.#folded += writes.length;
    if (tear === "keep") for (const write of writes) this.#fold(write);
    if (tear === "torn") this.#tearPrefix(writes, random);
    if (tear === "sectors") this.#tearSectors(writes, random);
    this.#sizeBytes = this.#durableBytes;
    this.#endBytes = this.#durableBytes;
    this.#durableBeforeBytes = Math.min(this.#durableBeforeBytes, this.#writtenBytes);
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
      this.#foldPart(write.change, random);
      return;
    }
  }

  /** A sector is decided once, although several appends may share it; its older durable bytes stay. */
  #tearSectors(writes: readonly PendingWrite[], random: Random): void {
    const kept = new Map<number, boolean>();
    for (const write of writes) {
      const { change } = write;
      if (change.kind === "reserve" && !write.abandoned) {
        this.#foldPart(change, random);
        continue;
      }
      if (change.kind !== "put" || write.abandoned) {
        this.#fold(write);
        continue;
      }
      const survived = change.bytes.slice();
      for (let i = 0; i < survived.length; i++) {
        const at = change.at + i;
        const sector = Math.floor(at / SECTOR_BYTES);
        let keep = kept.get(sector);
        if (keep === undefined) kept.set(sector, (keep = random.chance(0.5)));
        if (!keep) survived[i] = at < this.#durableBytes ? this.#bytes[at]! : 0;
      }
      this.#put(survived, change.at);
    }
  }

  /** Any part of it, none and all included. */
  #foldPart(change: Change, random: Random): void {
    if (change.kind === "put") this.#put(change.bytes.subarray(0, random.below(change.bytes.length + 1)), change.at);
    if (change.kind === "reserve" && change.sizeBytes > this.#durableBytes) {
      this.#extend(this.#durableBytes + random.below(change.sizeBytes - this.#durableBytes + 1));
    }
  }

  #push(change: Change): () => void {
    const write: PendingWrite = { change, completed: false, abandoned: false };
    this.#pending.push(write);
    return () => {
      write.completed = true;
    };
  }

  #fold({ change, abandoned }: PendingWrite): void {
    switch (change.kind) {
      case "put":
        if (abandoned) this.#extend(change.at + change.bytes.length);
        else this.#put(change.bytes, change.at);
        return;
      case "reserve":
        return this.#extend(change.sizeBytes);
      case "cut":
        this.#durableBytes = Math.min(this.#durableBytes, change.sizeBytes);
        this.#writtenBytes = Math.min(this.#writtenBytes, change.sizeBytes);
        this.#starts = this.#starts.filter((start) => start < change.sizeBytes);
        return;
      default:
        return assertNever(change, "fold");
    }
  }

  #put(bytes: Uint8Array, at: number): void {
    this.#extend(at + bytes.length);
    this.#bytes.set(bytes, at);
    this.#writtenBytes = Math.max(this.#writtenBytes, at + bytes.length);
    if (bytes.length > 0) this.#starts.push(at);
  }

  /** Zeros, also where bytes stood that were cut off. */
  #extend(toBytes: number): void {
    if (toBytes <= this.#durableBytes) return;
    if (toBytes > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(toBytes, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, this.#durableBytes));
      this.#bytes = grown;
    }
    this.#bytes.fill(0, this.#durableBytes, toBytes);
    this.#durableBytes = toBytes;
  }
}
