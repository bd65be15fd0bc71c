// How attempts end: results, budgets, cancelling, and a job that is sent once more by hand.

import { describe, expect, it } from "vitest";
import type { ResultCall } from "../../../ports/jobs.ts";
import { newBook } from "../../../../test/jobs-book.ts";
import { agent, COMPLETED, Desk, FAILED, replayed, REQUEST, spec } from "../test-desk.ts";

describe("a result", () => {
  it("trap 50: commits only with the current jobEpoch, lease, session and leader epoch; anything else causes no event", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    const [lease] = desk.lease().leases;
    const count = desk.events.length;
    const refused = [
      desk.result("a1-s1", { ...lease!, jobEpoch: 0 }, COMPLETED),
      desk.result("a1-s1", { ...lease!, jobEpoch: 2 }, COMPLETED),
      desk.result("a1-s1", { ...lease!, leaseId: "other" }, COMPLETED),
      desk.result("a2-s1", lease!, COMPLETED),
      desk.result("a1-s1", lease!, COMPLETED, 0),
      desk.result("a1-s1", lease!, COMPLETED, 2),
    ];
    for (const answer of refused) expect(answer).toMatchObject({ ok: false, code: "STALE_EPOCH", leaderEpoch: 1 });
    expect(desk.result("a1-s1", { ...lease!, jobId: "nobody" }, COMPLETED)).toMatchObject({
      ok: false,
      code: "NOT_FOUND",
    });
    expect(desk.events).toHaveLength(count);
    expect(desk.state(jobId!)).toBe("assigned");
    expect(desk.result("a1-s1", lease!, COMPLETED)).toEqual({ ok: true, state: "completed", isRepeated: false });
    expect(desk.book.applied.job(jobId!)).toMatchObject({ state: "completed", result: { ok: true }, lease: null });
  });

  it("trap 56: a late one of one attempt does not hit the next", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    const [first] = desk.lease(agent("a1")).leases;
    desk.do<"lease-expired">({ kind: "lease-expired", jobId: jobId!, jobEpoch: 1 });
    const [second] = desk.lease(agent("a2")).leases;
    expect(second).toMatchObject({ jobId, jobEpoch: 3, attempt: 2 });
    expect(desk.result("a1-s1", first!, COMPLETED)).toMatchObject({ ok: false, code: "STALE_EPOCH" });
    expect(desk.result("a1-s1", { ...first!, jobEpoch: 3 }, COMPLETED)).toMatchObject({ ok: false });
    // And a late timer of the first does not take the second away.
    expect(desk.do<"lease-expired">({ kind: "lease-expired", jobId: jobId!, jobEpoch: 1 })).toEqual({ state: null });
    expect(desk.do<"attempt-timed-out">({ kind: "attempt-timed-out", jobId: jobId!, jobEpoch: 1 })).toEqual({
      state: null,
    });
    expect(desk.result("a2-s1", second!, COMPLETED)).toMatchObject({ ok: true });
  });

  it("that is repeated is answered as the first time, also after the job went on", () => {
    const desk = new Desk(newBook());
    desk.submit(spec({ backoff: { baseMs: 0, maxMs: 0 } }));
    const [first] = desk.lease().leases;
    expect(desk.result("a1-s1", first!, FAILED)).toEqual({ ok: true, state: "pending", isRepeated: false });
    const count = desk.events.length;
    expect(desk.result("a1-s1", first!, FAILED)).toEqual({ ok: true, state: "pending", isRepeated: true });
    const [second] = desk.lease().leases;
    desk.result("a1-s1", second!, COMPLETED);
    expect(desk.result("a1-s1", first!, FAILED)).toEqual({ ok: true, state: "pending", isRepeated: true });
    expect(desk.result("a1-s1", second!, COMPLETED)).toEqual({ ok: true, state: "completed", isRepeated: true });
    expect(desk.result("a1-s1", first!, COMPLETED)).toMatchObject({ ok: false, code: "STALE_EPOCH" });
    expect(desk.events).toHaveLength(count + 2);
  });

  it("that stands twice in one call counts once", () => {
    const desk = new Desk(newBook());
    desk.submit(spec());
    const [lease] = desk.lease().leases;
    const call = (outcome: ResultCall["outcome"]): ResultCall => ({ ...lease!, outcome });
    const { answers } = desk.do<"results">({
      kind: "results",
      session: "a1-s1",
      results: [call(COMPLETED), call(COMPLETED), call(FAILED)],
    });
    expect(answers).toEqual([
      { ok: true, state: "completed", isRepeated: false },
      { ok: true, state: "completed", isRepeated: true },
      expect.objectContaining({ ok: false, code: "STALE_EPOCH" }),
    ]);
    expect(desk.events.filter(({ eventType }) => eventType === "build:completed")).toHaveLength(1);
  });

  it("that no event can hold refuses the whole call", () => {
    const desk = new Desk(newBook());
    desk.submit(spec());
    const [lease] = desk.lease().leases;
    const results = [{ ...lease!, outcome: { kind: "completed" as const, result: 2 ** 60 } }];
    expect(desk.decide<"results">({ kind: "results", session: "a1-s1", results })).toMatchObject({
      kind: "refused",
      code: "EVENT_INVALID",
    });
  });
});

