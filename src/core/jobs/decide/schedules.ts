// Decisions about queues and schedules. When a schedule's time has come is the controller's business (cron.ts, its clock);
// that it fires once for each time, and what that means, is decided here.

import { QUEUES_PAUSED_MAX, SCHEDULES_MAX } from "../../kit/limits.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers } from "../commands.ts";
import { answeredBefore, decided, draft, refused, unchanged } from "./decision.ts";
import { checkForm, checkSpecs } from "./jobs.ts";
import { byOf, type EventDraft, type Fired, type SchedulePut, type Submitted } from "../events.ts";
import { markOf } from "../state/idempotency.ts";
import type { Schedule } from "../model.ts";
import { firedUpToMs } from "../state/records.ts";
import { nameProblem } from "./spec-problem.ts";
import type { BookState } from "../state/state.ts";

type Decided<Kind extends keyof JobsAnswers> = Decision<JobsAnswers[Kind]>;

const CHANGED = { isChanged: true } as const;
const SAME = { isChanged: false } as const;

export function decidePauseQueue(
  state: BookState,
  { request, queue, paused }: CommandOf<"pause-queue">,
  context: DecideContext,
): Decided<"pause-queue"> {
  const name = paused ? "pause-queue" : "resume-queue";
  const before = answeredBefore(state, request, name, context, () => CHANGED);
  if (before !== null) return before;
  const problem = nameProblem("a queue's name", queue);
  if (problem !== null) return refused("BAD_REQUEST", `Refused: ${problem}.`);
  const isSo = (state.paused.get(queue) !== undefined) === paused;
  if (isSo && request.idempotencyKey === null) return unchanged(SAME);
  if (paused && !isSo && state.paused.size >= QUEUES_PAUSED_MAX) {
    return refused("OVERLOADED", `${QUEUES_PAUSED_MAX} queues are paused, which is the limit. Resume one first.`);
  }
  const type = paused ? "queue:paused" : "queue:resumed";
  return decided([draft(context, type, queue, markOf(request, name))], isSo ? SAME : CHANGED);
}

export function decidePutSchedule(
  state: BookState,
  { request, schedule }: CommandOf<"put-schedule">,
  context: DecideContext,
): Decided<"put-schedule"> {
  const before = answeredBefore(state, request, "put-schedule", context, () => CHANGED);
  if (before !== null) return before;
  const { name } = schedule;
  const misnamed = nameProblem("a schedule's name", name);
  if (misnamed !== null) return refused("SCHEDULE_INVALID", `Refused: ${misnamed}.`);
  const known = state.schedules.get(name);
  const isSo = known !== undefined && isSame(state, known.schedule, schedule);
  if (isSo && request.idempotencyKey === null) return unchanged(SAME);
  // Whether there is room for its jobs is asked when they are due.
  const problem = checkForm(state, [schedule.spec]);
  if (problem !== null) return problem;
  const record = { schedule, sinceMs: 0, lastAtMs: null };
  const bytes =
    state.scheduleBytes + state.weights.schedule(record) - (known === undefined ? 0 : state.weights.schedule(known));
  if (bytes > state.limits.scheduleBytesMax) {
    const most = state.limits.scheduleBytesMax;
    return refused(
      "OVERLOADED",
      `All schedules together would take ${bytes} bytes, and ${most} are kept for them. Nothing was changed; delete one first, or give them smaller payloads.`,
    );
  }
  if (known === undefined && state.schedules.size >= SCHEDULES_MAX) {
    return refused("OVERLOADED", `There are ${SCHEDULES_MAX} schedules, which is the limit. Delete one first.`);
  }
  const payload: SchedulePut = { schedule, wallMs: context.wallMs, ...markOf(request, "put-schedule") };
  return decided([draft(context, "schedule:put", name, payload)], isSo ? SAME : CHANGED);
}

export function decideDeleteSchedule(
  state: BookState,
  { request, name }: CommandOf<"delete-schedule">,
  context: DecideContext,
): Decided<"delete-schedule"> {
  const before = answeredBefore(state, request, "delete-schedule", context, () => CHANGED);
  if (before !== null) return before;
  if (state.schedules.get(name) === undefined) return refused("NOT_FOUND", `There is no schedule ${name}.`);
  return decided([draft(context, "schedule:deleted", name, markOf(request, "delete-schedule"))], CHANGED);
}

export function decideFireSchedule(
  state: BookState,
  { name, atMs, isMissed }: CommandOf<"fire-schedule">,
  context: DecideContext,
): Decided<"fire-schedule"> {
  const record = state.schedules.get(name);
  // Another leader, or an earlier turn, has fired for this time.
  if (record === undefined || record.schedule.paused || atMs <= firedUpToMs(record)) {
    return unchanged({ jobId: null });
  }
  const { schedule } = record;
  const isLeftOut = isMissed === true || (schedule.overlap === "skip" && state.liveOfSchedule(name) > 0);
  // Where there is no room for the job the time is not used up: it is fired when there is.
  const problem = isLeftOut ? null : checkSpecs(state, [schedule.spec]);
  if (problem !== null) return problem;
  const jobId = isLeftOut ? null : context.newJobId();
  const payload: Fired = { atMs, jobId };
  const drafts: EventDraft[] = [draft(context, "schedule:fired", name, payload)];
  if (jobId !== null) {
    const submitted: Submitted = { spec: schedule.spec, by: byOf(name), schedule: name };
    drafts.push(draft(context, "build:submitted", jobId, submitted));
  }
  return decided(drafts, { jobId });
}

function isSame(state: BookState, one: Schedule, other: Schedule): boolean {
  return state.canonical({ ...one } as never) === state.canonical({ ...other } as never);
}
