// How one node asks another about its history.
//
//   u8 1 | first sequence uint53 | offset in bytes u32 | most bytes u32     a piece of a segment's file; the answer is the piece
//   u8 2                                                                    where its history starts
//   u8 3                                                                    what it lacks
//
// The answer to the second is u8 1 | start uint53: everything up to that event was let go there. The answer to the third is
// u8 1 | start uint53 | reached uint53 | count u32 | count × (first uint53 | last uint53): what was let go, up to which event
// the rest speaks, and what lacks of that, in order. A release that does not know one of them answers nothing: it may have everything.

import { ByteReader, ByteWriter, decoded } from "../kit/bytes.ts";
import { LACKS_RANGES_MAX } from "./limits.ts";

const KIND_SEGMENT = 1;
const KIND_START = 2;
const KIND_LACKS = 3;
const START_VERSION = 1;
const LACKS_VERSION = 1;

export interface SegmentQuery {
  readonly first: number;
  readonly offsetBytes: number;
  readonly bytesMax: number;
}

/** Events, both ends included. */
export interface EventRange {
  readonly first: number;
  readonly last: number;
}

/** What one member lacks of the history, as far as that is known there. */
export interface Lacks {
  /** Everything up to this event was let go there. */
  readonly start: number;
  /** Of what comes after this event nothing is said: it is not applied there yet, or did not fit into the answer. */
  readonly reached: number;
  /** In order, and apart from each other. */
  readonly ranges: readonly EventRange[];
}

export type HistoryQuery =
  | ({ readonly kind: "segment" } & SegmentQuery)
  | { readonly kind: "start" }
  | { readonly kind: "lacks" };

export function encodeSegmentQuery({ first, offsetBytes, bytesMax }: SegmentQuery): Uint8Array {
  const writer = new ByteWriter(32);
  writer.u8(KIND_SEGMENT);
  writer.uint53(first);
  writer.u32(offsetBytes);
  writer.u32(bytesMax);
  return writer.finish();
}

export function encodeStartQuery(): Uint8Array {
  return Uint8Array.of(KIND_START);
}

export function encodeLacksQuery(): Uint8Array {
  return Uint8Array.of(KIND_LACKS);
}

/** Whether it has these events for sure, lacks some of them for sure, or neither can be said. */
export function holdingOf({ start, reached, ranges }: Lacks, { first, last }: EventRange): "has" | "lacks" | "unknown" {
  if (last <= start || overlapping(ranges, { first, last })) return "lacks";
  return last <= reached && first > start ? "has" : "unknown";
}

/** By halves: it is asked for every segment, of answers with thousands of ranges. */
function overlapping(ranges: readonly EventRange[], { first, last }: EventRange): boolean {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ranges[middle]!.last < first) low = middle + 1;
    else high = middle;
  }
  return low < ranges.length && ranges[low]!.first <= last;
}

/** Null where it asks for something else, or for nothing that can be read; a later release may ask for more. */
export function decodeHistoryQuery(bytes: Uint8Array): HistoryQuery | null {
  return readable(bytes, (reader) => {
    switch (reader.u8()) {
      case KIND_SEGMENT:
        return { kind: "segment", first: reader.uint53(), offsetBytes: reader.u32(), bytesMax: reader.u32() };
      case KIND_START:
        return { kind: "start" };
      case KIND_LACKS:
        return { kind: "lacks" };
      default:
        return null;
    }
  });
}

export function encodeStart(sequence: number): Uint8Array {
  const writer = new ByteWriter(16);
  writer.u8(START_VERSION);
  writer.uint53(sequence);
  return writer.finish();
}

/** Null where it is no such answer. */
export function decodeStart(bytes: Uint8Array): number | null {
  return readable(bytes, (reader) => (reader.u8() === START_VERSION ? reader.uint53() : null));
}

export function encodeLacks({ start, reached, ranges }: Lacks): Uint8Array {
  const told = ranges.slice(0, LACKS_RANGES_MAX);
  const writer = new ByteWriter(64);
  writer.u8(LACKS_VERSION);
  writer.uint53(start);
  writer.uint53(Math.min(reached, (ranges[LACKS_RANGES_MAX]?.first ?? Infinity) - 1));
  writer.u32(told.length);
  for (const { first, last } of told) {
    writer.uint53(first);
    writer.uint53(last);
  }
  return writer.finish();
}

/** Null where it is no such answer. */
export function decodeLacks(bytes: Uint8Array): Lacks | null {
  return readable(bytes, (reader) => {
    if (reader.u8() !== LACKS_VERSION) return null;
    const [start, reached, count] = [reader.uint53(), reader.uint53(), reader.u32()];
    if (count > LACKS_RANGES_MAX) return null;
    const ranges = Array.from({ length: count }, () => ({ first: reader.uint53(), last: reader.uint53() }));
    const isInOrder = ranges.every(({ first, last }, i) => first <= last && (i === 0 || ranges[i - 1]!.last < first));
    return isInOrder ? { start, reached, ranges } : null;
  });
}

/** Segments that follow each other as one range. */
export function rangesOf(segments: readonly EventRange[]): EventRange[] {
  const ranges: { first: number; last: number }[] = [];
  for (const { first, last } of segments) {
    const before = ranges.at(-1);
    if (before?.last === first - 1) before.last = last;
    else ranges.push({ first, last });
  }
  return ranges;
}

function readable<T>(bytes: Uint8Array, read: (reader: ByteReader) => T): T | null {
  return decoded(
    () => read(new ByteReader(bytes)),
    () => null,
  );
}
