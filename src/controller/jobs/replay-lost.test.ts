// Damage without a second copy (trap 83): a part of the history that no member has must not hold up the views for ever, and
// what was alive before it must not be shown as the present.

import { describe, expect, it } from "vitest";
import type { EventRange } from "../../core/archive/index.ts";
import type { SealedEvent } from "../../core/events/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { JobRow, ViewsHole, ViewsHoles } from "../../ports/views.ts";
import { JobsFeeder } from "./feeder.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import type { ReplayHistory } from "./replay.ts";
import { JobsStage, ListedViews, newFold, REQUEST } from "./test-jobs.ts";
import { advance, drain } from "../scopes/test-scopes.ts";

/** As the file: what it was built without goes with it. */
class HoledViews extends ListedViews {
  ranges: readonly ViewsHole[] = [];
  rebuilds = 0;
  override readonly holes: ViewsHoles = {
    read: async () => this.ranges,
    write: async (ranges) => void (this.ranges = ranges),
    rebuild: async () => {
      this.rebuilds++;
      this.jobs.clear();
      this.logs.clear();
      this.atPosition = 0;
      this.ranges = [];
    },
  };

  override async get(jobId: string): Promise<JobRow> {
    return { ...(await super.get(jobId)), holes: this.ranges };
  }
}

/** One node whose book keeps two finished jobs, and a history in which events may be missing. */
class Site {
  readonly clock = new ManualClock();
  readonly fold: SiteJournal = newFold(digest, { finishedMax: 2 });
  readonly views = new HoledViews();
  readonly stage = new JobsStage(
    this.clock,
    new MemoryLog(new MemoryStore(), this.fold),
    this.fold,
    digest,
    "site",
    this.views,
  );
  readonly events: SealedEvent[] = [];
  readonly lines: string[] = [];
  missing: EventRange[] = [];
  isLost = false;
  reads = 0;
  /** What happens while it is read. */
  onRead: (sequence: number) => void = () => undefined;
  readonly history: ReplayHistory = {
    stats: () => ({ startSequence: 0 }),
    read: (from, max) => this.#read(from, max),
    missing: () => this.missing,
    lost: () => (this.isLost ? this.missing : []),
  };

  static async leading(): Promise<Site> {
    const site = new Site();
    site.fold.follow((sealed) => void site.events.push(sealed));
    site.stage.leadership.set(1);
    await drain();
    return site;
  }

  get last(): number {
    return this.fold.chain.sequence;
  }

  feed(views: ListedViews): JobsFeeder {
    const { fold, history, clock, lines } = this;
    const say = (_fields: unknown, line: string): void => void lines.push(line);
    const logger = { debug() {}, info: say, warn: say, error: say };
    return new JobsFeeder({ fold, views, history, clock, logger });
  }

  async finished(): Promise<string> {
    const jobId = await this.stage.submit();
    await this.stage.complete("a", await this.stage.leased("a"));
    return jobId;
  }

  async cancel(jobId: string): Promise<void> {
    await this.stage.service.cancel({ caller: "tester", idempotencyKey: null, bodyHash: "" }, jobId);
  }

  /** The book forgets all that was finished so far. */
  async dropped(): Promise<string[]> {
    return [await this.finished(), await this.finished(), await this.finished()];
  }

  /** Less than it takes until the history is looked at again. */
  async moment(): Promise<void> {
    await advance(this.clock, 300);
    await drain();
  }

  async settled(): Promise<void> {
    for (let turn = 0; turn < 40; turn++) {
      await drain();
      await advance(this.clock, 200);
    }
  }

  async *#read(from: number, max: number): AsyncGenerator<{ sequence: number; bytes: Uint8Array }[]> {
    this.reads++;
    for (const { event, bytes } of this.events.slice(from - 1, from - 1 + max)) {
      const { sequence } = event;
      this.onRead(sequence);
      if (this.missing.some(({ first, last }) => first <= sequence && sequence <= last)) {
        throw new TenureError(this.isLost ? "EVENTS_LOST" : "BACKEND_UNAVAILABLE", `event ${sequence} is not here`);
      }
      yield [{ sequence, bytes }];
    }
  }
}