describe("budgets", () => {
  it("trap 54: losses of agents and failures of the job are counted apart", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec({ attemptsMax: 2, lossesMax: 2, backoff: { baseMs: 0, maxMs: 0 } }));
    const expire = (): string | null => {
      const [lease] = desk.lease().leases;
      return desk.do<"lease-expired">({ kind: "lease-expired", jobId: jobId!, jobEpoch: lease!.jobEpoch }).state;
    };
    expect(expire()).toBe("pending");
    expect(expire()).toBe("pending");
    const [lease] = desk.lease().leases;
    expect(desk.result("a1-s1", lease!, FAILED)).toMatchObject({ state: "pending" });
    expect(desk.book.applied.job(jobId!)).toMatchObject({ losses: 2, failures: 1 });
    expect(expire()).toBe("failed");
    const job = desk.book.applied.job(jobId!)!;
    expect(job).toMatchObject({ state: "failed", losses: 2, failures: 1, jobEpoch: 8 });
    expect(job.error?.message).toMatch(/agent a1 was lost/);
    expect(job.attempts.map(({ end }) => end)).toEqual(["lost", "lost", "failed", "lost"]);
  });

  it("a job that fails for the last time is failed; one that says that a retry is in vain, at once", () => {
    const desk = new Desk(newBook());
    const [one, other] = desk.submit(spec({ attemptsMax: 1 }), spec({ attemptsMax: 9 }));
    const { leases } = desk.lease(agent(), 2);
    expect(desk.result("a1-s1", leases[0]!, FAILED)).toMatchObject({ state: "failed" });
    expect(desk.result("a1-s1", leases[1]!, { ...FAILED, retry: false } as never)).toMatchObject({ state: "failed" });
    expect(desk.book.applied.job(one!)).toMatchObject({ failures: 1, error: { message: "no" } });
    expect(desk.state(other!)).toBe("failed");
  });

  it("what is given back again and again, or cancelled unasked, waits for longer each time, and costs neither", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    const waits: number[] = [];
    for (let at = 0; at < 12; at++) {
      const [lease] = desk.lease().leases;
      desk.result("a1-s1", lease!, { kind: at % 2 === 0 ? "handed-back" : "cancelled" });
      const waitMs = desk.book.head.job(jobId!)!.readyAtMs - desk.nowMs;
      waits.push(waitMs);
      desk.nowMs += Math.max(0, waitMs);
    }
    expect(waits.slice(0, 2)).toEqual([0, 0]);
    expect(waits[2]).toBeGreaterThanOrEqual(50);
    expect(waits.at(-1)).toBeGreaterThanOrEqual(2_500);
    expect(Math.max(...waits)).toBeLessThanOrEqual(5_000);
    expect(desk.book.head.job(jobId!)).toMatchObject({ state: "pending", failures: 0, losses: 0 });
    // Another end in between, and it is the first time again.
    const [failing] = desk.lease().leases;
    desk.result("a1-s1", failing!, { kind: "failed", error: { message: "it broke", detail: null }, retry: true });
    desk.nowMs = desk.book.head.job(jobId!)!.readyAtMs;
    const [lease] = desk.lease().leases;
    desk.result("a1-s1", lease!, { kind: "handed-back" });
    expect(desk.book.head.job(jobId!)!.readyAtMs).toBeLessThanOrEqual(desk.nowMs);
  });

  it("what is handed back costs neither", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec({ attemptsMax: 1, lossesMax: 0 }));
    const [lease] = desk.lease().leases;
    expect(desk.result("a1-s1", lease!, { kind: "handed-back" })).toMatchObject({ state: "pending" });
    desk.lease();
    const { handedBack } = desk.do<"hand-back">({ kind: "hand-back", name: "a1" });
    expect(handedBack).toMatchObject([{ jobId, jobEpoch: 3 }]);
    expect(desk.book.applied.agents(), "it was killed").toMatchObject([{ name: "a1", state: "offline", running: 0 }]);
    expect(desk.book.applied.job(jobId!)).toMatchObject({ state: "pending", failures: 0, losses: 0, jobEpoch: 4 });
    expect(desk.lease().leases).toHaveLength(1);
  });

  it("waits longer after each failure, with half of it by chance, up to the maximum", () => {
    const desk = new Desk(newBook());
    const delays: number[] = [];
    for (const random of [0, 0.999_999]) {
      const [jobId] = desk.submit(spec({ attemptsMax: 6, backoff: { baseMs: 1_000, maxMs: 5_000 } }));
      for (let attempt = 1; attempt < 6; attempt++) {
        const [lease] = desk.lease().leases;
        desk.random = random;
        desk.result("a1-s1", lease!, FAILED);
        const { readyAtMs } = desk.book.applied.job(jobId!)!;
        delays.push(readyAtMs - desk.nowMs);
        expect(desk.lease().leases).toHaveLength(0);
        desk.nowMs = readyAtMs;
      }
      const [last] = desk.lease().leases;
      desk.result("a1-s1", last!, FAILED);
    }
    expect(delays).toEqual([500, 1_000, 2_000, 2_500, 2_500, 999, 1_999, 3_999, 4_999, 4_999]);
  });

  it("an attempt that takes too long is a failure of the job", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec({ attemptsMax: 1, timeoutMs: 500 }));
    const [lease] = desk.lease().leases;
    const { state } = desk.do<"attempt-timed-out">({
      kind: "attempt-timed-out",
      jobId: jobId!,
      jobEpoch: lease!.jobEpoch,
    });
    expect(state).toBe("failed");
    expect(desk.book.applied.job(jobId!)).toMatchObject({ failures: 1, attempts: [{ end: "timed-out" }] });
    expect(desk.result("a1-s1", lease!, COMPLETED)).toMatchObject({ ok: false, code: "STALE_EPOCH" });
  });
});

