// Decisions about jobs that people ask for: submit, cancel, retry, and what follows the end of their retention.

import { TenureError } from "../../kit/errors.ts";
import { JOBS_FORGOTTEN_PER_COMMAND_MAX, JOBS_PER_REQUEST_MAX } from "../../kit/limits.ts";
import { TextMap } from "../../kit/keyed/text-map.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers } from "../commands.ts";
import { answeredBefore, decided, draft, refused, type Refused, unchanged } from "./decision.ts";
import {
  type Cancelled,
  type Cancelling,
  type EventDraft,
  type RestoredJob,
  type Retried,
  scheduleOf,
  type Submitted,
} from "../events.ts";
import { markOf } from "../state/idempotency.ts";
import type { Job, JobSpec, JobState } from "../model.ts";
import { isFinal, type JobRecord, specOf } from "../state/records.ts";
import { payloadProblem, specProblem } from "./spec-problem.ts";
import { ticketBytes } from "../state/weights.ts";
import { type Times, witnessedMs } from "../state/skips.ts";
import type { BookState } from "../state/state.ts";

/** As long as a UUID. */
const ANY_ID = "-".repeat(36);

type Decided<Kind extends keyof JobsAnswers> = Decision<JobsAnswers[Kind]>;

export function decideSubmit(
  state: BookState,
  command: CommandOf<"submit">,
  context: DecideContext,
): Decided<"submit"> {
  const { request, specs } = command;
  const before = answeredBefore(state, request, "submit", context, (jobIds) => ({ jobIds }));
  if (before !== null) return before;
  if (specs.length === 0 || specs.length > JOBS_PER_REQUEST_MAX) {
    return refused("BAD_REQUEST", `${specs.length} jobs at once; send 1 to ${JOBS_PER_REQUEST_MAX}.`);
  }
  const problem = checkSpecs(state, specs);
  if (problem !== null) return problem;
  const jobIds = specs.map(() => context.newJobId());
  const drafts = specs.map((spec, at) => {
    const mark = at === 0 ? markOf(request, "submit", jobIds) : null;
    const payload: Submitted = { by: request.caller, ...mark, spec };
    return draft(context, "build:submitted", jobIds[at] as string, payload);
  });
  return decided(drafts, { jobIds });
}

/** All or none: what is wrong with the first that can't be taken. */
export function checkSpecs(state: BookState, specs: readonly JobSpec[]): Refused | null {
  const texts: string[] = [];
  return checkForm(state, specs, texts) ?? checkRoom(state, specs, texts);
}

/** What is wrong with the first that can never be taken. `texts`: takes their payloads. */
export function checkForm(state: BookState, specs: readonly JobSpec[], texts: string[] = []): Refused | null {
  for (const [at, spec] of specs.entries()) {
    const problem = specProblem(spec);
    if (problem !== null) return refused("BAD_REQUEST", `Job ${at + 1}: ${problem}. None was submitted.`);
    try {
      const text = state.canonical(spec.payload);
      const tooLarge = payloadProblem(text);
      if (tooLarge !== null) return refused("PAYLOAD_TOO_LARGE", `Job ${at + 1}: ${tooLarge}. None was submitted.`);
      texts.push(text);
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      return refused(error.code, `Job ${at + 1}: ${error.message}`);
    }
  }
  return null;
}

/** Of a job that does not exist yet. */
function specBytes({ notBeforeMs, concurrency }: JobSpec, payload: string): number {
  return ticketBytes(ANY_ID, payload, notBeforeMs, concurrency === null ? null : concurrency.key, null);
}

/** Whether all of them can be taken now. */
function checkRoom(state: BookState, specs: readonly JobSpec[], texts: readonly string[]): Refused | null {
  const { liveMax, liveBytesMax, classesMax } = state.limits;
  const bytes = specs.reduce((sum, spec, at) => sum + specBytes(spec, texts[at] as string), state.liveBytes);
  const fresh = new Set<string>();
  for (const spec of specs) {
    const missing = state.classes.missing(spec);
    if (missing !== null) fresh.add(missing);
  }
  if (state.live + specs.length > liveMax) return full(`${state.live} jobs wait or run, and ${liveMax} may`);
  if (bytes > liveBytesMax) {
    return full(
      `the jobs that wait or run would take ${bytes} bytes of a snapshot, and ${liveBytesMax} are kept for them`,
    );
  }
  const classes = state.classes.live + fresh.size;
  if (fresh.size > 0 && classes > classesMax) {
    return full(
      `there would be ${classes} different sets of kind, queue, platform and labels, and ${classesMax} may be`,
    );
  }
  return null;
}

