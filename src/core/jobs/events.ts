// What the events about jobs carry. A decision drafts them, the book evolves by them; nothing else reads or writes them.
//
// In every `build:*` payload `jobEpoch` is the job's epoch after the event. Times are wall milliseconds; the time at which
// something happened is the event's own timestamp. Any payload may carry `skippedMs`: by so much the events' clock has jumped
// since the event before (state/skips.ts). `leaseHash` and `sessionHash` stand for what only the agent has.

import type { EventDraft, EventPayload, StoredEvent } from "../events/index.ts";
import type { EventType } from "../events/names.ts";
import type { Json } from "../kit/json.ts";
import type { AgentInfo, Attempt, Job, JobFailure, JobProgress, JobSpec, Schedule } from "./model.ts";

export type { EventDraft, EventPayload };

const ENTITIES = ["build", "worker", "queue", "schedule"] as const;
export type JobsEventType = Extract<EventType, `${(typeof ENTITIES)[number]}:${string}`>;

export function isAboutJobs(eventType: string): eventType is JobsEventType {
  return (ENTITIES as readonly string[]).includes(eventType.slice(0, eventType.indexOf(":")));
}

/** Of a sealed event, what the book looks at. Those about other things than jobs change nothing but the sequence. */
export type JobsEvent = Pick<
  StoredEvent,
  "sequence" | "timestamp" | "eventType" | "entityId" | "payload" | "leaderEpoch"
>;

/** Stands in the first event of a mutation that was asked for under an idempotency key. */
export interface RequestMark {
  readonly caller: string;
  readonly key: string;
  readonly bodyHash: string;
  readonly command: string;
  /** All ids of a batch; of one job it is the event's entity. */
  readonly jobIds?: readonly string[];
}

interface Marked {
  readonly request?: RequestMark;
}

export interface Submitted extends Marked {
  readonly spec: JobSpec;
  readonly by: string;
  /** The schedule that it comes from. */
  readonly schedule?: string;
  /** The transaction over islands that it comes from. Only where every member keeps the pair (PROTOCOL_OF_TRANSACTIONS). */
  readonly delivery?: Delivery;
}

/** Which job of which committed transaction this is, for ever (state/deliveries.ts). */
export interface Delivery {
  /** "txn:<id>:<operation>", for people. */
  readonly mark: string;
  /** Of the record that committed it, in the log of scopes and values. */
  readonly place: number;
  readonly operation: number;
}

export interface Assigned {
  readonly jobEpoch: number;
  readonly leaseHash: string;
  readonly attempt: number;
  readonly agent: string;
  readonly sessionHash: string;
  readonly ttlMs: number;
  /** The agent's number of the call that it answers, where that had one. */
  readonly poll?: number;
}

export interface Building {
  readonly jobEpoch: number;
  readonly leaseHash: string;
  readonly progress: Omit<JobProgress, "atMs">;
}

export interface Logged {
  readonly jobEpoch: number;
  readonly leaseHash: string;
  readonly attempt: number;
  /** In bytes. */
  readonly offset: number;
  readonly text: string;
  readonly bytes: number;
}

export interface Completed {
  readonly jobEpoch: number;
  readonly leaseHash: string;
  readonly result: Json;
}

/**
 * Why an attempt ended without success. `undelivered`: no agent ever heard of it. `asked`: nobody's attempt ended, a person
 * wanted it.
 */
export type EndCause = "failed" | "timed-out" | "lost" | "handed-back" | "undelivered" | "cancelled" | "asked";

export interface Failed {
  readonly jobEpoch: number;
  /** Null: nobody ever had it. */
  readonly leaseHash: string | null;
  readonly cause: EndCause;
  readonly error: JobFailure;
}

export interface Retried extends Marked {
  readonly jobEpoch: number;
  /** Of the attempt that ended; null where a person sends a finished job once more. */
  readonly leaseHash: string | null;
  readonly cause: EndCause;
  readonly readyAtMs: number;
  readonly error: JobFailure | null;
  /** A job that the book has dropped since it was finished: all that is needed to have it again. */
  readonly job?: RestoredJob;
}

export interface RestoredJob extends Pick<Job, "spec" | "submittedAtMs" | "submittedSequence" | "submittedBy"> {
  /** As of Submitted. Absent in events of older releases, and of no meaning to them: there its schedule does not know the job any more. */
  readonly schedule?: string;
  readonly attempt: number;
  readonly attempts: readonly Attempt[];
}

export interface Cancelling extends Marked {
  readonly jobEpoch: number;
  readonly by: string;
}

export interface Cancelled extends Marked {
  readonly jobEpoch: number;
  /** Of the attempt that ended; null where there was none. */
  readonly leaseHash: string | null;
  readonly cause: EndCause;
}

export interface Registered extends Marked, Omit<AgentInfo, "name" | "session"> {
  readonly sessionHash: string;
  /**
   * An operator's word about this session: all else is as it was. Not a type of its own, at which a node of an older release
   * would stop in the middle of an upgrade; that one gives jobs to the agent while it leads (decision 0020).
   */
  readonly draining?: boolean;
  /** Who registered it (AgentCaller). Absent in events of older releases. */
  readonly owner?: string;
}

export interface Offline {
  readonly sessionHash: string;
}

export interface Removed extends Marked {
  /** `asked`: this session stays refused. `room`: others needed its place, and nothing of it is kept. */
  readonly cause: "asked" | "room";
}

export interface SchedulePut extends Marked {
  readonly schedule: Schedule;
  /** The leader's wall clock: times of day up to it are nobody's business. */
  readonly wallMs: number;
}

export interface Fired {
  readonly atMs: number;
  /** Null: left out. A job of it was not finished, or the time was missed. */
  readonly jobId: string | null;
}

const BY_SCHEDULE = "schedule:";

/** Who submits the jobs of a schedule. */
export function byOf(schedule: string): string {
  return `${BY_SCHEDULE}${schedule}`;
}

/**
 * The schedule that a job comes from, of which only its submitter is left. A job of somebody who is named like this in the servers'
 * configuration would be taken for one: at worst the schedule waits for it once.
 */
export function scheduleOf(submittedBy: string): string | null {
  return submittedBy.startsWith(BY_SCHEDULE) ? submittedBy.slice(BY_SCHEDULE.length) : null;
}

/** The payloads above are JSON by their making; the compiler can't see that of an interface. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller says which payload it is
export function payloadOf<T extends object>({ payload }: { readonly payload: EventPayload }): T {
  return payload as unknown as T;
}
