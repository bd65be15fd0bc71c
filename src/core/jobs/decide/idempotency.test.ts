// Requests that are repeated under a key, and how long keys are remembered.

import { describe, expect, it } from "vitest";
import { newBook } from "../../../../test/jobs-book.ts";
import { Desk, keyed, replayed, spec } from "../test-desk.ts";

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
