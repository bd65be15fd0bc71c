import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../events/index.ts";
import {
  AGENTS_BYTES_MAX,
  IDEMPOTENCY_BYTES_MAX,
  INTEGER_MAX,
  JOB_CLASSES_MAX,
  JOB_LABELS_BYTES_MAX,
  JOB_NAME_BYTES_MAX,
  JOBS_FINISHED_BYTES_MAX,
  JOBS_GROWN_BYTES_MAX,
  JOBS_LIVE_BYTES_MAX,
  JOBS_LIVE_MAX,
  SCHEDULES_BYTES_MAX,
  SNAPSHOT_BYTES_MAX,
} from "../../kit/limits.ts";
import type { ResultCall } from "../../../ports/jobs.ts";
import { JobsBook } from "../state/book.ts";
import type { BookLimits } from "../state/state.ts";
import { agent, COMPLETED, Desk, FAILED, keyed, replayed, REQUEST, spec } from "../test-desk.ts";

function newBook(limits: Partial<BookLimits> = {}): JobsBook {
  return new JobsBook({ canonical: (value) => canonicalJson(value, INTEGER_MAX), limits });
}

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

describe("an agent", () => {
  it("trap 55: is another after each start, and what the earlier process had is lost at once", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    const [lease] = desk.lease().leases;
    const again = agent("a1", { session: "a1-s2" });
    const { lost, leases } = desk.lease(again);
    expect(lost).toMatchObject([{ jobId, leaseId: lease!.leaseId }]);
    expect(leases).toHaveLength(0);
    expect(desk.book.applied.job(jobId!)).toMatchObject({ state: "pending", losses: 1 });
    expect(desk.result("a1-s1", lease!, COMPLETED)).toMatchObject({ ok: false, code: "STALE_EPOCH" });
    // Both processes may be alive: the first must not take the name back.
    expect(desk.decide<"lease">({ kind: "lease", agent: agent(), max: 1, ttlMs: 1 })).toMatchObject({
      code: "STALE_EPOCH",
    });
    expect(desk.lease(again).leases).toMatchObject([{ jobId, attempt: 2 }]);
  });

  it("gets no more than it can run, and only what fits it", () => {
    const desk = new Desk(newBook());
    desk.submit(
      spec({ kind: "other" }),
      spec({ platform: "mac" }),
      spec({ labels: { gpu: "yes" } }),
      spec({ labels: { zone: "a" }, platform: "linux" }),
      spec({ queue: "q2" }),
      spec(),
    );
    const one = agent("a1", { labels: { zone: "a", more: "x" }, capacity: 2 });
    expect(desk.lease(one, 9).leases.map(({ spec: { queue, labels } }) => [queue, labels])).toEqual([
      ["default", { zone: "a" }],
      ["q2", {}],
    ]);
    expect(desk.lease(one, 9).leases).toEqual([]);
    expect(desk.book.applied.agents()).toMatchObject([{ name: "a1", running: 2, state: "online" }]);
  });

  it("that names a kind twice is not given the same job twice", () => {
    const desk = new Desk(newBook());
    desk.submit(spec());
    expect(desk.lease(agent("a1", { kinds: ["build", "build"] }), 9).leases).toHaveLength(1);
  });

  it("is registered once, again when it changes or comes back, and never by name alone after it was removed", () => {
    const desk = new Desk(newBook());
    const registered = (): number => desk.events.filter(({ eventType }) => eventType === "worker:registered").length;
    desk.lease();
    desk.lease();
    expect(registered()).toBe(1);
    desk.lease(agent("a1", { capacity: 7 }));
    expect(registered()).toBe(2);
    desk.do<"agent-offline">({ kind: "agent-offline", name: "a1", session: "a1-s1" });
    expect(desk.book.applied.agents()).toMatchObject([{ state: "offline" }]);
    desk.lease(agent("a1", { capacity: 7 }));
    expect(registered()).toBe(3);
    const [jobId] = desk.submit(spec());
    desk.lease(agent("a1", { capacity: 7 }));
    expect(desk.do<"remove-agent">({ kind: "remove-agent", request: REQUEST, name: "a1" }).lost).toMatchObject([
      { jobId },
    ]);
    expect(desk.book.applied.agents()).toEqual([]);
    expect(desk.state(jobId!)).toBe("pending");
    expect(desk.decide<"lease">({ kind: "lease", agent: agent(), max: 1, ttlMs: 1 })).toMatchObject({
      code: "STALE_EPOCH",
    });
    expect(desk.lease(agent("a1", { session: "a1-s2" })).leases).toHaveLength(1);
  });

  it("past the limit takes the place of the one that is gone longest, and of nobody who is there", () => {
    const desk = new Desk(newBook({ agentsMax: 2 }));
    desk.lease(agent("a1"));
    desk.lease(agent("a2"));
    const third = { kind: "lease", agent: agent("a3"), max: 0, ttlMs: 1 } as const;
    expect(desk.decide<"lease">(third)).toMatchObject({ code: "OVERLOADED" });
    for (const name of ["a2", "a1"]) {
      desk.nowMs++;
      desk.do<"agent-offline">({ kind: "agent-offline", name, session: `${name}-s1` });
    }
    desk.do<"lease">(third);
    expect(desk.book.applied.agents().map(({ name }) => name)).toEqual(["a1", "a3"]);
  });
});

