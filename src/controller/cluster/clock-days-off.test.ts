// What users see of a leader whose clock is days or months off: nothing.

import { describe, expect, it } from "vitest";
import { tickAfter } from "../../core/events/chain.ts";
import type { BookLimits } from "../../core/jobs/index.ts";
import { CLOCK_SETTLING_MS, EVENT_TIMESTAMP_MAX } from "../../core/kit/limits.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import { EventTime, NodeTime } from "../journal/event-time.ts";
import { JobsFeeder } from "../jobs/feeder.ts";
import { JobsStage, newFold, REQUEST, SPEC } from "../jobs/test-jobs.ts";
import { advance, drain, watch } from "../scopes/test-scopes.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const KEYED = { ...REQUEST, idempotencyKey: "order-17", bodyHash: "00" };
const SCHEDULE = {
  name: "hourly",
  cron: "0 * * * *",
  timeZone: "UTC",
  spec: SPEC,
  overlap: "allow",
  catchUp: "last",
  paused: false,
} as const;

/** Nodes of one site, each with a clock of its own; time passes on all of them. */
class Site {
  readonly store = new MemoryStore();
  readonly nodes: { readonly clock: ManualClock; readonly stage: JobsStage }[] = [];
  #epoch = 0;

  add(aheadMs: number, limits: Partial<BookLimits> = {}): JobsStage {
    const clock = new ManualClock();
    clock.nowMs = this.nodes[0]?.clock.nowMs ?? 100 * DAY_MS;
    clock.skewMs = aheadMs;
    const fold = newFold(digest, limits);
    const stage = new JobsStage(clock, new MemoryLog(this.store, fold), fold, digest, `n${this.nodes.length + 1}`);
    void new JobsFeeder({ fold, views: stage.views, history: null, clock, logger: SILENT });
    this.nodes.push({ clock, stage });
    return stage;
  }

