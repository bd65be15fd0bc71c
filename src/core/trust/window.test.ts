import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { deadlineOf, latest, remainingMs, trustMs } from "./window.ts";

const time = fc.double({ min: 0, max: 1e12, noNaN: true });
const instant = fc.record({ monotonicMs: time, wallMs: time });
const TIMING = {
  serverTimeoutMs: 6_000,
  marginMs: 1_500,
  heartbeatMs: 1_000,
  retryMinMs: 200,
  retryMaxMs: 800,
  holdBackMs: 500,
  releaseTimeoutMs: 1_000,
};

describe("the trust window", () => {
  test("trap 44: it lasts from the sending for the server timeout less the margin", () => {
    const deadline = deadlineOf({ monotonicMs: 100, wallMs: 5_000 }, trustMs(TIMING));
    expect(deadline).toEqual({ monotonicMs: 4_600, wallMs: 9_500 });
    expect(remainingMs(deadline, 100, 5_000)).toBe(4_500);
    expect(remainingMs(deadline, 4_599, 9_499)).toBe(1);
    expect(remainingMs(deadline, 4_600, 9_499)).toBe(0);
  });

  test("trap 45: it is closed as soon as either clock says so", () => {
    const deadline = deadlineOf({ monotonicMs: 0, wallMs: 0 }, 4_500);
    // The machine slept for an hour: monotonic time stood still.
    expect(remainingMs(deadline, 1, 3_600_000)).toBe(0);
    // The wall clock was set back by an hour.
    expect(remainingMs(deadline, 4_500, -3_600_000)).toBe(0);
  });

  test("what is left is the smaller of both clocks, never below 0, and only shrinks with time", () => {
    const step = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(instant, instant, step, step, (deadline, now, byMonotonicMs, byWallMs) => {
        const leftMs = remainingMs(deadline, now.monotonicMs, now.wallMs);
        const open = deadline.monotonicMs > now.monotonicMs && deadline.wallMs > now.wallMs;
        expect(leftMs > 0).toBe(open);
        expect(leftMs).toBeGreaterThanOrEqual(0);
        expect(leftMs).toBeLessThanOrEqual(Math.max(0, deadline.monotonicMs - now.monotonicMs));
        expect(leftMs).toBeLessThanOrEqual(Math.max(0, deadline.wallMs - now.wallMs));
        const laterMs = remainingMs(deadline, now.monotonicMs + byMonotonicMs, now.wallMs + byWallMs);
        expect(laterMs).toBeLessThanOrEqual(leftMs);
      }),
      { numRuns: 200 },
    );
  });

  test("a clock that reads as no number leaves nothing", () => {
    expect(remainingMs({ monotonicMs: 10, wallMs: 10 }, Number.NaN, 0)).toBe(0);
    expect(remainingMs({ monotonicMs: 10, wallMs: 10 }, 0, Number.NaN)).toBe(0);
  });

  test("of two proofs the one that was sent later counts, whichever came first", () => {
    const early = { monotonicMs: 1, wallMs: 900 };
    const late = { monotonicMs: 2, wallMs: 100 };
    expect(latest(early, late)).toBe(late);
    expect(latest(late, early)).toBe(late);
  });
});
