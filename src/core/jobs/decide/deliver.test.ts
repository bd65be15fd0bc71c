// Jobs of transactions over islands: committed elsewhere, delivered in their order, and repeated by whoever does not know that they are here.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newBook } from "../../../../test/jobs-book.ts";
import type { DeliveredJob } from "../../../ports/transactions.ts";
import { IDEMPOTENCY_MS, INTEGER_MAX } from "../../kit/limits.ts";
import type { JobsBook } from "../state/book.ts";
import { agent, COMPLETED, Desk, keyed, replayed, REQUEST, spec } from "../test-desk.ts";

function job(place: number, operation = 0, changes: Partial<DeliveredJob> = {}): DeliveredJob {
  const id = `job-${place}-${operation}`;
  return { id, by: "mover", spec: spec(), mark: `txn:t${place}:${operation}`, place, operation, ...changes };
}

function deliver(desk: Desk, ...jobs: DeliveredJob[]): void {
  desk.do<"deliver">({ kind: "deliver", jobs });
}

function submitted(desk: Desk): string[] {
  return desk.events.filter(({ eventType }) => eventType === "build:submitted").map(({ entityId }) => entityId);
}

function reopened({ book, nowMs, leaderEpoch }: Desk): Desk {
  const restored = newBook();
  restored.restore(book.snapshot());
  const desk = new Desk(restored, restored.appliedSequence);
  [desk.nowMs, desk.leaderEpoch] = [nowMs, leaderEpoch + 1];
  return desk;
}

describe("jobs of transactions", () => {
  it("are pending under the ids that they were given, in order, and their events say which they are", () => {
    const desk = new Desk(newBook());
    deliver(desk, job(7, 0), job(7, 2), job(9, 1));
    expect(desk.events.map(({ payload }) => payload["delivery"])).toEqual([
      { mark: "txn:t7:0", place: 7, operation: 0 },
      { mark: "txn:t7:2", place: 7, operation: 2 },
      { mark: "txn:t9:1", place: 9, operation: 1 },
    ]);
    expect(desk.book.applied.job("job-7-0")).toMatchObject({ state: "pending", submittedBy: "mover" });
    const { leases } = desk.lease(agent(), 9);
    expect(leases.map(({ jobId }) => jobId)).toEqual(["job-7-0", "job-7-2", "job-9-1"]);
  });

  it("that were delivered before are left out, also where they are finished and forgotten", () => {
    const desk = new Desk(newBook());
    deliver(desk, job(7), job(8));
    desk.result("a1-s1", desk.lease().leases[0]!, COMPLETED);
    desk.nowMs += 10 * 86_400_000;
    desk.do<"forget">({ kind: "forget", jobIds: ["job-7-0"] });
    expect(desk.book.known("job-7-0")).toBe(false);
    const count = desk.events.length;
    deliver(desk, job(7), job(8));
    expect(desk.events).toHaveLength(count);
    deliver(desk, job(7), job(8), job(8, 1));
    expect(submitted(desk)).toEqual(["job-7-0", "job-8-0", "job-8-1"]);
  });

  it("that nobody can do have failed at once and say why; the others are not held up, and none of them comes twice", () => {
    const desk = new Desk(newBook());
    const bad = job(7, 1, { spec: spec({ kind: "send mail", attemptsMax: 0 }) });
    deliver(desk, job(7), bad, job(7, 2));
    expect(desk.book.applied.job("job-7-1")).toMatchObject({ state: "failed", spec: { kind: "unusable" } });
    expect(desk.book.applied.job("job-7-1")?.error?.message).toMatch(/submitted in a transaction .*attempts_max/);
    expect(desk.book.applied.job("job-7-2")).toMatchObject({ state: "pending" });
    const last = new Desk(newBook());
    deliver(last, bad);
    deliver(last, bad);
    expect(submitted(last)).toEqual(["job-7-1"]);
  });

  it("that find no room stay where they are, all of that call, and the order is kept", () => {
    const desk = new Desk(newBook({ liveMax: 2 }));
    deliver(desk, job(7));
    const call = { kind: "deliver", jobs: [job(7), job(8), job(9)] } as const;
    expect(desk.decide<"deliver">(call)).toMatchObject({ kind: "refused", code: "OVERLOADED" });
    expect(desk.book.state.delivered).toEqual({ place: 7, operation: 0 });
    desk.result("a1-s1", desk.lease().leases[0]!, COMPLETED);
    deliver(desk, ...call.jobs);
    expect(submitted(desk)).toEqual(["job-7-0", "job-8-0", "job-9-0"]);
  });

  it("one of which is of a new class hold up those after it while there are as many classes as may be", () => {
    const desk = new Desk(newBook({ classesMax: 1 }));
    deliver(desk, job(7));
    const other = job(8, 0, { spec: spec({ kind: "other" }) });
    for (const jobs of [[other], [other, job(9)]])
      expect(desk.decide<"deliver">({ kind: "deliver", jobs })).toMatchObject({ kind: "refused", code: "OVERLOADED" });
    // Submitted alone, one of a class that is there is taken.
    desk.submit(spec());
    desk.lease(agent(), 9).leases.map((lease) => desk.result("a1-s1", lease, COMPLETED));
    deliver(desk, other, job(9, 0, { spec: spec({ kind: "other" }) }));
    expect(submitted(desk).slice(-2)).toEqual(["job-8-0", "job-9-0"]);
  });

  it("that are out of order are a mistake of the caller: the earlier one would be left out for ever", () => {
    const desk = new Desk(newBook());
    expect(() => deliver(desk, job(8), job(7))).toThrow(/in their order/);
    expect(() => deliver(desk, job(8, 1), job(8, 0))).toThrow(/in their order/);
    deliver(desk, job(8), job(8));
    expect(submitted(desk)).toEqual(["job-8-0"]);
  });

  it("that are taken back with their append are delivered again", () => {
    const desk = new Desk(newBook());
    deliver(desk, job(7));
    desk.propose<"deliver">({ kind: "deliver", jobs: [job(8)] });
    expect([desk.book.state.delivered?.place, desk.book.state.appliedDelivered?.place]).toEqual([8, 7]);
    desk.rollback();
    deliver(desk, job(7), job(8));
    expect(submitted(desk)).toEqual(["job-7-0", "job-8-0"]);
  });

  it("are not folded twice, whatever a leader writes: an event at or before the pair does not fit", () => {
    const desk = new Desk(newBook());
    deliver(desk, job(7), job(8));
    const [first] = desk.events;
    const again = { ...first!, sequence: 3, entityId: "another-id" };
    const before = desk.book.state.delivered;
    expect(desk.book.apply(again)).toBe(false);
    expect([desk.book.unfit, desk.book.state.delivered]).toEqual([1, before]);
    expect(desk.book.known("another-id")).toBe(false);
  });
});

