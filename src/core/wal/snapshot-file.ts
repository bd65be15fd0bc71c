// A snapshot as a file: one frame with its meta data and its contents under one checksum.
// It is written under a temporary name, synced and renamed, so a file that is there but not whole has rotted.

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import { ByteReader, DecodeError } from "../kit/bytes.ts";
import { SNAPSHOT_BYTES_MAX, WAL_FRAME_PAYLOAD_BYTES_MAX } from "../kit/limits.ts";
import { readSnapshotMeta, writeSnapshotMeta } from "../raft/codec.ts";
import type { SnapshotMeta } from "../raft/types.ts";
import { FrameWriter, readFrame } from "./frame.ts";

const META_CAPACITY_BYTES = 1024;

export type SnapshotRead =
  | { readonly kind: "whole"; readonly meta: SnapshotMeta; readonly data: Uint8Array }
  | { readonly kind: "newer"; readonly version: number }
  | { readonly kind: "bad"; readonly why: string };

export function encodeSnapshotFile(meta: SnapshotMeta, data: Uint8Array, digest: Digest): Uint8Array {
  assert(data.length <= SNAPSHOT_BYTES_MAX, "snapshot is within its bound", () => `${data.length} bytes`);
  const frames = new FrameWriter(data.length + META_CAPACITY_BYTES);
  const writer = frames.begin("snapshot");
  writeSnapshotMeta(writer, meta);
  writer.bytes(data);
  return frames.finish(0, digest);
}

/** `data` is a view of `bytes`. */
export function decodeSnapshotFile(bytes: Uint8Array, digest: Digest): SnapshotRead {
  const frame = readFrame(bytes, 0, 0, SNAPSHOT_BYTES_MAX + WAL_FRAME_PAYLOAD_BYTES_MAX, digest);
  if (frame.kind !== "frame") return frame;
  if (frame.type !== "snapshot" || frame.endBytes !== bytes.length) return { kind: "bad", why: "it is not a snapshot" };
  try {
    const reader = new ByteReader(frame.payload);
    const meta = readSnapshotMeta(reader);
    const data = reader.bytes(SNAPSHOT_BYTES_MAX);
    if (reader.remainingBytes > 0) return { kind: "bad", why: "bytes follow its contents" };
    return { kind: "whole", meta, data };
  } catch (error) {
    if (error instanceof DecodeError) return { kind: "bad", why: error.message };
    throw error;
  }
}
