// What was given in an answer that never reached its agent.

import { describe, expect, it } from "vitest";
import { INTEGER_MAX } from "../../kit/limits.ts";
import type { GivenLease } from "../../../ports/jobs.ts";
import { newBook } from "../../../../test/jobs-book.ts";
import { agent, COMPLETED, Desk, replayed, REQUEST, spec } from "../test-desk.ts";

function newDesk(): Desk {
  return new Desk(newBook());
}

/** One job by each of these calls. */
function given(desk: Desk, polls: readonly (number | undefined)[]): GivenLease[] {
  desk.submit(...polls.map(() => spec({ attemptsMax: 1, lossesMax: 0 })));
  return polls.map((poll) => desk.lease(agent(), 1, poll).leases[0]!);
}

function takeBack(desk: Desk, answered: number, poll: number, session = "a1-s1"): readonly string[] {
  const command = { kind: "take-back", name: "a1", session, poll, answered } as const;
  return desk.do<"take-back">(command).takenBack.map(({ jobId }) => jobId);
}

describe("what is taken back", () => {
  it("is exactly what was given behind the last answered call and before this one", () => {
    const desk = newDesk();
    const leases = given(desk, [1, 2, 3, 4, 5, undefined]);
    expect(takeBack(desk, 2, 5)).toEqual([leases[2]!.jobId, leases[3]!.jobId]);
    expect(leases.map(({ jobId }) => desk.state(jobId))).toEqual([
      "assigned",
      "assigned",
      "pending",
      "pending",
      "assigned",
      "assigned",
    ]);
    // Once more: there is nothing left of it.
    const count = desk.events.length;
    expect(takeBack(desk, 2, 5)).toEqual([]);
    expect(desk.events).toHaveLength(count);
  });

  it("is nothing that a later call was given, where an earlier one comes late or twice", () => {
    const desk = newDesk();
    const [lost, later] = given(desk, [4, 6]);
    expect(takeBack(desk, 3, 5)).toEqual([lost!.jobId]);
    expect(takeBack(desk, 3, 5)).toEqual([]);
    expect(takeBack(desk, 3, 6)).toEqual([]);
    expect(desk.result("a1-s1", later!, COMPLETED)).toMatchObject({ ok: true });
  });

  it("is nothing of another process, nor of calls without a number", () => {
    const desk = newDesk();
    given(desk, [2, undefined]);
    expect(takeBack(desk, 0, 9, "a1-s2")).toEqual([]);
    expect(takeBack(desk, 0, 9)).toHaveLength(1);
  });

  it("costs neither budget, and is given again at once, under a higher epoch; what the lost lease says is refused", () => {
    const desk = newDesk();
    const [lost] = given(desk, [1]);
    takeBack(desk, 0, 2);
    const { jobId } = lost!;
    expect(desk.book.applied.job(jobId)).toMatchObject({ state: "pending", failures: 0, losses: 0, jobEpoch: 2 });
    const [again] = desk.lease(agent(), 1, 2).leases;
    expect(again).toMatchObject({ jobId, jobEpoch: 3, attempt: 2 });
    expect(desk.result("a1-s1", lost!, COMPLETED)).toMatchObject({ ok: false, code: "STALE_EPOCH" });
    expect(desk.result("a1-s1", lost!, { kind: "handed-back" })).toMatchObject({ ok: false, code: "STALE_EPOCH" });
    // Nobody has reported it: it is not "committed".
    expect(desk.book.applied.renewal("a1-s1", lost!)).toMatchObject({ outcome: "lost" });
    expect(desk.result("a1-s1", again!, COMPLETED)).toMatchObject({ ok: true, state: "completed" });
    const { attempts } = desk.book.applied.job(jobId)!;
    expect(attempts.map(({ end }) => end)).toEqual(["undelivered", "completed"]);
  });

  it("is not given in the same moment for ever: its answer may be what gets lost", () => {
    const desk = newDesk();
    const [jobId] = desk.submit(spec());
    const waits: number[] = [];
    for (let poll = 1; poll < 12; poll++) {
      desk.lease(agent(), 1, poll);
      takeBack(desk, 0, poll + 1);
      const waitMs = desk.book.head.job(jobId!)!.readyAtMs - desk.nowMs;
      waits.push(waitMs);
      desk.nowMs += waitMs;
    }
    expect(waits.slice(0, 2)).toEqual([0, 0]);
    expect(waits[2]).toBeGreaterThanOrEqual(50);
    expect(waits.at(-1)).toBeGreaterThanOrEqual(2_500);
    expect(Math.max(...waits)).toBeLessThanOrEqual(5_000);
  });

  it("is cancelled where that was asked for meanwhile, and its attempt says what it was", () => {
    const desk = newDesk();
    const [lost] = given(desk, [1]);
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId: lost!.jobId });
    takeBack(desk, 0, 2);
    expect(desk.book.applied.job(lost!.jobId)).toMatchObject({
      state: "cancelled",
      // What was taken must be distinguished from then on (trap 50).
      jobEpoch: 2,
      attempts: [{ end: "undelivered" }],
    });
  });
});

describe("the number of a call", () => {
  it("stands in the event where the call had one, and nowhere else", () => {
    const desk = newDesk();
    given(desk, [7, undefined]);
    const payloads = desk.events.filter(({ eventType }) => eventType === "build:assigned").map((one) => one.payload);
    expect(payloads[0]).toMatchObject({ poll: 7 });
    expect(payloads[1]).not.toHaveProperty("poll");
  });

  it("outlives a snapshot, and is the same for those who applied the events", () => {
    const desk = newDesk();
    const leases = given(desk, [1, INTEGER_MAX - 1, undefined]);
    const snapshot = desk.book.snapshot();
    expect(replayed(newBook(), desk.events).snapshot()).toEqual(snapshot);
    const restored = newBook();
    restored.restore(snapshot);
    expect([...restored.applied.leases()].map(({ poll }) => poll)).toEqual(
      expect.arrayContaining([0, 1, INTEGER_MAX - 1]),
    );
    expect(restored.snapshot()).toEqual(snapshot);
    const next = new Desk(restored, restored.appliedSequence);
    next.leaderEpoch = 2;
    expect(takeBack(next, 1, INTEGER_MAX)).toEqual([leases[1]!.jobId]);
    // Of attempts that ended it is not kept, however they came here.
    const again = newBook();
    again.restore(next.book.snapshot());
    expect(again.snapshot()).toEqual(next.book.snapshot());
  });

  it("is missing in snapshots of version 1, which are read as they were", () => {
    const desk = newDesk();
    given(desk, [undefined]);
    const bytes = desk.book.snapshot();
    expect(bytes[1]).toBe(2);
    bytes[1] = 1;
    const restored = newBook();
    restored.restore(bytes);
    expect(restored.snapshot()).toEqual(desk.book.snapshot());
    for (const version of [0, 3]) {
      bytes[1] = version;
      expect(() => newBook().restore(bytes)).toThrow(version === 0 ? /version 0/ : /format 3/);
    }
  });
});
