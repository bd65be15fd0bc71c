// A segment: consecutive events in one file.
//
//   header   magic u32 | crc u32 | version u8 | length u32 | author, the chain before the first event
//   event    crc u32 | length u32 | canonical bytes                                       one after the other
//   footer   crc u32 | FFFFFFFF | length u32 | payload | size of the footer u32 | magic u32      once it is sealed
//
// The footer's payload: the chain after the last event, the blocks (where they start and their SHA-256), and the
// SHA-256 over header and blocks, which so stands for all contents and is computed as events come, never at once.
//
// Invariants:
// - The checksum of an event continues from the one before it, that of the first and of the footer from the header's. So
//   a record counts only in its own file and place, and a damaged byte is found in the record that holds it.
// - Nothing in it is of one node: header and events are the same bytes on all of them, and so is the footer, because
//   where a segment ends follows from its events (limits.ts).

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import { ByteWriter, DecodeError, type ByteReader } from "../kit/bytes.ts";
import type { ChainPoint } from "./chain.ts";
import { decode, putU32, readPoint, readSum, u32At, writePoint, writeSum } from "./fields.ts";
import { AUTHOR_BYTES_MAX, BLOCKS_MAX, FOOTER_BYTES_MAX, FORMAT_VERSION, SEGMENT_HEADER_BYTES_MAX } from "./limits.ts";

const MAGIC = 0xf5415243;
const END_MAGIC = 0xf5415244;
const HEADER_FIXED_BYTES = 13;
const HEADER_CRC_AT = 4;
const FOOTER_FIXED_BYTES = 12;
const TRAILER_BYTES = 8;
const CONTENT_DOMAIN = "tenure:segment:v1\n";

export const CRC_BYTES = 4;
export const RECORD_OVERHEAD_BYTES = 8;
/** Where an event has its length, a footer has this. */
export const FOOTER_MARK = 0xffff_ffff;

export interface SegmentHeader {
  readonly author: string;
  /** The chain before the first event of the segment. */
  readonly before: ChainPoint;
}

export interface Block {
  /** Events of the segment that stand before it. */
  readonly eventsBefore: number;
  readonly offsetBytes: number;
  /** The checksum from which that of its first event continues. */
  readonly seed: number;
  readonly hash: Uint8Array;
}

export interface Footer {
  readonly after: ChainPoint;
  readonly blocks: readonly Block[];
  readonly contentHash: Uint8Array;
}

export type HeaderRead =
  | { readonly kind: "header"; readonly header: SegmentHeader; readonly endBytes: number; readonly crc: number }
  | { readonly kind: "newer"; readonly version: number }
  | { readonly kind: "bad"; readonly why: string };

export function encodeHeader(header: SegmentHeader, digest: Digest): Uint8Array {
  const writer = new ByteWriter(512);
  writer.u32(MAGIC);
  writer.u32(0);
  writer.u8(FORMAT_VERSION);
  writer.u32(0);
  writer.text(header.author);
  writePoint(writer, header.before);
  const bytes = writer.finish();
  putU32(bytes, 9, bytes.length - HEADER_FIXED_BYTES);
  putU32(bytes, HEADER_CRC_AT, digest.crc32(bytes.subarray(8)));
  return bytes;
}

export function readHeader(bytes: Uint8Array, digest: Digest): HeaderRead {
  if (bytes.length < HEADER_FIXED_BYTES) return { kind: "bad", why: "the file ends inside its header" };
  if (u32At(bytes, 0) !== MAGIC) return { kind: "bad", why: "it is no segment" };
  const endBytes = HEADER_FIXED_BYTES + u32At(bytes, 9);
  if (endBytes > SEGMENT_HEADER_BYTES_MAX || endBytes > bytes.length) {
    return { kind: "bad", why: "the file ends inside its header" };
  }
  const crc = digest.crc32(bytes.subarray(8, endBytes));
  if (crc !== u32At(bytes, HEADER_CRC_AT)) return { kind: "bad", why: "its header's checksum is wrong" };
  const version = bytes[8]!;
  if (version > FORMAT_VERSION) return { kind: "newer", version };
  const read = decode(bytes, HEADER_FIXED_BYTES, endBytes, (reader) => ({
    author: reader.text(AUTHOR_BYTES_MAX),
    before: readPoint(reader),
  }));
  if (typeof read === "string") return { kind: "bad", why: read };
  return { kind: "header", header: read.value, endBytes, crc };
}