describe("the order of jobs", () => {
  it("is by priority, then by submission, over all classes; a job that comes back keeps its place", () => {
    const desk = new Desk(newBook());
    const ids = desk.submit(
      spec({ queue: "a" }),
      spec({ queue: "b", priority: 5 }),
      spec({ queue: "a", priority: 5 }),
      spec({ queue: "b", priority: -1 }),
      spec({ queue: "b" }),
    );
    const [first] = desk.lease().leases;
    desk.result("a1-s1", first!, { kind: "handed-back" });
    const order = desk.lease(agent(), 9).leases.map(({ jobId }) => ids.indexOf(jobId));
    expect(order).toEqual([1, 2, 0, 4, 3]);
  });

  it("leaves out those whose time has not come, until it has", () => {
    const desk = new Desk(newBook());
    const [later, now] = desk.submit(spec({ notBeforeMs: desk.nowMs + 100, priority: 9 }), spec());
    expect(desk.book.readyInMs({ nowMs: desk.nowMs, wallMs: desk.nowMs })).toBe(100);
    expect(desk.lease(agent(), 9).leases).toMatchObject([{ jobId: now }]);
    desk.nowMs += 100;
    expect(desk.lease(agent(), 9).leases).toMatchObject([{ jobId: later }]);
    expect(desk.book.readyInMs({ nowMs: desk.nowMs, wallMs: desk.nowMs })).toBe(Infinity);
  });

  it("a clock that goes back takes nothing back, and changes no order", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec({ notBeforeMs: desk.nowMs + 100 }));
    desk.nowMs += 100;
    desk.lease(agent(), 0);
    desk.nowMs -= 5_000;
    expect(desk.lease().leases).toMatchObject([{ jobId }]);
  });

  it("keeps to concurrency limits, also inside of one call, and goes on with others", () => {
    const desk = new Desk(newBook());
    const limited = spec({ concurrency: { key: "k", limit: 2 }, priority: 1 });
    const ids = desk.submit(limited, limited, limited, spec({ concurrency: { key: "k", limit: 3 } }), spec());
    const { leases } = desk.lease(agent(), 9);
    expect(leases.map(({ jobId }) => ids.indexOf(jobId))).toEqual([0, 1, 3, 4]);
    desk.result("a1-s1", leases[0]!, COMPLETED);
    expect(desk.lease(agent(), 9).leases).toEqual([]);
    desk.result("a1-s1", leases[1]!, COMPLETED);
    expect(desk.lease(agent(), 9).leases).toMatchObject([{ jobId: ids[2] }]);
  });

  it("gives nothing of a paused queue", () => {
    const desk = new Desk(newBook());
    desk.submit(spec({ queue: "q" }));
    const pause = (paused: boolean): unknown =>
      desk.do<"pause-queue">({ kind: "pause-queue", request: REQUEST, queue: "q", paused });
    expect(pause(true)).toEqual({ isChanged: true });
    expect(pause(true)).toEqual({ isChanged: false });
    expect(desk.lease().leases).toEqual([]);
    expect(desk.book.applied.queues()).toEqual([{ queue: "q", paused: true, pending: 1, running: 0 }]);
    pause(false);
    expect(desk.lease().leases).toHaveLength(1);
    expect(desk.book.applied.queues()).toEqual([{ queue: "q", paused: false, pending: 0, running: 1 }]);
  });
});

