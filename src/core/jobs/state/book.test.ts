import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../events/index.ts";
import { INTEGER_MAX } from "../../kit/limits.ts";
import { wholeOf } from "../../kit/pieces.ts";
import { JobsBook } from "./book.ts";
import type { JobsCommand } from "../commands.ts";
import type { AgentInfo, JobState } from "../model.ts";
import { PLACE, type Place } from "../shelf/slots.ts";
import { isFinal, type JobRecord } from "./records.ts";
import { type BookLimits, type BookState, noStates } from "./state.ts";
import { agent, COMPLETED, Desk, keyed, replayed, REQUEST, spec } from "../test-desk.ts";
import { commandOf, KINDS, Memory, type Step } from "../test-play.ts";

function newBook(limits: Partial<BookLimits> = {}): JobsBook {
  return new JobsBook({ canonical: (value) => canonicalJson(value, INTEGER_MAX), limits });
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(...KINDS),
  a: fc.nat(11),
  b: fc.nat(11),
  c: fc.nat(11),
});

const SMALL = { finishedMax: 4, keysMax: 5, agentsMax: 3, classesMax: 6, liveMax: 40 } as const;
const steps = fc.array(step, { maxLength: 70, size: "max" });

function play(desk: Desk, memory: Memory, one: Step): { command: JobsCommand; isRefused: boolean } | null {
  const command = commandOf(desk, memory, one);
  if (command === null) return null;
  const decision = desk.propose(command);
  if (decision.kind === "decided") memory.learn(command, decision.answer);
  return { command, isRefused: decision.kind === "refused" };
}

// ---- what must hold, looked at in the dumbest way ------------------------------------------------------

function expectIndexesOf(book: JobsBook): void {
  const { state } = book;
  const records = [...state.jobs.values()];
  const byState = noStates();
  const queues: Record<string, { pending: number; running: number }> = {};
  const keys: Record<string, number> = {};
  const agents: Record<string, string[]> = {};
  const schedules: Record<string, number> = {};
  let [liveBytes, finishedBytes] = [0, 0];
  for (const record of records) {
    const { ticket, run, state: is } = record;
    byState[is]++;
    if (isFinal(is)) finishedBytes += state.weights.job(record);
    else {
      liveBytes += state.weights.job(record);
      (queues[ticket.class.queue] ??= { pending: 0, running: 0 })[run === null ? "pending" : "running"]++;
      if (ticket.schedule !== null) schedules[ticket.schedule] = (schedules[ticket.schedule] ?? 0) + 1;
    }
    expect(run !== null).toBe(["assigned", "building", "cancelling"].includes(is));
    expect(placeOf(state, record) === PLACE.none).toBe(is !== "pending");
    if (run === null) continue;
    (agents[run.agent] ??= []).push(ticket.id);
    if (ticket.concurrencyKey !== null) keys[ticket.concurrencyKey] = (keys[ticket.concurrencyKey] ?? 0) + 1;
  }
  expect(state.byState).toEqual(byState);
  expect(Object.fromEntries(state.byQueue)).toEqual(queues);
  expect([state.liveBytes, state.finishedBytes]).toEqual([liveBytes, finishedBytes]);
  const sum = <T>(all: Iterable<T>, weigh: (one: T) => number): number =>
    [...all].reduce((total, one) => total + weigh(one), 0);
  expect(state.keyBytes).toBe(sum(state.keys.values(), (one) => state.weights.key(one)));
  expect(state.agentBytes).toBe(sum(state.agents.values(), (one) => state.weights.agent(one)));
  expect(state.scheduleBytes).toBe(sum(state.schedules.values(), (one) => state.weights.schedule(one)));
  for (const key of ["k", "other"]) expect(state.ready.runningWith(key)).toBe(keys[key] ?? 0);
  for (const name of ["s0", "s1"]) expect(state.liveOfSchedule(name)).toBe(schedules[name] ?? 0);
  const ofAgents = [...state.busyAgents()].map((name) => [
    name,
    [...state.jobsOfAgent(name)].map((slot) => state.shelf.idAt(slot)).sort(),
  ]);
  expect(Object.fromEntries(ofAgents)).toEqual(
    Object.fromEntries(Object.entries(agents).map(([name, ids]) => [name, ids.sort()])),
  );
  const numbers = records.map(({ ticket }) => ticket.number).sort((one, other) => one - other);
  expect([...state.byNumber].map((slot) => state.shelf.slots.numberOf(slot))).toEqual(numbers);
  const inOrder = records.toSorted((one, other) => one.ticket.number - other.ticket.number);
  const idsOf = (of: readonly JobRecord[]): string[] => of.map(({ ticket }) => ticket.id);
  expect(book.head.behind(0, 0, Infinity)).toEqual({ ids: idsOf(inOrder), through: null });
  const touched = inOrder.filter(({ state: is, jobEpoch }) => is !== "pending" || jobEpoch > 0);
  expect(book.head.behind(0, Infinity, Infinity)).toEqual({ ids: idsOf(touched), through: null });
  const finished = records.filter(({ state: is }) => isFinal(is)).map(({ finishedBy }) => finishedBy);
  expect([...state.finished].map(({ finishedBy }) => finishedBy)).toEqual(finished.sort((one, other) => one - other));
  const classes = (of: readonly JobRecord[]): number => new Set(of.map(({ ticket }) => ticket.class.id)).size;
  expect(state.classes.size).toBe(classes(records));
  expect(state.classes.live).toBe(classes(records.filter(({ state: is }) => !isFinal(is))));
  expectLanesOf(book, records);
}

