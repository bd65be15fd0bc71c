// The archive of one node (design D12): every committed event, durable, in segments that are the same on all nodes.
//
// append ─▶ memory ─▶ (in batches) disk. The open segment stays in memory, and a snapshot carries it; so whatever is not
// in a sealed segment is in the snapshot or in the Raft log after it.
//
// Invariants:
// - A `capture` resolves only when all events up to it are durable here. The engine compacts its log only after a
//   snapshot, so the log is never compacted past what the archive has.
// - Writes never overlap; what changes in memory changes at once, in the order of the log.
// - Missing segments are known by hash. Nothing is served or installed that does not have it.

import {
  captureInPieces,
  encodeCatalog,
  isSameEntry,
  SEGMENT_LIMITS,
  SegmentBuilder,
  type ArchivedEvent,
  type ChainPoint,
  type ChainWalk,
  type CommittedEvent,
  type Holdings,
  type Manifest,
  type SegmentEntry,
} from "../../core/archive/index.ts";
import { assert } from "../../core/kit/assert.ts";
import { type Pieces, wholeOf } from "../../core/kit/pieces.ts";
import { ARCHIVE_SYNC_BYTES, ARCHIVE_SYNC_MS } from "../limits.ts";
import { asideBytes } from "./aside.ts";
import { isBehind, statsOf, type ArchiveOptions, type ArchiveStats } from "./archive-options.ts";
import { checkedCapture, isHeld, walkFrom, withoutLetGo } from "./captures.ts";
import { type ArchiveNames, writeDurably } from "./file-names.ts";
import { EVENTS } from "./kinds.ts";
import { Exclusive } from "./exclusive.ts";
import { checkInstallation, placeSegment } from "./peers/installation.ts";
import { giveUpBefore, giveUpThrough, letGoOlder, type MayGoThrough, retain, type Shortened } from "./letting-go.ts";
import { quotaOf, type Quota } from "./quota.ts";
import { pieceOf, pointAt, readEvents, startBehindMissing } from "./reading.ts";
import { recoverArchive, type ArchiveEnvironment, type Finding, type Recovered } from "./recovery.ts";
import { Replayed } from "./replayed.ts";
import { adoptFiles, setAsideDamaged } from "./housekeeping.ts";
import { SegmentFiles } from "./segment-files.ts";
import { SyncTimer } from "./sync-timer.ts";
import { verifyArchive, type Verifiable, type VerifyStep } from "./verification.ts";
import { WriteQueue } from "./write-queue.ts";

export class Archive {
  readonly #environment: ArchiveEnvironment;
  readonly #found: (finding: Finding) => void;
  readonly #quotaBytes: number | null;
  readonly #syncsSoon: boolean;
  readonly #timer: SyncTimer;
  readonly #files: SegmentFiles;
  readonly #exclusive: Exclusive;
  readonly #replayed = new Replayed();
  readonly #missingListeners = new Set<() => void>();
  #holdings: Holdings;
  #walk: ChainWalk;
  #queue: WriteQueue;
  #headSequence: number;
  #headHash: string | null;
  #flushing: Promise<void> | null = null;
  /** Snapshots that have taken over in memory and not yet on the disk. */
  #adopting = 0;
  /** Of the newest snapshot: what is after that is in the log. */
  #snapshotThrough = 0;
  #asideBytes: number;

  private constructor(options: ArchiveOptions, environment: ArchiveEnvironment, recovered: Recovered) {
    const { holdings, head, open } = recovered;
    this.#environment = environment;
    this.#exclusive = new Exclusive(options.failed);
    this.#found = options.found ?? (() => undefined);
    this.#quotaBytes = options.quotaBytes ?? null;
    this.#syncsSoon = options.syncs !== "asked";
    this.#timer = new SyncTimer(environment.clock, () => void this.#flush().catch(() => undefined));
    this.#files = new SegmentFiles(environment);
    this.#asideBytes = recovered.asideBytes;
    this.#holdings = holdings;
    this.#walk = walkFrom(head, environment);
    this.#queue = new WriteQueue(environment, head.sequence);
    this.#headSequence = head.sequence;
    this.#headHash = head.hash;
    if (open === null) return;
    this.#queue.add(open.builder, open.file);
    // A crash between the last event and the footer.
    if (open.builder.isFull) this.#seal(open.builder);
  }

