// What is proposed, committed, taken back and applied, and snapshots that are taken meanwhile.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newBook, SMALL, step, steps, play, expectIndexesOf } from "../../../../test/jobs-book.ts";
import { wholeOf } from "../../kit/pieces.ts";
import type { JobsBook } from "./book.ts";
import { agent, COMPLETED, Desk, keyed, replayed, REQUEST, spec } from "../test-desk.ts";
import { Memory, type Step } from "../test-play.ts";

/** A copy: the next one takes its place. Nothing after the last one. */
function nextOf(slices: Generator<Uint8Array, void, void>): Uint8Array {
  return slices.next().value?.slice() ?? new Uint8Array(0);
}

type Move = Step | { readonly kind: "commit" | "rollback" | "foreign"; readonly a: number; readonly step: Step };

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 5, arbitrary: step },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("commit" as const, "rollback", "foreign"), a: fc.nat(30), step }),
  },
);

function seen({ applied }: JobsBook): object {
  const leases = [...applied.leases()].sort((one, other) => (one.jobId < other.jobId ? -1 : 1));
  const jobs = [...applied.ids()].sort().map((id) => applied.job(id));
  const next = (): number => 1;
  return {
    leases,
    jobs,
    agents: applied.agents(),
    queues: applied.queues(),
    schedules: applied.schedules(next),
    stats: applied.stats(),
  };
}