/** What the limits count of all that is here; and what is there once: classes, callers, paused queues, the counts themselves. */
function weightOf({ state }: JobsBook): number {
  const { liveBytes, finishedBytes, keyBytes, agentBytes, scheduleBytes } = state;
  return liveBytes + finishedBytes + keyBytes + agentBytes + scheduleBytes + 64 + 40 * (state.classes.size + 4);
}

function placeOf({ shelf }: BookState, { ticket }: JobRecord): Place {
  return shelf.slots.placeOf(shelf.slotOf(ticket.id));
}

/** Open is exactly what has ready jobs, and room for its key. */
function expectLanesOf({ state }: JobsBook, records: readonly JobRecord[]): void {
  const { ready } = state;
  const expected = new Set<string>();
  for (const record of records) {
    const { class: one, concurrencyKey: key, concurrencyLimit: limit } = record.ticket;
    if (placeOf(state, record) !== PLACE.ready || (key !== null && ready.runningWith(key) >= limit)) continue;
    expected.add(`${one.id} ${key} ${limit}`);
  }
  const open = ["build", "test"].flatMap((kind) =>
    [...ready.classesWith(kind)].flatMap((one) => [...one.open].map(({ key, limit }) => `${one.id} ${key} ${limit}`)),
  );
  expect(open.sort()).toEqual([...expected].sort());
}

/** What a lease must give: all that may run there, sorted, one after the other. */
function dumbPick(book: JobsBook, who: AgentInfo, max: number, nowMs: number, running: number): string[] {
  const records = [...book.state.jobs.values()];
  const fits = ({ ticket, state, readyAtMs }: JobRecord): boolean =>
    state === "pending" &&
    readyAtMs <= nowMs &&
    book.state.paused.get(ticket.class.queue) === undefined &&
    who.kinds.includes(ticket.class.kind) &&
    (ticket.class.platform ?? who.platform) === who.platform &&
    Object.entries(ticket.class.labels).every(([name, value]) => who.labels[name] === value);
  const sorted = records
    .filter(fits)
    .map(({ ticket }) => ticket)
    .sort((one, other) => other.priority - one.priority || one.number - other.number);
  const counts = new Map<string | null, number>();
  for (const { ticket, run } of records) {
    if (run !== null) counts.set(ticket.concurrencyKey, (counts.get(ticket.concurrencyKey) ?? 0) + 1);
  }
  const picked: string[] = [];
  for (const { id, concurrencyKey: key, concurrencyLimit: limit } of sorted) {
    if (picked.length >= Math.min(max, who.capacity - running)) break;
    const count = counts.get(key) ?? 0;
    if (key !== null && count >= limit) continue;
    counts.set(key, count + 1);
    picked.push(id);
  }
  return picked;
}

function expectHistory(before: Map<string, { epoch: number; state: JobState }>, desk: Desk, from: number): void {
  const retried = new Set(
    desk.events
      .slice(from)
      .filter(({ eventType, payload }) => eventType === "build:retried" && payload["leaseHash"] === null)
      .map(({ entityId }) => entityId),
  );
  for (const { eventType, entityId } of desk.events.slice(from)) {
    // The steps name few ids: one that was taken over, finished and dropped may come again, as another job.
    if (eventType === "build:submitted") before.delete(entityId);
  }
  for (const { ticket, state, jobEpoch, failures, losses, run } of desk.book.state.jobs.values()) {
    const last = before.get(ticket.id);
    expect(jobEpoch).toBeGreaterThanOrEqual(last?.epoch ?? 0);
    if (last !== undefined && isFinal(last.state) && state !== last.state) expect(retried).toContain(ticket.id);
    if (run !== null) expect(run.jobEpoch).toBe(jobEpoch);
    expect(failures).toBeLessThanOrEqual(ticket.policy.attemptsMax);
    expect(losses).toBeLessThanOrEqual(ticket.policy.lossesMax);
    before.set(ticket.id, { epoch: jobEpoch, state });
  }
}

