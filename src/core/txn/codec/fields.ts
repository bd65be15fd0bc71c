// Fields that the bytes of transactions are made of.

import { type ByteReader, type ByteWriter, DecodeError } from "../../kit/bytes.ts";
import { RECENT_ISLANDS_KEPT } from "../limits.ts";
import type { BackendHash } from "../model.ts";

const WORD_DIGITS = 8;
const HASH_DIGITS = 64;
const HALF_SPAN = 0x1_0000;
const DIGITS = "0123456789abcdef";
const ZERO = 0x30;
const NINE = 0x39;
/** The letter a, less ten. */
const TEN_AS_LETTER = 0x57;
const VERSION_BITS = 0xf000;
const VERSION_7 = 0x7000;
const VARIANT = 2;
const WORDS_OF_HASH = HASH_DIGITS / WORD_DIGITS;
const hashCodes = new Array<number>(HASH_DIGITS).fill(ZERO);
const islandWords = new Array<number>(WORDS_OF_HASH).fill(0);
const writtenIslands = new Map<BackendHash, readonly number[]>();
const readIslandsKept = new Array<{ readonly words: readonly number[]; readonly island: BackendHash } | undefined>(
  RECENT_ISLANDS_KEPT,
).fill(undefined);
/** With its hyphens. */
const idCodes = Array.from("00000000-0000-0000-0000-000000000000", (letter) => letter.charCodeAt(0));

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
export function writeHash(writer: ByteWriter, hash: string): void {
  for (let at = 0; at < HASH_DIGITS; at += WORD_DIGITS) writer.u32(wordAt(hash, at));
}

export function readHash(reader: ByteReader): string {
  for (let at = 0; at < HASH_DIGITS; at += WORD_DIGITS) putWord(hashCodes, at, reader.u32());
  return String.fromCharCode(...hashCodes);
}

// Every record names islands, and there are few of them: one that was read or written lately is not converted again, and what is kept of many
// transactions names it with one string. It can't be observed: equal strings are equal.

/** As `writeHash`. */
export function writeIsland(writer: ByteWriter, island: BackendHash): void {
  let words = writtenIslands.get(island);
  if (words === undefined) {
    words = Array.from({ length: WORDS_OF_HASH }, (_, word) => wordAt(island, word * WORD_DIGITS));
    if (writtenIslands.size >= RECENT_ISLANDS_KEPT) writtenIslands.clear();
    writtenIslands.set(island, words);
  }
  for (const word of words) writer.u32(word);
}

/** As `readHash`. */
export function readIsland(reader: ByteReader): BackendHash {
  let slot = 0;
  for (let at = 0; at < WORDS_OF_HASH; at++) slot ^= islandWords[at] = reader.u32();
  const recent = readIslandsKept[(slot ^= slot >>> 16) & (RECENT_ISLANDS_KEPT - 1)];
  if (recent?.words.every((word, at) => word === islandWords[at]) === true) return recent.island;
  islandWords.forEach((word, at) => putWord(hashCodes, at * WORD_DIGITS, word));
  const island = String.fromCharCode(...hashCodes);
  readIslandsKept[slot & (RECENT_ISLANDS_KEPT - 1)] = { words: [...islandWords], island };
  return island;
}

/** 16 bytes. */
export function writeId(writer: ByteWriter, id: string): void {
  writer.u32(wordAt(id, 0));
  writer.u32(halfAt(id, 9) * HALF_SPAN + halfAt(id, 14));
  writer.u32(halfAt(id, 19) * HALF_SPAN + halfAt(id, 24));
  writer.u32(wordAt(id, 28));
}

export function readId(reader: ByteReader): string {
  const words = [reader.u32(), reader.u32(), reader.u32(), reader.u32()] as const;
  if ((words[1] & VERSION_BITS) !== VERSION_7 || words[2] >>> 30 !== VARIANT)
    throw new DecodeError("malformed", "an id that is no UUID of version 7");
  putWord(idCodes, 0, words[0]);
  putHalf(idCodes, 9, words[1] >>> 16);
  putHalf(idCodes, 14, words[1]);
  putHalf(idCodes, 19, words[2] >>> 16);
  putHalf(idCodes, 24, words[2]);
  putWord(idCodes, 28, words[3]);
  return String.fromCharCode(...idCodes);
}

/** Those of islands, in order, each once. */
export function readIslands(reader: ByteReader, max: number): readonly BackendHash[] {
  const islands = readList(reader, max, () => readIsland(reader));
  if (islands.some((one, at) => at > 0 && one <= islands[at - 1]!))
    throw new DecodeError("malformed", "islands out of order");
  return islands;
}

// Hexadecimal digits without a text for each of their parts: a record has some hundred of them.

function wordAt(hex: string, at: number): number {
  return halfAt(hex, at) * HALF_SPAN + halfAt(hex, at + 4);
}

function halfAt(hex: string, at: number): number {
  let half = 0;
  for (let place = at; place < at + 4; place++) half = 16 * half + digitOf(hex.charCodeAt(place));
  return half;
}

function digitOf(code: number): number {
  return code > NINE ? code - TEN_AS_LETTER : code - ZERO;
}

function putWord(codes: number[], at: number, word: number): void {
  putHalf(codes, at, word >>> 16);
  putHalf(codes, at + 4, word);
}

function putHalf(codes: number[], at: number, half: number): void {
  for (let place = 0; place < 4; place++) codes[at + place] = DIGITS.charCodeAt((half >>> (12 - 4 * place)) & 0xf);
}
