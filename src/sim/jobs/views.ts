// The views of one simulated server: rows that outlive its processes, on a thread that answers when it likes. What is stored is
// what production feeds it; what it says may be as old as its last put.

import type { Random } from "../../core/kit/random.ts";
import type { Job } from "../../core/jobs/model.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ExpiredJob, ExpiredJobs, ExpiredPlace, JobLog, JobRow, PutHow, Views } from "../../ports/views.ts";

/** Reads do not wait for writes: they are done by a thread of their own, on what is written by then. */
const READ_MS_MAX = 30;

/** Of one server, whatever becomes of its processes. */
export interface StoredRows {
  readonly jobs: Map<string, Job>;
  position: number;
}

type FedViews = Pick<Views, "position" | "reached" | "put" | "doubt" | "settle" | "get" | "expired">;

/** The job, if its retention is over. */
function expiredAt({ id, finishedAtMs, spec, submittedSequence: sequence }: Job, nowMs: number): ExpiredJob[] {
  if (finishedAtMs === null || finishedAtMs + spec.retentionMs > nowMs) return [];
  return [{ id, finishedAtMs, expiresAtMs: finishedAtMs + spec.retentionMs, sequence }];
}

function byPlace(one: ExpiredPlace, other: ExpiredPlace): number {
  return one.expiresAtMs - other.expiresAtMs || one.sequence - other.sequence;
}

/** What views that have these jobs answer: see Views. */
function expiredPage(
  jobs: Iterable<Job>,
  nowMs: number,
  limit: number,
  after: ExpiredPlace | null,
): readonly ExpiredJob[] {
  const all = [...jobs].flatMap((job) => expiredAt(job, nowMs)).sort(byPlace);
  return all.filter((job) => after === null || byPlace(job, after) > 0).slice(0, limit);
}

export class SimViews implements FedViews {
  readonly #rows: StoredRows;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #delayMs: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(rows: StoredRows, clock: Clock, random: Random, delayMs: number) {
    this.#rows = rows;
    this.#clock = clock;
    this.#random = random;
    this.#delayMs = delayMs;
  }

  position(): Promise<number> {
    return this.#inTurn(() => this.#rows.position);
  }

  async reached(): Promise<number> {
    await this.#pause(READ_MS_MAX);
    return this.#rows.position;
  }

  put(
    position: number,
    jobs: readonly Job[],
    _logs: readonly JobLog[],
    forgotten: readonly string[],
    { isPast = false }: PutHow = {},
  ): Promise<void> {
    return this.#inTurn(() => {
      if (position < this.#rows.position) return;
      for (const job of jobs) {
        const before = this.#rows.jobs.get(job.id);
        if (!isPast || before === undefined || before.jobEpoch <= job.jobEpoch) this.#rows.jobs.set(job.id, job);
      }
      for (const jobId of forgotten) this.#rows.jobs.delete(jobId);
      this.#rows.position = position;
    });
  }

  doubt(): Promise<void> {
    return this.#inTurn(() => undefined);
  }

  settle(): Promise<void> {
    return this.#inTurn(() => undefined);
  }

  async get(jobId: string): Promise<JobRow> {
    await this.#pause(READ_MS_MAX);
    const row = { job: this.#rows.jobs.get(jobId) ?? null, position: this.#rows.position };
    await this.#pause(READ_MS_MAX);
    return row;
  }

  async expired(nowMs: number, limit: number, after: ExpiredPlace | null = null): Promise<ExpiredJobs> {
    await this.#pause(READ_MS_MAX);
    const jobs = expiredPage(this.#rows.jobs.values(), nowMs, limit, after);
    const answer = { jobs, position: this.#rows.position };
    await this.#pause(READ_MS_MAX);
    return answer;
  }

  /** Writes are taken one after the other. */
  #inTurn<T>(work: () => T): Promise<T> {
    const turn = this.#last.then(() => this.#pause(Infinity)).then(work);
    this.#last = turn;
    return turn;
  }

  #pause(atMostMs: number): Promise<void> {
    const forMs = this.#random.between(0, Math.min(this.#delayMs, atMostMs));
    return new Promise((resolve) => void this.#clock.setTimer(this.#clock.monotonicMs() + forMs, resolve));
  }
}
