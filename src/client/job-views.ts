// Jobs, agents, queues, schedules, events and keys as the SDK shows them: docs/reference describes each field. The wire's
// spelling is the contract's; a test holds both together.

import type { JobState } from "../core/jobs/model.ts";

/** What JSON can say. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type { JobState };

/** What is to be done; all but the kind has a default. */
export interface JobRequest {
  readonly kind: string;
  readonly payload?: Json | undefined;
  readonly queue?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly platform?: string | null | undefined;
  readonly priority?: number | undefined;
  readonly notBeforeMs?: number | null | undefined;
  readonly attemptsMax?: number | undefined;
  readonly lossesMax?: number | undefined;
  readonly backoff?: { readonly baseMs: number; readonly maxMs: number } | undefined;
  readonly timeoutMs?: number | null | undefined;
  readonly retentionMs?: number | undefined;
  readonly concurrency?: { readonly key: string; readonly limit: number } | null | undefined;
}

export interface JobSpecView {
  readonly kind: string;
  readonly payload: Json;
  readonly queue: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly platform: string | null;
  readonly priority: number;
  readonly notBeforeMs: number | null;
  readonly attemptsMax: number;
  readonly lossesMax: number;
  readonly backoff: { readonly baseMs: number; readonly maxMs: number };
  readonly timeoutMs: number | null;
  readonly retentionMs: number;
  readonly concurrency: { readonly key: string; readonly limit: number } | null;
}

export interface JobLeaseView {
  readonly jobEpoch: number;
  readonly leaderEpoch: number;
  readonly attempt: number;
  readonly agent: string;
  readonly session: string;
  readonly ttlMs: number;
}

export interface JobAttemptView extends JobLeaseView {
  readonly assignedAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly end: "completed" | "failed" | "timed-out" | "lost" | "cancelled" | "handed-back" | "undelivered" | null;
}

export interface JobProgressView {
  readonly share: number | null;
  readonly message: string | null;
  readonly atMs: number;
}

/** Why a pending job is not assigned, the first that holds. */
export type PendingReasonView =
  | { readonly reason: "paused"; readonly queue: string }
  | { readonly reason: "not-before"; readonly readyAtMs: number }
  | { readonly reason: "concurrency"; readonly key: string; readonly limit: number }
  | { readonly reason: "no-agent"; readonly kind: string; readonly missing: string }
  | { readonly reason: "agents-busy"; readonly agents: number }
  | { readonly reason: "draining" }
  /** It was restored paused, and not resumed yet. */
  | { readonly reason: "cluster-paused" }
  | { readonly reason: "next" };

export interface JobTimelineEntry {
  readonly atMs: number;
  readonly what: "submitted" | "assigned" | "started" | "ended" | "finished";
  readonly attempt: number | null;
  readonly jobEpoch: number | null;
  readonly leaderEpoch: number | null;
  readonly agent: string | null;
  readonly end: string | null;
}

export interface JobView {
  readonly id: string;
  readonly spec: JobSpecView;
  readonly state: JobState;
  readonly jobEpoch: number;
  readonly failures: number;
  readonly losses: number;
  readonly submittedAtMs: number;
  readonly submittedSequence: number;
  readonly submittedBy: string;
  readonly readyAtMs: number;
  readonly lease: JobLeaseView | null;
  readonly progress: JobProgressView | null;
  readonly attempts: readonly JobAttemptView[];
  readonly finishedAtMs: number | null;
  readonly result: Json;
  readonly error: { readonly message: string; readonly detail: Json } | null;
  readonly pendingReason: PendingReasonView | null;
  readonly timeline: readonly JobTimelineEntry[];
}

/** In lists: without what may be large. */
export interface JobBrief {
  readonly id: string;
  readonly kind: string;
  readonly queue: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly platform: string | null;
  readonly priority: number;
  readonly state: JobState;
  readonly jobEpoch: number;
  readonly failures: number;
  readonly losses: number;
  readonly submittedAtMs: number;
  readonly submittedBy: string;
  readonly readyAtMs: number;
  readonly agent: string | null;
  readonly progress: JobProgressView | null;
  readonly finishedAtMs: number | null;
  readonly errorMessage: string | null;
}

export interface AgentView {
  readonly name: string;
  readonly session: string;
  readonly kinds: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly platform: string;
  readonly capacity: number;
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
  readonly overlap?: "allow" | "skip" | undefined;
  readonly catchUp?: "none" | "last" | "all" | undefined;
  readonly paused?: boolean | undefined;
}

export interface ScheduleView {
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly spec: JobSpecView;
  readonly overlap: "allow" | "skip";
  readonly catchUp: "none" | "last" | "all";
  readonly paused: boolean;
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

export type KeyRole = "viewer" | "submitter" | "agent" | "client" | "backup" | "operator";

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
