// A segment: one file of the log.
//
//   header | batch hard-state? entry* (hard-state? entry*)* | batch … | batch …
//
// header: whose log this is, and all that a reader would otherwise need older segments for: the hard
// state, the snapshot after which the log starts, the oldest segment that still belongs to the log, and
// the size of the segment before. It is one frame under one checksum, so installing a snapshot, marking
// one's own and dropping old segments each become true at one instant: when a header becomes durable.
//
// batch: one append to the file, one or several persist requests. Its header says how much of the
// segment the writer knew to be durable at that time: the testimony on which recovery rests.
//
// Invariants:
// - Within a request the hard state comes before the entries: the term is on disk before any entry of
//   that term (trap 2). Its commit index covers no entry of the same request: a cut between the two leaves
//   a commit index that is true of the entries that were there before (docs/decisions/0006-commit-on-disk.md).
// - An entry whose index is not above the last one replaces it and all that follow.
// - A segment is synced as a whole before the next one is created.

import type { Digest } from "../../ports/digest.ts";
import { assertNever } from "../kit/assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { WAL_BATCH_PAYLOAD_BYTES_MAX, WAL_FRAME_PAYLOAD_BYTES_MAX } from "../kit/limits.ts";
import {
  readEntry,
  readHardState,
  readSnapshotMeta,
  writeEntry,
  writeHardState,
  writeSnapshotMeta,
} from "../raft/codec.ts";
import type { Entry, HardState, SnapshotMeta } from "../raft/types.ts";
import { findMagic, FrameWriter, readFrame, type FrameRead } from "./frame.ts";
import { readStamp, writeStamp, type Stamp } from "./stamp.ts";

const ENTRY_FRAME_CAPACITY_BYTES = 48;
const BATCH_CAPACITY_BYTES = 192;

export interface SegmentHeader {
  readonly stamp: Stamp;
  readonly number: number;
  /** Segments below this number are no part of the log any more, whether or not they are there. */
  readonly oldestNumber: number;
  /** Size of segment `number - 1` when it was closed; 0 for the first one. */
  readonly previousBytes: number;
  readonly snapshot: SnapshotMeta | null;
  readonly hardState: HardState;
}

/** What one persist request adds to a batch. */
export interface BatchPart {
  readonly hardState: HardState | null;
  readonly entries: readonly Entry[];
}

/** An entry stands for itself: a log may hold a million of them, and an object around each would be garbage at once. */
export type WalRecord =
  | { readonly type: "batch"; readonly syncedBytes: number }
  | { readonly type: "hard-state"; readonly hardState: HardState }
  | Entry;

type WholeFrame = Extract<FrameRead, { kind: "frame" }>;

/** Why reading stopped at `at`. torn: bytes that are no frame. impossible: a frame that no writer of ours writes. */
export type Trouble =
  | { readonly kind: "torn" | "impossible"; readonly at: number; readonly why: string }
  | { readonly kind: "newer"; readonly at: number; readonly version: number };

export interface SegmentRead {
  readonly header: SegmentHeader | null;
  readonly records: readonly WalRecord[];
  readonly trouble: Trouble | null;
}

interface RecordsRead {
  readonly records: readonly WalRecord[];
  readonly trouble: Trouble | null;
  readonly endBytes: number;
}

/** The seed of a segment's frames; its header alone is read without, to see whose it is. */
export function segmentSeed(stamp: Stamp, number: number, digest: Digest): number {
  const writer = new ByteWriter();
  writeStamp(writer, stamp);
  writer.uint53(number);
  return digest.crc32(writer.finish());
}

export function encodeSegmentHeader(header: SegmentHeader, digest: Digest): Uint8Array {
  const frames = new FrameWriter();
  const writer = frames.begin("segment-header");
  writeStamp(writer, header.stamp);
  writer.uint53(header.number);
  writer.uint53(header.oldestNumber);
  writer.uint53(header.previousBytes);
  writer.bool(header.snapshot !== null);
  if (header.snapshot !== null) writeSnapshotMeta(writer, header.snapshot);
  writeHardState(writer, header.hardState);
  return frames.finish(0, digest);
}

export function encodeBatch(
  syncedBytes: number,
  parts: readonly BatchPart[],
  seed: number,
  digest: Digest,
): Uint8Array {
  let capacityBytes = BATCH_CAPACITY_BYTES;
  for (const { entries } of parts) {
    for (const entry of entries) capacityBytes += ENTRY_FRAME_CAPACITY_BYTES + entry.data.length;
  }
  const frames = new FrameWriter(capacityBytes);
  frames.begin("batch").uint53(syncedBytes);
  for (const { hardState, entries } of parts) {
    if (hardState !== null) writeHardState(frames.begin("hard-state"), hardState);
    for (const entry of entries) writeEntry(frames.begin("entry"), entry);
  }
  return frames.finish(seed, digest);
}

