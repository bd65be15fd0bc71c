// The jobs of a site: the leader decides (leadership/reign.ts), every node shows what is applied. The log and the leadership are
// the servers' own, or a database's.

import { TenureError } from "../../core/kit/errors.ts";
import { VIEWS_WAIT_MS } from "../../core/kit/timeouts.ts";
import type { CommandOf, JobsAnswers, JobsCommandKind, TakenJob } from "../../core/jobs/index.ts";
import type { Job, JobSpec, PendingReason, Schedule } from "../../core/jobs/model.ts";
import type { Digest } from "../../ports/digest.ts";
import type {
  AgentView,
  DrainedBy,
  FoundJob,
  Jobs,
  JobsStats,
  LeaseAnswer,
  LeaseCall,
  NamesPage,
  QueueView,
  Request,
  ResultAnswer,
  ResultCall,
  ScheduleView,
} from "../../ports/jobs.ts";
import type { DeliveredJob, JobsDelivery } from "../../ports/transactions.ts";
import type { JobRow } from "../../ports/views.ts";
import type { JournalReign } from "../journal/journal-reign.ts";
import type { JournalService } from "../journal/service.ts";
import { type Found, JobFinder } from "./finder.ts";
import { JobsReign, type JobsReignOptions } from "./jobs-reign.ts";
import { LeaseSecrets } from "./lease-secrets.ts";
import type { Door } from "../leadership/reign.ts";
import { DELIVERED_CHARS_MAX, DELIVERED_JOBS_MAX, FOUND_LOOKS_MAX, TIME_POLL_MS } from "./limits.ts";
import { Pace } from "./pace.ts";

export interface JobsServiceOptions extends Omit<JobsReignOptions, "reign" | "onStale" | "leaseHash"> {
  readonly journal: JournalService;
  readonly digest: Digest;
  /** Why nothing new is taken (no room is left, for instance); null: it is. Results, renewals and cancels always are. */
  readonly refusesNew: () => TenureError | null;
  /** A finished job that is not in memory any more, in the views here. */
  readonly find: (jobId: string) => Promise<JobRow>;
  /** This node's own worker, which was killed before this node leads: its jobs are handed back first of all. */
  readonly worker?: string | undefined;
}

export class JobsService implements Jobs, JobsDelivery {
  readonly #options: JobsServiceOptions;
  readonly #secrets: LeaseSecrets;
  readonly #pace: Pace;
  readonly #finder: JobFinder;
  readonly #reign: Door<JobsReign>;
  #staleRejected = 0;
  /** Of the last call. */
  #delivery: Promise<void> = Promise.resolve();

