import fc from "fast-check";
import { expect, it } from "vitest";
import { Shards } from "./shards.ts";

it("is to its users what a map is", () => {
  const step = fc.record({
    key: fc.constantFrom("a", "b", "c", "d", ""),
    what: fc.constantFrom("set", "delete", "clear"),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const [shards, map] = [new Shards<number>(), new Map<string, number>()];
      for (const [at, { key, what }] of steps.entries()) {
        if (what === "set") {
          shards.set(key, at);
          map.set(key, at);
        } else if (what === "delete") expect(shards.delete(key)).toBe(map.delete(key));
        else if (at % 7 === 0) {
          shards.clear();
          map.clear();
        }
        expect([shards.size, shards.has(key), shards.get(key)]).toEqual([map.size, map.has(key), map.get(key)]);
      }
      expect([...shards.keys()].sort()).toEqual([...map.keys()].sort());
      expect(new Set(shards.values())).toEqual(new Set(map.values()));
    }),
  );
});

it("ids that differ in their last letters only are spread: none of its maps has a thirtieth of 100,000", () => {
  const shards = new Shards<number>();
  for (let n = 0; n < 100_000; n++) shards.set(`0197a1b2-c3d4-7000-8000-${String(n).padStart(12, "0")}`, n);
  expect(shards.size).toBe(100_000);
  expect(shards.largest).toBeLessThan(100_000 / 30);
});

it("whoever takes a few at a time comes to each, also where others come all the time", () => {
  const shards = new Shards<number>();
  for (let n = 0; n < 1_000; n++) shards.set(`old ${n}`, n);
  const seen = new Set<string>();
  for (let round = 0; round < 400; round++) {
    for (let n = 0; n < 5; n++) shards.set(`new ${round} ${n}`, n);
    let taken = 0;
    for (const [key] of shards.taken()) {
      seen.add(key);
      if (++taken === 10) break;
    }
  }
  expect([...seen].filter((key) => key.startsWith("old")).length).toBe(1_000);
  expect(shards.size).toBe(1_000 + 400 * 5 - seen.size);
});
