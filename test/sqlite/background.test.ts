import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { expect, test } from "vitest";
import { jobsFrom, newPath, openAt } from "./test-jobs.ts";

/** Of each thread of this process. */
function niceness(): number[] {
  const stats = readdirSync("/proc/self/task").map((tid) => readFileSync(`/proc/self/task/${tid}/stat`, "utf8"));
  // After the name, which may have anything in it: the seventeenth field.
  return stats.map((stat) => Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]));
}

test.skipIf(process.platform !== "linux" || getPriority() >= 10)(
  "the views' threads stand back behind the rest of the process",
  async () => {
    const low = (): number => niceness().filter((nice) => nice === 10).length;
    const before = low();
    const views = await openAt(await newPath());
    await views.put(1, jobsFrom(1, 1), [], []);
    await views.list({ limit: 1 });
    expect(low()).toBe(before + 2);
  },
);
