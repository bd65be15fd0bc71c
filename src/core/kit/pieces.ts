// Large states as pieces of bytes, one behind the other, made as they are asked for: whoever writes a state down takes a piece,
// writes it, and asks for the next one. So a state of hundreds of megabytes is never in memory a second time, and never takes
// the consensus thread for longer than one piece (design D10).
//
// A part stands behind its length. How long one will be that is still being made nobody knows: it is the last one, and is said
// to reach to the end.
//
// Invariants:
// - A piece is good until the next one is asked for: its memory is used again.
// - What is begun is taken to its end, or let go of: it may hold on to something.

import { assert } from "./assert.ts";
import { type ByteReader, ByteWriter } from "./bytes.ts";

export type Pieces = Iterable<Uint8Array>;

const LENGTH_BYTES = 4;
const TO_THE_END = 0xffffffff;

export function piecesOf(data: Uint8Array | Pieces): Pieces {
  return data instanceof Uint8Array ? [data] : data;
}

/** One behind the other. */
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

/** One behind the other, each to be read again with `readPart`. Only the last one may be in pieces that are yet to be made. */
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

/** A view, as `ByteReader.bytes` gives it. */
export function readPart(reader: ByteReader, bytesMax: number): Uint8Array {
  return reader.bytes(bytesMax, TO_THE_END);
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
