// Jobs that were submitted inside of transactions of the user's own, and are committed there: the leader takes them over as
// they are. One that nobody can do is submitted and failed at once, so that whoever looks for it is told why; it would
// otherwise wait for ever in front of the others. Where there is no room they stay where they are, all of them.

import type { EventDraft } from "../../events/index.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers, TakenJob } from "../commands.ts";
import { checkSpecs } from "./jobs.ts";
import { TenureError } from "../../kit/errors.ts";
import { decided, draft } from "./decision.ts";
import type { Failed, Submitted } from "../events.ts";
import { type JobSpec, PLAIN_SPEC } from "../model.ts";
import { nameProblem, payloadProblem, specProblem } from "./spec-problem.ts";
import type { BookState } from "../state/state.ts";

/** In place of a specification that can't be taken as it is. */
const UNUSABLE: Omit<JobSpec, "kind"> = {
  ...PLAIN_SPEC,
  attemptsMax: 1,
  lossesMax: 1,
  backoff: { baseMs: 0, maxMs: 0 },
  retentionMs: 7 * 86_400_000,
};
const UNUSABLE_KIND = "unusable";
/** As the API wants it: it goes into paths, labels of metrics and terminals. */
const USABLE_KIND = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;

export function decideTake(
  state: BookState,
  { jobs }: CommandOf<"take">,
  context: DecideContext,
): Decision<JobsAnswers["take"]> {
  const good: JobSpec[] = [];
  const drafts: EventDraft[] = [];
  for (const job of jobs) {
    // Taken over before, whatever brought it back: it is there once.
    if (state.jobs.get(job.id) !== undefined) continue;
    // That there is no room at this moment is nothing wrong with it.
    const problem = job.problem ?? problemOf(state, job.spec);
    if (problem === null) {
      good.push(job.spec);
      const payload: Submitted = { spec: job.spec, by: job.by };
      drafts.push(draft(context, "build:submitted", job.id, payload));
    } else drafts.push(...unusable(job, problem, context));
  }
  const full = good.length === 0 ? null : checkSpecs(state, good);
  return full ?? decided(drafts, {});
}

function problemOf(state: BookState, spec: JobSpec): string | null {
  const problem = specProblem(spec);
  if (problem !== null) return problem;
  try {
    return payloadProblem(state.canonical(spec.payload));
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return error.message;
  }
}

function unusable({ id, by, spec }: TakenJob, problem: string, context: DecideContext): EventDraft[] {
  const isUsable = USABLE_KIND.test(spec.kind) && nameProblem("kind", spec.kind) === null;
  const kind = isUsable ? spec.kind : UNUSABLE_KIND;
  const submitted: Submitted = { spec: { ...UNUSABLE, kind }, by };
  const error = { message: `It was submitted in the database and can't be done: ${problem}`, detail: null };
  const failed: Failed = { jobEpoch: 1, leaseHash: null, cause: "failed", error };
  return [draft(context, "build:submitted", id, submitted), draft(context, "build:failed", id, failed)];
}
