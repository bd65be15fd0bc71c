// Large states as pieces of bytes, one behind the other. Each layer around a state adds a piece in front; the whole is put
// together once, by whoever writes it down, and slice by slice: copying a hundred megabytes at each layer would keep the
// consensus thread busy for half a second (design D10).

import { ByteWriter } from "./bytes.ts";

export type Pieces = readonly Uint8Array[];

/** At most so much is copied between two yields. */
const JOIN_SLICE_BYTES = 1024 * 1024;
const LENGTH_BYTES = 4;

export function piecesOf(data: Uint8Array | Pieces): Pieces {
  return data instanceof Uint8Array ? [data] : data;
}

export function lengthOf(pieces: Pieces): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** As `ByteWriter.bytes` writes one piece, behind what stands before it. */
export function withLength(pieces: Pieces): Pieces {
  const writer = new ByteWriter(LENGTH_BYTES);
  writer.u32(lengthOf(pieces));
  return [writer.finish(), ...pieces];
}

/** In one piece, without a copy where it is one. */
export function wholeOf(data: Uint8Array | Pieces): Uint8Array {
  const slices = wholeInSlices(data);
  for (;;) {
    const step = slices.next();
    if (step.done === true) return step.value;
  }
}

/** The same, slice by slice. */
export function* wholeInSlices(data: Uint8Array | Pieces): Generator<void, Uint8Array, void> {
  if (data instanceof Uint8Array) return data;
  if (data.length === 1) return data[0]!;
  const whole = new Uint8Array(lengthOf(data));
  let at = 0;
  let copiedBytes = 0;
  for (const piece of data) {
    for (let from = 0; from < piece.length; from += JOIN_SLICE_BYTES) {
      const part = piece.subarray(from, from + JOIN_SLICE_BYTES);
      whole.set(part, at);
      at += part.length;
      copiedBytes += part.length;
      if (copiedBytes < JOIN_SLICE_BYTES) continue;
      copiedBytes = 0;
      yield;
    }
  }
  return whole;
}
