// One leadership over the jobs: from the moment in which this node may act in an epoch to its end. Nothing of it outlives
// it: the next leader counts every lease anew.
// What is written, and when a caller is answered: journal/journal-reign.ts.
//
// What agents ask for is in leasing.ts: a job is given to one that waits in the turn in which it became ready, so that
// submitted and assigned may be one append.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { StoredEvent } from "../../core/events/index.ts";
import {
  type CommandOf,
  decide,
  type DecideContext,
  type JobsAnswers,
  type JobsCommandKind,
} from "../../core/jobs/index.ts";
import type { Job } from "../../core/jobs/model.ts";
import type { Clock } from "../../ports/clock.ts";
import type { DrainedBy, LeaseAnswer, LeaseCall, Request } from "../../ports/jobs.ts";
import type { JournalReign } from "../journal/journal-reign.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { type Decided, JobsLeasing } from "./leasing.ts";
import { JobsRetention, type JobsRetentionOptions } from "./retention.ts";
import { checkLeaderEpoch } from "../leadership/leader-epoch.ts";
import { JobsTimers } from "./timers.ts";

export interface JobsReignOptions {
  /** That this is a part of. */
  readonly reign: JournalReign;
  readonly fold: SiteJournal;
  readonly clock: Clock;
  readonly random: Random;
  /** Of leases and events. */
  readonly newId: () => string;
  readonly newJobId: () => string;
  /** What is known here of a lease: see LeaseSecrets. */
  readonly leaseHash: (leaseId: string) => string;
  /** The first time of a schedule after this one; null: never. */
  readonly nextFire: (cron: string, timeZone: string, afterMs: number) => number | null;
  /** Of the views here: see JobsRetention. */
  readonly expired: JobsRetentionOptions["expired"];
  /** The cluster is paused: nothing is given, fired or ended by the passing of time. */
  readonly isPaused?: (() => boolean) | undefined;
  /** A result of an earlier attempt was refused. */
  readonly onStale: () => void;
}

export class JobsReign {
  readonly #options: JobsReignOptions;
  readonly #fold: SiteJournal;
  readonly #reign: JournalReign;
  readonly #leasing: JobsLeasing;
  readonly #timers: JobsTimers;
  readonly #retention: JobsRetention;
  readonly #context: DecideContext;