  constructor(options: JobsServiceOptions) {
    this.#options = options;
    this.#secrets = new LeaseSecrets(options.digest);
    this.#pace = new Pace(options.clock);
    const { clock, fold, journal, find } = options;
    this.#finder = new JobFinder({ book: fold.book, clock, find });
    this.#reign = journal.serve((reign) => this.#begin(reign));
    fold.follow(({ event }) => this.#reign.current?.applied(event));
  }

  /** Agents that wait for work here. */
  get waiting(): number {
    return this.#reign.current?.waiting ?? 0;
  }

  // ---- what the leader decides ---------------------------------------------------------------------

  async submit(request: Request, specs: readonly JobSpec[]): Promise<readonly string[]> {
    const turn = this.#pace.turn(specs.length);
    if (turn !== null) await turn;
    const reign = this.#reign.now() ?? (await this.#reign.next());
    if (!this.#remembers(request)) this.#admitNew();
    return (await reign.run<"submit">({ kind: "submit", request, specs })).jobIds;
  }

  async cancel(request: Request, jobId: string): Promise<Job> {
    // A finished one may be in the views alone: it is refused as such.
    return this.#runFound("cancel", request, jobId);
  }

  async retry(request: Request, jobId: string): Promise<Job> {
    return this.#runFound("retry", request, jobId);
  }

  async lease(call: LeaseCall, signal: AbortSignal): Promise<LeaseAnswer> {
    const turn = this.#pace.turn(call.max);
    if (turn !== null) await turn;
    const reign = this.#reign.now() ?? (await this.#reign.next());
    return this.#secrets.shown(await reign.lease(this.#secrets.hidden(call), signal), call);
  }

  async results(session: string, results: readonly ResultCall[]): Promise<readonly ResultAnswer[]> {
    const turn = this.#pace.turn(results.length);
    if (turn !== null) await turn;
    const reign = this.#reign.now() ?? (await this.#reign.next());
    const secrets = this.#secrets;
    return (await reign.results(secrets.sessionHash(session), secrets.hiddenResults(results))).answers;
  }

  async removeAgent(request: Request, name: string): Promise<void> {
    await this.#run<"remove-agent">({ kind: "remove-agent", request, name });
  }

  async drainAgent(request: Request, name: string, draining: boolean): Promise<void> {
    await this.#run<"drain-agent">({ kind: "drain-agent", request, name, draining });
  }

  async pauseQueue(request: Request, queue: string, paused: boolean): Promise<void> {
    await this.#run<"pause-queue">({ kind: "pause-queue", request, queue, paused });
  }

  async putSchedule(request: Request, schedule: Schedule): Promise<void> {
    // A cron or a zone that nobody can read is refused before it is written down.
    this.#options.nextFire(schedule.cron, schedule.timeZone, this.#options.journal.time.wallMs());
    const reign = await this.#servingInTime();
    await reign.run<"put-schedule">({ kind: "put-schedule", request, schedule });
  }

  async deleteSchedule(request: Request, name: string): Promise<void> {
    await this.#run<"delete-schedule">({ kind: "delete-schedule", request, name });
  }

  /** The cluster is paused no longer. */
  resumed(): void {
    this.#reign.current?.resumed();
  }

  setDraining(draining: boolean, by: DrainedBy = "operator"): void {
    this.#reign.serving().setDraining(draining, by);
  }

  isDraining(): boolean {
    return this.#reign.current?.isDraining ?? false;
  }

  /** Submitted in the database, and gone there when this resolves. */
  async take(jobs: readonly TakenJob[]): Promise<void> {
    const reign = this.#reign.now() ?? (await this.#reign.next());
    this.#admitNew();
    await reign.run<"take">({ kind: "take", jobs });
  }

  /**
   * Jobs of transactions over islands. One call after the other: where one is refused, those that wait after it are refused with it, because
   * what comes later must not overtake. Also while the cluster is paused, as `submit`: the jobs only wait, and nothing is given.
   */
  deliver(jobs: readonly DeliveredJob[]): Promise<void> {
    const delivered = this.#delivery.then(() => this.#deliverAll(jobs));
    this.#delivery = delivered;
    // Whoever comes after all of them have ended begins anew.
    const ended = (): void => {
      if (this.#delivery === delivered) this.#delivery = Promise.resolve();
    };
    delivered.then(ended, ended);
    return delivered;
  }

  /** In appends of bounded size. What was written before one is refused stays: the rest is given once more. */
  async #deliverAll(jobs: readonly DeliveredJob[]): Promise<void> {
    const reign = this.#reign.now() ?? (await this.#reign.next());
    for (const part of partsOf(jobs)) {
      this.#admitNew();
      await reign.run<"deliver">({ kind: "deliver", jobs: part });
    }
  }

  async #run<Kind extends JobsCommandKind>(command: CommandOf<Kind>): Promise<JobsAnswers[Kind]> {
    return (this.#reign.now() ?? (await this.#reign.next())).run<Kind>(command);
  }

  /** Before the time of day is known, what begins now would begin when the last event was, days ago perhaps. */
  async #servingInTime(): Promise<JobsReign> {
    const { clock } = this.#options;
    for (;;) {
      const reign = this.#reign.now() ?? (await this.#reign.next());
      if (reign.isTimeSettled) return reign;
      await new Promise<void>((resume) => void clock.setTimer(clock.monotonicMs() + TIME_POLL_MS, resume));
    }
  }

  #admitNew(): void {
    const refusal = this.#options.refusesNew();
    if (refusal !== null) throw refusal;
  }

