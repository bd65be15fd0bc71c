// What can be asked of the jobs, and what is answered. A command and its context hold everything that a decision needs, also
// the time, the random numbers and the fresh ids: the same book, command and context give the same decision.

import type { EventDraft } from "./events.ts";
import type { ErrorCode } from "../kit/errors.ts";
import type {
  AgentCaller,
  GivenLease,
  LeaseRef,
  LogChunk,
  Request,
  ResultAnswer,
  ResultCall,
} from "../../ports/jobs.ts";
import type { DeliveredJob } from "../../ports/transactions.ts";
import type { AgentInfo, Job, JobProgress, JobSpec, JobState, Schedule } from "./model.ts";

export interface DecideContext {
  /** The events' clock, in whole milliseconds: it never goes back, also from one leader to the next. Durations are counted by it. */
  readonly nowMs: number;
  /** How much of it was jumped over, and no event has told of yet (state/skips.ts). */
  readonly skippedMs: number;
  /** The time of day, as far as the leader's clock is believed, in whole milliseconds: what dates are compared with. */
  readonly wallMs: number;
  /** The one in force: what a lease is stamped with, and what a result must name. */
  readonly leaderEpoch: number;
  /** Of leases and events; each call another one. */
  readonly newId: () => string;
  readonly newJobId: () => string;
  /** What the log and the book know of a lease: whoever has its id may end the job, and events are shown to many. */
  readonly leaseHash: (leaseId: string) => string;
  /** In [0, 1): the jitter of a backoff. */
  readonly random: () => number;
}

export type JobsCommand =
  | { readonly kind: "submit"; readonly request: Request; readonly specs: readonly JobSpec[] }
  /** What was submitted inside of transactions of the user's own: they are committed, so nothing can be refused for good. */
  | { readonly kind: "take"; readonly jobs: readonly TakenJob[] }
  /** Jobs of transactions over islands, in their order: those that were delivered before are left out. Nothing can be refused for good. */
  | { readonly kind: "deliver"; readonly jobs: readonly DeliveredJob[] }
  /** `job`: as the views have it, where the book does not any more: it is finished. */
  | { readonly kind: "cancel"; readonly request: Request; readonly jobId: string; readonly job?: Job | null }
  /** `job`: as the views have it, where the book does not any more (`known(id)` is false). */
  | { readonly kind: "retry"; readonly request: Request; readonly jobId: string; readonly job: Job | null }
  /** `max` 0 registers the agent and gives nothing: while draining, and for a call that only renews. */
  | {
      readonly kind: "lease";
      readonly agent: AgentInfo;
      readonly max: number;
      readonly ttlMs: number;
      /** As the call's. */
      readonly poll?: number | undefined;
      readonly agentEpoch?: number | undefined;
      readonly caller?: AgentCaller | undefined;
      /** The call shows that its process was answered before: it never registers a name that is another's by now. */
      readonly goesOn?: boolean | undefined;
    }
  /** What this session was given by calls after `answered` and before `poll`: no answer to them has come, nor will. */
  | {
      readonly kind: "take-back";
      readonly name: string;
      readonly session: string;
      readonly poll: number;
      readonly answered: number;
    }
  | {
      readonly kind: "report";
      readonly session: string;
      readonly progress: readonly (LeaseRef & { readonly progress: Omit<JobProgress, "atMs"> })[];
      readonly logs: readonly (LeaseRef & { readonly chunk: LogChunk })[];
    }
  | { readonly kind: "results"; readonly session: string; readonly results: readonly ResultCall[] }
  /** Nobody renewed it in time. Of a lease that ended meanwhile: nothing. */
  | { readonly kind: "lease-expired"; readonly jobId: string; readonly jobEpoch: number }
  | { readonly kind: "attempt-timed-out"; readonly jobId: string; readonly jobEpoch: number }
  /** It was not heard for long. Its leases, if it has any, end by themselves. */
  | { readonly kind: "agent-offline"; readonly name: string; readonly session: string }
  | { readonly kind: "remove-agent"; readonly request: Request; readonly name: string }
  /** No new jobs for it, or again; what it has goes on. Of its present session. */
  | { readonly kind: "drain-agent"; readonly request: Request; readonly name: string; readonly draining: boolean }
  /** All leases of an agent, at once and without cost: its node is about to lead. */
  | { readonly kind: "hand-back"; readonly name: string }
  | { readonly kind: "pause-queue"; readonly request: Request; readonly queue: string; readonly paused: boolean }
  | { readonly kind: "put-schedule"; readonly request: Request; readonly schedule: Schedule }
  | { readonly kind: "delete-schedule"; readonly request: Request; readonly name: string }
  /**
   * `atMs`: the time that the schedule names, not the one at which somebody noticed. Once for each, in order; those before
   * it are left out. `isMissed`: it is left out too.
   */
  | { readonly kind: "fire-schedule"; readonly name: string; readonly atMs: number; readonly isMissed?: boolean }
  /**
   * The end of their retention, as the views see it. Also of jobs that the book has dropped; of those that it has, one that
   * is live, or has to be kept for longer, is left out.
   */
  | { readonly kind: "forget"; readonly jobIds: readonly string[] };