describe("a history with a part that no member has", () => {
  it("does not hold up the views: they have what was finished before and after it, and come to the end", async () => {
    const site = await Site.leading();
    const before = await site.finished();
    const first = site.last + 1;
    const inIt = await site.finished();
    site.missing = [{ first, last: site.last }];
    const after = await site.finished();
    await site.dropped();
    const live = await site.stage.submit();
    const views = new HoledViews();
    const feeder = site.feed(views);
    await site.settled();
    // While somebody may have it, it is waited for, and that is said once.
    expect([views.atPosition, feeder.position]).toEqual([0, 0]);
    expect(site.lines.filter((line) => line.includes("not in the history yet"))).toHaveLength(1);
    site.isLost = true;
    feeder.historyChanged();
    await site.settled();
    expect([views.atPosition, feeder.position]).toEqual([site.last, site.last]);
    expect([before, after].map((id) => views.jobs.get(id)?.state)).toEqual(["completed", "completed"]);
    expect([views.jobs.has(inIt), views.jobs.get(live)?.state]).toEqual([false, "pending"]);
    expect(views.ranges).toMatchObject(site.missing);
    expect(site.lines.filter((line) => line.includes("no member has"))).toHaveLength(1);
  });

  it("shows no job in the state that it had before, where its end is lost; one that lives is shown as the book has it", async () => {
    const site = await Site.leading();
    const ended = await site.stage.submit();
    const lease = await site.stage.leased("a");
    const lives = await site.stage.submit({ kind: "other" });
    // More than are told at once: the views are shown some of them before the hole is reached.
    const many = await site.stage.submitMany(600, { kind: "other" });
    const first = site.last + 1;
    await site.stage.complete("a", lease);
    for (const jobId of many) await site.cancel(jobId);
    site.missing = [{ first, last: site.last }];
    site.isLost = true;
    await site.cancel(lives);
    const still = await site.stage.submit({ kind: "other" });
    await site.dropped();
    expect([site.fold.book.known(ended), site.fold.book.known(lives), site.fold.book.known(still)]).toEqual([
      false,
      false,
      true,
    ]);
    const views = new HoledViews();
    site.feed(views);
    await site.settled();
    expect(views.atPosition).toBe(site.last);
    expect(views.jobs.get(ended)).toBeUndefined();
    // Its end came after the hole, and what it was before is not certain.
    expect(views.jobs.get(lives)).toBeUndefined();
    expect(views.jobs.get(still)?.state).toBe("pending");
    expect([...views.jobs.values()].filter(({ state }) => state !== "completed")).toHaveLength(1);
  });

  it("that reaches over the last event is passed over too", async () => {
    const site = await Site.leading();
    const before = await site.finished();
    const first = site.last + 1;
    await site.dropped();
    site.missing = [{ first, last: site.last }];
    site.isLost = true;
    const views = new HoledViews();
    site.feed(views);
    await site.settled();
    expect([views.atPosition, views.jobs.get(before)?.state]).toEqual([site.last, "completed"]);
  });

  it("is not decided on: a job that had ended before it is not sent once more, because its epochs since are not known", async () => {
    const site = await Site.leading();
    const { stage, views } = site;
    const jobId = await stage.submit();
    await site.cancel(jobId);
    const first = site.last + 1;
    await stage.service.retry(REQUEST, jobId);
    await stage.complete("a", await stage.leased("a"));
    site.missing = [{ first, last: site.last }];
    site.isLost = true;
    await advance(site.clock, 1_000);
    const after = await site.finished();
    await site.dropped();
    site.feed(views);
    await site.settled();
    // What is left of it.
    expect(views.jobs.get(jobId)?.state).toBe("cancelled");
    expect(await stage.service.find(jobId, 0)).toMatchObject({ kind: "found", mayBeOlder: true });
    await expect(stage.service.retry(REQUEST, jobId)).rejects.toMatchObject({ code: "EVENTS_LOST" });
    await expect(stage.service.cancel(REQUEST, jobId)).rejects.toMatchObject({ code: "JOB_FINISHED" });
    expect(site.fold.book.known(jobId)).toBe(false);
    // What has ended after the hole is certain.
    expect(await stage.service.find(after, 0)).toMatchObject({ kind: "found", mayBeOlder: false });
    expect(await stage.service.retry(REQUEST, after)).toMatchObject({ id: after, state: "pending" });
    // So is all of it when a copy has turned up.
    const feeder = site.feed(views);
    await site.settled();
    [site.missing, site.isLost] = [[], false];
    feeder.historyChanged();
    await site.settled();
    expect(await stage.service.retry(REQUEST, jobId)).toMatchObject({ id: jobId, jobEpoch: 4 });
  });

  it("that turns up after all is shown: the views are built anew, also by the next process", async () => {
    for (const isRestarted of [false, true]) {
      const site = await Site.leading();
      const first = site.last + 1;
      const inIt = await site.finished();
      site.missing = [{ first, last: site.last }];
      site.isLost = true;
      await site.dropped();
      const views = new HoledViews();
      const feeder = site.feed(views);
      await site.settled();
      expect([views.atPosition, views.jobs.has(inIt)]).toEqual([site.last, false]);
      if (isRestarted) {
        feeder.close();
        // It has not asked the others yet: what is missing is no copy.
        site.isLost = false;
        site.feed(views).close();
        await site.settled();
        expect(views.rebuilds).toBe(0);
      }
      site.missing = [];
      site.isLost = false;
      if (isRestarted) site.feed(views);
      else feeder.historyChanged();
      await site.settled();
      expect([views.rebuilds, views.jobs.get(inIt)?.state, views.atPosition]).toEqual([1, "completed", site.last]);
      expect(views.ranges).toEqual([]);
    }
  });

  it("that turns up while the views are being built without it, or are being looked at, is shown too", async () => {
    for (const moment of ["replay", "beginning"] as const) {
      const site = await Site.leading();
      await site.finished();
      const first = site.last + 1;
      const inIt = await site.finished();
      site.missing = [{ first, last: site.last }];
      site.isLost = true;
      await site.dropped();
      const views = new HoledViews();
      let feeder: JobsFeeder | null = null;
      const turnsUp = (): void => {
        if (site.missing.length === 0) return;
        [site.missing, site.isLost] = [[], false];
        feeder?.historyChanged();
      };
      if (moment === "replay") site.onRead = (sequence) => (sequence > first ? turnsUp() : undefined);
      else {
        site.feed(views);
        await site.settled();
        expect(views.jobs.has(inIt)).toBe(false);
        views.trust = async () => turnsUp();
      }
      feeder = site.feed(views);
      await site.settled();
      expect([site.missing, views.ranges, views.rebuilds]).toEqual([[], [], 1]);
      expect([views.jobs.get(inIt)?.state, views.atPosition]).toEqual(["completed", site.last]);
    }
  });

  it("is read once when all of it is there, not once more with each segment that comes", async () => {
    const site = await Site.leading();
    await site.dropped();
    site.missing = [1, 2, 3, 4].map((at) => ({ first: at, last: at }));
    const views = new HoledViews();
    const feeder = site.feed(views);
    await site.moment();
    const { reads } = site;
    while (site.missing.length > 1) {
      site.missing = site.missing.slice(1);
      feeder.historyChanged();
      await site.moment();
    }
    expect([reads, site.reads]).toEqual([1, 1]);
    site.missing = [];
    feeder.historyChanged();
    await site.moment();
    expect(site.reads).toBe(2);
    await site.settled();
    expect(views.atPosition).toBe(site.last);
  });
});
