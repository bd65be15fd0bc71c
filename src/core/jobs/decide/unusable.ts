// A job that is committed elsewhere and that nobody can do: it is submitted and failed at once, so that whoever looks for it sees why. It
// would otherwise wait for ever in front of the others.

import type { EventDraft } from "../../events/index.ts";
import { TenureError } from "../../kit/errors.ts";
import type { DecideContext } from "../commands.ts";
import type { Delivery, Failed, Submitted } from "../events.ts";
import { type JobSpec, PLAIN_SPEC } from "../model.ts";
import type { BookState } from "../state/state.ts";
import { draft } from "./decision.ts";
import { nameProblem, payloadProblem, specProblem } from "./spec-problem.ts";

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

interface Unusable {
  readonly id: string;
  readonly by: string;
  readonly spec: JobSpec;
}

/** Why nobody can do it, as the rest of a sentence. That there is no room at this moment is nothing wrong with it. */
export function anyProblem(state: BookState, spec: JobSpec): string | null {
  const problem = specProblem(spec);
  if (problem !== null) return problem;
  try {
    return payloadProblem(state.canonical(spec.payload));
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return error.message;
  }
}

/** `message`: for people. */
export function unusable(
  { id, by, spec }: Unusable,
  message: string,
  context: DecideContext,
  marks: { readonly delivery?: Delivery } = {},
): EventDraft[] {
  const isUsable = USABLE_KIND.test(spec.kind) && nameProblem("kind", spec.kind) === null;
  const kind = isUsable ? spec.kind : UNUSABLE_KIND;
  const submitted: Submitted = { spec: { ...UNUSABLE, kind }, by, ...marks };
  const failed: Failed = { jobEpoch: 1, leaseHash: null, cause: "failed", error: { message, detail: null } };
  return [draft(context, "build:submitted", id, submitted), draft(context, "build:failed", id, failed)];
}
