// Jobs between the wire and the code: what a request leaves out is filled in here, once, so that the log says what was meant
// also when a later version has other defaults. The way back needs no more than the other case (snake-case.ts), but for the
// two forms in which a job is shown.

import type { Job, JobSpec, JobTimelineEntry, Schedule } from "../../core/jobs/model.ts";
import { assertNever } from "../../core/kit/assert.ts";
import type { Json } from "../../core/kit/json.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type { Static } from "typebox";
import type { JobBody, LeasesBody, ResultBody, ScheduleBody } from "./requests.ts";
import { type Snake, toSnake } from "../snake-case.ts";

export const JOB_DEFAULTS = {
  queue: "default",
  priority: 0,
  attemptsMax: 3,
  lossesMax: 10,
  backoff: { baseMs: 1_000, maxMs: 300_000 },
  retentionMs: 7 * 86_400_000,
} as const;

export function specOf(body: Static<typeof JobBody>): JobSpec {
  const { backoff, concurrency = null } = body;
  // In the order of their names: there are many, and they need not be sorted when they are sealed.
  return {
    attemptsMax: body.attempts_max ?? JOB_DEFAULTS.attemptsMax,
    backoff: backoff === undefined ? JOB_DEFAULTS.backoff : { baseMs: backoff.base_ms, maxMs: backoff.max_ms },
    concurrency: concurrency === null ? null : { key: concurrency.key, limit: concurrency.limit },
    kind: body.kind,
    labels: body.labels ?? {},
    lossesMax: body.losses_max ?? JOB_DEFAULTS.lossesMax,
    notBeforeMs: body.not_before_ms ?? null,
    payload: body.payload ?? null,
    platform: body.platform ?? null,
    priority: body.priority ?? JOB_DEFAULTS.priority,
    queue: body.queue ?? JOB_DEFAULTS.queue,
    retentionMs: body.retention_ms ?? JOB_DEFAULTS.retentionMs,
    timeoutMs: body.timeout_ms ?? null,
  };
}

export function scheduleOf(name: string, body: Static<typeof ScheduleBody>): Schedule {
  return {
    name,
    cron: body.cron,
    timeZone: body.time_zone ?? "UTC",
    spec: specOf(body.spec),
    overlap: body.overlap ?? "skip",
    catchUp: body.catch_up ?? "last",
    paused: body.paused ?? false,
  };
}

interface WireLease {
  readonly job_id: string;
  readonly job_epoch: number;
  readonly lease_id: string;
}

function leaseRefOf({ job_id: jobId, job_epoch: jobEpoch, lease_id: leaseId }: WireLease) {
  return { jobId, jobEpoch, leaseId };
}

/** As ports/jobs.ts wants a LeaseCall, of a body in which `leaseMistake` finds none. */
export function leaseCallOf(body: Static<typeof LeasesBody>) {
  const { name, session, kinds, labels = {}, platform, capacity } = body.agent;
  return {
    agent: { name, session, kinds, labels, platform, capacity },
    renew: (body.renew ?? []).map((one) => leaseRefOf(one)),
    progress: (body.progress ?? []).map((one) => ({
      ...leaseRefOf(one),
      progress: { share: one.share ?? null, message: one.message ?? null },
    })),
    logs: (body.logs ?? []).map((one) => ({
      ...leaseRefOf(one),
      chunk: { offset: one.offset, text: one.text },
    })),
    max: body.max,
    waitMs: body.wait_ms ?? 0,
    ttlMs: body.ttl_ms,
    poll: body.poll,
    answered: body.answered,
    agentEpoch: body.agent_epoch,
    leaderEpoch: body.leader_epoch,
  };
}

/** The field that does not go with the others; null where all is well. */
export function leaseMistake({ poll, answered }: Static<typeof LeasesBody>): FieldMistake | null {
  if (answered === undefined || (poll !== undefined && answered < poll)) return null;
  if (poll === undefined)
    return { field: "answered", message: "goes with poll only, the number of this call: send both, or neither" };
  const message = `must be below poll: it is the last call that was answered, and this is call ${poll}`;
  return { field: "answered", message };
}

interface FieldMistake {
  readonly field: string;
  readonly message: string;
}

type WireResult = Static<typeof ResultBody>;

/** As ports/jobs.ts wants a ResultCall, of a body in which `resultMistake` finds none. */
export function resultCallOf(body: WireResult) {
  return { ...leaseRefOf(body), leaderEpoch: body.leader_epoch, outcome: outcomeOf(body) };
}

function outcomeOf({ outcome, result, error, retry }: WireResult) {
  switch (outcome) {
    case "completed":
      return { kind: "completed", result: result ?? null } as const;
    case "failed":
      return {
        kind: "failed",
        error: { message: error?.message ?? "", detail: error?.detail ?? null },
        retry: retry ?? true,
      } as const;
    case "cancelled":
    case "handed-back":
      return { kind: outcome } as const;
    default:
      return assertNever(outcome, "outcomeOf");
  }
}

