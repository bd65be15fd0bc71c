// What the book keeps of each thing, in compact form. Records are never changed, only replaced (table.ts).
//
// A job is two objects: the ticket, which stays the same from its submission on, and the record around it, which is replaced
// with each event. One that waits is bytes on the shelf (shelf/), and an object only while somebody looks at it. Payload and result are canonical JSON texts: a tree of objects takes several
// times as much. What many jobs have in common (class, policy) is there once.

import type { Json } from "../../kit/json.ts";
import { JOB_ATTEMPTS_KEPT } from "../../kit/limits.ts";
import { parseJson } from "../../kit/parse-json.ts";
import type {
  AgentInfo,
  Attempt,
  AttemptEnd,
  Job,
  JobFailure,
  JobProgress,
  JobSpec,
  JobState,
  Lease,
  Schedule,
} from "../model.ts";
import type { JobClass } from "./job-class.ts";

/** What decides nothing about where a job may run. */
export interface Policy {
  /** Equal policies have equal ones. */
  readonly id: string;
  readonly attemptsMax: number;
  readonly lossesMax: number;
  readonly baseMs: number;
  readonly maxMs: number;
  readonly timeoutMs: number | null;
  readonly retentionMs: number;
}

export interface Ticket {
  readonly id: string;
  /** The sequence of the event that submitted it: of equal priority, the lower goes first. */
  readonly number: number;
  readonly priority: number;
  readonly class: JobClass;
  readonly policy: Policy;
  readonly payload: string;
  readonly notBeforeMs: number | null;
  readonly concurrencyKey: string | null;
  /** 0 without a key. */
  readonly concurrencyLimit: number;
  readonly submittedAtMs: number;
  readonly submittedBy: string;
  readonly schedule: string | null;
  /** What it takes in a snapshot, without its attempts: see weights.ts. */
  readonly bytes: number;
}

/** The attempt that goes on. */
export interface Run extends Omit<Attempt, "endedAtMs" | "end"> {
  /** Of its log. */
  readonly logBytes: number;
  /** The agent's number of the call that it was given by; 0 without one, and of an attempt that ended. */
  readonly poll: number;
}

export interface EndedRun extends Run {
  readonly endedAtMs: number;
  readonly end: AttemptEnd;
  /** What the agent said, so that it can be answered the same when it says it again; null where it said nothing. */
  readonly reported: Reported | null;
  /** What the job became by it. */
  readonly stateAfter: JobState;
}

export type Reported = "completed" | "failed" | "cancelled" | "handed-back";

export interface JobRecord {
  readonly ticket: Ticket;
  readonly state: JobState;
  readonly jobEpoch: number;
  readonly failures: number;
  readonly losses: number;
  /** Assignments so far. */
  readonly attempt: number;
  readonly readyAtMs: number;
  readonly run: Run | null;
  readonly progress: JobProgress | null;
  readonly ended: readonly EndedRun[];
  readonly finishedAtMs: number | null;
  /** The sequence of the event that finished it; 0 before. */
  readonly finishedBy: number;
  readonly result: string | null;
  readonly error: JobFailure | null;
}

export interface AgentRecord {
  readonly info: AgentInfo;
  readonly state: "online" | "offline" | "removed";
  readonly registeredAtMs: number;
  /** When it took this state. */
  readonly sinceMs: number;
  /** An operator wants it to be given nothing more. Of this session only: the next one begins without. */
  readonly isDraining: boolean;
  /** Sessions before this one, newest last. */
  readonly past: readonly string[];
  /** The sequence of the event that registered this session; 0: not known, of a snapshot of a release before agents had one. */
  readonly epoch: number;
  /** Whose the name is (AgentCaller); null: nobody's, and the next that registers has it. */
  readonly owner: string | null;
}

export interface QueueRecord {
  readonly queue: string;
}

export interface ScheduleRecord {
  readonly schedule: Schedule;
  /** Times before it are nobody's business: it was not there, or another one. */
  readonly sinceMs: number;
  /** The last time that it fired for, or that was left out. */
  readonly lastAtMs: number | null;
}

export interface KeyRecord {
  readonly id: string;
  readonly bodyHash: string;
  readonly command: string;
  /** With commas between. */
  readonly jobIds: string;
  readonly atMs: number;
  readonly sequence: number;
}

export interface Totals {
  readonly submitted: number;
  readonly finished: number;
}

/** Times up to it are no more this schedule's business. */
export function firedUpToMs({ sinceMs, lastAtMs }: ScheduleRecord): number {
  return Math.max(sinceMs, lastAtMs ?? 0);
}

export function isFinal(state: JobState): boolean {
  return state === "completed" || state === "failed" || state === "cancelled";
}

export function specOf(ticket: Ticket): JobSpec {
  const { class: one, policy, concurrencyKey: key } = ticket;
  return {
    kind: one.kind,
    payload: parseJson(ticket.payload) as Json,
    queue: one.queue,
    labels: one.labels,
    platform: one.platform,
    priority: ticket.priority,
    notBeforeMs: ticket.notBeforeMs,
    attemptsMax: policy.attemptsMax,
    lossesMax: policy.lossesMax,
    backoff: { baseMs: policy.baseMs, maxMs: policy.maxMs },
    timeoutMs: policy.timeoutMs,
    retentionMs: policy.retentionMs,
    concurrency: key === null ? null : { key, limit: ticket.concurrencyLimit },
  };
}

export function jobOf(record: JobRecord): Job {
  const { ticket, run, result, ended } = record;
  const attempts = ended.map((one) => attemptOf(one, one.endedAtMs, one.end));
  if (run !== null) attempts.push(attemptOf(run, null, null));
  return {
    id: ticket.id,
    spec: specOf(ticket),
    state: record.state,
    jobEpoch: record.jobEpoch,
    failures: record.failures,
    losses: record.losses,
    submittedAtMs: ticket.submittedAtMs,
    submittedSequence: ticket.number,
    submittedBy: ticket.submittedBy,
    readyAtMs: record.readyAtMs,
    lease: run === null ? null : leaseOf(run),
    progress: record.progress,
    attempts: attempts.slice(-JOB_ATTEMPTS_KEPT),
    finishedAtMs: record.finishedAtMs,
    result: result === null ? null : (parseJson(result) as Json),
    error: record.error,
  };
}

function leaseOf({ leaseId, jobEpoch, leaderEpoch, attempt, agent, session, ttlMs }: Run): Lease {
  return { leaseId, jobEpoch, leaderEpoch, attempt, agent, session, ttlMs };
}

function attemptOf(run: Run, endedAtMs: number | null, end: AttemptEnd | null): Attempt {
  const { leaseId, jobEpoch, leaderEpoch, attempt, agent, session, ttlMs, assignedAtMs, startedAtMs } = run;
  const lease = { leaseId, jobEpoch, leaderEpoch, attempt, agent, session, ttlMs };
  return { ...lease, assignedAtMs, startedAtMs, endedAtMs, end };
}
