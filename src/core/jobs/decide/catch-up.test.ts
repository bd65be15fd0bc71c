import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SCHEDULE_CATCH_UP_MAX, SCHEDULE_LATE_MS_MAX } from "../../kit/limits.ts";
import { timeZone } from "../../../drivers/system/time-zones.ts";
import { type DueTimes, DueWalk, type NextTime } from "./catch-up.ts";
import { nextAfter, parseCron } from "./cron.ts";
import type { Schedule } from "../model.ts";

type CatchUp = Schedule["catchUp"];

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const zone = { offsetMinutesAt: () => 0 };
const POLICIES = ["none", "last", "all"] as const;

function dueTimes(catchUp: CatchUp, next: NextTime, upToMs: number, wallMs: number): DueTimes {
  const walk = new DueWalk(catchUp, next, upToMs, wallMs);
  for (let steps = 0; steps < 100_000; steps++) {
    const due = walk.step();
    if (due !== null) return due;
  }
  throw new Error("the walk does not end");
}

/** As it was done before the walk: one search for each time, from the last one back. */
function searched(catchUp: CatchUp, next: NextTime, upToMs: number, wallMs: number): DueTimes {
  const lastTime = (first: number, untilMs: number): number => {
    let [found, past] = [first, untilMs];
    while (found < past) {
      const middle = Math.floor((found + past) / 2);
      const at = next(middle);
      if (at === null || at > untilMs) past = middle;
      else found = at;
    }
    return found;
  };
  const first = next(upToMs);
  if (first === null || first > wallMs) return { fire: [], missedMs: null, nextMs: first };
  const times = [lastTime(first, wallMs)];
  const most = catchUp === "all" ? SCHEDULE_CATCH_UP_MAX : 1;
  while (times.length < most && times[0]! > first) times.unshift(lastTime(first, times[0]! - 1));
  const isMissed = catchUp === "none" && times[0]! < wallMs - SCHEDULE_LATE_MS_MAX;
  return isMissed ? { fire: [], missedMs: times[0]!, nextMs: null } : { fire: times, missedMs: null, nextMs: null };
}

/** What `next` says, and how often it was asked. */
function counted(next: NextTime): { readonly next: NextTime; asked: number } {
  const count = {
    asked: 0,
    next: (afterMs: number) => {
      count.asked++;
      return next(afterMs);
    },
  };
  return count;
}

