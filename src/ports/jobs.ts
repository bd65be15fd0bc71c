// Jobs, as the API sees them. The leader decides; every node shows the applied state. What is refused rejects with a
// TenureError. Every answer, a refusal or a repeated one included, leaves when what it rests on is committed in the leader's
// term (design D11); otherwise it is OUTCOME_UNKNOWN.

import type {
  AgentInfo,
  Job,
  JobFailure,
  JobProgress,
  JobSpec,
  JobState,
  PendingReason,
  Schedule,
} from "../core/jobs/model.ts";
import type { Json } from "../core/kit/json.ts";

/** Who asks, and under which key of theirs: the same key with the same body is answered as the first time (design D16). */
export interface Request {
  /** The name of an API key or certificate. */
  readonly caller: string;
  /** Null: the caller takes care itself. */
  readonly idempotencyKey: string | null;
  /** SHA-256 of method, path and body, hex; "" without a key. The same key with another one is IDEMPOTENCY_MISMATCH. */
  readonly bodyHash: string;
  /** Only while this is the active epoch; else STALE_EPOCH. */
  readonly leaderEpoch?: number | undefined;
}

/** An operator, of the whole cluster; or the hand-over of a leader whose node is drained. */
export type DrainedBy = "operator" | "hand-over";

export interface Jobs {
  // ---- mutations: the leader's ---------------------------------------------------------------------

  /** All or none. Resolves to the ids, in order. */
  submit(request: Request, specs: readonly JobSpec[]): Promise<readonly string[]>;
  /** Of a job that is finished: JOB_FINISHED. */
  cancel(request: Request, jobId: string): Promise<Job>;
  /** A finished job, once more, with fresh budgets. */
  retry(request: Request, jobId: string): Promise<Job>;
  /** One call of an agent: reports, renews, and leases up to `max` new jobs, waiting up to `waitMs` for the first. */
  lease(call: LeaseCall, signal: AbortSignal): Promise<LeaseAnswer>;
  /** An answer for each, in order. */
  results(session: string, results: readonly ResultCall[]): Promise<readonly ResultAnswer[]>;
  removeAgent(request: Request, name: string): Promise<void>;
  /** No new jobs for this agent, or again; what it has goes on. Of its present session. */
  drainAgent(request: Request, name: string, draining: boolean): Promise<void>;
  pauseQueue(request: Request, queue: string, paused: boolean): Promise<void>;
  putSchedule(request: Request, schedule: Schedule): Promise<void>;
  deleteSchedule(request: Request, name: string): Promise<void>;
  /** Quiet (D17): no new leases from now on, until everybody has taken it back who asked. Of this leader's term only. */
  setDraining(draining: boolean, by?: DrainedBy): void;
  /** Whether this node leads and is quiet. */
  isDraining(): boolean;

  // ---- reads: every node's, from applied state ------------------------------------------------------

  /** Of those in memory: all that are live, and those that were finished last. */
  job(jobId: string): Job | null;
  /** Wherever it is. Waits so long for the views of this node where they are behind, or are being built again. */
  find(jobId: string, waitMs: number): Promise<FoundJob>;
  /** Views at this position have all that this job has logged; 0: it goes on. Before that its log may lack what is being replayed. */
  loggedUpTo(jobId: string): number;
  /** Null: it is not pending, or not known. */
  whyPending(jobId: string): PendingReason | null;
  /** By name. Nothing is worked out of those that are not in the page. */
  agents(page?: NamesPage): readonly AgentView[];
  queues(page?: NamesPage): readonly QueueView[];
  schedules(page?: NamesPage): readonly ScheduleView[];
  stats(): JobsStats;
}

export type FoundJob =
  /** As it is in the applied state; null: there is none in it. */
  | {
      readonly kind: "found";
      readonly job: Job | null;
      /** It had ended before events that nobody has: it may have been run once more in them, and have ended otherwise. */
      readonly mayBeOlder: boolean;
    }
  /** Nothing is known of it yet: this node's views are at `position`, and must be at `wanted`. */
  | { readonly kind: "behind"; readonly position: number; readonly wanted: number };

/** Who calls for an agent. Names belong to whoever has registered them. */
export interface AgentCaller {
  /** `key:NAME`, `certificate:SPIFFE ID` or `anonymous`. */
  readonly owner: string;
  /** An operator: may register a name that is another's. */
  readonly mayTakeOver: boolean;
}

