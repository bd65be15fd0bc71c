import { describe, expect, it } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { TURN_SLICE_MS } from "../core/kit/limits.ts";
import { systemDigest as digest } from "../drivers/system/digest.ts";
import { WorkedClock } from "../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../logs/index.ts";
import type { GivenLease } from "../ports/jobs.ts";
import { Slice } from "./slice.ts";
import { JobsStage, newFold, REQUEST, SPEC, turns } from "./jobs/test-jobs.ts";
import { advance, drain, watch } from "./scopes/test-scopes.ts";

const JOBS = 400;

function stageOn(store: MemoryStore, clock: WorkedClock, name?: string): JobsStage {
  const fold = newFold(digest);
  return new JobsStage(clock, new MemoryLog(store, fold), fold, digest, name);
}

async function leading(): Promise<{ stage: JobsStage; clock: WorkedClock; store: MemoryStore }> {
  const [clock, store] = [new WorkedClock(), new MemoryStore()];
  const stage = stageOn(store, clock);
  stage.leadership.set(1);
  await drain();
  return { stage, clock, store };
}

describe("a slice of a turn", () => {
  it("begins when it is made, and is over by the clock", () => {
    const clock = new WorkedClock();
    const slice = new Slice(clock);
    expect(slice.isOver).toBe(false);
    clock.nowMs += TURN_SLICE_MS;
    expect(slice.isOver).toBe(true);
  });

  it("ends a part of the leases of an agent that is gone, and the next ones the others", async () => {
    const { stage, clock } = await leading();
    await stage.submitMany(JOBS, { attemptsMax: 1, lossesMax: 0 });
    const agent = { name: "a", session: "a", kinds: ["work"], labels: {}, platform: "linux", capacity: JOBS };
    const { leases } = await stage.poll("a", { agent, max: JOBS, ttlMs: 10_000 });
    const held = leases.length;
    expect(held).toBeGreaterThan(100);
    await advance(clock, 9_900);
    clock.perLookMs = 0.05;
    const ended = (): number => held - stage.service.agents()[0]!.running;
    let [most, before] = [0, 0];
    await turns(clock, () => {
      [most, before] = [Math.max(most, ended() - before), ended()];
      return ended() === held;
    });
    expect(most).toBeLessThanOrEqual(TURN_SLICE_MS / clock.perLookMs);
  });

  it("counts a part of the leases of the leader before, and all of them end in their time", async () => {
    const { stage, clock, store } = await leading();
    await stage.submitMany(JOBS, { attemptsMax: 1, lossesMax: 0 });
    const agent = { name: "a", session: "a", kinds: ["work"], labels: {}, platform: "linux", capacity: JOBS };
    const { leases } = await stage.poll("a", { agent, max: JOBS, ttlMs: 10_000 });
    stage.leadership.set(null);
    const next = stageOn(store, clock, "next");
    clock.perLookMs = 0.05;
    const beganMs = clock.nowMs;
    next.leadership.set(2);
    await drain();
    expect(clock.nowMs - beganMs).toBeLessThan(2 * TURN_SLICE_MS + 5);
    const running = (): number => next.service.agents()[0]!.running;
    await turns(clock, () => clock.nowMs - beganMs > 9_000);
    expect(running()).toBe(leases.length);
    await turns(clock, () => running() === 0);
    expect(clock.nowMs - beganMs).toBeLessThan(12_000);
  });

  it("counts a lease also where the result was refused by the log: nobody hears of its agent again, and the job is free", async () => {
    const { stage, clock, store } = await leading();
    const held: { readonly session: string; readonly lease: GivenLease }[] = [];
    for (const session of ["a", "b", "c", "d", "e", "f"]) {
      await stage.submit({ attemptsMax: 1, lossesMax: 0 });
      held.push({ session, lease: await stage.leased(session) });
    }
    stage.leadership.set(null);
    const next = stageOn(store, clock, "next");
    // About one of them in a turn.
    clock.perLookMs = 1.5;
    next.leadership.set(2);
    await drain();
    next.log.isHolding = true;
    const { session, lease } = held.at(-1)!;
    const result = watch(next.complete(session, lease, { leaderEpoch: 2 }));
    await drain();
    const beganMs = clock.nowMs;
    await turns(clock, () => clock.nowMs - beganMs > 1_000);
    clock.perLookMs = 0;
    next.log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    await drain();
    expect(result.state).toBe("rejected");
    await advance(clock, 60_000);
    expect(held.map((one) => next.service.job(one.lease.jobId)?.state)).toEqual(held.map(() => "failed"));
  });

  it("hands a part of the jobs that are ready to agents that wait, and goes on when they are committed", async () => {
    const { stage, clock } = await leading();
    const polls = Array.from({ length: JOBS }, (_, at) => watch(stage.poll(`s${at}`, { waitMs: 60_000 })));
    await drain();
    expect(stage.service.waiting).toBe(JOBS);
    clock.perLookMs = 0.05;
    stage.log.isHolding = true;
    void watch(
      stage.service.submit(
        REQUEST,
        Array.from({ length: JOBS }, () => SPEC),
      ),
    );
    await drain();
    const assigned = (): number => polls.filter(({ value }) => value?.leases.length === 1).length;
    // Of the others nothing is decided yet: they still wait.
    expect(stage.service.waiting).toBeGreaterThan(JOBS / 2);
    stage.log.release();
    await turns(clock, () => assigned() === JOBS);
  });
});
