// Jobs as programs see them, with `-o json`: docs/reference/cli.md lists the fields, and a test compares. Pure.

import type { JobBrief, JobProgressView, JobView, LogPiece, PendingReasonView } from "../../client/index.ts";
import type { ErrorCode } from "../../contract/errors.ts";
import { pendingText } from "./view.ts";
import { isoTime, timeOrNull } from "../kit/output.ts";

/** Why a step was not done for one of several jobs. */
export interface JobRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Of cancel and retry. */
export function steeredObject(id: string, job: Pick<JobView, "state"> | null, refusal: JobRefusal | null) {
  return { id, state: job?.state ?? null, refusal };
}

/** Of wait; a job that is not finished has only its state. */
export function waitedObject(id: string, job: JobView | null, refusal: JobRefusal | null) {
  return {
    ...steeredObject(id, job, refusal),
    finished_at: timeOrNull(job?.finishedAtMs ?? null),
    result: job?.result ?? null,
    error: job?.error ?? null,
  };
}

export function pieceObject({ attempt, offset, nextOffset, text }: LogPiece) {
  return { attempt, offset, next_offset: nextOffset, text };
}

export function briefObject(job: JobBrief) {
  return {
    id: job.id,
    kind: job.kind,
    queue: job.queue,
    labels: job.labels,
    platform: job.platform,
    priority: job.priority,
    state: job.state,
    job_epoch: job.jobEpoch,
    failures: job.failures,
    losses: job.losses,
    submitted_at: isoTime(job.submittedAtMs),
    submitted_by: job.submittedBy,
    ready_at: isoTime(job.readyAtMs),
    agent: job.agent,
    progress: progressObject(job.progress),
    finished_at: timeOrNull(job.finishedAtMs),
    error_message: job.errorMessage,
  };
}

function progressObject(progress: JobProgressView | null) {
  return progress === null ? null : { share: progress.share, message: progress.message, at: isoTime(progress.atMs) };
}

export function jobObject(job: JobView) {
  const { spec, lease, pendingReason } = job;
  return {
    id: job.id,
    state: job.state,
    spec: {
      kind: spec.kind,
      payload: spec.payload,
      queue: spec.queue,
      labels: spec.labels,
      platform: spec.platform,
      priority: spec.priority,
      not_before: timeOrNull(spec.notBeforeMs),
      attempts_max: spec.attemptsMax,
      losses_max: spec.lossesMax,
      backoff: { base_ms: spec.backoff.baseMs, max_ms: spec.backoff.maxMs },
      timeout_ms: spec.timeoutMs,
      retention_ms: spec.retentionMs,
      concurrency: spec.concurrency,
    },
    job_epoch: job.jobEpoch,
    failures: job.failures,
    losses: job.losses,
    submitted_at: isoTime(job.submittedAtMs),
    submitted_sequence: job.submittedSequence,
    submitted_by: job.submittedBy,
    ready_at: isoTime(job.readyAtMs),
    lease: lease === null ? null : leaseObject(lease),
    progress: progressObject(job.progress),
    attempts: job.attempts.map((one) => ({
      ...leaseObject(one),
      assigned_at: isoTime(one.assignedAtMs),
      started_at: timeOrNull(one.startedAtMs),
      ended_at: timeOrNull(one.endedAtMs),
      end: one.end,
    })),
    finished_at: timeOrNull(job.finishedAtMs),
    result: job.result,
    error: job.error,
    pending_reason: pendingReason === null ? null : reasonObject(pendingReason),
    timeline: job.timeline.map(({ atMs, what, attempt, jobEpoch, leaderEpoch, agent, end }) => {
      return { at: isoTime(atMs), what, attempt, job_epoch: jobEpoch, leader_epoch: leaderEpoch, agent, end };
    }),
  };
}

function leaseObject({ jobEpoch, leaderEpoch, attempt, agent, session, ttlMs }: NonNullable<JobView["lease"]>) {
  return { attempt, job_epoch: jobEpoch, leader_epoch: leaderEpoch, agent, session, ttl_ms: ttlMs };
}

/** Each reason has its own fields; the others are null. */
function reasonObject(reason: PendingReasonView) {
  const nothing = { queue: null, ready_at: null, key: null, limit: null, kind: null, missing: null, agents: null };
  const { readyAtMs, ...own } = { readyAtMs: null, ...reason } as { readonly readyAtMs: number | null };
  return { text: pendingText(reason), ...nothing, ...own, ready_at: timeOrNull(readyAtMs) };
}