  /** It was answered before, under its key, and needs neither room nor a look at the job. */
  #remembers(request: Request): boolean {
    return this.#options.fold.book.remembers(request, this.#times());
  }

  /** Decides on the job as the book has it, or on one that the views have and the book can't have had since. */
  async #runFound(kind: "cancel" | "retry", request: Request, jobId: string): Promise<Job> {
    const untilMs = this.#viewsUntilMs();
    for (let look = 0; look < FOUND_LOOKS_MAX; look++) {
      const reign = this.#reign.now() ?? (await this.#reign.next());
      // Answered by its key, in this turn: nothing rests on the job.
      if (this.#remembers(request)) return this.#runShown(reign, { kind, request, jobId, job: null });
      if (kind === "retry") this.#admitNew();
      const { job, position, mayBeOlder } = await this.#found(jobId, "head", untilMs, NOTHING_DONE);
      if (this.#reign.now() !== reign) continue;
      // Its epochs and attempts since are not known here, and must not be given twice. A cancel is refused with its end, whichever it was.
      if (kind === "retry" && mayBeOlder && !this.#options.fold.book.known(jobId)) throw endNotCertain(jobId);
      // It may have been sent once more, ended and been dropped while the views were asked.
      if (this.#options.fold.book.known(jobId) || this.#finder.counts(position, "head")) {
        return this.#runShown(reign, { kind, request, jobId, job });
      }
    }
    throw viewsBehind(NOTHING_DONE);
  }

  #viewsUntilMs(): number {
    return this.#options.clock.monotonicMs() + VIEWS_WAIT_MS;
  }

  async #found(jobId: string, look: "applied" | "head", untilMs: number, otherwise: string): Promise<Found> {
    const found = await this.#finder.find(jobId, look, untilMs);
    if (found.kind === "behind") throw viewsBehind(otherwise);
    return found;
  }

  /** As the job is when the answer leaves; where the book has dropped it meanwhile, as it was decided to be, or was found. */
  async #runShown(reign: JobsReign, command: CommandOf<"cancel" | "retry">): Promise<Job> {
    const { jobId } = command;
    const decided = await reign.runShown(command);
    const job =
      this.job(jobId) ?? decided ?? (await this.#found(jobId, "applied", this.#viewsUntilMs(), SHOWN_LATER)).job;
    if (job !== null) return job;
    throw new TenureError(
      "NOT_FOUND",
      `This request was done before, under its key. Job ${jobId} was forgotten since, so there is nothing to show of it.`,
    );
  }

  // ---- what every node shows -----------------------------------------------------------------------

  job(jobId: string): Job | null {
    return this.#options.fold.book.applied.job(jobId);
  }

  find(jobId: string, waitMs: number): Promise<FoundJob> {
    return this.#finder.find(jobId, "applied", this.#options.clock.monotonicMs() + waitMs);
  }

  loggedUpTo(jobId: string): number {
    return this.#options.fold.book.loggedUpTo(jobId);
  }

  whyPending(jobId: string): PendingReason | null {
    const { fold, isPaused } = this.#options;
    const why = fold.book.applied.whyPending(jobId, this.#times(), this.isDraining());
    return why !== null && isPaused?.() === true ? { reason: "cluster-paused" } : why;
  }

  /** Who does not lead knows what has passed here since the last event. */
  #times(): JobsReign["times"] {
    const reign = this.#reign.current;
    if (reign !== null) return reign.times;
    const { time } = this.#options.journal;
    return { nowMs: time.witnessedMs(), skippedMs: 0, wallMs: time.wallMs() };
  }

  agents(page?: NamesPage): readonly AgentView[] {
    return this.#options.fold.book.applied.agents(page);
  }

  queues(page?: NamesPage): readonly QueueView[] {
    return this.#options.fold.book.applied.queues(page);
  }

  schedules(page?: NamesPage): readonly ScheduleView[] {
    const { fold, nextFire } = this.#options;
    return fold.book.applied.schedules(({ cron, timeZone }, afterMs) => {
      try {
        return nextFire(cron, timeZone, afterMs);
      } catch {
        // A zone that this node does not know: shown without a next time, and the others as they are.
        return null;
      }
    }, page);
  }

  stats(): JobsStats {
    return { ...this.#options.fold.book.applied.stats(), staleRejected: this.#staleRejected };
  }

  // ---- leadership ----------------------------------------------------------------------------------

  #begin(of: JournalReign): JobsReign {
    const reign = new JobsReign({
      ...this.#options,
      reign: of,
      leaseHash: (leaseId) => this.#secrets.leaseHash(leaseId),
      onStale: () => this.#staleRejected++,
    });
    const { worker } = this.#options;
    // Decided in this turn, before anybody else asks. Where that fails, their leases end by themselves.
    if (worker !== undefined) void reign.run<"hand-back">({ kind: "hand-back", name: worker }).catch(() => undefined);
    return reign;
  }
}

function partsOf(jobs: readonly DeliveredJob[]): DeliveredJob[][] {
  const parts: DeliveredJob[][] = [];
  let chars = Infinity;
  for (const job of jobs) {
    const size = JSON.stringify(job.spec).length;
    if (chars + size > DELIVERED_CHARS_MAX || parts.at(-1)!.length >= DELIVERED_JOBS_MAX) {
      parts.push([]);
      chars = 0;
    }
    parts.at(-1)!.push(job);
    chars += size;
  }
  return parts;
}

const NOTHING_DONE = "Nothing was done; retry in a moment.";
const SHOWN_LATER = "This request was done before; repeat it with the same key in a moment to see the job.";

function viewsBehind(then: string): TenureError {
  const why = "The job is not in memory any more, and this node's views of finished jobs are behind.";
  return new TenureError("OVERLOADED", `${why} ${then}`);
}

function endNotCertain(jobId: string): TenureError {
  const text = `Job ${jobId} had ended before events that no member has, and may have been run once more in them, so it can't be sent once more. Nothing was done: submit it as a new job.`;
  return new TenureError("EVENTS_LOST", text);
}
