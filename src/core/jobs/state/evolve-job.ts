// What the events about one job make of it. See model.ts for the states, evolve.ts for the rules.

import { assertNever } from "../../kit/assert.ts";
import { JOB_ATTEMPTS_KEPT } from "../../kit/limits.ts";
import type {
  Assigned,
  Building,
  Cancelled,
  Cancelling,
  Completed,
  EndCause,
  Failed,
  JobsEvent,
  JobsEventType,
  Logged,
  RestoredJob,
  Retried,
  Submitted,
} from "../events.ts";
import { payloadOf } from "../events.ts";
import { fitsDelivered, noteDelivered } from "./deliveries.ts";
import type { AttemptEnd, JobSpec, JobState } from "../model.ts";
import { type EndedRun, isFinal, type JobRecord, type Reported, type Run, type Ticket } from "./records.ts";
import { ticketBytes } from "./weights.ts";
import type { BookState } from "./state.ts";

export type BuildEventType = Extract<JobsEventType, `build:${string}`>;

const NONE: readonly EndedRun[] = [];

export function evolveJob(state: BookState, event: JobsEvent, type: BuildEventType, atMs: number): boolean {
  switch (type) {
    case "build:submitted":
      return submitted(state, event, atMs);
    case "build:assigned":
      return assigned(state, event, atMs);
    case "build:building":
      return building(state, event, atMs);
    case "build:log":
      return logged(state, event, atMs);
    case "build:completed":
      return completed(state, event, atMs);
    case "build:failed":
      return failed(state, event, atMs);
    case "build:retried":
      return retried(state, event, atMs);
    case "build:cancelling":
      return cancelling(state, event);
    case "build:cancelled":
      return cancelled(state, event, atMs);
    case "build:forgotten":
      return forgotten(state, event);
    default:
      return assertNever(type, "event of a job");
  }
}

function submitted(state: BookState, event: JobsEvent, atMs: number): boolean {
  if (state.jobs.get(event.entityId) !== undefined || !fitsDelivered(state, event)) return false;
  const { spec, by, schedule } = payloadOf<Submitted>(event);
  const ticket = ticketOf(state, event.entityId, spec, {
    number: event.sequence,
    atMs,
    by,
    schedule: schedule ?? null,
  });
  state.jobs.set(ticket.id, {
    ticket,
    state: "pending",
    jobEpoch: 0,
    failures: 0,
    losses: 0,
    attempt: 0,
    readyAtMs: spec.notBeforeMs ?? atMs,
    run: null,
    progress: null,
    ended: NONE,
    finishedAtMs: null,
    finishedBy: 0,
    result: null,
    error: null,
  });
  state.count(1, 0);
  noteDelivered(state, event);
  return true;
}

interface Submission {
  readonly number: number;
  readonly atMs: number;
  readonly by: string;
  readonly schedule: string | null;
}

function ticketOf(state: BookState, id: string, spec: JobSpec, { number, atMs, by, schedule }: Submission): Ticket {
  const { concurrency, notBeforeMs } = spec;
  const payload = inOnePiece(state.canonical(spec.payload));
  const concurrencyKey = concurrency === null ? null : concurrency.key;
  return {
    id,
    number,
    priority: spec.priority,
    class: state.classes.of(spec),
    policy: state.policyOf(spec),
    payload,
    notBeforeMs,
    concurrencyKey,
    concurrencyLimit: concurrency === null ? 0 : concurrency.limit,
    submittedAtMs: atMs,
    submittedBy: by,
    schedule,
    bytes: ticketBytes(id, payload, notBeforeMs, concurrencyKey, schedule),
  };
}

function assigned(state: BookState, event: JobsEvent, assignedAtMs: number): boolean {
  const before = state.jobs.get(event.entityId);
  const {
    jobEpoch,
    leaseHash: leaseId,
    attempt,
    agent,
    sessionHash: session,
    ttlMs,
    poll,
  } = payloadOf<Assigned>(event);
  if (before?.state !== "pending" || jobEpoch !== before.jobEpoch + 1) return false;
  const { leaderEpoch } = event;
  const run = { leaseId, jobEpoch, leaderEpoch, attempt, agent, session, ttlMs, assignedAtMs };
  state.jobs.set(event.entityId, {
    ...before,
    state: "assigned",
    jobEpoch,
    attempt,
    run: { ...run, startedAtMs: null, logBytes: 0, poll: poll ?? 0 },
    progress: null,
  });
  return true;
}

