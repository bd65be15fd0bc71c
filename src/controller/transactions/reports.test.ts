// What is done here is reported to home: in batches, until home has recorded it.

import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import { TXN_REPORT_IDS, TXN_REPORT_MS, TXN_RETRY_MS_MAX, TXN_RETRY_MS_MIN } from "./limits.ts";
import { Reports } from "./reports.ts";

function bench() {
  const clock = new ManualClock();
  const reported: { home: string; ids: readonly string[]; atMs: number }[] = [];
  const at: { answer: (ids: readonly string[]) => readonly string[] | null | Promise<null> } = { answer: (ids) => ids };
  const reports = new Reports({
    clock,
    random: seededRandom("reports"),
    report: async (home, ids) => {
      reported.push({ home, ids, atMs: clock.nowMs - 1_000 });
      return at.answer(ids);
    },
  });
  return { clock, reports, reported, at };
}

describe("a report", () => {
  it("gathers what is done in a moment, for each home", async () => {
    const { clock, reports, reported } = bench();
    reports.add("x", "1");
    reports.add("y", "2");
    await clock.advance(100);
    reports.add("x", "3");
    reports.add("x", "3");
    await clock.advance(1_000);
    expect(reported).toEqual([
      { home: "x", ids: ["1", "3"], atMs: TXN_REPORT_MS },
      { home: "y", ids: ["2"], atMs: TXN_REPORT_MS },
    ]);
    expect(clock.pending).toBe(0);
  });

  it("of many goes at once, in batches, one at a time to each home", async () => {
    const { clock, reports, reported, at } = bench();
    const answer = Promise.withResolvers<null>();
    at.answer = () => answer.promise;
    for (let id = 0; id < 2 * TXN_REPORT_IDS + 1; id++) reports.add("x", `${id}`);
    await clock.advance(5_000);
    expect(reported.map(({ ids, atMs }) => [ids.length, atMs])).toEqual([[TXN_REPORT_IDS, 0]]);
    at.answer = (ids) => ids;
    answer.resolve(null);
    await clock.advance(TXN_RETRY_MS_MIN * 2 + TXN_REPORT_MS);
    expect(reported.slice(1).map(({ ids }) => ids.length)).toEqual([TXN_REPORT_IDS, TXN_REPORT_IDS, 1]);
    expect(new Set(reported.slice(1).flatMap(({ ids }) => ids)).size).toBe(2 * TXN_REPORT_IDS + 1);
  });

  it("is repeated until home has recorded it, with a pause that doubles", async () => {
    const { clock, reports, reported, at } = bench();
    at.answer = () => null;
    reports.add("x", "1");
    await clock.advance(60_000);
    const pauses = reported.slice(1).map(({ atMs }, index) => atMs - reported[index]!.atMs);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(TXN_RETRY_MS_MIN);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(TXN_RETRY_MS_MAX);
    expect(pauses.length).toBeGreaterThan(10);
    at.answer = (ids) => ids;
    await clock.advance(TXN_RETRY_MS_MAX);
    const { length } = reported;
    await clock.advance(60_000);
    expect(reported).toHaveLength(length);
  });

  it("of which home took a part goes on with the others, and comes back to the rest", async () => {
    const { clock, reports, reported, at } = bench();
    at.answer = (ids) => ids.filter((id) => id !== "0");
    for (let id = 0; id < TXN_REPORT_IDS + 1; id++) reports.add("x", `${id}`);
    await clock.advance(1_000);
    expect(reported[1]!.ids).toEqual([`${TXN_REPORT_IDS}`, "0"]);
    at.answer = (ids) => ids;
    await clock.advance(60_000);
    expect(reported.at(-1)!.ids).toEqual(["0"]);
  });

  it("ends with the leadership, and goes at once when homes can be reached again", async () => {
    const { clock, reports, reported, at } = bench();
    at.answer = () => null;
    reports.add("x", "1");
    await clock.advance(30_000);
    const { length } = reported;
    at.answer = (ids) => ids;
    reports.restart();
    await clock.advance(0);
    expect(reported).toHaveLength(length + 1);
    reports.add("x", "2");
    reports.end();
    await clock.advance(60_000);
    expect([reported.length, clock.pending]).toEqual([length + 1, 0]);
  });
});
