import { describe, expect, it } from "vitest";
import { ByteReader } from "./bytes.ts";
import { lengthOf, wholeInSlices, wholeOf, withLength } from "./pieces.ts";

const MIB = 1024 * 1024;

describe("pieces", () => {
  it("are one behind the other; a single one is not copied", () => {
    const one = Uint8Array.of(1, 2);
    expect(wholeOf(one)).toBe(one);
    expect(wholeOf([one])).toBe(one);
    expect(wholeOf([one, new Uint8Array(0), Uint8Array.of(3)])).toEqual(Uint8Array.of(1, 2, 3));
    expect(wholeOf([])).toEqual(new Uint8Array(0));
  });

  it("with their length are what a reader takes for one", () => {
    const pieces = withLength([Uint8Array.of(1, 2), Uint8Array.of(3)]);
    expect(lengthOf(pieces)).toBe(7);
    expect(new ByteReader(wholeOf(pieces)).bytes(3)).toEqual(Uint8Array.of(1, 2, 3));
  });

  it("D10: are put together a megabyte at a time, however large each of them is", () => {
    const pieces = [
      new Uint8Array(3 * MIB + 5).fill(1),
      ...Array.from({ length: 64 }, () => new Uint8Array(64 * 1024).fill(2)),
    ];
    const slices = wholeInSlices(pieces);
    let yields = 0;
    let step = slices.next();
    for (; step.done !== true; step = slices.next()) yields++;
    expect(yields).toBe(7);
    expect(step.value.length).toBe(lengthOf(pieces));
    expect([step.value[3 * MIB + 4], step.value[3 * MIB + 5], step.value.at(-1)]).toEqual([1, 2, 2]);
  });
});
