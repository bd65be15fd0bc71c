// Fields that the bytes of transactions are made of.

import { type ByteReader, type ByteWriter, DecodeError } from "../../kit/bytes.ts";
import { isTxnId } from "../id.ts";
import type { BackendHash } from "../model.ts";

const HEX = 16;
const WORD_DIGITS = 8;
const HASH_DIGITS = 64;

/** Of a form that a later release has written: others have applied it, and whoever passed over it would have another state. */
export class LaterForm extends Error {}

export function writeOptional<T>(writer: ByteWriter, value: T | null, write: (value: T) => void): void {
  writer.bool(value !== null);
  if (value !== null) write(value);
}

export function readOptional<T>(reader: ByteReader, read: () => T): T | null {
  return reader.bool() ? read() : null;
}

/** One after the other, with their number in front: at most 255. */
export function writeList<T>(writer: ByteWriter, items: readonly T[], write: (item: T) => void): void {
  writer.u8(items.length);
  for (const item of items) write(item);
}

export function readList<T>(reader: ByteReader, max: number, read: () => T): readonly T[] {
  const count = reader.u8();
  if (count > max) throw new DecodeError("malformed", `${count} where ${max} are allowed`);
  return Array.from({ length: count }, read);
}

/** 32 bytes. */
export function writeHash(writer: ByteWriter, hash: BackendHash): void {
  writeHex(writer, hash);
}

export function readHash(reader: ByteReader): BackendHash {
  return readHex(reader, HASH_DIGITS);
}

/** 16 bytes. */
export function writeId(writer: ByteWriter, id: string): void {
  writeHex(writer, id.slice(0, 8) + id.slice(9, 13) + id.slice(14, 18) + id.slice(19, 23) + id.slice(24));
}

export function readId(reader: ByteReader): string {
  const hex = readHex(reader, HASH_DIGITS / 2);
  const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  if (!isTxnId(id)) throw new DecodeError("malformed", `${hex} is no id of a transaction`);
  return id;
}

/** Those of islands, in order, each once. */
export function readIslands(reader: ByteReader, max: number): readonly BackendHash[] {
  const islands = readList(reader, max, () => readHash(reader));
  if (islands.some((one, at) => at > 0 && one <= islands[at - 1]!))
    throw new DecodeError("malformed", "islands out of order");
  return islands;
}

function writeHex(writer: ByteWriter, hex: string): void {
  for (let at = 0; at < hex.length; at += WORD_DIGITS)
    writer.u32(Number.parseInt(hex.slice(at, at + WORD_DIGITS), HEX));
}

function readHex(reader: ByteReader, digits: number): string {
  let hex = "";
  for (let at = 0; at < digits; at += WORD_DIGITS) hex += reader.u32().toString(HEX).padStart(WORD_DIGITS, "0");
  return hex;
}
