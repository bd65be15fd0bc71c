// Trap 56d for the views: what the book has dropped is in the history, and is shown by every node.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { SealedEvent } from "../../core/events/index.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import { JobFinder } from "./finder.ts";
import { JobsFeeder } from "./feeder.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { replayedChanges, type ReplayHistory } from "./replay.ts";
import { JobsStage, ListedViews, newFold, REQUEST } from "./test-jobs.ts";
import { advance, drain } from "../scopes/test-scopes.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const FINISHED_MAX = 2;

/** A leader whose book keeps two finished jobs, and all events. */
class Site {
  readonly clock = new ManualClock();
  readonly fold: SiteJournal = newFold(digest, { finishedMax: FINISHED_MAX });
  readonly stage = new JobsStage(this.clock, new MemoryLog(new MemoryStore(), this.fold), this.fold, digest);
  readonly events: SealedEvent[] = [];
  startSequence = 0;
  isHistoryHere = true;
  /** What happens while it is read. */
  onRead: () => Promise<void> = () => Promise.resolve();
  readonly history: ReplayHistory = {
    stats: () => ({ startSequence: this.startSequence }),
    read: (from, max) => this.#read(from, max),
  };

  static async leading(): Promise<Site> {
    const site = new Site();
    site.fold.follow((sealed) => void site.events.push(sealed));
    site.stage.leadership.set(1);
    await drain();
    return site;
  }

  /** As a read of the API does it, at once or not at all, on a node with these views. */
  async read(views: ListedViews, jobId: string): Promise<string> {
    const finder = new JobFinder({ book: this.fold.book, clock: this.clock, find: (id) => views.get(id) });
    const found = await finder.find(jobId, "applied", 0);
    return found.kind === "behind" ? "too stale" : (found.job?.state ?? "none");
  }

  feed(views: ListedViews, jobsWaitingMax?: number): JobsFeeder {
    const { fold, history, clock } = this;
    return new JobsFeeder({ fold, views, history, clock, logger: SILENT, jobsWaitingMax });
  }

  /** A job that has logged and is completed. */
  async finished(): Promise<string> {
    const { stage } = this;
    const jobId = await stage.submit();
    const lease = await stage.leased("a");
    const { jobEpoch, leaseId } = lease;
    const logs = [{ jobId, jobEpoch, leaseId, chunk: { offset: 0, text: `of ${jobId}` } }];
    await stage.poll("a", { max: 0, logs });
    await stage.complete("a", lease);
    return jobId;
  }

  async *#read(from: number, max: number): AsyncGenerator<{ sequence: number; bytes: Uint8Array }[]> {
    for (const { event, bytes } of this.events.slice(from - 1, from - 1 + max)) {
      await this.onRead();
      if (!this.isHistoryHere) throw new TenureError("BACKEND_UNAVAILABLE", "it is being fetched");
      yield [{ sequence: event.sequence, bytes }];
    }
  }
}

/** A replay takes many turns, and rests between them. */
async function settled({ clock }: Site): Promise<void> {
  for (let turn = 0; turn < 20; turn++) {
    await drain();
    await advance(clock, 50);
  }
}

async function whole(site: Site, views: ListedViews): Promise<void> {
  for (let turn = 0; turn < 200 && views.atPosition < site.fold.chain.sequence; turn++) await settled(site);
  expect(views.atPosition).toBe(site.fold.chain.sequence);
}