describe("leases", () => {
  it("trap 56b: are durations in the log, and no wall time of a leader can end them", () => {
    const desk = new Desk(newBook());
    desk.submit(spec({ timeoutMs: 77 }));
    desk.lease();
    const event = desk.events.find(({ eventType }) => eventType === "build:assigned")!;
    expect(event.payload).toMatchObject({ ttlMs: 10_000 });
    const times = Object.values(event.payload).filter((value) => typeof value === "number" && value >= desk.nowMs);
    expect(times).toEqual([]);
    // A new leader, an hour ahead: whatever it does, the lease goes on until its own timer says otherwise.
    const next = new Desk(replayed(newBook(), desk.events), desk.events.length);
    next.nowMs = desk.nowMs + 3_600_000;
    next.leaderEpoch = 2;
    next.submit(spec());
    expect([...next.book.applied.leases()]).toMatchObject([
      { agent: "a1", ttlMs: 10_000, timeoutMs: 77, state: "assigned" },
    ]);
  });

  it("are told what became of them", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    const [lease] = desk.lease().leases;
    const renewal = (session = "a1-s1"): unknown => desk.book.applied.renewal(session, lease!);
    expect(renewal()).toEqual({ outcome: "renewed", state: "assigned" });
    expect(renewal("other")).toEqual({ outcome: "lost", state: "assigned" });
    desk.result("a1-s1", lease!, COMPLETED);
    expect(renewal()).toEqual({ outcome: "committed", state: "completed" });
    expect(desk.book.applied.renewal("a1-s1", { ...lease!, jobId: "no" })).toEqual({ outcome: "lost", state: null });
    expect(desk.book.applied.lease(jobId!)).toBeNull();
  });

  it("report progress and logs in order, each byte once", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    const [lease] = desk.lease().leases;
    const log = (offset: number, text: string): number | null =>
      desk.do<"report">({
        kind: "report",
        session: "a1-s1",
        progress: [],
        logs: [{ ...lease!, chunk: { offset, text } }],
      }).logs[0]!;
    expect(log(0, "äb")).toBe(3);
    expect(desk.state(jobId!)).toBe("building");
    expect(log(0, "äb")).toBe(3);
    expect(log(2, "bcd")).toBe(5);
    expect(log(9, "gap")).toBe(5);
    expect(log(4, "äöü")).toBe(5);
    expect(log(5, "e")).toBe(6);
    const texts = desk.events.filter(({ eventType }) => eventType === "build:log").map(({ payload }) => payload);
    expect(texts).toMatchObject([
      { offset: 0, text: "äb", attempt: 1 },
      { offset: 3, text: "cd" },
      { offset: 5, text: "e" },
    ]);
    const report = desk.do<"report">({
      kind: "report",
      session: "other",
      progress: [{ ...lease!, progress: { share: 0.5, message: null } }],
      logs: [{ ...lease!, chunk: { offset: 6, text: "x" } }],
    });
    expect(report).toEqual({ progress: [false], logs: [null] });
    const progress = [{ ...lease!, progress: { share: 0.5, message: "half" } }];
    desk.do<"report">({ kind: "report", session: "a1-s1", progress, logs: [] });
    expect(desk.book.applied.job(jobId!)?.progress).toMatchObject({ share: 0.5, message: "half" });
  });
});