  constructor(options: JobsReignOptions) {
    const { reign, clock, random, newId, newJobId, fold } = options;
    const { time } = reign;
    this.#options = options;
    this.#fold = fold;
    this.#reign = reign;
    this.#context = {
      get nowMs() {
        return reign.nowMs;
      },
      get skippedMs() {
        return reign.skippedMs;
      },
      get wallMs() {
        return Math.max(1, time.wallMs());
      },
      leaderEpoch: reign.epoch,
      newId,
      newJobId,
      leaseHash: options.leaseHash,
      random: () => random.next(),
    };
    const around = { clock, fold, context: this.#context };
    const isPaused = options.isPaused ?? (() => false);
    const leads = (): boolean => reign.leads && !isPaused();
    this.#leasing = new JobsLeasing({
      ...around,
      timers: () => this.#timers,
      isFull: () => reign.isFull || isPaused(),
      decide: <Kind extends JobsCommandKind>(command: CommandOf<Kind>) => this.#decide<Kind>(command),
      confirmed: () => reign.confirmed(),
    });
    this.#timers = new JobsTimers({
      // Schedules go by the time of day, and by no clock that is not believed.
      clock: {
        monotonicMs: () => clock.monotonicMs(),
        setTimer: (atMs, fire) => clock.setTimer(atMs, fire),
        wallMs: () => time.wallMs(),
      },
      fold,
      nextFire: options.nextFire,
      leads,
      run: (command) => void this.run(command).catch(() => undefined),
      readyInMs: () => (this.#leasing.isWanting ? fold.book.readyInMs(this.#context) : Infinity),
      ready: () => this.#leasing.handOut(),
    });
    const forget = (jobIds: readonly string[]): Promise<unknown> => this.run<"forget">({ kind: "forget", jobIds });
    this.#retention = new JobsRetention({ ...around, expired: options.expired, leads, forget });
    reign.watch({
      takenBack: (events) => this.#timers.takenBack(events.map(({ event }) => event)),
      settled: (isKept) => this.#leasing.settled(isKept),
      ended: () => {
        this.#timers.end();
        this.#retention.end();
        this.#leasing.end();
      },
    });
  }

  /** What this leader decides by now. */
  get times(): Pick<DecideContext, "nowMs" | "skippedMs" | "wallMs"> {
    const { nowMs, skippedMs, wallMs } = this.#context;
    return { nowMs, skippedMs, wallMs };
  }

  get isTimeSettled(): boolean {
    return this.#reign.isTimeSettled;
  }

  get waiting(): number {
    return this.#leasing.waiting;
  }

  get isDraining(): boolean {
    return this.#leasing.isDraining;
  }

  setDraining(draining: boolean, by: DrainedBy): void {
    this.#leasing.setDraining(draining, by);
  }

  /** It is paused no longer: leases begin as under a new leader, and whoever waits is given what is ready. */
  resumed(): void {
    this.#timers.recount();
    this.#leasing.handOut();
  }

  /** An event was applied here, whoever wrote it. */
  applied(event: StoredEvent): void {
    if (!this.#reign.isOver) this.#timers.applied(event);
  }

  // ---- commands ------------------------------------------------------------------------------------

  async run<Kind extends JobsCommandKind>(command: CommandOf<Kind>): Promise<JobsAnswers[Kind]> {
    const decided = this.#decide<Kind>(command);
    if (decided.kind === "refused") {
      await this.#reign.confirmed();
      throw decided.error;
    }
    await (decided.written ?? this.#reign.confirmed());
    return decided.answer;
  }

  /** As `run`, and the job as it was decided to be: by the time the answer leaves the book may have dropped it. */
  async runShown(command: CommandOf<"cancel" | "retry">): Promise<Job | null> {
    const decided = this.run(command);
    // It was decided in this turn: the head is what it made.
    const job = this.#fold.book.head.job(command.jobId);
    await decided;
    return job;
  }

  /** Decides and proposes, in this turn. */
  #decide<Kind extends JobsCommandKind>(command: CommandOf<Kind>): Decided<JobsAnswers[Kind]> {
    if (this.#reign.isOver) throw this.#reign.notLeader();
    if ("request" in command) this.#checkEpoch(command.request);
    // Of one moment: the time is read once.
    const context = { ...this.#context };
    const decision = decide<Kind>(this.#fold.book, command, context);
    if (decision.kind === "refused") {
      return { kind: "refused", error: new TenureError(decision.code, decision.message) };
    }
    const { drafts, answer } = decision;
    if (drafts.length === 0) return { kind: "decided", written: null, answer };
    const isFull = OF_WORK_THAT_GOES_ON.has(command.kind) ? this.#reign.isFullForAll : this.#reign.isFull;
    if (isFull) throw overloaded("too many appends wait to be committed");
    const tell = this.#leasing.concerned(command);
    const written = this.#reign.write(drafts, context, isTake(command) ? command.jobs.map(({ id }) => id) : []);
    tell();
    return { kind: "decided", written, answer };
  }

  /** What was done in an earlier epoch is answered as it was then: that its epoch is over is no news about it. */
  #checkEpoch(request: Request): void {
    const { leaderEpoch: named } = request;
    const isOver = named !== undefined && named < this.#reign.epoch;
    if (isOver && this.#fold.book.remembers(request, this.#context)) return;
    checkLeaderEpoch(named, this.#reign.epoch);
  }

  // ---- agents --------------------------------------------------------------------------------------

  lease(call: LeaseCall, signal: AbortSignal): Promise<LeaseAnswer> {
    checkLeaderEpoch(call.leaderEpoch, this.#reign.epoch);
    return this.#leasing.lease(call, signal);
  }

  async results(session: string, results: CommandOf<"results">["results"]): Promise<JobsAnswers["results"]> {
    const answer = await this.run<"results">({ kind: "results", session, results });
    for (const one of answer.answers) if (!one.ok && one.code === "STALE_EPOCH") this.#options.onStale();
    return answer;
  }
}

/** There is room for these where there is none for new work: without them what goes on would not end. */
const OF_WORK_THAT_GOES_ON: ReadonlySet<JobsCommandKind> = new Set<JobsCommandKind>([
  "cancel",
  "lease",
  "take-back",
  "report",
  "results",
  "remove-agent",
  "drain-agent",
  "hand-back",
]);

function isTake(command: { readonly kind: JobsCommandKind }): command is CommandOf<"take"> {
  return command.kind === "take";
}

function overloaded(why: string): TenureError {
  return new TenureError("OVERLOADED", `${why}. Nothing was done; retry in a moment.`);
}
