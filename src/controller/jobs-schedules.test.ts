import { describe, expect, it } from "vitest";
import type { Schedule } from "../core/jobs/model.ts";
import { SCHEDULE_CATCH_UP_MAX } from "../core/kit/limits.ts";
import { systemDigest as digest } from "../drivers/system/digest.ts";
import { ManualClock } from "../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../logs/index.ts";
import { JobsStage, newFold, REQUEST, SPEC } from "./test-jobs.ts";
import { advance, drain } from "./test-scopes.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

function stageOn(store: MemoryStore, clock: ManualClock, name = "site"): JobsStage {
  const fold = newFold(digest);
  return new JobsStage(clock, new MemoryLog(store, fold), fold, digest, name);
}

async function leading(): Promise<{ stage: JobsStage; clock: ManualClock; store: MemoryStore }> {
  const store = new MemoryStore();
  const clock = new ManualClock();
  // Five minutes past a full hour.
  clock.nowMs = 1_000 * HOUR_MS + 5 * MINUTE_MS;
  const stage = stageOn(store, clock);
  stage.leadership.set(1);
  await drain();
  return { stage, clock, store };
}

function every10(name: string, changes: Partial<Schedule> = {}): Schedule {
  const policy = { overlap: "allow", catchUp: "none", paused: false } as const;
  return { name, cron: "*/10 * * * *", timeZone: "UTC", spec: { ...SPEC, queue: name }, ...policy, ...changes };
}

function put(stage: JobsStage, name: string, changes?: Partial<Schedule>): Promise<void> {
  return stage.service.putSchedule(REQUEST, every10(name, changes));
}

function jobsOf(stage: JobsStage, name: string): number {
  return stage.service.queues().find(({ queue }) => queue === name)?.pending ?? 0;
}