/** A copy: the next one takes its place. Nothing behind the last one. */
function nextOf(slices: Generator<Uint8Array, void, void>): Uint8Array {
  return slices.next().value?.slice() ?? new Uint8Array(0);
}

describe("any commands in any order", () => {
  it("keep the invariants: one lease, growing epochs, final states, budgets, concurrency, pauses, and exact indexes", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const desk = new Desk(newBook(SMALL));
        const memory = new Memory();
        const history = new Map<string, { epoch: number; state: JobState }>();
        for (const [at, one] of all.entries()) {
          if (at % 25 === 24) desk.leaderEpoch++;
          const { events } = desk;
          const from = events.length;
          const command = commandOf(desk, memory, one);
          if (command === null) continue;
          const isLease = command.kind === "lease";
          const running =
            isLease && isKnown(desk, command.agent) ? desk.book.state.jobsOfAgent(command.agent.name).size : 0;
          const max = isLease && !isDrained(desk, command.agent) ? command.max : 0;
          const expected = isLease ? dumbPick(desk.book, command.agent, max, desk.nowMs, running) : [];
          const decision = desk.propose(command);
          if (decision.kind === "decided") memory.learn(command, decision.answer);
          if (decision.kind === "decided" && isLease) {
            const given = (decision.answer as unknown as { leases: { jobId: string }[] }).leases;
            expect(given.map(({ jobId }) => jobId)).toEqual(expected);
          }
          expectHistory(history, desk, from);
          expectIndexesOf(desk.book);
        }
      }),
      { numRuns: 25 },
    );
  });

  function isKnown(desk: Desk, { name, session }: AgentInfo): boolean {
    const known = desk.book.state.agents.get(name);
    return known?.info.session === session && known.state !== "removed";
  }

  /** By the events, not by the book: the last word about this session. */
  function isDrained(desk: Desk, { name, session }: AgentInfo): boolean {
    if (!isKnown(desk, { name, session } as AgentInfo)) return false;
    const ofIt = desk.events.filter(({ eventType, entityId }) => eventType.startsWith("worker:") && entityId === name);
    // Another session in between began anew.
    const since = ofIt.findLastIndex(({ eventType, payload }) =>
      eventType === "worker:removed" ? true : payload["sessionHash"] !== session,
    );
    return ofIt.slice(since + 1).findLast(({ payload }) => "draining" in payload)?.payload["draining"] === true;
  }

  it("that are refused, or change nothing, leave every byte as it was", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const desk = new Desk(newBook(SMALL));
        const memory = new Memory();
        for (const one of all) {
          const before = desk.book.snapshot();
          const count = desk.events.length;
          const played = play(desk, memory, one);
          if (played === null) continue;
          desk.book.commit(desk.book.headSequence);
          if (played.isRefused) expect(desk.events).toHaveLength(count);
          if (desk.events.length === count) expect(Buffer.compare(desk.book.snapshot(), before)).toBe(0);
        }
      }),
      { numRuns: 15 },
    );
  });

  it("give the same state when their events are replayed, or restored from a snapshot in the middle", () => {
    fc.assert(
      fc.property(steps, steps, (first, second) => {
        const desk = new Desk(newBook(SMALL));
        const memory = new Memory();
        for (const one of first) play(desk, memory, one);
        desk.book.commit(desk.book.headSequence);
        const middle = desk.events.length;
        const restored = newBook(SMALL);
        restored.restore(desk.book.snapshot());
        expect(Buffer.compare(restored.snapshot(), desk.book.snapshot())).toBe(0);
        expectIndexesOf(restored);
        for (const one of second) play(desk, memory, one);
        desk.book.commit(desk.book.headSequence);
        for (const event of desk.events.slice(middle)) expect(restored.apply(event)).toBe(true);
        const whole = desk.book.snapshot();
        expect(Buffer.compare(restored.snapshot(), whole)).toBe(0);
        expect(whole.length).toBeLessThanOrEqual(weightOf(desk.book));
        expect(replayed(newBook(SMALL), desk.events).snapshot()).toEqual(whole);
        expectIndexesOf(restored);
      }),
      { numRuns: 15 },
    );
  });
});

