import { stat } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Job } from "../../src/core/jobs/model.ts";
import { allPages, jobsFrom, newAttempt, newJob, newPath, openAt } from "./test-jobs.ts";

describe("what was put", () => {
  test("is there as it was, and again after the views were opened anew", async () => {
    const path = await newPath();
    const views = await openAt(path);
    expect(await views.position()).toBe(0);
    const job = newJob(1, { result: { text: "ü \u0000 \ud83d\ude80", list: [1, null, true] } });
    await views.put(3, [job], [], []);
    expect((await views.get(job.id)).job).toEqual(job);
    expect((await views.get("no-such-job")).job).toBeNull();
    expect(await views.position()).toBe(3);
    await views.close();
    const again = await openAt(path);
    expect(await again.position()).toBe(3);
    expect((await again.get(job.id)).job).toEqual(job);
    expect((await again.list({ limit: 10 })).position).toBe(3);
  });

  test("may be put again; what is older than the position changes nothing", async () => {
    const views = await openAt(await newPath());
    const pending = newJob(1);
    const done: Job = { ...pending, state: "completed", finishedAtMs: 5 };
    await views.put(5, [done], [], []);
    await views.put(5, [done], [], []);
    await views.put(4, [pending, newJob(2)], [], []);
    expect(await views.position()).toBe(5);
    expect((await views.list({ limit: 10 })).jobs).toEqual([done]);
  });

  test("comes with what the views were built without, until they are built anew", async () => {
    const path = await newPath();
    const views = await openAt(path);
    const holes = [{ first: 5, last: 7, untilMs: 12 }];
    await views.holes.write(holes);
    await views.put(9, [newJob(1)], [], []);
    await views.close();
    const again = await openAt(path);
    expect([(await again.get("job-1")).holes, await again.holes.read()]).toEqual([holes, holes]);
    await again.holes.rebuild("a test");
    expect(await again.position()).toBe(0);
    expect(await again.get("job-1")).toEqual({ job: null, position: 0, holes: [] });
  });

  test("of the past, an end of a job, replaces what is older here and nothing that is newer", async () => {
    const views = await openAt(await newPath());
    const at = (jobEpoch: number, state: "pending" | "completed") => [newJob(1, { jobEpoch, state })];
    const seen = async () => {
      const { job, position } = await views.get("job-1");
      return [job?.state, job?.jobEpoch, position];
    };
    await views.put(1, at(0, "pending"), [], []);
    await views.put(1, at(1, "completed"), [], [], { isPast: true });
    expect(await seen()).toEqual(["completed", 1, 1]);
    await views.put(1, at(3, "completed"), [], [], { isPast: true });
    await views.put(1, at(1, "completed"), [], [], { isPast: true });
    expect(await seen()).toEqual(["completed", 3, 1]);
    await views.put(2, at(1, "pending"), [], []);
    expect(await seen()).toEqual(["pending", 1, 2]);
  });

  test("stays while it is built, however often readers ask how far it is", async () => {
    const views = await openAt(await newPath());
    expect(await views.reached()).toBe(0);
    await views.put(0, [newJob(1)], [], []);
    expect(await views.reached()).toBe(0);
    await views.put(0, [newJob(2)], [], []);
    expect(await views.reached()).toBe(0);
    await views.put(7, [newJob(3)], [], []);
    expect(await views.reached()).toBe(7);
    expect((await allPages(views, { limit: 10 })).ids).toHaveLength(3);
  });

  test("in many puts at once shares transactions, keeps its order, and is all there", async () => {
    const views = await openAt(await newPath());
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        await views.put(i + 1, [newJob(i + 1), newJob(1, { jobEpoch: i + 1 })].slice(i === 0 ? 1 : 0), [], []);
        order.push(i + 1);
      }),
    );
    expect(order).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
    expect((await views.get("job-1")).job!.jobEpoch).toBe(100);
    expect((await allPages(views, { limit: 500 })).ids).toHaveLength(100);
  });

  test("may be larger than what may be under way at one time", async () => {
    const views = await openAt(await newPath());
    const jobs = jobsFrom(1, 600, {}, { payload: "x".repeat(20_000) });
    const put = views.put(600, jobs, [], []);
    let bytesMax = 0;
    const watch = setInterval(() => {
      bytesMax = Math.max(bytesMax, views.stats().bytesInFlight);
    }, 1);
    await put;
    clearInterval(watch);
    expect(bytesMax).toBeGreaterThan(1_000_000);
    expect(bytesMax).toBeLessThan(9_000_000);
    expect((await allPages(views, { limit: 500 })).ids).toHaveLength(600);
  });

  test("is refused past 256 puts that wait, and then until the position is asked for: there must be no hole", async () => {
    const views = await openAt(await newPath());
    const outcomes = await Promise.allSettled(
      Array.from({ length: 300 }, (_, i) => views.put(i + 1, [newJob(i + 1)], [], [])),
    );
    expect(outcomes.filter((outcome) => outcome.status === "fulfilled")).toHaveLength(256);
    expect(outcomes[256]).toMatchObject({ status: "rejected", reason: { code: "OVERLOADED" } });
    await expect(views.put(301, [newJob(301)], [], [])).rejects.toMatchObject({ code: "OVERLOADED" });
    expect(await views.position()).toBe(256);
    await views.put(257, [newJob(257)], [], []);
    expect(await views.position()).toBe(257);
  });

  test("is drained by close", async () => {
    const path = await newPath();
    const views = await openAt(path);
    const puts = Array.from({ length: 50 }, (_, i) => views.put(i + 1, jobsFrom(i * 10 + 1, 10), [], []));
    await views.close();
    await Promise.all(puts);
    await expect(views.get("job-1")).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await expect(views.put(51, [], [], [])).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    // The WAL is gone: everything is in one file.
    await expect(stat(`${path}-wal`)).rejects.toMatchObject({ code: "ENOENT" });
    expect(await (await openAt(path)).position()).toBe(50);
  });
});

