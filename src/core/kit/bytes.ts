// Binary fields, big-endian, without reflection: what the wire and the write-ahead log are made of.
//
// Invariants:
// - One value has one encoding, so equal records are equal bytes.
// - The writer's mistakes are ours and are asserted; the reader's are the world's and throw a
//   DecodeError, which the decode function above it turns into a refusal. Nothing else is thrown.
// - A length is checked against its bound and against the bytes at hand before anything is built from
//   it, so four forged bytes never allocate gigabytes.
//
// Integers are eight fixed bytes, not varints: no loop, no second encoding of the same number, and the
// seven bytes that a varint would save are little next to an entry's data.

import { assert } from "./assert.ts";
import { INTEGER_MAX, RECENT_TEXTS_KEPT, RECENT_TEXT_BYTES_MAX } from "./limits.ts";

const U32_SPAN = 2 ** 32;

// The same few names come in every message. A name seen before is returned as the string it was then,
// which costs a comparison instead of building one. It can't be observed: equal strings are equal.
const recentTexts: (string | undefined)[] = new Array<string | undefined>(RECENT_TEXTS_KEPT).fill(undefined);

const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** `truncated`: more bytes were promised than came. `wild`: an integer above 2^53−1 (trap 31). */
export type DecodeReason = "truncated" | "malformed" | "wild";

export class DecodeError extends Error {
  readonly reason: DecodeReason;

  constructor(reason: DecodeReason, detail: string) {
    super(`${reason}: ${detail}`);
    this.name = "DecodeError";
    this.reason = reason;
  }
}

/** What `read` returns, or what `refused` makes of bytes that make no sense. */
export function decoded<T, Refused>(read: () => T, refused: (error: DecodeError) => Refused): T | Refused {
  try {
    return read();
  } catch (error) {
    if (error instanceof DecodeError) return refused(error);
    throw error;
  }
}

/**
 * Grows as needed; a good `capacityBytes` saves the copying. One writer may write many records into one
 * buffer: allocating a buffer for each took two thirds of the time that a heartbeat needs to be encoded.
 */
export class ByteWriter {
  readonly #capacityBytes: number;
  #buffer: Uint8Array;
  /** The record being written is [start, end); what is before it was handed out and is never touched. */
  #start = 0;
  #end = 0;

  constructor(capacityBytes = 128) {
    this.#capacityBytes = capacityBytes;
    this.#buffer = new Uint8Array(capacityBytes);
  }

  get lengthBytes(): number {
    return this.#end - this.#start;
  }

  /** Drops what was written since the last `finish`, and makes room for a record of about this size. */
  begin(sizeBytes: number): void {
    this.#end = this.#start;
    if (sizeBytes > this.#buffer.length - this.#start) this.#grow(sizeBytes);
  }

  /** Hands the record over without copying it. The next one is written after it. */
  finish(): Uint8Array {
    const record = this.#buffer.subarray(this.#start, this.#end);
    this.#start = this.#end;
    return record;
  }

  /** The same, but the next one is written over it: whoever wants to keep it copies it. */
  lend(): Uint8Array {
    const record = this.#buffer.subarray(this.#start, this.#end);
    this.#start = 0;
    this.#end = 0;
    return record;
  }

  u8(value: number): void {
    assert(value >>> 0 === value && value <= 0xff, "u8 is in range", () => String(value));
    const at = this.#reserve(1);
    this.#buffer[at] = value;
  }

  bool(value: boolean): void {
    const at = this.#reserve(1);
    this.#buffer[at] = value ? 1 : 0;
  }

  u32(value: number): void {
    assert(value >>> 0 === value, "u32 is in range", () => String(value));
    this.#putU32(this.#reserve(4), value);
  }

  uint53(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, "uint53 is in range", () => String(value));
    const at = this.#reserve(8);
    this.#putU32(at, Math.floor(value / U32_SPAN));
    this.#putU32(at + 4, value >>> 0);
  }

  bytes(value: Uint8Array): void {
    this.u32(value.length);
    const at = this.#reserve(value.length);
    this.#buffer.set(value, at);
  }

