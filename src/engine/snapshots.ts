// The snapshots that one node deals with: those offered by a leader, the newest one of its own log, and when
// the next is due. What is a snapshot's contents is the state machine's business; that it is whole is ours.

import { assert } from "../core/kit/assert.ts";
import { crc32OfBoth } from "../core/kit/crc32.ts";
import {
  SNAPSHOT_AFTER_BYTES,
  SNAPSHOT_AFTER_ENTRIES,
  SNAPSHOT_KEEP_ENTRIES,
  SNAPSHOT_MEMORY_BYTES_MAX,
} from "../core/kit/limits.ts";
import type { Entry, SnapshotMeta } from "../core/raft/index.ts";
import {
  checksumOf,
  checkSentSnapshot,
  decodeSentSnapshot,
  snapshotHead,
  type SnapshotRead,
} from "../core/wal/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { StateMachine } from "../ports/state-machine.ts";

const DEFAULT_POLICY = {
  afterEntries: SNAPSHOT_AFTER_ENTRIES,
  afterBytes: SNAPSHOT_AFTER_BYTES,
  /** How much of the log is kept below a snapshot, so that a slow follower need not be sent the whole state. */
  keepEntries: SNAPSHOT_KEEP_ENTRIES,
  /** A larger one is on the disk alone, and read again for a follower that needs it. */
  memoryBytesMax: SNAPSHOT_MEMORY_BYTES_MAX,
};

export type SnapshotPolicy = { readonly [Name in keyof typeof DEFAULT_POLICY]: number };

/** One that is in memory, or was read again. */
export interface SnapshotContents {
  readonly meta: SnapshotMeta;
  readonly data: Uint8Array;
}

interface Newest {
  readonly meta: SnapshotMeta;
  readonly bytes: number;
  /** Null: it is on the disk alone. */
  readonly data: Uint8Array | null;
  file: SealedFile | null;
}

/** A snapshot as it is sent, in two parts: its contents are never copied. */
export interface SealedFile {
  readonly meta: SnapshotMeta;
  readonly head: Uint8Array;
  readonly data: Uint8Array;
  /** Of both, one after the other. */
  readonly crc: number;
}

export class Snapshots {
  readonly policy: SnapshotPolicy;
  readonly #digest: Digest;
  readonly #machine: Pick<StateMachine, "prepare"> | null;
  /** Contents that came with snapshot messages, until the turn in which the core accepts or refuses them. */
  readonly #offers = new Map<string, Uint8Array>();
  /** Contents of accepted snapshots until they are durable, by the sequence of their request. */
  readonly #accepted = new Map<number, Uint8Array>();
  /** The newest one of this node. It is sealed when a follower first needs it, which is seldom. */
  #newest: Newest | null = null;
  #entries = 0;
  #bytes = 0;

  constructor(policy: Partial<SnapshotPolicy>, digest: Digest, machine: Pick<StateMachine, "prepare"> | null = null) {
    this.policy = { ...DEFAULT_POLICY, ...policy };
    this.#digest = digest;
    this.#machine = machine;
  }

  get newestIndex(): number {
    return this.#newest?.meta.index ?? 0;
  }

  /** The newest one, as it can be shown; null where there is none. `bytes`: of its contents. */
  get newest(): { readonly index: number; readonly term: number; readonly bytes: number } | null {
    if (this.#newest === null) return null;
    const { meta, bytes } = this.#newest;
    return { index: meta.index, term: meta.term, bytes };
  }

  /** One waits for the disk: another must not be taken in, or a disk that hangs would fill the memory with them. */
  get isInstalling(): boolean {
    return this.#accepted.size > 0;
  }

  /** A snapshot message counts only with contents that are whole and are what it says. */
  offer(meta: SnapshotMeta, attachment: Uint8Array): boolean {
    return this.#offered(meta, decodeSentSnapshot(attachment, this.#digest));
  }

  /** As `offer`, slice by slice, and what it takes to restore it too: a large state takes seconds to read. */
  *offerInSlices(meta: SnapshotMeta, attachment: Uint8Array): Generator<void, boolean> {
    const file = yield* checkSentSnapshot(attachment, this.#digest);
    if (file.kind === "whole" && this.#machine?.prepare !== undefined) yield* this.#machine.prepare(file.data);
    return this.#offered(meta, file);
  }

  #offered(meta: SnapshotMeta, file: SnapshotRead): boolean {
    if (file.kind !== "whole" || JSON.stringify(file.meta) !== JSON.stringify(meta)) return false;
    this.#offers.set(keyOf(meta), file.data);
    return true;
  }

  clearOffers(): void {
    this.#offers.clear();
  }

  /** The core took it: its contents, which are kept until the request with this sequence is written. */
  accept(meta: SnapshotMeta, sequence: number): Uint8Array {
    const data = this.#offers.get(keyOf(meta));
    assert(data !== undefined, "an accepted snapshot came with its contents");
    this.#accepted.set(sequence, data);
    this.keep(meta, data);
    this.#startCounting();
    return data;
  }

  takeAccepted(sequence: number): Uint8Array | null {
    const data = this.#accepted.get(sequence) ?? null;
    this.#accepted.delete(sequence);
    return data;
  }

  keep(meta: SnapshotMeta, data: Uint8Array): void {
    if (data.length > this.policy.memoryBytesMax) return this.keepOnDisk(meta, data.length);
    this.#newest = { meta, bytes: data.length, data, file: null };
  }

  /** It is read again where a follower needs it. */
  keepOnDisk(meta: SnapshotMeta, bytes: number): void {
    this.#newest = { meta, bytes, data: null, file: null };
  }

  /** The newest one; null where it must be read again. */
  get inMemory(): SnapshotContents | null {
    if (this.#newest === null || this.#newest.data === null) return null;
    return { meta: this.#newest.meta, data: this.#newest.data };
  }

  /** Whether it is still the one that can be sent. */
  has(meta: SnapshotMeta): boolean {
    return this.#newest !== null && this.#newest.meta.index === meta.index;
  }

  /** For sending: in one step where it was sealed before, else slice by slice. What was read again is not kept. */
  *seal({ meta, data }: SnapshotContents): Generator<void, SealedFile> {
    const newest = this.#newest;
    if (newest !== null && newest.file !== null && newest.data === data) return newest.file;
    const contents = yield* checksumOf(data, this.#digest);
    const head = snapshotHead(meta, contents, this.#digest);
    const file = { meta, head, data, crc: crc32OfBoth(this.#digest.crc32(head), contents.crc, contents.bytes) };
    if (newest !== null && newest.data === data) newest.file = file;
    return file;
  }

  /** Counts what was applied; true when a snapshot is due, and then starts counting anew. */
  isDueAfter(entries: readonly Entry[]): boolean {
    this.#entries += entries.length;
    for (const entry of entries) this.#bytes += entry.data.length;
    if (this.#entries < this.policy.afterEntries && this.#bytes < this.policy.afterBytes) return false;
    this.#startCounting();
    return true;
  }

  #startCounting(): void {
    this.#entries = 0;
    this.#bytes = 0;
  }
}

function keyOf(meta: SnapshotMeta): string {
  return `${meta.term}/${meta.index}`;
}
