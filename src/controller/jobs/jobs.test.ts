import { describe, expect, it } from "vitest";
import type { BookLimits } from "../../core/jobs/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { LeaseAnswer } from "../../ports/jobs.ts";
import { JobsStage, newFold, REQUEST, SPEC } from "./test-jobs.ts";
import { advance, drain, watch } from "../scopes/test-scopes.ts";

function stageOn(
  store = new MemoryStore(),
  clock = new ManualClock(),
  name = "site",
  limits: Partial<BookLimits> = {},
): JobsStage {
  const fold = newFold(digest, limits);
  return new JobsStage(clock, new MemoryLog(store, fold), fold, digest, name);
}

async function leading(
  limits: Partial<BookLimits> = {},
): Promise<{ stage: JobsStage; clock: ManualClock; store: MemoryStore }> {
  const store = new MemoryStore();
  const clock = new ManualClock();
  const stage = stageOn(store, clock, "site", limits);
  stage.leadership.set(1);
  await drain();
  return { stage, clock, store };
}

describe("leading", () => {
  it("refuses on a node that does not lead; while it takes over, requests wait", async () => {
    const stage = stageOn();
    await expect(stage.submit()).rejects.toMatchObject({ code: "NOT_LEADER" });
    stage.leadership.set(1);
    expect(await stage.submit()).toEqual(expect.any(String));
  });

  it("while leadership is handed over requests wait for its outcome", async () => {
    const { stage } = await leading();
    stage.leadership.set(1, true);
    const submitted = watch(stage.submit());
    await drain();
    expect(submitted.state).toBe("pending");
    stage.leadership.set(null);
    await drain();
    expect(submitted).toMatchObject({ state: "rejected", code: "NOT_LEADER" });
  });

  it("a log that does not know what became of an append is opened again; nothing of it stays in the head", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const lost = watch(stage.submit());
    await drain();
    stage.log.answer({ outcome: "unknown" });
    await drain();
    expect(lost.code).toBe("OUTCOME_UNKNOWN");
    expect(stage.log.opens).toBe(2);
    await stage.submit();
    expect(stage.service.stats().byState.pending).toBe(1);
  });

  it("what the log refuses unwritten takes along what was decided on top of it, and the leader goes on", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const first = watch(stage.submit());
    await drain();
    const second = watch(stage.poll("a"));
    await drain();
    expect(stage.log.waiting).toBe(2);
    stage.log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    await drain();
    expect([first.code, second.code]).toEqual(["UNCOMMITTED_LIMIT", "UNCOMMITTED_LIMIT"]);
    expect(stage.service.stats().byState.pending).toBe(0);
    await stage.submit();
    expect(await stage.leased("a")).toMatchObject({ jobEpoch: 1 });
  });

  it("D11: nothing is answered, and nobody sees anything, before it is committed", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const submitted = watch(stage.submit());
    const given = watch(stage.poll("a"));
    await drain();
    expect([submitted.state, given.state]).toEqual(["pending", "pending"]);
    expect(stage.service.stats().byState).toMatchObject({ pending: 0, assigned: 0 });
    stage.log.release();
    await drain();
    expect([submitted.state, given.state]).toEqual(["resolved", "resolved"]);
    expect(given.value?.leases).toHaveLength(1);
  });

  it("D11: a refusal leaves only when nobody else can have led since; otherwise its outcome is unknown", async () => {
    const { stage } = await leading();
    await expect(stage.service.cancel(REQUEST, "nobody's")).rejects.toMatchObject({ code: "NOT_FOUND" });
    stage.leadership.isConfirming = false;
    await expect(stage.service.cancel(REQUEST, "nobody's")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });

  it("a log that says that this node does not lead is opened again, instead of refusing everything for ever", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const refused = watch(stage.submit());
    await drain();
    stage.log.answer(new TenureError("NOT_LEADER", "epoch 1 was not opened here"));
    await drain();
    expect(refused.code).toBe("NOT_LEADER");
    expect(stage.log.opens).toBe(2);
    await stage.submit();
    expect(stage.service.stats().byState.pending).toBe(1);
  });

  it("what can't begin to serve is tried again", async () => {
    const store = new MemoryStore();
    const clock = new ManualClock();
    const stage = stageOn(store, clock);
    const fork = clock.setTimer.bind(clock);
    let failures = 0;
    clock.setTimer = (atMs, fire) => {
      // The first timer is the reign's.
      if (failures++ === 0) throw new Error("not now");
      return fork(atMs, fire);
    };
    stage.leadership.set(1);
    await drain();
    await advance(clock, 100);
    expect(await stage.submit()).toEqual(expect.any(String));
  });

  it("D11: a refusal that rests on the head waits until the head is committed", async () => {
    const { stage } = await leading();
    const id = await stage.submit();
    stage.log.isHolding = true;
    const cancelled = watch(stage.service.cancel(REQUEST, id));
    await drain();
    const again = watch(stage.service.cancel(REQUEST, id));
    await drain();
    expect(again.state).toBe("pending");
    stage.log.answer({ outcome: "unknown" });
    await drain();
    expect([cancelled.code, again.code]).toEqual(["OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN"]);
  });

  it("a request that names an epoch which is over is stale; one that names a later one meets a leader of the past", async () => {
    const { stage } = await leading();
    stage.leadership.set(null);
    stage.leadership.set(5);
    await drain();
    const submit = (leaderEpoch: number) => stage.service.submit({ ...REQUEST, leaderEpoch }, [SPEC]);
    await expect(submit(4)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(submit(6)).rejects.toMatchObject({ code: "NOT_LEADER" });
    await expect(stage.poll("a", { leaderEpoch: 4 })).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(await submit(5)).toHaveLength(1);
  });

  it("what is submitted while an agent waits is assigned in the same append", async () => {
    const { stage } = await leading();
    const waiting = watch(stage.poll("a", { waitMs: 30_000 }));
    await drain();
    expect(waiting.state).toBe("pending");
    stage.log.isHolding = true;
    const submitted = watch(stage.submit());
    await drain();
    expect(stage.log.waiting).toBe(1);
    stage.log.release();
    await drain();
    expect(submitted.state).toBe("resolved");
    expect(waiting.value?.leases).toMatchObject([{ spec: SPEC, attempt: 1 }]);
  });

  it("twenty agents that wait get ten jobs, each once", async () => {
    const { stage } = await leading();
    const waiting = Array.from({ length: 20 }, (_, at) => watch(stage.poll(`a${at}`, { waitMs: 30_000 })));
    await drain();
    await stage.service.submit(
      REQUEST,
      Array.from({ length: 10 }, () => SPEC),
    );
    await drain();
    const given = waiting.flatMap(({ value }) => value?.leases ?? []);
    expect(new Set(given.map(({ jobId }) => jobId)).size).toBe(10);
    expect(given).toHaveLength(10);
    expect(stage.service.waiting).toBe(10);
  });
});

