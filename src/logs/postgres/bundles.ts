// Pieces of any size as bundles of a bounded one, of which the last says that it is; nothing is one empty bundle.

import type { Pieces } from "../../core/kit/pieces.ts";

export interface Bundle {
  readonly data: Uint8Array;
  readonly isLast: boolean;
}

/** Each has memory of its own. */
export function* bundled(pieces: Pieces, bytesMax: number): Generator<Bundle, void, void> {
  let bundle = new Uint8Array(bytesMax);
  let bytes = 0;
  for (const piece of pieces) {
    for (let from = 0; from < piece.length;) {
      if (bytes === bytesMax) {
        yield { data: bundle, isLast: false };
        bundle = new Uint8Array(bytesMax);
        bytes = 0;
      }
      const taken = piece.subarray(from, from + bytesMax - bytes);
      bundle.set(taken, bytes);
      bytes += taken.length;
      from += taken.length;
    }
  }
  yield { data: bundle.subarray(0, bytes), isLast: true };
}