describe("cancelling", () => {
  const cancel = (desk: Desk, jobId: string): void =>
    void desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId });

  it("trap 53: ends also where the agent is silent", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    const [lease] = desk.lease().leases;
    cancel(desk, jobId!);
    expect(desk.state(jobId!)).toBe("cancelling");
    expect(desk.book.head.renewal("a1-s1", lease!)).toEqual({ outcome: "cancelled", state: "cancelling" });
    expect(desk.do<"lease-expired">({ kind: "lease-expired", jobId: jobId!, jobEpoch: 1 })).toEqual({
      state: "cancelled",
    });
    expect(desk.book.applied.job(jobId!)).toMatchObject({ state: "cancelled", losses: 0, attempts: [{ end: "lost" }] });
    expect(desk.result("a1-s1", lease!, { kind: "cancelled" })).toMatchObject({ ok: false, code: "STALE_EPOCH" });
  });

  it("of a pending job is done at once, of a finished one is refused, twice is once", () => {
    const desk = new Desk(newBook());
    const [pending, running] = desk.submit(spec(), spec());
    cancel(desk, pending!);
    expect(desk.state(pending!)).toBe("cancelled");
    const refusal = desk.decide<"cancel">({ kind: "cancel", request: REQUEST, jobId: pending! });
    expect(refusal).toMatchObject({ kind: "refused", code: "JOB_FINISHED" });
    expect(desk.decide<"cancel">({ kind: "cancel", request: REQUEST, jobId: "no" })).toMatchObject({
      code: "NOT_FOUND",
    });
    expect(desk.lease().leases).toMatchObject([{ jobId: running }]);
    cancel(desk, running!);
    const count = desk.events.length;
    cancel(desk, running!);
    expect(desk.events).toHaveLength(count);
  });

  it("whatever its agent says then, it is not run again; work that is done is done", () => {
    const states = (["completed", "failed", "cancelled", "handed-back"] as const).map((kind) => {
      const desk = new Desk(newBook());
      const [jobId] = desk.submit(spec());
      const [lease] = desk.lease().leases;
      cancel(desk, jobId!);
      const outcome = kind === "completed" ? COMPLETED : kind === "failed" ? FAILED : { kind };
      desk.result("a1-s1", lease!, outcome);
      return desk.state(jobId!);
    });
    expect(states).toEqual(["completed", "cancelled", "cancelled", "cancelled"]);
  });
});