/** The first `limit` names after `after`. */
export interface NamesPage {
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface LeaseCall {
  readonly agent: AgentInfo;
  /**
   * As the answer to this process's first call has it; undefined: this is the first, or the agent is of an older release. A
   * call that names one never registers: where the name is another process's, or forgotten, it is STALE_EPOCH, for ever.
   */
  readonly agentEpoch?: number | undefined;
  /** Undefined: nobody is asked for. */
  readonly caller?: AgentCaller | undefined;
  /** Leases that it holds and wants to keep. */
  readonly renew: readonly LeaseRef[];
  readonly progress: readonly (LeaseRef & { readonly progress: Omit<JobProgress, "atMs"> })[];
  readonly logs: readonly (LeaseRef & { readonly chunk: LogChunk })[];
  readonly max: number;
  readonly waitMs: number;
  readonly ttlMs: number;
  /**
   * The number of this call among those of its session that ask for jobs, from 1 up, one call at a time. One that comes
   * after a later one, or twice, is OUTCOME_UNKNOWN, and given nothing.
   */
  readonly poll?: number | undefined;
  /**
   * The last of them that was answered. What was given to those between has reached nobody, nor will: it is taken back at
   * once and costs the jobs nothing. Without it, it is waited for until those leases are over.
   */
  readonly answered?: number | undefined;
  /** As a request's. */
  readonly leaderEpoch?: number | undefined;
}

export interface LeaseRef {
  readonly jobId: string;
  readonly jobEpoch: number;
  readonly leaseId: string;
}

/** Ordered and idempotent: a chunk whose `offset` is after what is stored is taken from there, or not at all. */
export interface LogChunk {
  /** Bytes of this attempt's log before it. */
  readonly offset: number;
  readonly text: string;
}

export interface LeaseAnswer {
  readonly leaderEpoch: number;
  /** The agent's epoch: grows with each process that registers under its name. Absent: not known. */
  readonly agentEpoch?: number | undefined;
  /** The owner from whom an operator has taken the name by this call. */
  readonly takenFrom?: string | undefined;
  readonly renewed: readonly (LeaseRef & {
    /** `renewed`: for its whole duration from when this was sent. `cancelled`: end it. `committed`: your result is in (with what). `lost`: end it, it is not yours. */
    readonly outcome: "renewed" | "cancelled" | "committed" | "lost";
    readonly state: JobState | null;
  })[];
  readonly leases: readonly GivenLease[];
  /** Of each log chunk, in order: where that log ends now, from which the next goes on; null where the lease is not its. */
  readonly logEnds: readonly (number | null)[];
  /** The leader is being drained: it gives no leases. */
  readonly isDraining: boolean;
}

export interface GivenLease extends LeaseRef {
  readonly leaderEpoch: number;
  readonly attempt: number;
  readonly ttlMs: number;
  readonly spec: JobSpec;
}

export interface ResultCall extends LeaseRef {
  readonly leaderEpoch: number;
  readonly outcome:
    | { readonly kind: "completed"; readonly result: Json }
    | { readonly kind: "failed"; readonly error: JobFailure; readonly retry: boolean }
    | { readonly kind: "cancelled" }
    /** Given back untouched: costs neither an attempt nor a loss. */
    | { readonly kind: "handed-back" };
}

export type ResultAnswer =
  | { readonly ok: true; readonly state: JobState; readonly isRepeated: boolean }
  /** STALE_EPOCH: of an older jobEpoch or leaderEpoch; `leaderEpoch` is the current one. NOT_FOUND: no such job. */
  | {
      readonly ok: false;
      readonly code: "STALE_EPOCH" | "NOT_FOUND";
      readonly message: string;
      readonly leaderEpoch: number;
    };

export interface AgentView extends AgentInfo {
  /** `draining`: it is there, and is given nothing more. */
  readonly state: "online" | "draining" | "offline";
  readonly registeredAtMs: number;
  /** Jobs that it has. */
  readonly running: number;
  /** Grows with each process that registers under this name; absent where it was registered by an older release. */
  readonly epoch?: number;
  /** Who registered it, and may register it again (see AgentCaller); absent: nobody. */
  readonly owner?: string;
}

export interface QueueView {
  readonly queue: string;
  readonly paused: boolean;
  readonly pending: number;
  readonly running: number;
}

export interface ScheduleView extends Schedule {
  readonly lastAtMs: number | null;
  readonly nextAtMs: number | null;
}

export interface JobsStats {
  readonly byState: Readonly<Record<JobState, number>>;
  readonly submitted: number;
  readonly finished: number;
  readonly agentsOnline: number;
  readonly staleRejected: number;
}

export type { AgentInfo, Job, JobFailure, JobProgress, JobSpec, JobState, PendingReason, Schedule };