describe("idempotency", () => {
  const submit = (desk: Desk, key: string, hash = "00", count = 1): ReturnType<typeof desk.propose<"submit">> =>
    desk.propose<"submit">({
      kind: "submit",
      request: keyed(key, hash),
      specs: Array.from({ length: count }, () => spec()),
    });

  it("the same key with the same body is answered as the first time; with another body it is refused", () => {
    const desk = new Desk(newBook());
    const first = submit(desk, "k", "00", 3);
    const count = desk.events.length;
    expect(submit(desk, "k", "00", 3)).toEqual({ ...first, drafts: [], isRepeated: true });
    expect(submit(desk, "k", "01")).toMatchObject({ kind: "refused", code: "IDEMPOTENCY_MISMATCH" });
    const other = { kind: "submit", request: keyed("k", "01", "bob"), specs: [spec()] } as const;
    expect(desk.propose<"submit">(other)).toMatchObject({ isRepeated: false });
    expect(desk.events).toHaveLength(count + 1);
    const { jobId } = { jobId: desk.events[0]!.entityId };
    const cancel = { kind: "cancel", request: keyed("k"), jobId } as const;
    expect(desk.propose<"cancel">(cancel)).toMatchObject({ code: "IDEMPOTENCY_MISMATCH" });
  });

  it("is kept for a day of the events' time, by every node", () => {
    const desk = new Desk(newBook());
    submit(desk, "k");
    desk.book.commit(desk.book.headSequence);
    desk.nowMs += 86_399_999;
    const follower = new Desk(replayed(newBook(), desk.events), desk.events.length);
    follower.nowMs = desk.nowMs;
    expect(submit(follower, "k")).toMatchObject({ isRepeated: true });
    desk.nowMs++;
    expect(submit(desk, "k")).toMatchObject({ isRepeated: false });
  });

  it("past its limits forgets the oldest first", () => {
    const desk = new Desk(newBook({ keysMax: 2 }));
    for (const key of ["k1", "k2", "k3"]) submit(desk, key);
    expect(submit(desk, "k3")).toMatchObject({ isRepeated: true });
    expect(submit(desk, "k1")).toMatchObject({ isRepeated: false });
    const small = new Desk(newBook({ keyBytesMax: 120 }));
    submit(small, "k1", "00", 2);
    submit(small, "k2", "00", 8);
    expect(submit(small, "k2", "00", 8)).toMatchObject({ isRepeated: true });
    expect(submit(small, "k1", "00", 2)).toMatchObject({ isRepeated: false });
  });
});

