import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Newcomers } from "./newcomers.ts";

describe("newcomers", () => {
  it("the oldest of an address goes for the next of that address, and nobody else's", () => {
    const some = new Newcomers<string>(2, 10);
    expect([some.add("a1", "a"), some.add("b1", "b"), some.add("a2", "a")]).toEqual([null, null, null]);
    expect(some.add("a3", "a")).toBe("a1");
    expect(some.add("b2", "b")).toBeNull();
    some.delete("a2");
    expect(some.add("a4", "a")).toBeNull();
  });

  it("where all places are taken the oldest of all goes", () => {
    const some = new Newcomers<number>(5, 3);
    for (const one of [1, 2, 3]) some.add(one, `address ${one}`);
    some.delete(1);
    expect([some.add(4, "x"), some.add(5, "y"), some.add(6, "z")]).toEqual([null, 2, 3]);
  });

  it("never holds more than its bounds, forgets nobody who is there, and the last one in stays", () => {
    const step = fc.record({ isArrival: fc.boolean(), who: fc.nat(30), address: fc.nat(4) });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 9 }),
        fc.array(step),
        (each, max, steps) => {
          const some = new Newcomers<number>(each, max);
          const present = new Map<number, number>();
          for (const { isArrival, who, address } of steps) {
            if (!isArrival || present.has(who)) {
              some.delete(who);
              present.delete(who);
            } else {
              const evicted = some.add(who, String(address));
              if (evicted !== null) expect(present.delete(evicted)).toBe(true);
              present.set(who, address);
            }
            expect(some.size).toBe(present.size);
            expect(present.size).toBeLessThanOrEqual(max);
            for (const one of [0, 1, 2, 3, 4]) {
              expect([...present.values()].filter((at) => at === one).length).toBeLessThanOrEqual(each);
            }
          }
        },
      ),
    );
  });
});