// ---- proposals, commits, rollbacks ---------------------------------------------------------------------

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

/** With one job. */
const WITHOUT_EPOCHS =
  "4a0200000000000000030000000000000001000000000000000000000000000000010000005f7b226361706163697479223a3130302c226b696e6473223a5b226275696c64225d2c226c6162656c73223a7b7d2c226e616d65223a226131222c22706c6174666f726d223a226c696e7578222c2273657373696f6e223a2261312d7331227d0000000000000f424000000000000f424000000000000001000004300000000669642d312d31000000000000000100000000000000056275696c640000000764656661756c74000000000000000000030000000200000000000003e8000000000000ea60000000000005265c000000000000000005616c6963658000000000000000000f4240000000077b226e223a317d01000000000000000100000000000000000000000000000001000000000669642d312d340000000000000001000000000000000100000000000000010000000261310000000561312d7331000000000000271000000000000f4240000000000000000000000000000000000700";
const VERSION_1 =
  "4a010000000000000001000000000000000100000000000000000000000000000000000000000001000000000000000669642d312d31000000000000000100000000000000056275696c640000000764656661756c74000000000000000000030000000200000000000003e8000000000000ea60000000000005265c000000000000000005616c6963658000000000000000000f4240000000077b226e223a317d0000";

describe("a snapshot", () => {
  it("that can't be read is refused with a reason, and changes nothing", () => {
    const desk = new Desk(newBook());
    desk.submit(spec(), spec({ queue: "q2" }));
    desk.result("a1-s1", desk.lease().leases[0]!, COMPLETED);
    const bytes = desk.book.snapshot();
    const book = newBook();
    book.restore(bytes);
    for (let length = 1; length < bytes.length; length += 3) {
      expect(() => book.restore(bytes.subarray(0, length))).toThrow(
        expect.objectContaining({ code: "SNAPSHOT_INVALID" }),
      );
    }
    expect(() => book.restore(Uint8Array.of(...bytes, 0))).toThrow(/too many/);
    const later = bytes.slice();
    later[1] = 3;
    expect(() => book.restore(later)).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
    expect(book.snapshot()).toEqual(bytes);
    book.restore(new Uint8Array(0));
    expect([book.appliedSequence, [...book.applied.ids()].length]).toEqual([0, 0]);
  });

  it("B9: what was ready is ready where it is restored: the most urgent goes first, however many are older", () => {
    const desk = new Desk(newBook());
    for (let batch = 0; batch < 3; batch++) {
      desk.nowMs += 10;
      desk.submit(...Array.from({ length: 500 }, () => spec()));
    }
    desk.nowMs += 10;
    const [urgent] = desk.submit(spec({ priority: 9 }));
    const restored = newBook();
    restored.restore(desk.book.snapshot(), desk.events.at(-1)!.timestamp);
    const other = new Desk(restored, restored.appliedSequence);
    other.nowMs = desk.nowMs;
    expect(other.lease().leases).toMatchObject([{ jobId: urgent }]);
  });

  it("keeps its form: bytes of version 2, for ever", () => {
    const desk = new Desk(newBook());
    desk.submit(spec());
    expect(Buffer.from(desk.book.snapshot()).toString("hex")).toBe(VERSION_1.replace("4a01", "4a02"));
    desk.lease(agent(), 1, 7);
    expect(Buffer.from(desk.book.snapshot()).toString("hex")).toMatchInlineSnapshot(
      `"4a020000000000000003000000000000000100000000000000000000000000000001000000697b226361706163697479223a3130302c2265706f6368223a322c226b696e6473223a5b226275696c64225d2c226c6162656c73223a7b7d2c226e616d65223a226131222c22706c6174666f726d223a226c696e7578222c2273657373696f6e223a2261312d7331227d0000000000000f424000000000000f424000000000000001000004300000000669642d312d31000000000000000100000000000000056275696c640000000764656661756c74000000000000000000030000000200000000000003e8000000000000ea60000000000005265c000000000000000005616c6963658000000000000000000f4240000000077b226e223a317d01000000000000000100000000000000000000000000000001000000000669642d312d340000000000000001000000000000000100000000000000010000000261310000000561312d7331000000000000271000000000000f4240000000000000000000000000000000000700"`,
    );
  });

  it("of a release before agents had epochs and owners is read as it was, for ever", () => {
    const book = newBook();
    book.restore(Buffer.from(WITHOUT_EPOCHS, "hex"));
    expect(book.applied.agents()).toMatchObject([{ name: "a1", session: "a1-s1", running: 1 }]);
    expect(Buffer.from(book.snapshot()).toString("hex")).toBe(WITHOUT_EPOCHS);
  });

  it("of version 1 is read as it was, for ever", () => {
    const book = newBook();
    book.restore(Buffer.from(VERSION_1, "hex"));
    const desk = new Desk(newBook());
    desk.submit(spec());
    expect(book.snapshot()).toEqual(desk.book.snapshot());
  });

  it("does not depend on the order in which keys stood in a payload", () => {
    const one = new Desk(newBook());
    one.submit(spec({ payload: { a: 1, b: { d: 1, c: 2 } } }));
    const other = new Desk(newBook());
    other.submit(spec({ payload: { b: { c: 2, d: 1 }, a: 1 } }));
    expect(one.book.snapshot()).toEqual(other.book.snapshot());
  });
});