export interface TakenJob {
  /** Given when it was submitted. */
  readonly id: string;
  readonly by: string;
  readonly spec: JobSpec;
  /** Why nobody can do it, as the rest of a sentence; null: it is fine as far as is known. */
  readonly problem: string | null;
}

export type JobsCommandKind = JobsCommand["kind"];
export type CommandOf<Kind extends JobsCommandKind> = Extract<JobsCommand, { readonly kind: Kind }>;

/** What is answered to each, once what it rests on is committed. */
export interface JobsAnswers {
  readonly submit: { readonly jobIds: readonly string[] };
  readonly take: Readonly<Record<string, never>>;
  readonly deliver: Readonly<Record<string, never>>;
  /** To be shown as it is when the answer leaves. */
  readonly cancel: { readonly jobId: string };
  readonly retry: { readonly jobId: string };
  readonly lease: {
    readonly leases: readonly GivenLease[];
    /** Leases of an earlier process of this agent, or that it was taken for. */
    readonly lost: readonly LeaseRef[];
    /** The owner from whom an operator has taken the name by this; null: nobody. */
    readonly takenFrom: string | null;
  };
  readonly "take-back": { readonly takenBack: readonly LeaseRef[] };
  readonly report: {
    /** In order: whether it was taken. It was not where the lease is not this session's any more. */
    readonly progress: readonly boolean[];
    /** In order: where the log ends now, from which the next chunk goes on; null where the lease is not this session's. */
    readonly logs: readonly (number | null)[];
  };
  readonly results: { readonly answers: readonly ResultAnswer[] };
  /** The state that the job takes; null where there was nothing to do. */
  readonly "lease-expired": { readonly state: JobState | null };
  readonly "attempt-timed-out": { readonly state: JobState | null };
  readonly "agent-offline": { readonly isChanged: boolean };
  readonly "remove-agent": { readonly lost: readonly LeaseRef[] };
  readonly "drain-agent": { readonly isChanged: boolean };
  readonly "hand-back": { readonly handedBack: readonly LeaseRef[] };
  readonly "pause-queue": { readonly isChanged: boolean };
  readonly "put-schedule": { readonly isChanged: boolean };
  readonly "delete-schedule": { readonly isChanged: boolean };
  /** Null: left out, because a job of it is not finished, it was missed, it is paused, or it has fired for this time. */
  readonly "fire-schedule": { readonly jobId: string | null };
  readonly forget: { readonly forgotten: readonly string[] };
}

export type Decision<Answer> =
  | {
      readonly kind: "decided";
      /** In order, to be appended together. None: it is so already. */
      readonly drafts: readonly EventDraft[];
      readonly answer: Answer;
      /** The request was answered before, under the same idempotency key: this is that answer. */
      readonly isRepeated: boolean;
    }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string };
