// The end of jobs' retention, on the leader: it asks the views which finished jobs have been kept for long enough, and has
// them forgotten, so many at a time.
//
//   resting ──▶ asking the views ──▶ forgetting, until it is committed ──▶ resting, shortly where there may be more
//
// The views of a node lag behind its log, and the book has dropped most of what they have. So an answer of theirs counts only
// where it is as of behind
// - everything that was applied when this leader began, and what it has forgotten itself: nothing is forgotten twice. That
//   rests on their position being true: they stand where they stood until what they missed is in (jobs-feeder.ts). Only
//   where the history that they missed was let go of may a job be forgotten once more, which changes nothing;
// - every end of a job that the book may have dropped: what the book does not have is then, for sure, finished as they say.
// What the book has is looked at there when it is decided. So lagging views delay the end of a retention, never bring it on.
//
// Nor does a clock: as in the archive, the earlier of the events' time and the time of day counts, and what the events' clock
// has jumped over since a job was finished counts for nothing (docs/decisions/0026).

import type { Clock, Timer } from "../ports/clock.ts";
import type { ExpiredJob, ExpiredJobs } from "../ports/views.ts";
import { JOBS_FORGOTTEN_PER_COMMAND_MAX } from "../core/kit/limits.ts";
import type { DecideContext } from "../core/jobs/index.ts";
import type { JobsFold } from "./jobs-fold.ts";

/** After a leader's begin: its views have to follow first. */
const FIRST_LOOK_MS = 1_000;
/** How late a job may be forgotten, about. */
const LOOK_MS = 10_000;
/** Between two batches: time for the views to follow. 10,000 jobs in a second, which is more than a leader finishes. */
const NEXT_BATCH_MS = 100;

export interface JobsRetentionOptions {
  readonly clock: Clock;
  readonly fold: JobsFold;
  readonly context: Pick<DecideContext, "nowMs" | "skippedMs" | "wallMs">;
  /** Of the views here. */
  readonly expired: (nowMs: number, limit: number) => Promise<ExpiredJobs>;
  /** Whether commands can be run at all now. */
  readonly leads: () => boolean;
  /** Resolves when it is committed. */
  readonly forget: (jobIds: readonly string[]) => Promise<unknown>;
}

export class JobsRetention {
  readonly #options: JobsRetentionOptions;
  /** An answer as of before it is out of date. */
  #knownFrom: number;
  #timer: Timer | null = null;
  #isOver = false;

  constructor(options: JobsRetentionOptions) {
    this.#options = options;
    this.#knownFrom = options.fold.chain.sequence;
    this.#rest(FIRST_LOOK_MS);
  }

  end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  #rest(forMs: number): void {
    if (this.#isOver) return;
    const { clock } = this.#options;
    this.#timer = clock.setTimer(clock.monotonicMs() + forMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    let forMs = LOOK_MS;
    try {
      if (await this.#forgetSome()) forMs = NEXT_BATCH_MS;
    } catch {
      // The views are away, or this leader is: whoever leads later finds the same jobs.
    }
    this.#rest(forMs);
  }

  /** True: there may be more. */
  async #forgetSome(): Promise<boolean> {
    const { fold, context, expired, leads, forget } = this.#options;
    if (!leads()) return false;
    const { jobs, position } = await expired(Math.min(context.nowMs, context.wallMs), JOBS_FORGOTTEN_PER_COMMAND_MAX);
    if (this.#isOver || !leads()) return false;
    const jobIds = jobs.filter((job) => this.#isWitnessed(job)).map(({ id }) => id);
    if (jobIds.length === 0) return false;
    // Soon, because they are behind by milliseconds as a rule.
    if (position < Math.max(this.#knownFrom, fold.book.droppedUpTo)) return true;
    await forget(jobIds);
    this.#knownFrom = fold.chain.sequence;
    return jobIds.length >= JOBS_FORGOTTEN_PER_COMMAND_MAX;
  }

  /** Its retention has passed before the eyes of leaders. */
  #isWitnessed({ finishedAtMs, expiresAtMs }: ExpiredJob): boolean {
    const { fold, context } = this.#options;
    return fold.book.witnessedMs(finishedAtMs, { ...context }) >= expiresAtMs - finishedAtMs;
  }
}