describe("the times that are due", () => {
  it("are those that somebody finds who counts through all of them", () => {
    const times = fc.uniqueArray(fc.integer({ min: 1, max: 3_000 }), { maxLength: 250, size: "max" });
    fc.assert(
      fc.property(
        times,
        fc.nat(3_000),
        fc.nat(3_000),
        fc.constantFrom(...POLICIES),
        (minutes, from, until, catchUp) => {
          const all = minutes.map((minute) => minute * MINUTE_MS).sort((one, other) => one - other);
          const [upToMs, wallMs] = [from * MINUTE_MS, until * MINUTE_MS + 7];
          const due = all.filter((at) => at > upToMs && at <= wallMs);
          const last = due.at(-1);
          const isMissed = last !== undefined && last < wallMs - SCHEDULE_LATE_MS_MAX;
          const { fire, missedMs } = {
            none: { fire: last === undefined || isMissed ? [] : [last], missedMs: isMissed ? last : null },
            last: { fire: last === undefined ? [] : [last], missedMs: null },
            all: { fire: due.slice(-SCHEDULE_CATCH_UP_MAX), missedMs: null },
          }[catchUp];
          const nextMs = last === undefined ? (all.find((at) => at > upToMs) ?? null) : null;
          const next = (afterMs: number): number | null => all.find((at) => at > afterMs) ?? null;
          expect(dueTimes(catchUp, next, upToMs, wallMs)).toEqual({ fire, missedMs, nextMs });
        },
      ),
      { numRuns: 200 },
    );
  });

  it("are the same as by one search for each, of every kind of cron line, where clocks change too", () => {
    const field = (max: number): fc.Arbitrary<string> =>
      fc.oneof(
        { weight: 3, arbitrary: fc.constant("*") },
        { weight: 2, arbitrary: fc.nat(max).map(String) },
        { weight: 1, arbitrary: fc.integer({ min: 2, max }).map((step) => `*/${step}`) },
      );
    const day = fc.constantFrom("*", "*", "*", "1", "29", "31");
    const cron = fc.tuple(
      field(59),
      field(23),
      day,
      fc.constantFrom("*", "*", "*", "2", "3"),
      fc.constantFrom("*", "*", "0"),
    );
    const zones = fc.constantFrom(
      "UTC",
      "Europe/Berlin",
      "America/New_York",
      "Australia/Lord_Howe",
      "Africa/Casablanca",
    );
    // Around changes of clocks: 25 October 2026 in Berlin, 8 March 2026 in New York, 5 April 2026 at Lord Howe.
    const around = fc.constantFrom(
      Date.UTC(2026, 9, 25),
      Date.UTC(2026, 2, 8),
      Date.UTC(2026, 3, 5),
      Date.UTC(2027, 5, 1),
    );
    const missed = fc.oneof(fc.nat(3 * 60), fc.nat(60 * 24 * 3), fc.nat(60 * 24 * 400));
    fc.assert(
      fc.property(
        cron,
        zones,
        around,
        fc.integer({ min: -3_000, max: 3_000 }),
        missed,
        fc.constantFrom(...POLICIES),
        (line, name, near, offset, forMinutes, catchUp) => {
          const parsed = parseCron(line.join(" "));
          const at = timeZone(name);
          const next = (afterMs: number): number | null => nextAfter(parsed, afterMs, at);
          const wallMs = near + offset * MINUTE_MS + 17;
          const upToMs = wallMs - forMinutes * MINUTE_MS;
          expect(dueTimes(catchUp, next, upToMs, wallMs)).toEqual(searched(catchUp, next, upToMs, wallMs));
        },
      ),
      { numRuns: 300 },
    );
  });

  it("after a year without anybody are found with few questions, though there were half a million", () => {
    const cron = parseCron("* * * * *");
    const wallMs = 365 * DAY_MS;
    const last = counted((afterMs) => nextAfter(cron, afterMs, zone));
    expect(dueTimes("last", last.next, 0, wallMs)).toEqual({ fire: [wallMs], missedMs: null, nextMs: null });
    expect(last.asked).toBeLessThan(5);
    const all = counted((afterMs) => nextAfter(cron, afterMs, zone));
    const { fire } = dueTimes("all", all.next, 0, wallMs);
    expect([fire.length, fire[0], fire.at(-1)]).toEqual([
      SCHEDULE_CATCH_UP_MAX,
      wallMs - (SCHEDULE_CATCH_UP_MAX - 1) * MINUTE_MS,
      wallMs,
    ]);
    expect(all.asked).toBeLessThan(SCHEDULE_CATCH_UP_MAX + 5);
  });

  it.each([
    ["each minute of one month, which is half a year ago", "* * * 1 *", 3_000],
    ["each minute of one hour of each Sunday", "* 3 * * 0", 3_000],
    ["the 29th of February, for forty years", "0 0 29 2 *", 100],
  ])("are found with few questions: %s", (_what, line, most) => {
    const cron = parseCron(line);
    const { next } = counted((afterMs) => nextAfter(cron, afterMs, zone));
    const asked = counted(next);
    const wallMs = Date.UTC(2026, 6, 3, 12, 34, 56);
    const upToMs = wallMs - (line.includes("29") ? 40 : 3) * 365 * DAY_MS;
    const due = dueTimes("all", asked.next, upToMs, wallMs);
    expect(asked.asked).toBeLessThan(most);
    expect(due).toEqual(searched("all", next, upToMs, wallMs));
  });
});
