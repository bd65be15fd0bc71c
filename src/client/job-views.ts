// Jobs, agents, queues, schedules, events and keys as the SDK shows them: docs/reference describes each field. What a job is, is
// core/jobs/model.ts; a lease's id is shown to nobody.

import type {
  AgentInfo,
  Attempt,
  Job,
  JobProgress,
  JobSpec,
  JobState,
  JobTimelineEntry,
  Lease,
  PendingReason,
  Schedule,
} from "../core/jobs/model.ts";
import type { ApiRole } from "../core/kit/api-role.ts";
import type { Json } from "../core/kit/json.ts";

export type { Json };

export type { JobState, JobTimelineEntry };

/** What is to be done; all but the kind has a default. */
export type JobRequest = Pick<JobSpec, "kind"> & {
  readonly [Field in Exclude<keyof JobSpec, "kind">]?: JobSpec[Field] | undefined;
};

export type JobSpecView = JobSpec;
export type JobLeaseView = Omit<Lease, "leaseId">;
export type JobAttemptView = Omit<Attempt, "leaseId">;
export type JobProgressView = JobProgress;
export type PendingReasonView = PendingReason;

export interface JobView extends Omit<Job, "lease" | "attempts"> {
  readonly lease: JobLeaseView | null;
  readonly attempts: readonly JobAttemptView[];
  readonly pendingReason: PendingReasonView | null;
  readonly timeline: readonly JobTimelineEntry[];
}

/** In lists: without what may be large. */
export interface JobBrief
  extends
    Pick<JobSpec, "kind" | "queue" | "labels" | "platform" | "priority">,
    Omit<Job, "spec" | "submittedSequence" | "lease" | "attempts" | "result" | "error"> {
  readonly agent: string | null;
  readonly errorMessage: string | null;
}

export interface AgentView extends AgentInfo {
  /** `draining`: it is there, and is given nothing more. */
  readonly state: "online" | "draining" | "offline";
  readonly registeredAtMs: number;
  readonly running: number;
  /** Grows with each process that registers under this name; absent where it was registered by an older release. */
  readonly epoch?: number;
  /** Who registered it, and may register it again: `key:NAME`, `certificate:SPIFFE ID` or `anonymous`; absent: nobody. */
  readonly owner?: string;
}

export interface QueueView {
  readonly queue: string;
  readonly paused: boolean;
  readonly pending: number;
  readonly running: number;
}

export interface ScheduleRequest {
  /** Five fields. */
  readonly cron: string;
  /** An IANA name; UTC. */
  readonly timeZone?: string | undefined;
  readonly spec: JobRequest;
  readonly overlap?: Schedule["overlap"] | undefined;
  readonly catchUp?: Schedule["catchUp"] | undefined;
  readonly paused?: boolean | undefined;
}

export interface ScheduleView extends Schedule {
  readonly lastAtMs: number | null;
  readonly nextAtMs: number | null;
}

export interface StatsView {
  readonly byState: Readonly<Record<JobState, number>>;
  readonly submitted: number;
  readonly finished: number;
  readonly agentsOnline: number;
  readonly staleRejected: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
}

export type KeyRole = ApiRole;

export interface KeyView {
  readonly name: string;
  readonly role: KeyRole;
  readonly createdAtMs: number;
  readonly createdBy: string;
}

/** A client certificate that is let in no more. */
export interface RevokedCertificateView {
  /** Of the certificate (DER), lower-case hex. */
  readonly sha256: string;
  /** The SPIFFE id in it. */
  readonly id: string;
  readonly notAfterMs: number;
  readonly revokedAtMs: number;
  readonly revokedBy: string;
}

/** A sealed event of the log. */
export interface EventView {
  readonly id: string;
  readonly sequence: number;
  readonly timestamp: number;
  readonly eventType: string;
  readonly entityId: string;
  readonly entityType: string;
  readonly payload: Json;
  readonly sourceControllerId: string;
  readonly previousHash: string | null;
  readonly eventHash: string;
  readonly leaderEpoch: number;
}

/** A piece of what one attempt has printed; offsets are bytes. */
export interface LogPiece {
  readonly attempt: number;
  readonly offset: number;
  readonly text: string;
  readonly nextOffset: number;
}
