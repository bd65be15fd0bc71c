// What a job is: the words that the log, the API and the views share. A job is what the mesh calls a build.
//
//   pending ──▶ assigned ──▶ building ──▶ completed
//      ▲           │            │  └────▶ failed        its own mistakes: at most `attemptsMax` of them
//      │           └─────┬──────┘
//      └── retried ◀─────┤        a mistake with attempts left, a loss with losses left, or by hand from a final state
//                        └──▶ cancelling ──▶ cancelled  a pending job is cancelled at once; work that its agent had
//                                                       done before it heard of it is completed
//
// `jobEpoch` grows whenever the job is assigned, taken away or sent back: what names an older one is stale (traps 50, 56).

import type { Json } from "../kit/json.ts";

/** By number in snapshots: add at the end only. */
export const JOB_STATES = [
  "pending",
  "assigned",
  "building",
  "cancelling",
  "completed",
  "failed",
  "cancelled",
] as const;
export type JobState = (typeof JOB_STATES)[number];

export const FINAL_STATES = ["completed", "failed", "cancelled"] as const satisfies readonly JobState[];

export interface JobSpec {
  readonly kind: string;
  readonly payload: Json;
  readonly queue: string;
  /** All of them must be labels of the agent. */
  readonly labels: Readonly<Record<string, string>>;
  /** Null: any. */
  readonly platform: string | null;
  /** Higher goes first; of equals, the one that was submitted first. */
  readonly priority: number;
  /** Wall time of the leader. Null: now. */
  readonly notBeforeMs: number | null;
  /** How often it may end by its own mistake, the last time included. */
  readonly attemptsMax: number;
  /** How often an agent may be lost with it (trap 54). */
  readonly lossesMax: number;
  readonly backoff: { readonly baseMs: number; readonly maxMs: number };
  /** How long one attempt may take. Null: as long as its lease is renewed. */
  readonly timeoutMs: number | null;
  /** How long it is shown after its end. */
  readonly retentionMs: number;
  /** At most so many with this key are assigned at one time. */
  readonly concurrency: { readonly key: string; readonly limit: number } | null;
}

/** What a job asks for that asks for nothing in particular. */
export const PLAIN_SPEC = {
  payload: null,
  queue: "default",
  labels: {},
  platform: null,
  priority: 0,
  notBeforeMs: null,
  timeoutMs: null,
  concurrency: null,
} as const satisfies Partial<JobSpec>;

export interface Lease {
  /** Its hash: the id itself is the agent's alone. */
  readonly leaseId: string;
  readonly jobEpoch: number;
  /** The leader that gave it. */
  readonly leaderEpoch: number;
  /** 1 for the first. */
  readonly attempt: number;
  readonly agent: string;
  /** The hash of the agent's process: new at each of its starts (trap 55). */
  readonly session: string;
  readonly ttlMs: number;
}

/** How an attempt ended, or that it has not. */
export interface Attempt extends Lease {
  readonly assignedAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly end: AttemptEnd | null;
}

/** By number in snapshots: add at the end only. */
export const ATTEMPT_ENDS = [
  "completed",
  "failed",
  "timed-out",
  "lost",
  "cancelled",
  "handed-back",
  "undelivered",
] as const;
export type AttemptEnd = (typeof ATTEMPT_ENDS)[number];

export interface Job {
  readonly id: string;
  readonly spec: JobSpec;
  readonly state: JobState;
  readonly jobEpoch: number;
  /** Mistakes of its own so far. */
  readonly failures: number;
  readonly losses: number;
  readonly submittedAtMs: number;
  /** Of the event that submitted it. Unlike a time it is unique, and the same on every node: the order of lists and pages. */
  readonly submittedSequence: number;
  /** Who submitted it: the name of a key or certificate. */
  readonly submittedBy: string;
  /** When it may be assigned next; of a pending job. */
  readonly readyAtMs: number;
  /** Of the present attempt. */
  readonly lease: Lease | null;
  readonly progress: JobProgress | null;
  /** The last ones, oldest first, at most JOB_ATTEMPTS_KEPT. */
  readonly attempts: readonly Attempt[];
  readonly finishedAtMs: number | null;
  readonly result: Json;
  readonly error: JobFailure | null;
}

export interface JobProgress {
  /** 0 to 1. */
  readonly share: number | null;
  readonly message: string | null;
  readonly atMs: number;
}

export interface JobFailure {
  readonly message: string;
  readonly detail: Json;
}

/** What happened to a job, as it is shown. */
export interface JobTimelineEntry {
  readonly atMs: number;
  readonly what: "submitted" | "assigned" | "started" | "ended" | "finished";
  readonly attempt: number | null;
  readonly jobEpoch: number | null;
  readonly leaderEpoch: number | null;
  readonly agent: string | null;
  /** Of an attempt that ended, how; of a job that finished, its state. */
  readonly end: string | null;
}

export interface AgentInfo {
  readonly name: string;
  /** Of its process, and its secret. What is decided, kept and shown has the hash in its place. */
  readonly session: string;
  readonly kinds: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly platform: string;
  /** How many jobs it runs at once. */
  readonly capacity: number;
}

export const OVERLAPS = ["allow", "skip"] as const;
export const CATCH_UPS = ["none", "last", "all"] as const;

export interface Schedule {
  readonly name: string;
  /** Five fields. */
  readonly cron: string;
  /** An IANA name. */
  readonly timeZone: string;
  readonly spec: JobSpec;
  /** While a job of it is not finished: submit another, or leave this time out. */
  readonly overlap: (typeof OVERLAPS)[number];
  /** What is done about times that passed while nobody led: nothing, the last of them, or all, at most SCHEDULE_CATCH_UP_MAX. */
  readonly catchUp: (typeof CATCH_UPS)[number];
  readonly paused: boolean;
}

/** Why a pending job is not assigned, the first that holds. */
export type PendingReason =
  | { readonly reason: "paused"; readonly queue: string }
  | { readonly reason: "not-before"; readonly readyAtMs: number }
  | { readonly reason: "concurrency"; readonly key: string; readonly limit: number }
  | { readonly reason: "no-agent"; readonly kind: string; readonly missing: string }
  | { readonly reason: "agents-busy"; readonly agents: number }
  | { readonly reason: "draining" }
  /** It was restored paused, and not resumed yet. */
  | { readonly reason: "cluster-paused" }
  | { readonly reason: "next" };
