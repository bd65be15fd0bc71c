// What a replay of the history has for the views: jobs that the book has dropped, each as it was at its end, with what it has logged; and
// which were forgotten. A state that a job had before its end is not put: somebody would take it for what the job is now.
//
// The views keep a log only where they have its job. So what a job has logged waits for its end here, up to so many characters; past that
// all of it is let go, and whoever replays reads it once more, from `lostFrom` on, when all jobs are in.

import type { StoredEvent } from "../../core/events/index.ts";
import type { Job } from "../../core/jobs/model.ts";
import { Shards } from "../../core/kit/keyed/shards.ts";
import type { JobLog } from "../../ports/views.ts";
import { type Changes, isFinal, logOf } from "./changes.ts";

export interface ReplayedJobsOptions {
  /** As the replay's own book has it after the events so far. Null: there is none, because the views have all jobs without it. */
  readonly job: ((jobId: string) => Job | null) | null;
  /** The views are given it by others, and newer: what the history says of it is of no interest, but for its log. */
  readonly isElsewhere: (jobId: string) => boolean;
  readonly logCharsMax: number;
}

export class ReplayedJobs {
  readonly #options: ReplayedJobsOptions;
  readonly #ended = new Shards<Job>();
  readonly #forgotten = new Shards<true>();
  /** Of jobs that the views have. */
  #logs: JobLog[] = [];
  /** Of the others. */
  readonly #held = new Shards<JobLog[]>();
  #heldChars = 0;
  #heldFrom: number | null = null;
  #lostFrom: number | null = null;

  constructor(options: ReplayedJobsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#ended.size + this.#logs.length + this.#forgotten.size;
  }

  /** From this event on what was logged must be read once more. Null: none of it. */
  get lostFrom(): number | null {
    return this.#lostFrom;
  }

  note(event: StoredEvent): void {
    if (event.entityType !== "build") return;
    const { eventType, entityId } = event;
    if (eventType === "build:log") return this.#log(event.sequence, logOf(event));
    // Also where it was sent once more: its next end is the one that counts.
    this.#ended.delete(entityId);
    if (eventType === "build:forgotten") {
      this.#release(entityId);
      this.#forgotten.set(entityId, true);
    } else if (isFinal(eventType)) {
      const job = this.#options.job?.(entityId) ?? null;
      if (job === null) return;
      this.#forgotten.delete(entityId);
      this.#ended.set(entityId, job);
    }
  }

  /** So many jobs at most. */
  take(jobsMax: number): Changes {
    const { isElsewhere } = this.#options;
    const jobs: Job[] = [];
    const logs = this.#logs;
    this.#logs = [];
    for (const [jobId, job] of this.#ended.taken()) {
      for (const log of this.#release(jobId)) logs.push(log);
      if (!isElsewhere(jobId)) jobs.push(job);
      if (jobs.length >= jobsMax) break;
    }
    const forgotten = [...this.#forgotten.keys()].filter((jobId) => !isElsewhere(jobId));
    this.#forgotten.clear();
    return { jobs, logs, forgotten };
  }

  #log(sequence: number, log: JobLog): void {
    const { job, isElsewhere, logCharsMax } = this.#options;
    if (job === null || isElsewhere(log.jobId)) {
      this.#logs.push(log);
      return;
    }
    const held = this.#held.get(log.jobId);
    if (held === undefined) this.#held.set(log.jobId, [log]);
    else held.push(log);
    this.#heldFrom ??= sequence;
    this.#heldChars += log.text.length;
    if (this.#heldChars <= logCharsMax) return;
    this.#lostFrom ??= this.#heldFrom;
    this.#heldFrom = null;
    this.#held.clear();
    this.#heldChars = 0;
  }

  #release(jobId: string): readonly JobLog[] {
    const held = this.#held.get(jobId) ?? [];
    this.#held.delete(jobId);
    for (const { text } of held) this.#heldChars -= text.length;
    return held;
  }
}
