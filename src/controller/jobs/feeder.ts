// Feeds the views from the applied log (design D10): which jobs have changed, what was logged, what is forgotten. One put is
// under way at a time; what changes meanwhile goes with the next one, once, however often it changed.
//
//   beginning: where are the views? ──▶ feeding ──a put fails, a snapshot is restored, the views are lost──▶ beginning
//
// Feeding: first all that the book has, in the order of submission, then what was missed and is in the history alone
// (replay.ts), and with both of them what changes meanwhile. Only then do the views have a new position: until it stands
// there, they may show less than there is, and say so.
//
// A node that starts again applies once more what its views had before: until it is where they are, nothing changes for them.
//
// What no member has any more of the history is passed over, and the views remember that: when a copy turns up, they are built
// anew. So are views of another history (trap 82), as of a disk that was restored without them: the hash at their position differs. Views that
// are ahead of what is applied here are compared when that is applied, or are of another history because nothing more was ever committed.
//
// What waits here is bounded: where the views can't keep up, all of it is dropped, and comes from book and history later. While
// the book is gone through, a change of a job that comes later in it does not wait: it is told as it is then.

import type { EventRange } from "../../core/archive/index.ts";
import type { StoredEvent } from "../../core/events/index.ts";
import type { Job } from "../../core/jobs/model.ts";
import { Shards } from "../../core/kit/keyed/shards.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Views, ViewsHole, ViewsHoles } from "../../ports/views.ts";
import { type Changes, isFinal, JobChanges } from "./changes.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import * as limits from "./limits.ts";
import { replayedChanges, type ReplayHistory } from "./replay.ts";
import { Slice } from "../slice.ts";

export interface JobsFeederOptions {
  readonly fold: SiteJournal;
  readonly views: Pick<Views, "position" | "put" | "doubt" | "trust" | "holes" | "line">;
  /** Null: there is none; what the book has dropped is not shown. */
  readonly history: ReplayHistory | null;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly jobsWaitingMax?: number | undefined;
  /** Jobs of one put. */
  readonly putJobsMax?: number | undefined;
}

export class JobsFeeder {
  readonly #options: JobsFeederOptions;
  readonly #stops: readonly (() => void)[];
  readonly #changes: JobChanges;
  readonly #putJobsMax: number;
  /** The book is gone through: up to this number its jobs were put. Null: it was, or need not be. */
  #sweptTo: number | null = null;
  /** What was missed, after what the views have and up to where it began: it is in the history. */
  #gap: { readonly after: number; readonly through: number } | null = null;
  #replay: AsyncGenerator<Changes, readonly ViewsHole[], void> | null = null;
  /** Jobs that were finished or forgotten since: what the history says of them is old. */
  readonly #newer = new Shards<true>();
  #historyTimer: Timer | null = null;
  /** Why the history could not be read, as it was logged last. */
  #historyProblem: string | null = null;
  /** What the views were built without. */
  #holes: readonly ViewsHole[] = [];
  #isInDoubt = false;
  #position = 0;
  /** Grows with each beginning: what was under way then is not gone on with. */
  #beginnings = 0;
  /** Where the views are is not known yet: nothing is put, because the position would pass over what they have missed. */
  #isBeginning = true;
  /** The views are ahead of what is applied here: the event that they have seen last. */
  #ahead: { readonly position: number; readonly line: string } | null = null;
  /** Everything that was committed before is applied here. */
  #isCaughtUp = false;
  #isPutting = false;
  /** There was no time for all that has changed. */
  #isCut = false;
  #retry: Timer | null = null;
  /** Ends a rest before its time. */
  #wake: () => void = () => undefined;
  #isClosed = false;

