// Jobs, agents, queues, schedules, events and keys as the SDK shows them: docs/reference describes each field. What a job is, is
// core/jobs/model.ts, and what a server says of the others is in ports/; a lease's id is shown to nobody.

import type {
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
import type { JobsStats } from "../ports/jobs.ts";

export type { RevokedCertificate as RevokedCertificateView } from "../ports/certificates.ts";
export type { AgentView, QueueView, ScheduleView } from "../ports/jobs.ts";
export type { KeyView } from "../ports/keys.ts";
export type { JobState, JobTimelineEntry, Json };

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

export interface StatsView extends JobsStats {
  readonly firstSequence: number;
  readonly lastSequence: number;
}

export type KeyRole = ApiRole;

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
