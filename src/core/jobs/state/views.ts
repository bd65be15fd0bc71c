// What people and agents see of the book. Two looks at the same tables: `applied` is what is committed, and what every read
// shows; `head` is what the leader has proposed on top of it, and what its answers rest on.
//
// The counts are kept for the head. What is applied differs from it only in the records that have a note, so those are taken
// out of the counts and put in as they were.

import type { AgentView, JobsStats, LeaseRef, NamesPage, QueueView, ScheduleView } from "../../../ports/jobs.ts";
import { Shards } from "../../kit/keyed/shards.ts";
import type { DecideContext } from "../commands.ts";
import { reportedBefore } from "../decide/results.ts";
import { JOBS_SCANNED_MAX } from "../limits.ts";
import type { AgentInfo, Job, JobState, PendingReason, Schedule } from "../model.ts";
import { firedUpToMs, isFinal, type JobRecord, jobOf, type Run } from "./records.ts";
import type { BookState, QueueCount } from "./state.ts";
import type { Table } from "./table.ts";
import { whyPending } from "../decide/why-pending.ts";

type Times = Pick<DecideContext, "nowMs" | "wallMs">;

export interface JobsView {
  job(jobId: string): Job | null;
  /** Of all jobs that are in memory, in no order. */
  ids(): Iterable<string>;
  /** The number of a job that is in memory: the sequence of the event that submitted it. Null: there is none. */
  numberOf(jobId: string): number | null;
  /**
   * The next jobs with higher numbers, in order, also those that are proposed and not applied; without those of which nothing
   * has become since they were submitted, up to event `had`. At most `max`; fewer where it had to look at too many. Of what is
   * applied also those that the head has dropped: whatever is proposed may never come to be.
   */
  behind(number: number, had: number, max: number): Walked;
  /** Null: it is not pending, or not known. */
  whyPending(jobId: string, times: Times, isDraining: boolean): PendingReason | null;
  /** By name. */
  agents(page?: NamesPage): readonly AgentView[];
  /** Whether this process is the one that the name stands for, and is taken for alive. */
  isOnline(agent: Pick<AgentInfo, "name" | "session">): boolean;
  /** By name: those that have jobs that are not finished, or are paused. */
  queues(page?: NamesPage): readonly QueueView[];
  /** By name. `next`: the first time of a schedule after `afterMs`, by its cron line; asked for those of the page. */
  schedules(next: (schedule: Schedule, afterMs: number) => number | null, page?: NamesPage): readonly ScheduleView[];
  scheduleNames(): Iterable<string>;
  /** Null: there is none of this name. */
  schedule(name: string): { readonly schedule: Schedule; readonly firedUpToMs: number } | null;
  stats(): Omit<JobsStats, "staleRejected">;
  /** Of the process that has registered last under this name; undefined: not known. */
  agentEpoch(name: string): number | undefined;
  /** What an agent that wants to keep this lease is answered. */
  renewal(session: string, ref: LeaseRef): Renewal;
  /** All of them: what a new leader starts its timers from. In no order. */
  leases(): Iterable<LeaseView>;
  lease(jobId: string): LeaseView | null;
}

export interface Walked {
  readonly ids: readonly string[];
  /** All up to this number were looked at. Null: there are no more. */
  readonly through: number | null;
}

export interface Renewal {
  readonly outcome: "renewed" | "cancelled" | "committed" | "lost";
  /** What the result made of the job, where it is committed; otherwise what the job is now. Null: it is not known. */
  readonly state: JobState | null;
}

export interface LeaseView extends LeaseRef {
  readonly agent: string;
  readonly session: string;
  readonly ttlMs: number;
  /** See Run. */
  readonly poll: number;
  /** Of the whole attempt. Null: none. */
  readonly timeoutMs: number | null;
  readonly state: JobState;
}

type Look = "applied" | "head";

export class BookView implements JobsView {
  readonly #state: () => BookState;
  readonly #look: Look;

  constructor(state: () => BookState, look: Look) {
    this.#state = state;
    this.#look = look;
  }

  job(jobId: string): Job | null {
    const record = this.#job(jobId);
    return record === undefined ? null : jobOf(record);
  }

  ids(): Iterable<string> {
    const { jobs } = this.#state();
    return this.#look === "head" ? jobs.keys() : jobs.appliedKeys();
  }

  numberOf(jobId: string): number | null {
    const { shelf } = this.#state();
    const slot = shelf.slotOf(jobId);
    return slot < 0 ? null : shelf.slots.numberOf(slot);
  }