  async lead(leader: JobsStage): Promise<void> {
    for (const { stage } of this.nodes) stage.leadership.set(null);
    leader.leadership.set(++this.#epoch);
    await drain();
  }

  async pass(forMs: number): Promise<void> {
    for (const { clock } of this.nodes) await advance(clock, forMs);
  }
}

describe("a leader whose clock is a day ahead", () => {
  it("answers a repeated request under its key as the first time: one key, one job", async () => {
    const site = new Site();
    const [right, ahead] = [site.add(0), site.add(25 * HOUR_MS)];
    await site.lead(right);
    const first = await right.service.submit(KEYED, [SPEC]);
    await site.pass(1_000);
    await site.lead(ahead);
    expect(await ahead.service.submit(KEYED, [SPEC])).toEqual(first);
    // Other events come between, which would have dropped it.
    for (let count = 0; count < 10; count++) await ahead.submit();
    await site.lead(right);
    expect(await right.service.submit(KEYED, [SPEC])).toEqual(first);
    expect(right.service.stats().submitted).toBe(11);
  });

  it("keeps finished jobs for as long as was promised, and so do those that follow it", async () => {
    const site = new Site();
    const [right, ahead] = [site.add(0), site.add(25 * HOUR_MS)];
    await site.lead(right);
    const jobId = await right.submit({ retentionMs: HOUR_MS });
    await right.service.cancel(REQUEST, jobId);
    await site.lead(ahead);
    await ahead.submit();
    await site.pass(HOUR_MS / 2);
    expect([ahead.forgotten, ahead.service.job(jobId)?.state]).toEqual([[], "cancelled"]);
    await site.lead(right);
    await right.submit();
    await site.pass(HOUR_MS / 4);
    expect(right.forgotten).toEqual([]);
    await site.pass(HOUR_MS);
    expect(right.forgotten).toEqual([jobId]);
  });

  it("keeps them as long where only the views have them still", async () => {
    const site = new Site();
    const limits = { finishedMax: 1 };
    const [right, ahead] = [site.add(0, limits), site.add(25 * HOUR_MS, limits)];
    await site.lead(right);
    const jobId = await right.submit({ retentionMs: HOUR_MS });
    await right.service.cancel(REQUEST, jobId);
    await right.service.cancel(REQUEST, await right.submit({ retentionMs: DAY_MS }));
    await site.lead(ahead);
    await ahead.submit();
    await site.pass(HOUR_MS / 2);
    expect([ahead.forgotten, ahead.service.job(jobId), ahead.views.jobs.get(jobId)?.state]).toEqual([
      [],
      null,
      "cancelled",
    ]);
    await site.pass(HOUR_MS);
    expect(ahead.forgotten).toEqual([jobId]);
  });

  it("stamps events with the time that the others' clocks agree on", async () => {
    const site = new Site();
    const [right, ahead] = [site.add(0), site.add(25 * HOUR_MS)];
    const { clock } = site.nodes[0]!;
    ahead.believedMs = () => clock.wallMs();
    await site.lead(right);
    await right.submit();
    await site.lead(ahead);
    const jobId = await ahead.submit();
    expect(ahead.service.job(jobId)?.submittedAtMs).toBe(clock.wallMs());
  });
});

describe("a leader whose clock is months ahead", () => {
  it("fires no schedule before its time, and leaves none silent for months", async () => {
    const site = new Site();
    const [right, ahead] = [site.add(0), site.add(90 * DAY_MS)];
    const { clock } = site.nodes[0]!;
    ahead.believedMs = () => clock.wallMs();
    await site.lead(right);
    await right.service.putSchedule(REQUEST, SCHEDULE);
    await site.lead(ahead);
    await site.pass(90 * 60_000);
    expect(ahead.service.stats().submitted).toBe(1);
    expect(ahead.service.schedules()[0]?.nextAtMs).toBe(100 * DAY_MS + 2 * HOUR_MS);
    await site.lead(right);
    await site.pass(HOUR_MS);
    expect(right.service.stats().submitted).toBe(2);
  });

  it("fires nothing by it either where no clock is believed: what has passed since the last event counts", async () => {
    const site = new Site();
    const [right, ahead] = [site.add(0), site.add(90 * DAY_MS)];
    ahead.believedMs = () => null;
    await site.lead(right);
    await right.service.putSchedule(REQUEST, SCHEDULE);
    const dated = await right.submit({ notBeforeMs: 101 * DAY_MS });
    await site.lead(ahead);
    const waiting = watch(ahead.poll("a", { waitMs: DAY_MS }));
    await site.pass(59 * 60_000);
    expect([ahead.service.stats().submitted, waiting.state]).toEqual([1, "pending"]);
    expect(ahead.service.whyPending(dated)).toMatchObject({ reason: "not-before" });
    await site.pass(2 * 60_000);
    expect([ahead.service.stats().submitted, waiting.value?.leases.length]).toEqual([2, 1]);
  });
});

describe("a leader whose clock is centuries ahead", () => {
  it("goes on writing, and so do those that follow it", async () => {
    const site = new Site();
    const [one, next] = [site.add(0), site.add(0)];
    await site.lead(one);
    await one.submit();
    for (const farMs of [2 ** 43 - 1_000_000, 2 ** 43 + 5, 2 ** 52]) {
      one.believedMs = () => farMs;
      await one.submit();
    }
    await site.pass(HOUR_MS);
    await one.submit();
    await site.lead(next);
    const jobId = await next.submit();
    expect(next.service.job(jobId)?.submittedAtMs).toBeLessThan(101 * DAY_MS);
  });

  it("was followed by an earlier release up to the end of time: writes go on all the same", () => {
    const clock = new ManualClock();
    const lastMs = EVENT_TIMESTAMP_MAX - 1_000_000;
    const time = new EventTime(clock, new NodeTime(clock, () => null, lastMs));
    clock.nowMs += DAY_MS;
    expect(tickAfter(lastMs, time.nowMs())).toBeLessThan(lastMs + 1);
  });
});

describe("a site that nobody led for a weekend", () => {
  it("has the right time again with its first event, and has forgotten no key meanwhile", async () => {
    const site = new Site();
    const before = site.add(0);
    await site.lead(before);
    const first = await before.service.submit(KEYED, [SPEC]);
    before.journal.close();
    for (const { clock } of site.nodes) clock.nowMs += 2.5 * DAY_MS;
    const after = site.add(0);
    await drain();
    await site.lead(after);
    expect(await after.service.submit(KEYED, [SPEC])).toEqual(first);
    const jobId = await after.submit();
    expect(after.service.job(jobId)?.submittedAtMs).toBe(102.5 * DAY_MS);
    // From then on it is a day that leaders have seen pass.
    await site.pass(DAY_MS - HOUR_MS);
    expect(await after.service.submit(KEYED, [SPEC])).toEqual(first);
    await site.pass(2 * HOUR_MS);
    expect(await after.service.submit(KEYED, [SPEC])).not.toEqual(first);
  });

  it("takes a schedule before the time is agreed on, and fires none of the times before it was there", async () => {
    for (const catchUp of ["all", "last", "none"] as const) {
      const site = new Site();
      const before = site.add(0);
      await site.lead(before);
      await before.submit();
      before.leadership.set(null);
      site.nodes[0]!.clock.nowMs += 2.5 * DAY_MS + 1_000;
      const after = site.add(0);
      // No other clock was heard of yet.
      after.believedMs = () => null;
      await drain();
      await site.lead(after);
      const put = watch(after.service.putSchedule(REQUEST, { ...SCHEDULE, catchUp }));
      await site.pass(300);
      expect(put.state).toBe("pending");
      after.believedMs = null;
      await site.pass(20_000);
      expect([put.state, after.service.stats().submitted]).toEqual(["resolved", 1]);
    }
  });

  it("takes a schedule after a while also where clocks disagree for good", async () => {
    const site = new Site();
    const leader = site.add(0);
    leader.believedMs = () => null;
    await site.lead(leader);
    const put = watch(leader.service.putSchedule(REQUEST, SCHEDULE));
    await site.pass(CLOCK_SETTLING_MS + 1_000);
    expect(put.state).toBe("resolved");
  });
});
