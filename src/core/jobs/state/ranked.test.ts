import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ranked } from "./ranked.ts";

describe("a ranked list", () => {
  it("is a sorted list, whatever is added and removed, in whatever order, also past many chunks", () => {
    const values = fc.uniqueArray(fc.integer({ min: 0, max: 5_000 }), {
      minLength: 600,
      maxLength: 1_500,
      size: "max",
    });
    fc.assert(
      fc.property(values, fc.boolean(), (items, areSorted) => {
        const ranked = new Ranked<number>((one, other) => one - other);
        if (areSorted) items.sort((one, other) => one - other);
        for (const item of items) ranked.add(item);
        const gone = items.filter((item) => item % 3 > 0);
        for (const item of gone) ranked.remove(item);
        const left = items.filter((item) => item % 3 === 0).sort((one, other) => one - other);
        expect([...ranked]).toEqual(left);
        expect(ranked.frozen().flat()).toEqual(left);
        expect([ranked.size, ranked.first]).toEqual([left.length, left[0]]);
        const walked: number[] = [];
        const cursor = ranked.cursor();
        for (let item = cursor.current; item !== undefined; item = cursor.next()) walked.push(item);
        expect(walked).toEqual(left);
      }),
      { numRuns: 20 },
    );
  });

  it("what was frozen stays as it was, whatever is added and removed behind it", () => {
    const values = fc.uniqueArray(fc.integer({ min: 0, max: 5_000 }), {
      minLength: 600,
      maxLength: 1_500,
      size: "max",
    });
    fc.assert(
      fc.property(values, fc.nat(599), (items, early) => {
        const ranked = new Ranked<number>((one, other) => one - other);
        const sorted = (some: readonly number[]): number[] => some.toSorted((one, other) => one - other);
        for (const item of items.slice(0, early)) ranked.add(item);
        const first = ranked.frozen();
        for (const item of items.slice(early)) ranked.add(item);
        const second = ranked.frozen();
        for (const item of items.filter((one) => one % 2 === 0)) ranked.remove(item);
        expect(first.flat()).toEqual(sorted(items.slice(0, early)));
        expect(second.flat()).toEqual(sorted(items));
        expect([...ranked]).toEqual(sorted(items.filter((one) => one % 2 === 1)));
      }),
      { numRuns: 20 },
    );
  });

  it("asserts that what is removed is inside", () => {
    const ranked = new Ranked<number>((one, other) => one - other);
    expect(() => ranked.remove(1)).toThrow(/inside/);
    ranked.add(2);
    expect(() => ranked.remove(1)).toThrow(/inside/);
    expect(() => ranked.remove(3)).toThrow(/inside/);
  });
});