describe("leases", () => {
  it("trap 56b: end on the monotonic clock; a renewal moves the end, from when it arrived", async () => {
    const { stage, clock } = await leading();
    await stage.submit();
    const lease = await stage.leased("a", { ttlMs: 10_000 });
    await advance(clock, 9_000);
    const { renewed } = await stage.poll("a", { renew: [lease], max: 0 });
    expect(renewed).toMatchObject([{ outcome: "renewed" }]);
    await advance(clock, 9_000);
    expect(stage.service.job(lease.jobId)).toMatchObject({ state: "assigned", losses: 0 });
    await advance(clock, 2_000);
    expect(stage.service.job(lease.jobId)).toMatchObject({ state: "pending", losses: 1, failures: 0 });
  });

  it("a renewal is answered only by a leader that is known to lead", async () => {
    const { stage } = await leading();
    await stage.submit();
    const lease = await stage.leased("a");
    stage.leadership.isConfirming = false;
    await expect(stage.poll("a", { renew: [lease], max: 0 })).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });

  it("a new leader restarts every lease at its full length", async () => {
    const { stage, clock, store } = await leading();
    await stage.submit();
    const lease = await stage.leased("a", { ttlMs: 10_000 });
    await advance(clock, 9_000);
    stage.leadership.set(null);
    const next = stageOn(store, clock, "next");
    next.leadership.set(2);
    await drain();
    await advance(clock, 9_000);
    expect(next.service.job(lease.jobId)?.state).toBe("assigned");
    await advance(clock, 2_000);
    expect(next.service.job(lease.jobId)?.state).toBe("pending");
  });

  it("trap 50: a result of an older leader or an older attempt is stale; the agent renews and is told how things stand", async () => {
    const { stage, clock, store } = await leading();
    await stage.submit();
    const lease = await stage.leased("a");
    stage.leadership.set(null);
    const next = stageOn(store, clock, "next");
    next.leadership.set(2);
    await drain();
    expect(await next.complete("a", lease)).toMatchObject({ ok: false, code: "STALE_EPOCH", leaderEpoch: 2 });
    const { renewed } = await next.poll("a", { renew: [lease], max: 0 });
    expect(renewed).toMatchObject([{ outcome: "renewed" }]);
    expect(await next.complete("a", lease, { leaderEpoch: 2 })).toMatchObject({ ok: true, state: "completed" });
    expect(await next.complete("a", lease, { leaderEpoch: 2 })).toMatchObject({ ok: true, isRepeated: true });
    expect(await next.complete("a", lease, { leaderEpoch: 2, jobEpoch: 7 })).toMatchObject({ code: "STALE_EPOCH" });
    expect(next.service.stats().staleRejected).toBe(2);
  });

  it("trap 53: who runs a job that is cancelled hears it at once while it waits; a silent one is waited for no longer than its lease", async () => {
    const { stage, clock } = await leading();
    await stage.service.submit(REQUEST, [SPEC, SPEC]);
    const [heard, silent] = [await stage.leased("a"), await stage.leased("b")];
    const waiting = watch(stage.poll("a", { renew: [heard], waitMs: 30_000 }));
    await drain();
    for (const { jobId } of [heard, silent]) await stage.service.cancel(REQUEST, jobId);
    await drain();
    expect(waiting.value?.renewed).toMatchObject([{ outcome: "cancelled" }]);
    expect(stage.service.job(silent.jobId)?.state).toBe("cancelling");
    await advance(clock, 11_000);
    expect(stage.service.job(silent.jobId)?.state).toBe("cancelled");
  });

  it("one that wants no more jobs waits for news of those that it has: a cancellation, a timeout, its removal, or the time", async () => {
    const { stage, clock } = await leading();
    const ids = await stage.service.submit(REQUEST, [SPEC, { ...SPEC, timeoutMs: 5_000 }, SPEC]);
    const { leases } = await stage.poll("a", { max: 3, ttlMs: 600_000 });
    const wait = (): ReturnType<typeof watch<LeaseAnswer>> =>
      watch(stage.poll("a", { renew: leases, max: 0, waitMs: 30_000 }));
    const quiet = wait();
    await advance(clock, 4_000);
    expect([quiet.state, stage.service.waiting]).toEqual(["pending", 1]);
    await advance(clock, 2_000);
    expect(quiet.value?.renewed.map(({ outcome }) => outcome)).toEqual(["renewed", "lost", "renewed"]);
    const rest = leases.filter(({ jobId }) => jobId !== ids[1]);
    const again = watch(stage.poll("a", { renew: rest, max: 0, waitMs: 30_000 }));
    await drain();
    await stage.service.cancel(REQUEST, ids[0]!);
    await drain();
    expect(again.value?.renewed.map(({ outcome }) => outcome)).toEqual(["cancelled", "renewed"]);
    const last = leases.filter(({ jobId }) => jobId === ids[2]);
    const still = watch(stage.poll("a", { renew: last, max: 0, waitMs: 20_000 }));
    // There is work for it, but it wants none.
    await stage.submit();
    await advance(clock, 19_000);
    expect(still.state).toBe("pending");
    await advance(clock, 2_000);
    expect(still.value).toMatchObject({ leases: [], renewed: [{ outcome: "renewed" }] });
    const removed = watch(stage.poll("a", { renew: last, max: 0, waitMs: 20_000 }));
    await drain();
    await stage.service.removeAgent(REQUEST, "agent-a");
    await drain();
    expect(removed.value?.renewed).toMatchObject([{ outcome: "lost" }]);
  });

  it("what becomes ready between the look and the waiting of a poll is given to it all the same", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    // Its registration is not committed yet when the job is submitted.
    const waiting = watch(stage.poll("a", { waitMs: 30_000 }));
    await drain();
    const submitted = watch(stage.submit());
    await drain();
    stage.log.release();
    await drain();
    expect([submitted.state, waiting.state]).toEqual(["resolved", "resolved"]);
    expect(waiting.value?.leases).toHaveLength(1);
  });

  it("an attempt that takes too long ends as a failure of its own, and is tried again after a while", async () => {
    const { stage, clock } = await leading();
    const id = await stage.submit({ timeoutMs: 5_000 });
    await stage.leased("a", { ttlMs: 60_000 });
    await advance(clock, 6_000);
    expect(stage.service.job(id)).toMatchObject({ state: "pending", failures: 1 });
    const waiting = watch(stage.poll("b", { waitMs: 30_000 }));
    await advance(clock, 15_000);
    expect(waiting.value?.leases).toHaveLength(1);
  });
});