describe("a retry by hand", () => {
  const retry = (desk: Desk, jobId: string, job: Parameters<typeof desk.propose<"retry">>[0]["job"] = null): unknown =>
    desk.propose<"retry">({ kind: "retry", request: REQUEST, jobId, job });

  it("gives a finished job fresh budgets, and refuses any other", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec({ attemptsMax: 1 }));
    expect(retry(desk, jobId!)).toMatchObject({ code: "BAD_REQUEST" });
    const [lease] = desk.lease().leases;
    desk.result("a1-s1", lease!, FAILED);
    expect(retry(desk, jobId!)).toMatchObject({ kind: "decided" });
    expect(desk.book.head.job(jobId!)).toMatchObject({
      state: "pending",
      failures: 0,
      jobEpoch: 2,
      error: null,
      finishedAtMs: null,
    });
    expect(desk.result("a1-s1", lease!, FAILED)).toMatchObject({ state: "failed", isRepeated: true });
    expect(desk.lease().leases).toMatchObject([{ jobId, jobEpoch: 3, attempt: 2 }]);
  });

  it("brings a job back that only the views still have, as it was", () => {
    const desk = new Desk(newBook({ finishedMax: 0 }));
    const [jobId] = desk.submit(spec({ payload: { b: 1, a: 2 }, labels: { x: "y" } }));
    const [lease] = desk.lease(agent("a1", { labels: { x: "y" } })).leases;
    const running = desk.book.applied.job(jobId!)!;
    desk.result("a1-s1", lease!, COMPLETED);
    expect(desk.book.known(jobId!)).toBe(false);
    expect(retry(desk, jobId!)).toMatchObject({ code: "NOT_FOUND" });
    const job = { ...running, state: "completed" as const, lease: null };
    expect(retry(desk, jobId!, job)).toMatchObject({ kind: "decided" });
    const { spec: before, submittedSequence, submittedAtMs } = running;
    expect(desk.book.head.job(jobId!)).toMatchObject({ spec: before, submittedSequence, submittedAtMs, jobEpoch: 2 });
    desk.book.commit(desk.book.headSequence);
    expect(replayed(newBook({ finishedMax: 0 }), desk.events).snapshot()).toEqual(desk.book.snapshot());
  });

  it("forgetting takes finished jobs whose time has come, known or not, and never a live one", () => {
    const desk = new Desk(newBook());
    const retentionMs = 5_000;
    const [done, live] = desk.submit(spec({ retentionMs, priority: 1 }), spec({ retentionMs }));
    desk.result("a1-s1", desk.lease().leases[0]!, COMPLETED);
    const forget = (): readonly string[] =>
      desk.do<"forget">({ kind: "forget", jobIds: [live!, done!, "old", "old"] }).forgotten;
    desk.nowMs += retentionMs - 1;
    expect(forget()).toEqual(["old"]);
    desk.nowMs += 1;
    expect(forget()).toEqual([done, "old"]);
    expect([desk.book.known(live!), desk.book.known(done!)]).toEqual([true, false]);
  });
});