function building(state: BookState, event: JobsEvent, atMs: number): boolean {
  const { leaseHash: leaseId, progress } = payloadOf<Building>(event);
  const before = leased(state, event.entityId, leaseId);
  if (before === null) return false;
  state.jobs.set(event.entityId, {
    ...started(before, atMs, 0),
    // It can be left out; what went before must not stay then.
    progress: state.isOvergrown ? null : { ...progress, atMs },
  });
  return true;
}

function logged(state: BookState, event: JobsEvent, atMs: number): boolean {
  const { leaseHash: leaseId, bytes } = payloadOf<Logged>(event);
  const before = leased(state, event.entityId, leaseId);
  if (before === null) return false;
  state.jobs.set(event.entityId, started(before, atMs, bytes));
  return true;
}

/** Whoever reports about an attempt has started it. */
function started(before: Leased, atMs: number, logBytes: number): JobRecord {
  const { run } = before;
  return {
    ...before,
    state: before.state === "assigned" ? "building" : before.state,
    run: { ...run, startedAtMs: run.startedAtMs ?? atMs, logBytes: run.logBytes + logBytes },
  };
}

function completed(state: BookState, event: JobsEvent, atMs: number): boolean {
  const { leaseHash: leaseId, result } = payloadOf<Completed>(event);
  const before = leased(state, event.entityId, leaseId);
  if (before === null) return false;
  finish(state, event, atMs, {
    ...before,
    ...ending(before, { atMs, end: "completed", reported: "completed", stateAfter: "completed" }),
    state: "completed",
    result: inOnePiece(state.canonical(result)),
    error: null,
  });
  return true;
}

function failed(state: BookState, event: JobsEvent, atMs: number): boolean {
  const { leaseHash: leaseId, cause, error, jobEpoch } = payloadOf<Failed>(event);
  if (leaseId === null) {
    const known = state.jobs.get(event.entityId);
    if (known?.state !== "pending") return false;
    finish(state, event, atMs, { ...known, state: "failed", jobEpoch, error });
    return true;
  }
  const before = leased(state, event.entityId, leaseId);
  if (before === null) return false;
  finish(state, event, atMs, {
    ...before,
    ...ending(before, { atMs, end: endOf(cause), reported: reportedBy(cause), stateAfter: "failed" }),
    state: "failed",
    jobEpoch,
    failures: before.failures + (cause === "lost" ? 0 : 1),
    error,
  });
  return true;
}

function retried(state: BookState, event: JobsEvent, atMs: number): boolean {
  const { leaseHash: leaseId, cause, jobEpoch, readyAtMs, error, job } = payloadOf<Retried>(event);
  if (leaseId === null) return retriedByHand(state, event, { jobEpoch, readyAtMs, job });
  const before = leased(state, event.entityId, leaseId);
  if (before === null) return false;
  const isMistake = cause === "failed" || cause === "timed-out";
  state.jobs.set(event.entityId, {
    ...before,
    ...ending(before, { atMs, end: endOf(cause), reported: reportedBy(cause), stateAfter: "pending" }),
    state: "pending",
    jobEpoch,
    failures: before.failures + (isMistake ? 1 : 0),
    losses: before.losses + (cause === "lost" ? 1 : 0),
    readyAtMs,
    error: state.isOvergrown ? null : (error ?? before.error),
  });
  return true;
}

function retriedByHand(
  state: BookState,
  event: JobsEvent,
  { jobEpoch, readyAtMs, job }: { jobEpoch: number; readyAtMs: number; job: RestoredJob | undefined },
): boolean {
  const known = state.jobs.get(event.entityId);
  if (known === undefined ? job === undefined : !isFinal(known.state)) return false;
  const before = known ?? restored(state, event.entityId, job as RestoredJob);
  state.jobs.set(event.entityId, {
    ...before,
    state: "pending",
    jobEpoch,
    failures: 0,
    losses: 0,
    readyAtMs,
    progress: null,
    finishedAtMs: null,
    finishedBy: 0,
    result: null,
    error: null,
  });
  return true;
}