describe("a schedule", () => {
  it("fires at its times, each once, and not while it is paused or after it is deleted", async () => {
    const { stage, clock } = await leading();
    await put(stage, "s");
    await advance(clock, 4 * MINUTE_MS);
    expect(jobsOf(stage, "s")).toBe(0);
    await advance(clock, 12 * MINUTE_MS);
    expect(jobsOf(stage, "s")).toBe(2);
    await put(stage, "s", { paused: true });
    await advance(clock, HOUR_MS);
    expect(jobsOf(stage, "s")).toBe(2);
    await put(stage, "s");
    await advance(clock, 10 * MINUTE_MS);
    expect(jobsOf(stage, "s")).toBe(3);
    await stage.service.deleteSchedule(REQUEST, "s");
    await advance(clock, HOUR_MS);
    expect(jobsOf(stage, "s")).toBe(3);
  });

  it("after an hour without a leader catches up with nothing, the last time or all of them, as it says", async () => {
    const { stage, clock, store } = await leading();
    for (const catchUp of ["none", "last", "all"] as const) await put(stage, catchUp, { catchUp });
    stage.leadership.set(null);
    await advance(clock, HOUR_MS + 3 * MINUTE_MS);
    const next = stageOn(store, clock, "next");
    next.leadership.set(2);
    await drain();
    await advance(clock, MINUTE_MS);
    expect(["none", "last", "all"].map((name) => jobsOf(next, name))).toEqual([0, 1, 6]);
    await advance(clock, 10 * MINUTE_MS);
    expect(["none", "last", "all"].map((name) => jobsOf(next, name))).toEqual([1, 2, 7]);
    const lasts = new Set(next.service.schedules().map(({ lastAtMs }) => lastAtMs));
    expect(lasts).toEqual(new Set([1_001 * HOUR_MS + 10 * MINUTE_MS]));
  });

  it("that passed while a leader was elected is not missed", async () => {
    const { stage, clock, store } = await leading();
    await put(stage, "s");
    await advance(clock, 4 * MINUTE_MS + 59_000);
    stage.leadership.set(null);
    await advance(clock, 30_000);
    const next = stageOn(store, clock, "next");
    next.leadership.set(2);
    await drain();
    await advance(clock, 1_000);
    expect(jobsOf(next, "s")).toBe(1);
  });

  it("catches up with a bounded number, the last ones", async () => {
    const { stage, clock, store } = await leading();
    await put(stage, "s", { cron: "* * * * *", catchUp: "all" });
    stage.leadership.set(null);
    await advance(clock, 1_000 * MINUTE_MS);
    const next = stageOn(store, clock, "next");
    next.leadership.set(2);
    await drain();
    await advance(clock, 1_000);
    expect(jobsOf(next, "s")).toBe(SCHEDULE_CATCH_UP_MAX);
  });

  it("with overlap `skip` leaves out times while a job of it is not finished, also of those that it catches up with", async () => {
    const { stage, clock, store } = await leading();
    await put(stage, "s", { overlap: "skip", catchUp: "all" });
    stage.leadership.set(null);
    await advance(clock, HOUR_MS);
    const next = stageOn(store, clock, "next");
    next.leadership.set(2);
    await drain();
    await advance(clock, MINUTE_MS);
    expect(jobsOf(next, "s")).toBe(1);
    await advance(clock, 30 * MINUTE_MS);
    expect(jobsOf(next, "s")).toBe(1);
    const { leases } = await next.poll("a", { ttlMs: 600_000 });
    await next.complete("a", leases[0]!);
    await advance(clock, 10 * MINUTE_MS);
    expect(jobsOf(next, "s")).toBe(1);
  });

  it("fires no time twice when the wall clock is set back, and goes on when it is there again", async () => {
    const { stage, clock } = await leading();
    await put(stage, "s", { catchUp: "all" });
    await advance(clock, 26 * MINUTE_MS);
    expect(jobsOf(stage, "s")).toBe(3);
    clock.skewMs = -HOUR_MS;
    await advance(clock, HOUR_MS - 3 * MINUTE_MS);
    expect(jobsOf(stage, "s")).toBe(3);
    await advance(clock, 13 * MINUTE_MS);
    expect(jobsOf(stage, "s")).toBe(4);
  });

  it("takes times that a clock passes which is set forward for missed ones, within a second", async () => {
    const { stage, clock } = await leading();
    for (const catchUp of ["none", "last", "all"] as const) await put(stage, catchUp, { catchUp });
    clock.skewMs = 3 * HOUR_MS;
    await advance(clock, 1_000);
    expect(["none", "last", "all"].map((name) => jobsOf(stage, name))).toEqual([0, 1, 18]);
    clock.skewMs = 0;
    await advance(clock, 3 * HOUR_MS);
    expect(["none", "last", "all"].map((name) => jobsOf(stage, name))).toEqual([0, 1, 18]);
    await advance(clock, 10 * MINUTE_MS);
    expect(["none", "last", "all"].map((name) => jobsOf(stage, name))).toEqual([1, 2, 19]);
  });

  it("that was refused, because there was no room, is fired when there is", async () => {
    const store = new MemoryStore();
    const clock = new ManualClock();
    clock.nowMs = 1_000 * HOUR_MS + 5 * MINUTE_MS;
    const fold = newFold(digest, { liveMax: 1 });
    const stage = new JobsStage(clock, new MemoryLog(store, fold), fold, digest);
    stage.leadership.set(1);
    const blocking = await stage.submit();
    await put(stage, "s", { catchUp: "last" });
    await advance(clock, 6 * MINUTE_MS);
    expect(jobsOf(stage, "s")).toBe(0);
    await stage.service.cancel(REQUEST, blocking);
    await advance(clock, 11_000);
    expect(jobsOf(stage, "s")).toBe(1);
  });

  it("D10: of many that are due at once a turn looks at a few", async () => {
    const { stage, clock } = await leading();
    for (let at = 0; at < 200; at++) await put(stage, `s${at}`);
    await drain();
    await advance(clock, 5 * MINUTE_MS - 1);
    clock.nowMs += 1;
    const fired = (): number => stage.service.stats().submitted;
    let most = 0;
    for (let turn = 0; turn < 100 && fired() < 200; turn++) {
      const before = fired();
      clock.fireNext();
      await drain();
      most = Math.max(most, fired() - before);
    }
    expect([fired(), most]).toEqual([200, 32]);
  });
});
