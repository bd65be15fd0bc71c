// What happens to jobs by the passing of time, on the leader: leases and agents that are not heard of any more, attempts that
// take too long, jobs whose time has come, schedules. All of it becomes commands; nothing is decided here.
//
// Leases, attempts and agents are counted on the monotonic clock, from when they were applied here or heard of, and anew by
// each leader (design D15, trap 56b). Only what people wrote down as a time of day is compared with the wall clock; a backoff
// ends by the events' clock (event-time.ts).

import { LOOP_STALL_MS } from "../../core/kit/limits.ts";
import { Shards } from "../../core/kit/keyed/shards.ts";
import type { StoredEvent } from "../../core/events/index.ts";
import type { JobsCommand, LeaseView } from "../../core/jobs/index.ts";
import type { AgentInfo } from "../../core/jobs/model.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { AGENT_SILENCE_MS, CANCEL_MS_MAX, JOB_TIMERS_CHECK_MS, JOB_TIMERS_RETRY_MS } from "./limits.ts";
import { JobsSchedules } from "./schedules.ts";
import { Leases } from "../leases.ts";
import { Slice } from "../slice.ts";

export interface JobsTimersOptions {
  readonly clock: Clock;
  readonly fold: SiteJournal;
  readonly nextFire: (cron: string, timeZone: string, afterMs: number) => number | null;
  /** Whether commands can be run at all now. */
  readonly leads: () => boolean;
  readonly run: (command: JobsCommand) => void;
  /** In how long a job becomes ready for somebody who waits for one; Infinity: never, or nobody does. */
  readonly readyInMs: () => number;
  /** It has become ready, by the time alone. */
  readonly ready: () => void;
}

export class JobsTimers {
  readonly #options: JobsTimersOptions;
  readonly #clock: Clock;
  readonly #leases = new Leases();
  readonly #attempts = new Leases();
  readonly #agents = new Leases();
  readonly #schedules: JobsSchedules;
  /** By name: the number of the session that is counted, the session, and the highest number of its calls for jobs. */
  readonly #sessions = new Map<string, { readonly number: number; readonly session: string; poll: number }>();
  #sessionNumber = 0;
  /** By job: since when it is being cancelled, as far as this leader knows. */
  readonly #cancelling = new Shards<number>();
  /** Leases of the leaders before that are still to be counted; null: none. */
  #uncounted: Iterator<LeaseView, void, void> | null = null;
  #timer: Timer | null = null;
  #timerAtMs = Infinity;
  #isOver = false;

  constructor(options: JobsTimersOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#schedules = new JobsSchedules(options);
    const { applied } = options.fold.book;
    for (const agent of applied.agents()) if (agent.state !== "offline") this.heard(agent);
    this.recount();
  }

  /** Every lease and every attempt's time begins now. */
  recount(): void {
    for (const one of [this.#leases, this.#attempts]) one.clear();
    this.#uncounted = this.#options.fold.book.applied.leases()[Symbol.iterator]();
    this.#countMore(new Slice(this.#clock));
    this.arm();
  }

  /**
   * Those of the leaders before. There may be a hundred thousand; one that is counted from later on lasts longer, which is safe.
   * One whose end is proposed meanwhile may be passed over: it ends when that is applied, or is counted when it is taken back.
   */
  #countMore(slice: Slice): void {
    while (this.#uncounted !== null) {
      const { done, value } = this.#uncounted.next();
      if (done === true) this.#uncounted = null;
      else this.#count(value.jobId);
      if (slice.isOver) return;
    }
  }

  #count(jobId: string): void {
    // As it is now: it may have ended since.
    const lease = this.#options.fold.book.applied.lease(jobId);
    if (lease === null) return;
    this.#start(lease);
    const known = this.#sessions.get(lease.agent);
    // As far as the leaders before have left a trace of it.
    if (known?.session === lease.session) known.poll = Math.max(known.poll, lease.poll);
  }

  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  /** A call of this agent was accepted: it is the one that the name stands for. */
  heard({ name, session }: Pick<AgentInfo, "name" | "session">, poll = 0): void {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#sessions.get(name);
    if (known?.session === session) {
      known.poll = Math.max(known.poll, poll);
      return this.#agents.touch(name, known.number, nowMs);
    }
    const number = ++this.#sessionNumber;
    this.#sessions.set(name, { number, session, poll });
    this.#agents.start(name, number, AGENT_SILENCE_MS, nowMs);
    this.arm();
  }

  /** The highest number of its calls for jobs that is known here; 0: none. */
  lastPoll({ name, session }: Pick<AgentInfo, "name" | "session">): number {
    const known = this.#sessions.get(name);
    return known?.session === session ? known.poll : 0;
  }

  /** Its call is answered. Where it was removed or replaced meanwhile, nobody is counted. */
  answered({ name, session }: Pick<AgentInfo, "name" | "session">): void {
    const known = this.#sessions.get(name);
    if (known?.session === session) this.#agents.touch(name, known.number, this.#clock.monotonicMs());
  }

