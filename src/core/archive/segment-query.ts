// How one node asks another about its history.
//
//   u8 1 | first sequence uint53 | offset in bytes u32 | most bytes u32     a piece of a segment's file; the answer is the piece
//   u8 2                                                                    where its history starts
//
// The answer to the second is u8 1 | start uint53: everything up to that event was let go there. A release that knows only
// the first one answers nothing.

import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";

const KIND_SEGMENT = 1;
const KIND_START = 2;
const START_VERSION = 1;

export interface SegmentQuery {
  readonly first: number;
  readonly offsetBytes: number;
  readonly bytesMax: number;
}

export type HistoryQuery = ({ readonly kind: "segment" } & SegmentQuery) | { readonly kind: "start" };

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

/** Null where it asks for something else, or for nothing that can be read; a later release may ask for more. */
export function decodeHistoryQuery(bytes: Uint8Array): HistoryQuery | null {
  return readable(bytes, (reader) => {
    switch (reader.u8()) {
      case KIND_SEGMENT:
        return { kind: "segment", first: reader.uint53(), offsetBytes: reader.u32(), bytesMax: reader.u32() };
      case KIND_START:
        return { kind: "start" };
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

function readable<T>(bytes: Uint8Array, read: (reader: ByteReader) => T): T | null {
  try {
    return read(new ByteReader(bytes));
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}
