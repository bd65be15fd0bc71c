import { describe, expect, it } from "vitest";
import { wholeOf } from "../../core/kit/pieces.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { LogRecord } from "../../ports/log.ts";
import { JobsFeeder } from "./feeder.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { JobsStage, ListedViews, newFold, REQUEST, SPEC } from "./test-jobs.ts";
import { advance, drain } from "../scopes/test-scopes.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

async function leading(): Promise<{ stage: JobsStage; fold: SiteJournal; clock: ManualClock }> {
  const clock = new ManualClock();
  const fold = newFold(digest);
  const stage = new JobsStage(clock, new MemoryLog(new MemoryStore(), fold), fold, digest);
  stage.leadership.set(1);
  await drain();
  return { stage, fold, clock };
}

async function submit(stage: JobsStage, count: number): Promise<readonly string[]> {
  return stage.service.submit(
    REQUEST,
    Array.from({ length: count }, () => SPEC),
  );
}

function bound(views: ListedViews) {
  return {
    position: () => views.position(),
    doubt: () => views.doubt(),
    trust: () => views.trust(),
    put: (...args: Parameters<ListedViews["put"]>) => views.put(...args),
  };
}

/** A node whose views are fed, and all that it applies, for another life of it. */
async function recorded() {
  const { stage, fold, clock } = await leading();
  const records: LogRecord[] = [];
  fold.follow(({ event, bytes }) => void records.push({ position: event.sequence, epoch: 1, data: bytes }));
  const views = new ListedViews();
  const before = new JobsFeeder({ fold, views, history: null, clock, logger: SILENT });
  return { stage, clock, records, views, before };
}

/** Whatever is done takes time, and each look at the clock shows it. */
class SlowClock extends ManualClock {
  override monotonicMs(): number {
    this.nowMs += 0.5;
    return super.monotonicMs();
  }
}