describe("proposals", () => {
  it("leave exactly what is committed, whatever is proposed, committed, taken back and applied in between", () => {
    fc.assert(
      fc.property(fc.array(move, { maxLength: 60, size: "max" }), (moves) => {
        const desk = new Desk(newBook(SMALL));
        const { book } = desk;
        const memory = new Memory();
        for (const one of moves) {
          const span = book.headSequence - book.appliedSequence;
          if (!("step" in one)) play(desk, memory, one);
          else if (one.kind === "commit") book.commit(book.appliedSequence + (one.a % (span + 1)));
          else if (one.kind === "rollback") desk.rollback(book.appliedSequence + (one.a % (span + 1)));
          else foreign(desk, memory, one.step);
        }
        const committed = desk.events.filter(({ sequence }) => sequence <= book.appliedSequence);
        const plain = replayed(newBook(SMALL), committed);
        // With proposals on top: every read looks behind them.
        expect(seen(book)).toEqual(seen(plain));
        expect(walkedThrough(book).toSorted()).toEqual([...plain.applied.ids()].toSorted());
        expect(book.snapshot()).toEqual(plain.snapshot());
        desk.rollback();
        expect(book.snapshot()).toEqual(plain.snapshot());
        expectIndexesOf(book);
      }),
      { numRuns: 40 },
    );
  });

  /** All jobs that are applied, a few at a time, as views that are built again are fed. */
  function walkedThrough({ applied }: JobsBook): string[] {
    const found: string[] = [];
    for (let from: number | null = 0; from !== null;) {
      const { ids, through } = applied.behind(from, 0, 2);
      expect(ids.length).toBeLessThanOrEqual(2);
      found.push(...ids.filter((id) => applied.job(id) !== null));
      from = through;
    }
    return found;
  }

  /** Another leader's events come: one's own are rolled back first. */
  function foreign(desk: Desk, memory: Memory, one: Step): void {
    desk.rollback();
    desk.leaderEpoch++;
    const count = desk.events.length;
    const played = play(desk, memory, one);
    if (played === null) return;
    const events = desk.events.slice(count);
    desk.book.rollback();
    for (const event of events) expect(desk.book.apply(event)).toBe(true);
  }

  it("that drop a job leave it to whoever walks through what is applied, in its place", () => {
    const desk = new Desk(newBook({ finishedMax: 0 }));
    const ids = [1, 2, 3].map(() => desk.submit(spec())[0]!);
    desk.propose<"cancel">({ kind: "cancel", request: REQUEST, jobId: ids[1]! });
    expect(desk.book.known(ids[1]!)).toBe(false);
    expect(desk.book.head.behind(0, 0, 9).ids).toEqual([ids[0], ids[2]]);
    expect(walkedThrough(desk.book)).toEqual(ids);
    desk.rollback();
    expect(walkedThrough(desk.book)).toEqual(ids);
  });

  it("a snapshot in slices is of its first moment, whatever happens before its last", () => {
    fc.assert(
      fc.property(steps, fc.array(move, { maxLength: 30, size: "max" }), (first, moves) => {
        const desk = new Desk(newBook(SMALL));
        const memory = new Memory();
        for (const [at, one] of first.entries()) {
          play(desk, memory, one);
          if (at === first.length >> 1) desk.book.commit(desk.book.headSequence);
        }
        const whole = desk.book.snapshot();
        // A slice for each record, and something happens between any two.
        const slices = desk.book.slices(1);
        const parts = [nextOf(slices)];
        for (const one of moves) {
          if (!("step" in one)) play(desk, memory, one);
          else if (one.kind === "commit") desk.book.commit(desk.book.headSequence);
          else foreign(desk, memory, one.step);
          parts.push(nextOf(slices));
        }
        parts.push(wholeOf(slices));
        expect(Buffer.compare(wholeOf(parts), whole)).toBe(0);
        // Nothing is kept for it any more.
        expect(desk.book.state.jobs.snapshotsUnderWay + desk.book.state.keys.snapshotsUnderWay).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it("two snapshots at once are each of their own moment; one that is given up keeps nothing", () => {
    const desk = new Desk(newBook());
    desk.submit(spec(), spec(), spec());
    const [first, second] = [desk.book.snapshot(), desk.book.slices(1)];
    const parts = [nextOf(second)];
    desk.lease(agent(), 2);
    const third = desk.book.slices(1);
    const middle = desk.book.snapshot();
    const later = [nextOf(third)];
    desk.submit(spec());
    desk.book.restore(new Uint8Array(0));
    expect(wholeOf([...parts, wholeOf(second)])).toEqual(first);
    expect(wholeOf([...later, wholeOf(third)])).toEqual(middle);
    const other = new Desk(newBook());
    other.submit(spec());
    const given = other.book.slices(1);
    given.next();
    expect(other.book.state.jobs.snapshotsUnderWay).toBe(1);
    given.return();
    expect(other.book.state.jobs.snapshotsUnderWay).toBe(0);
  });

  it("D10: no slice of a snapshot is longer than its bound and one record, also of agents, schedules and keys", () => {
    const desk = new Desk(newBook());
    for (let at = 0; at < 300; at++) {
      const request = keyed(`key-${at}`);
      desk.do<"submit">({ kind: "submit", request, specs: [spec(), spec(), spec()] });
      desk.lease(agent(`agent-${at}`), 0);
      const schedule = {
        name: `s-${at}`,
        cron: "* * * * *",
        timeZone: "UTC",
        overlap: "skip",
        catchUp: "none",
      } as const;
      desk.do<"put-schedule">({
        kind: "put-schedule",
        request: REQUEST,
        schedule: { ...schedule, spec: spec(), paused: true },
      });
    }
    const slices = Array.from(desk.book.slices(2_000), (slice) => slice.slice());
    expect(slices.length).toBeGreaterThan(50);
    expect(Math.max(...slices.map(({ length }) => length))).toBeLessThan(2_000 + 600);
    expect(wholeOf(slices)).toEqual(desk.book.snapshot());
  });

  it("a snapshot has what proposals have dropped, as it was, and nothing of what they have brought", () => {
    const limits = { finishedMax: 1, keysMax: 1 };
    const desk = new Desk(newBook(limits));
    const submit = (key: string): unknown =>
      desk.propose<"submit">({ kind: "submit", request: keyed(key), specs: [spec()] });
    submit("k1");
    desk.submit(spec());
    const [first, second] = desk.lease(agent(), 2).leases;
    desk.result("a1-s1", first!, COMPLETED);
    const finished = desk.book.applied.job(first!.jobId)!;
    const committed = [...desk.events];
    const before = desk.book.snapshot();
    const results = [{ ...second!, outcome: COMPLETED }];
    desk.propose<"results">({ kind: "results", session: "a1-s1", results });
    submit("k2");
    expect(desk.book.known(first!.jobId)).toBe(false);
    expect(desk.book.snapshot()).toEqual(before);
    // It comes back, as another record under the same id.
    desk.propose<"retry">({ kind: "retry", request: REQUEST, jobId: first!.jobId, job: finished });
    expect(desk.book.snapshot()).toEqual(before);
    expect(replayed(newBook(limits), committed).snapshot()).toEqual(before);
    desk.book.commit(desk.book.headSequence);
    expect(replayed(newBook(limits), desk.events).snapshot()).toEqual(desk.book.snapshot());
  });

  it("assert their order: no gap, nothing foreign on top, nothing committed that was not proposed", () => {
    const desk = new Desk(newBook());
    desk.propose<"submit">({ kind: "submit", request: REQUEST, specs: [spec()] });
    const [event] = desk.events;
    expect(() => desk.book.apply({ ...event!, sequence: 2 })).toThrow(/rolled back/);
    expect(() => desk.book.propose([{ ...event!, sequence: 3 }])).toThrow(/gaps/);
    expect(() => desk.book.commit(2)).toThrow(/proposed/);
    desk.book.commit(1);
    expect(() => desk.book.rollback(0)).toThrow(/stays/);
  });

  it("what does not fit changes nothing on a follower, and is counted", () => {
    const desk = new Desk(newBook());
    desk.submit(spec());
    desk.lease();
    const book = replayed(newBook(), desk.events);
    const before = book.applied.job(desk.events[0]!.entityId);
    const assigned = desk.events.find(({ eventType }) => eventType === "build:assigned")!;
    expect(book.apply({ ...assigned, sequence: 4 })).toBe(false);
    const forged = {
      ...assigned,
      eventType: "build:completed" as const,
      payload: { leaseHash: "x", jobEpoch: 1, result: 1 },
    };
    expect(book.apply({ ...forged, sequence: 5 })).toBe(false);
    expect(book.applied.job(assigned.entityId)).toEqual(before);
    expect([book.unfit, book.appliedSequence]).toEqual([2, 5]);
  });
});