describe("how far they were delivered", () => {
  it("outlives snapshots without a limit of time, and the want of room for keys", () => {
    const desk = new Desk(newBook());
    deliver(desk, job(INTEGER_MAX - 1, 3));
    let later = reopened(desk);
    for (let day = 0; day < 3; day++) {
      later.nowMs += 2 * IDEMPOTENCY_MS;
      for (let at = 0; at < 20; at++)
        later.do<"submit">({ kind: "submit", request: keyed(`k${day}-${at}`), specs: [spec()] });
      later = reopened(later);
    }
    expect(later.book.keys.droppedEarly).toBe(0);
    const count = later.book.applied.stats().submitted;
    deliver(later, job(INTEGER_MAX - 1, 2), job(INTEGER_MAX - 1, 3));
    expect(later.book.applied.stats().submitted).toBe(count);
  });

  it("is no key: neither counted as one nor asked for", () => {
    const desk = new Desk(newBook({ keysMax: 1 }));
    desk.do<"submit">({ kind: "submit", request: keyed("k"), specs: [spec()] });
    deliver(desk, job(7));
    const restored = reopened(desk).book;
    expect(restored.keys).toEqual({ remembered: 1, droppedEarly: 0 });
    expect(restored.state.keyBytes).toBe(desk.book.state.keyBytes);
    expect(restored.snapshot()).toEqual(desk.book.snapshot());
    expect(replayed(newBook({ keysMax: 1 }), desk.events).snapshot()).toEqual(desk.book.snapshot());
  });

  it("adds nothing to a snapshot without any: only its own entry is added where there are some", () => {
    const without = new Desk(newBook());
    const plain = { kind: "take", jobs: [{ id: "job-7-0", by: "mover", spec: spec(), problem: null }] } as const;
    without.do<"take">(plain);
    const before = Buffer.from(without.book.snapshot()).toString("hex");
    const desk = new Desk(newBook());
    deliver(desk, job(7));
    const after = Buffer.from(desk.book.snapshot()).toString("hex");
    const text = (value: string): string =>
      Buffer.from([0, 0, 0, value.length]).toString("hex") + Buffer.from(value).toString("hex");
    const entry = `01${text("0:delivered")}${text("7/0")}${text("delivered")}${text("")}${"001fffffffffffff".repeat(2)}`;
    expect(after.includes(entry)).toBe(true);
    expect(after.replace(entry, "")).toBe(before);
  });

  it("is kept for ever and written again by a release that takes it for an idempotency key", () => {
    const desk = new Desk(newBook({ keysMax: 3 }));
    deliver(desk, job(7, 5));
    const bytes = desk.book.snapshot();
    // As that release reads it.
    const old = new Desk(newBook({ keysMax: 3 }), 1);
    old.book.restore(bytes);
    old.book.state.deliver({ place: 0, operation: 0 });
    const asKey = { id: "0:delivered", bodyHash: "7/5", command: "delivered", jobIds: "" };
    old.book.state.keys.set(asKey.id, { ...asKey, atMs: INTEGER_MAX, sequence: INTEGER_MAX });
    for (let at = 0; at < 40; at++) {
      old.nowMs += IDEMPOTENCY_MS / 4;
      old.do<"pause-queue">({ kind: "pause-queue", request: keyed(`k${at}`), queue: "q", paused: at % 2 === 0 });
    }
    // All of one moment: there is no room for them.
    for (let at = 0; at < 9; at++) {
      const request = keyed(`n${at}`, "00", `caller-${at}`);
      old.do<"pause-queue">({ kind: "pause-queue", request, queue: "q", paused: at % 2 === 1 });
    }
    expect(old.book.keys.droppedEarly).toBeGreaterThan(0);
    expect([...old.book.state.keysByAge].at(-1)).toMatchObject(asKey);
  });

  it("in a form that nobody writes is refused with the snapshot", () => {
    const desk = new Desk(newBook());
    deliver(desk, job(7));
    const good = Buffer.from(desk.book.snapshot());
    const at = good.indexOf("7/0");
    for (const pair of ["7-0", "x/0", "/00", "07/"]) {
      const bytes = Buffer.from(good);
      bytes.write(pair, at);
      expect(() => newBook().restore(bytes), pair).toThrow(expect.objectContaining({ code: "SNAPSHOT_INVALID" }));
    }
  });

  it("is not moved by other submissions, nor by what happens to the jobs", () => {
    const desk = new Desk(newBook());
    desk.submit(spec());
    expect(desk.book.state.delivered).toBeNull();
    deliver(desk, job(7, 1));
    desk.submit(spec());
    desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId: "job-7-1" });
    desk.do<"retry">({ kind: "retry", request: REQUEST, jobId: "job-7-1", job: null });
    expect(desk.book.state.delivered).toEqual({ place: 7, operation: 1 });
  });
});

