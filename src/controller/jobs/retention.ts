// The end of jobs' retention, on the leader: it asks the views which finished jobs have been kept for long enough, page by page, and
// has them forgotten, so many at a time.
//
//   resting ──▶ asking the views for a page ──▶ forgetting, until it is committed ──▶ resting: shortly before the next page
//
// A round goes through all of them: those that stay for longer than the views say (below) hold up nobody after them.
//
// The views of a node lag behind its log, and the book has dropped most of what they have. So an answer of theirs counts only
// where it is as of behind
// - everything that was applied when this leader began, and what it has forgotten itself: nothing is forgotten twice. That
//   rests on their position being true: they stand where they stood until what they missed is in (feeder.ts). Only
//   where the history that they missed was released may a job be forgotten once more, which changes nothing;
// - every end of a job that the book may have dropped: what the book does not have is then, for sure, finished as they say.
// What the book has is looked at there when it is decided. So lagging views delay the end of a retention, never bring it on.
//
// Nor does a clock: as in the archive, the earlier of the events' time and the time of day counts, and what the events' clock
// has jumped over since a job was finished counts for nothing (docs/decisions/0026).

import type { Clock, Timer } from "../../ports/clock.ts";
import type { ExpiredJob, ExpiredJobs, ExpiredPlace } from "../../ports/views.ts";
import { JOBS_FORGOTTEN_PER_COMMAND_MAX } from "../../core/kit/limits.ts";
import type { DecideContext } from "../../core/jobs/index.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { RETENTION_CHECK_MS, RETENTION_FIRST_CHECK_MS, RETENTION_PAGE_JOBS_MAX, RETENTION_PAGE_MS } from "./limits.ts";

export interface JobsRetentionOptions {
  readonly clock: Clock;
  readonly fold: SiteJournal;
  readonly context: Pick<DecideContext, "nowMs" | "skippedMs" | "wallMs">;
  /** Of the views here. */
  readonly expired: (nowMs: number, limit: number, after: ExpiredPlace | null) => Promise<ExpiredJobs>;
  /** Whether commands can be run at all now. */
  readonly leads: () => boolean;
  /** Resolves when it is committed. */
  readonly forget: (jobIds: readonly string[]) => Promise<unknown>;
}

export class JobsRetention {
  readonly #options: JobsRetentionOptions;
  /** An answer as of before it is out of date. */
  #knownFrom: number;
  /** The last job of the page before; null: a round begins. */
  #after: ExpiredPlace | null = null;
  #timer: Timer | null = null;
  #isOver = false;

  constructor(options: JobsRetentionOptions) {
    this.#options = options;
    this.#knownFrom = options.fold.chain.sequence;
    this.#rest(RETENTION_FIRST_CHECK_MS);
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
    let forMs = RETENTION_CHECK_MS;
    try {
      if (await this.#lookAtPage()) forMs = RETENTION_PAGE_MS;
    } catch {
      // The views are away, or this leader is: whoever leads later finds the same jobs.
    }
    this.#rest(forMs);
  }

  /** True: there may be more. */
  async #lookAtPage(): Promise<boolean> {
    const { fold, context, expired, leads } = this.#options;
    if (!leads()) return false;
    const times = { ...context };
    const { jobs, position } = await expired(Math.min(times.nowMs, times.wallMs), RETENTION_PAGE_JOBS_MAX, this.#after);
    if (this.#isOver) return false;
    // Their retention has passed before the eyes of leaders.
    const isWitnessed = ({ finishedAtMs, expiresAtMs }: ExpiredJob): boolean =>
      fold.book.witnessedMs(finishedAtMs, times) >= expiresAtMs - finishedAtMs;
    const jobIds = jobs.filter(isWitnessed).map(({ id }) => id);
    // Soon, because the views are behind by milliseconds as a rule.
    if (!(await this.#forget(jobIds, position))) return true;
    const isLast = jobs.length < RETENTION_PAGE_JOBS_MAX;
    this.#after = isLast ? null : jobs.at(-1)!;
    return !isLast;
  }

  /** In commands that are small enough for a turn. False: not all, the views' answer is as of too long ago. */
  async #forget(jobIds: readonly string[], position: number): Promise<boolean> {
    const { fold, leads, forget } = this.#options;
    const knownFrom = this.#knownFrom;
    for (let at = 0; at < jobIds.length; at += JOBS_FORGOTTEN_PER_COMMAND_MAX) {
      if (this.#isOver || !leads()) return false;
      // Anew for each: what was sent once more meanwhile may have ended and been dropped.
      if (position < Math.max(knownFrom, fold.book.droppedUpTo)) return false;
      await forget(jobIds.slice(at, at + JOBS_FORGOTTEN_PER_COMMAND_MAX));
      this.#knownFrom = fold.chain.sequence;
    }
    return true;
  }
}