describe("what is forgotten", () => {
  test("goes with its words and its log, and its room goes back to the disk", async () => {
    const path = await newPath();
    const views = await openAt(path);
    const jobs = jobsFrom(1, 200);
    const logs = jobs.map(({ id: jobId }) => ({ jobId, attempt: 1, offset: 0, text: "x".repeat(60_000) }));
    await views.put(200, jobs, logs, []);
    await views.put(201, [newJob(201)], [], []);
    const forgotten = jobs.map((job) => job.id);
    await views.put(202, [], [{ jobId: "job-9", attempt: 1, offset: 60_000, text: "late" }], forgotten);
    await views.put(203, [], [{ jobId: "job-9", attempt: 1, offset: 60_004, text: "later" }], forgotten);
    expect((await views.list({ limit: 10, search: "linux" })).jobs.map((job) => job.id)).toEqual(["job-201"]);
    expect((await views.get("job-9")).job).toBeNull();
    await expect(views.log("job-9", 1, 0, 1_000)).rejects.toMatchObject({ code: "NOT_FOUND" });
    for (let position = 204; position < 224; position++) await views.put(position, [], [], []);
    await views.close();
    const { size } = await stat(path);
    expect(size).toBeLessThan(6_000_000);
    const database = new DatabaseSync(path, { readOnly: true });
    const count = (from: string): unknown => database.prepare(`SELECT count(*) AS count FROM ${from}`).get()!["count"];
    expect([count("jobs"), count("logs"), count("words WHERE words MATCH 'linux'")]).toEqual([1, 0, 1]);
    database.close();
  });
});

describe("a log", () => {
  test("is read by bytes across chunks and never cut within a character", async () => {
    const views = await openAt(await newPath());
    const chunks = ["plain ", "grüße ", "\u{1f680}\u{1f680}", "€", " end\n"];
    const whole = chunks.join("");
    let offset = 0;
    const logs = chunks.map((text) => {
      const log = { jobId: "job-1", attempt: 1, offset, text };
      offset += Buffer.byteLength(text);
      return log;
    });
    await views.put(1, [newJob(1, { state: "building" })], logs, []);
    for (const bytesMax of [1, 4, 5, 7, 11, 1_000_000]) {
      let text = "";
      for (let at = 0; at < offset;) {
        const page = await views.log("job-1", 1, at, bytesMax);
        expect(page.nextOffset - at).toBe(Buffer.byteLength(page.text));
        expect(page.nextOffset).toBeGreaterThan(at);
        expect(page.nextOffset - at).toBeLessThanOrEqual(Math.max(4, bytesMax));
        text += page.text;
        at = page.nextOffset;
      }
      expect(text).toBe(whole);
    }
    const rocket = Buffer.from(whole).indexOf(Buffer.from("\u{1f680}"));
    expect((await views.log("job-1", 1, rocket + 1, 4)).text).toBe("\u{1f680}");
    expect(await views.log("job-1", 1, offset + 50, 10)).toEqual({
      text: "",
      nextOffset: offset + 50,
      isComplete: false,
    });
  });

  test("is complete when all of it was read and its attempt has ended", async () => {
    const views = await openAt(await newPath());
    const running = newAttempt(2, { endedAtMs: null, end: null });
    const job = newJob(1, { state: "building", attempts: [newAttempt(1), running], lease: running });
    const log = (attempt: number, text: string) => ({ jobId: job.id, attempt, offset: 0, text });
    await views.put(1, [job], [log(1, "first"), log(2, "second")], []);
    expect(await views.log(job.id, 1, 0, 100)).toEqual({ text: "first", nextOffset: 5, isComplete: true });
    expect(await views.log(job.id, 1, 0, 4)).toEqual({ text: "firs", nextOffset: 4, isComplete: false });
    expect(await views.log(job.id, 2, 0, 100)).toEqual({ text: "second", nextOffset: 6, isComplete: false });
    expect((await views.log(job.id, 3, 0, 100)).isComplete).toBe(false);
    const ended = { ...running, endedAtMs: 9, end: "completed" } as const;
    await views.put(2, [{ ...job, state: "completed", finishedAtMs: 9, lease: null, attempts: [ended] }], [], []);
    expect((await views.log(job.id, 2, 0, 100)).isComplete).toBe(true);
    expect((await views.log(job.id, 1, 5, 100)).isComplete).toBe(true);
  });
});
