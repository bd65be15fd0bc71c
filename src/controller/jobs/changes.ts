// What the views are to be told, as events pass: which jobs have changed, what they have logged, which are forgotten. However
// often a job changes, it is told once. One that is finished is kept as it was then: the book drops it after a while.
//
// Whoever has waited longest is taken first: by then most jobs have come to their end, and are written once. In another order a
// busy node wrote each of them more than once (12 µs of 46 for each job).

import type { StoredEvent } from "../../core/events/index.ts";
import { FINAL_STATES, type Job, type JobState } from "../../core/jobs/model.ts";
import { Shards } from "../../core/kit/keyed/shards.ts";
import type { JobLog } from "../../ports/views.ts";
import type { Slice } from "../slice.ts";
import { CHANGES_KEPT } from "./limits.ts";

export interface Changes {
  readonly jobs: readonly Job[];
  readonly logs: readonly JobLog[];
  readonly forgotten: readonly string[];
}

interface Change {
  readonly jobId: string;
  /** Null: as it is when it is taken. */
  job: Job | null;
  /** As it was when the views did not take it: for one that has changed since, and that the book drops before it is taken again. */
  before: Job | null;
  isForgotten: boolean;
}

export class JobChanges {
  readonly #job: (jobId: string) => Job | null;
  readonly #changed = new Shards<Change>();
  /** In the order of their first change, those that are forgotten meanwhile among them. */
  #order: Change[] = [];
  /** So many of them are taken. */
  #taken = 0;
  readonly #forgotten = new Shards<true>();
  #logs: JobLog[] = [];
  #logChars = 0;

  /** `job`: as the book has it after the events so far. */
  constructor(job: (jobId: string) => Job | null) {
    this.#job = job;
  }

  get size(): number {
    return this.#changed.size + this.#logs.length + this.#forgotten.size;
  }

  get jobs(): number {
    return this.#changed.size;
  }

  get logChars(): number {
    return this.#logChars;
  }

  has(jobId: string): boolean {
    return this.#changed.has(jobId);
  }

  /** It is told as it is when it is taken. */
  mark(jobId: string): void {
    if (!this.#changed.has(jobId)) this.#change(jobId, null);
  }

  note(event: StoredEvent): void {
    if (event.entityType !== "build") return;
    const { eventType, entityId } = event;
    if (eventType === "build:log") this.#log(logOf(event));
    else if (eventType === "build:forgotten") {
      this.#forget(entityId);
      this.#forgotten.set(entityId, true);
    } else {
      // Sent once more by somebody whose views still had it.
      this.#forgotten.delete(entityId);
      this.#change(entityId, isFinal(eventType) ? this.#job(entityId) : null);
    }
  }

  /**
   * So many jobs at most, and no more than there is time for. What was logged comes with the last of them: its job must be there
   * before.
   */
  take(jobsMax: number, slice: Pick<Slice, "isOver">): Changes {
    const jobs: Job[] = [];
    while (this.#taken < this.#order.length && jobs.length < jobsMax) {
      const change = this.#order[this.#taken++]!;
      const { jobId, job: kept, before, isForgotten } = change;
      if (isForgotten) continue;
      // It stays in the queue for a while, and a job may be large.
      change.job = change.before = null;
      this.#changed.delete(jobId);
      const job = kept ?? this.#job(jobId) ?? before;
      if (job !== null) jobs.push(job);
      if (slice.isOver) break;
    }
    this.#shorten();
    const forgotten = [...this.#forgotten.keys()];
    this.#forgotten.clear();
    if (this.#changed.size > 0) return { jobs, logs: [], forgotten };
    const logs = this.#logs;
    this.#logs = [];
    this.#logChars = 0;
    return { jobs, logs, forgotten };
  }

  /** The views did not take it. Jobs that are live come again from the book, or with their next change. */
  giveBack({ jobs, logs, forgotten }: Changes): void {
    for (const job of jobs) {
      if (job.finishedAtMs === null) continue;
      const newer = this.#changed.get(job.id);
      // One that was retried meanwhile is not finished any more.
      if (newer === undefined) this.#change(job.id, job);
      else newer.before = job;
    }
    const newer = this.#logs;
    this.#logs = [];
    this.#logChars = 0;
    for (const log of [...logs, ...newer]) this.#log(log);
    for (const jobId of forgotten) if (!this.#changed.has(jobId)) this.#forgotten.set(jobId, true);
  }

  clear(): void {
    this.#changed.clear();
    this.#order = [];
    this.#taken = 0;
    this.#forgotten.clear();
    this.#logs = [];
    this.#logChars = 0;
  }

  #change(jobId: string, job: Job | null): void {
    const known = this.#changed.get(jobId);
    if (known !== undefined) {
      known.job = job;
      return;
    }
    const change = { jobId, job, before: null, isForgotten: false };
    this.#changed.set(jobId, change);
    this.#order.push(change);
    this.#shorten();
  }

  #forget(jobId: string): void {
    const change = this.#changed.get(jobId);
    if (change === undefined) return;
    change.isForgotten = true;
    change.job = change.before = null;
    this.#changed.delete(jobId);
  }

  /** What is taken or forgotten is at most as much as what waits. */
  #shorten(): void {
    if (this.#order.length < 2 * this.#changed.size + CHANGES_KEPT) return;
    this.#order = this.#order.slice(this.#taken).filter(({ isForgotten }) => !isForgotten);
    this.#taken = 0;
  }

  #log(log: JobLog): void {
    this.#logChars += log.text.length;
    this.#logs.push(log);
  }
}

/** Of a `build:log`. */
export function logOf({ entityId, payload }: StoredEvent): JobLog {
  return { jobId: entityId, ...(payload as unknown as Omit<JobLog, "jobId">) };
}

export function isFinal(eventType: string): boolean {
  const state = eventType.slice("build:".length) as JobState;
  return (FINAL_STATES as readonly JobState[]).includes(state);
}