describe("remembered keys", () => {
  const submit = (desk: Desk, caller: string, key: string): boolean => {
    const request = keyed(key, "00", caller);
    const decision = desk.propose<"submit">({ kind: "submit", request, specs: [spec()] });
    desk.book.commit(desk.book.headSequence);
    return decision.kind === "decided" && decision.isRepeated;
  };
  const knows = (desk: Desk, caller: string, key: string): boolean =>
    desk.book.remembers(keyed(key, "00", caller), desk);

  it("B6: a busy caller costs another one none of its keys, and those that went are counted", () => {
    const desk = new Desk(newBook({ keysMax: 10 }));
    for (let i = 0; i < 3; i++) submit(desk, "quiet", `q${i}`);
    for (let i = 0; i < 100; i++) submit(desk, "busy", `b${i}`);
    for (let i = 0; i < 3; i++) expect(submit(desk, "quiet", `q${i}`)).toBe(true);
    expect([knows(desk, "busy", "b92"), knows(desk, "busy", "b93")]).toEqual([false, true]);
    expect(desk.book.keys).toEqual({ remembered: 10, droppedEarly: 93 });
  });

  it("B6: with so many callers each has its part of the room, and a new one finds some", () => {
    const desk = new Desk(newBook({ keysMax: 12 }));
    for (let i = 0; i < 50; i++) for (const caller of ["a", "b", "c"]) submit(desk, caller, `k${i}`);
    for (const caller of ["a", "b", "c"]) {
      expect([45, 46, 49].map((i) => knows(desk, caller, `k${i}`))).toEqual([false, true, true]);
    }
    submit(desk, "d", "first");
    expect(knows(desk, "d", "first")).toBe(true);
    expect(desk.book.keys.remembered).toBe(12);
  });

  it("B6: a batch takes as much of the room as it has ids", () => {
    const desk = new Desk(newBook({ keyBytesMax: 230 }));
    submit(desk, "small", "s");
    const specs = Array.from({ length: 12 }, () => spec());
    for (let i = 0; i < 5; i++) {
      desk.do<"submit">({ kind: "submit", request: keyed(`k${i}`, "00", "large"), specs });
    }
    expect([knows(desk, "small", "s"), knows(desk, "large", "k3"), knows(desk, "large", "k4")]).toEqual([
      true,
      false,
      true,
    ]);
  });

  it("B6: who goes next is the same after a rollback, and where it was restored", () => {
    const desk = new Desk(newBook({ keysMax: 4 }));
    for (const [caller, key] of [
      ["a", "1"],
      ["b", "1"],
      ["a", "2"],
      ["b", "2"],
    ] as const)
      submit(desk, caller, key);
    desk.propose<"submit">({ kind: "submit", request: keyed("3", "00", "b"), specs: [spec()] });
    expect(knows(desk, "b", "1")).toBe(false);
    desk.rollback();
    expect(knows(desk, "b", "1")).toBe(true);
    const restored = newBook({ keysMax: 4 });
    restored.restore(desk.book.snapshot(), desk.nowMs);
    const other = new Desk(restored, restored.appliedSequence);
    // Other ids.
    other.leaderEpoch = 2;
    for (const one of [desk, other]) submit(one, "a", "3");
    for (const one of [desk, other]) expect([knows(one, "a", "1"), knows(one, "b", "1")]).toEqual([false, true]);
  });
});