  constructor(options: JobsFeederOptions) {
    this.#options = options;
    this.#putJobsMax = options.putJobsMax ?? limits.PUT_JOBS_MAX;
    this.#changes = new JobChanges((jobId) => options.fold.book.applied.job(jobId));
    this.#stops = [
      options.fold.follow(({ event }) => this.#applied(event)),
      options.fold.onRestored(() => void this.#begin()),
    ];
    void this.#begin();
  }

  /** Up to here the views have everything, as far as it is known here. */
  get position(): number {
    return this.#position;
  }

  /** Changes that the views do not have yet. */
  get waiting(): number {
    return this.#changes.size;
  }

  /** The views have lost what they had, or a part of it. */
  restart(): void {
    if (!this.#isClosed && this.#retry === null) void this.#begin();
  }

  /** This node leads, so that everything that was committed before is applied here: views that are ahead of that are of another history. */
  caughtUp(): void {
    this.#isCaughtUp = true;
    if (this.#position > this.#options.fold.chain.sequence) this.restart();
  }

  /** Something was found to be lost, or is here: again, or for the first time. */
  historyChanged(): void {
    if (this.#isClosed || this.#isBeginning) return;
    if (this.#isRepaired) this.restart();
    else if (this.#historyTimer !== null && this.#isReadable) this.#readAgain();
  }

  /** All that is missing is lost. A replay that has to wait for more would begin with every segment that comes. */
  get #isReadable(): boolean {
    const { history } = this.#options;
    const lost = history?.lost?.() ?? [];
    const missing = history?.missing?.() ?? [];
    return missing.every(({ first, last }) => lost.some((range) => range.first <= first && last <= range.last));
  }

  /** Some of what the views were built without is here. */
  get #isRepaired(): boolean {
    const { history } = this.#options;
    const missing = history?.missing?.() ?? [];
    const start = history?.stats().startSequence ?? 0;
    return this.#holes.some((hole) => hole.first > start && !missing.some((range) => overlap(range, hole)));
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    this.#retry?.cancel();
    this.#endReplay();
    this.#wake();
  }

  async #begin(): Promise<void> {
    const beginning = ++this.#beginnings;
    const { fold, views, history } = this.#options;
    this.#isBeginning = true;
    this.#sweptTo = null;
    this.#gap = null;
    this.#endReplay();
    this.#wake();
    try {
      let position = await views.position();
      if (views.holes !== undefined) position = await this.#rebuilt(views.holes, position);
      if (beginning !== this.#beginnings) return;
      const { sequence: through, timestamp } = fold.chain;
      this.#position = position;
      this.#isInDoubt = position > 0 && position < fold.book.droppedUpTo;
      if (position < through) this.#sweptTo = 0;
      if (position < through && history !== null) this.#gap = { after: position, through };
      this.#startReplay();
      if (this.#isInDoubt) await views.doubt(Math.floor(timestamp));
      else await views.trust();
    } catch (error) {
      if (beginning === this.#beginnings) this.#failed(error);
      return;
    }
    if (beginning !== this.#beginnings) return;
    // What was noted meanwhile they have, in the state that it had in the end. Otherwise all of it was noted, and is complete.
    if (fold.chain.sequence <= this.#position) this.#changes.clear();
    this.#isBeginning = false;
    // It may have turned up since the holes were looked at.
    if (this.#isRepaired) this.restart();
    else this.#putSoon();
  }

  /** Views of another history, or that were built without events that are here again, begin anew. */
  async #rebuilt(holes: ViewsHoles, position: number): Promise<number> {
    const { views, logger } = this.#options;
    this.#holes = await holes.read();
    let why = "they were built without events that are here again";
    if (!this.#isRepaired) {
      if (await this.#isOfHistory(position)) return position;
      why = "what they have shown is not in the log: they are of another history";
    }
    logger.info({ event: "views" }, `the views are built anew: ${why}`);
    await holes.rebuild(why);
    this.#holes = [];
    this.#ahead = null;
    return views.position();
  }

  /** Whether the last event that the views have seen is the one of that sequence here; where that is not known, it is. */
  async #isOfHistory(position: number): Promise<boolean> {
    const { fold, views, history } = this.#options;
    const line = (await views.line?.()) ?? null;
    const { sequence, hash } = fold.chain;
    this.#ahead = line !== null && position > sequence ? { position, line } : null;
    if (position > sequence) return !this.#isCaughtUp;
    if (position === 0 || line === null) return true;
    if (position === sequence) return line === hash;
    if (history === null || position <= history.stats().startSequence) return true;
    if (history.missing?.().some(({ first, last }) => first <= position && position <= last) === true) return true;
    for await (const [event] of history.read(position, 1)) {
      return event?.sequence !== position || event.eventHash === undefined || event.eventHash === line;
    }
    return true;
  }

  #startReplay(): void {
    const { fold, history, clock } = this.#options;
    this.#newer.clear();
    if (this.#gap === null || history === null) return;
    const isNewer = (jobId: string): boolean => this.#newer.has(jobId);
    this.#replay = replayedChanges({ history, fold, clock, ...this.#gap, changesMax: this.#putJobsMax, isNewer });
  }

  #endReplay(): void {
    this.#historyTimer?.cancel();
    this.#historyTimer = null;
    void this.#replay?.return([]);
    this.#replay = null;
  }

  #applied(event: StoredEvent): void {
    if (event.sequence === this.#ahead?.position && this.#options.fold.chain.hash !== this.#ahead.line) this.restart();
    if (!this.#isBeginning && event.sequence <= this.#position) return;
    if (!this.#comesLater(event)) this.#changes.note(event);
    if (this.#gap !== null && mayLeaveTheBook(event)) this.#newer.set(event.entityId, true);
    const { jobsWaitingMax = limits.JOBS_WAITING_MAX } = this.#options;
    if (this.#changes.jobs > jobsWaitingMax || this.#changes.logChars > limits.LOG_CHARS_WAITING_MAX) {
      this.#changes.clear();
      this.restart();
    } else this.#putSoon();
  }

  /** While the book is gone through, and is not there yet. What is finished may be gone from it by then. */
  #comesLater(event: StoredEvent): boolean {
    const { eventType, entityId } = event;
    // Where the views are is not known yet while they begin: maybe before all of it.
    const sweptTo = this.#isBeginning ? 0 : this.#sweptTo;
    if (sweptTo === null || event.entityType !== "build" || mayLeaveTheBook(event)) return false;
    const number = this.#options.fold.book.applied.numberOf(entityId);
    if (number === null || number <= sweptTo) return false;
    // Its log must not come before it.
    if (eventType === "build:log") this.#changes.mark(entityId);
    if (this.#isBeginning) return false;
    return eventType !== "build:log" && !this.#changes.has(entityId);
  }

  /** Also where nothing of theirs has changed: their position moves on. */
  get #isBehind(): boolean {
    // What the book has would be older than what they have.
    if (this.#options.fold.chain.sequence < this.#position) return false;
    if (this.waiting > 0 || this.#sweptTo !== null || this.#replay !== null) return true;
    return this.#gap === null && this.#position < this.#options.fold.chain.sequence;
  }

  get #isMoreWaiting(): boolean {
    return this.#isCut || this.#changes.jobs >= this.#putJobsMax || this.#sweptTo !== null || this.#replay !== null;
  }

  #rested(): Promise<void> {
    const { clock } = this.#options;
    return new Promise((resolve) => {
      const timer = clock.setTimer(clock.monotonicMs() + limits.VIEWS_REST_MS, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #putSoon(): void {
    if (this.#isBeginning || this.#isPutting || this.#isClosed || this.#retry !== null) return;
    this.#isPutting = true;
    void Promise.resolve().then(() => this.#feed());
  }

  async #feed(): Promise<void> {
    const beginning = this.#beginnings;
    try {
      while (!this.#isClosed && beginning === this.#beginnings && this.#isBehind) {
        if (this.#sweptTo === null && this.#replay !== null) await this.#putMissed(this.#replay);
        if (beginning !== this.#beginnings) break;
        await this.#put();
        if (!this.#isMoreWaiting) await this.#rested();
      }
      this.#isPutting = false;
      if (beginning !== this.#beginnings || this.#isBehind) this.#putSoon();
    } catch (error) {
      this.#isPutting = false;
      if (beginning === this.#beginnings) this.#failed(error);
      else this.#putSoon();
    }
  }

  async #put(): Promise<void> {
    const { fold, views, clock } = this.#options;
    const beginning = this.#beginnings;
    const slice = new Slice(clock);
    const changes = this.#changes.take(this.#putJobsMax, slice);
    this.#isCut = this.#changes.jobs > 0;
    const jobs = [...changes.jobs, ...this.#sweptJobs(this.#putJobsMax - changes.jobs.length, slice)];
    // Not all that is applied is in it where more jobs wait: then it is as of before.
    const isAll = this.#changes.jobs === 0 && this.#sweptTo === null && this.#gap === null;
    const { sequence, hash } = fold.chain;
    const [position, line] = isAll ? [sequence, hash] : [this.#position, null];
    try {
      await views.put(position, jobs, changes.logs, changes.forgotten, { line, settles: isAll && this.#isInDoubt });
    } catch (error) {
      this.#changes.giveBack(changes);
      throw error;
    }
    if (beginning !== this.#beginnings) return;
    this.#position = position;
    if (isAll) this.#isInDoubt = false;
  }

  #sweptJobs(max: number, slice: Slice): Job[] {
    const jobs: Job[] = [];
    const { applied } = this.#options.fold.book;
    // What is in doubt there must be put again, or it goes.
    const had = this.#isInDoubt ? 0 : this.#position;
    while (this.#sweptTo !== null && jobs.length < max) {
      const walked = applied.behind(this.#sweptTo, had, Math.min(limits.WALKED_PER_LOOK, max - jobs.length));
      for (const id of walked.ids) {
        const job = applied.job(id);
        if (job !== null) jobs.push(job);
      }
      this.#sweptTo = walked.through;
      if (slice.isOver) break;
    }
    return jobs;
  }

  /** The next of what was missed. Where the history does not have it (yet), the rest goes on without. */
  async #putMissed(replay: AsyncGenerator<Changes, readonly ViewsHole[], void>): Promise<void> {
    let step: IteratorResult<Changes, readonly ViewsHole[]>;
    try {
      step = await replay.next();
    } catch (error) {
      if (replay === this.#replay) this.#historyFailed(error);
      return;
    }
    if (replay !== this.#replay) return;
    if (step.done === true) {
      if (step.value.length > 0) await this.#passedOver(step.value);
      if (replay !== this.#replay) return;
      // It may have turned up since this replay went over it.
      if (this.#isRepaired) return this.restart();
      this.#historyProblem = null;
      this.#endReplay();
      this.#gap = null;
      this.#newer.clear();
      return;
    }
    const { jobs, logs, forgotten } = step.value;
    await this.#options.views.put(this.#position, jobs, logs, forgotten, { isPast: true });
  }

  /** Durable before the views' position passes it. */
  async #passedOver(ranges: readonly ViewsHole[]): Promise<void> {
    const { views, logger } = this.#options;
    const text = "the views go on without events that no member has: jobs that changed in them may not be shown";
    for (const { first, last } of ranges) logger.warn({ event: "views", first, last }, text);
    if (views.holes === undefined) return;
    this.#holes = [...this.#holes.filter((hole) => !ranges.some((range) => overlap(range, hole))), ...ranges];
    await views.holes.write(this.#holes);
  }

  #historyFailed(error: unknown): void {
    const { clock, logger } = this.#options;
    const problem = String(error);
    const text = "what the views have missed is not in the history yet; it is tried again every few seconds";
    if (problem !== this.#historyProblem) logger.warn({ event: "views", error: problem, ...this.#gap }, text);
    this.#historyProblem = problem;
    this.#endReplay();
    this.#historyTimer = clock.setTimer(clock.monotonicMs() + limits.HISTORY_RETRY_MS, () => this.#readAgain());
  }

  #readAgain(): void {
    this.#endReplay();
    if (this.#gap !== null) this.#gap = { ...this.#gap, through: this.#options.fold.chain.sequence };
    this.#startReplay();
    this.#putSoon();
  }

  #failed(error: unknown): void {
    if (this.#isClosed) return;
    const { clock, logger } = this.#options;
    logger.error({ event: "views", error: String(error) }, "the views could not be fed; trying again from the book");
    this.#retry = clock.setTimer(clock.monotonicMs() + limits.VIEWS_RETRY_MS, () => {
      this.#retry = null;
      void this.#begin();
    });
  }
}

function overlap(one: EventRange, other: EventRange): boolean {
  return one.first <= other.last && other.first <= one.last;
}

/** The book keeps a job that is finished for a while, and one that is forgotten no more. */
function mayLeaveTheBook({ entityType, eventType }: StoredEvent): boolean {
  return entityType === "build" && (isFinal(eventType) || eventType === "build:forgotten");
}