  behind(number: number, had: number, max: number): Walked {
    const { shelf, byNumber } = this.#state();
    const { slots } = shelf;
    const cursor = byNumber.cursorFrom((slot) => slots.numberOf(slot) <= number);
    const ids: string[] = [];
    let through = number;
    let slot = cursor.current;
    for (let looked = 0; slot !== undefined && looked < JOBS_SCANNED_MAX && ids.length < max; looked++) {
      through = slots.numberOf(slot);
      if (through > had || !shelf.isFresh(slot)) ids.push(shelf.idAt(slot));
      slot = cursor.next();
    }
    const walked = { ids, through: slot === undefined ? null : through };
    return this.#look === "head" ? walked : this.#withDropped(walked, number, max);
  }

  /** The head's walk with what it passes over: jobs that are applied, and by what is proposed dropped from the book. */
  #withDropped({ ids, through }: Walked, number: number, max: number): Walked {
    const { jobs } = this.#state();
    const dropped: { readonly id: string; readonly number: number }[] = [];
    for (const id of jobs.noted()) {
      const at = jobs.get(id) === undefined ? jobs.applied(id)?.ticket.number : undefined;
      if (at !== undefined && at > number && at <= (through ?? Infinity)) dropped.push({ id, number: at });
    }
    if (dropped.length === 0) return { ids, through };
    const all = [...ids.map((id) => ({ id, number: this.numberOf(id)! })), ...dropped];
    const next = all.toSorted((a, b) => a.number - b.number).slice(0, max);
    return { ids: next.map(({ id }) => id), through: next.length < all.length ? next.at(-1)!.number : through };
  }

  whyPending(jobId: string, times: Times, isDraining: boolean): PendingReason | null {
    const record = this.#job(jobId);
    if (record?.state !== "pending") return null;
    const state = this.#state();
    return whyPending(record, times, isDraining, {
      isPaused: (queue) => this.#get(state.paused, queue) !== undefined,
      // Of the head also for what is applied: between the two lie milliseconds.
      runningWith: (key) => state.ready.runningWith(key),
      runningAt: (agent) => state.jobsOfAgent(agent).size,
      agents: this.#all(state.agents),
    });
  }

  agents(page: NamesPage = ALL): readonly AgentView[] {
    const state = this.#state();
    const known = [...this.#all(state.agents)].filter((agent) => agent.state !== "removed");
    const agents = inPage(known, ({ info }) => info.name, page);
    const running = new Map(agents.map(({ info: { name } }) => [name, state.jobsOfAgent(name).size]));
    this.#correct(({ run }, by) => {
      const count = run === null ? undefined : running.get(run.agent);
      if (run !== null && count !== undefined) running.set(run.agent, count + by);
    });
    return agents.map(({ info, state: is, registeredAtMs, isDraining, epoch, owner }) => {
      const shown = is === "online" && isDraining ? "draining" : (is as AgentView["state"]);
      const by = { ...(epoch > 0 && { epoch }), ...(owner !== null && { owner }) };
      return { ...info, state: shown, registeredAtMs, running: running.get(info.name) ?? 0, ...by };
    });
  }

  isOnline({ name, session }: Pick<AgentInfo, "name" | "session">): boolean {
    const known = this.#get(this.#state().agents, name);
    return known?.state === "online" && known.info.session === session;
  }

  agentEpoch(name: string): number | undefined {
    const epoch = this.#get(this.#state().agents, name)?.epoch ?? 0;
    return epoch === 0 ? undefined : epoch;
  }

  queues(page: NamesPage = ALL): readonly QueueView[] {
    const state = this.#state();
    const counts = new Map<string, QueueCount>();
    for (const [queue, count] of state.byQueue) counts.set(queue, { ...count });
    for (const { queue } of this.#all(state.paused))
      if (!counts.has(queue)) counts.set(queue, { pending: 0, running: 0 });
    this.#correct((record, by) => {
      if (isFinal(record.state)) return;
      const { queue } = record.ticket.class;
      const count = counts.get(queue) ?? { pending: 0, running: 0 };
      count[record.run === null ? "pending" : "running"] += by;
      counts.set(queue, count);
    });
    const views: QueueView[] = [];
    for (const [queue, { pending, running }] of counts) {
      const paused = this.#get(state.paused, queue) !== undefined;
      if (paused || pending + running > 0) views.push({ queue, paused, pending, running });
    }
    return inPage(views, ({ queue }) => queue, page);
  }

  schedules(
    next: (schedule: Schedule, afterMs: number) => number | null,
    page: NamesPage = ALL,
  ): readonly ScheduleView[] {
    return inPage(this.#all(this.#state().schedules), ({ schedule }) => schedule.name, page).map((record) => {
      const { schedule, lastAtMs } = record;
      const nextAtMs = schedule.paused ? null : next(schedule, firedUpToMs(record));
      return { ...schedule, lastAtMs, nextAtMs };
    });
  }

  *scheduleNames(): Generator<string, void, void> {
    for (const { schedule } of this.#all(this.#state().schedules)) yield schedule.name;
  }

  schedule(name: string): { readonly schedule: Schedule; readonly firedUpToMs: number } | null {
    const record = this.#get(this.#state().schedules, name);
    return record === undefined ? null : { schedule: record.schedule, firedUpToMs: firedUpToMs(record) };
  }

  stats(): Omit<JobsStats, "staleRejected"> {
    const state = this.#state();
    const byState = { ...state.byState };
    this.#correct((record, by) => {
      byState[record.state] += by;
    });
    let agentsOnline = 0;
    for (const agent of this.#all(state.agents)) if (agent.state === "online") agentsOnline++;
    const totals = this.#look === "head" ? state.totals : state.appliedTotals;
    return { byState, ...totals, agentsOnline };
  }

  renewal(session: string, ref: LeaseRef): Renewal {
    const record = this.#job(ref.jobId);
    if (record === undefined) return { outcome: "lost", state: null };
    const { state, run, jobEpoch } = record;
    if (run !== null && run.session === session && run.leaseId === ref.leaseId && jobEpoch === ref.jobEpoch) {
      return { outcome: state === "cancelling" ? "cancelled" : "renewed", state };
    }
    const reported = reportedBefore(record, session, ref);
    return reported === null ? { outcome: "lost", state } : { outcome: "committed", state: reported.state };
  }

  *leases(): Generator<LeaseView, void, void> {
    for (const record of this.#leased()) yield leaseOf(record);
  }

  lease(jobId: string): LeaseView | null {
    const record = this.#job(jobId);
    return record === undefined || record.run === null ? null : leaseOf(record as Leased);
  }

  // ---- the two looks -------------------------------------------------------------------------------

  #job(jobId: string): JobRecord | undefined {
    return this.#get(this.#state().jobs, jobId);
  }

  #get<V extends object>(table: Table<V>, key: string): V | undefined {
    return this.#look === "head" ? table.get(key) : table.applied(key);
  }

  #all<V extends object>(table: Table<V>): Iterable<V> {
    return this.#look === "head" ? table.values() : table.appliedValues();
  }

  *#leased(): Generator<Leased, void, void> {
    const state = this.#state();
    const seen = new Shards<true>();
    const notes = this.#look === "head" ? [] : state.jobs.noted();
    for (const jobId of notes) {
      seen.set(jobId, true);
      const record = state.jobs.applied(jobId);
      if (record !== undefined && record.run !== null) yield record as Leased;
    }
    for (const agent of state.busyAgents()) {
      for (const slot of state.jobsOfAgent(agent)) {
        const record = state.shelf.at(slot);
        if (!seen.has(record.ticket.id)) yield record as Leased;
      }
    }
  }

  /** Takes the head's records out of a count and puts the applied ones in, where they may differ. */
  #correct(count: (record: JobRecord, by: 1 | -1) => void): void {
    if (this.#look === "head") return;
    const { jobs } = this.#state();
    for (const jobId of jobs.noted()) {
      const head = jobs.get(jobId);
      const applied = jobs.applied(jobId);
      if (head !== undefined) count(head, -1);
      if (applied !== undefined) count(applied, 1);
    }
  }
}

type Leased = JobRecord & { readonly run: Run };

function leaseOf({ ticket, run, state }: Leased): LeaseView {
  const { leaseId, jobEpoch, agent, session, ttlMs, poll } = run;
  const { timeoutMs } = ticket.policy;
  return { jobId: ticket.id, jobEpoch, leaseId, agent, session, ttlMs, poll, timeoutMs, state };
}

const ALL: NamesPage = { limit: Infinity };

/** The page of these, by name. Most of what is not in it costs one comparison. */
function inPage<T>(all: Iterable<T>, nameOf: (one: T) => string, { after, limit }: NamesPage): T[] {
  const shortened = (some: T[]): T[] => some.sort((one, other) => byText(nameOf(one), nameOf(other))).slice(0, limit);
  let first: T[] = [];
  // Names after it are not in the page.
  let last: string | undefined;
  for (const one of all) {
    const name = nameOf(one);
    if ((after !== undefined && name <= after) || (last !== undefined && name > last)) continue;
    first.push(one);
    if (first.length < 2 * limit) continue;
    first = shortened(first);
    last = nameOf(first.at(-1)!);
  }
  return shortened(first);
}

function byText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