describe("the views", () => {
  it.each([
    { what: "in the book when they begin", isBefore: true, most: 4 * 16 },
    { what: "submitted while they are fed", isBefore: false, most: 4 },
  ])("are fed for two milliseconds of a turn, however many jobs are $what", async ({ isBefore, most }) => {
    const { stage, fold } = await leading();
    const clock = new SlowClock();
    const views = new ListedViews();
    const puts: number[] = [];
    const counted = {
      ...bound(views),
      put: (...args: Parameters<ListedViews["put"]>) => {
        puts.push(args[1].length);
        return views.put(...args);
      },
    };
    if (isBefore) await submit(stage, 300);
    const feeder = new JobsFeeder({ fold, views: counted, history: null, clock, logger: SILENT });
    await drain();
    if (!isBefore) await submit(stage, 300);
    for (let turn = 0; turn < 50; turn++) {
      await advance(clock, 1_000);
      await drain();
    }
    expect([views.jobs.size, views.atPosition, feeder.waiting]).toEqual([300, 300, 0]);
    expect(Math.max(...puts)).toBeLessThanOrEqual(most);
  });

  it("have every job, and the position of the last event, also where that was about something else", async () => {
    const { stage, fold, clock } = await leading();
    await submit(stage, 700);
    const views = new ListedViews();
    const feeder = new JobsFeeder({ fold, views, history: null, clock, logger: SILENT });
    await drain();
    expect([views.jobs.size, views.atPosition, feeder.waiting]).toEqual([700, 700, 0]);
    await stage.poll("a", { max: 0 });
    await advance(clock, 1_000);
    expect([views.atPosition, feeder.position]).toEqual([fold.chain.sequence, fold.chain.sequence]);
  });

  it("of a node that starts again are told what they lack, and not what they have: a million jobs may wait", async () => {
    const { stage, fold, clock } = await leading();
    const ids = await stage.submitMany(2_500);
    const views = new ListedViews();
    const first = new JobsFeeder({ fold, views, history: null, clock, logger: SILENT });
    await drain();
    expect(views.atPosition).toBe(2_500);
    first.close();
    await stage.service.cancel(REQUEST, ids[7]!);
    const [late] = await stage.submitMany(1);
    const had = views.jobs;
    const put: string[] = [];
    const told = {
      position: () => views.position(),
      doubt: () => views.doubt(),
      trust: () => views.trust(),
      put: (...[position, jobs, logs, forgotten]: Parameters<ListedViews["put"]>) => {
        put.push(...jobs.map(({ id }) => id));
        return views.put(position, jobs, logs, forgotten);
      },
    };
    const feeder = new JobsFeeder({ fold, views: told, history: null, clock, logger: SILENT });
    await advance(clock, 1_000);
    expect(put.toSorted()).toEqual([ids[7]!, late!].toSorted());
    expect([had.size, had.get(ids[7]!)?.state, feeder.position]).toEqual([2_501, "cancelled", fold.chain.sequence]);
  });

  it("of a node that applies once more what they had are told nothing before it is where they are, and then all", async () => {
    const { stage, clock, records, views, before } = await recorded();
    const ids = await stage.submitMany(600);
    for (const id of ids) await stage.service.cancel(REQUEST, id);
    await advance(clock, 1_000);
    const had = views.atPosition;
    expect(had).toBe(1_200);
    before.close();
    // More than one put takes.
    await stage.submitMany(1_600);

    const again = newFold(digest);
    const toldAt: number[] = [];
    const told = {
      ...bound(views),
      put: (...args: Parameters<ListedViews["put"]>) => {
        toldAt.push(again.chain.sequence);
        return views.put(...args);
      },
    };
    const feeder = new JobsFeeder({ fold: again, views: told, history: null, clock, logger: SILENT });
    for (const record of records) {
      again.apply(record);
      if (record.position % 100 === 0) await advance(clock, 250);
    }
    await advance(clock, 1_000);
    expect(Math.min(...toldAt)).toBeGreaterThan(had);
    expect(views.jobs.get(ids[0]!)?.state).toBe("cancelled");
    expect([views.jobs.size, views.atPosition, feeder.position]).toEqual([2_200, 2_800, 2_800]);
  });

  it("of such a node lack nothing either where all of it is applied in one go", async () => {
    const { stage, clock, records, views, before } = await recorded();
    await stage.submitMany(600);
    await advance(clock, 1_000);
    before.close();
    await stage.submitMany(1_600);
    const again = newFold(digest);
    const feeder = new JobsFeeder({ fold: again, views, history: null, clock, logger: SILENT });
    for (const record of records.slice(0, 100)) again.apply(record);
    await advance(clock, 1_000);
    for (const record of records.slice(100)) again.apply(record);
    await advance(clock, 1_000);
    expect([views.jobs.size, views.atPosition, feeder.position]).toEqual([2_200, 2_200, 2_200]);
  });

  it("of such a node keep what they have, whatever was applied before it was known where they are", async () => {
    const { stage, clock, records, views, before } = await recorded();
    const jobId = await stage.submit();
    await stage.service.cancel(REQUEST, jobId);
    const isCancelled = records.length;
    await stage.service.retry(REQUEST, jobId);
    await advance(clock, 1_000);
    before.close();
    expect(views.jobs.get(jobId)?.state).toBe("pending");

    const again = newFold(digest);
    const asked = Promise.withResolvers<number>();
    const slow = { ...bound(views), position: () => asked.promise };
    const feeder = new JobsFeeder({ fold: again, views: slow, history: null, clock, logger: SILENT });
    for (const record of records.slice(0, isCancelled)) again.apply(record);
    asked.resolve(views.atPosition);
    await drain();
    for (const record of records.slice(isCancelled)) again.apply(record);
    await stage.submitMany(1);
    again.apply(records.at(-1)!);
    await advance(clock, 1_000);
    expect([views.jobs.get(jobId)?.state, views.jobs.size]).toEqual(["pending", 2]);
    expect(feeder.position).toBe(records.length);
  });

  describe("of another history, as of a disk that was restored without them,", () => {
    const OTHERS = "rebuild: what they have shown is not in the log: they are of another history";

    /** Views that have seen one event more than there is, and a job that is not in the log. */
    async function ahead() {
      const { stage, records, clock: earlier, views, before } = await recorded();
      for (const _ of [1, 2]) await stage.submitMany(1);
      await advance(earlier, 1_000);
      before.close();
      const kept = records.slice(0, 1);
      const clock = new ManualClock();
      const fold = newFold(digest);
      const feeder = new JobsFeeder({ fold, views, history: null, clock, logger: SILENT });
      await drain();
      for (const record of kept) fold.apply(record);
      await drain();
      expect([views.jobs.size, views.atPosition]).toEqual([2, 2]);
      return { views, fold, feeder, clock, rest: records.slice(1) };
    }

    it("are built anew by a node that leads: nothing more was ever committed", async () => {
      const { views, feeder, clock } = await ahead();
      feeder.caughtUp();
      await advance(clock, 1_000);
      expect(views.calls).toContain(OTHERS);
      expect([views.jobs.size, views.atPosition]).toEqual([1, 1]);
    });

    it("are built anew by a node that leads before it is known where they are", async () => {
      const { records, clock: earlier, views, before, stage } = await recorded();
      for (const _ of [1, 2]) await stage.submitMany(1);
      await advance(earlier, 1_000);
      before.close();
      const clock = new ManualClock();
      const fold = newFold(digest);
      fold.apply(records[0]!);
      const feeder = new JobsFeeder({ fold, views, history: null, clock, logger: SILENT });
      feeder.caughtUp();
      await advance(clock, 1_000);
      expect([views.jobs.size, views.atPosition]).toEqual([1, 1]);
    });

    it("are built anew elsewhere when another event has their position", async () => {
      const { views, fold, clock } = await ahead();
      const other = await recorded();
      await other.stage.submitMany(1);
      await other.stage.service.pauseQueue(REQUEST, "default", true);
      fold.apply(other.records[1]!);
      await advance(clock, 1_000);
      expect(views.calls).toContain(OTHERS);
      expect([views.jobs.size, views.atPosition]).toEqual([1, 2]);
    });

    it.each([
      { what: "are built anew", missing: [], rebuilt: 1 },
      { what: "are kept while nobody can say: the event is missing", missing: [{ first: 2, last: 2 }], rebuilt: 0 },
    ])("of a server's own history of events, which has gone on, $what", async ({ missing, rebuilt }) => {
      const { stage, records, clock, views, before } = await recorded();
      for (const _ of [1, 2, 3]) await stage.submitMany(1);
      await advance(clock, 1_000);
      before.close();
      // They have seen two events, of which the second is not the one of the log.
      [views.atPosition, views.atLine] = [2, "f".repeat(64)];
      const fold = newFold(digest);
      const events: { sequence: number; bytes: Uint8Array; eventHash: string }[] = [];
      fold.follow(({ event: { sequence }, bytes }) => events.push({ sequence, bytes, eventHash: fold.chain.hash! }));
      for (const record of records) fold.apply(record);
      const history = {
        read: async function* (from: number, max: number) {
          yield await Promise.resolve(events.slice(from - 1, from - 1 + max));
        },
        stats: () => ({ startSequence: 0 }),
        missing: () => missing,
      };
      const feeder = new JobsFeeder({ fold, views, history, clock, logger: SILENT });
      await advance(clock, 1_000);
      expect(views.calls.filter((call) => call === OTHERS)).toHaveLength(rebuilt);
      feeder.close();
    });

    it("are not built anew where their own event comes", async () => {
      const { views, fold, clock, rest } = await ahead();
      for (const record of rest) fold.apply(record);
      await advance(clock, 1_000);
      expect(views.calls.filter((call) => call.startsWith("rebuild"))).toEqual([]);
      expect([views.jobs.size, views.atPosition]).toEqual([2, 2]);
    });
  });

  it("that are behind are told of each job once, as it is when its turn comes, however much is submitted meanwhile", async () => {
    const { stage, fold, clock } = await leading();
    await stage.submitMany(1_200);
    const views = new ListedViews();
    const put: string[] = [];
    const slow = {
      position: () => views.position(),
      doubt: () => views.doubt(),
      trust: () => views.trust(),
      put: async (...[position, jobs, logs, forgotten]: Parameters<ListedViews["put"]>) => {
        put.push(...jobs.map(({ id }) => id));
        if (put.length < 1_200) await stage.submitMany(300);
        await views.put(position, jobs, logs, forgotten);
      },
    };
    // More than may wait comes in the meantime, and none of it has to.
    const feeder = new JobsFeeder({ fold, views: slow, history: null, clock, logger: SILENT, jobsWaitingMax: 100 });
    for (let turn = 0; turn < 20; turn++) {
      await drain();
      await advance(clock, 100);
    }
    expect([put.length, new Set(put).size, views.jobs.size]).toEqual([1_800, 1_800, 1_800]);
    expect(feeder.position).toBe(fold.chain.sequence);
  });

  it("have a job's log though its turn has not come when it is logged", async () => {
    const { stage, fold, clock } = await leading();
    const ids = await stage.submitMany(600);
    await stage.service.cancel(REQUEST, ids[0]!);
    const last = await stage.submit({ priority: 9 });
    const lease = await stage.leased("b");
    expect(lease.jobId).toBe(last);
    const views = new ListedViews();
    const feeder = new JobsFeeder({ fold, views, history: null, clock, logger: SILENT });
    // Before the first put.
    await Promise.resolve();
    const chunk = { offset: 0, text: "hello" };
    const logged = stage.poll("b", {
      max: 0,
      logs: [{ jobId: last, jobEpoch: lease.jobEpoch, leaseId: lease.leaseId, chunk }],
    });
    for (let turn = 0; turn < 20; turn++) {
      await drain();
      await advance(clock, 100);
    }
    await logged;
    expect([...views.logs.values()]).toEqual(["hello"]);
    expect([views.jobs.size, feeder.position]).toEqual([601, fold.chain.sequence]);
  });

  it("are fed at once after a quiet moment, and a little later on a busy node, so that a job is written once", async () => {
    const { stage, fold, clock } = await leading();
    const { views } = stage;
    const feeder = new JobsFeeder({ fold, views, history: null, clock, logger: SILENT });
    const [first] = await submit(stage, 1);
    await drain();
    expect(views.jobs.get(first!)?.state).toBe("pending");
    await stage.service.cancel(REQUEST, first!);
    const [second] = await submit(stage, 1);
    await drain();
    expect([views.jobs.get(first!)?.state, views.jobs.has(second!)]).toEqual(["pending", false]);
    await advance(clock, 1_000);
    expect([views.jobs.get(first!)?.state, views.jobs.has(second!)]).toEqual(["cancelled", true]);
    await stage.service.cancel(REQUEST, second!);
    await drain();
    expect([views.jobs.get(second!)?.state, feeder.waiting]).toEqual(["cancelled", 0]);
  });

  it("that fail are fed again, with what was finished and forgotten meanwhile", async () => {
    const { stage, fold, clock } = await leading();
    const { views } = stage;
    const feeder = new JobsFeeder({ fold, views, history: null, clock, logger: SILENT });
    const [first] = await submit(stage, 2);
    await drain();
    views.isFailing = true;
    await stage.service.cancel(REQUEST, first!);
    await drain();
    expect(views.jobs.get(first!)?.state).toBe("pending");
    await advance(clock, 5_000);
    views.isFailing = false;
    await advance(clock, 5_000);
    expect(views.jobs.get(first!)?.state).toBe("cancelled");
    expect([views.atPosition, feeder.waiting]).toEqual([fold.chain.sequence, 0]);
  });

  it("of a node that installs a snapshot are fed from it; in doubt is only what it may have dropped", async () => {
    const { stage, fold, clock } = await leading();
    const [first] = await submit(stage, 3);
    const behind = newFold(digest);
    const taken = (): Uint8Array => wholeOf(fold.snapshot());
    behind.restore(taken(), { position: 3, epoch: 1 });
    const views = new ListedViews();
    const feeder = new JobsFeeder({ fold: behind, views, history: null, clock, logger: SILENT });
    await drain();
    expect([views.jobs.size, feeder.position, views.calls]).toEqual([3, 3, ["trust"]]);
    await stage.service.cancel(REQUEST, first!);
    behind.restore(taken(), { position: 4, epoch: 1 });
    await drain();
    // The snapshot has the one that was finished: nothing is missing.
    expect([views.jobs.get(first!)?.state, views.atPosition, views.calls]).toEqual([
      "cancelled",
      4,
      ["trust", "trust"],
    ]);
    // The next one does not: others had what was finished forgotten.
    stage.views.jobs.set(first!, stage.service.job(first!)!);
    stage.views.atPosition = 4;
    await advance(clock, SPEC.retentionMs + 30_000);
    expect(stage.service.job(first!)).toBeNull();
    behind.restore(taken(), { position: fold.chain.sequence, epoch: 1 });
    await drain();
    expect(views.calls).toEqual(["trust", "trust", "doubt", "settle"]);
    expect(views.atPosition).toBe(fold.chain.sequence);
  });
});
