// The views of one simulated server: rows that outlive its processes, on a thread that answers when it likes and may die. What
// is stored is what production feeds it; what it answers may be as old as its last put. It keeps the promises of ports/views.ts
// and no more: a put that was not answered may be lost, and after a power loss the rows are those of an earlier position.
//
//   refusing ──position──▶ taking ──the thread dies, the file is lost──▶ refusing

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Job } from "../../core/jobs/model.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  ExpiredJob,
  ExpiredJobs,
  ExpiredPlace,
  JobLog,
  JobLogPage,
  JobPage,
  JobQuery,
  JobRow,
  PutHow,
  ViewsHole,
  ViewsHoles,
} from "../../ports/views.ts";
import type { NodeViews } from "../../node/assembly/assemble.ts";
import { type JobsProbeCounts, reached } from "./probes.ts";

/** Reads do not wait for writes: they are done by a thread of their own, on what is written by then. */
const READ_MS_MAX = 30;
/** So many puts apart the disk has it. */
const SYNC_EVERY_PUTS = 4;

interface Row {
  readonly job: Job;
  readonly expiresAtMs: number | null;
  readonly isInDoubt: boolean;
}

interface Rows {
  readonly jobs: ReadonlyMap<string, Row>;
  readonly position: number;
  readonly line: string | null;
  readonly holes: readonly ViewsHole[];
}

const NO_ROWS: Rows = { jobs: new Map(), position: 0, line: null, holes: [] };

/** Of one server, whatever becomes of its processes. */
export class StoredRows {
  jobs = new Map<string, Row>();
  position = 0;
  line: string | null = null;
  holes: readonly ViewsHole[] = [];
  #synced: Rows = NO_ROWS;
  #puts = 0;

  /** Nothing is left of it. */
  wipe(): void {
    this.#synced = NO_ROWS;
    this.#take(NO_ROWS);
  }

  stored(): void {
    const { jobs, position, line, holes } = this;
    if (++this.#puts % SYNC_EVERY_PUTS === 0) this.#synced = { jobs: new Map(jobs), position, line, holes };
  }

  /** The machine has lost power: as the disk has it. True: less than before. */
  lostPower(): boolean {
    const before = this.position;
    this.#take(this.#synced);
    return this.position < before;
  }

  #take({ jobs, position, line, holes }: Rows): void {
    this.jobs = new Map(jobs);
    this.position = position;
    this.line = line;
    this.holes = holes;
  }
}

/** The job, if its retention is over. */
function expiredAt({ job, expiresAtMs }: Row, nowMs: number): ExpiredJob[] {
  const { id, finishedAtMs, submittedSequence: sequence } = job;
  if (finishedAtMs === null || expiresAtMs === null || expiresAtMs > nowMs) return [];
  return [{ id, finishedAtMs, expiresAtMs, sequence }];
}

function byPlace(one: ExpiredPlace, other: ExpiredPlace): number {
  return one.expiresAtMs - other.expiresAtMs || one.sequence - other.sequence;
}

function rowOf(job: Job): Row {
  const { finishedAtMs, spec } = job;
  return { job, expiresAtMs: finishedAtMs === null ? null : finishedAtMs + spec.retentionMs, isInDoubt: false };
}

function isLive({ job }: Row): boolean {
  return job.finishedAtMs === null;
}

export class SimViews implements NodeViews {
  readonly holes: ViewsHoles;
  readonly #rows: StoredRows;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #delayMs: number;
  readonly #probes: JobsProbeCounts;
  #reset: () => void = () => undefined;
  #last: Promise<unknown> = Promise.resolve();
  /** Grows when the thread dies: what waited then is lost. */
  #thread = 0;
  #refusal: TenureError | null = new TenureError("BACKEND_UNAVAILABLE", "the views were opened anew.");

  constructor(rows: StoredRows, clock: Clock, random: Random, delayMs: number, probes: JobsProbeCounts) {
    this.#probes = probes;
    this.#rows = rows;
    this.#clock = clock;
    this.#random = random;
    this.#delayMs = delayMs;
    this.holes = {
      read: () => this.#inTurn(() => rows.holes),
      write: (holes) => this.#change(() => void (rows.holes = holes)),
      rebuild: () => this.#inTurn(() => rows.wipe()),
    };
  }

  /** Up to here they have everything, by what is stored now. */
  get stored(): number {
    return this.#rows.position;
  }

  /** The thread ends in the middle of what it does. */
  crash(): void {
    this.#thread++;
    this.#refusal = new TenureError("BACKEND_UNAVAILABLE", "the thread of the views has ended.");
  }

