// What the views have missed, from the history of events (trap 56d): a node that was wiped, that installed a snapshot, or whose
// views could not be fed for long. The book has the jobs that are live and those that were finished lately; everything else
// that was finished, and all that was logged, is in the history alone.
//
// Where the book has dropped jobs that were finished meanwhile, the whole history is gone through once more with a book of
// its own, which takes the memory of a second one for that time. Otherwise only what was missed is read.

import { decodeEvent, type StoredEvent } from "../core/events/index.ts";
import { TenureError } from "../core/kit/errors.ts";
import type { Job } from "../core/jobs/model.ts";
import type { Clock } from "../ports/clock.ts";
import { type Changes, JobChanges } from "./job-changes.ts";
import type { JobsFold } from "./jobs-fold.ts";
import { Slice } from "./slice.ts";

/** Then it is told what there is. */
const CHANGES_MAX = 500;
const EVENTS_PER_LOOK = 16;
/** The loop belongs to others after so long, for a while: nobody waits for what is replayed. */
const SLICE_MS = 2;
const REST_MS = 6;

export interface ReplayHistory {
  read(from: number, max: number): AsyncIterable<readonly { readonly sequence: number; readonly bytes: Uint8Array }[]>;
  stats(): { readonly startSequence: number };
}

export interface ReplayOptions {
  readonly history: ReplayHistory;
  readonly fold: JobsFold;
  readonly clock: Clock;
  /** The views have everything up to here … */
  readonly after: number;
  /** … and are told of what came behind it up to here. */
  readonly through: number;
  /** It has changed since, and is told as it is now. */
  readonly isNewer: (jobId: string) => boolean;
}

/** Throws where a part of it is not here, or not yet. */
export async function* replayedChanges(options: ReplayOptions): AsyncGenerator<Changes, void, void> {
  const { history, fold, clock, after, through, isNewer } = options;
  const { startSequence } = history.stats();
  const book = after < fold.book.droppedUpTo ? fold.emptyBook(startSequence) : null;
  const from = Math.max(startSequence, book === null ? after : 0) + 1;
  const changes = new JobChanges((jobId) => book?.applied.job(jobId) ?? null);
  const isOld = ({ id }: Job): boolean => !fold.book.known(id) && !isNewer(id);
  const told = ({ jobs, logs, forgotten }: Changes): Changes => ({
    jobs: jobs.filter(isOld),
    logs,
    forgotten: forgotten.filter((jobId) => !isNewer(jobId)),
  });
  let reached = from - 1;
  let sliceMs = clock.monotonicMs();
  for await (const batch of through < from ? [] : history.read(from, through - reached)) {
    for (const { sequence, bytes } of batch) {
      const event = decoded(sequence, bytes);
      // What does not fit is of a job that history does not have the beginning of: it was cut there.
      book?.apply(event);
      reached = sequence;
      if (sequence > after) changes.note(event);
      if (sequence % EVENTS_PER_LOOK !== 0 || clock.monotonicMs() - sliceMs < SLICE_MS) continue;
      await new Promise<void>((resume) => void clock.setTimer(clock.monotonicMs() + REST_MS, resume));
      sliceMs = clock.monotonicMs();
    }
    while (changes.size >= CHANGES_MAX) yield told(changes.take(CHANGES_MAX, new Slice(clock)));
  }
  if (reached < through && from <= through) {
    const text = `Event ${reached + 1} is not in this node's history: what it shows of jobs is not complete yet.`;
    throw new TenureError("BACKEND_UNAVAILABLE", text);
  }
  while (changes.size > 0) yield told(changes.take(CHANGES_MAX, new Slice(clock)));
}

function decoded(sequence: number, bytes: Uint8Array): StoredEvent {
  const read = decodeEvent(bytes);
  if (read.kind === "malformed")
    throw new TenureError("CHAIN_BROKEN", `Event ${sequence} can't be read: ${read.problem}`);
  return read.event;
}
