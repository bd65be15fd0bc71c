// An agent that drains is given nothing more, and loses nothing.

import { describe, expect, it } from "vitest";
import { newBook } from "../../../../test/jobs-book.ts";
import { agent, COMPLETED, Desk, keyed, replayed, REQUEST, spec } from "../test-desk.ts";

function drain(desk: Desk, draining = true, name = "a1"): boolean {
  return desk.do<"drain-agent">({ kind: "drain-agent", request: REQUEST, name, draining }).isChanged;
}

describe("an agent that drains", () => {
  it("is given nothing more, keeps what it has and may end it; undone, it is given jobs again", () => {
    const desk = new Desk(newBook());
    const [first, second] = desk.submit(spec(), spec());
    const [lease] = desk.lease().leases;
    expect(drain(desk)).toBe(true);
    expect(drain(desk)).toBe(false);
    expect(desk.book.applied.agents()).toMatchObject([{ state: "draining", running: 1 }]);
    expect(desk.lease().leases).toEqual([]);
    expect(desk.book.head.renewal("a1-s1", lease!).outcome).toBe("renewed");
    expect(desk.result("a1-s1", lease!, COMPLETED)).toMatchObject({ ok: true });
    expect([first, second].map((id) => desk.state(id!))).toEqual(["completed", "pending"]);
    expect(drain(desk, false)).toBe(true);
    expect(desk.lease().leases).toMatchObject([{ jobId: second }]);
  });

  it("is no candidate: a job that only it could run says so", () => {
    const desk = new Desk(newBook());
    const [jobId] = desk.submit(spec());
    const why = () => desk.book.applied.whyPending(jobId!, { nowMs: desk.nowMs, wallMs: desk.nowMs }, false);
    desk.lease(agent("a1"), 0);
    expect(why()).toEqual({ reason: "next" });
    drain(desk);
    expect(why()).toEqual({ reason: "no-agent", kind: "build", missing: "an agent that is not draining" });
  });

  it("stays so when it changes, and when it was away; its next process begins undrained", () => {
    const desk = new Desk(newBook());
    desk.submit(spec());
    desk.lease(agent(), 0);
    drain(desk);
    expect(desk.lease(agent("a1", { capacity: 7 })).leases).toEqual([]);
    desk.do<"agent-offline">({ kind: "agent-offline", name: "a1", session: "a1-s1" });
    expect(desk.book.applied.agents()).toMatchObject([{ state: "offline" }]);
    expect(desk.lease(agent("a1", { capacity: 7 })).leases).toEqual([]);
    expect(desk.book.applied.agents()).toMatchObject([{ state: "draining" }]);
    expect(desk.lease(agent("a1", { session: "a1-s2" })).leases).toHaveLength(1);
    expect(desk.book.applied.agents()).toMatchObject([{ state: "online" }]);
  });

  it("may be drained while it is away, and stays away", () => {
    const desk = new Desk(newBook());
    desk.lease(agent(), 0);
    desk.do<"agent-offline">({ kind: "agent-offline", name: "a1", session: "a1-s1" });
    drain(desk);
    expect(desk.book.applied.agents()).toMatchObject([{ state: "offline" }]);
    desk.submit(spec());
    expect(desk.lease().leases).toEqual([]);
  });

  it("is remembered by snapshots and replays; a snapshot of before it could drain is read as it was", () => {
    const desk = new Desk(newBook());
    desk.lease(agent(), 0);
    const before = desk.book.snapshot();
    drain(desk);
    const drained = desk.book.snapshot();
    expect(drained).not.toEqual(before);
    const restored = newBook();
    restored.restore(drained);
    expect(restored.applied.agents()).toMatchObject([{ state: "draining" }]);
    expect(Object.keys(restored.applied.agents()[0]!)).not.toContain("draining");
    expect(replayed(newBook(), desk.events).snapshot()).toEqual(drained);
    drain(desk, false);
    // Byte by byte the one of an agent that never drained, but for the sequence.
    expect(new Desk(desk.book).book.snapshot().slice(10)).toEqual(before.slice(10));
  });

  it("is not there: an agent that nobody knows, or that was removed, can't be drained", () => {
    const desk = new Desk(newBook());
    const ask = () => desk.decide<"drain-agent">({ kind: "drain-agent", request: REQUEST, name: "a1", draining: true });
    expect(ask()).toMatchObject({ code: "NOT_FOUND" });
    desk.lease(agent(), 0);
    desk.do<"remove-agent">({ kind: "remove-agent", request: REQUEST, name: "a1" });
    expect(ask()).toMatchObject({ code: "NOT_FOUND" });
  });

  it("under a key is answered once: a repetition that comes late does not drain it again", () => {
    const desk = new Desk(newBook());
    desk.lease(agent(), 0);
    const ask = { kind: "drain-agent", request: keyed("k1"), name: "a1", draining: true } as const;
    desk.do<"drain-agent">(ask);
    drain(desk, false);
    expect(desk.propose<"drain-agent">(ask)).toMatchObject({ kind: "decided", isRepeated: true, drafts: [] });
    expect(desk.book.head.agents()).toMatchObject([{ state: "online" }]);
    expect(desk.decide<"drain-agent">({ ...ask, request: keyed("k1", "other") })).toMatchObject({
      code: "IDEMPOTENCY_MISMATCH",
    });
  });
});
