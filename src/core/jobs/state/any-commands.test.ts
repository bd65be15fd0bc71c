// Any commands in any order, and what must hold of the book, looked at in the dumbest way.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newBook, SMALL, steps, play, expectIndexesOf } from "../../../../test/jobs-book.ts";
import type { JobsBook } from "./book.ts";
import type { AgentInfo, JobState } from "../model.ts";
import { isFinal, type JobRecord } from "./records.ts";
import { Desk, replayed } from "../test-desk.ts";
import { commandOf, Memory } from "../test-play.ts";

/** What the limits count of all that is here; and what is there once: classes, callers, paused queues, the counts themselves. */
function weightOf({ state }: JobsBook): number {
  const { liveBytes, finishedBytes, keyBytes, agentBytes, scheduleBytes } = state;
  return liveBytes + finishedBytes + keyBytes + agentBytes + scheduleBytes + 64 + 40 * (state.classes.size + 4);
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
