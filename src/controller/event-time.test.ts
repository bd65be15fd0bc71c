import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../engine/test-engine.ts";
import { EventTime } from "./event-time.ts";

const HOUR_MS = 3_600_000;

describe("the time of events", () => {
  it("is the wall clock's, where that is ahead of the last event", () => {
    const clock = new ManualClock();
    const time = new EventTime(clock, 3.004);
    expect(time.nowMs()).toBe(clock.nowMs);
    clock.nowMs += 5;
    expect(time.nowMs()).toBe(clock.nowMs);
  });

  it("goes on from the last event at the pace of time, where the wall clock is behind it", () => {
    const clock = new ManualClock();
    const lastMs = clock.nowMs + 3 * HOUR_MS + 0.25;
    const time = new EventTime(clock, lastMs);
    expect(time.nowMs()).toBe(Math.ceil(lastMs));
    clock.nowMs += 2_000;
    expect(time.nowMs()).toBe(Math.ceil(lastMs) + 2_000);
    clock.skewMs = 4 * HOUR_MS;
    expect(time.nowMs()).toBe(clock.wallMs());
  });

  it("never goes back and never stands still, whatever becomes of the wall clock", () => {
    const moves = fc.array(fc.record({ passedMs: fc.nat(5_000), skewMs: fc.integer({ min: -HOUR_MS, max: HOUR_MS }) }));
    fc.assert(
      fc.property(moves, fc.nat(2 * HOUR_MS), (all, sinceMs) => {
        const clock = new ManualClock();
        const time = new EventTime(clock, sinceMs);
        let before = time.nowMs();
        expect(before).toBeGreaterThanOrEqual(sinceMs);
        for (const { passedMs, skewMs } of all) {
          clock.nowMs += passedMs;
          clock.skewMs = skewMs;
          const now = time.nowMs();
          expect(now).toBeGreaterThanOrEqual(before + passedMs);
          expect(now).toBeGreaterThanOrEqual(Math.floor(clock.wallMs()));
          before = now;
        }
      }),
      { numRuns: 50 },
    );
  });
});
