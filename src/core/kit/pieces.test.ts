import { describe, expect, it } from "vitest";
import { ByteReader, DecodeError } from "./bytes.ts";
import { begun, joined, letGo, measuredParts, partsOf, readMeasured, readPart, wholeOf } from "./pieces.ts";

/** Three of them, in memory that is used again; says when it is over. */
function* made(told: { isHeld: boolean; steps: number }): Generator<Uint8Array, void, void> {
  const memory = new Uint8Array(2);
  told.isHeld = true;
  try {
    for (let step = 1; step <= 3; step++) {
      told.steps = step;
      yield memory.fill(step);
    }
  } finally {
    told.isHeld = false;
  }
}

describe("pieces", () => {
  it("are one behind the other; what is whole is not copied", () => {
    const one = Uint8Array.of(1, 2);
    expect(wholeOf(one)).toBe(one);
    expect(wholeOf([one, new Uint8Array(0), Uint8Array.of(3)])).toEqual(Uint8Array.of(1, 2, 3));
    expect(wholeOf([])).toEqual(new Uint8Array(0));
    expect(wholeOf(joined(one, [], [one, one], new Uint8Array(0)))).toEqual(Uint8Array.of(1, 2, 1, 2, 1, 2));
  });

  it("are made when they are asked for, but for the first, and each is good until the next", () => {
    const told = { isHeld: false, steps: 0 };
    const pieces = begun(made(told));
    expect(told).toEqual({ isHeld: true, steps: 1 });
    expect(wholeOf(pieces)).toEqual(Uint8Array.of(1, 1, 2, 2, 3, 3));
    expect(told).toEqual({ isHeld: false, steps: 3 });
    expect(wholeOf(begun(made(told)))).toEqual(Uint8Array.of(1, 1, 2, 2, 3, 3));
  });

  it("hold on to nothing once they are let go of, whether any was taken or none", () => {
    for (const taken of [0, 1, 2]) {
      const told = { isHeld: false, steps: 0 };
      const pieces = joined(Uint8Array.of(9), partsOf([begun(made(told))]));
      const steps = pieces[Symbol.iterator]();
      for (let at = 0; at < taken; at++) steps.next();
      expect(told.isHeld).toBe(true);
      letGo(pieces);
      expect(told.isHeld).toBe(false);
      expect(steps.next().done).toBe(true);
    }
    letGo(Uint8Array.of(1));
    letGo([Uint8Array.of(1)]);
  });
});

describe("parts", () => {
  it("are read again as they were; of the last one nobody knew the length", () => {
    const told = { isHeld: false, steps: 0 };
    const reader = new ByteReader(wholeOf(partsOf([Uint8Array.of(7), new Uint8Array(0), begun(made(told))])));
    expect(readPart(reader, 1)).toEqual(Uint8Array.of(7));
    expect(readPart(reader, 1)).toEqual(new Uint8Array(0));
    expect(readPart(reader, 6)).toEqual(Uint8Array.of(1, 1, 2, 2, 3, 3));
    expect(reader.remainingBytes).toBe(0);
  });

  it("above their bound are refused, whether they say their length or reach to the end", () => {
    const pieces = [Uint8Array.of(1), Uint8Array.of(2)];
    for (const last of [Uint8Array.of(1, 2), pieces, joined(...pieces)]) {
      const bytes = wholeOf(partsOf([last]));
      expect(readPart(new ByteReader(bytes), 2)).toEqual(Uint8Array.of(1, 2));
      expect(() => readPart(new ByteReader(bytes), 1)).toThrow(DecodeError);
    }
  });

  it("in pieces that are all there say their length, wherever they are", () => {
    const reader = new ByteReader(wholeOf(partsOf([[Uint8Array.of(1), Uint8Array.of(2, 3)], Uint8Array.of(4)])));
    expect(readPart(reader, 3)).toEqual(Uint8Array.of(1, 2, 3));
    expect(readPart(reader, 1)).toEqual(Uint8Array.of(4));
  });

  it("of which one that is still being made is not the last are our own mistake", () => {
    expect(() => partsOf([joined(Uint8Array.of(1)), Uint8Array.of(2)])).toThrow(/only the last part/);
  });
});

describe("parts whose lengths follow them", () => {
  it("may all be in pieces that are yet to be made, and are read as views", () => {
    const told = { isHeld: false, steps: 0 };
    const pieces = measuredParts([Uint8Array.of(7), begun(made(told)), [], begun(made({ isHeld: false, steps: 0 }))]);
    expect(told.steps).toBe(1);
    const whole = wholeOf(pieces);
    const parts = readMeasured(new ByteReader(whole), 4);
    expect(parts.map((part) => [...part])).toEqual([[7], [1, 1, 2, 2, 3, 3], [], [1, 1, 2, 2, 3, 3]]);
    expect(parts[1]!.buffer).toBe(whole.buffer);
    expect(readMeasured(new ByteReader(wholeOf(measuredParts([]))), 0)).toEqual([]);
  });

  it("hold on to nothing once they are let go of", () => {
    const told = [0, 1].map(() => ({ isHeld: false, steps: 0 }));
    const pieces = measuredParts(told.map((one) => begun(made(one))));
    pieces[Symbol.iterator]().next();
    letGo(pieces);
    expect(told.map(({ isHeld }) => isHeld)).toEqual([false, false]);
  });

  it("are refused where lengths and bytes do not fit", () => {
    const whole = wholeOf(measuredParts([Uint8Array.of(1, 2), Uint8Array.of(3)]));
    const bad = [whole.subarray(1), whole.subarray(0, 7), whole.with(6, 1), whole.with(10, 0), whole.with(10, 9)];
    for (const bytes of bad) expect(() => readMeasured(new ByteReader(bytes), 2)).toThrow(DecodeError);
    expect(() => readMeasured(new ByteReader(whole), 1)).toThrow(DecodeError);
  });
});
