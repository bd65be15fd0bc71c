import { describe, expect, it } from "vitest";
import type { Schedule } from "../../core/jobs/model.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { SCHEDULE_CATCH_UP_MAX, TURN_SLICE_MS } from "../../core/kit/limits.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock, WorkedClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import { JobsStage, newFold, REQUEST, SPEC, turns } from "./test-jobs.ts";
import { advance, drain } from "../scopes/test-scopes.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

function stageOn(store: MemoryStore, clock: ManualClock, name = "site"): JobsStage {
  const fold = newFold(digest);
  return new JobsStage(clock, new MemoryLog(store, fold), fold, digest, name);
}

async function leading(): Promise<{ stage: JobsStage; clock: WorkedClock; store: MemoryStore }> {
  const store = new MemoryStore();
  const clock = new WorkedClock();
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

  it("D10: of 200 that are due at once a turn fires as many as its slice has time for, and all are fired", async () => {
    const { stage, clock } = await leading();
    for (let at = 0; at < 200; at++) await put(stage, `s${at}`);
    await drain();
    await advance(clock, 5 * MINUTE_MS - 1);
    charge(stage, clock, 0.25);
    clock.nowMs += 1;
    const { longestMs } = await turns(clock, () => stage.service.stats().submitted === 200);
    expect(longestMs).toBeLessThanOrEqual(TURN_SLICE_MS + 0.25);
  });
});

/** From now on each question for a time takes so long. */
function charge(stage: JobsStage, clock: ManualClock, ms: number): { calls: number } {
  const { nextFire } = stage;
  const charged = { calls: 0 };
  stage.nextFire = (...args) => {
    clock.nowMs += ms;
    charged.calls++;
    return nextFire(...args);
  };
  return charged;
}

describe("a leader that comes after hours without one", () => {
  async function afterTwoHours(
    schedules: number,
    changes: Partial<Schedule>,
  ): Promise<Awaited<ReturnType<typeof leading>>> {
    const { stage, clock, store } = await leading();
    for (let at = 0; at < schedules; at++)
      await put(stage, `s${at}`, { cron: "* * * * *", catchUp: "all", ...changes });
    stage.leadership.set(null);
    await advance(clock, 2 * HOUR_MS);
    const next = stageOn(store, clock, "next");
    return { stage: next, clock, store };
  }

  it("is not kept from its quorum by 32 schedules of each minute: its turns are short, and each time is fired once", async () => {
    const { stage, clock } = await afterTwoHours(32, {});
    // What a question took when it was measured: 80,000 of them were two seconds, in one turn.
    const charged = charge(stage, clock, 0.025);
    stage.leadership.set(2);
    await drain();
    const owed = 32 * SCHEDULE_CATCH_UP_MAX;
    const { longestMs } = await turns(clock, () => stage.service.stats().submitted >= owed);
    expect(longestMs).toBeLessThanOrEqual(TURN_SLICE_MS + 0.025);
    expect(charged.calls).toBeLessThan(32 * (SCHEDULE_CATCH_UP_MAX + 10));
    await advance(clock, 30_000);
    expect(stage.service.stats().submitted).toBe(owed);
  });

  it("is not kept from it by one schedule that costs more than a turn, in its search or in its jobs", async () => {
    const { stage, clock } = await afterTwoHours(1, {});
    clock.perLookMs = 0.1;
    stage.leadership.set(2);
    await drain();
    let [most, before] = [0, 0];
    const { longestMs } = await turns(clock, () => {
      const { submitted } = stage.service.stats();
      [most, before] = [Math.max(most, submitted - before), submitted];
      return submitted === SCHEDULE_CATCH_UP_MAX;
    });
    // In addition to its slice a turn looks at the clock to write, to set timers and to end.
    expect(longestMs).toBeLessThan(TURN_SLICE_MS + 10);
    expect(most).toBeLessThan(SCHEDULE_CATCH_UP_MAX / 2);
  });

  it("fires every owed time once where another leader takes over in the middle", async () => {
    const { stage, clock, store } = await afterTwoHours(3, { overlap: "allow" });
    charge(stage, clock, 0.5);
    stage.leadership.set(2);
    await drain();
    await turns(clock, () => stage.service.stats().submitted > 0);
    expect(stage.service.stats().submitted).toBeLessThan(3 * SCHEDULE_CATCH_UP_MAX);
    stage.leadership.set(null);
    const third = stageOn(store, clock, "third");
    third.leadership.set(3);
    await drain();
    await turns(clock, () => third.service.stats().submitted >= 3 * SCHEDULE_CATCH_UP_MAX);
    await advance(clock, 20_000);
    expect([0, 1, 2].map((at) => jobsOf(third, `s${at}`))).toEqual([100, 100, 100]);
  });

  it("leaves no time out where the log takes back what an earlier turn has fired", async () => {
    const { stage, clock } = await afterTwoHours(1, {});
    clock.perLookMs = 0.1;
    stage.leadership.set(2);
    await drain();
    stage.log.isHolding = true;
    await turns(clock, () => stage.log.waiting > 0);
    stage.log.answer(new TenureError("UNCOMMITTED_LIMIT", "no room"));
    await drain();
    clock.perLookMs = 0;
    await advance(clock, 11_000);
    expect(jobsOf(stage, "s0")).toBe(SCHEDULE_CATCH_UP_MAX);
  });

  it("stops to catch up with a schedule that is paused in the middle of it", async () => {
    const { stage, clock } = await afterTwoHours(1, {});
    clock.perLookMs = 0.1;
    stage.leadership.set(2);
    await drain();
    await turns(clock, () => jobsOf(stage, "s0") > 0);
    await put(stage, "s0", { cron: "* * * * *", catchUp: "all", paused: true });
    const fired = jobsOf(stage, "s0");
    expect(fired).toBeLessThan(SCHEDULE_CATCH_UP_MAX / 2);
    clock.perLookMs = 0;
    await advance(clock, HOUR_MS);
    expect(jobsOf(stage, "s0")).toBe(fired);
  });
});

describe("a page of schedules", () => {
  it("asks for the next times of those that it shows, however many there are", async () => {
    const { stage, clock } = await leading();
    for (let at = 0; at < 300; at++) await put(stage, `s${String(at).padStart(3, "0")}`);
    await drain();
    const charged = charge(stage, clock, 0);
    const page = stage.service.schedules({ after: "s041", limit: 2 });
    expect(page.map(({ name }) => name)).toEqual(["s042", "s043"]);
    expect(page.every(({ nextAtMs }) => nextAtMs !== null)).toBe(true);
    expect(charged.calls).toBe(2);
  });
});
