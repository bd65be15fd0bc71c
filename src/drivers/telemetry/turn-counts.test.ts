import { describe, expect, it } from "vitest";
import { TurnCounts, TurnsOfLate } from "./turn-counts.ts";

describe("turns of a loop", () => {
  it("the longest is exact, and the 99th percentile within 9 % above", () => {
    const counts = new TurnCounts();
    for (let n = 1; n <= 1_000; n++) counts.record(n / 100);
    counts.record(123.456);
    const { turns, longestMs, p99Ms } = counts.figures();
    expect(turns).toBe(1_001);
    expect(longestMs).toBe(123.456);
    expect(p99Ms).toBeGreaterThanOrEqual(9.9);
    expect(p99Ms).toBeLessThanOrEqual(9.91 * 1.1);
  });

  it("nothing recorded is nothing, and what is beyond the last bucket is kept as the longest", () => {
    const counts = new TurnCounts();
    expect(counts.figures()).toEqual({ turns: 0, longestMs: 0, p99Ms: 0 });
    counts.record(1e6);
    expect(counts.figures()).toMatchObject({ turns: 1, longestMs: 1e6 });
  });

  it("a long turn is shown for 50 to 60 seconds and then forgotten, however quiet it is in between", () => {
    const turns = new TurnsOfLate();
    turns.record(1_005_000, 80);
    turns.record(1_010_000, 1);
    expect(turns.counts(1_059_999).figures()).toMatchObject({ turns: 2, longestMs: 80 });
    expect(turns.counts(1_060_000).figures()).toMatchObject({ turns: 1, longestMs: 1 });
    expect(turns.counts(9_000_000).figures()).toMatchObject({ turns: 0, longestMs: 0 });
    turns.record(9_000_001, 3);
    expect(turns.counts(9_000_002).figures()).toMatchObject({ turns: 1, longestMs: 3 });
  });
});
