// Finds a job wherever it is: in the book, or, where the book has dropped it, in the views. The one place that decides whether
// what the views say of such a job counts; reads and decisions both come here.
//
// Views follow the applied log, and may be far away from it: a node that was wiped, or whose file is gone, builds them again from the
// history. Meanwhile they lack jobs, and may show one as it was before it was retried, finished or forgotten. So a row counts only as of a
// position at or after everything that has left the book (JobsBook.leftUpTo), with row and position of one moment.
//
// Views that are ahead of what is applied are of a node that starts again, which decides nothing yet; or of another history, where the disk was
// restored without them. Nothing is decided on their rows.
//
// Views that were built without events that nobody has are there, and may still show an end that was not the last one: nothing is decided
// on such a row.

import type { JobsBook } from "../../core/jobs/index.ts";
import type { Job } from "../../core/jobs/model.ts";
import { sleep, within } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { FoundJob } from "../../ports/jobs.ts";
import type { JobRow } from "../../ports/views.ts";
import { FINDER_POLL_MS } from "./limits.ts";

/** Of a job that the book has: what it is later only the book knows. */
const IN_THE_BOOK = -1;

/** `position`: of the views that said so. */
export type Found = Extract<FoundJob, { kind: "found" }> & { readonly position: number };

export interface JobFinderOptions {
  readonly book: JobsBook;
  readonly clock: Clock;
  /** Of the views here. */
  readonly find: (jobId: string) => Promise<JobRow>;
}

export class JobFinder {
  readonly #options: JobFinderOptions;

  constructor(options: JobFinderOptions) {
    this.#options = options;
  }

  /** Until then the views are waited for, where what they say does not count yet, or where they say nothing: others may read before. */
  async find(
    jobId: string,
    look: "applied" | "head",
    untilMs: number,
  ): Promise<Found | Extract<FoundJob, { kind: "behind" }>> {
    const { book, clock } = this.#options;
    let row: JobRow | null = null;
    for (let asked = 0; ; asked++) {
      const job: Job | null = book[look].job(jobId);
      if (job !== null) return { kind: "found", job, position: IN_THE_BOOK, mayBeOlder: false };
      if (row !== null) {
        const { position } = row;
        if (this.counts(position, look)) return { kind: "found", job: row.job, position, mayBeOlder: mayBeOlder(row) };
      }
      const nowMs = clock.monotonicMs();
      if (asked > 0 && nowMs >= untilMs) {
        return { kind: "behind", position: row?.position ?? 0, wanted: book.leftUpTo(look) };
      }
      if (row !== null) await sleep(clock, FINDER_POLL_MS);
      row = (await this.#row(jobId, untilMs)) ?? row;
    }
  }

  /** Null: not in time. */
  #row(jobId: string, untilMs: number): Promise<JobRow | null> {
    const { clock, find } = this.#options;
    return within(clock, untilMs - clock.monotonicMs(), find(jobId), null);
  }

  /** Whether what was found at this position is so still, of a job that the book does not have. */
  counts(position: number, look: "applied" | "head"): boolean {
    const { book } = this.#options;
    return position >= book.leftUpTo(look) && (look === "applied" || position <= book.appliedSequence);
  }
}

function mayBeOlder({ job, holes = [] }: JobRow): boolean {
  const endedAtMs = job?.finishedAtMs ?? null;
  return endedAtMs !== null && holes.some(({ untilMs = Infinity }) => endedAtMs <= untilMs);
}