describe("the views of a node that missed much", () => {
  it("have all that was finished, with what was logged, also what the book has dropped", async () => {
    const site = await Site.leading();
    const ids: string[] = [];
    for (let i = 0; i < 6; i++) ids.push(await site.finished());
    const live = await site.stage.submit();
    expect(site.fold.book.known(ids[0]!)).toBe(false);
    const views = new ListedViews();
    const feeder = site.feed(views);
    await settled(site);
    expect(ids.map((id) => views.jobs.get(id)?.state)).toEqual(ids.map(() => "completed"));
    expect(ids.map((id) => views.logs.get(`${id}@0`))).toEqual(ids.map((id) => `of ${id}`));
    expect(views.jobs.get(live)?.state).toBe("pending");
    expect([views.atPosition, feeder.waiting]).toEqual([site.fold.chain.sequence, 0]);
  });

  it("show what the book has while the history is fetched, stand where they stood, and are whole afterwards", async () => {
    const site = await Site.leading();
    const old = await site.finished();
    for (let i = 0; i < 4; i++) await site.finished();
    site.isHistoryHere = false;
    const views = new ListedViews();
    site.feed(views);
    const fresh = await site.stage.submit({ kind: "other" });
    await advance(site.clock, 60_000);
    expect([views.jobs.has(old), views.jobs.get(fresh)?.state, views.atPosition]).toEqual([false, "pending", 0]);
    const later = [await site.finished(), await site.finished(), await site.finished()];
    site.isHistoryHere = true;
    await advance(site.clock, 10_000);
    for (const id of [old, ...later]) expect(views.jobs.get(id)?.state).toBe("completed");
    expect(views.atPosition).toBe(site.fold.chain.sequence);
  });

  it("are not set back by what the history says of a job that has changed since", async () => {
    const site = await Site.leading();
    const old = await site.finished();
    for (let i = 0; i < 4; i++) await site.finished();
    site.stage.views.jobs.set(old, { ...(await wasFinished(site, old)) });
    site.stage.views.atPosition = site.fold.chain.sequence;
    const views = new ListedViews();
    let isSent = false;
    site.onRead = async () => {
      if (isSent) return;
      isSent = true;
      site.stage.views.atPosition = site.fold.chain.sequence;
      await site.stage.service.retry({ caller: "tester", idempotencyKey: null, bodyHash: "" }, old);
    };
    site.feed(views);
    await settled(site);
    expect(isSent).toBe(true);
    expect(views.jobs.get(old)?.state).toBe("pending");
    expect(views.atPosition).toBe(site.fold.chain.sequence);
  });

  it("that were killed get what was logged behind their position, though the book has every job", async () => {
    const site = await Site.leading();
    const jobId = await site.stage.submit();
    const views = new ListedViews();
    site.feed(views).close();
    await settled(site);
    const { jobEpoch, leaseId } = await site.stage.leased("a");
    await site.stage.poll("a", { max: 0, logs: [{ jobId, jobEpoch, leaseId, chunk: { offset: 0, text: "hello" } }] });
    expect(views.logs.size).toBe(0);
    site.feed(views);
    await settled(site);
    expect([...views.logs.values()]).toEqual(["hello"]);
    expect(views.atPosition).toBe(site.fold.chain.sequence);
  });

  it("have what was logged by a job that the book drops while they read of it", async () => {
    const site = await Site.leading();
    await site.finished();
    const views = new ListedViews();
    const killed = site.feed(views);
    await settled(site);
    killed.close();
    const jobId = await site.finished();
    expect([site.fold.book.known(jobId), site.fold.book.droppedUpTo <= views.atPosition]).toEqual([true, true]);
    site.onRead = async () => {
      site.onRead = () => Promise.resolve();
      for (let i = 0; i < 3; i++) await site.finished();
    };
    site.feed(views);
    await whole(site, views);
    expect(site.fold.book.known(jobId)).toBe(false);
    expect([views.jobs.get(jobId)?.state, views.logs.get(`${jobId}@0`)]).toEqual(["completed", `of ${jobId}`]);
  });

  it("of a history that was cut have what is told completely behind the cut", async () => {
    const site = await Site.leading();
    const before = await site.stage.submit();
    site.startSequence = site.fold.chain.sequence;
    const lease = await site.stage.leased("a");
    expect(lease.jobId).toBe(before);
    await site.stage.complete("a", lease);
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push(await site.finished());
    const views = new ListedViews();
    site.feed(views);
    await settled(site);
    expect([before, ...ids].map((id) => views.jobs.has(id))).toEqual([false, true, true, true, true]);
    expect(views.atPosition).toBe(site.fold.chain.sequence);
  });

  it("that take nothing for long cost bounded memory, and nothing is missing afterwards", async () => {
    const site = await Site.leading();
    const views = new ListedViews();
    const feeder = site.feed(views, 5);
    await drain();
    views.isFailing = true;
    const ids: string[] = [];
    for (let i = 0; i < 30; i++) {
      ids.push(await site.finished());
      // With what each has logged.
      expect(feeder.waiting).toBeLessThanOrEqual(12);
    }
    views.isFailing = false;
    await advance(site.clock, 10_000);
    expect(ids.map((id) => views.jobs.get(id)?.state)).toEqual(ids.map(() => "completed"));
    expect(views.logs.size).toBe(30);
    expect(views.atPosition).toBe(site.fold.chain.sequence);
  });
});

