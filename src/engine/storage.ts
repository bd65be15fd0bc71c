// The durable memory of one node: hard state, log and snapshot on one data directory.
//
//   open ──▶ usable ──▶ failed        one failed write ends it: what is on the disk is not known any more,
//              └──────▶ closed        so the process ends and recovery decides (trap 23: never retry)
//
// Invariants:
// - When `persist` resolves, everything in it that must be synced is durable, and so is everything before.
// - A snapshot's file is durable before any segment header names it, and the file before it is removed
//   only after that header is durable.
// - Writes to the log never overlap. Only the file of this node's own snapshot is written next to them,
//   because it may be large and consensus must not wait for it.

import { assert } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import { peerKey, type PeerKey } from "../core/kit/ids.ts";
import { WAL_RESERVE_BYTES, WAL_SEGMENT_BYTES_MAX } from "../core/kit/limits.ts";
import type { Entry, HardState, PersistRequest, SnapshotMeta } from "../core/raft/types.ts";
import { piecesOf } from "../core/kit/pieces.ts";
import { checkSnapshotFile, snapshotFile, type BatchPart, type Checksummed } from "../core/wal/index.ts";
import type { Clock } from "../ports/clock.ts";
import type { Digest } from "../ports/digest.ts";
import type { Disk } from "../ports/disk.ts";
import type { SnapshotData } from "../ports/state-machine.ts";
import { openDirectory, type DirectoryOptions, type ReadyDirectory, type RecoveryOutcome } from "./data-directory.ts";
import { snapshotName, writeDurably } from "./storage-layout.ts";
import { GivingWay, inSlices } from "./storage-slices.ts";
import type { WalWriter } from "./wal-writer.ts";

export interface OpenOptions extends Omit<DirectoryOptions, "segmentBytesMax" | "reserveBytes"> {
  readonly segmentBytesMax?: number | undefined;
  readonly reserveBytes?: number | undefined;
  /** With it, large snapshots are checksummed a slice at a time and others run in between. */
  readonly clock?: Clock | undefined;
}

export interface Opened {
  readonly storage: Storage;
  readonly peer: PeerKey;
  readonly hardState: HardState;
  readonly snapshot: { readonly meta: SnapshotMeta; readonly data: Uint8Array } | null;
  readonly entries: readonly Entry[];
  readonly recovery: RecoveryOutcome;
  /** For the operator: what was damaged, and where; null unless it was set aside. */
  readonly damage: string | null;
}

export class Storage {
  readonly #disk: Disk;
  readonly #digest: Digest;
  readonly #clock: Clock | undefined;
  readonly #wal: WalWriter;
  #hardState: HardState;
  #lastIndex: number;
  #askedCommit: number;
  #state: "usable" | "failed" | "closed" = "usable";
  #isPersisting = false;
  #isSavingSnapshot = false;
  /** Settles when the last write to the log that was asked for is over. */
  #idle: Promise<void> = Promise.resolve();
  #saving: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | null = null;

  private constructor({ disk, digest, clock }: OpenOptions, ready: ReadyDirectory) {
    this.#disk = disk;
    this.#digest = digest;
    this.#clock = clock;
    this.#wal = ready.wal;
    this.#hardState = ready.hardState;
    this.#askedCommit = ready.hardState.commit;
    this.#lastIndex = ready.entries.at(-1)?.index ?? ready.snapshot?.meta.index ?? 0;
  }

  /** Throws STAMP_MISMATCH or FORMAT_UNSUPPORTED, and then has changed nothing. */
  static async open(options: OpenOptions): Promise<Opened> {
    const { nodeId } = options;
    const ready = await openDirectory({
      ...options,
      segmentBytesMax: options.segmentBytesMax ?? WAL_SEGMENT_BYTES_MAX,
      reserveBytes: options.reserveBytes ?? WAL_RESERVE_BYTES,
    });
    const { incarnation, hardState, snapshot, entries, recovery, damage } = ready;
    const storage = new Storage(options, ready);
    return { storage, peer: peerKey(nodeId, incarnation), hardState, snapshot, entries, recovery, damage };
  }

