// What the views have missed, from the history of events (trap 56d): a node that was wiped, that installed a snapshot, or whose
// views could not be fed for long. The book has the jobs that are live and those that were finished lately; everything else
// that was finished, and all that was logged, is in the history alone.
//
// Events that no member has any more (core/archive) are passed over: after them the book of its own begins anew, because of
// what was alive before them nothing is certain. Such a job is shown as the node's own book has it, or not at all.
//
// Where the book has dropped jobs that were finished meanwhile, the whole history is gone through once more with a book of
// its own, which takes the memory of a second one for that time. Otherwise only what was missed is read.

import { decodeEvent, type StoredEvent } from "../core/events/index.ts";
import { TenureError } from "../core/kit/errors.ts";
import type { EventRange } from "../core/archive/index.ts";
import type { JobsBook } from "../core/jobs/index.ts";
import type { Job } from "../core/jobs/model.ts";
import type { Clock } from "../ports/clock.ts";
import { type Changes, JobChanges } from "./job-changes.ts";
import type { JobsFold } from "./jobs-fold.ts";

/** Then it is told what there is. */
const CHANGES_MAX = 500;
const EVENTS_PER_LOOK = 16;
/** The loop belongs to others after so long, for a while: nobody waits for what is replayed. */
const SLICE_MS = 2;
const REST_MS = 6;

export interface ReplayHistory {
  read(from: number, max: number): AsyncIterable<readonly { readonly sequence: number; readonly bytes: Uint8Array }[]>;
  stats(): { readonly startSequence: number };
  /** Events that are not there, and of those the ones that no member has. Absent: all are there. */
  missing?(): readonly EventRange[];
  lost?(): readonly EventRange[];
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

/** Throws where a part of it is not here, or not yet. Returns what was passed over. */
export async function* replayedChanges(options: ReplayOptions): AsyncGenerator<Changes, readonly EventRange[], void> {
  const { history, fold, clock, after, through, isNewer } = options;
  const { startSequence } = history.stats();
  const isWhole = after < fold.book.droppedUpTo;
  const from = Math.max(startSequence, isWhole ? 0 : after) + 1;
  const holes = (history.lost?.() ?? []).filter(({ first, last }) => last >= from && first <= through);
  let book = isWhole ? fold.emptyBook(startSequence) : null;
  const changes = new JobChanges((jobId) => book?.applied.job(jobId) ?? null);
  const isOld = (jobId: string): boolean => !fold.book.known(jobId) && !isNewer(jobId);
  /** Jobs that were shown as they were before they were finished, where that may never be corrected. */
  const unfinished = new Set<string>();
  const told = ({ jobs, logs, forgotten }: Changes): Changes => {
    const shown = jobs.filter(({ id }) => isOld(id));
    if (holes.length > 0) noteUnfinished(unfinished, shown);
    return { jobs: shown, logs, forgotten: forgotten.filter(isOld) };
  };
  let sliceMs = clock.monotonicMs();
  for (const part of partsBetween(holes, from, through)) {
    if (part.isAfterHole) {
      if (book !== null) book = fold.emptyBook(part.first - 1);
      while (changes.size > 0) yield told(changes.take(CHANGES_MAX));
      yield { jobs: [], logs: [], forgotten: [...unfinished].filter(isOld) };
      unfinished.clear();
    }
    let reached = part.first - 1;
    for await (const batch of reached === part.last ? [] : history.read(part.first, part.last - reached)) {
      for (const { sequence, bytes } of batch) {
        const event = decoded(sequence, bytes);
        // What does not fit is of a job that history does not have the beginning of: it was cut there, or lost.
        const fits = book?.apply(event) ?? true;
        reached = sequence;
        if (sequence > after) changes.note(fits || !part.isAfterHole ? event : gone(event, book));
        if (sequence % EVENTS_PER_LOOK !== 0 || clock.monotonicMs() - sliceMs < SLICE_MS) continue;
        await new Promise<void>((resume) => void clock.setTimer(clock.monotonicMs() + REST_MS, resume));
        sliceMs = clock.monotonicMs();
      }
      while (changes.size >= CHANGES_MAX) yield told(changes.take(CHANGES_MAX));
    }
    if (reached < part.last) throw notYet(reached + 1);
  }
  while (changes.size > 0) yield told(changes.take(CHANGES_MAX));
  return holes;
}

interface Part extends EventRange {
  readonly isAfterHole: boolean;
}

/** What is to be read; a part after a hole may be empty. */
function partsBetween(holes: readonly EventRange[], from: number, through: number): Part[] {
  const parts: Part[] = [];
  let first = from;
  for (const hole of holes) {
    parts.push({ first, last: Math.max(first, hole.first) - 1, isAfterHole: first !== from });
    first = hole.last + 1;
  }
  if (first <= through) parts.push({ first, last: through, isAfterHole: first !== from });
  return parts;
}

function noteUnfinished(unfinished: Set<string>, jobs: readonly Job[]): void {
  for (const { id, finishedAtMs } of jobs) {
    if (finishedAtMs === null) unfinished.add(id);
    else unfinished.delete(id);
  }
}

/** The event of a job that was changed in the hole too: what was shown of it before is over, and its state is not known. */
function gone(event: StoredEvent, book: JobsBook | null): StoredEvent {
  if (event.entityType !== "build" || event.eventType === "build:log") return event;
  return book?.applied.job(event.entityId) === null ? { ...event, eventType: "build:forgotten" } : event;
}

function notYet(sequence: number): TenureError {
  const text = `Event ${sequence} is not in this node's history: what it shows of jobs is not complete yet.`;
  return new TenureError("BACKEND_UNAVAILABLE", text);
}

function decoded(sequence: number, bytes: Uint8Array): StoredEvent {
  const read = decodeEvent(bytes);
  if (read.kind === "malformed")
    throw new TenureError("CHAIN_BROKEN", `Event ${sequence} can't be read: ${read.problem}`);
  return read.event;
}
