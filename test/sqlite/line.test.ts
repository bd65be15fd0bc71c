// Of which history the views are: the hash of the event at their position (trap 82).

import { expect, test } from "vitest";
import { JobsFeeder } from "../../src/controller/jobs/feeder.ts";
import { JobsStage } from "../../src/controller/jobs/test-jobs.ts";
import { LogHistory } from "../../src/controller/journal/log-history.ts";
import { SiteJournal } from "../../src/controller/journal/site-journal.ts";
import { wholeOf } from "../../src/core/kit/pieces.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { ManualClock } from "../../src/engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../src/logs/index.ts";
import type { LogRecord } from "../../src/ports/log.ts";
import type { Views } from "../../src/ports/views.ts";
import { waitFor } from "../servers/index.ts";
import { newJob, newPath, openAt } from "./test-jobs.ts";

test("the line is that of the position, kept where none is given, and outlives the process", async () => {
  const path = await newPath();
  const views = await openAt(path);
  expect(await views.line()).toBe(null);
  await views.put(1, [newJob(1)], [], [], { line: "aa" });
  await Promise.all([views.put(2, [newJob(2)], [], [], { line: "bb" }), views.put(2, [newJob(3)], [], [])]);
  expect([await views.reached(), await views.line()]).toEqual([2, "bb"]);
  // Below the position: nothing of it counts.
  await views.put(1, [], [], [], { line: "aa" });
  expect(await views.line()).toBe("bb");
  await views.close();
  const again = await openAt(path);
  expect([await again.reached(), await again.line()]).toEqual([2, "bb"]);
});

test("of another cluster's file nothing is left", async () => {
  const path = await newPath();
  const views = await openAt(path);
  await views.put(1, [newJob(1)], [], [], { line: "aa" });
  await views.close();
  const other = await openAt(path, { clusterId: "another" });
  expect([await other.position(), await other.line()]).toEqual([0, null]);
});

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** A history of so many jobs, as a leader has written it. */
async function written(name: string, jobs: number) {
  const [clock, fold, store] = [new ManualClock(), new SiteJournal(systemDigest), new MemoryStore()];
  const log = new MemoryLog(store, fold);
  const stage = new JobsStage(clock, log, fold, systemDigest, name);
  stage.leadership.set(1);
  const ids = await stage.submitMany(jobs);
  const read = (from: number, max: number): Promise<readonly LogRecord[]> => log.read(from, max);
  const history = new LogHistory({
    log: { read, readStored: read },
    chain: () => fold.chain,
    digest: systemDigest,
    clock: systemClock,
  });
  return { ids: [...ids].toSorted(), history, head: { position: jobs, epoch: 1 }, data: wholeOf(fold.snapshot()) };
}

const listed = async (views: Views): Promise<readonly string[]> =>
  (await views.list({ limit: 50 })).jobs.map(({ id }) => id).toSorted();

/** False also while the file is made anew: whoever reads then is refused for a moment. */
const shows = (views: Views, ids: readonly string[], position: number): Promise<boolean> =>
  Promise.all([listed(views), views.reached()]).then(
    ([seen, reached]) => String(seen) === String(ids) && reached === position,
    (error: unknown) => {
      expect(error).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
      expect(String(error)).not.toContain("started again");
      return false;
    },
  );

test.each([
  { what: "of the same length", length: 3 },
  { what: "that is longer", length: 5 },
])(
  "a running node that takes over another history $what shows its jobs, and none of the old one",
  async ({ length }) => {
    const [before, after] = [await written("old", 3), await written("new", length)];
    const fold = new SiteJournal(systemDigest);
    fold.restore(before.data, before.head);
    const views = await openAt(await newPath());
    const { history } = after;
    const feeder = new JobsFeeder({ fold, views, history, clock: systemClock, logger: SILENT });
    await waitFor("the old history", () => shows(views, before.ids, 3));
    fold.restore(after.data, after.head);
    await waitFor("the new history", () => shows(views, after.ids, length));
    feeder.close();
    await views.close();
  },
);

test("views of an earlier release, which kept no hash, are taken as they are", async () => {
  const { ids, history, data, head } = await written("site", 3);
  const fold = new SiteJournal(systemDigest);
  fold.restore(data, head);
  const path = await newPath();
  const earlier = await openAt(path);
  const jobs = ids.map((id) => fold.book.applied.job(id)!);
  await earlier.put(3, jobs, [], []);
  expect(await earlier.line()).toBe(null);
  await earlier.close();
  const views = await openAt(path);
  const puts: number[] = [];
  const counted = {
    position: () => views.position(),
    line: () => views.line(),
    doubt: (nowMs: number) => views.doubt(nowMs),
    trust: () => views.trust(),
    holes: views.holes,
    put: (...args: Parameters<Views["put"]>) => {
      puts.push(args[1].length);
      return views.put(...args);
    },
  };
  const feeder = new JobsFeeder({ fold, views: counted, history, clock: systemClock, logger: SILENT });
  await waitFor("the feeder to know where they are", async () => feeder.position === 3);
  expect([await listed(views), puts]).toEqual([ids, []]);
  feeder.close();
  await views.close();
});