  /** The holder's request to keep it arrived. */
  renewed(jobId: string, jobEpoch: number): void {
    // One that does not end though it was told to is waited for no longer than a silent one (trap 53).
    const sinceMs = this.#cancelling.get(jobId);
    if (sinceMs !== undefined && this.#clock.monotonicMs() - sinceMs >= CANCEL_MS_MAX) return;
    this.#leases.touch(jobId, jobEpoch, this.#clock.monotonicMs());
  }

  applied({ eventType, entityType, entityId }: StoredEvent): void {
    if (entityType === "schedule") this.#schedules.changed(entityId);
    else if (eventType === "worker:offline" || eventType === "worker:removed") this.#forget(entityId);
    else if (entityType === "build" && eventType !== "build:log") this.#follow(entityId);
    this.arm();
  }

  /** Of these jobs nothing has become. Who walks through the leases finds those that the head has: it may have missed these. */
  takenBack(events: readonly StoredEvent[]): void {
    for (const { entityType, entityId } of events) if (entityType === "build") this.#follow(entityId);
    this.arm();
  }

  #follow(jobId: string): void {
    const lease = this.#options.fold.book.applied.lease(jobId);
    if (lease !== null) return this.#start(lease);
    this.#leases.drop(jobId);
    this.#attempts.drop(jobId);
    this.#cancelling.delete(jobId);
  }

  #start({ jobId, jobEpoch, ttlMs, timeoutMs, state }: LeaseView): void {
    const nowMs = this.#clock.monotonicMs();
    if (!this.#leases.has(jobId, jobEpoch)) this.#leases.start(jobId, jobEpoch, ttlMs, nowMs);
    if (state === "cancelling" && !this.#cancelling.has(jobId)) this.#cancelling.set(jobId, nowMs);
    if (timeoutMs === null || this.#attempts.has(jobId, jobEpoch)) return;
    this.#attempts.start(jobId, jobEpoch, timeoutMs, nowMs);
  }

  #forget(name: string): void {
    this.#agents.drop(name);
    this.#sessions.delete(name);
  }

  // ---- time ----------------------------------------------------------------------------------------

  /** To be called when anything may be due earlier than before. */
  arm(): void {
    this.#armFrom(this.#clock.monotonicMs());
  }

  #armFrom(nowMs: number): void {
    if (this.#isOver) return;
    const soonMs = Math.min(this.#leases.nextMs, this.#attempts.nextMs, this.#agents.nextMs);
    const workMs = this.#uncounted === null ? this.#schedules.inMs() : 0;
    const inMs = Math.min(this.#options.readyInMs(), workMs, JOB_TIMERS_CHECK_MS);
    const atMs = Math.max(nowMs, Math.min(soonMs, nowMs + inMs));
    // One that comes early is left alone.
    if (atMs >= this.#timerAtMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    this.#timer = this.#clock.setTimer(atMs, () => {
      this.#timerAtMs = Infinity;
      this.#look(atMs);
    });
  }

  #look(dueMs: number): void {
    if (this.#isOver) return;
    const nowMs = this.#clock.monotonicMs();
    // The process stood still, and renewals may be waiting outside: nobody's lease ends for that (trap 29).
    const stalledMs = nowMs - dueMs;
    if (stalledMs >= LOOP_STALL_MS) for (const one of [this.#leases, this.#agents]) one.stalled(stalledMs);
    const slice = new Slice(this.#clock);
    this.#countMore(slice);
    // What is due stays so: it is looked at again after a while, not at once.
    if (!this.#options.leads()) return this.#armFrom(nowMs + JOB_TIMERS_RETRY_MS);
    this.#end(nowMs, slice);
    this.#schedules.look(slice);
    if (this.#options.readyInMs() <= 0) this.#options.ready();
    this.arm();
  }

  /** What ends later than this slice is due in the next look, which comes at once. */
  #end(nowMs: number, slice: Slice): void {
    const { run, fold } = this.#options;
    for (const { key: jobId, epoch: jobEpoch } of this.#leases.takeEach(nowMs, JOB_TIMERS_RETRY_MS, slice)) {
      run({ kind: "lease-expired", jobId, jobEpoch });
    }
    for (const { key: jobId, epoch: jobEpoch } of this.#attempts.takeEach(nowMs, JOB_TIMERS_RETRY_MS, slice)) {
      run({ kind: "attempt-timed-out", jobId, jobEpoch });
    }
    for (const { key: name, epoch } of this.#agents.takeEach(nowMs, JOB_TIMERS_RETRY_MS, slice)) {
      const known = this.#sessions.get(name);
      if (known?.number !== epoch) continue;
      const { session } = known;
      // What it registered with was given up, or it is known to be gone already: nothing is left to be said about it.
      if (fold.book.head.isOnline({ name, session })) run({ kind: "agent-offline", name, session });
      else if (!fold.book.applied.isOnline({ name, session })) this.#forget(name);
    }
  }
}