describe("a job that has ended, on a node that builds its views again", () => {
  it("is never shown as pending, nor as missing: it is cancelled, or nothing is said of it", async () => {
    const made = await Site.leading();
    // More than one step of a replay has, all of them submitted before the first of them ends.
    const all = await made.stage.submitMany(600);
    for (const id of all) await made.stage.service.cancel(REQUEST, id);
    const ids = all.filter((_, at) => at % 50 === 0);
    const answers = new Set<string>();
    const rows = new Set<string | undefined>();
    const views = new ListedViews();
    made.onRead = async () => {
      for (const id of ids) answers.add(await made.read(views, id));
      for (const id of ids) rows.add(views.jobs.get(id)?.state);
    };
    made.feed(views);
    await whole(made, views);
    for (const id of ids) expect(await made.read(views, id)).toBe("cancelled");
    expect(await made.read(views, "no such job")).toBe("none");
    expect([...answers]).toEqual(["too stale"]);
    // What lists show meanwhile lacks jobs, and has none in a state of the past.
    expect([...rows]).toEqual([undefined, "cancelled"]);
  });

  it("is put also while a retry of it is proposed that never comes to be", async () => {
    const site = await Site.leading();
    const { stage } = site;
    const before = site.feed(stage.views);
    const first = await site.finished();
    for (let n = 0; n < FINISHED_MAX; n++) await site.finished();
    await settled(site);
    before.close();
    stage.log.isHolding = true;
    void stage.service.retry(REQUEST, first).catch(() => undefined);
    await drain();
    expect(site.fold.book.known(first), "by what is proposed").toBe(true);
    const views = new ListedViews();
    const feeder = site.feed(views);
    await settled(site);
    expect([views.jobs.get(first)?.state, feeder.position]).toEqual(["completed", site.fold.chain.sequence]);
  });

  it("that is forgotten is not shown by views which have not heard of that, nor sent once more", async () => {
    const made = await Site.leading();
    const { stage, fold } = made;
    const id = await made.finished();
    for (let i = 0; i < 4; i++) await made.finished();
    const { views } = stage;
    const feeder = made.feed(views);
    await settled(made);
    feeder.close();
    expect(await made.read(views, id)).toBe("completed");
    await advance(made.clock, 120_000);
    expect(stage.forgotten).toContain(id);
    expect(views.jobs.get(id)?.state).toBe("completed");
    expect(await made.read(views, id)).toBe("too stale");
    made.feed(views);
    await settled(made);
    expect(await made.read(views, id)).toBe("none");
    expect(fold.book.known(id)).toBe(false);
  });

  it("has all that it has logged, also where more was logged by jobs that ran at one time than is held for them", async () => {
    const made = await Site.leading();
    const { stage, fold, clock, history } = made;
    const ids = await stage.submitMany(4);
    const { leases } = await stage.poll("a", { max: 4 });
    for (let offset = 0; offset < 30; offset += 10) {
      const logs = leases.map((lease) => ({ ...lease, chunk: { offset, text: lease.jobId.padEnd(10) } }));
      await stage.poll("a", { max: 0, logs });
    }
    for (const lease of leases) await stage.complete("a", lease);
    for (let i = 0; i < 3; i++) await made.finished();
    const views = new ListedViews();
    const span = { after: 0, through: fold.chain.sequence, changesMax: 500, isNewer: () => false };
    const replay = replayedChanges({ history, fold, clock, ...span, logCharsMax: 50 });
    const passed = (async () => {
      for await (const { jobs, logs, forgotten } of replay) {
        await views.put(0, jobs, logs, forgotten, { isPast: true });
      }
    })();
    await settled(made);
    await passed;
    for (const id of ids) {
      expect([0, 10, 20].map((offset) => views.logs.get(`${id}@${offset}`)?.trim())).toEqual([id, id, id]);
    }
  });
});

/** As the views of another node have it. */
async function wasFinished(site: Site, jobId: string): Promise<NonNullable<ReturnType<JobsStage["service"]["job"]>>> {
  const views = new ListedViews();
  const feeder = site.feed(views);
  await settled(site);
  feeder.close();
  return views.jobs.get(jobId)!;
}
