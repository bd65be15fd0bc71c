import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { BookLimits } from "../../core/jobs/index.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { AgentInfo } from "../../ports/jobs.ts";
import { LeaseSecrets } from "./lease-secrets.ts";
import { JobsStage, newFold, REQUEST, SPEC } from "./test-jobs.ts";
import { advance, drain, watch } from "../scopes/test-scopes.ts";

function stageOn(store: MemoryStore, clock: ManualClock, limits: Partial<BookLimits> = {}): JobsStage {
  const fold = newFold(digest, limits);
  return new JobsStage(clock, new MemoryLog(store, fold), fold, digest);
}

async function leading(limits: Partial<BookLimits> = {}) {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const stage = stageOn(store, clock, limits);
  stage.leadership.set(1);
  await drain();
  let confirms = 0;
  const confirm = stage.leadership.confirm.bind(stage.leadership);
  stage.leadership.confirm = () => {
    confirms++;
    return confirm();
  };
  /** What was run in this time and changed nothing: such an answer is confirmed. */
  const idleRuns = async (forMs: number): Promise<number> => {
    const before = confirms;
    await advance(clock, forMs);
    return confirms - before;
  };
  return { stage, clock, store, idleRuns };
}

function agentOf(name: string, session: string): AgentInfo {
  return { name, session, kinds: ["work"], labels: {}, platform: "linux", capacity: 1 };
}

describe("leases on a node that stutters", () => {
  it("end all the same: what is 100 ms late every ten seconds makes no lease a fresh one", async () => {
    const { stage, clock } = await leading();
    const id = await stage.submit();
    await stage.leased("dead", { ttlMs: 15_000 });
    let seconds = 0;
    for (; seconds < 120 && stage.service.job(id)?.state === "assigned"; seconds += 10) {
      await advance(clock, 9_900);
      clock.nowMs = Math.max(clock.nowMs, clock.nextMs) + 100;
      clock.fireNext();
      await drain();
    }
    expect(seconds).toBeLessThanOrEqual(20);
  });

  it("trap 29: do not end for a stall: who renews as soon as it can keeps its job", async () => {
    const { stage, clock } = await leading();
    const id = await stage.submit();
    const lease = await stage.leased("a", { ttlMs: 5_000 });
    await advance(clock, 4_000);
    clock.nowMs += 60_000;
    while (clock.fireNext()) await drain();
    await advance(clock, 900);
    expect((await stage.poll("a", { max: 0, renew: [lease] })).renewed).toMatchObject([{ outcome: "renewed" }]);
    await advance(clock, 4_900);
    expect(stage.service.job(id)).toMatchObject({ state: "assigned", losses: 0 });
  });
});

it("on a copy that was restored paused no lease of a job ends by time, and after its resumption each has its whole lease", async () => {
  const { stage, clock } = await leading();
  const id = await stage.submit();
  await stage.leased("a", { ttlMs: 15_000 });
  stage.isPaused = true;
  await advance(clock, 3_600_000);
  expect(stage.service.job(id)).toMatchObject({ state: "assigned", losses: 0 });
  stage.isPaused = false;
  stage.service.resumed();
  await advance(clock, 14_999);
  expect(stage.service.job(id)?.state, "its agent may have renewed elsewhere a moment ago").toBe("assigned");
  await advance(clock, 1);
  await drain();
  expect(stage.service.job(id)).toMatchObject({ losses: 1 });
});

describe("an agent", () => {
  it("that is removed while it waits is not counted any more when it is answered", async () => {
    const { stage, clock, idleRuns } = await leading();
    const waiting = watch(stage.poll("a", { waitMs: 60_000 }));
    await drain();
    await stage.service.removeAgent(REQUEST, "agent-a");
    await drain();
    expect(waiting.state).toBe("resolved");
    await advance(clock, 100_000);
    expect(await idleRuns(100_000)).toBe(0);
  });

  it("that is refused is not counted: a stale process does not take over its successor's place", async () => {
    const { stage, clock } = await leading();
    await stage.poll("s1", { agent: agentOf("x", "s1") });
    await stage.poll("s2", { agent: agentOf("x", "s2") });
    for (let at = 0; at < 10; at++) {
      await expect(stage.poll("s1", { agent: agentOf("x", "s1") })).rejects.toMatchObject({ code: "STALE_EPOCH" });
      await advance(clock, 20_000);
    }
    const session = new LeaseSecrets(digest).sessionHash("s2");
    expect(stage.service.agents()).toMatchObject([{ session, state: "offline" }]);
  });

  it("for whom there is no room leaves nothing behind", async () => {
    const { stage, clock, idleRuns } = await leading({ agentsMax: 1 });
    await stage.poll("a");
    for (let at = 0; at < 50; at++) {
      await expect(stage.poll(`new-${at}`)).rejects.toMatchObject({ code: "OVERLOADED" });
    }
    await advance(clock, 100_000);
    expect(await idleRuns(100_000)).toBe(0);
  });

  it("whose registration the log refused is forgotten when its time is over", async () => {
    const { stage, clock, idleRuns } = await leading();
    stage.log.isHolding = true;
    const refused = watch(stage.poll("a"));
    await drain();
    stage.log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    await drain();
    expect(refused.code).toBe("UNCOMMITTED_LIMIT");
    await advance(clock, 100_000);
    expect(await idleRuns(100_000)).toBe(0);
  });
});

