import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import type { SqliteViews } from "../../src/drivers/sqlite/index.ts";
import type { PutPiece } from "../../src/drivers/sqlite/messages.ts";
import { waitFor } from "../servers/index.ts";
import { allPages, jobsFrom, newJob, newLogger, newPath, openAt } from "./test-jobs.ts";

const WRITER = new URL("./test-writer.ts", import.meta.url).pathname;
const WRITER_THREAD = new URL("../../src/drivers/sqlite/writer-thread.ts", import.meta.url);

/** Job 1 has the position of the last put in it, and there is one more job for each. */
async function expectWhole(views: SqliteViews, position: number): Promise<void> {
  expect((await views.get("job-1")).job!.jobEpoch).toBe(position);
  const { ids } = await allPages(views, { limit: 500 });
  expect(ids).toEqual(Array.from({ length: position + 1 }, (_, i) => `job-${position + 1 - i}`));
  expect((await allPages(views, { limit: 500, search: "linux" })).ids).toEqual(ids);
}

test("kill -9 leaves position and data at the same put, and nothing acknowledged is lost", async () => {
  const path = await newPath();
  let acknowledged = 0;
  for (let round = 1; round <= 4; round++) {
    const writer = spawn(process.execPath, [WRITER, path], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(writer, "exit");
    const enough = acknowledged + 23 * round;
    for await (const line of createInterface(writer.stdout)) {
      acknowledged = Math.max(acknowledged, Number(line));
      if (acknowledged >= enough) writer.kill("SIGKILL");
    }
    await ended;
    expect(acknowledged).toBeGreaterThanOrEqual(enough);
    const views = await openAt(path);
    const position = await views.position();
    expect(position).toBeGreaterThanOrEqual(acknowledged);
    await expectWhole(views, position);
    await views.close();
    acknowledged = position;
  }
});

test("a writer that is ended in the middle of a transaction leaves nothing of it", async () => {
  const path = await newPath();
  const views = await openAt(path);
  await views.put(1, [newJob(2), newJob(1, { jobEpoch: 1 })], [], []);
  await views.close();
  const worker = new Worker(WRITER_THREAD, { workerData: { path, clusterId: "c1" } });
  const ask = async (id: number, request: PutPiece | { kind: "position" }): Promise<unknown> => {
    worker.postMessage({ id, request });
    return (await once(worker, "message"))[0];
  };
  expect(await ask(1, { kind: "position" })).toMatchObject({ kind: "answer", value: 1 });
  const jobs = [...jobsFrom(3, 500), newJob(1, { jobEpoch: 9 })].map((job) => JSON.stringify(job));
  const piece = {
    kind: "put",
    position: 9,
    line: null,
    isPast: false,
    settles: false,
    jobs,
    logs: [],
    forgotten: ["job-2"],
    bytes: 1,
    isFirst: true,
    isLast: false,
  };
  expect(await ask(2, piece as PutPiece)).toMatchObject({ kind: "answer", id: 2 });
  await worker.terminate();

  const again = await openAt(path);
  expect(await again.position()).toBe(1);
  await expectWhole(again, 1);
  await again.put(2, [newJob(3), newJob(1, { jobEpoch: 2 })], [], []);
  await expectWhole(again, 2);
});

test("a thread that dies refuses what waits, is started again, and takes puts once its position was asked for", async () => {
  const path = await newPath();
  const threads: Worker[] = [];
  const onWorker = (worker: Worker): void => void threads.push(worker);
  process.on("worker", onWorker);
  const { logger, lines } = newLogger();
  let resets = 0;
  const views = await openAt(path, { logger, onReset: () => resets++ });
  await views.put(1, [newJob(2), newJob(1, { jobEpoch: 1 })], [], []);
  const big = views.put(1_000, jobsFrom(1_000, 3_000), [], []);
  const behind = views.put(1_001, [newJob(5_000)], [], []);
  const refused = Promise.allSettled([big, behind]);
  await waitFor("the put to be under way", () => views.stats().bytesInFlight > 0);
  await threads[0]!.terminate();
  for (const outcome of await refused) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { code: "BACKEND_UNAVAILABLE" } });
  }
  expect(resets).toBe(1);
  await expect(views.put(1_002, [newJob(5_001)], [], [])).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  expect(await views.position()).toBe(1);
  await views.put(2, [newJob(3), newJob(1, { jobEpoch: 2 })], [], []);
  await expectWhole(views, 2);

  // The reader too, and puts do not notice.
  const read = views.list({ limit: 10 });
  await threads.find((thread) => thread.threadName === "views-reader")!.terminate();
  await expect(read).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  await views.put(3, [newJob(4), newJob(1, { jobEpoch: 3 })], [], []);
  await expectWhole(views, 3);
  expect(lines.filter((line) => line.level === "error").map((line) => line.fields["thread"])).toEqual([
    "writer",
    "reader",
  ]);

  // Not for ever.
  for (let deaths = 2; deaths <= 6; deaths++) {
    const count = threads.length;
    await threads.findLast((thread) => thread.threadId !== -1 && thread.threadName === "views-writer")!.terminate();
    await waitFor("the death to be noticed", () => threads.length > count || deaths === 6);
  }
  await expect(views.position()).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", message: /too often/ as never });
  expect(lines.at(-1)!.message).toContain("stays down");
  process.off("worker", onWorker);
});
