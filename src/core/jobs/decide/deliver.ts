// Jobs of transactions over islands (core/txn): committed in the log of scopes and values, which gives them to the log of jobs, in the order of
// (place, operation), and repeats what it does not know to be there. The book keeps the last pair that was delivered, for ever: what is at or
// before it is there, whoever repeats it whenever, and also where the job itself was forgotten long ago.
//
// Nothing of it can be refused for good. One that nobody can do is submitted and failed at once, as `take` does it. Where there is no room,
// all of a call stay where they are: one of them that overtook another would have the other left out.

import type { DeliveredJob } from "../../../ports/transactions.ts";
import type { EventDraft } from "../../events/index.ts";
import { assert } from "../../kit/assert.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers } from "../commands.ts";
import type { Delivery, Submitted } from "../events.ts";
import type { JobSpec } from "../model.ts";
import { isBehind } from "../state/deliveries.ts";
import type { BookState } from "../state/state.ts";
import { decided, draft } from "./decision.ts";
import { checkSpecs } from "./jobs.ts";
import { anyProblem, unusable } from "./unusable.ts";

export function decideDeliver(
  state: BookState,
  { jobs }: CommandOf<"deliver">,
  context: DecideContext,
): Decision<JobsAnswers["deliver"]> {
  assert(isInOrder(jobs), "jobs of transactions are delivered in their order", () => placesOf(jobs));
  const good: JobSpec[] = [];
  const drafts: EventDraft[] = [];
  let last = state.delivered;
  for (const job of jobs) {
    if (last !== null && !isBehind(job, last)) continue;
    last = job;
    // An id is drawn for one job: this one is here, whatever became of the pair.
    if (state.jobs.get(job.id) !== undefined) continue;
    const { id, by, spec, mark, place, operation } = job;
    const delivery: Delivery = { mark, place, operation };
    const problem = anyProblem(state, spec);
    if (problem === null) {
      good.push(spec);
      const payload: Submitted = { spec, by, delivery };
      drafts.push(draft(context, "build:submitted", id, payload));
    } else {
      const message = `It was submitted in a transaction and can't be done: ${problem}`;
      drafts.push(...unusable(job, message, context, { delivery }));
    }
  }
  const full = good.length === 0 ? null : checkSpecs(state, good);
  return full ?? decided(drafts, {});
}

/** One that is named twice in a call is left out the second time; one that came after a later one would be left out for ever. */
function isInOrder(jobs: readonly DeliveredJob[]): boolean {
  return jobs.every((job, at) => at === 0 || !isBehind(jobs[at - 1] as DeliveredJob, job));
}

function placesOf(jobs: readonly DeliveredJob[]): string {
  return jobs.map(({ place, operation }) => `${place}/${operation}`).join(" ");
}