describe("an answer that shows a job", () => {
  it("shows it as it was decided, where the book has dropped it before the answer leaves", async () => {
    const { stage } = await leading({ finishedMax: 1 });
    const ids = await stage.service.submit(REQUEST, [SPEC, SPEC]);
    const shown = await Promise.all(ids.map((id) => stage.service.cancel(REQUEST, id)));
    expect(shown).toMatchObject(ids.map((id) => ({ id, state: "cancelled" })));
    expect(stage.service.job(ids[0]!)).toBeNull();
  });

  it("comes from the views where a repeated request is about a job that the book does not have any more", async () => {
    const { stage } = await leading({ finishedMax: 1 });
    const [id, other] = await stage.service.submit(REQUEST, [SPEC, SPEC]);
    const request = { ...REQUEST, idempotencyKey: "k", bodyHash: "00" };
    const first = await stage.service.cancel(request, id!);
    stage.views.jobs.set(id!, first);
    await stage.service.cancel(REQUEST, other!);
    // Two submissions, two cancellations.
    stage.views.atPosition = 4;
    expect(stage.service.job(id!)).toBeNull();
    expect(await stage.service.cancel(request, id!)).toEqual(first);
    // Another request about it is refused for what it is, not for being unknown.
    await expect(stage.service.cancel(REQUEST, id!)).rejects.toMatchObject({ code: "JOB_FINISHED" });
    stage.views.jobs.clear();
    await expect(stage.service.cancel(REQUEST, id!)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("a leader whose clock is wrong", () => {
  const HOUR_MS = 3_600_000;

  /** A job that has failed once under a leader whose clock is ahead by so much; the next one has another. */
  async function failed(aheadMs: number, nextAheadMs: number): Promise<{ next: JobsStage; clock: ManualClock }> {
    const { stage, clock, store } = await leading();
    clock.skewMs = 10 * HOUR_MS + aheadMs;
    await stage.submit({ backoff: { baseMs: 10_000, maxMs: 10_000 } });
    const lease = await stage.leased("a");
    await stage.complete("a", lease, {
      outcome: { kind: "failed", error: { message: "no", detail: null }, retry: true },
    });
    stage.leadership.set(null);
    clock.skewMs = 10 * HOUR_MS + nextAheadMs;
    const next = stageOn(store, clock, "next");
    next.leadership.set(2);
    await drain();
    return { next, clock };
  }

  it("which is behind by hours, ends a backoff when it is over: not hours later, and not at once", async () => {
    const { next, clock } = await failed(0, -3 * HOUR_MS);
    const waiting = watch(next.poll("b", { waitMs: 60_000 }));
    await advance(clock, 4_900);
    expect(waiting.state).toBe("pending");
    // The events' clock is ahead of this leader's, and is slower until it is not.
    await advance(clock, 8_600);
    expect(waiting.value?.leases).toHaveLength(1);
  });

  it("which is behind by hours, delays what fails under it by its backoff", async () => {
    const { next, clock } = await failed(3 * HOUR_MS, 0);
    await advance(clock, 14_000);
    const lease = await next.leased("b");
    const outcome = { kind: "failed", error: { message: "no", detail: null }, retry: true } as const;
    expect(await next.complete("b", lease, { outcome })).toMatchObject({ ok: true, state: "pending" });
    const waiting = watch(next.poll("b", { waitMs: 60_000 }));
    await advance(clock, 4_900);
    expect(waiting.state).toBe("pending");
    // The events' clock is ahead of this leader's, and is slower until it is not.
    await advance(clock, 8_600);
    expect(waiting.value?.leases).toHaveLength(1);
  });

  it("which was ahead, does not bring on what has a date: that comes by the clock of whoever leads then", async () => {
    const { next, clock } = await failed(3 * HOUR_MS, 0);
    await advance(clock, 14_000);
    await next.complete("b", await next.leased("b"));
    const notBeforeMs = clock.wallMs() + HOUR_MS;
    const id = await next.submit({ notBeforeMs });
    expect(next.service.whyPending(id)).toEqual({ reason: "not-before", readyAtMs: notBeforeMs });
    const waiting = watch(next.poll("b", { waitMs: 2 * HOUR_MS }));
    await advance(clock, HOUR_MS - 1_000);
    expect(waiting.state).toBe("pending");
    await advance(clock, 2_000);
    expect(waiting.value?.leases).toMatchObject([{ jobId: id }]);
  });
});
