// The segments that are in memory, and their way to the disk: whole ones first, then the open one, in batches.
//
//   appended ──▶ written and synced ──▶ (sealed) out of memory
//
// Invariants:
// - `durableThrough` moves only after a sync that covers the event, and the file's name with it.
// - A file is complete, footer and all, before the next one is created; so only the last file can be torn.
// - One `write` at a time (the archive sees to it).

import type { SegmentBuilder, SegmentEntry } from "../../core/archive/index.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import type { OpenOnDisk } from "./verification.ts";
import { type ArchiveNames, syncDirectory, syncFile, writeDurably } from "./file-names.ts";

interface Writing {
  readonly builder: SegmentBuilder;
  file: DiskFile | null;
  syncedBytes: number;
  entry: SegmentEntry | null;
  /** A file of that name may be there, and counts until this one is whole. */
  readonly replaces: boolean;
}

export class WriteQueue {
  readonly #disk: Disk;
  readonly #names: ArchiveNames;
  readonly #writing: Writing[] = [];
  #durableThrough: number;

  /** `durableThrough`: what is on the disk before the first event that is added. */
  constructor({ disk, names }: { readonly disk: Disk; readonly names: ArchiveNames }, durableThrough: number) {
    this.#disk = disk;
    this.#names = names;
    this.#durableThrough = durableThrough;
  }

  get durableThrough(): number {
    return this.#durableThrough;
  }

  get unsyncedBytes(): number {
    return this.#writing.reduce((sum, { builder, syncedBytes }) => sum + builder.sizeBytes - syncedBytes, 0);
  }

  /** The open segment, where there is one. */
  get open(): SegmentBuilder | null {
    const last = this.#writing.at(-1);
    return last === undefined || last.builder.isSealed ? null : last.builder;
  }

  /** How much of the open segment's file is durable. */
  get openSyncedBytes(): number {
    return this.open === null ? 0 : this.#writing.at(-1)!.syncedBytes;
  }

  /** What is durable of the open segment; null where nothing is. */
  get openOnDisk(): OpenOnDisk | null {
    const { open, openSyncedBytes } = this;
    if (open === null || openSyncedBytes === 0) return null;
    return { first: open.first, last: this.#durableThrough, sizeBytes: openSyncedBytes };
  }

  /** The segment with this event, while it is in memory. */
  holding(sequence: number): SegmentBuilder | undefined {
    return this.#writing.find(({ builder }) => builder.first <= sequence && sequence <= builder.last)?.builder;
  }

  /** `file`: it is on the disk as it is here. */
  add(builder: SegmentBuilder, file: DiskFile | null, replaces = false): void {
    this.#writing.push({ builder, file, syncedBytes: file === null ? 0 : builder.sizeBytes, entry: null, replaces });
  }

  /** The open segment was sealed, and is listed under `entry`. */
  sealed(entry: SegmentEntry): void {
    this.#writing.at(-1)!.entry = entry;
  }

  /** Makes durable what there is when it is called, and returns the segments that are complete with it. */
  async write(): Promise<SegmentEntry[]> {
    const complete: SegmentEntry[] = [];
    for (;;) {
      const next = this.#writing[0];
      if (next === undefined) return complete;
      await this.#writeOne(next);
      if (next.entry === null || next.syncedBytes < next.entry.sizeBytes) return complete;
      await next.file?.close();
      this.#writing.shift();
      complete.push(next.entry);
    }
  }

  /** What is under way is over. */
  async close(): Promise<void> {
    for (const { file } of this.#writing.splice(0)) await file?.close();
  }

  async #writeOne(one: Writing): Promise<void> {
    const { builder } = one;
    const { last, sizeBytes } = builder;
    if (sizeBytes === one.syncedBytes) return;
    const pieces = builder.pieces(one.syncedBytes);
    const name = this.#names.segment(builder.first);
    if (one.file === null && one.replaces) {
      await writeDurably(this.#disk, name, pieces, "archive");
      one.file = await this.#disk.open(name, "archive-open");
    } else {
      const isNew = one.file === null;
      one.file ??= await this.#disk.create(name, "archive-create");
      for (const piece of pieces) await one.file.append(piece, "archive-append");
      await syncFile(one.file, "archive-fdatasync");
      if (isNew) await syncDirectory(this.#disk, "archive-sync-directory");
    }
    one.syncedBytes = sizeBytes;
    this.#durableThrough = last;
  }
}
