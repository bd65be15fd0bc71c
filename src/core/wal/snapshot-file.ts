// A snapshot as it is written down and sent: its contents as they are, and one frame's head with the meta data and a checksum
// over both. Where it is written, the contents come first, because they are written while they are made, and how many they are
// is known at the end; where it is sent, the head does.
//
//   file   contents | head | length of the head u32
//   sent   length of the head u32 | head | contents
//
// A file is written under a temporary name, synced and renamed, so one that is there but not whole has rotted.

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { SNAPSHOT_BYTES_MAX } from "../kit/limits.ts";
import { type Pieces, wholeOf } from "../kit/pieces.ts";
import { readSnapshotMeta, writeSnapshotMeta } from "../raft/codec.ts";
import type { SnapshotMeta } from "../raft/types.ts";
import { type Checksummed, FrameWriter, readFrameHead } from "./frame.ts";
import { CHECKSUM_SLICE_BYTES, SNAPSHOT_META_BUFFER_BYTES } from "./limits.ts";

const LENGTH_BYTES = 4;

export type SnapshotRead =
  | { readonly kind: "whole"; readonly meta: SnapshotMeta; readonly data: Uint8Array }
  | { readonly kind: "newer"; readonly version: number }
  | { readonly kind: "bad"; readonly why: string };

/** The file, piece by piece, as the contents come. */
export function* snapshotFile(
  meta: SnapshotMeta,
  contents: Pieces,
  digest: Digest,
): Generator<Uint8Array, Checksummed, void> {
  let [bytes, crc] = [0, 0];
  for (const piece of contents) {
    for (const slice of slicesOf(piece)) {
      bytes += slice.length;
      crc = digest.crc32(slice, crc);
      yield slice;
    }
  }
  const head = headOf(meta, { bytes, crc }, digest);
  yield head;
  yield lengthOf(head);
  return { bytes, crc };
}

/** The whole file in one piece. */
export function encodeSnapshotFile(meta: SnapshotMeta, data: Uint8Array, digest: Digest): Uint8Array {
  return wholeOf(snapshotFile(meta, [data], digest));
}

/** What is sent before the contents. */
export function snapshotHead(meta: SnapshotMeta, contents: Checksummed, digest: Digest): Uint8Array {
  const head = headOf(meta, contents, digest);
  return wholeOf([lengthOf(head), head]);
}

/** Of large contents, slice by slice, so that heartbeats go out in between; also after the last one, for what comes then. */
export function* checksumOf(contents: Uint8Array, digest: Digest): Generator<void, Checksummed, void> {
  let crc = 0;
  for (const slice of slicesOf(contents)) {
    crc = digest.crc32(slice, crc);
    if (contents.length > CHECKSUM_SLICE_BYTES) yield;
  }
  return { bytes: contents.length, crc };
}

/** Of a file, slice by slice; `data` is a view of it. */
export function* checkSnapshotFile(file: Uint8Array, digest: Digest): Generator<void, SnapshotRead, void> {
  if (file.length < LENGTH_BYTES) return bad("it is too short");
  const end = file.length - LENGTH_BYTES;
  const start = end - u32At(file, end);
  if (start < 0) return bad("it ends inside its contents");
  return yield* checked(file.subarray(start, end), file.subarray(0, start), digest);
}

/** Of what was sent. */
export function* checkSentSnapshot(sent: Uint8Array, digest: Digest): Generator<void, SnapshotRead, void> {
  if (sent.length < LENGTH_BYTES) return bad("it is too short");
  const end = LENGTH_BYTES + u32At(sent, 0);
  if (end > sent.length) return bad("it ends inside its head");
  return yield* checked(sent.subarray(LENGTH_BYTES, end), sent.subarray(end), digest);
}

export function decodeSnapshotFile(file: Uint8Array, digest: Digest): SnapshotRead {
  return toEnd(checkSnapshotFile(file, digest));
}

export function decodeSentSnapshot(sent: Uint8Array, digest: Digest): SnapshotRead {
  return toEnd(checkSentSnapshot(sent, digest));
}

function* checked(head: Uint8Array, data: Uint8Array, digest: Digest): Generator<void, SnapshotRead, void> {
  if (data.length > SNAPSHOT_BYTES_MAX) return bad(`contents of ${data.length} bytes`);
  const contents = yield* checksumOf(data, digest);
  const frame = readFrameHead(head, contents, digest);
  if (frame.kind !== "frame") return frame;
  if (frame.type !== "snapshot") return bad("it is not a snapshot");
  try {
    const reader = new ByteReader(head, frame.payloadAt);
    const meta = readSnapshotMeta(reader);
    if (reader.remainingBytes > 0) return bad("bytes follow its meta data");
    return { kind: "whole", meta, data };
  } catch (error) {
    if (error instanceof DecodeError) return bad(error.message);
    throw error;
  }
}

function headOf(meta: SnapshotMeta, contents: Checksummed, digest: Digest): Uint8Array {
  assert(contents.bytes <= SNAPSHOT_BYTES_MAX, "snapshot is within its bound", () => `${contents.bytes} bytes`);
  const frames = new FrameWriter(SNAPSHOT_META_BUFFER_BYTES);
  writeSnapshotMeta(frames.begin("snapshot"), meta);
  return frames.finishHead(contents, digest);
}

function lengthOf({ length }: Uint8Array): Uint8Array {
  const writer = new ByteWriter(LENGTH_BYTES);
  writer.u32(length);
  return writer.finish();
}

function* slicesOf(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.length; at += CHECKSUM_SLICE_BYTES) yield bytes.subarray(at, at + CHECKSUM_SLICE_BYTES);
}

function u32At(bytes: Uint8Array, at: number): number {
  return new ByteReader(bytes, at).u32();
}

function bad(why: string): SnapshotRead {
  return { kind: "bad", why };
}

function toEnd<T>(slices: Generator<void, T>): T {
  for (;;) {
    const step = slices.next();
    if (step.done === true) return step.value;
  }
}
