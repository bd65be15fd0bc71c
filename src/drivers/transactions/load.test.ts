import { expect, it } from "vitest";
import { TXN_BATCH_BYTES_MAX, TXN_BATCH_MAX } from "../../core/kit/limits.ts";
import { ISLAND_BATCH_BYTES_MIN, ISLAND_TRY_MS, ISLAND_TRY_MS_MAX } from "./limits.ts";
import { Load } from "./load.ts";

const KIB = 1024;
const LONG_MS = 60_000;

function silences(load: Load, times: number, count: number, bytes: number): number[] {
  return Array.from({ length: times }, () => {
    const carried = load.carry(count, bytes, LONG_MS);
    load.unanswered(carried);
    return carried.withinMs;
  });
}

it("a silence leaves half of what was sent, down to one call", () => {
  const load = new Load();
  silences(load, 1, 40, 400 * KIB);
  expect([load.countMax, load.bytesMax, load.isReduced]).toEqual([20, 200 * KIB, true]);
  for (let at = 0; at < 20; at++) silences(load, 1, load.countMax, load.bytesMax);
  expect([load.countMax, load.bytesMax]).toEqual([1, ISLAND_BATCH_BYTES_MIN]);
});

it("one small call without an answer is no sign of a size: a node that is lost costs the others nothing", () => {
  const load = new Load();
  expect(silences(load, 3, 1, 5 * KIB)).toEqual([1_500, 1_500, 1_500]);
  expect(load.isReduced).toBe(false);
});

it("exchanges that were under way together are one silence", () => {
  const load = new Load();
  const both = [load.carry(40, 400 * KIB, LONG_MS), load.carry(8, 80 * KIB, LONG_MS)];
  for (const one of both) load.unanswered(one);
  expect(load.countMax).toBe(20);
});

it("what is full doubles with each answer, up to what a batch may have; small ones add little", () => {
  const load = new Load();
  silences(load, 1, 2, 2 * ISLAND_BATCH_BYTES_MIN);
  const full: number[] = [];
  while (load.isReduced) {
    load.answered(load.carry(load.countMax, load.bytesMax, LONG_MS), 20);
    full.push(load.countMax);
  }
  expect(full).toEqual([2, 4, 8, 16, 32, 64, 128]);
  expect([load.countMax, load.bytesMax]).toEqual([TXN_BATCH_MAX, TXN_BATCH_BYTES_MAX]);
  silences(load, 1, TXN_BATCH_MAX, TXN_BATCH_BYTES_MAX);
  load.answered(load.carry(1, 5 * KIB, LONG_MS), 20);
  expect([load.countMax, load.bytesMax]).toEqual([65, 517 * KIB]);
});

it("where answers take most of a try there is little more with each", () => {
  const load = new Load();
  silences(load, 1, 64, 512 * KIB);
  load.answered(load.carry(32, 256 * KIB, LONG_MS), ISLAND_TRY_MS * 0.7);
  expect([load.countMax, load.bytesMax]).toEqual([36, 288 * KIB]);
});

it("only one call alone, and what is as large, gets more time after each silence, and never more than its own", () => {
  const load = new Load();
  expect(silences(load, 5, 1, 500 * KIB)).toEqual([1_500, 3_000, 6_000, 10_000, ISLAND_TRY_MS_MAX]);
  expect(load.carry(1, 500 * KIB, 2_000).withinMs).toBe(2_000);
  expect(load.carry(1, 5 * KIB, LONG_MS).withinMs).toBe(ISLAND_TRY_MS);
  const several = new Load();
  expect(silences(several, 3, 4, 500 * KIB)).toEqual([1_500, 1_500, 1_500]);
});

it("the next one of that size has twice the time that the answer took; a smaller one's answer says nothing of it", () => {
  const load = new Load();
  silences(load, 3, 1, 500 * KIB);
  load.answered(load.carry(1, 5 * KIB, LONG_MS), 10);
  expect(load.carry(1, 500 * KIB, LONG_MS).withinMs).toBe(10_000);
  load.answered(load.carry(1, 500 * KIB, LONG_MS), 1_700);
  expect(load.carry(1, 500 * KIB, LONG_MS).withinMs).toBe(3_400);
  load.answered(load.carry(1, 500 * KIB, LONG_MS), 100);
  expect(load.carry(1, 500 * KIB, LONG_MS).withinMs).toBe(ISLAND_TRY_MS);
});

it("a call that had little time left leaves the time of the others as it was", () => {
  const load = new Load();
  load.unanswered(load.carry(1, 500 * KIB, 400));
  expect(load.carry(1, 500 * KIB, LONG_MS).withinMs).toBe(ISLAND_TRY_MS);
});