/** The field that does not go with the outcome, or is missing; null where all is well. */
export function resultMistake(body: WireResult): FieldMistake | null {
  const { outcome, result, error, retry } = body;
  if (outcome !== "completed" && result !== undefined)
    return { field: "result", message: "goes with the outcome completed only" };
  if (outcome !== "failed" && error !== undefined)
    return { field: "error", message: "goes with the outcome failed only" };
  if (outcome !== "failed" && retry !== undefined)
    return { field: "retry", message: "goes with the outcome failed only" };
  if (outcome === "failed" && error === undefined) return { field: "error", message: "is missing: say why it failed" };
  return null;
}

// ---- answers ------------------------------------------------------------------------------------------

/** A lease is shown without its id: who knows that may report its result. */
function withoutId<T extends { readonly leaseId: string }>({ leaseId: _hidden, ...shown }: T): Omit<T, "leaseId"> {
  return shown;
}

export function jobAnswer(job: Job) {
  const { lease, attempts, ...rest } = job;
  return {
    ...toSnake(rest),
    lease: lease === null ? null : toSnake(withoutId(lease)),
    attempts: attempts.map((attempt) => toSnake(withoutId(attempt))),
    timeline: timelineOf(job).map((entry) => toSnake(entry)),
  };
}

export function jobBrief(job: Job) {
  const { kind, queue, labels, platform, priority } = job.spec;
  return toSnake({
    id: job.id,
    kind,
    queue,
    labels,
    platform,
    priority,
    state: job.state,
    jobEpoch: job.jobEpoch,
    failures: job.failures,
    losses: job.losses,
    submittedAtMs: job.submittedAtMs,
    submittedBy: job.submittedBy,
    readyAtMs: job.readyAtMs,
    agent: job.lease?.agent ?? job.attempts.at(-1)?.agent ?? null,
    progress: job.progress,
    finishedAtMs: job.finishedAtMs,
    errorMessage: job.error?.message ?? null,
  });
}

/** What happened to a job, oldest first, as far as its attempts are kept. */
export function timelineOf({ submittedAtMs, attempts, finishedAtMs, state }: Job): JobTimelineEntry[] {
  const nobody = { attempt: null, jobEpoch: null, leaderEpoch: null, agent: null };
  const entries: JobTimelineEntry[] = [{ atMs: submittedAtMs, what: "submitted", ...nobody, end: null }];
  for (const { attempt, jobEpoch, leaderEpoch, agent, assignedAtMs, startedAtMs, endedAtMs, end } of attempts) {
    const who = { attempt, jobEpoch, leaderEpoch, agent };
    entries.push({ atMs: assignedAtMs, what: "assigned", ...who, end: null });
    if (startedAtMs !== null) entries.push({ atMs: startedAtMs, what: "started", ...who, end: null });
    if (endedAtMs !== null) entries.push({ atMs: endedAtMs, what: "ended", ...who, end });
  }
  if (finishedAtMs !== null) entries.push({ atMs: finishedAtMs, what: "finished", ...nobody, end: state });
  return entries;
}

// ---- events -------------------------------------------------------------------------------------------

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The specification's form, as text. The hash stands first: after it, with the brace put back, are exactly the hashed bytes. */
export function eventText(bytes: Uint8Array, eventHash: string): string {
  return `{"eventHash":"${eventHash}",${decoder.decode(bytes).slice(1)}`;
}

/**
 * As `/api/events/since` shows what arrived: `sequence` is the arrival number, and the one that is hashed is `lineSequence`. `bytes` null: withheld.
 * In the canonical text only texts and numbers follow `sequence`, so that the last such name is the event's own.
 */
export function arrivalText(record: {
  readonly arrival: number;
  readonly line: string | null;
  readonly lineSequence: number;
  readonly eventHash: string;
  readonly bytes: Uint8Array | null;
}): string {
  const { arrival, line, lineSequence, eventHash, bytes } = record;
  const place = `{"eventHash":"${eventHash}","line":${JSON.stringify(line)},"lineSequence":${lineSequence}`;
  if (bytes === null) return `${place},"sequence":${arrival},"withheld":true}`;
  const text = decoder.decode(bytes);
  const at = text.lastIndexOf(SEQUENCE_NAME);
  const rest = text.slice(text.indexOf(",", at + 1));
  return `${place},${text.slice(1, at)}${SEQUENCE_NAME}${arrival}${rest}`;
}

const SEQUENCE_NAME = ',"sequence":';

/** As /v1/events sends it: snake_case, but for the payload, whose names are part of what is hashed. */
export function eventWire(bytes: Uint8Array, eventHash: string): Snake<Record<string, Json>> {
  const event = parseJson(decoder.decode(bytes)) as Record<string, Json>;
  return toSnake({ ...event, eventHash });
}