  /** Throws FORMAT_UNSUPPORTED, and then has changed nothing. The findings are for the operator. */
  static async open(options: ArchiveOptions): Promise<{ archive: Archive; findings: readonly Finding[] }> {
    const { disk, digest, clock } = options;
    const limits = options.limits ?? SEGMENT_LIMITS;
    const { names, chain } = options.of ?? EVENTS;
    const environment = { disk, names, digest, clock, limits, chain: chain(digest) };
    const recovered = await recoverArchive(environment);
    return { archive: new Archive(options, environment, recovered), findings: recovered.findings };
  }

  get names(): ArchiveNames {
    return this.#environment.names;
  }

  // ---- writing -------------------------------------------------------------------------------------

  /** Events as they are applied, in the order of the log. What is here already (a log is replayed at a start) is skipped. */
  append(events: readonly CommittedEvent[]): void {
    this.#exclusive.checkUsable();
    for (const one of events) this.#append(one);
    const { unsyncedBytes } = this.#queue;
    if (this.#syncsSoon && unsyncedBytes > 0)
      this.#timer.within(unsyncedBytes >= ARCHIVE_SYNC_BYTES ? 0 : ARCHIVE_SYNC_MS);
  }

  #append(one: CommittedEvent): void {
    const { sequence, eventHash, sourceControllerId } = one.event;
    if (sequence <= this.#headSequence) {
      const known = sequence === this.#headSequence ? this.#headHash : this.#holdings.hashAt(sequence);
      return this.#replayed.check(one, known, this.#queue.holding(sequence));
    }
    let open = this.#queue.open;
    // Another author's events start a segment: its header names the author.
    if (open !== null && open.header.author !== sourceControllerId) {
      this.#seal(open);
      open = null;
    }
    if (open === null) {
      const header = { author: sourceControllerId, before: this.#walk.point() };
      open = new SegmentBuilder(header, this.#environment.limits, this.#environment.digest);
      this.#queue.add(open, null);
    }
    this.#walk.take(one);
    open.append(one.bytes);
    this.#headSequence = sequence;
    this.#headHash = eventHash;
    if (open.isFull) this.#seal(open);
  }

  #seal(open: SegmentBuilder): void {
    const entry = open.seal(this.#walk.point());
    this.#holdings.add(entry, "writing");
    this.#queue.sealed(entry);
  }

  get lastSequence(): number {
    return this.#headSequence;
  }

  /** The chain after the last event that is here. */
  head(): ChainPoint {
    return this.#walk.point();
  }

  /** Events up to here are synced. */
  get durableThrough(): number {
    return this.#queue.durableThrough;
  }

  /** Resolves when events up to `sequence` are synced: now, not with the next batch. */
  async durable(sequence: number): Promise<void> {
    assert(sequence <= this.#headSequence, "what is waited for was appended", () => `${sequence}`);
    // More than one only where a snapshot has taken over meanwhile.
    while (this.#queue.durableThrough < Math.min(sequence, this.#headSequence)) await this.#flush();
  }

  /** One that has not begun covers everything up to when it begins, so at most one waits. */
  #flush(): Promise<void> {
    this.#flushing ??= this.#exclusive.run(() => {
      this.#flushing = null;
      return this.#write();
    });
    return this.#flushing;
  }

  async #write(): Promise<void> {
    // Files of the line before are set aside first, by name: nothing new may be among them.
    if (this.#adopting > 0) return;
    const queue = this.#queue;
    const complete = await queue.write();
    if (complete.length === 0 || queue !== this.#queue) return;
    for (const entry of complete) this.#holdings.set(entry, "whole");
    await this.#writeCatalog();
  }

  async #writeCatalog(): Promise<void> {
    const { disk, names, digest } = this.#environment;
    await writeDurably(disk, names.catalog, [encodeCatalog(this.#holdings.catalog(), digest)], "archive-catalog");
  }

  // ---- snapshots -----------------------------------------------------------------------------------

  /**
   * The archive as a snapshot carries it, as of this call: the list of segments and the open one. It resolves when all of
   * that is durable here (where the archive syncs by itself); a state machine that waits for it in its own `snapshot()` is
   * never compacted too far.
   */
  async capture(): Promise<readonly Uint8Array[]> {
    this.#exclusive.checkUsable();
    const { start, checkpoint, segments } = this.#holdings;
    this.#snapshotThrough = this.#headSequence;
    const open = this.#queue.open?.pieces() ?? [];
    const pieces = captureInPieces({ start, checkpoint, segments, head: this.#walk.point() }, open);
    if (this.#syncsSoon) await this.durable(this.#headSequence);
    return pieces;
  }

  /**
   * Takes over what a snapshot carries, where that is more than is here: at once in memory; the promise is for the disk.
   * Throws a DecodeError where it makes no sense, and then nothing was changed.
   */
  restore(captured: Uint8Array | Pieces): Promise<void> {
    this.#exclusive.checkUsable();
    const { capture: carried, open, walk } = checkedCapture(wholeOf(captured), this.#environment);
    const capture = withoutLetGo(carried, this.#holdings);
    this.#snapshotThrough = capture.head.sequence;
    const [lastSequence, lastHash] = [this.#headSequence, this.#headHash];
    const own = { holdings: this.#holdings, open: this.#queue.open, lastSequence, lastHash };
    if (isHeld(capture, own)) return Promise.resolve();
    const old = this.#queue;
    this.#holdings.adopt(capture, capture.checkpoint);
    this.#walk = walk;
    const queue = new WriteQueue(this.#environment, this.#holdings.lastSequence);
    if (open !== null) queue.add(open, null, true);
    this.#queue = queue;
    this.#headSequence = capture.head.sequence;
    this.#headHash = capture.head.hash;
    this.#adopting++;
    const done = this.#change(async () => {
      this.#adopting--;
      await old.close();
      await adoptFiles(this.#environment, this.#holdings, open?.first ?? null);
      await this.#write();
      await this.#writeCatalog();
      this.#tellMissing();
    });
    // A failure is reported through `failed`, whoever waits here.
    done.catch(() => undefined);
    return done;
  }

  /**
   * Lets history go up to a checkpoint: whole segments after it, so that it begins at or a little before it. The
   * checkpoint must be a point of this chain. Returns how many bytes that frees.
   */
  retain(checkpoint: ChainPoint): Promise<number> {
    this.#exclusive.checkUsable();
    return retain(this.#readable(), checkpoint);
  }

  /**
   * Releases segments whose newest event is so old, a few at a time; returns how many bytes that frees, 0: no more. `mayGo`: somebody else may
   * still need some of them.
   */
  letGoOlder(keepMs: number, mayGo: MayGoThrough = (sequence) => Promise.resolve(sequence)): Promise<number> {
    this.#exclusive.checkUsable();
    return letGoOlder(this.#readable(), keepMs, mayGo);
  }

  /** A missing segment that all others have let go: history starts after it. False: what follows it is not here yet. */
  giveUpThrough(entry: SegmentEntry): Promise<boolean> {
    return giveUpThrough(this.#readable(), entry);
  }

  /** Where history starts for one who can get nothing of what is missing here; null where nothing is. */
  async startBehindMissing(): Promise<ChainPoint | null> {
    await this.#exclusive.idle();
    return startBehindMissing(this.#readable());
  }

  /** Lets go what is before `start`, the end of a segment, and sets the files aside: part of it is nowhere any more. */
  giveUpBefore(start: ChainPoint): Promise<void> {
    return giveUpBefore(this.#readable(), start);
  }

  // ---- reading -------------------------------------------------------------------------------------

  /** Batches of events, in order, from `from` on: at most `max` of them, up to the last one that is applied here. */
  read(from: number, max = Number.MAX_SAFE_INTEGER): AsyncGenerator<readonly ArchivedEvent[]> {
    return readEvents(this.#readable(), from, max);
  }

  /** The chain after an event that is here: what a checkpoint is made of. */
  pointAt(sequence: number): Promise<ChainPoint> {
    return pointAt(this.#readable(), sequence);
  }

  /** Goes through everything from the start of history (or from the segment with `from`) on, in slices below 5 ms. */
  verify(from = 0): AsyncGenerator<VerifyStep> {
    return verifyArchive(this.#readable(), from);
  }

  #readable(): Verifiable & Shortened {
    return {
      durable: (sequence) => this.durable(sequence),
      exclusive: (work) => this.#change(work),
      writeCatalog: () => this.#writeCatalog(),
      snapshotThrough: () => this.#snapshotThrough,
      environment: this.#environment,
      files: this.#files,
      holdings: () => this.#holdings,
      inMemory: (sequence) => this.#queue.holding(sequence),
      lastSequence: () => this.#headSequence,
      head: () => this.#walk.point(),
      open: () => this.#queue.openOnDisk,
      settle: () => this.#flush(),
      damaged: (entry, sequence, why) => this.#damaged(entry, sequence, why),
    };
  }

  /** The sealed segments of the history, those that are missing here too. */
  manifest(): Manifest {
    return { start: this.#holdings.start, segments: this.#holdings.segments };
  }

  /** The disk does not keep up with the log: no more should be taken on. */
  get isBehind(): boolean {
    return isBehind(this.#queue);
  }

  get quota(): Quota {
    return quotaOf(this.#holdings.bytes + this.#queue.openSyncedBytes + this.#asideBytes, this.#quotaBytes);
  }

  stats(): ArchiveStats {
    return statsOf(this.#holdings, this.#queue, this.#headSequence, this.quota);
  }

  // ---- segments from and for peers -----------------------------------------------------------------

  /** What must be fetched. */
  missing(): SegmentEntry[] {
    return this.#holdings.missing();
  }

  get isComplete(): boolean {
    return this.#holdings.missing().length === 0;
  }

  /** Of what is missing: what no member of the cluster has. */
  lost(): SegmentEntry[] {
    return this.#holdings.lost();
  }

  /** Every other member has said that it lacks it. */
  lose(entry: SegmentEntry): void {
    this.#holdings.lose(entry);
  }

  /** Called whenever segments are found to be missing. Returns how to stop that. */
  onMissing(listener: () => void): () => void {
    this.#missingListeners.add(listener);
    return () => void this.#missingListeners.delete(listener);
  }

  /** A piece of a sealed segment's file, for a peer; null where it is not here. */
  serve(first: number, offsetBytes: number, bytesMax: number): Promise<Uint8Array | null> {
    return pieceOf(this.#readable(), first, offsetBytes, bytesMax);
  }

  /** Puts a missing segment in its place. Throws CHAIN_BROKEN where the bytes are not those that are missing. */
  async install(bytes: Uint8Array, expected: SegmentEntry): Promise<void> {
    this.#exclusive.checkUsable();
    await checkInstallation(this.#environment, this.#holdings, bytes, expected);
    await this.#change(async () => {
      const own = this.#holdings.find(expected.first);
      if (own === undefined || !isSameEntry(own, expected) || this.#holdings.stateOf(own) !== "missing") return;
      await placeSegment(this.#environment, own, bytes);
      this.#files.forget(own);
      this.#holdings.set(own, "whole");
      await this.#writeCatalog();
    });
  }

  /** Its bytes are not those that were written: it is set aside, and fetched again. */
  async #damaged(entry: SegmentEntry, sequence: number, why: string): Promise<void> {
    if (this.#holdings.stateOf(entry) !== "whole") return;
    this.#found({ kind: "damaged", file: this.names.segment(entry.first), sequence, why });
    this.#holdings.set(entry, "missing");
    this.#files.forget(entry);
    await this.#change(async () => {
      await setAsideDamaged(this.#environment, entry);
      await this.#writeCatalog();
    });
    this.#tellMissing();
  }

  /** Of which files there are. */
  #change(work: () => Promise<void>): Promise<void> {
    return this.#exclusive.run(async () => {
      await work();
      this.#asideBytes = (await asideBytes(this.#environment)) ?? this.#asideBytes;
    });
  }

  /** Counts again what lies aside: an operator may have removed some of it. */
  recount(): Promise<void> {
    return this.#change(() => Promise.resolve());
  }

  #tellMissing(): void {
    if (!this.isComplete) for (const listener of this.#missingListeners) listener();
  }

  // ---- ending --------------------------------------------------------------------------------------

  /** Syncs what there is, where it does that by itself; twice is harmless. */
  async close(): Promise<void> {
    if (this.#syncsSoon && this.#exclusive.isUsable) await this.#flush();
    this.#timer.cancel();
    await this.#exclusive.close(() => this.#queue.close());
  }
}
