// The list of sealed segments: what a node holds, what a snapshot says a node must hold, and what lacks between the two.
//
// Invariants of a manifest:
// - Its segments are in order and without gaps, from the event after `start` on.
// - Each is named by the hash of its last event, which is the chain's word for all events up to there, and by the hash
//   of its contents, so that bytes from anybody can be judged.

import type { Digest } from "../../ports/digest.ts";
import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { TenureError } from "../kit/errors.ts";
import { lengthOf, wholeOf } from "../kit/pieces.ts";
import { isSameBytes, type ChainPoint } from "./chain.ts";
import { decode, putU32, readHash, readPoint, readSum, u32At, writeHash, writePoint, writeSum } from "./fields.ts";
import { FORMAT_VERSION, SEGMENT_FILE_BYTES_MAX, SEGMENTS_MAX } from "./limits.ts";

export interface SegmentEntry {
  readonly first: number;
  readonly last: number;
  readonly lastHash: string;
  readonly contentHash: Uint8Array;
  /** Of the file. */
  readonly sizeBytes: number;
}

export interface Manifest {
  /** History begins after it: where retention has cut, or before the first event. */
  readonly start: ChainPoint;
  readonly segments: readonly SegmentEntry[];
}

/** The archive as a snapshot carries it: the manifest, and the segment that is not sealed as its bytes. */
export interface Capture extends Manifest {
  readonly head: ChainPoint;
  readonly checkpoint: ChainPoint | null;
  /** As in the file. */
  readonly open: Uint8Array;
}

/** What is known of segments on this disk: a cache of what the files say, but for `start` and `checkpoint`. */
export interface Catalog extends Manifest {
  readonly checkpoint: ChainPoint | null;
  /** The first sequences of those segments whose files are here as a whole. */
  readonly whole: ReadonlySet<number>;
}

export function isSameEntry(a: SegmentEntry, b: SegmentEntry): boolean {
  return a.first === b.first && a.last === b.last && isSameBytes(a.contentHash, b.contentHash);
}

/** The segment that holds an event; undefined where none does. */
export function segmentOf(segments: readonly SegmentEntry[], sequence: number): SegmentEntry | undefined {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (segments[middle]!.last < sequence) low = middle + 1;
    else high = middle;
  }
  const found = segments[low];
  return found !== undefined && found.first <= sequence ? found : undefined;
}

export function encodeCapture(capture: Capture): Uint8Array {
  return wholeOf(captureInPieces(capture, [capture.open]));
}

/** The same, without a copy of the open segment. */
export function captureInPieces(capture: Omit<Capture, "open">, open: readonly Uint8Array[]): readonly Uint8Array[] {
  const writer = new ByteWriter(1024 + capture.segments.length * 96);
  writer.u8(FORMAT_VERSION);
  writeManifest(writer, capture);
  writePoint(writer, capture.head);
  writeOptionalPoint(writer, capture.checkpoint);
  writer.u32(lengthOf(open));
  return [writer.finish(), ...open];
}

/** Throws a DecodeError. What it returns are views of `bytes`. */
export function decodeCapture(bytes: Uint8Array): Capture {
  const reader = new ByteReader(bytes);
  readVersion(reader);
  const { start, segments } = readManifest(reader);
  const head = readPoint(reader);
  const checkpoint = readOptionalPoint(reader);
  const open = reader.bytes(SEGMENT_FILE_BYTES_MAX);
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow a capture");
  return { start, segments, head, checkpoint, open };
}

export function encodeCatalog(catalog: Catalog, digest: Digest): Uint8Array {
  const writer = new ByteWriter(1024 + catalog.segments.length * 100);
  writer.u32(0);
  writer.u8(FORMAT_VERSION);
  writeManifest(writer, catalog);
  writeOptionalPoint(writer, catalog.checkpoint);
  for (const { first } of catalog.segments) writer.bool(catalog.whole.has(first));
  const bytes = writer.finish();
  putU32(bytes, 0, digest.crc32(bytes.subarray(4)));
  return bytes;
}

/** Null where it is damaged, which costs the time to read all segments; a later release's throws FORMAT_UNSUPPORTED. */
export function decodeCatalog(bytes: Uint8Array, digest: Digest): Catalog | null {
  if (bytes.length < 5 || digest.crc32(bytes.subarray(4)) !== u32At(bytes, 0)) return null;
  const reader = new ByteReader(bytes, 4);
  readVersion(reader);
  const read = decode(bytes, 5, bytes.length, (body) => {
    const manifest = readManifest(body);
    const checkpoint = readOptionalPoint(body);
    const whole = new Set(manifest.segments.filter(() => body.bool()).map(({ first }) => first));
    return { ...manifest, checkpoint, whole };
  });
  return typeof read === "string" ? null : read.value;
}

function readVersion(reader: ByteReader): void {
  const version = reader.u8();
  if (version <= FORMAT_VERSION) return;
  const next = "Start the release that wrote it, or a later one, here";
  throw new TenureError(
    "FORMAT_UNSUPPORTED",
    `the archive has format version ${version}, from a later release. ${next}.`,
  );
}

function writeManifest(writer: ByteWriter, { start, segments }: Manifest): void {
  writePoint(writer, start);
  writer.u32(segments.length);
  for (const { first, last, lastHash, contentHash, sizeBytes } of segments) {
    writer.uint53(first);
    writer.uint53(last);
    writeHash(writer, lastHash);
    writeSum(writer, contentHash);
    writer.u32(sizeBytes);
  }
}

function readManifest(reader: ByteReader): Manifest {
  const start = readPoint(reader);
  const count = reader.u32();
  if (count > SEGMENTS_MAX) throw new DecodeError("malformed", `${count} segments`);
  const segments: SegmentEntry[] = [];
  let next = start.sequence + 1;
  for (let i = 0; i < count; i++) {
    const entry = readEntry(reader);
    if (entry.first !== next || entry.last < entry.first) throw new DecodeError("malformed", "a gap between segments");
    next = entry.last + 1;
    segments.push(entry);
  }
  return { start, segments };
}

function readEntry(reader: ByteReader): SegmentEntry {
  const first = reader.uint53();
  const last = reader.uint53();
  const lastHash = readHash(reader);
  const contentHash = readSum(reader);
  const sizeBytes = reader.u32();
  if (sizeBytes > SEGMENT_FILE_BYTES_MAX) throw new DecodeError("malformed", `a segment of ${sizeBytes} bytes`);
  return { first, last, lastHash, contentHash, sizeBytes };
}

function writeOptionalPoint(writer: ByteWriter, point: ChainPoint | null): void {
  writer.bool(point !== null);
  if (point !== null) writePoint(writer, point);
}

function readOptionalPoint(reader: ByteReader): ChainPoint | null {
  return reader.bool() ? readPoint(reader) : null;
}