describe("any repetition", () => {
  const all = Array.from({ length: 24 }, (_, at) =>
    job(10 + Math.floor(at / 3), at % 3, at % 7 === 0 ? { spec: spec({ attemptsMax: 0 }) } : {}),
  );

  type Move =
    | { readonly kind: "deliver"; readonly from: number; readonly count: number; readonly isKept: boolean }
    | { readonly kind: "snapshot" }
    | { readonly kind: "replay" }
    | { readonly kind: "finish" };
  const move: fc.Arbitrary<Move> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant("deliver"), from: fc.nat(23), count: fc.nat(6), isKept: fc.boolean() }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("snapshot", "replay", "finish") }) },
  );

  /** As a leader does it: it may begin anywhere before what it does not know to be delivered, and never after it. */
  function played(moves: readonly Move[], liveMax: number): { desk: Desk; events: Desk["events"] } {
    let desk = new Desk(newBook({ liveMax }));
    const events: Desk["events"] = [];
    const next = (book: JobsBook): Desk => {
      events.push(...desk.events);
      const on = new Desk(book, book.appliedSequence);
      [on.nowMs, on.leaderEpoch] = [desk.nowMs, desk.leaderEpoch + 1];
      return on;
    };
    const step = (one: Move): void => {
      if (one.kind === "snapshot") {
        const book = newBook({ liveMax });
        book.restore(desk.book.snapshot());
        desk = next(book);
      } else if (one.kind === "replay") {
        desk = next(replayed(newBook({ liveMax }), [...events, ...desk.events]));
      } else if (one.kind === "finish") {
        for (const lease of desk.lease(agent(), 9).leases) desk.result("a1-s1", lease, COMPLETED);
        desk.nowMs += 10 * 86_400_000;
        desk.do<"forget">({ kind: "forget", jobIds: all.map(({ id }) => id) });
      } else {
        const last = desk.book.state.delivered;
        const known = all.findLastIndex(
          ({ place, operation }) => place === last?.place && operation === last.operation,
        );
        const from = Math.min(one.from, known + 1);
        const jobs = all.slice(from, from + one.count);
        if (desk.propose<"deliver">({ kind: "deliver", jobs }).kind === "refused") return;
        if (one.isKept) desk.book.commit(desk.book.headSequence);
        else desk.rollback();
      }
    };
    for (const one of moves) step(one);
    // Whoever goes on until all are delivered.
    for (const one of [{ kind: "finish" }, { kind: "deliver", from: 0, count: 24, isKept: true }] as const)
      for (let at = 0; at < 2; at++) step(one);
    return { desk, events: [...events, ...desk.events] };
  }

  it("in any cuts, over snapshots, replays, leaders and forgotten jobs, submits each job once and in order", () => {
    fc.assert(
      fc.property(fc.array(move, { maxLength: 60, size: "max" }), (moves) => {
        const { desk, events } = played(moves, 64);
        const ids = events.filter(({ eventType }) => eventType === "build:submitted").map(({ entityId }) => entityId);
        expect(ids).toEqual(all.map(({ id }) => id));
        expect(desk.book.state.delivered).toEqual({ place: 17, operation: 2 });
      }),
      { numRuns: 60 },
    );
  });

  it("where there is room for few, submits each of them once and in order too, as far as it came", () => {
    fc.assert(
      fc.property(fc.array(move, { maxLength: 60, size: "max" }), (moves) => {
        const { events } = played(moves, 3);
        const ids = events.filter(({ eventType }) => eventType === "build:submitted").map(({ entityId }) => entityId);
        expect(ids).toEqual(all.slice(0, ids.length).map(({ id }) => id));
      }),
      { numRuns: 40 },
    );
  });
});
