// What the worker thread keeps next to the log (design D10): a searchable copy of all jobs, live and finished, and their logs.
// It follows the applied log and may lag behind it; what it answers says as of which position. It is never asked for a
// decision: it can be deleted and is then built again from snapshot and archive.

import type { Job, JobState } from "../core/jobs/model.ts";

export interface Views {
  /**
   * For whoever feeds: the position up to which everything is in, after all puts so far, whatever became of them. 0: feed it
   * from the start; what was put without ever coming to a position is dropped.
   */
  position(): Promise<number>;
  /**
   * Jobs as they are after the record at `position`; ids that are not kept any more. Puts may be pipelined, in order; one
   * below the position changes nothing. A snapshot comes in puts at 0 and ends with one at its own position: until then the
   * position stays 0, and what was put is dropped if it never comes.
   *
   * Resolves when it outlives the process; after a power loss the position may go back, together with what it covers.
   * A put that is refused (DISK_FULL, DISK_DAMAGED, BACKEND_UNAVAILABLE, OVERLOADED) has changed nothing, and so are all
   * after it until `position` was asked for: there is never a hole below the position. Ask, and feed from there.
   */
  put(
    position: number,
    jobs: readonly Job[],
    logs: readonly JobLog[],
    forgotten: readonly string[],
    how?: PutHow,
  ): Promise<void>;
  /**
   * Something was missed that can't be fed any more. What is live here is in doubt until it is put again; what is finished
   * may have been run once more, so its retention begins anew at `nowMs`, for good measure.
   */
  doubt(nowMs: number): Promise<void>;
  /** A doubt that was not settled is without reason: what is here is right as of the position. Nothing is in doubt any more. */
  trust(): Promise<void>;
  /** What the views were built without, because no member had it, and how they are built anew when it turns up. */
  readonly holes?: ViewsHoles;
  /** The hash of the event at the position, by which another history is distinguished; null: none was put. Absent: not kept. */
  line?(): Promise<string | null>;
  /** As of where reads are at least: for whoever reads. It changes nothing. */
  reached(): Promise<number>;
  get(jobId: string): Promise<JobRow>;
  /**
   * Finished jobs whose retention is over at `nowMs`, by when that was and then by sequence, at most `limit`; after `after`,
   * the last one of the page before.
   */
  expired(nowMs: number, limit: number, after?: ExpiredPlace | null): Promise<ExpiredJobs>;
  list(query: JobQuery): Promise<JobPage>;
  /** Offsets count bytes of UTF-8. NOT_FOUND: no such job here, or not yet. */
  log(jobId: string, attempt: number, offset: number, bytesMax: number): Promise<JobLogPage>;
  close(): Promise<void>;
}

/** Events that the views were built without. */
export interface ViewsHole {
  readonly first: number;
  readonly last: number;
  /** By the events' clock: what has ended after it has ended after the hole. Absent: not known. */
  readonly untilMs?: number | undefined;
}

export interface ViewsHoles {
  read(): Promise<readonly ViewsHole[]>;
  /** All of them. Durable as a put is. */
  write(holes: readonly ViewsHole[]): Promise<void>;
  /** Removes everything, for this reason: the position is 0 afterwards, and there are no holes. */
  rebuild(why: string): Promise<void>;
}

export interface PutHow {
  /** The hash of the event at `position`, by which another history with as many events is distinguished; null: as before. */
  readonly line?: string | null | undefined;
  /** The jobs are as they once were, at an end of theirs: a row of a later epoch of the job stays as it is. */
  readonly isPast?: boolean | undefined;
  /**
   * Everything that is live was put: what is in doubt still has come to an end that nobody here knows, and goes. In one step with the
   * position: after a crash in between nobody could tell what is left of a doubt from a doubt that never came to its end.
   */
  readonly settles?: boolean | undefined;
}

/** One moment's answer. What it is worth says whoever has the book (controller/jobs/finder.ts). */
export interface JobRow {
  readonly job: Job | null;
  /** As of here, at least. */
  readonly position: number;
  /** Of the same moment too. Absent: none. */
  readonly holes?: readonly ViewsHole[] | undefined;
}

/** Where a job is among those whose retention is over. */
export interface ExpiredPlace {
  readonly expiresAtMs: number;
  /** Of the event that submitted it. */
  readonly sequence: number;
}

export interface ExpiredJob extends ExpiredPlace {
  readonly id: string;
  /** By the events' clock, as all times of a job. */
  readonly finishedAtMs: number;
}

export interface ExpiredJobs {
  readonly jobs: readonly ExpiredJob[];
  /** As of here. After it a job may have been sent once more. */
  readonly position: number;
}

export interface JobLog {
  readonly jobId: string;
  readonly attempt: number;
  readonly offset: number;
  readonly text: string;
}

export interface JobQuery {
  readonly states?: readonly JobState[] | undefined;
  readonly kind?: string | undefined;
  readonly queue?: string | undefined;
  readonly agent?: string | undefined;
  /** Words that must all be in kind, queue, labels, payload or error. */
  readonly search?: string | undefined;
  /** From the page before. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface JobPage {
  /** Newest first. May be fewer than the limit, or none, while there is a `next`: a page has its limits of bytes and time. */
  readonly jobs: readonly Job[];
  readonly next: string | null;
  readonly position: number;
}

export interface JobLogPage {
  readonly text: string;
  readonly nextOffset: number;
  /** Nothing more will come. */
  readonly isComplete: boolean;
}
