// What the views have missed, from the history of events (trap 56d): a node that was wiped, that installed a snapshot, or whose
// views could not be fed for long. The book has the jobs that are live and those that were finished lately; everything else
// that was finished, and all that was logged, is in the history alone.
//
// Where the book has dropped jobs that were finished meanwhile, the whole history is gone through once more with a book of
// its own, which takes the memory of a second one for that time. Otherwise only what was missed is read.
//
// Events that no member has any more (core/archive) are passed over: after them the book of its own begins anew, because of
// what was alive before them nothing is certain. Such a job is shown as the node's own book has it, or not at all.
//
// A replay shows the past (trap 79): a job is put as it was at its end, never before it (replayed-jobs.ts).

import type { EventRange } from "../../core/archive/index.ts";
import { decodeEvent, type StoredEvent } from "../../core/events/index.ts";
import type { JobsBook } from "../../core/jobs/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { sleep } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { JobLog, ViewsHole } from "../../ports/views.ts";
import { type Changes, logOf } from "./changes.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { LOG_CHARS_HELD_MAX, REPLAYED_PER_LOOK, REPLAY_REST_MS, REPLAY_SLICE_MS } from "./limits.ts";
import { ReplayedJobs } from "./replayed-jobs.ts";

interface ReplayedEvent {
  readonly sequence: number;
  readonly bytes: Uint8Array;
  /** Absent: of a history that nobody compares with another. */
  readonly eventHash?: string | undefined;
}

export interface ReplayHistory {
  read(from: number, max: number): AsyncIterable<readonly ReplayedEvent[]>;
  stats(): { readonly startSequence: number };
  /** Events that are not there, and of those the ones that no member has. Absent: all are there. */
  missing?(): readonly EventRange[];
  lost?(): readonly EventRange[];
}

export interface ReplayOptions {
  readonly history: ReplayHistory;
  readonly fold: SiteJournal;
  readonly clock: Clock;
  /** The views have everything up to here … */
  readonly after: number;
  /** … and are notified of what came after it up to here. */
  readonly through: number;
  /** So many at a time. */
  readonly changesMax: number;
  /** It has changed since, and is told as it is now. */
  readonly isNewer: (jobId: string) => boolean;
  readonly logCharsMax?: number | undefined;
}

/** Throws where a part of it is not here, or not yet. Returns what was passed over. */
export async function* replayedChanges(options: ReplayOptions): AsyncGenerator<Changes, readonly ViewsHole[], void> {
  const { history, fold, after, through, changesMax, isNewer, logCharsMax = LOG_CHARS_HELD_MAX } = options;
  const { startSequence } = history.stats();
  const isWhole = after < fold.book.droppedUpTo;
  const from = Math.max(startSequence, isWhole ? 0 : after) + 1;
  const lost = (history.lost?.() ?? []).filter(({ first, last }) => last >= from && first <= through);
  let book = isWhole ? fold.jobs.emptyBook(startSequence) : null;
  const changes = new ReplayedJobs({
    job: isWhole ? (jobId) => book?.applied.job(jobId) ?? null : null,
    isElsewhere: (jobId) => fold.book.hasApplied(jobId) || isNewer(jobId),
    logCharsMax,
  });
  /** Of the first event in each part. */
  const beganAtMs = new Map<number, number>();
  for (const part of partsBetween(lost, from, through)) {
    if (part.isAfterHole && book !== null) book = fold.jobs.emptyBook(part.first - 1);
    const note = (event: StoredEvent): void => {
      // What does not fit is of a job that history does not have the beginning of: it was cut there, or lost.
      if (event.sequence === part.first) beganAtMs.set(part.first, Math.floor(event.timestamp));
      const fits = book?.apply(event) ?? true;
      if (event.sequence > after) changes.note(fits || !part.isAfterHole ? event : gone(event, book));
    };
    for await (const _ of batches({ ...options, through: part.last }, part.first, note)) {
      while (changes.size >= changesMax) yield changes.take(changesMax);
    }
  }
  while (changes.size > 0) yield changes.take(changesMax);
  for (const part of changes.lostFrom === null ? [] : partsBetween(lost, changes.lostFrom, through)) {
    yield* replayedLogs({ ...options, through: part.last }, part.first);
  }
  const endMs = Math.floor(fold.chain.timestamp);
  return lost.map((range) => ({ ...range, untilMs: beganAtMs.get(range.last + 1) ?? endMs }));
}

interface Part extends EventRange {
  readonly isAfterHole: boolean;
}

/** What is to be read. */
function partsBetween(holes: readonly EventRange[], from: number, through: number): Part[] {
  const parts: Part[] = [];
  let first = from;
  for (const hole of holes) {
    if (hole.last < first) continue;
    if (hole.first > first) parts.push({ first, last: hole.first - 1, isAfterHole: first !== from });
    first = hole.last + 1;
  }
  if (first <= through) parts.push({ first, last: through, isAfterHole: first !== from });
  return parts;
}

/** The event of a job that was changed in the hole too: what was shown of it before is over, and its state is not known. */
function gone(event: StoredEvent, book: JobsBook | null): StoredEvent {
  if (event.entityType !== "build" || event.eventType === "build:log") return event;
  return book?.applied.job(event.entityId) === null ? { ...event, eventType: "build:forgotten" } : event;
}

/** The jobs are in: whatever was logged finds its own. */
async function* replayedLogs(options: ReplayOptions, from: number): AsyncGenerator<Changes, void, void> {
  let logs: JobLog[] = [];
  const note = (event: StoredEvent): void => {
    if (event.eventType === "build:log") logs.push(logOf(event));
  };
  for await (const _ of batches(options, from, note)) {
    if (logs.length > 0) yield { jobs: [], logs, forgotten: [] };
    logs = [];
  }
}

/** Notes the events from here on, in slices; yields after each batch of the history. */
async function* batches(
  { history, clock, through }: ReplayOptions,
  from: number,
  note: (event: StoredEvent) => void,
): AsyncGenerator<void, void, void> {
  let reached = from - 1;
  let sliceMs = clock.monotonicMs();
  for await (const batch of through < from ? [] : history.read(from, through - reached)) {
    for (const { sequence, bytes } of batch) {
      note(decoded(sequence, bytes));
      reached = sequence;
      if (sequence % REPLAYED_PER_LOOK !== 0 || clock.monotonicMs() - sliceMs < REPLAY_SLICE_MS) continue;
      await sleep(clock, REPLAY_REST_MS);
      sliceMs = clock.monotonicMs();
    }
    yield;
  }
  if (reached >= through) return;
  const text = `Event ${reached + 1} is not in this node's history: what it shows of jobs is not complete yet.`;
  throw new TenureError("BACKEND_UNAVAILABLE", text);
}

function decoded(sequence: number, bytes: Uint8Array): StoredEvent {
  const read = decodeEvent(bytes);
  if (read.kind === "malformed")
    throw new TenureError("CHAIN_BROKEN", `Event ${sequence} can't be read: ${read.problem}`);
  return read.event;
}
