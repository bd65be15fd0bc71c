// A snapshot as a file: one frame with its meta data and its contents under one checksum.
// It is written under a temporary name, synced and renamed, so a file that is there but not whole has rotted.

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import { ByteReader, DecodeError } from "../kit/bytes.ts";
import { SNAPSHOT_BYTES_MAX, WAL_FRAME_PAYLOAD_BYTES_MAX } from "../kit/limits.ts";
import { readSnapshotMeta, writeSnapshotMeta } from "../raft/codec.ts";
import type { SnapshotMeta } from "../raft/types.ts";
import { bodyOf, checksumInSlices, FrameWriter, readFrame } from "./frame.ts";

const META_CAPACITY_BYTES = 1024;

export type SnapshotRead =
  | { readonly kind: "whole"; readonly meta: SnapshotMeta; readonly data: Uint8Array }
  | { readonly kind: "newer"; readonly version: number }
  | { readonly kind: "bad"; readonly why: string };

/**
 * What stands in the file before the contents, which follow as they are. A large file is sealed slice by slice, so that
 * heartbeats go out in between: between two yields at most a megabyte is checksummed.
 */
export function* sealSnapshotFile(meta: SnapshotMeta, data: Uint8Array, digest: Digest): Generator<void, Uint8Array> {
  assert(data.length <= SNAPSHOT_BYTES_MAX, "snapshot is within its bound", () => `${data.length} bytes`);
  const frames = new FrameWriter(META_CAPACITY_BYTES);
  const writer = frames.begin("snapshot");
  writeSnapshotMeta(writer, meta);
  writer.u32(data.length);
  return yield* frames.finishBefore(data, digest);
}

/** The whole file in one piece. */
export function encodeSnapshotFile(meta: SnapshotMeta, data: Uint8Array, digest: Digest): Uint8Array {
  const head = toEnd(sealSnapshotFile(meta, data, digest));
  const file = new Uint8Array(head.length + data.length);
  file.set(head);
  file.set(data, head.length);
  return file;
}

/** As `decodeSnapshotFile`, slice by slice. */
export function* checkSnapshotFile(bytes: Uint8Array, digest: Digest): Generator<void, SnapshotRead> {
  const crc = yield* checksumInSlices(bodyOf(bytes), 0, digest);
  // Its one frame ends with the file, or it is no snapshot: so this is the one checksum that will be asked for.
  return decodeSnapshotFile(bytes, { ...digest, crc32: () => crc });
}

/** `data` is a view of `bytes`. */
export function decodeSnapshotFile(bytes: Uint8Array, digest: Digest): SnapshotRead {
  const frame = readFrame(bytes, 0, 0, SNAPSHOT_BYTES_MAX + WAL_FRAME_PAYLOAD_BYTES_MAX, digest);
  if (frame.kind !== "frame") return frame;
  if (frame.type !== "snapshot" || frame.endBytes !== bytes.length) return { kind: "bad", why: "it is not a snapshot" };
  try {
    const reader = new ByteReader(bytes, frame.payloadAt, frame.endBytes);
    const meta = readSnapshotMeta(reader);
    const data = reader.bytes(SNAPSHOT_BYTES_MAX);
    if (reader.remainingBytes > 0) return { kind: "bad", why: "bytes follow its contents" };
    return { kind: "whole", meta, data };
  } catch (error) {
    if (error instanceof DecodeError) return { kind: "bad", why: error.message };
    throw error;
  }
}

function toEnd<T>(slices: Generator<void, T>): T {
  for (;;) {
    const step = slices.next();
    if (step.done === true) return step.value;
  }
}
