// The end of jobs' retention, as the views know it, and what becomes of what they have when something was missed.

import { describe, expect, test } from "vitest";
import { JobsFeeder } from "../../src/controller/jobs/feeder.ts";
import { SiteJournal } from "../../src/controller/journal/site-journal.ts";
import { JobsStage, REQUEST, SPEC } from "../../src/controller/jobs/test-jobs.ts";
import { advance } from "../../src/controller/scopes/test-scopes.ts";
import type { Job } from "../../src/core/jobs/model.ts";
import type { SqliteViews } from "../../src/drivers/sqlite/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { ManualClock } from "../../src/loops/test-clock.ts";
import { MemoryLog, MemoryStore } from "../../src/logs/index.ts";
import type { ExpiredJobs, ExpiredPlace } from "../../src/ports/views.ts";
import { waitFor } from "../servers/index.ts";
import { jobsFrom, newJob, newLogger, newPath, openAt } from "./test-jobs.ts";

const HOUR_MS = 3_600_000;

function finished(sequence: number, finishedAtMs: number, retentionMs = HOUR_MS): Job {
  return newJob(sequence, { state: "completed", finishedAtMs }, { retentionMs });
}

async function ids(views: SqliteViews, nowMs: number, limit = 100): Promise<readonly string[]> {
  return (await views.expired(nowMs, limit)).jobs.map(({ id }) => id);
}

describe("expired jobs", () => {
  test("are finished ones, from the last millisecond of their retention on, oldest first, at most so many", async () => {
    const views = await openAt(await newPath());
    const jobs = [finished(1, 2_000), finished(2, 1_000), finished(3, 0, 10 * HOUR_MS), newJob(4)];
    await views.put(9, jobs, [], []);
    expect(await views.expired(1_000 + HOUR_MS - 1, 100)).toEqual({ jobs: [], position: 9 });
    expect(await ids(views, 1_000 + HOUR_MS)).toEqual(["job-2"]);
    expect(await ids(views, 2 * HOUR_MS)).toEqual(["job-2", "job-1"]);
    expect(await ids(views, 2 * HOUR_MS, 1)).toEqual(["job-2"]);
    expect(await ids(views, 100 * HOUR_MS)).toEqual(["job-2", "job-1", "job-3"]);
  });

  test("come page by page, each behind the last job of the one before, also where many ended in one millisecond", async () => {
    const views = await openAt(await newPath());
    const jobs = [finished(1, 2_000), finished(2, 1_000), finished(3, 1_000), finished(4, 1_000), finished(5, 3_000)];
    await views.put(9, jobs, [], []);
    const pages: string[][] = [];
    let after: ExpiredPlace | null = null;
    do {
      const page: ExpiredJobs = await views.expired(2 * HOUR_MS, 2, after);
      pages.push(page.jobs.map(({ id }) => id));
      after = page.jobs.at(-1) ?? null;
    } while (after !== null);
    expect(pages).toEqual([["job-2", "job-3"], ["job-4", "job-1"], ["job-5"], []]);
  });

  test("are so no more when they are sent once more, and when they are forgotten", async () => {
    const views = await openAt(await newPath());
    await views.put(2, [finished(1, 0), finished(2, 0)], [], []);
    await views.put(3, [newJob(1)], [], ["job-2"]);
    expect(await ids(views, 100 * HOUR_MS)).toEqual([]);
    await views.put(4, [finished(1, 5 * HOUR_MS)], [], []);
    expect(await ids(views, 6 * HOUR_MS - 1)).toEqual([]);
    expect(await views.expired(6 * HOUR_MS, 10)).toMatchObject({ jobs: [{ id: "job-1" }], position: 4 });
  });

  test("of many are found by their index: as fast among twenty thousand that are kept", async () => {
    const views = await openAt(await newPath());
    await views.put(20_000, jobsFrom(1, 20_000, { state: "completed", finishedAtMs: HOUR_MS }), [], []);
    await views.put(20_001, [finished(20_001, 0)], [], []);
    const startedMs = performance.now();
    expect(await ids(views, 2 * HOUR_MS)).toEqual(["job-20001"]);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });
});