function restored(state: BookState, id: string, job: RestoredJob): JobRecord {
  const { spec, submittedAtMs, submittedSequence: number, submittedBy: by, schedule = null, attempt, attempts } = job;
  const ticket = ticketOf(state, id, spec, { number, atMs: submittedAtMs, by, schedule });
  const ended = attempts.map((one): EndedRun => {
    const { endedAtMs, end, ...run } = one;
    const known = { endedAtMs: endedAtMs ?? submittedAtMs, end: end ?? "lost" };
    return { ...run, ...known, logBytes: 0, poll: 0, reported: null, stateAfter: "pending" };
  });
  const nothing = { failures: 0, losses: 0, readyAtMs: 0, run: null, progress: null, result: null, error: null };
  return { ticket, state: "pending", jobEpoch: 0, attempt, ended, finishedAtMs: null, finishedBy: 0, ...nothing };
}

function cancelling(state: BookState, event: JobsEvent): boolean {
  const before = state.jobs.get(event.entityId);
  // Also one that is being cancelled: somebody else has asked for it, under a key.
  if (before?.state !== "assigned" && before?.state !== "building" && before?.state !== "cancelling") return false;
  if (payloadOf<Cancelling>(event).jobEpoch !== before.jobEpoch) return false;
  state.jobs.set(event.entityId, { ...before, state: "cancelling" });
  return true;
}

function cancelled(state: BookState, event: JobsEvent, atMs: number): boolean {
  const { leaseHash: leaseId, cause, jobEpoch } = payloadOf<Cancelled>(event);
  const known = state.jobs.get(event.entityId);
  if (leaseId === null) {
    if (known?.state !== "pending") return false;
    finish(state, event, atMs, { ...known, state: "cancelled", jobEpoch });
    return true;
  }
  const before = leased(state, event.entityId, leaseId);
  if (before === null) return false;
  const end = cause === "lost" || cause === "timed-out" || cause === "undelivered" ? cause : "cancelled";
  finish(state, event, atMs, {
    ...before,
    ...ending(before, { atMs, end, reported: reportedBy(cause), stateAfter: "cancelled" }),
    state: "cancelled",
    jobEpoch,
  });
  return true;
}

function forgotten(state: BookState, event: JobsEvent): boolean {
  const before = state.jobs.get(event.entityId);
  if (before !== undefined && !isFinal(before.state)) return false;
  state.lastForgottenBy = Math.max(state.lastForgottenBy, event.sequence);
  // The views may be the only ones who still have it.
  if (before === undefined) return true;
  state.jobs.set(event.entityId, undefined);
  return true;
}

// ---- small things --------------------------------------------------------------------------------------

type Leased = JobRecord & { readonly run: Run };

/** The job, where this lease is the one that goes on. */
function leased(state: BookState, jobId: string, leaseId: string): Leased | null {
  const record = state.jobs.get(jobId);
  return record?.run?.leaseId === leaseId ? (record as Leased) : null;
}

interface Ending {
  readonly atMs: number;
  readonly end: AttemptEnd;
  readonly reported: Reported | null;
  readonly stateAfter: JobState;
}

function ending({ run, ended }: Leased, { atMs, end, reported, stateAfter }: Ending): Pick<JobRecord, "run" | "ended"> {
  const last: EndedRun = { ...run, poll: 0, endedAtMs: atMs, end, reported, stateAfter };
  return { run: null, ended: ended.length === 0 ? [last] : [...ended, last].slice(-JOB_ATTEMPTS_KEPT) };
}

function finish(state: BookState, event: JobsEvent, atMs: number, record: JobRecord): void {
  state.jobs.set(event.entityId, { ...record, finishedAtMs: atMs, finishedBy: event.sequence });
  state.count(0, 1);
  state.lastFinishedBy = Math.max(state.lastFinishedBy, event.sequence);
  const { finishedMax, finishedBytesMax } = state.limits;
  while (state.finished.size > finishedMax || state.finishedBytes > finishedBytesMax) {
    const oldest = state.finished.first;
    if (oldest === undefined) return;
    state.jobs.set(oldest.ticket.id, undefined);
  }
}

/**
 * What was put together piece by piece stays in pieces until somebody looks into it, and takes several times the memory:
 * 855 bytes for a small job, 502 without. A look at one letter is enough; no JSON text begins with NUL.
 */
function inOnePiece(text: string): string {
  return text.charCodeAt(0) === 0 ? "null" : text;
}

function endOf(cause: EndCause): AttemptEnd {
  return cause === "asked" ? "cancelled" : cause;
}

function reportedBy(cause: EndCause): Reported | null {
  return cause === "failed" || cause === "cancelled" || cause === "handed-back" ? cause : null;
}
