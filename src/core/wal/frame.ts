// A frame: the unit in which the write-ahead log, the stamp and snapshot files are checked.
//
//   magic u32 | crc32 u32 | type u8 | version u8 | length u32 | payload
//
// Invariants:
// - The checksum covers everything after it, the length too, so no single damaged byte is believed.
// - The checksum continues from a seed. Inside a segment the seed stands for (cluster, node, disk,
//   segment number): a frame that belongs into another file, or that a client hid in its data, is no
//   frame here.
// - The magic number lets a search find frames again after damaged bytes.

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import { ByteWriter } from "../kit/bytes.ts";
import { crc32OfBoth } from "../kit/crc32.ts";

/** Version of everything that is written to a data directory. */
const FORMAT_VERSION = 1;

// The place in the list is the number on disk: append, never reorder.
const FRAME_TYPES = ["stamp", "segment-header", "batch", "hard-state", "entry", "snapshot"] as const;
export type FrameType = (typeof FRAME_TYPES)[number];

/** Chosen once, never changed. 0xf5 occurs in no UTF-8, so a search does not stop at every piece of text. */
const MAGIC = 0xf54e5246;
const MAGIC_FIRST_BYTE = MAGIC >>> 24;
const CRC_AT = 4;
const BODY_AT = 8;
const LENGTH_AT = 10;
export const FRAME_OVERHEAD_BYTES = 14;

export type FrameRead =
  /** `type` is null where the checksum holds but nobody writes such a frame: no torn write, somebody's mistake. */
  | { readonly kind: "frame"; readonly type: FrameType | null; readonly payloadAt: number; readonly endBytes: number }
  /** Whole and meant for a later release; its type and payload are not ours to judge. */
  | { readonly kind: "newer"; readonly version: number }
  | { readonly kind: "bad"; readonly why: string };

/** Writes frames one after the other without copying a payload: length and checksum are filled in at the end. */
export class FrameWriter {
  readonly #writer: ByteWriter;
  readonly #starts: number[] = [];

  constructor(capacityBytes?: number) {
    this.#writer = new ByteWriter(capacityBytes);
  }

  /** Starts a frame; what the caller writes until the next `begin` or `finish` is its payload. */
  begin(type: FrameType): ByteWriter {
    const writer = this.#writer;
    this.#starts.push(writer.lengthBytes);
    writer.u32(MAGIC);
    writer.u32(0);
    writer.u8(FRAME_TYPES.indexOf(type));
    writer.u8(FORMAT_VERSION);
    writer.u32(0);
    return writer;
  }

  /**
   * Ends the only frame, of which this is the head; the rest of its payload are these contents, which are large, and stand
   * elsewhere as they are: only their length and their checksum are asked for.
   */
  finishHead(contents: Checksummed, digest: Digest): Uint8Array {
    assert(this.#starts.length === 1, "one frame is written");
    const head = this.#writer.finish();
    putU32(head, LENGTH_AT, head.length - FRAME_OVERHEAD_BYTES + contents.bytes);
    putU32(head, CRC_AT, checksumWith(head, contents, digest));
    return head;
  }

  finish(seed: number, digest: Digest): Uint8Array {
    const bytes = this.#writer.finish();
    this.#starts.forEach((start, i) => {
      const end = this.#starts[i + 1] ?? bytes.length;
      putU32(bytes, start + LENGTH_AT, end - start - FRAME_OVERHEAD_BYTES);
      putU32(bytes, start + CRC_AT, digest.crc32(bytes.subarray(start + BODY_AT, end), seed));
    });
    return bytes;
  }
}

/** What is known of large contents. */
export interface Checksummed {
  readonly bytes: number;
  /** Theirs alone. */
  readonly crc: number;
}

function checksumWith(head: Uint8Array, { bytes, crc }: Checksummed, digest: Digest): number {
  return crc32OfBoth(digest.crc32(head.subarray(BODY_AT), 0), crc, bytes);
}

/** Judges a head that `finishHead` made, with the contents at hand. `endBytes` is the head's end. */
export function readFrameHead(head: Uint8Array, contents: Checksummed, digest: Digest): FrameRead {
  if (head.length < FRAME_OVERHEAD_BYTES) return { kind: "bad", why: "it ends inside a frame's head" };
  if (u32At(head, 0) !== MAGIC) return { kind: "bad", why: "no frame starts here" };
  if (u32At(head, LENGTH_AT) !== head.length - FRAME_OVERHEAD_BYTES + contents.bytes)
    return { kind: "bad", why: "its length is another" };
  if (u32At(head, CRC_AT) !== checksumWith(head, contents, digest))
    return { kind: "bad", why: "the checksum is wrong" };
  return judged(head, 0, head.length);
}

/** Judges the bytes at `at`. `payloadBytesMax` keeps a damaged length from costing a long checksum. */
export function readFrame(
  bytes: Uint8Array,
  at: number,
  seed: number,
  payloadBytesMax: number,
  digest: Digest,
): FrameRead {
  assert(at >= 0 && at <= bytes.length, "a frame is read inside the file");
  if (bytes.length - at < FRAME_OVERHEAD_BYTES) return { kind: "bad", why: "the file ends inside a frame's head" };
  if (u32At(bytes, at) !== MAGIC) return { kind: "bad", why: "no frame starts here" };
  const lengthBytes = u32At(bytes, at + LENGTH_AT);
  if (lengthBytes > payloadBytesMax) return { kind: "bad", why: `a frame of ${lengthBytes} bytes` };
  const endBytes = at + FRAME_OVERHEAD_BYTES + lengthBytes;
  if (endBytes > bytes.length) return { kind: "bad", why: "the file ends inside a frame" };
  if (digest.crc32(bytes.subarray(at + BODY_AT, endBytes), seed) !== u32At(bytes, at + CRC_AT)) {
    return { kind: "bad", why: "the checksum is wrong" };
  }
  return judged(bytes, at, endBytes);
}

function judged(bytes: Uint8Array, at: number, endBytes: number): FrameRead {
  const version = bytes[at + BODY_AT + 1]!;
  if (version > FORMAT_VERSION) return { kind: "newer", version };
  const type = FRAME_TYPES[bytes[at + BODY_AT]!] ?? null;
  return { kind: "frame", type, payloadAt: at + FRAME_OVERHEAD_BYTES, endBytes };
}

/** The next place at or after `from` where a frame may start; -1 where there is none. */
export function findMagic(bytes: Uint8Array, from: number): number {
  let at = bytes.indexOf(MAGIC_FIRST_BYTE, from);
  while (at >= 0 && bytes.length - at >= FRAME_OVERHEAD_BYTES) {
    if (u32At(bytes, at) === MAGIC) return at;
    at = bytes.indexOf(MAGIC_FIRST_BYTE, at + 1);
  }
  return -1;
}

function u32At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! * 0x1000000 + ((bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!)) >>> 0;
}

function putU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}
