import { expect, it } from "vitest";
import { bundled } from "./bundles.ts";

const bundlesOf = (pieces: readonly number[][], bytesMax: number): [number[], boolean][] =>
  Array.from(
    bundled(
      pieces.map((piece) => Uint8Array.from(piece)),
      bytesMax,
    ),
    ({ data, isLast }) => [[...data], isLast],
  );

it("bundles cover all bytes in order, whatever the pieces are, and the last one says so", () => {
  for (const pieces of [[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]], [[0], [1, 2, 3, 4], [], [5, 6, 7, 8, 9]]]) {
    expect(bundlesOf(pieces, 4)).toEqual([
      [[0, 1, 2, 3], false],
      [[4, 5, 6, 7], false],
      [[8, 9], true],
    ]);
    expect(bundlesOf(pieces, 5)).toEqual([
      [[0, 1, 2, 3, 4], false],
      [[5, 6, 7, 8, 9], true],
    ]);
  }
});

it("nothing is one empty bundle", () => {
  for (const pieces of [[], [[]]]) expect(bundlesOf(pieces, 4)).toEqual([[[], true]]);
});

it("whoever gives up lets go of what is being made", () => {
  let isHeld = true;
  const made = function* (): Generator<Uint8Array, void, void> {
    try {
      for (;;) yield new Uint8Array(3);
    } finally {
      isHeld = false;
    }
  };
  for (const { data } of bundled(made(), 4)) if (data.length === 4) break;
  expect(isHeld).toBe(false);
});
