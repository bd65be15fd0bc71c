// Fields that several records of the archive share. The order in which they are written is the format.

import { ByteReader, DecodeError, type ByteWriter } from "../kit/bytes.ts";
import type { ChainPoint } from "./chain.ts";
import { FRONTIER_BYTES_MAX, TIMESTAMP_DIGITS_MAX } from "./limits.ts";

const SUM_BYTES = 32;
const HASH_DIGITS = 64;
const HASH_PATTERN = /^[0-9a-f]{64}$/;

/** A SHA-256 of ours. */
export function writeSum(writer: ByteWriter, sum: Uint8Array): void {
  writer.bytes(sum);
}

/** A copy: it outlives the file that it was read from. */
export function readSum(reader: ByteReader): Uint8Array {
  const sum = reader.bytes(SUM_BYTES);
  if (sum.length !== SUM_BYTES) throw new DecodeError("malformed", `a hash of ${sum.length} bytes`);
  return sum.slice();
}

/** An event's hash, as it is in the events. */
export function writeHash(writer: ByteWriter, hash: string): void {
  writer.text(hash);
}

export function readHash(reader: ByteReader): string {
  const hash = reader.text(HASH_DIGITS);
  if (!HASH_PATTERN.test(hash)) throw new DecodeError("malformed", "an event's hash is not one");
  return hash;
}

export function writePoint(writer: ByteWriter, point: ChainPoint): void {
  writer.uint53(point.sequence);
  writer.bool(point.hash !== null);
  if (point.hash !== null) writeHash(writer, point.hash);
  // A timestamp has microseconds as its fraction.
  writer.text(String(point.timestamp));
  writer.bytes(point.frontier);
}

export function readPoint(reader: ByteReader): ChainPoint {
  const sequence = reader.uint53();
  const hash = reader.bool() ? readHash(reader) : null;
  if ((hash === null) !== (sequence === 0)) throw new DecodeError("malformed", "only the start has no hash");
  const text = reader.text(TIMESTAMP_DIGITS_MAX);
  const timestamp = Number(text);
  if (!(timestamp >= 0) || String(timestamp) !== text) throw new DecodeError("malformed", "a timestamp is no number");
  // A copy, as all of it: a point outlives the file that it was read from.
  const frontier = reader.bytes(FRONTIER_BYTES_MAX).slice();
  return { sequence, hash, timestamp, frontier };
}

/** Runs `read` over [start, end), all of it; a text says why these bytes are no such record. */
export function decode<T>(
  bytes: Uint8Array,
  start: number,
  end: number,
  read: (reader: ByteReader) => T,
): { readonly value: T } | string {
  try {
    const reader = new ByteReader(bytes, start, end);
    const value = read(reader);
    return reader.remainingBytes === 0 ? { value } : "bytes follow a record";
  } catch (error) {
    if (error instanceof DecodeError) return error.message;
    throw error;
  }
}

export function u32At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! * 0x1000000 + ((bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!)) >>> 0;
}

export function putU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}
