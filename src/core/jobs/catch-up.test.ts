import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SCHEDULE_CATCH_UP_MAX, SCHEDULE_LATE_MS_MAX } from "../kit/limits.ts";
import { dueTimes } from "./catch-up.ts";
import { nextAfter, parseCron } from "./cron.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const zone = { offsetMinutesAt: () => 0 };

describe("the times that are due", () => {
  it("are those that somebody finds who counts through all of them", () => {
    const times = fc.uniqueArray(fc.integer({ min: 1, max: 3_000 }), { maxLength: 250, size: "max" });
    const policy = fc.constantFrom("none" as const, "last", "all");
    fc.assert(
      fc.property(times, fc.nat(3_000), fc.nat(3_000), policy, (minutes, from, until, catchUp) => {
        const all = minutes.map((minute) => minute * MINUTE_MS).sort((one, other) => one - other);
        const [upToMs, wallMs] = [from * MINUTE_MS, until * MINUTE_MS + 7];
        const due = all.filter((at) => at > upToMs && at <= wallMs);
        const last = due.at(-1);
        const isMissed = last !== undefined && last < wallMs - SCHEDULE_LATE_MS_MAX;
        const expected = {
          none: { fire: last === undefined || isMissed ? [] : [last], missedMs: isMissed ? last : null },
          last: { fire: last === undefined ? [] : [last], missedMs: null },
          all: { fire: due.slice(-SCHEDULE_CATCH_UP_MAX), missedMs: null },
        }[catchUp];
        expect(dueTimes(catchUp, (afterMs) => all.find((at) => at > afterMs) ?? null, upToMs, wallMs)).toEqual(
          expected,
        );
      }),
      { numRuns: 200 },
    );
  });

  it("after a year without anybody are found with few questions, though there were half a million", () => {
    const cron = parseCron("* * * * *");
    let asked = 0;
    const next = (afterMs: number): number | null => {
      asked++;
      return nextAfter(cron, afterMs, zone);
    };
    const wallMs = 365 * 24 * HOUR_MS;
    expect(dueTimes("last", next, 0, wallMs)).toEqual({ fire: [wallMs], missedMs: null });
    expect(asked).toBeLessThan(40);
    const { fire } = dueTimes("all", next, 0, wallMs);
    expect([fire.length, fire[0], fire.at(-1)]).toEqual([
      SCHEDULE_CATCH_UP_MAX,
      wallMs - (SCHEDULE_CATCH_UP_MAX - 1) * MINUTE_MS,
      wallMs,
    ]);
    expect(asked).toBeLessThan(5_000);
  });
});