  /** The file is damaged, or somebody has removed it: it begins anew, empty. */
  discard(): void {
    this.#rows.wipe();
    this.#thread++;
    this.#refusal = new TenureError("DISK_DAMAGED", "the views were moved aside: feed them from position 0.");
    this.#reset();
  }

  onReset(listener: () => void): void {
    this.#reset = listener;
  }

  position(): Promise<number> {
    return this.#inTurn(() => {
      // What never came to a position is dropped.
      if (this.#rows.position === 0) this.#rows.wipe();
      this.#refusal = null;
      return this.#rows.position;
    });
  }

  line(): Promise<string | null> {
    return this.#inTurn(() => this.#rows.line);
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
    { line = null, isPast = false, settles = false }: PutHow = {},
  ): Promise<void> {
    if (isPast) reached(this.#probes, "missed-events-read");
    return this.#change(() => {
      const rows = this.#rows;
      if (position < rows.position) return;
      for (const job of jobs) {
        const before = rows.jobs.get(job.id)?.job;
        if (!isPast || before === undefined || before.jobEpoch <= job.jobEpoch) rows.jobs.set(job.id, rowOf(job));
      }
      for (const jobId of forgotten) rows.jobs.delete(jobId);
      for (const [id, row] of rows.jobs) if (settles && isLive(row) && row.isInDoubt) rows.jobs.delete(id);
      rows.position = position;
      rows.line = line ?? rows.line;
      rows.stored();
    });
  }

  doubt(nowMs: number): Promise<void> {
    return this.#change(() => {
      for (const [id, row] of this.#rows.jobs) this.#rows.jobs.set(id, doubted(row, nowMs));
    });
  }

  trust(): Promise<void> {
    return this.#change(() => {
      for (const [id, row] of this.#rows.jobs) this.#rows.jobs.set(id, { ...row, isInDoubt: false });
    });
  }

  async get(jobId: string): Promise<JobRow> {
    await this.#pause(READ_MS_MAX);
    const { jobs, position, holes } = this.#rows;
    const row = { job: jobs.get(jobId)?.job ?? null, position, holes };
    await this.#pause(READ_MS_MAX);
    return row;
  }

  async expired(nowMs: number, limit: number, after: ExpiredPlace | null = null): Promise<ExpiredJobs> {
    await this.#pause(READ_MS_MAX);
    const all = [...this.#rows.jobs.values()].flatMap((row) => expiredAt(row, nowMs)).sort(byPlace);
    const jobs = all.filter((job) => after === null || byPlace(job, after) > 0).slice(0, limit);
    const answer = { jobs, position: this.#rows.position };
    await this.#pause(READ_MS_MAX);
    return answer;
  }

  async list({ states, kind, queue, cursor, limit }: JobQuery): Promise<JobPage> {
    await this.#pause(READ_MS_MAX);
    const before = cursor === undefined ? Infinity : Number(cursor);
    const found = [...this.#rows.jobs.values()]
      .map(({ job }) => job)
      .filter((job) => job.submittedSequence < before && (states?.includes(job.state) ?? true))
      .filter(({ spec }) => (kind === undefined || spec.kind === kind) && (queue === undefined || spec.queue === queue))
      .sort((one, other) => other.submittedSequence - one.submittedSequence);
    const jobs = found.slice(0, limit);
    const next = found.length > limit ? String(jobs.at(-1)!.submittedSequence) : null;
    return { jobs, next, position: this.#rows.position };
  }

  log(): Promise<JobLogPage> {
    return Promise.reject(new TenureError("NOT_FOUND", "these views keep no logs."));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #change(work: () => void): Promise<void> {
    return this.#inTurn(() => {
      if (this.#refusal !== null) throw this.#refusal;
      work();
    });
  }

  /** Writes are taken one after the other. */
  #inTurn<T>(work: () => T): Promise<T> {
    const thread = this.#thread;
    const turn = this.#last
      .then(() => this.#pause(Infinity))
      .then(() => {
        if (thread === this.#thread) return work();
        throw this.#refusal ?? new TenureError("BACKEND_UNAVAILABLE", "the thread of the views has ended.");
      });
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  #pause(atMostMs: number): Promise<void> {
    const forMs = this.#random.between(0, Math.min(this.#delayMs, atMostMs));
    return new Promise((resolve) => void this.#clock.setTimer(this.#clock.monotonicMs() + forMs, resolve));
  }
}

function doubted(row: Row, nowMs: number): Row {
  const { job, expiresAtMs } = row;
  if (expiresAtMs === null || job.finishedAtMs === null) return { ...row, isInDoubt: isLive(row) };
  return { ...row, expiresAtMs: Math.max(expiresAtMs, Math.floor(nowMs) + expiresAtMs - job.finishedAtMs) };
}
