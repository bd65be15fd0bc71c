// One leadership over the jobs: from the moment in which this node may act in an epoch to its end. Nothing of it outlives
// it: the next leader counts every lease anew.
//
// Who is told what, and when (design D11):
// - What was decided, by events: when they are committed in this epoch.
// - What rests on the head without an event of its own (a refusal, a repetition, nothing to do): when the head is committed,
//   and nobody else can have led since it was asked. Otherwise OUTCOME_UNKNOWN, never a refusal.
//
// What agents ask for is in leasing.ts: a job is given to one that waits in the turn in which it became ready, so that
// submitted and assigned may be one append.

import { TenureError } from "../../core/kit/errors.ts";
import { CLOCK_SKIP_MS_MIN } from "../../core/kit/limits.ts";
import type { Random } from "../../core/kit/random.ts";
import type { EventDraft, StoredEvent } from "../../core/events/index.ts";
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
import type { Leadership } from "../../ports/leadership.ts";
import { EventTime, type NodeTime } from "../journal/event-time.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { type Decided, JobsLeasing } from "./leasing.ts";
import { JobsRetention, type JobsRetentionOptions } from "./retention.ts";
import { checkLeaderEpoch } from "../leadership/leader-epoch.ts";
import type { Serving } from "../leadership/reign.ts";
import { JobsTimers } from "./timers.ts";
import { JournalWriter, type JournalWriterOptions } from "../journal/writer.ts";

export interface JobsReignOptions extends Omit<
  JournalWriterOptions,
  "journal" | "onOver" | "onTakenBack" | "onSettled"
> {
  readonly fold: SiteJournal;
  readonly leadership: Leadership;
  readonly clock: Clock;
  readonly time: NodeTime;
  readonly random: Random;
  /** Of leases and events. */
  readonly newId: () => string;
  readonly newJobId: () => string;
  /** What is known here of a lease: see LeaseSecrets. */
  readonly leaseHash: (leaseId: string) => string;
  /** The first time of a schedule behind this one; null: never. */
  readonly nextFire: (cron: string, timeZone: string, afterMs: number) => number | null;
  /** Of the views here: see JobsRetention. */
  readonly expired: JobsRetentionOptions["expired"];
  /** The cluster is paused: nothing is given, fired or ended by the passing of time. */
  readonly isPaused?: (() => boolean) | undefined;
  /** A result of an earlier attempt was refused. */
  readonly onStale: () => void;
  readonly onOver: () => void;
}

export class JobsReign implements Serving {
  readonly epoch: number;
  readonly #options: JobsReignOptions;
  readonly #fold: SiteJournal;
  readonly #writer: JournalWriter;
  readonly #leasing: JobsLeasing;
  readonly #timers: JobsTimers;
  readonly #retention: JobsRetention;
  readonly #time: EventTime;
  readonly #beganMs: number;
  readonly #context: DecideContext;
  #isOver = false;

