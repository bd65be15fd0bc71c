// Jobs that were submitted inside of transactions of the user's own, and are committed there: the leader takes them over as
// they are. One that nobody can do is submitted and failed at once, so that whoever looks for it is told why; it would
// otherwise wait for ever in front of the others. Where there is no room they stay where they are, all of them.

import type { EventDraft } from "../../events/index.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers } from "../commands.ts";
import { checkSpecs } from "./jobs.ts";
import { decided, draft } from "./decision.ts";
import type { Submitted } from "../events.ts";
import type { JobSpec } from "../model.ts";
import type { BookState } from "../state/state.ts";
import { anyProblem, unusable } from "./unusable.ts";

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
    const problem = job.problem ?? anyProblem(state, job.spec);
    if (problem === null) {
      good.push(job.spec);
      const payload: Submitted = { spec: job.spec, by: job.by };
      drafts.push(draft(context, "build:submitted", job.id, payload));
    } else drafts.push(...unusable(job, `It was submitted in the database and can't be done: ${problem}`, context));
  }
  const full = good.length === 0 ? null : checkSpecs(state, good);
  return full ?? decided(drafts, {});
}
