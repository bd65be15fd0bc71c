import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../../engine/test-engine.ts";
import { CLOCK_MS_MAX, EVENT_TIMESTAMP_MAX } from "../../core/kit/limits.ts";
import { EventTime, NodeTime } from "./event-time.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A leader's time after an event, and what it believes the time of day to be. */
function timeSince(sinceMs: number, clock = new ManualClock()) {
  const told: { believedMs: number | null } = { believedMs: null };
  const node = new NodeTime(clock, () => told.believedMs, sinceMs);
  return { clock, told, node, time: new EventTime(clock, node) };
}

describe("the time of events", () => {
  it("is the believed time, where that is ahead of the last event: nobody led for days, and what was jumped over is counted", () => {
    const { clock, told, time } = timeSince(HOUR_MS + 0.004);
    expect(time.nowMs()).toBe(HOUR_MS + 1);
    told.believedMs = HOUR_MS + 1 + 3 * DAY_MS;
    clock.nowMs += 5;
    expect(time.nowMs()).toBe(told.believedMs);
    expect(time.skippedMs).toBe(3 * DAY_MS - 5);
  });

  it("goes on with the monotonic clock where nothing is believed, however far the wall clock is ahead", () => {
    const { clock, time } = timeSince(HOUR_MS);
    clock.skewMs = 100 * DAY_MS;
    clock.nowMs += 2_000;
    expect([time.nowMs(), time.skippedMs]).toEqual([HOUR_MS + 2_000, 0]);
  });

  it("begins as long after the last event as that was applied here: what a follower has seen pass is not skipped", () => {
    const { clock, told, node } = timeSince(1);
    node.applied(7 * HOUR_MS);
    clock.nowMs += HOUR_MS;
    told.believedMs = 8 * HOUR_MS;
    const time = new EventTime(clock, node);
    expect([time.nowMs(), time.skippedMs]).toEqual([8 * HOUR_MS, 0]);
  });

  it("that is a day ahead, by a leader of before, goes on more slowly until the time has caught up with it", () => {
    const { clock, told, time } = timeSince(100 * DAY_MS);
    const startMs = 99 * DAY_MS - clock.nowMs;
    const pass = (forMs: number): number => {
      clock.nowMs += forMs;
      told.believedMs = startMs + clock.nowMs;
      return time.nowMs();
    };
    expect(pass(0)).toBe(100 * DAY_MS);
    expect(pass(HOUR_MS)).toBe(100 * DAY_MS + 0.75 * HOUR_MS);
    for (let minutes = 0; minutes < 100 * 60; minutes++) pass(HOUR_MS / 60);
    const now = pass(10);
    expect(now - (told.believedMs ?? 0)).toBeLessThanOrEqual(1_000);
    expect(now).toBeGreaterThanOrEqual(told.believedMs ?? Infinity);
    expect(pass(HOUR_MS) - now).toBe(HOUR_MS);
    expect(time.skippedMs).toBe(0);
  });

  it("of a site without an event is what its leader's clock shows, until others are heard of: then theirs", () => {
    const { clock, told, time } = timeSince(0);
    clock.skewMs = 25 * HOUR_MS;
    told.believedMs = 77_000;
    expect([time.nowMs(), time.skippedMs]).toEqual([77_000, 0]);
    const lonely = timeSince(0, clock);
    expect(lonely.time.nowMs()).toBe(clock.wallMs());
  });

  it("of a site's first events does not go back with a clock that is set back before they are committed", () => {
    const { clock, told, time } = timeSince(0);
    told.believedMs = 2 * HOUR_MS;
    expect(time.nowMs()).toBe(2 * HOUR_MS);
    // Nobody has seen it yet.
    told.believedMs = HOUR_MS;
    expect(time.nowMs()).toBe(HOUR_MS);
    time.written();
    told.believedMs = 1_000;
    clock.nowMs += 8;
    expect(time.nowMs()).toBe(HOUR_MS + 6);
  });

  it("follows no clock that shows no possible time, whoever believes it", () => {
    const { clock, told, time, node } = timeSince(HOUR_MS);
    for (const far of [CLOCK_MS_MAX + 1, EVENT_TIMESTAMP_MAX - 1_000_000, 2 ** 52, 0, -DAY_MS, NaN]) {
      told.believedMs = far;
      expect([time.nowMs(), time.skippedMs, node.wallMs()]).toEqual([HOUR_MS, 0, HOUR_MS]);
    }
    clock.skewMs = 2 ** 52;
    const fresh = timeSince(0, clock);
    expect([fresh.time.nowMs(), fresh.node.wallMs()]).toEqual([CLOCK_MS_MAX, CLOCK_MS_MAX]);
  });

  it("never goes back, never stands still, and less what it skipped never outruns the monotonic clock", () => {
    const believed = fc.option(fc.integer({ min: -DAY_MS, max: DAY_MS }));
    const moves = fc.array(fc.record({ passedMs: fc.nat(5_000), believed }));
    fc.assert(
      fc.property(moves, fc.integer({ min: 1, max: 2 * HOUR_MS }), (all, sinceMs) => {
        const { clock, told, time } = timeSince(sinceMs);
        const startedMs = clock.nowMs;
        let before = time.nowMs();
        expect(before).toBeGreaterThanOrEqual(sinceMs);
        for (const { passedMs, believed: one } of all) {
          clock.nowMs += passedMs;
          told.believedMs = one === null ? null : Math.max(1, clock.nowMs + one);
          const now = time.nowMs();
          expect(now).toBeGreaterThanOrEqual(Math.floor(before + 0.75 * passedMs));
          expect(now).toBeGreaterThanOrEqual(told.believedMs ?? 0);
          expect(now - time.skippedMs - sinceMs).toBeLessThanOrEqual(clock.nowMs - startedMs + 1);
          before = now;
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe("the time of day on a node", () => {
  it("is the believed one, and goes on from it where nothing is believed any more", () => {
    const { clock, told, node } = timeSince(5 * DAY_MS);
    clock.skewMs = 300 * DAY_MS;
    expect(node.wallMs()).toBe(5 * DAY_MS);
    told.believedMs = 6 * DAY_MS;
    expect(node.wallMs()).toBe(6 * DAY_MS);
    told.believedMs = null;
    clock.nowMs += 1_500;
    expect(node.wallMs()).toBe(6 * DAY_MS + 1_500);
  });
});
