// A record of the log of receipts: pages that the leader has verified, each with the state of its line before and after it.
//
//   version u8 | arrivedMs uint53 | floorMs uint53 | count u32 | pages
//   page = bytes of the page | from: size uint53, hash | state of the line after it
//
// Whether a page is taken is decided where the record is applied (state.ts), by `from` alone: nothing is verified there.

import { ByteReader, ByteWriter, decoded, DecodeError } from "../../kit/bytes.ts";
import type { LineState } from "../model.ts";
import { decodeLineState, encodeLineState } from "../proof/index.ts";
import { LINE_STATE_BYTES_MAX, RECORD_BYTES_MAX, RECORD_PAGES_MAX } from "./limits.ts";
import { decodePage, type HeldPage, readHash, writeHash } from "./page-bytes.ts";

const RECORD_VERSION = 1;
const RECORD_HEAD_BYTES = 32;
/** Lengths, and `from`. */
const PAGE_FIXED_BYTES = 64;

/** A place in a line: so many events, and the hash of the last of them. */
export interface LinePoint {
  readonly size: number;
  readonly hash: string | null;
}

/** A verified page, as it is written into a record. */
export interface RecordedPage {
  /** encodePage. */
  readonly bytes: Uint8Array;
  /** What it was verified on. */
  readonly from: LinePoint;
  /** encodeLineState, of what it gives. */
  readonly state: Uint8Array;
}

export interface ReceiptsRecord {
  /** The leader's time of day, in whole milliseconds. */
  readonly arrivedMs: number;
  /** Own events are stamped above it from here on; 0: nothing raises it. */
  readonly floorMs: number;
  readonly pages: readonly RecordedPage[];
}

/** A page of a record that was read. */
export interface OfferedPage {
  readonly bytes: Uint8Array;
  readonly page: HeldPage;
  readonly from: LinePoint;
  readonly state: LineState;
}

export type RecordRead =
  | {
      readonly kind: "record";
      readonly arrivedMs: number;
      readonly floorMs: number;
      readonly pages: readonly OfferedPage[];
    }
  | { readonly kind: "malformed" }
  | { readonly kind: "later-version"; readonly version: number };

export function recordedPage(page: Uint8Array, from: LinePoint, state: LineState): RecordedPage {
  return { bytes: page, from: { size: from.size, hash: from.hash }, state: encodeLineState(state) };
}

/** What a page takes of a record. */
export function recordedBytes({ bytes, state }: RecordedPage): number {
  return PAGE_FIXED_BYTES + bytes.length + state.length;
}

export function encodeRecord({ arrivedMs, floorMs, pages }: ReceiptsRecord): Uint8Array {
  const writer = new ByteWriter(pages.reduce((sum, page) => sum + recordedBytes(page), RECORD_HEAD_BYTES));
  writer.u8(RECORD_VERSION);
  writer.uint53(arrivedMs);
  writer.uint53(floorMs);
  writer.u32(pages.length);
  for (const { bytes, from, state } of pages) {
    writer.bytes(bytes);
    writer.uint53(from.size);
    writeHash(writer, from.hash);
    writer.bytes(state);
  }
  return writer.finish();
}

export function decodeRecord(bytes: Uint8Array): RecordRead {
  return decoded(
    () => read(new ByteReader(bytes)),
    () => ({ kind: "malformed" }),
  );
}

function read(reader: ByteReader): RecordRead {
  const version = reader.u8();
  if (version > RECORD_VERSION) return { kind: "later-version", version };
  if (version !== RECORD_VERSION) return { kind: "malformed" };
  const [arrivedMs, floorMs, count] = [reader.uint53(), reader.uint53(), reader.u32()];
  if (count === 0 || count > RECORD_PAGES_MAX) return { kind: "malformed" };
  const pages = Array.from({ length: count }, () => readPage(reader));
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow a record");
  return { kind: "record", arrivedMs, floorMs, pages };
}

function readPage(reader: ByteReader): OfferedPage {
  const bytes = reader.bytes(RECORD_BYTES_MAX);
  const page = decodePage(bytes);
  const from = { size: reader.uint53(), hash: readHash(reader) };
  const state = decodeLineState(reader.bytes(LINE_STATE_BYTES_MAX));
  const covers = page.after <= from.size && from.size < state.size && state.size === page.after + page.items.length;
  if (!covers || state.line !== page.line || (from.size === 0) !== (from.hash === null))
    throw new DecodeError("malformed", "a page does not lead from one state of its line to the other");
  return { bytes, page, from, state };
}
