// Large states as pieces of bytes, one after the other, made as they are asked for: whoever writes a state down takes a piece,
// writes it, and asks for the next one. So a state of hundreds of megabytes is never in memory a second time, and never takes
// the consensus thread for longer than one piece (design D10).
//
// A part is after its length. How long one will be that is still being made nobody knows: it is the last one, and is said
// to reach to the end. Where several are still being made, all lengths follow the last of them (`measuredParts`).
//
// Invariants:
// - A piece is good until the next one is asked for: its memory is used again.
// - What is begun is taken to its end, or released: it may hold on to something.

import { assert } from "./assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "./bytes.ts";

export type Pieces = Iterable<Uint8Array>;

const LENGTH_BYTES = 4;
const TO_THE_END = 0xffffffff;

export function piecesOf(data: Uint8Array | Pieces): Pieces {
  return data instanceof Uint8Array ? [data] : data;
}

/** One after the other. */
export function joined(...parts: readonly (Uint8Array | Pieces)[]): Pieces {
  return new Joined(parts.map((part) => piecesOf(part)[Symbol.iterator]()));
}

/** The first piece is made now, which fixes what the others are of. */
export function begun(pieces: Generator<Uint8Array, void, void>): Pieces {
  const first = pieces.next();
  return first.done === true ? [] : joined(first.value, pieces);
}

/** Whoever does not want the rest of them. */
export function letGo(data: Uint8Array | Pieces): void {
  if (!(data instanceof Uint8Array)) data[Symbol.iterator]().return?.();
}

/** In one piece, without a copy where it is one. */
export function wholeOf(data: Uint8Array | Pieces): Uint8Array {
  if (data instanceof Uint8Array) return data;
  const copies = Array.from(data, (piece) => piece.slice());
  const whole = new Uint8Array(lengthOf(copies));
  let at = 0;
  for (const piece of copies) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Of all of them together. */
export function lengthOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** One after the other, each to be read again with `readPart`. Only the last one may be in pieces that are yet to be made. */
export function partsOf(parts: readonly (Uint8Array | readonly Uint8Array[] | Pieces)[]): Pieces {
  return joined(
    ...parts.flatMap((part, at) => {
      const made = part instanceof Uint8Array ? [part] : part;
      assert(Array.isArray(made) || at === parts.length - 1, "only the last part has no length");
      const writer = new ByteWriter(LENGTH_BYTES);
      writer.u32(Array.isArray(made) ? lengthOf(made as readonly Uint8Array[]) : TO_THE_END);
      return [writer.finish(), made];
    }),
  );
}

/**
 * One after the other, where any of them may be in pieces that are yet to be made: their lengths follow the last one, when they are
 * known.
 */
export function measuredParts(parts: readonly (Uint8Array | Pieces)[]): Pieces {
  const counted = parts.map((part) => new Counted(piecesOf(part)[Symbol.iterator]()));
  return joined(...counted, new Later(() => lengthsOf(counted)));
}

function lengthsOf(counted: readonly Counted[]): Uint8Array {
  const writer = new ByteWriter(LENGTH_BYTES * counted.length);
  for (const { bytes } of counted) writer.u32(bytes);
  return writer.finish();
}

/** So many parts that `measuredParts` has written, which reach to the end of the reader. Views. */
export function readMeasured(reader: ByteReader, count: number): Uint8Array[] {
  const all = reader.rest();
  const bytes = all.length - LENGTH_BYTES * count;
  if (bytes < 0) throw new DecodeError("truncated", `the lengths of ${count} parts are not there`);
  const lengths = new ByteReader(all, bytes);
  const parts: Uint8Array[] = [];
  let at = 0;
  for (let part = 0; part < count; part++) {
    const length = lengths.u32();
    if (length > bytes - at) throw new DecodeError("truncated", `a part of ${length} bytes`);
    parts.push(all.subarray(at, at + length));
    at += length;
  }
  if (at < bytes) throw new DecodeError("malformed", `${bytes - at} bytes belong to no part`);
  return parts;
}

/** A view, as `ByteReader.bytes` gives it. */
export function readPart(reader: ByteReader, bytesMax: number): Uint8Array {
  return reader.bytes(bytesMax, TO_THE_END);
}

/** Counts what has gone through. */
class Counted implements IterableIterator<Uint8Array> {
  bytes = 0;
  readonly #pieces: Iterator<Uint8Array>;

  constructor(pieces: Iterator<Uint8Array>) {
    this.#pieces = pieces;
  }

  next(): IteratorResult<Uint8Array, undefined> {
    const step = this.#pieces.next();
    if (step.done === true) return { done: true, value: undefined };
    this.bytes += step.value.length;
    return step;
  }

  return(): IteratorResult<Uint8Array, undefined> {
    this.#pieces.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.iterator](): this {
    return this;
  }
}

/** One piece, made when it is asked for. */
class Later implements IterableIterator<Uint8Array> {
  #make: (() => Uint8Array) | null;

  constructor(make: () => Uint8Array) {
    this.#make = make;
  }

  next(): IteratorResult<Uint8Array, undefined> {
    const make = this.#make;
    this.#make = null;
    return make === null ? { done: true, value: undefined } : { done: false, value: make() };
  }

  [Symbol.iterator](): this {
    return this;
  }
}

class Joined implements IterableIterator<Uint8Array> {
  readonly #parts: Iterator<Uint8Array>[];

  constructor(parts: Iterator<Uint8Array>[]) {
    this.#parts = parts;
  }

  next(): IteratorResult<Uint8Array, undefined> {
    for (;;) {
      const [first] = this.#parts;
      if (first === undefined) return { done: true, value: undefined };
      const step = first.next();
      if (step.done !== true) return step;
      this.#parts.shift();
    }
  }

  return(): IteratorResult<Uint8Array, undefined> {
    for (const part of this.#parts.splice(0)) part.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.iterator](): this {
    return this;
  }
}
