// What agents are given, in which order, and what they say of it.

import { describe, expect, it } from "vitest";
import { newBook } from "../../../../test/jobs-book.ts";
import { agent, COMPLETED, Desk, replayed, REQUEST, spec } from "../test-desk.ts";

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
