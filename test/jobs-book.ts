// A book of jobs for tests of core/jobs: an empty one, any commands to play on it, and what must hold of its indexes whatever was played.

import fc from "fast-check";
import { expect } from "vitest";
import { canonicalJson } from "../src/core/events/index.ts";
import type { JobsCommand } from "../src/core/jobs/commands.ts";
import { PLACE, type Place } from "../src/core/jobs/shelf/slots.ts";
import { JobsBook } from "../src/core/jobs/state/book.ts";
import { isFinal, type JobRecord } from "../src/core/jobs/state/records.ts";
import { type BookLimits, type BookState, noStates } from "../src/core/jobs/state/state.ts";
import type { Desk } from "../src/core/jobs/test-desk.ts";
import { commandOf, KINDS, type Memory, type Step } from "../src/core/jobs/test-play.ts";
import { INTEGER_MAX } from "../src/core/kit/limits.ts";

export function newBook(limits: Partial<BookLimits> = {}): JobsBook {
  return new JobsBook({ canonical: (value) => canonicalJson(value, INTEGER_MAX), limits });
}

export const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(...KINDS),
  a: fc.nat(11),
  b: fc.nat(11),
  c: fc.nat(11),
});

export const SMALL = { finishedMax: 4, keysMax: 5, agentsMax: 3, classesMax: 6, liveMax: 40 } as const;
export const steps = fc.array(step, { maxLength: 70, size: "max" });

export function play(desk: Desk, memory: Memory, one: Step): { command: JobsCommand; isRefused: boolean } | null {
  const command = commandOf(desk, memory, one);
  if (command === null) return null;
  const decision = desk.propose(command);
  if (decision.kind === "decided") memory.learn(command, decision.answer);
  return { command, isRefused: decision.kind === "refused" };
}

// ---- what must hold, looked at in the dumbest way ------------------------------------------------------

export function expectIndexesOf(book: JobsBook): void {
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
  expect(book.head.behind(0, 0, Infinity)).toEqual({ ids: idsOf(inOrder), through: null });
  const touched = inOrder.filter(({ state: is, jobEpoch }) => is !== "pending" || jobEpoch > 0);
  expect(book.head.behind(0, Infinity, Infinity)).toEqual({ ids: idsOf(touched), through: null });
  const finished = records.filter(({ state: is }) => isFinal(is)).map(({ finishedBy }) => finishedBy);
  expect([...state.finished].map(({ finishedBy }) => finishedBy)).toEqual(finished.sort((one, other) => one - other));
  expect(state.classes.size).toBe(classes(records));
  expect(state.classes.live).toBe(classes(records.filter(({ state: is }) => !isFinal(is))));
  expectLanesOf(book, records);
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

function sum<T>(all: Iterable<T>, weigh: (one: T) => number): number {
  return [...all].reduce((total, one) => total + weigh(one), 0);
}

function idsOf(records: readonly JobRecord[]): string[] {
  return records.map(({ ticket }) => ticket.id);
}

function classes(records: readonly JobRecord[]): number {
  return new Set(records.map(({ ticket }) => ticket.class.id)).size;
}