  text(value: string): void {
    // Names are ASCII and short: written in place, they cost no array of their own.
    const at = this.#reserve(4 + value.length);
    const buffer = this.#buffer;
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) {
        this.#end = at;
        this.#wideText(value);
        return;
      }
      buffer[at + 4 + i] = code;
    }
    this.#putU32(at, value.length);
  }

  #wideText(value: string): void {
    // The encoder would replace a lone surrogate, and other text than was written would be read.
    assert(value.isWellFormed(), "text is well-formed", () => JSON.stringify(value));
    this.bytes(textEncoder.encode(value));
  }

  #putU32(at: number, value: number): void {
    const buffer = this.#buffer;
    buffer[at] = value >>> 24;
    buffer[at + 1] = value >>> 16;
    buffer[at + 2] = value >>> 8;
    buffer[at + 3] = value;
  }

  /** Makes room and returns where it starts. */
  #reserve(sizeBytes: number): number {
    if (sizeBytes > this.#buffer.length - this.#end) this.#grow(2 * (this.lengthBytes + sizeBytes));
    const at = this.#end;
    this.#end = at + sizeBytes;
    return at;
  }

  #grow(sizeBytes: number): void {
    const grown = new Uint8Array(Math.max(sizeBytes, this.#capacityBytes));
    grown.set(this.#buffer.subarray(this.#start, this.#end));
    this.#end -= this.#start;
    this.#start = 0;
    this.#buffer = grown;
  }
}

/** Every method throws a DecodeError where the bytes do not hold such a field. */
export class ByteReader {
  readonly #buffer: Uint8Array;
  readonly #end: number;
  #at: number;

  /** Reads [start, end) of the buffer, so that a record in the middle of a file needs no view of its own. */
  constructor(buffer: Uint8Array, start = 0, end = buffer.length) {
    assert(start >= 0 && start <= end && end <= buffer.length, "a reader stays inside its buffer");
    this.#buffer = buffer;
    this.#at = start;
    this.#end = end;
  }

  get remainingBytes(): number {
    return this.#end - this.#at;
  }

  u8(): number {
    return this.#byteAt(this.#take(1));
  }

  bool(): boolean {
    const value = this.u8();
    if (value > 1) throw new DecodeError("malformed", `a truth value of ${value}`);
    return value === 1;
  }

  u32(): number {
    return this.#u32At(this.#take(4));
  }

  uint53(): number {
    const at = this.#take(8);
    const value = this.#u32At(at) * U32_SPAN + this.#u32At(at + 4);
    if (value > INTEGER_MAX) throw new DecodeError("wild", "an integer above 2^53-1");
    return value;
  }

  /**
   * A view, not a copy: it keeps the whole buffer alive, and nobody may write to that buffer again. `toTheEnd`: a length that
   * stands for all that is left.
   */
  bytes(bytesMax: number, toTheEnd?: number): Uint8Array {
    const length = this.#lengthUpTo(bytesMax, toTheEnd);
    const at = this.#take(length);
    return this.#buffer.subarray(at, at + length);
  }

  /** All that is left, as a view. */
  rest(): Uint8Array {
    const length = this.remainingBytes;
    const at = this.#take(length);
    return this.#buffer.subarray(at, at + length);
  }

  text(bytesMax: number): string {
    const length = this.#lengthUpTo(bytesMax);
    const at = this.#take(length);
    let hash = length;
    for (let i = at; i < at + length; i++) {
      const code = this.#byteAt(i);
      if (code > 0x7f) return decodeWideText(this.#buffer.subarray(at, at + length));
      hash = (Math.imul(hash, 31) + code) | 0;
    }
    const slot = (hash ^ (hash >>> 15)) & (RECENT_TEXTS_KEPT - 1);
    const recent = recentTexts[slot];
    if (recent !== undefined && this.#holds(at, length, recent)) return recent;
    return this.#asciiText(at, length, slot);
  }

  #holds(at: number, length: number, text: string): boolean {
    if (text.length !== length) return false;
    for (let i = 0; i < length; i++) if (this.#byteAt(at + i) !== text.charCodeAt(i)) return false;
    return true;
  }

  #asciiText(at: number, length: number, slot: number): string {
    let text = "";
    let i = at;
    // Eight at once: a text that is put together letter by letter is a chain of as many objects until it is used.
    for (; i + 8 <= at + length; i += 8) {
      const [b0, b1, b2, b3] = [this.#byteAt(i), this.#byteAt(i + 1), this.#byteAt(i + 2), this.#byteAt(i + 3)];
      const [b4, b5, b6, b7] = [this.#byteAt(i + 4), this.#byteAt(i + 5), this.#byteAt(i + 6), this.#byteAt(i + 7)];
      text += String.fromCharCode(b0, b1, b2, b3, b4, b5, b6, b7);
    }
    for (; i < at + length; i++) text += String.fromCharCode(this.#byteAt(i));
    if (length <= RECENT_TEXT_BYTES_MAX) recentTexts[slot] = text;
    return text;
  }

  #lengthUpTo(bytesMax: number, toTheEnd?: number): number {
    const said = this.u32();
    const length = said === toTheEnd ? this.remainingBytes : said;
    if (length > bytesMax) throw new DecodeError("malformed", `${length} bytes where ${bytesMax} are allowed`);
    return length;
  }

  /** Moves past `sizeBytes` and returns where they start. */
  #take(sizeBytes: number): number {
    const at = this.#at;
    if (sizeBytes > this.#end - at) {
      throw new DecodeError("truncated", `${sizeBytes} bytes wanted at ${at} of ${this.#end}`);
    }
    this.#at = at + sizeBytes;
    return at;
  }

  #byteAt(at: number): number {
    return this.#buffer[at] as number;
  }

  #u32At(at: number): number {
    const buffer = this.#buffer;
    const low = ((buffer[at + 1] as number) << 16) | ((buffer[at + 2] as number) << 8) | (buffer[at + 3] as number);
    return (buffer[at] as number) * 0x1000000 + low;
  }
}

/** The same bytes with one byte in front, by which a machine hands an entry on to one inside of it: one less fits. */
export function tagged(data: Uint8Array, tag: number): Uint8Array {
  const entry = new Uint8Array(1 + data.length);
  entry[0] = tag;
  entry.set(data, 1);
  return entry;
}

function decodeWideText(bytes: Uint8Array): string {
  try {
    return textDecoder.decode(bytes);
  } catch {
    throw new DecodeError("malformed", "text is not UTF-8");
  }
}
