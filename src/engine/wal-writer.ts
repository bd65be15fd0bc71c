// Appends to the log of one node: batches to its last segment, and new segments after it.
//
//   syncedBytes ≤ sizeBytes: what of the last segment is known to be durable, and what was written to it.
//   reservedToBytes: up to here there may be zeros after it, for small writes to take their place: a write
//   into room that is there is synced faster than one that makes the file longer (docs/decisions/0010-reserved-log.md).
//
// Invariants:
// - A batch says truthfully what was durable before it: `syncedBytes` moves only after a sync resolved.
// - A segment is cut to its size and synced as a whole before the next one is created, and a header and its
//   directory entry are durable before a batch follows it. So what a later file or batch testifies to was really there.
// - Segments are removed only after a header is durable that no longer counts them.

import { assert } from "../core/kit/assert.ts";
import { WAL_RESERVE_SYNC_BYTES_MAX } from "../core/kit/limits.ts";
import type { Entry, HardState, SnapshotMeta } from "../core/raft/types.ts";
import { encodeBatch, encodeSegmentHeader, segmentSeed } from "../core/wal/index.ts";
import type { BatchPart, LiveSegment, Stamp } from "../core/wal/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { Disk, DiskFile } from "../ports/disk.ts";
import { segmentName, syncDirectory, syncFile } from "./storage-layout.ts";

export interface WalEnvironment {
  readonly disk: Disk;
  readonly digest: Digest;
  readonly stamp: Stamp;
  readonly segmentBytesMax: number;
  readonly reserveBytes: number;
}

/** What the next header repeats, so that older segments can go. */
interface WalHead {
  readonly hardState: HardState;
  readonly snapshot: SnapshotMeta | null;
}

export class WalWriter {
  readonly #environment: WalEnvironment;
  #head: WalHead;
  /** Oldest first, without the last one. */
  #closed: LiveSegment[];
  #file: DiskFile;
  #seed: number;
  #number: number;
  #sizeBytes: number;
  #syncedBytes: number;
  /** What the last batch of this segment says was durable. */
  #testifiedBytes = 0;
  #reservedToBytes = 0;
  /** False for the rest of a segment once there was no room: each attempt would fill the disk to the brim. */
  #mayReserve = true;
  #indexMax: number;

  private constructor(environment: WalEnvironment, head: WalHead, segments: readonly LiveSegment[], file: DiskFile) {
    const tail = segments.at(-1);
    assert(tail !== undefined && tail.name === file.name, "the last segment is open");
    this.#environment = environment;
    this.#head = head;
    this.#closed = segments.slice(0, -1);
    this.#file = file;
    this.#seed = segmentSeed(environment.stamp, tail.number, environment.digest);
    this.#number = tail.number;
    this.#sizeBytes = tail.sizeBytes;
    this.#syncedBytes = tail.sizeBytes;
    this.#indexMax = tail.indexMax;
  }

  /** The first segment of a directory. */
  static async begin(environment: WalEnvironment, head: WalHead): Promise<WalWriter> {
    const header = { stamp: environment.stamp, number: 1, oldestNumber: 1, previousBytes: 0, ...head };
    const bytes = encodeSegmentHeader(header, environment.digest);
    const file = await createSegment(environment.disk, 1, bytes);
    return new WalWriter(
      environment,
      head,
      [{ name: file.name, number: 1, sizeBytes: bytes.length, indexMax: 0 }],
      file,
    );
  }

  /**
   * Continues a log whose last segment is cut and durable, and first testifies to all of it. The node
   * will act on what it has read, also on a vote that was written before a crash but never synced: if these
   * bytes are lost later (the kernel may hold pages that it failed to write, trap 23), that must
   * be seen as damage and never again be taken for a torn write.
   */
  static async resume(
    environment: WalEnvironment,
    head: WalHead,
    segments: readonly LiveSegment[],
    file: DiskFile,
  ): Promise<WalWriter> {
    const writer = new WalWriter(environment, head, segments, file);
    // With the hard state as it was understood: a commit index after the cut is not believed by the next reader either.
    await writer.append([{ hardState: head.hardState, entries: [] }]);
    await writer.sync();
    return writer;
  }