describe("what is in doubt", () => {
  test("stays where it is put again, and goes with its log where it is not; what is finished is kept for its whole time", async () => {
    const path = await newPath();
    const views = await openAt(path);
    const log = { attempt: 1, offset: 0, text: "log" };
    await views.put(
      5,
      [newJob(1), newJob(2), finished(3, 1_000)],
      [
        { jobId: "job-1", ...log },
        { jobId: "job-2", ...log },
      ],
      [],
    );
    await views.doubt(10 * HOUR_MS);
    await views.put(5, [newJob(1, { state: "building" })], [], []);
    expect((await views.get("job-2")).job?.state).toBe("pending");
    await views.put(9, [], [], [], { settles: true });
    await views.close();
    const again = await openAt(path);
    expect([(await again.get("job-1")).job?.state, (await again.get("job-2")).job]).toEqual(["building", null]);
    expect((await again.log("job-1", 1, 0, 100)).text).toBe("log");
    await expect(again.log("job-2", 1, 0, 100)).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(await ids(again, 11 * HOUR_MS - 1)).toEqual([]);
    expect(await ids(again, 11 * HOUR_MS)).toEqual(["job-3"]);
    expect(await again.position()).toBe(9);
  });

  test("and was not settled, as its process ended before, is there still where the next one has no doubt", async () => {
    const path = await newPath();
    const views = await openAt(path);
    await views.put(5, [newJob(1), newJob(2)], [], []);
    await views.doubt(10 * HOUR_MS);
    await views.close();
    const again = await openAt(path);
    await again.trust();
    await again.put(9, [newJob(1, { state: "building" })], [], []);
    await again.doubt(10 * HOUR_MS);
    await again.trust();
    await again.put(12, [], [], [], { settles: true });
    const states = await Promise.all(["job-1", "job-2"].map(async (id) => (await again.get(id)).job?.state));
    expect(states).toEqual(["building", "pending"]);
  });

  test("is nothing where nothing was missed", async () => {
    const views = await openAt(await newPath());
    await views.put(5, [newJob(1), finished(2, 1_000)], [], []);
    await views.trust();
    await views.put(5, [], [], [], { settles: true });
    expect([(await views.get("job-1")).job?.state, await ids(views, 1_000 + HOUR_MS)]).toEqual(["pending", ["job-2"]]);
  });
});

test("a leader on real views forgets what is past its retention, there and in the book, and nothing else", async () => {
  const views = await openAt(await newPath());
  const clock = new ManualClock();
  const fold = new SiteJournal(systemDigest);
  const stage = new JobsStage(clock, new MemoryLog(new MemoryStore(), fold), fold, systemDigest, "site", views);
  const feeder = new JobsFeeder({ fold, views, history: null, clock, logger: newLogger().logger });
  stage.leadership.set(1);
  const specs = [0, HOUR_MS, HOUR_MS, 100 * HOUR_MS].map((retentionMs) => ({ ...SPEC, retentionMs }));
  const [atOnce, soon, again, late] = await stage.service.submit(REQUEST, specs);
  for (const id of [atOnce, soon, again, late]) await stage.service.cancel(REQUEST, id!);
  const until = (what: string, stepMs: number, isSo: () => boolean): Promise<void> =>
    waitFor(what, async () => {
      await advance(clock, stepMs);
      return isSo() && feeder.position === fold.chain.sequence;
    });
  await until("the first to be forgotten", 1_000, () => stage.forgotten.length > 0);
  expect(stage.forgotten).toEqual([atOnce]);
  await stage.service.retry(REQUEST, again!);
  await until("the second to be forgotten", 60_000, () => stage.forgotten.length > 1);
  await until("hours to pass", 60_000, () => clock.nowMs > 3 * HOUR_MS);
  expect(stage.forgotten).toEqual([atOnce, soon]);
  expect([
    (await views.get(soon!)).job,
    (await views.get(again!)).job?.state,
    (await views.get(late!)).job?.state,
  ]).toEqual([null, "pending", "cancelled"]);
  feeder.close();
  stage.journal.close();
});
