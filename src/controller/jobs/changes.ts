// What the views are to be told, as events pass: which jobs have changed, what they have logged, which are forgotten. However
// often a job changes, it is told once. One that is finished is kept as it was then: the book drops it after a while.

import type { StoredEvent } from "../../core/events/index.ts";
import { FINAL_STATES, type Job, type JobState } from "../../core/jobs/model.ts";
import { Shards } from "../../core/kit/shards.ts";
import type { JobLog } from "../../ports/views.ts";
import type { Slice } from "../slice.ts";

export interface Changes {
  readonly jobs: readonly Job[];
  readonly logs: readonly JobLog[];
  readonly forgotten: readonly string[];
}

export class JobChanges {
  readonly #job: (jobId: string) => Job | null;
  /** Null: as it is when it is taken. */
  readonly #changed = new Shards<Job | null>();
  readonly #forgotten = new Shards<true>();
  #logs: JobLog[] = [];
  #logChars = 0;

  /** `job`: as the book has it behind the events so far. */
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
    if (!this.#changed.has(jobId)) this.#changed.set(jobId, null);
  }

  note(event: StoredEvent): void {
    if (event.entityType !== "build") return;
    const { eventType, entityId } = event;
    if (eventType === "build:log") this.#log(logOf(event));
    else if (eventType === "build:forgotten") {
      this.#changed.delete(entityId);
      this.#forgotten.set(entityId, true);
    } else {
      // Sent once more by somebody whose views still had it.
      this.#forgotten.delete(entityId);
      this.#changed.set(entityId, isFinal(eventType) ? this.#job(entityId) : null);
    }
  }

  /**
   * So many jobs at most, and no more than there is time for. What was logged comes with the last of them: its job must be there
   * before.
   */
  take(jobsMax: number, slice: Pick<Slice, "isOver">): Changes {
    const jobs: Job[] = [];
    for (const [jobId, kept] of this.#changed.taken()) {
      const job = kept ?? this.#job(jobId);
      if (job !== null) jobs.push(job);
      if (jobs.length >= jobsMax || slice.isOver) break;
    }
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
      if (job.finishedAtMs !== null) this.#changed.set(job.id, this.#changed.get(job.id) ?? job);
    }
    const newer = this.#logs;
    this.#logs = [];
    this.#logChars = 0;
    for (const log of [...logs, ...newer]) this.#log(log);
    for (const jobId of forgotten) if (!this.#changed.has(jobId)) this.#forgotten.set(jobId, true);
  }

  clear(): void {
    this.#changed.clear();
    this.#forgotten.clear();
    this.#logs = [];
    this.#logChars = 0;
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