  /** One append. Not durable before `sync`, unless a segment was closed with it. */
  async append(parts: readonly BatchPart[]): Promise<void> {
    if (this.#sizeBytes >= this.#environment.segmentBytesMax) await this.roll(this.#head, this.oldestNumber);
    await this.#appendBatch(parts);
    for (const { hardState, entries } of parts) {
      if (hardState !== null) this.#head = { ...this.#head, hardState };
      this.#indexMax = Math.max(this.#indexMax, indexMaxOf(entries));
    }
  }

  async #appendBatch(parts: readonly BatchPart[]): Promise<void> {
    const bytes = encodeBatch(this.#syncedBytes, parts, this.#seed, this.#environment.digest);
    await this.#file.append(bytes, "wal-append");
    this.#sizeBytes += bytes.length;
    this.#testifiedBytes = this.#syncedBytes;
  }

  async sync(): Promise<void> {
    if (this.#sizeBytes === this.#syncedBytes) return;
    await this.#reserve();
    await this.#syncAll();
  }

  async #syncAll(): Promise<void> {
    const sizeBytes = this.#sizeBytes;
    await syncFile(this.#file, "wal-fdatasync");
    this.#syncedBytes = sizeBytes;
  }

  /** With the sync that has to make the file longer anyway; a large one makes it as long as it needs by itself. */
  async #reserve(): Promise<void> {
    const { reserveBytes, segmentBytesMax } = this.#environment;
    if (!this.#mayReserve || this.#sizeBytes <= this.#reservedToBytes) return;
    if (this.#sizeBytes - this.#syncedBytes > WAL_RESERVE_SYNC_BYTES_MAX) return;
    const toBytes = Math.min(this.#sizeBytes + reserveBytes, segmentBytesMax);
    if (toBytes <= this.#sizeBytes) return;
    // Before the attempt: where there was no room, some zeros may be left behind.
    this.#reservedToBytes = toBytes;
    this.#mayReserve = await this.#file.reserve(toBytes, "wal-reserve");
  }

  /** True where the segment may have been longer than what was written to it. */
  async #trim(): Promise<boolean> {
    if (this.#reservedToBytes <= this.#sizeBytes) return false;
    await this.#file.truncate(this.#sizeBytes, "wal-trim");
    this.#reservedToBytes = 0;
    return true;
  }

  /** Closes the last segment and starts the next one; the log then is the segments from `oldestNumber` on. */
  async roll(head: WalHead, oldestNumber: number): Promise<void> {
    const { disk, digest, stamp } = this.#environment;
    const wasTrimmed = await this.#trim();
    if (wasTrimmed || this.#sizeBytes > this.#syncedBytes) await this.#syncAll();
    await this.#file.close();
    this.#closed.push({
      name: this.#file.name,
      number: this.#number,
      sizeBytes: this.#sizeBytes,
      indexMax: this.#indexMax,
    });

    const number = this.#number + 1;
    assert(
      oldestNumber >= this.#closed[0]!.number && oldestNumber <= number,
      "the log loses segments only at its start",
    );
    const header = { stamp, number, oldestNumber, previousBytes: this.#sizeBytes, ...head };
    const bytes = encodeSegmentHeader(header, digest);
    this.#file = await createSegment(disk, number, bytes);
    this.#head = head;
    this.#seed = segmentSeed(stamp, number, digest);
    this.#number = number;
    this.#sizeBytes = bytes.length;
    this.#syncedBytes = bytes.length;
    this.#testifiedBytes = 0;
    this.#reservedToBytes = 0;
    this.#mayReserve = true;
    this.#indexMax = 0;

    const obsolete = this.#closed.filter((segment) => segment.number < oldestNumber);
    this.#closed = this.#closed.filter((segment) => segment.number >= oldestNumber);
    // The directory is not synced for this: a segment that comes back is not counted by any header.
    for (const { name } of obsolete) await disk.remove(name, "wal-remove");
  }

  get head(): WalHead {
    return this.#head;
  }

  get oldestNumber(): number {
    return this.#closed[0]?.number ?? this.#number;
  }

  get nextNumber(): number {
    return this.#number + 1;
  }

  /** The oldest segment that may hold an entry from `index` on; the next one, where there is none. */
  oldestNumberFor(index: number): number {
    const tailNumber = this.#indexMax >= index ? this.#number : this.nextNumber;
    return this.#closed.find((segment) => segment.indexMax >= index)?.number ?? tailNumber;
  }

  /**
   * Testifies to the last batch, so that rot in it is seen as damage at the next start. Nobody waits for a sync: what a power
   * loss takes of this, or leaves of the zeros that were reserved, was promised to nobody, and is cut at the next start.
   */
  async close(): Promise<void> {
    try {
      await this.#testify();
      await this.#trim();
    } finally {
      await this.#file.close();
    }
  }

  async #testify(): Promise<void> {
    // Where there was no room, nobody waits for some: the log then ends as it does after a crash.
    if (!this.#mayReserve || this.#testifiedBytes >= this.#syncedBytes) return;
    const { hardState } = this.#head;
    await this.#appendBatch([{ hardState, entries: [] }]).catch(() => undefined);
  }
}

async function createSegment(disk: Disk, number: number, header: Uint8Array): Promise<DiskFile> {
  const file = await disk.create(segmentName(number), "wal-create");
  await file.append(header, "wal-append-header");
  await syncFile(file, "wal-fdatasync-header");
  await syncDirectory(disk, "wal-sync-directory");
  return file;
}

function indexMaxOf(entries: readonly Entry[]): number {
  return entries.at(-1)?.index ?? 0;
}