describe("a job that is being cancelled", () => {
  it("trap 53: is over after a while, also where its agent renews it and does not end it", async () => {
    const { stage, clock } = await leading();
    const [id, next] = await stage.service.submit(REQUEST, [
      { ...SPEC, concurrency: { key: "k", limit: 1 } },
      { ...SPEC, concurrency: { key: "k", limit: 1 } },
    ]);
    const lease = await stage.leased("a", { ttlMs: 10_000 });
    await stage.service.cancel(REQUEST, id!);
    const renew = async (forMs: number): Promise<void> => {
      for (let leftMs = forMs; leftMs > 0; leftMs -= 3_000) {
        await advance(clock, 3_000);
        await stage.poll("a", { max: 0, renew: [lease] });
      }
    };
    await renew(57_000);
    expect(stage.service.job(id!)?.state).toBe("cancelling");
    await renew(18_000);
    expect(stage.service.job(id!)?.state).toBe("cancelled");
    expect((await stage.leased("b")).jobId).toBe(next);
  });
});

/** How many are set until then, by timers alone. Fails where time does not pass: that would be a loop. */
function timersUntil(clock: ManualClock, untilMs: number): number {
  const before = clock.timersSet;
  for (let turn = 0; turn < 1_000 && clock.nowMs < untilMs; turn++) {
    clock.nowMs = Math.max(clock.nowMs, clock.nextMs);
    clock.fireNext();
  }
  expect(clock.nowMs).toBeGreaterThanOrEqual(untilMs);
  return clock.timersSet - before;
}

describe("what is due", () => {
  it.each([
    ["by a date", 3_000],
    ["by a backoff", null],
  ])("%s, and that nobody who waits can take, is looked at once, not for ever", async (_name, notBeforeMs) => {
    const { stage, clock } = await leading();
    const id = await stage.submit({ notBeforeMs });
    if (notBeforeMs === null) {
      const lease = await stage.leased("a");
      await stage.complete("a", lease, {
        outcome: { kind: "failed", error: { message: "", detail: null }, retry: true },
      });
    }
    // One that has no room, as far as is known here; one for other work; and one whose name another process has taken.
    await stage.submit();
    const full = { ...agentOf("full", "f1"), capacity: 1 };
    await stage.leased("f1", { agent: full, ttlMs: 60_000 });
    void watch(stage.poll("f1", { agent: full, waitMs: 60_000 }));
    void watch(stage.poll("o1", { agent: { ...agentOf("other", "o1"), kinds: ["other"] }, waitMs: 60_000 }));
    void watch(stage.poll("x1", { agent: { ...agentOf("x", "x1"), labels: { old: "1" } }, waitMs: 60_000 }));
    await drain();
    await stage.poll("x2", { agent: { ...agentOf("x", "x2"), kinds: ["other"] }, max: 0 });
    expect(stage.service.waiting).toBe(2);
    expect(timersUntil(clock, 16_000)).toBeLessThan(200);
    await drain();
    expect(stage.service.job(id)?.state).toBe("pending");
  });

  it("on a node that may not act now is looked at again after a while, not at once and again and again", async () => {
    const { stage, clock } = await leading();
    await stage.submit();
    await stage.leased("a", { ttlMs: 5_000 });
    const { leadership } = stage;
    const epoch = leadership.epoch.bind(leadership);
    leadership.epoch = () => null;
    expect(timersUntil(clock, 16_000)).toBeLessThan(200);
    leadership.epoch = epoch;
    await advance(clock, 1_000);
    expect(stage.service.stats().byState.pending).toBe(1);
  });

  it("by a schedule that this node can't read does not keep it from leading, nor from showing the others", async () => {
    const { stage, clock, store } = await leading();
    const schedule = { cron: "* * * * *", spec: SPEC, overlap: "allow", catchUp: "none", paused: false } as const;
    await stage.service.putSchedule(REQUEST, { ...schedule, name: "far", timeZone: "Mars/Base" });
    await stage.service.putSchedule(REQUEST, { ...schedule, name: "near", timeZone: "UTC" });
    stage.leadership.set(null);
    const next = stageOn(store, clock);
    const { nextFire } = next;
    next.nextFire = (cron, zone, afterMs) => {
      if (zone === "Mars/Base") throw new TenureError("SCHEDULE_INVALID", "there is no such zone here");
      return nextFire(cron, zone, afterMs);
    };
    next.leadership.set(2);
    await drain();
    await advance(clock, 61_000);
    expect(next.service.stats().byState.pending).toBe(1);
    expect(next.service.schedules()).toMatchObject([
      { name: "far", nextAtMs: null },
      { name: "near", nextAtMs: expect.any(Number) },
    ]);
  });
});
