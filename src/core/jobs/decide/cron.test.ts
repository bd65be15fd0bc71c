import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Cron, nextAfter, parseCron, type Zone } from "./cron.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const UTC: Zone = { offsetMinutesAt: () => 0 };

/** A zone whose clocks are changed at these moments. */
function zoneOf(first: number, ...changes: readonly (readonly [atMs: number, minutes: number])[]): Zone {
  return { offsetMinutesAt: (utcMs) => changes.findLast(([atMs]) => atMs <= utcMs)?.[1] ?? first };
}

const BERLIN = zoneOf(
  60,
  [Date.UTC(2026, 2, 29, 1), 120],
  [Date.UTC(2026, 9, 25, 1), 60],
  [Date.UTC(2027, 2, 28, 1), 120],
);

/** The times of a pattern after a moment, as universal time. */
function runs(expression: string, after: string, count: number, zone: Zone = UTC): string[] {
  const cron = parseCron(expression);
  const times: string[] = [];
  let at: number | null = Date.parse(`${after}Z`);
  while (times.length < count && at !== null) {
    at = nextAfter(cron, at, zone);
    times.push(at === null ? "never" : new Date(at).toISOString().slice(0, 16));
  }
  return times;
}

describe("a cron expression", () => {
  test.each([
    ["* * * * *", ["2026-01-01T00:01", "2026-01-01T00:02"]],
    ["*/20 * * * *", ["2026-01-01T00:20", "2026-01-01T00:40", "2026-01-01T01:00"]],
    [
      "5,10-12,50-59/4 3 * * *",
      [
        "2026-01-01T03:05",
        "2026-01-01T03:10",
        "2026-01-01T03:11",
        "2026-01-01T03:12",
        "2026-01-01T03:50",
        "2026-01-01T03:54",
        "2026-01-01T03:58",
        "2026-01-02T03:05",
      ],
    ],
    ["30 4 * * mon-fri", ["2026-01-01T04:30", "2026-01-02T04:30", "2026-01-05T04:30"]],
    ["0 0 * * sat-sun", ["2026-01-03T00:00", "2026-01-04T00:00", "2026-01-10T00:00"]],
    ["0 0 * * 7", ["2026-01-04T00:00", "2026-01-11T00:00"]],
    ["0 0 * * 0", ["2026-01-04T00:00"]],
    ["0 0 * * 5-7", ["2026-01-02T00:00", "2026-01-03T00:00", "2026-01-04T00:00", "2026-01-09T00:00"]],
    ["0 0 1 JAN,jul *", ["2026-07-01T00:00", "2027-01-01T00:00"]],
    ["0 0 31 * *", ["2026-01-31T00:00", "2026-03-31T00:00", "2026-05-31T00:00"]],
    ["0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]],
    ["0 0 31 2 *", ["never"]],
    ["59 23 31 12 *", ["2026-12-31T23:59", "2027-12-31T23:59"]],
  ])("%s", (expression, expected) => {
    expect(runs(expression, "2026-01-01T00:00", expected.length)).toEqual(expected);
  });

  test("with both day fields runs where either matches, as Vixie cron does", () => {
    expect(runs("0 0 13 * fri", "2026-02-01T00:00", 4)).toEqual([
      "2026-02-06T00:00",
      "2026-02-13T00:00",
      "2026-02-20T00:00",
      "2026-02-27T00:00",
    ]);
    expect(runs("0 0 13 * *", "2026-02-01T00:00", 2)).toEqual(["2026-02-13T00:00", "2026-03-13T00:00"]);
    // A star with a step is still a star: odd days that are Mondays.
    expect(runs("0 0 */2 * mon", "2026-02-01T00:00", 2)).toEqual(["2026-02-09T00:00", "2026-02-23T00:00"]);
  });

  test("finds a leap day across a century without one, and looks no further", () => {
    expect(runs("0 0 29 2 *", "2096-02-29T00:00", 1)).toEqual(["2104-02-29T00:00"]);
  });

  test.each([
    ["", "has not five fields"],
    ["* * * *", "has not five fields"],
    ["* * * * * *", "has more than five fields"],
    ["@daily", "has not five fields"],
    [`${"*".repeat(300)} * * * *`, "has not five fields"],
    ["60 * * * *", "field 1 (minute)"],
    ["* 24 * * *", "field 2 (hour)"],
    ["* * 0 * *", "field 3 (day of the month)"],
    ["* * 32 * *", "field 3 (day of the month)"],
    ["* * * 13 *", "field 4 (month)"],
    ["* * * january *", "field 4 (month)"],
    ["* * * * 8", "field 5 (day of the week)"],
    ["* * * * mo", "field 5 (day of the week)"],
    ["mon * * * *", "field 1 (minute)"],
    ["*/0 * * * *", "a step is a number from 1 to 59"],
    ["*/60 * * * *", "a step is a number from 1 to 59"],
    ["5/15 * * * *", "write 5-59/15"],
    ["1/2/3 * * * *", "it has two steps"],
    ["1-2-3 * * * *", "it has two ends"],
    ["30-10 * * * *", "it ends before it begins"],
    ["1,,2 * * * *", 'has "": it takes 0 to 59'],
    ["-1 * * * *", "field 1 (minute)"],
    ["1.5 * * * *", "field 1 (minute)"],
    ["0x1 * * * *", "field 1 (minute)"],
    ["** * * * *", "field 1 (minute)"],
  ])("is refused with the field that is wrong: %s", (expression, problem) => {
    const refused = expect.objectContaining({
      code: "SCHEDULE_INVALID",
      message: expect.stringContaining(problem) as string,
    }) as Error;
    expect(() => parseCron(expression)).toThrow(refused);
  });
});

describe("where clocks are put forward (Berlin, 29 March 2026, 2:00 becomes 3:00)", () => {
  test("a time that does not exist runs at the moment of the change, once", () => {
    expect(runs("30 2 * * *", "2026-03-27T12:00", 4, BERLIN)).toEqual([
      "2026-03-28T01:30",
      "2026-03-29T01:00",
      "2026-03-30T00:30",
      "2026-03-31T00:30",
    ]);
    expect(runs("*/15 2 * * *", "2026-03-29T00:00", 3, BERLIN)).toEqual([
      "2026-03-29T01:00",
      "2026-03-30T00:00",
      "2026-03-30T00:15",
    ]);
    expect(runs("0,30 2,3 * * *", "2026-03-29T00:00", 3, BERLIN)).toEqual([
      "2026-03-29T01:00",
      "2026-03-29T01:30",
      "2026-03-30T00:00",
    ]);
  });

  test("a pattern of every hour goes on", () => {
    expect(runs("30 * * * *", "2026-03-29T00:00", 3, BERLIN)).toEqual([
      "2026-03-29T00:30",
      "2026-03-29T01:30",
      "2026-03-29T02:30",
    ]);
  });

  test("a day that does not exist runs when it would have begun (Samoa, 30 December 2011)", () => {
    const samoa = zoneOf(-600, [Date.UTC(2011, 11, 30, 10), 840]);
    expect(runs("0 12 30 12 *", "2011-12-01T00:00", 2, samoa)).toEqual(["2011-12-30T10:00", "2012-12-29T22:00"]);
  });
});

describe("where clocks are put back (Berlin, 25 October 2026, 3:00 becomes 2:00)", () => {
  test("a time that exists twice runs the first time", () => {
    expect(runs("30 2 * * *", "2026-10-24T12:00", 2, BERLIN)).toEqual(["2026-10-25T00:30", "2026-10-26T01:30"]);
    expect(runs("30 2 * * *", "2026-10-25T01:10", 1, BERLIN)).toEqual(["2026-10-26T01:30"]);
    expect(runs("*/20 2-3 * * *", "2026-10-25T00:00", 4, BERLIN)).toEqual([
      "2026-10-25T00:20",
      "2026-10-25T00:40",
      "2026-10-25T02:00",
      "2026-10-25T02:20",
    ]);
  });

  test("a pattern of every hour runs in both", () => {
    expect(runs("30 * * * *", "2026-10-24T23:40", 4, BERLIN)).toEqual([
      "2026-10-25T00:30",
      "2026-10-25T01:30",
      "2026-10-25T02:30",
      "2026-10-25T03:30",
    ]);
    expect(runs("45 * 25 10 *", "2026-10-25T00:50", 2, BERLIN)).toEqual(["2026-10-25T01:45", "2026-10-25T02:45"]);
  });
});

/** What it should do, minute by minute: each local minute that is skipped or repeated is looked at as such. */
function oracle(cron: Cron, afterMs: number, zone: Zone, untilMs: number): number | null {
  const localAt = (utcMs: number): number => utcMs + zone.offsetMinutesAt(utcMs) * MINUTE_MS;
  // Far enough back that every local time that may be repeated has been seen.
  let shown = localAt(afterMs - 3 * DAY_MS) - MINUTE_MS;
  for (let at = afterMs - 3 * DAY_MS; at <= untilMs; at += MINUTE_MS) {
    const local = localAt(at);
    let hits = matches(cron, local) && (cron.everyHour || local > shown);
    if (!cron.everyHour)
      for (let skipped = shown + MINUTE_MS; skipped < local; skipped += MINUTE_MS) hits ||= matches(cron, skipped);
    shown = Math.max(shown, local);
    if (hits && at > afterMs) return at;
  }
  return null;
}

function matches(cron: Cron, localMs: number): boolean {
  const date = new Date(localMs);
  const isDay = cron.daysOfMonth[date.getUTCDate()] === true;
  const isWeekday = cron.daysOfWeek[date.getUTCDay()] === true;
  return (
    cron.minutes[date.getUTCMinutes()] === true &&
    cron.hours[date.getUTCHours()] === true &&
    cron.months[date.getUTCMonth() + 1] === true &&
    (cron.eitherDay ? isDay || isWeekday : isDay && isWeekday)
  );
}

describe("the next time", () => {
  const item = (min: number, max: number): fc.Arbitrary<string> =>
    fc.oneof(
      fc.constant("*"),
      fc.integer({ min: 2, max: Math.min(max, 20) }).map((step) => `*/${step}`),
      fc.integer({ min, max }).map(String),
      fc
        .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
        .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
      fc.array(fc.integer({ min, max }), { minLength: 1, maxLength: 4 }).map((list) => list.join(",")),
    );
  const often = fc.oneof({ weight: 4, arbitrary: fc.constant("*") }, { weight: 1, arbitrary: item(1, 12) });
  const expressions = fc
    .tuple(
      item(0, 59),
      item(0, 23),
      fc.oneof(fc.constant("*"), item(1, 31)),
      often,
      fc.oneof(fc.constant("*"), item(0, 7)),
    )
    .map((fields) => fields.join(" "));
  const START = Date.UTC(2026, 0, 1);
  const offsets = fc.oneof(
    fc.tuple(fc.constantFrom(-600, -210, 0, 60, 345, 780), fc.constantFrom(-120, -60, -30, 30, 60, 120)),
    // Across the date line and back: a day is left out, or comes twice.
    fc.constantFrom<[number, number]>([-600, 1440], [840, -1440]),
  );
  const zones = fc.tuple(offsets, fc.nat(6 * 24 * 2), fc.boolean()).map(([[offset, by], halfHours, isBack]) => {
    const atMs = START + 2 * DAY_MS + halfHours * (HOUR_MS / 2);
    return isBack
      ? zoneOf(offset, [atMs, offset + by], [atMs + 5 * DAY_MS, offset])
      : zoneOf(offset, [atMs, offset + by]);
  });

  test("is that of a clock that is watched minute by minute, through changes of clocks of every kind", () => {
    let found = 0;
    fc.assert(
      fc.property(
        expressions,
        zones,
        fc.nat(12 * 24 * 60),
        fc.nat(MINUTE_MS - 1),
        (expression, zone, minutes, rest) => {
          const cron = parseCron(expression);
          const after = START + minutes * MINUTE_MS;
          const until = after + 5 * DAY_MS;
          const expected = oracle(cron, after, zone, until);
          const next = nextAfter(cron, after, zone);
          expect(next !== null && next <= until ? next : null).toBe(expected);
          // Seconds do not matter, unless a whole minute has begun.
          if (expected !== null && expected > after + rest) expect(nextAfter(cron, after + rest, zone)).toBe(expected);
          if (expected !== null) found++;
        },
      ),
      { numRuns: 120 },
    );
    expect(found).toBeGreaterThan(40);
  });

  test("is asked of a zone a bounded number of times, however far away it is", () => {
    let asked = 0;
    const zone: Zone = {
      offsetMinutesAt: (utcMs) => {
        asked++;
        return BERLIN.offsetMinutesAt(utcMs);
      },
    };
    expect(nextAfter(parseCron("0 0 29 2 *"), Date.UTC(2026, 5, 1), zone)).toBe(Date.UTC(2028, 1, 28, 22));
    expect(asked).toBeLessThan(10);
    asked = 0;
    expect(nextAfter(parseCron("30 2 * * *"), Date.UTC(2026, 2, 29, 0), zone)).toBe(Date.UTC(2026, 2, 29, 1));
    expect(asked).toBeLessThan(100);
  });
});
