import { describe, expect, test } from "vitest";
import { EFFECT_NAMES_MAX } from "../core/kit/limits.ts";
import { Counters } from "./stats.ts";

describe("counters", () => {
  test("count effects by name up to a bound, and the rest together, so that memory stays bounded", () => {
    const counters = new Counters();
    for (let payment = 0; payment < EFFECT_NAMES_MAX + 50; payment++) counters.countBlocked(`payment-${payment}`);
    counters.countBlocked("payment-0");
    expect(counters.blocked.size).toBe(EFFECT_NAMES_MAX + 1);
    expect(counters.blocked.get("payment-0")).toBe(2);
    expect(counters.blocked.get("other")).toBe(50);
  });

  test("count losses by reason", () => {
    const counters = new Counters();
    counters.countLost("expired");
    counters.countLost("expired");
    expect(counters.lost).toEqual(new Map([["expired", 2]]));
  });

  test("a histogram is cumulative, and counts what is above its last bucket too", () => {
    const { acquireLatencyMs } = new Counters();
    for (const valueMs of [0, 1, 1.5, 60_000, 60_001]) acquireLatencyMs.record(valueMs);
    const { count, sum, buckets } = acquireLatencyMs.snapshot();
    expect([count, sum]).toEqual([5, 120_003.5]);
    expect(buckets.slice(0, 2)).toEqual([
      { le: 1, count: 2 },
      { le: 2, count: 3 },
    ]);
    expect(buckets.at(-1)).toEqual({ le: 60_000, count: 4 });
  });
});
