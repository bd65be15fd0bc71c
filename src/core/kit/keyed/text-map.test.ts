import { setFlagsFromString } from "node:v8";
import { runInThisContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Shards } from "./shards.ts";
import { hashOf, TextMap } from "./text-map.ts";

// Few texts, so that they come again, in waves of so many that the map grows and shrinks.
const step = fc.record({
  what: fc.constantFrom("set", "set", "delete", "delete-all", "clear"),
  from: fc.nat(400),
  count: fc.nat(300),
});

/** Letters that a hash of so many bits does not tell apart. */
function colliding(count: number, bits: number): string[] {
  const texts: string[] = [];
  for (let n = 0; texts.length < count; n++) if ((hashOf(`k${n}`) >>> 8) % 2 ** bits === 0) texts.push(`k${n}`);
  return texts;
}

describe.each([
  ["a map of texts", () => new TextMap<number | undefined>(), (n: number) => `id ${n}`],
  ["one whose texts meet in a few chains", () => new TextMap<number | undefined>(), pickedFrom(colliding(700, 9))],
  ["one in shards", () => new Shards<number | undefined>(), (n: number) => `id ${n}`],
])("%s", (_, make, text) => {
  it("is to its users what a map is, as it grows and shrinks", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const [own, map] = [make(), new Map<string, number | undefined>()];
        for (const [at, { what, from, count }] of steps.entries()) {
          const keys = Array.from({ length: count }, (_, n) => text(from + n));
          if (what === "set") {
            for (const [n, key] of keys.entries()) own.set(key, n === 0 ? undefined : at);
            for (const [n, key] of keys.entries()) map.set(key, n === 0 ? undefined : at);
          } else if (what === "delete") {
            for (const key of keys) if (own.delete(key) !== map.delete(key)) expect.fail(`${key} was there for one`);
          } else if (what === "delete-all") {
            for (const key of map.keys()) own.delete(key);
            map.clear();
          } else {
            own.clear();
            map.clear();
          }
          expect(own.size).toBe(map.size);
          for (let n = 0; n < 700; n++) {
            const key = text(n);
            if (own.has(key) !== map.has(key) || own.get(key) !== map.get(key)) expect.fail(`${key} differs`);
          }
        }
        expect([...own.keys()].sort()).toEqual([...map.keys()].sort());
      }),
      { numRuns: 60 },
    );
  });

  it("whoever walks through it while others come and go meets each that is there all the time once, and none that has gone", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), fc.nat(20), (steps, every) => {
        const own = make();
        for (let n = 0; n < 300; n++) own.set(text(n), n);
        const stays = new Set(Array.from({ length: 30 }, (_, n) => text(n * 10)));
        const met: string[] = [];
        for (const key of own.keys()) {
          if (!own.has(key)) expect.fail(`${key} has gone`);
          met.push(key);
          const next = met.length % (every + 1) === 0 ? steps[met.length % 8] : undefined;
          if (next === undefined || met.length > 2_000) continue;
          for (let n = next.from; n < next.from + next.count; n++) {
            if (next.what === "set") own.set(text(n), n);
            else if (!stays.has(text(n))) own.delete(text(n));
          }
        }
        const metOfThem = met.filter((key) => stays.has(key));
        expect(metOfThem.toSorted()).toEqual([...stays].sort());
      }),
      { numRuns: 60 },
    );
  });
});

it("interns none of its keys; a Map interns each, and each that it is asked about", () => {
  setFlagsFromString("--allow-natives-syntax");
  const isInterned = runInThisContext("(text) => %IsInternalizedString(text)") as (text: string) => boolean;
  // It is compiled when it is called.
  expect(isInterned("text")).toBe(true);
  setFlagsFromString("--no-allow-natives-syntax");
  // Made as those of a request are: by a parser.
  const fresh = (from: number): string[] => JSON.parse(JSON.stringify(keysFrom(from))) as string[];
  const [own, shards, map] = [new TextMap<true>(), new Shards<true>(), new Map<string, true>()];
  for (const keys of [own, shards, map]) for (const key of fresh(0)) keys.set(key, true);
  for (const keys of [own, shards]) for (const key of fresh(50)) if (!keys.has(key)) keys.delete(key);
  expect([...map.keys()].filter(isInterned).length).toBe(100);
  expect([...own.keys(), ...shards.keys()].filter(isInterned)).toEqual([]);
});

it("its keys are in the order of their coming as long as none has gone", () => {
  const map = new TextMap<number>();
  const keys = Array.from({ length: 1_000 }, (_, n) => `id ${(n * 7_919) % 1_000}`);
  for (const [at, key] of keys.entries()) map.set(key, at);
  expect([...map.keys()]).toEqual(keys);
  expect([...map.entries()]).toEqual(keys.map((key, at) => [key, at]));
});

it("texts that somebody has chosen so that they meet in one chain make none that is long", () => {
  const texts = colliding(600, 10);
  const map = new TextMap<number>();
  for (const [at, text] of texts.entries()) map.set(text, at);
  expect(texts.map((text) => map.get(text))).toEqual([...texts.keys()]);
  expect([map.size, map.longest]).toEqual([600, 32]);
  for (const text of texts.slice(10)) map.delete(text);
  expect([...map.keys()].sort()).toEqual(texts.slice(0, 10).sort());
});

it("whoever walks through it when it is cleared meets none of those that were there", () => {
  for (const texts of [colliding(600, 10), keysFrom(0)]) {
    const map = new TextMap<number>();
    for (const [at, text] of texts.entries()) map.set(text, at);
    const walk = map.keys();
    walk.next();
    map.clear();
    map.set("new", 1);
    expect([...walk].filter((key) => key !== "new")).toEqual([]);
    expect([map.size, [...map.keys()]]).toEqual([1, ["new"]]);
  }
});

function keysFrom(from: number): string[] {
  return Array.from({ length: 100 }, (_, n) => `0197a1b2-c3d4-7000-8000-${String(from + n).padStart(12, "0")}`);
}

function pickedFrom(texts: readonly string[]): (n: number) => string {
  return (n) => texts[n] as string;
}
