import { describe, expect, it } from "vitest";
import { JOBS_FORGOTTEN_PER_COMMAND_MAX } from "../../core/kit/limits.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import { JobsFeeder } from "./feeder.ts";
import type { ReplayHistory } from "./replay.ts";
import { JobsStage, newFold, REQUEST } from "./test-jobs.ts";
import { advance, drain } from "../scopes/test-scopes.ts";

const HOUR_MS = 3_600_000;
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

function stageOn(store: MemoryStore, clock: ManualClock, name = "site"): JobsStage & { feed: () => JobsFeeder } {
  const fold = newFold(digest);
  const events: { sequence: number; bytes: Uint8Array }[] = [];
  fold.follow(({ event, bytes }) => void events.push({ sequence: event.sequence, bytes }));
  const stage = new JobsStage(clock, new MemoryLog(store, fold), fold, digest, name);
  const history: ReplayHistory = {
    stats: () => ({ startSequence: 0 }),
    async *read(from, max) {
      yield events.slice(from - 1, from - 1 + max);
    },
  };
  const feed = (): JobsFeeder => new JobsFeeder({ fold, views: stage.views, history, clock, logger: SILENT });
  return Object.assign(stage, { feed });
}

async function leading(): Promise<{ stage: ReturnType<typeof stageOn>; clock: ManualClock; store: MemoryStore }> {
  const store = new MemoryStore();
  const clock = new ManualClock();
  const stage = stageOn(store, clock);
  stage.leadership.set(1);
  await drain();
  return { stage, clock, store };
}

async function finish(stage: JobsStage, retentionMs: number, count = 1): Promise<readonly string[]> {
  const jobIds = await stage.submitMany(count, { retentionMs });
  for (const jobId of jobIds) await stage.service.cancel(REQUEST, jobId);
  await drain();
  return jobIds;
}

describe("the end of a job's retention", () => {
  it("has it forgotten, once, in the book and in the views; others stay", async () => {
    const { stage, clock } = await leading();
    stage.feed();
    const [short] = await finish(stage, 60_000);
    const [long] = await finish(stage, 3_600_000);
    const live = await stage.submit({ retentionMs: 0 });
    await advance(clock, 55_000);
    expect(stage.service.job(short!)).not.toBeNull();
    await advance(clock, 16_000);
    expect([stage.service.job(short!), stage.views.jobs.get(short!)]).toEqual([null, undefined]);
    expect([stage.service.job(long!)?.state, stage.service.job(live)?.state]).toEqual(["cancelled", "pending"]);
    await advance(clock, 120_000);
    expect(stage.forgotten).toHaveLength(1);
  });

  it("of more jobs than one command takes comes batch by batch, none of them twice", async () => {
    const { stage, clock } = await leading();
    stage.feed();
    for (let at = 0; at < 3; at++) await finish(stage, 1_000, 500);
    await advance(clock, 30_000);
    expect(stage.forgotten).toHaveLength(1_500);
    expect(JOBS_FORGOTTEN_PER_COMMAND_MAX).toBeLessThan(1_500);
    expect(stage.views.jobs.size).toBe(0);
  });

  it("comes for a job though a thousand before it stay, because the time since they were finished was jumped over", async () => {
    const { stage: before, clock, store } = await leading();
    before.feed();
    const old = await finish(before, 600_000, 1_000);
    before.journal.close();
    // Nobody led, and so nobody has seen it pass.
    clock.nowMs += HOUR_MS;
    const stage = stageOn(store, clock, "next");
    stage.feed();
    await drain();
    stage.leadership.set(2);
    await drain();
    const short = await finish(stage, 1_000, 5);
    await advance(clock, 30_000);
    expect(stage.forgotten.toSorted()).toEqual(short.toSorted());
    await advance(clock, 600_000);
    expect(stage.forgotten).toHaveLength(old.length + short.length);
  });

  it("is not brought on by views that lag: a job that was sent once more meanwhile stays", async () => {
    const { stage, clock } = await leading();
    const [jobId] = await finish(stage, 5_000);
    const feeder = stage.feed();
    await drain();
    feeder.close();
    expect(stage.views.jobs.get(jobId!)?.state).toBe("cancelled");
    await stage.service.retry(REQUEST, jobId!);
    await advance(clock, 60_000);
    expect([stage.service.job(jobId!)?.state, stage.forgotten]).toEqual(["pending", []]);
    // Finished again: counted from then on.
    await stage.service.cancel(REQUEST, jobId!);
    await advance(clock, 3_000);
    stage.feed();
    await advance(clock, 1_000);
    expect(stage.forgotten).toHaveLength(0);
    await advance(clock, 15_000);
    expect(stage.forgotten).toHaveLength(1);
  });

  it("waits for views that are behind what the book has dropped, or behind the begin of this leader", async () => {
    const { stage, clock, store } = await leading();
    const [jobId] = await finish(stage, 5_000);
    const feeder = stage.feed();
    await drain();
    feeder.close();
    const next = stageOn(store, clock, "next");
    for (const job of stage.views.jobs.values()) next.views.jobs.set(job.id, job);
    next.views.atPosition = stage.views.atPosition;
    await stage.submit();
    stage.leadership.set(null);
    next.leadership.set(2);
    await drain();
    await advance(clock, 60_000);
    expect(next.views.jobs.has(jobId!)).toBe(true);
    next.views.atPosition += 1;
    await advance(clock, 60_000);
    expect(next.service.job(jobId!)).toBeNull();
  });

  it("comes once, also where the views of the next leader missed it: they are told before they are asked", async () => {
    const { stage, clock, store } = await leading();
    const [jobId] = await finish(stage, 5_000);
    stage.feed();
    await drain();
    // Its views have the job, and were not fed when it was forgotten: it was down.
    const next = stageOn(store, clock, "next");
    for (const job of stage.views.jobs.values()) next.views.jobs.set(job.id, job);
    next.views.atPosition = stage.views.atPosition;
    await advance(clock, 30_000);
    expect(stage.forgotten).toEqual([jobId]);
    expect(next.views.jobs.has(jobId!)).toBe(true);
    next.feed();
    stage.leadership.set(null);
    next.leadership.set(2);
    await drain();
    await advance(clock, 120_000);
    expect(next.views.jobs.has(jobId!)).toBe(false);
    expect(next.forgotten).toEqual([jobId]);
  });

  it("goes on after views that were away", async () => {
    const { stage, clock } = await leading();
    stage.views.isFailing = true;
    stage.feed();
    const [jobId] = await finish(stage, 1_000);
    await advance(clock, 30_000);
    expect(stage.service.job(jobId!)).not.toBeNull();
    stage.views.isFailing = false;
    await advance(clock, 30_000);
    expect(stage.service.job(jobId!)).toBeNull();
  });
});
