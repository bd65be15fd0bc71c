import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextAfter, parseCron } from "../../core/jobs/index.ts";
import { nextFire } from "../worlds/system.ts";

const NOW = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

/** Without anything that is kept: Intl is asked each time. */
function askedZone(timeZone: string): { offsetMinutesAt(utcMs: number): number } {
  const field = "numeric" as const;
  const format = new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
    year: field,
    month: field,
    day: field,
    hour: field,
    minute: field,
    second: field,
    timeZone,
    hourCycle: "h23",
  });
  return {
    offsetMinutesAt: (utcMs) => {
      const parts = new Map(format.formatToParts(utcMs).map(({ type, value }) => [type, Number(value)]));
      const [year = 0, month = 1, ...rest] = ["year", "month", "day", "hour", "minute", "second"].map((type) =>
        parts.get(type as Intl.DateTimeFormatPartTypes),
      );
      const localMs = Date.UTC(year, month - 1, ...(rest as number[]));
      return Math.round((localMs - Math.floor(utcMs / 1_000) * 1_000) / MINUTE_MS);
    },
  };
}

describe("when a schedule fires next", () => {
  it("is by the zone's own clocks, and may be years away", () => {
    expect(nextFire("0 3 * * *", "Europe/Berlin", NOW)).toBe(Date.UTC(2026, 0, 1, 2));
    expect(nextFire("0 0 29 2 *", "UTC", NOW)).toBe(Date.UTC(2028, 1, 29));
  });

  it("is the same as without anything kept of zones and cron lines, on days on which clocks change above all", () => {
    const lines = [
      "* * * * *",
      "30 * * * *",
      "*/7 2 * * *",
      "30 2 * * *",
      "0 0 * * *",
      "15 1,2,3 * * 0",
      "59 23 31 * *",
    ];
    // Half hours, whole days left out, changes at midnight, and in spring on the other half of the earth.
    const zones = [
      ["Europe/Berlin", Date.UTC(2026, 9, 25, 1)],
      ["Europe/Berlin", Date.UTC(2026, 2, 29, 1)],
      ["America/New_York", Date.UTC(2026, 10, 1, 6)],
      ["Australia/Lord_Howe", Date.UTC(2026, 9, 3, 15, 30)],
      ["America/Santiago", Date.UTC(2026, 8, 6, 4)],
      ["Africa/Casablanca", Date.UTC(2026, 1, 15, 2)],
      ["Pacific/Apia", Date.UTC(2011, 11, 30, 10)],
      ["Asia/Kathmandu", Date.UTC(2026, 0, 1)],
    ] as const;
    const near = fc.integer({ min: -2 * DAY_MS, max: 2 * DAY_MS });
    fc.assert(
      fc.property(fc.constantFrom(...zones), fc.constantFrom(...lines), near, ([zone, changeMs], line, byMs) => {
        const expected = nextAfter(parseCron(line), changeMs + byMs, askedZone(zone));
        expect(nextFire(line, zone, changeMs + byMs)).toBe(expected);
      }),
      { numRuns: 150 },
    );
  });

  it("of more cron lines and zones than are kept is still right", () => {
    const lines = Array.from(
      { length: 1_500 },
      (_, at) => `${at % 60} ${Math.floor(at / 60) % 24} ${1 + (at % 28)} * *`,
    );
    const names = Intl.supportedValuesOf("timeZone").slice(0, 150);
    for (const round of [1, 2]) {
      for (const [at, line] of lines.entries()) {
        const next = nextFire(line, "UTC", NOW);
        if (at % 500 === round) expect(next).toBe(nextAfter(parseCron(line), NOW, { offsetMinutesAt: () => 0 }));
      }
      for (const name of names) nextFire("0 3 * * *", name, NOW);
      expect(nextFire("0 3 * * *", names[0]!, NOW)).toBe(nextAfter(parseCron("0 3 * * *"), NOW, askedZone(names[0]!)));
    }
  });

  it.each(["0 0 30 2 *", "0 0 31 4,6,9,11 *", "59 23 30-31 feb *"])("is refused where it is never: %s", (cron) => {
    const message = expect.stringContaining("never fires") as string;
    expect(() => nextFire(cron, "UTC", NOW)).toThrow(expect.objectContaining({ code: "SCHEDULE_INVALID", message }));
  });

  it.each([
    ["61 * * * *", "UTC"],
    ["0 0 * * *", "Mars/Base"],
  ])("is refused where it can't be read: %s in %s", (cron, zone) => {
    expect(() => nextFire(cron, zone, NOW)).toThrow(expect.objectContaining({ code: "SCHEDULE_INVALID" }));
  });
});