export function decideCancel(
  state: BookState,
  command: CommandOf<"cancel">,
  context: DecideContext,
): Decided<"cancel"> {
  const { request, jobId } = command;
  const before = answeredBefore(state, request, "cancel", context, () => ({ jobId }));
  if (before !== null) return before;
  const record = state.jobs.get(jobId);
  if (record === undefined) {
    const { job } = command;
    return job?.id === jobId && isFinal(job.state) ? finishedJob(jobId, job.state) : unknownJob(jobId);
  }
  if (isFinal(record.state)) return finishedJob(jobId, record.state);
  if (record.state === "cancelling" && request.idempotencyKey === null) return unchanged({ jobId });
  const { jobEpoch } = record;
  const mark = markOf(request, "cancel");
  if (record.state === "pending") {
    // Nobody has it: nothing to wait for.
    const payload: Cancelled = { jobEpoch: jobEpoch + 1, leaseHash: null, cause: "asked", ...mark };
    return decided([draft(context, "build:cancelled", jobId, payload)], { jobId });
  }
  const payload: Cancelling = { jobEpoch, by: request.caller, ...mark };
  return decided([draft(context, "build:cancelling", jobId, payload)], { jobId });
}

export function decideRetry(state: BookState, command: CommandOf<"retry">, context: DecideContext): Decided<"retry"> {
  const { request, jobId } = command;
  const before = answeredBefore(state, request, "retry", context, () => ({ jobId }));
  if (before !== null) return before;
  const record = state.jobs.get(jobId);
  const job = command.job?.id === jobId ? command.job : null;
  const found = record ?? job;
  if (found === null) return unknownJob(jobId);
  if (!isFinal(found.state)) {
    return refused("BAD_REQUEST", `Job ${jobId} is ${found.state}: only a finished job can be sent once more.`);
  }
  const again = {
    jobEpoch: found.jobEpoch + 1,
    leaseHash: null,
    cause: "asked",
    readyAtMs: Math.floor(context.nowMs),
    error: null,
  } as const;
  const payload: Retried = {
    ...again,
    ...markOf(request, "retry"),
    ...(record === undefined ? { job: toRestore(job!) } : null),
  };
  // It is live again, and must find room as a new one does.
  const problem = checkSpecs(state, [record === undefined ? job!.spec : specOf(record.ticket)]);
  if (problem !== null) return problem;
  return decided([draft(context, "build:retried", jobId, payload)], { jobId });
}

function toRestore({ spec, submittedAtMs, submittedSequence, submittedBy, attempts }: Job): RestoredJob {
  const schedule = scheduleOf(submittedBy);
  return {
    spec,
    submittedAtMs,
    submittedSequence,
    submittedBy,
    ...(schedule === null ? null : { schedule }),
    attempt: attempts.at(-1)?.attempt ?? 0,
    attempts,
  };
}

export function decideForget(
  state: BookState,
  command: CommandOf<"forget">,
  context: DecideContext,
): Decided<"forget"> {
  const forgotten: string[] = [];
  const drafts: EventDraft[] = [];
  const seen = new TextMap<true>();
  for (const jobId of command.jobIds) {
    if (forgotten.length >= JOBS_FORGOTTEN_PER_COMMAND_MAX) break;
    if (seen.has(jobId)) continue;
    seen.set(jobId, true);
    const record = state.jobs.get(jobId);
    if (record !== undefined && !isOver(state, record, context)) continue;
    forgotten.push(jobId);
    drafts.push(draft(context, "build:forgotten", jobId, {}));
  }
  return decided(drafts, { forgotten });
}

/** It is finished, and its retention is over: it may have been sent once more since somebody looked. */
function isOver(book: BookState, { state, finishedAtMs, ticket }: JobRecord, times: Times): boolean {
  if (!isFinal(state) || finishedAtMs === null) return false;
  return witnessedMs(book, finishedAtMs, times) >= ticket.policy.retentionMs;
}

function full(what: string): Refused {
  return refused("OVERLOADED", `${what}. None was submitted; retry when others are finished.`);
}

function unknownJob(jobId: string): Refused {
  return refused("NOT_FOUND", `There is no job ${jobId}, or its retention is over.`);
}

function finishedJob(jobId: string, state: JobState): Refused {
  return refused("JOB_FINISHED", `Job ${jobId} is ${state} already: there is nothing to cancel.`);
}
