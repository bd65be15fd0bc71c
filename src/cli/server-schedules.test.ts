import { describe, expect, it } from "vitest";
import { nextFire } from "./server-schedules.ts";

const NOW = Date.UTC(2026, 0, 1);

describe("when a schedule fires next", () => {
  it("is by the zone's own clocks, and may be years away", () => {
    expect(nextFire("0 3 * * *", "Europe/Berlin", NOW)).toBe(Date.UTC(2026, 0, 1, 2));
    expect(nextFire("0 0 29 2 *", "UTC", NOW)).toBe(Date.UTC(2028, 1, 29));
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
