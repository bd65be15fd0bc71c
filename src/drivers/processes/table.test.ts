import { expect, it } from "vitest";
import { signalGroup } from "./group.ts";
import { parseStat } from "./table.ts";

/** As the kernel writes it, with what counts to be filled in. */
const stat = (state: string, threads: number): string =>
  `4711 (a) b (c) ${state} 12 4700 4701 0 -1 4228364 138 0 0 0 5 2 0 0 20 0 ${threads} 0 29384 0 0 18446744073709551615`;

it("a name with parentheses and spaces does not shift the fields", () => {
  expect(parseStat(stat("S", 1))).toEqual({
    pid: 4711,
    parent: 12,
    group: 4700,
    session: 4701,
    start: 29384,
    isAlive: true,
    isKernel: false,
  });
});

it("trap 48: a zombie is dead, but one whose other threads run on is not", () => {
  expect(parseStat(stat("Z", 1)).isAlive).toBe(false);
  expect(parseStat(stat("X", 0)).isAlive).toBe(false);
  expect(parseStat(stat("Z", 2)).isAlive).toBe(true);
  expect(parseStat(stat("T", 1)).isAlive).toBe(true);
});

it("no signal goes to everybody, or to our own group", () => {
  for (const group of [1, 0, -1, Number.NaN]) expect(() => signalGroup(group, 0)).toThrow(/everybody/);
});