/** `headerBytes`: as they stand in the file. */
export function contentHashOf(headerBytes: Uint8Array, blocks: readonly Block[], digest: Digest): Uint8Array {
  const writer = new ByteWriter(headerBytes.length + 64 + blocks.length * 64);
  writer.text(CONTENT_DOMAIN);
  writer.bytes(headerBytes);
  writeBlocks(writer, blocks);
  return digest.sha256(writer.finish());
}

/** `headerCrc`: its checksum continues from the header's, so that a footer is read without the events before it. */
export function encodeFooter(footer: Footer, headerCrc: number, digest: Digest): Uint8Array {
  const writer = new ByteWriter(1024 + footer.blocks.length * 64);
  writer.u32(0);
  writer.u32(FOOTER_MARK);
  writer.u32(0);
  writePoint(writer, footer.after);
  writeBlocks(writer, footer.blocks);
  writeSum(writer, footer.contentHash);
  const sizeBytes = writer.lengthBytes + TRAILER_BYTES;
  writer.u32(sizeBytes);
  writer.u32(END_MAGIC);
  const bytes = writer.finish();
  assert(bytes.length <= FOOTER_BYTES_MAX, "a footer is within its bound", () => `${bytes.length} bytes`);
  putU32(bytes, 8, bytes.length - FOOTER_FIXED_BYTES - TRAILER_BYTES);
  putU32(bytes, 0, digest.crc32(bytes.subarray(CRC_BYTES), headerCrc));
  return bytes;
}

/** The footer that starts at `at` and ends with the file, whose header was read. */
export function readFooter(bytes: Uint8Array, at: number, digest: Digest): Footer | string {
  const sizeBytes = bytes.length - at;
  if (sizeBytes < FOOTER_FIXED_BYTES + TRAILER_BYTES) return "the file ends inside its footer";
  if (sizeBytes > FOOTER_BYTES_MAX) return "bytes follow its footer";
  const crc = digest.crc32(bytes.subarray(at + CRC_BYTES), u32At(bytes, HEADER_CRC_AT));
  if (crc !== u32At(bytes, at)) return "its footer's checksum is wrong";
  const end = bytes.length - TRAILER_BYTES;
  if (u32At(bytes, end) !== sizeBytes || u32At(bytes, end + 4) !== END_MAGIC)
    return "its footer does not end as it should";
  if (u32At(bytes, at + 8) !== end - at - FOOTER_FIXED_BYTES) return "its footer's length is wrong";
  const read = decode(bytes, at + FOOTER_FIXED_BYTES, end, (reader) => ({
    after: readPoint(reader),
    blocks: readBlocks(reader),
    contentHash: readSum(reader),
  }));
  return typeof read === "string" ? read : read.value;
}

/** Where the footer of a sealed file starts, as its end says; -1 where it does not end with one. */
export function footerAt(bytes: Uint8Array): number {
  if (bytes.length < HEADER_FIXED_BYTES + FOOTER_FIXED_BYTES + TRAILER_BYTES) return -1;
  const at = bytes.length - u32At(bytes, bytes.length - TRAILER_BYTES);
  return u32At(bytes, bytes.length - 4) === END_MAGIC && at > HEADER_FIXED_BYTES ? at : -1;
}

function writeBlocks(writer: ByteWriter, blocks: readonly Block[]): void {
  writer.u32(blocks.length);
  for (const { eventsBefore, offsetBytes, seed, hash } of blocks) {
    writer.u32(eventsBefore);
    writer.u32(offsetBytes);
    writer.u32(seed);
    writeSum(writer, hash);
  }
}

function readBlocks(reader: ByteReader): Block[] {
  const count = reader.u32();
  if (count > BLOCKS_MAX) throw new DecodeError("malformed", `${count} blocks`);
  const blocks: Block[] = [];
  for (let i = 0; i < count; i++) {
    const eventsBefore = reader.u32();
    const offsetBytes = reader.u32();
    blocks.push({ eventsBefore, offsetBytes, seed: reader.u32(), hash: readSum(reader) });
  }
  return blocks;
}