describe("limits", () => {
  it("one past each is refused, and nothing is submitted", () => {
    const limits = { liveMax: 2, classesMax: 2, liveBytesMax: 300 };
    const attempt = (...specs: ReturnType<typeof spec>[]): unknown => {
      const desk = new Desk(newBook(limits));
      const decision = desk.decide<"submit">({ kind: "submit", request: REQUEST, specs });
      return decision.kind === "refused" ? decision.code : "taken";
    };
    expect(attempt(spec(), spec())).toBe("taken");
    expect(attempt(spec(), spec(), spec())).toBe("OVERLOADED");
    expect(attempt(spec({ queue: "1" }), spec({ queue: "2" }))).toBe("taken");
    expect(attempt(spec({ payload: "x".repeat(167) }))).toBe("taken");
    expect(attempt(spec({ payload: "x".repeat(168) }))).toBe("OVERLOADED");
    // In bytes, not in characters.
    expect(attempt(spec({ payload: "ü".repeat(83) + "x" }))).toBe("taken");
    expect(attempt(spec({ payload: "ü".repeat(84) }))).toBe("OVERLOADED");
    expect(attempt()).toBe("BAD_REQUEST");
    const classes = (count: number): unknown => {
      const desk = new Desk(newBook({ classesMax: 2 }));
      const specs = Array.from({ length: count }, (_, at) => spec({ queue: `q${at >> 1}` }));
      return desk.decide<"submit">({ kind: "submit", request: REQUEST, specs }).kind;
    };
    expect(classes(4)).toBe("decided");
    expect(classes(5)).toBe("refused");
  });

  it("jobs that have grown by their attempts are leased no more, and their failures not kept, until some have ended; results are taken", () => {
    const desk = new Desk(newBook({ grownBytesMax: 500 }));
    desk.submit(spec(), spec(), spec());
    const [first, second] = desk.lease(agent(), 2).leases;
    expect(desk.book.state.liveBytes).toBeGreaterThan(500);
    expect(desk.lease(agent(), 1).leases).toEqual([]);
    const detail = { text: "x".repeat(1_000) };
    const failed = { kind: "failed", error: { message: "no", detail }, retry: true } as const;
    expect(desk.result("a1-s1", first!, failed)).toMatchObject({ ok: true, state: "pending" });
    expect(desk.book.applied.job(first!.jobId)).toMatchObject({ error: null, failures: 1 });
    expect(desk.result("a1-s1", second!, COMPLETED)).toMatchObject({ ok: true, state: "completed" });
    desk.nowMs += 60_000;
    expect(desk.book.state.isOvergrown).toBe(false);
    expect(desk.lease(agent(), 1).leases).toHaveLength(1);
    expect(replayed(newBook({ grownBytesMax: 500 }), desk.events).snapshot()).toEqual(desk.book.snapshot());
  });

  it("agents and schedules are limited by what they take together; one past it is refused", () => {
    const one = new Desk(newBook());
    one.lease(agent("a1"), 0);
    const { agentBytes } = one.book.state;
    const desk = new Desk(newBook({ agentBytesMax: 2 * agentBytes, scheduleBytesMax: 500 }));
    const known = (name: string, kinds = ["build"]): string =>
      desk.propose<"lease">({ kind: "lease", agent: agent(name, { kinds }), max: 0, ttlMs: 1_000 }).kind;
    expect([known("a1"), known("a2"), known("a2"), known("a3"), known("a2", ["build", "test"])]).toEqual([
      "decided",
      "decided",
      "decided",
      "refused",
      "refused",
    ]);
    const put = (length: number): string => {
      const schedule = { name: "s", cron: "* * * * *", timeZone: "UTC", overlap: "skip", catchUp: "none" } as const;
      const payload = "x".repeat(length);
      const whole = { ...schedule, paused: false, spec: spec({ payload }) };
      return desk.propose<"put-schedule">({ kind: "put-schedule", request: REQUEST, schedule: whole }).kind;
    };
    expect(put(1)).toBe("decided");
    const room = 500 - desk.book.state.scheduleBytes;
    expect([put(1 + room), put(2 + room)]).toEqual(["decided", "refused"]);
  });

  it("all of them together fit into a snapshot, with room for what is not counted", () => {
    // Each lease may have grown by its end, where nothing else is kept of it any more.
    const ends = 2 * 11 * JOBS_LIVE_MAX;
    const classes = JOB_CLASSES_MAX * (JOB_LABELS_BYTES_MAX + 3 * 3 * JOB_NAME_BYTES_MAX);
    const jobs = JOBS_GROWN_BYTES_MAX + ends + JOBS_FINISHED_BYTES_MAX + classes;
    const others = IDEMPOTENCY_BYTES_MAX + AGENTS_BYTES_MAX + SCHEDULES_BYTES_MAX;
    expect(JOBS_LIVE_BYTES_MAX).toBeLessThan(JOBS_GROWN_BYTES_MAX);
    expect(jobs + others).toBeLessThan(SNAPSHOT_BYTES_MAX - 32 * 1024 * 1024);
    // A million small jobs are taken.
    expect(JOBS_LIVE_BYTES_MAX / 1_000_000).toBeGreaterThan(200);
  });

  it("B3: sets of kind, queue, platform and labels are counted while a job of them is not finished", () => {
    const desk = new Desk(newBook({ classesMax: 2 }));
    const [first] = desk.submit(spec({ queue: "q1" }), spec({ queue: "q2" }));
    const third = { kind: "submit", request: REQUEST, specs: [spec({ queue: "q3" })] } as const;
    expect(desk.decide<"submit">(third)).toMatchObject({ code: "OVERLOADED" });
    for (const lease of desk.lease(agent(), 9).leases) desk.result("a1-s1", lease, COMPLETED);
    expect(desk.propose<"submit">(third)).toMatchObject({ kind: "decided" });
    desk.submit(spec({ queue: "q4" }));
    // Sent once more it counts again.
    const retry = { kind: "retry", request: REQUEST, jobId: first!, job: null } as const;
    expect(desk.decide<"retry">(retry)).toMatchObject({ code: "OVERLOADED" });
    for (const lease of desk.lease(agent(), 9).leases) desk.result("a1-s1", lease, COMPLETED);
    expect(desk.decide<"retry">(retry)).toMatchObject({ kind: "decided" });
  });

  it("C6: names are counted in bytes, as the event that carries them counts", () => {
    const desk = new Desk(newBook());
    const long = "ä".repeat(65);
    const pause = (queue: string): unknown =>
      desk.decide<"pause-queue">({ kind: "pause-queue", request: REQUEST, queue, paused: true });
    const times = { cron: "0 0 * * *", timeZone: "UTC", overlap: "allow", catchUp: "none", paused: false } as const;
    const put = (name: string): unknown =>
      desk.decide<"put-schedule">({
        kind: "put-schedule",
        request: REQUEST,
        schedule: { name, spec: spec(), ...times },
      });
    const submit = (one: ReturnType<typeof spec>): unknown =>
      desk.decide<"submit">({ kind: "submit", request: REQUEST, specs: [one] });
    expect(pause(long)).toMatchObject({ code: "BAD_REQUEST" });
    expect(put(long)).toMatchObject({ code: "SCHEDULE_INVALID" });
    expect(submit(spec({ queue: long }))).toMatchObject({ code: "BAD_REQUEST" });
    expect(submit(spec({ kind: "" }))).toMatchObject({ code: "BAD_REQUEST" });
    const most = "ä".repeat(64);
    for (const taken of [pause(most), put(most), submit(spec({ queue: most }))]) {
      expect(taken).toMatchObject({ kind: "decided" });
    }
  });

  it("a batch has at most a thousand jobs, a payload 256 KiB, and what no event can hold is refused", () => {
    const desk = new Desk(newBook());
    const kind = "submit" as const;
    const submit = (specs: readonly ReturnType<typeof spec>[]): unknown =>
      desk.decide<"submit">({ kind, request: REQUEST, specs });
    expect(submit(Array.from({ length: 1_000 }, () => spec()))).toMatchObject({ kind: "decided" });
    expect(submit(Array.from({ length: 1_001 }, () => spec()))).toMatchObject({ code: "BAD_REQUEST" });
    expect(submit([spec({ payload: "x".repeat(262_142) })])).toMatchObject({ kind: "decided" });
    expect(submit([spec({ payload: "x".repeat(262_143) })])).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    expect(submit([spec({ payload: "ä".repeat(131_072) })])).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    expect(submit([spec(), spec({ payload: Number.NaN })])).toMatchObject({ code: "EVENT_INVALID" });
    for (const wrong of [{ kind: "" }, { attemptsMax: 0 }, { priority: 0.5 }, { queue: "\ud800" }, { lossesMax: -1 }]) {
      expect(submit([spec(), spec(wrong)])).toMatchObject({ code: "BAD_REQUEST" });
    }
  });

  it("finished jobs leave memory, the oldest first", () => {
    const desk = new Desk(newBook({ finishedMax: 2 }));
    const ids = desk.submit(spec(), spec(), spec());
    for (const lease of desk.lease(agent(), 9).leases) desk.result("a1-s1", lease, COMPLETED);
    expect(ids.map((id) => desk.book.known(id))).toEqual([false, true, true]);
    expect(desk.book.applied.stats()).toMatchObject({ submitted: 3, finished: 3, byState: { completed: 2 } });
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

describe("a schedule", () => {
  const schedule = {
    name: "nightly",
    cron: "0 0 * * *",
    timeZone: "UTC",
    spec: spec(),
    catchUp: "none",
    paused: false,
  } as const;
  const put = (desk: Desk, changes: object = {}): unknown =>
    desk.do<"put-schedule">({
      kind: "put-schedule",
      request: REQUEST,
      schedule: { ...schedule, overlap: "allow", ...changes },
    });
  const fire = (desk: Desk, atMs: number): string | null =>
    desk.do<"fire-schedule">({ kind: "fire-schedule", name: "nightly", atMs }).jobId;

  it("fires once for each time, and for none before it was there", () => {
    const desk = new Desk(newBook());
    expect(fire(desk, desk.nowMs + 5)).toBeNull();
    put(desk);
    expect(put(desk)).toEqual({ isChanged: false });
    expect(fire(desk, desk.nowMs)).toBeNull();
    const at = desk.nowMs + 10;
    const jobId = fire(desk, at);
    expect(desk.book.applied.job(jobId!)).toMatchObject({ state: "pending", submittedBy: "schedule:nightly" });
    expect(fire(desk, at)).toBeNull();
    expect(fire(desk, at - 1)).toBeNull();
    expect(fire(desk, at + 1)).not.toBeNull();
    expect(desk.book.applied.schedules((_, after) => after + 7)).toMatchObject([
      { lastAtMs: at + 1, nextAtMs: at + 8 },
    ]);
  });

  it("that does not overlap leaves a time out while a job of it is not finished", () => {
    const desk = new Desk(newBook());
    put(desk, { overlap: "skip" });
    const jobId = fire(desk, desk.nowMs + 1);
    expect(fire(desk, desk.nowMs + 2)).toBeNull();
    expect(desk.events.at(-1)).toMatchObject({ eventType: "schedule:fired", payload: { jobId: null } });
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId: jobId! });
    expect(fire(desk, desk.nowMs + 2)).toBeNull();
    expect(fire(desk, desk.nowMs + 3)).not.toBeNull();
  });

  it("that does not overlap waits for a job that was sent once more by hand, also after the book had dropped it", () => {
    const desk = new Desk(newBook({ finishedMax: 0 }));
    put(desk, { overlap: "skip" });
    const jobId = fire(desk, desk.nowMs + 1)!;
    const running = desk.book.applied.job(jobId)!;
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId });
    expect(desk.book.known(jobId)).toBe(false);
    // As the views have it.
    const job = { ...running, state: "cancelled" as const };
    desk.do<"retry">({ kind: "retry", request: REQUEST, jobId, job });
    expect(fire(desk, desk.nowMs + 2)).toBeNull();
    expect(replayed(newBook({ finishedMax: 0 }), desk.events).snapshot()).toEqual(desk.book.snapshot());
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId });
    expect(fire(desk, desk.nowMs + 3)).not.toBeNull();
  });

  it("that was paused does not catch up, and one that is deleted is gone", () => {
    const desk = new Desk(newBook());
    put(desk);
    put(desk, { paused: true });
    expect(fire(desk, desk.nowMs + 1)).toBeNull();
    expect(desk.book.applied.schedules(() => 1)).toMatchObject([{ paused: true, nextAtMs: null }]);
    desk.nowMs += 100;
    put(desk);
    expect(fire(desk, desk.nowMs - 50)).toBeNull();
    expect(fire(desk, desk.nowMs + 1)).not.toBeNull();
    const remove = { kind: "delete-schedule", request: REQUEST, name: "nightly" } as const;
    expect(desk.do<"delete-schedule">(remove)).toEqual({ isChanged: true });
    expect(desk.decide<"delete-schedule">(remove)).toMatchObject({ code: "NOT_FOUND" });
    expect(desk.book.applied.schedules(() => 1)).toEqual([]);
  });

  it("does not use a time up for which there is no room", () => {
    const desk = new Desk(newBook({ liveMax: 1 }));
    put(desk);
    const [jobId] = desk.submit(spec());
    const command = { kind: "fire-schedule", name: "nightly", atMs: desk.nowMs + 1 } as const;
    expect(desk.decide<"fire-schedule">(command)).toMatchObject({ code: "OVERLOADED" });
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId: jobId! });
    expect(fire(desk, desk.nowMs + 1)).not.toBeNull();
  });
});
