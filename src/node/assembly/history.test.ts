// What is refused and reported when the histories of this site and of others fill the disk.

import { expect, test } from "vitest";
import type { Archive } from "../../logs/index.ts";
import { historyLevel, historyRefusal, receiptsRefusal } from "./history.ts";

const MIB = 2 ** 20;

function archive(usedMib: number, quotaMib: number | null = 100): Pick<Archive, "quota" | "isBehind"> {
  const quotaBytes = quotaMib === null ? null : quotaMib * MIB;
  const share = (part: number): number | null => (quotaBytes === null ? null : quotaBytes * part);
  const level = quotaMib === null || usedMib < 80 ? "ok" : usedMib < 95 ? "alarm" : "refuse";
  const quota = {
    usedBytes: usedMib * MIB,
    quotaBytes,
    alarmBytes: share(0.8),
    refuseBytes: share(0.95),
    level,
  } as const;
  return { quota, isBehind: false };
}

test.each([
  [10, 10, "ok", false, false],
  [10, 70, "alarm", false, false],
  [10, 85, "alarm", false, true],
  [0, 500, "alarm", false, true],
  [80, 0, "alarm", false, false],
  [95, 0, "refuse", true, true],
] as const)("%i MiB of own events and %i of others' of 100: %s", (own, others, level, refusesJobs, refusesPages) => {
  const [mine, theirs] = [archive(own), archive(others)];
  expect(historyLevel(mine, theirs)).toBe(level);
  expect(historyRefusal(mine)?.code ?? null).toBe(refusesJobs ? "QUOTA_EXCEEDED" : null);
  expect(receiptsRefusal(mine, theirs)?.code ?? null).toBe(refusesPages ? "QUOTA_EXCEEDED" : null);
});

test("without a quota nothing is refused", () => {
  expect(historyLevel(archive(500, null), archive(500, null))).toBe("ok");
  expect(receiptsRefusal(archive(500, null), archive(500, null))).toBeNull();
});