  /**
   * Makes a group of requests durable, in their order: one append and one sync for all of them, and no
   * sync where none of them needs it. `snapshotData` belongs to the one request that has a snapshot.
   */
  async persist(requests: readonly PersistRequest[], snapshotData: Uint8Array | null): Promise<void> {
    assert(!this.#isPersisting, "one persist at a time");
    const snapshots = requests.filter((request) => request.snapshot !== null).length;
    assert(snapshots === (snapshotData === null ? 0 : 1), "a group has one snapshot with its data, or none");
    this.#isPersisting = true;
    try {
      await this.#exclusively(() => this.#write(requests, snapshotData));
    } finally {
      this.#isPersisting = false;
    }
  }

  /**
   * Stores this node's own snapshot, while it is made, and releases segments that hold nothing from `keepFromIndex` on, nor
   * anything after the snapshot. The log itself is not shortened. How many bytes its contents have; null: it was given up.
   */
  saveSnapshot(
    meta: SnapshotMeta,
    data: SnapshotData,
    keepFromIndex: number,
    isWanted: () => boolean = () => true,
  ): Promise<number | null> {
    const saved = this.#saveSnapshot(meta, data, keepFromIndex, isWanted);
    this.#saving = saved.catch(() => undefined);
    return saved;
  }

  async #saveSnapshot(
    meta: SnapshotMeta,
    data: SnapshotData,
    keepFromIndex: number,
    isWanted: () => boolean,
  ): Promise<number | null> {
    assert(this.#state === "usable", "storage is usable", () => this.#state);
    assert(!this.#isSavingSnapshot, "one own snapshot at a time");
    assert(meta.index <= this.#lastIndex, "a snapshot covers only what is in the log", () => `${meta.index}`);
    if (this.#isCovered(meta)) return null;
    this.#isSavingSnapshot = true;
    try {
      const bytes = await this.#orFail(() => this.#writeSnapshotFile(meta, data, isWanted));
      if (bytes !== null) await this.#exclusively(() => this.#mark(meta, keepFromIndex));
      return bytes;
    } finally {
      this.#isSavingSnapshot = false;
    }
  }

  /** The snapshot after which the log starts, read from the disk again. */
  async readSnapshot(): Promise<{ readonly meta: SnapshotMeta; readonly data: Uint8Array } | null> {
    const read = await this.#readMarked();
    return read === null ? null : { meta: read.meta, data: read.data };
  }

  /** The same as a file, checked: what an operator saves, and `restoreSnapshot` takes. */
  async readSnapshotFile(): Promise<{ readonly meta: SnapshotMeta; readonly bytes: Uint8Array } | null> {
    const read = await this.#readMarked();
    return read === null ? null : { meta: read.meta, bytes: read.bytes };
  }

  async #readMarked(): Promise<{ meta: SnapshotMeta; data: Uint8Array; bytes: Uint8Array } | null> {
    assert(this.#state === "usable", "storage is usable", () => this.#state);
    for (;;) {
      const mark = this.#wal.head.snapshot;
      if (mark === null) return null;
      const name = snapshotName(mark.index, mark.term);
      try {
        const bytes = await this.#disk.read(name, "snapshot-read");
        const read = await inSlices(checkSnapshotFile(bytes, this.#digest), this.#clock);
        if (read.kind === "whole") return { meta: read.meta, data: read.data, bytes };
        const why = read.kind === "bad" ? read.why : `format version ${read.version}`;
        throw new TenureError(
          "DISK_DAMAGED",
          `${name} can't be read any more: ${why}. Start this node again: it will set its disk aside.`,
        );
      } catch (error) {
        // A newer one took its place while it was read; each turn of the loop needs one more of those.
        if (this.#wal.head.snapshot === mark) throw error;
      }
    }
  }

  /** Waits for writes under way. Closing twice is harmless. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // The snapshot's file first: the mark in the log comes after it.
    await this.#saving;
    await this.#idle;
    const wasUsable = this.#state === "usable";
    this.#state = "closed";
    if (wasUsable) await this.#wal.close();
  }

  // ---- requests ------------------------------------------------------------------------------------

  async #write(requests: readonly PersistRequest[], snapshotData: Uint8Array | null): Promise<void> {
    let parts: BatchPart[] = [];
    for (const request of requests) {
      this.#check(request);
      let hardState = this.#atLeastMarked(request.hardState);
      if (request.snapshot !== null) {
        if (parts.length > 0) await this.#wal.append(parts);
        parts = [];
        await this.#install(request.snapshot, snapshotData!, hardState ?? this.#hardState);
        hardState = null;
      }
      if (hardState !== null) this.#hardState = hardState;
      this.#lastIndex = request.entries.at(-1)?.index ?? this.#lastIndex;
      if (hardState !== null || request.entries.length > 0) parts.push({ hardState, entries: request.entries });
    }
    if (parts.length > 0) await this.#wal.append(parts);
    if (requests.some((request) => request.mustSync)) await this.#wal.sync();
  }

  /** A request may be older than the mark of a snapshot that was saved next to it, and know of less. */
  #atLeastMarked(hardState: HardState | null): HardState | null {
    if (hardState === null || hardState.commit >= this.#hardState.commit) return hardState;
    return { ...hardState, commit: this.#hardState.commit };
  }

  /** The writer's half of what recovery checks (core/wal/replay.ts): what would be damage must not be written. */
  #check(request: PersistRequest): void {
    const before = this.#hardState;
    const { term, vote, commit } = request.hardState ?? { ...before, commit: this.#askedCommit };
    assert(term >= before.term, "the term never falls", () => `${term} after ${before.term}`);
    assert(commit >= this.#askedCommit, "the commit index never falls", () => `${commit} after ${this.#askedCommit}`);
    this.#askedCommit = commit;
    const isSameVote = term > before.term || before.vote === null || vote === before.vote;
    assert(isSameVote, "one vote in a term", () => `${vote} after ${before.vote} in term ${term}`);
    const { snapshot } = request;
    if (snapshot !== null) {
      assert(
        snapshot.index > before.commit,
        "a snapshot is never older than the commit index",
        () => `${snapshot.index}`,
      );
      assert(snapshot.term <= term, "the term is durable before a snapshot of that term");
    }
    const committed = snapshot?.index ?? before.commit;
    let next = request.entries[0]?.index ?? 0;
    assert(next === 0 || next > committed, "committed entries are never replaced", () => `${next} up to ${committed}`);
    assert(next <= (snapshot?.index ?? this.#lastIndex) + 1, "entries join the log", () => `${next}`);
    for (const entry of request.entries) {
      assert(entry.index === next++, "entries are contiguous", () => `${entry.index}`);
      assert(entry.term <= term, "the term is durable before any entry of that term", () => `${entry.term} in ${term}`);
    }
  }

  // ---- snapshots -----------------------------------------------------------------------------------

  /** Another node's snapshot replaces the whole log: from the new header on, no older segment counts. */
  async #install(meta: SnapshotMeta, data: Uint8Array, hardState: HardState): Promise<void> {
    await this.#writeSnapshotFile(meta, data);
    this.#hardState = { ...hardState, commit: Math.max(hardState.commit, meta.index) };
    this.#lastIndex = meta.index;
    await this.#startBehind(meta, this.#wal.nextNumber);
  }

  async #mark(meta: SnapshotMeta, keepFromIndex: number): Promise<void> {
    if (this.#isCovered(meta)) {
      // A later one was installed while this one was written.
      await this.#disk.remove(snapshotName(meta.index, meta.term), "snapshot-remove");
      return;
    }
    // The commit index on disk may lag behind; a snapshot covers committed entries only.
    this.#hardState = { ...this.#hardState, commit: Math.max(this.#hardState.commit, meta.index) };
    await this.#startBehind(meta, this.#wal.oldestNumberFor(Math.min(keepFromIndex, meta.index + 1)));
  }

  async #startBehind(meta: SnapshotMeta, oldestNumber: number): Promise<void> {
    const previous = this.#wal.head.snapshot;
    await this.#wal.roll({ hardState: this.#hardState, snapshot: meta }, oldestNumber);
    if (previous !== null) await this.#disk.remove(snapshotName(previous.index, previous.term), "snapshot-remove");
  }

  #isCovered(meta: SnapshotMeta): boolean {
    return meta.index <= (this.#wal.head.snapshot?.index ?? 0);
  }

  async #writeSnapshotFile(
    meta: SnapshotMeta,
    data: SnapshotData,
    goesOn: () => boolean = () => true,
  ): Promise<number | null> {
    let bytes = 0;
    const counted = function* (file: Generator<Uint8Array, Checksummed, void>): Generator<Uint8Array, void, void> {
      bytes = (yield* file).bytes;
    };
    const file = counted(snapshotFile(meta, piecesOf(data), this.#digest));
    const turns = this.#clock === undefined ? undefined : new GivingWay(this.#clock);
    const name = snapshotName(meta.index, meta.term);
    return (await writeDurably(this.#disk, name, file, "snapshot", {
      pause: turns && ((size) => turns.pause(size)),
      goesOn,
    }))
      ? bytes
      : null;
  }

  // ---- failing -------------------------------------------------------------------------------------

  #exclusively(work: () => Promise<void>): Promise<void> {
    const run = this.#idle.then(() => this.#orFail(work));
    this.#idle = run.catch(() => undefined);
    return run;
  }

  async #orFail<T>(work: () => Promise<T>): Promise<T> {
    assert(this.#state === "usable", "storage is usable", () => this.#state);
    try {
      return await work();
    } catch (error) {
      this.#state = "failed";
      throw error;
    }
  }
}