describe("why a job is pending", () => {
  it("is the first reason that holds", () => {
    const desk = new Desk(newBook());
    const [jobId, later, keyedJob, special] = desk.submit(
      spec(),
      spec({ notBeforeMs: desk.nowMs + 50 }),
      spec({ concurrency: { key: "k", limit: 1 }, priority: 5 }),
      spec({ labels: { gpu: "yes" } }),
    );
    const why = (id = jobId!, isDraining = false): unknown =>
      desk.book.applied.whyPending(id, { nowMs: desk.nowMs, wallMs: desk.nowMs }, isDraining);
    expect(why("nobody")).toBeNull();
    expect(why()).toEqual({ reason: "no-agent", kind: "build", missing: "any agent" });
    desk.lease(agent("a0", { kinds: ["test"] }), 0);
    expect(why()).toEqual({ reason: "no-agent", kind: "build", missing: "kind build" });
    desk.lease(agent("a1", { capacity: 1 }), 0);
    expect(why()).toEqual({ reason: "next" });
    expect(why(jobId, true)).toEqual({ reason: "draining" });
    expect(why(special)).toEqual({ reason: "no-agent", kind: "build", missing: "label gpu=yes" });
    expect(desk.lease(agent("a1", { capacity: 1 })).leases).toMatchObject([{ jobId: keyedJob }]);
    expect(why(keyedJob)).toBeNull();
    expect(why()).toEqual({ reason: "agents-busy", agents: 1 });
    expect(why(later)).toEqual({ reason: "not-before", readyAtMs: desk.nowMs + 50 });
    const [second] = desk.submit(spec({ concurrency: { key: "k", limit: 1 } }));
    expect(why(second)).toEqual({ reason: "concurrency", key: "k", limit: 1 });
    desk.do<"pause-queue">({ kind: "pause-queue", request: REQUEST, queue: "default", paused: true });
    expect(why(second)).toEqual({ reason: "paused", queue: "default" });
  });
});

describe("a job that has left the book", () => {
  it("is known to views that have its end, and its forgetting, and to no others", () => {
    const book = newBook({ finishedMax: 1 });
    const desk = new Desk(book);
    const [first, second, third] = desk.submit(spec(), spec(), spec());
    const cancel = (jobId: string) => desk.do<"cancel">({ kind: "cancel", request: REQUEST, jobId });
    expect([book.leftUpTo("applied"), book.loggedUpTo(first!)]).toEqual([0, 0]);
    cancel(first!);
    const firstEnd = book.appliedSequence;
    expect([book.leftUpTo("applied"), book.loggedUpTo(first!)]).toEqual([firstEnd - 1, firstEnd]);
    cancel(second!);
    expect([book.known(first!), book.leftUpTo("applied") >= firstEnd]).toEqual([false, true]);
    desk.do<"forget">({ kind: "forget", jobIds: [first!] });
    expect(book.leftUpTo("applied")).toBe(book.appliedSequence);
    // What is proposed and taken back: views never come to it.
    desk.propose<"cancel">({ kind: "cancel", request: REQUEST, jobId: third! });
    expect([book.leftUpTo("head"), book.leftUpTo("applied")].map((at) => at - book.appliedSequence)).toEqual([0, 0]);
    desk.propose<"forget">({ kind: "forget", jobIds: ["old"] });
    expect(book.leftUpTo("head")).toBe(book.headSequence);
    expect(book.leftUpTo("applied")).toBe(book.appliedSequence);
    book.rollback();
    expect(book.leftUpTo("head")).toBe(book.appliedSequence);
  });
});