/** Reads from the start to the end, or to the first trouble. */
export function readSegment(bytes: Uint8Array, seed: number, digest: Digest): SegmentRead {
  const head = readSegmentHeader(bytes, digest);
  if (head.header === null) return { header: null, records: [], trouble: head.trouble };
  const { records, trouble } = readRecords(bytes, head.endBytes, seed, digest);
  return { header: head.header, records, trouble };
}

/** The same from a record on that was reached before; `endBytes` is where the next one begins. */
export function readRecords(bytes: Uint8Array, from: number, seed: number, digest: Digest): RecordsRead {
  const records: WalRecord[] = [];
  let at = from;
  let trouble: Trouble | null = null;
  while (at < bytes.length) {
    const frame = readFrame(bytes, at, seed, WAL_FRAME_PAYLOAD_BYTES_MAX, digest);
    if (frame.kind === "newer") trouble = { kind: "newer", at, version: frame.version };
    else if (frame.kind === "bad") trouble = { kind: "torn", at, why: frame.why };
    if (frame.kind !== "frame") break;
    const record = decodeRecord(bytes, frame, at);
    if (typeof record === "string") {
      trouble = { kind: "impossible", at, why: record };
      break;
    }
    records.push(record);
    at = frame.endBytes;
  }
  return { records, trouble, endBytes: at };
}

/**
 * Searches after `from` for batch headers that are whole, and returns the furthest point that one of
 * them knows to be durable; 0 where there is none.
 */
export function findTestimonyBytes(bytes: Uint8Array, from: number, seed: number, digest: Digest): number {
  let furthestBytes = 0;
  for (let at = findMagic(bytes, from); at >= 0; at = findMagic(bytes, at + 1)) {
    const frame = readFrame(bytes, at, seed, WAL_BATCH_PAYLOAD_BYTES_MAX, digest);
    if (frame.kind !== "frame" || frame.type !== "batch") continue;
    const record = decodeRecord(bytes, frame, at);
    if (typeof record !== "string" && record.type === "batch")
      furthestBytes = Math.max(furthestBytes, record.syncedBytes);
  }
  return furthestBytes;
}

type HeaderRead =
  | { readonly header: SegmentHeader; readonly endBytes: number }
  | { readonly header: null; readonly trouble: Trouble };

export function readSegmentHeader(bytes: Uint8Array, digest: Digest): HeaderRead {
  const frame = readFrame(bytes, 0, 0, WAL_FRAME_PAYLOAD_BYTES_MAX, digest);
  if (frame.kind === "newer") return { header: null, trouble: { kind: "newer", at: 0, version: frame.version } };
  if (frame.kind === "bad") return { header: null, trouble: { kind: "torn", at: 0, why: frame.why } };
  const header =
    frame.type === "segment-header" ? decodePayload(bytes, frame, readHeaderFields) : "it does not start with a header";
  if (typeof header === "string") return { header: null, trouble: { kind: "impossible", at: 0, why: header } };
  return { header, endBytes: frame.endBytes };
}

/** A literal's properties are evaluated in the order in which they stand: that order is the format. */
function readHeaderFields(reader: ByteReader): SegmentHeader {
  return {
    stamp: readStamp(reader),
    number: reader.uint53(),
    oldestNumber: reader.uint53(),
    previousBytes: reader.uint53(),
    snapshot: reader.bool() ? readSnapshotMeta(reader) : null,
    hardState: readHardState(reader),
  };
}

/** The record, or why nobody can have written it. */
function decodeRecord(bytes: Uint8Array, frame: WholeFrame, at: number): WalRecord | string {
  const { type } = frame;
  switch (type) {
    case "batch": {
      const syncedBytes = decodePayload(bytes, frame, readSyncedBytes);
      if (typeof syncedBytes === "string") return syncedBytes;
      return syncedBytes <= at ? { type, syncedBytes } : "a batch that knows of bytes behind itself";
    }
    case "hard-state": {
      const hardState = decodePayload(bytes, frame, readHardState);
      return typeof hardState === "string" ? hardState : { type, hardState };
    }
    case "entry":
      return decodePayload(bytes, frame, readEntry);
    case "stamp":
    case "segment-header":
    case "snapshot":
    case null:
      return "a frame that has no place here";
    default:
      return assertNever(type, "decodeRecord");
  }
}

function readSyncedBytes(reader: ByteReader): number {
  return reader.uint53();
}

function decodePayload<T>(bytes: Uint8Array, frame: WholeFrame, read: (reader: ByteReader) => T): T | string {
  try {
    const reader = new ByteReader(bytes, frame.payloadAt, frame.endBytes);
    const value = read(reader);
    return reader.remainingBytes === 0 ? value : "bytes follow a record";
  } catch (error) {
    if (error instanceof DecodeError) return error.message;
    throw error;
  }
}