  constructor(options: JobsReignOptions) {
    const { clock, time: node, random, newId, newJobId, fold, epoch } = options;
    this.#options = options;
    this.#fold = fold;
    this.epoch = epoch;
    this.#writer = new JournalWriter({
      ...options,
      journal: fold,
      onOver: () => {
        this.end();
        options.onOver();
      },
      onTakenBack: (events) => this.#timers.takenBack(events.map(({ event }) => event)),
      onSettled: (isKept) => this.#leasing.settled(isKept),
    });
    const time = new EventTime(clock, node);
    this.#time = time;
    this.#beganMs = clock.monotonicMs();
    const skippedBeforeMs = fold.book.skippedMs;
    this.#context = {
      get nowMs() {
        return time.nowMs();
      },
      get skippedMs() {
        return Math.floor(skippedBeforeMs + time.skippedMs - fold.book.skippedMs);
      },
      get wallMs() {
        return Math.max(1, node.wallMs());
      },
      leaderEpoch: epoch,
      newId,
      newJobId,
      leaseHash: options.leaseHash,
      random: () => random.next(),
    };
    const around = { clock, fold, context: this.#context };
    const isPaused = options.isPaused ?? (() => false);
    const leads = (): boolean =>
      !this.#isOver && !this.#writer.isFull && !isPaused() && options.leadership.epoch() === epoch;
    this.#leasing = new JobsLeasing({
      ...around,
      timers: () => this.#timers,
      isFull: () => this.#writer.isFull || isPaused(),
      decide: <Kind extends JobsCommandKind>(command: CommandOf<Kind>) => this.#decide<Kind>(command),
      confirmed: () => this.#confirmed(),
    });
    this.#timers = new JobsTimers({
      // Schedules go by the time of day, and by no clock that is not believed.
      clock: {
        monotonicMs: () => clock.monotonicMs(),
        setTimer: (atMs, fire) => clock.setTimer(atMs, fire),
        wallMs: () => node.wallMs(),
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
  }

  /** What this leader decides by now. */
  get times(): Pick<DecideContext, "nowMs" | "skippedMs" | "wallMs"> {
    const { nowMs, skippedMs, wallMs } = this.#context;
    return { nowMs, skippedMs, wallMs };
  }

  /** What is dated by the time of day may be taken down: see NodeTime. */
  get isTimeSettled(): boolean {
    return this.#options.time.isSettled(this.#beganMs);
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

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timers.end();
    this.#retention.end();
    this.#writer.end();
    this.#leasing.end();
  }

  /** An event was applied here, whoever wrote it. */
  applied(event: StoredEvent): void {
    if (!this.#isOver) this.#timers.applied(event);
  }

  // ---- commands ------------------------------------------------------------------------------------

  async run<Kind extends JobsCommandKind>(command: CommandOf<Kind>): Promise<JobsAnswers[Kind]> {
    const decided = this.#decide<Kind>(command);
    if (decided.kind === "refused") {
      await this.#confirmed();
      throw decided.error;
    }
    await (decided.written ?? this.#confirmed());
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
    if (this.#isOver) throw this.#notLeader();
    if ("request" in command) this.#checkEpoch(command.request);
    // Of one moment: the time is read once.
    const context = { ...this.#context };
    const decision = decide<Kind>(this.#fold.book, command, context);
    if (decision.kind === "refused") {
      return { kind: "refused", error: new TenureError(decision.code, decision.message) };
    }
    const { drafts, answer } = decision;
    if (drafts.length === 0) return { kind: "decided", written: null, answer };
    const isFull = OF_WORK_THAT_GOES_ON.has(command.kind) ? this.#writer.isFullForAll : this.#writer.isFull;
    if (isFull) throw overloaded("too many appends wait to be committed");
    const tell = this.#leasing.concerned(command);
    const written = this.#write(drafts, context, isTake(command) ? command.jobs.map(({ id }) => id) : []);
    tell();
    return { kind: "decided", written, answer };
  }

  /** What was done in an earlier epoch is answered as it was then: that its epoch is over is no news about it. */
  #checkEpoch(request: Request): void {
    const { leaderEpoch: named } = request;
    const isOver = named !== undefined && named < this.epoch;
    if (isOver && this.#fold.book.remembers(request, this.#context)) return;
    checkLeaderEpoch(named, this.epoch);
  }

  /** For the journal's other tenants: `make` decides on applied state, so that one has to be over before the next. */
  async change(make: (context: DecideContext) => readonly EventDraft[]): Promise<void> {
    if (this.#isOver) throw this.#notLeader();
    let drafts: readonly EventDraft[];
    const context = { ...this.#context };
    try {
      drafts = make(context);
    } catch (error) {
      await this.#confirmed();
      throw error;
    }
    await (drafts.length === 0 ? this.#confirmed() : this.#write(drafts, context));
  }

  #write(drafts: readonly EventDraft[], context: DecideContext, taken: readonly string[] = []): Promise<void> {
    const written = this.#writer.write(withSkip(drafts, context), taken);
    this.#time.written();
    return written;
  }

  /** The head is committed, and nobody else has led since this was called. */
  async #confirmed(): Promise<void> {
    await this.#writer.settled();
    if (await this.#options.leadership.confirm()) {
      if (!this.#isOver) return;
    }
    if (this.#isOver) throw this.#notLeader();
    throw new TenureError(
      "OUTCOME_UNKNOWN",
      "It is not known whether this node still leads, so this answer may be out of date. Retry with the same idempotency key.",
    );
  }

  // ---- agents --------------------------------------------------------------------------------------

  lease(call: LeaseCall, signal: AbortSignal): Promise<LeaseAnswer> {
    checkLeaderEpoch(call.leaderEpoch, this.epoch);
    return this.#leasing.lease(call, signal);
  }

  async results(session: string, results: CommandOf<"results">["results"]): Promise<JobsAnswers["results"]> {
    const answer = await this.run<"results">({ kind: "results", session, results });
    for (const one of answer.answers) if (!one.ok && one.code === "STALE_EPOCH") this.#options.onStale();
    return answer;
  }

  #notLeader(): TenureError {
    return new TenureError("NOT_LEADER", `This node stopped leading (epoch ${this.epoch}). Ask the new leader.`);
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

/** The first event after a jump of the events' clock tells of it. One that is taken back takes its word along. */
function withSkip(drafts: readonly EventDraft[], { skippedMs }: DecideContext): readonly EventDraft[] {
  const [first, ...rest] = drafts;
  if (first === undefined || skippedMs < CLOCK_SKIP_MS_MIN) return drafts;
  return [{ ...first, payload: { ...first.payload, skippedMs } }, ...rest];
}

function isTake(command: { readonly kind: JobsCommandKind }): command is CommandOf<"take"> {
  return command.kind === "take";
}

function overloaded(why: string): TenureError {
  return new TenureError("OVERLOADED", `${why}. Nothing was done; retry in a moment.`);
}
