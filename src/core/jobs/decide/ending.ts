// How an attempt that did not succeed ends, and what becomes of its job. Mistakes of the job and losses of agents have
// budgets of their own (trap 54), and what is given back costs neither; but who gives it back again and again must not be
// given it in the same moment, for ever. A job that is being cancelled is cancelled however its attempt ends, also where its
// agent is silent (trap 53).

import type { DecideContext } from "../commands.ts";
import { draft } from "./decision.ts";
import type { Cancelled, EndCause, EventDraft, Failed, Retried } from "../events.ts";
import { HANDED_BACK_FREE, HANDED_BACK_MS_MAX, HANDED_BACK_MS_MIN } from "../limits.ts";
import type { AttemptEnd, JobFailure, JobState } from "../model.ts";
import type { JobRecord, Run } from "../state/records.ts";

export interface Ended {
  readonly draft: EventDraft;
  /** What the job becomes. */
  readonly state: JobState;
}

export interface EndOptions {
  readonly cause: Exclude<EndCause, "asked">;
  readonly error: JobFailure | null;
  /** False: the job says itself that another attempt would be in vain. */
  readonly mayRetry: boolean;
}

export function endAttempt(
  context: DecideContext,
  record: JobRecord & { readonly run: Run },
  { cause, error, mayRetry }: EndOptions,
): Ended {
  const { ticket, run, jobEpoch } = record;
  const { leaseId: leaseHash } = run;
  // What the agent itself reports ends its lease; what is taken from it must be distinguished from then on (trap 50).
  const isTaken = cause === "lost" || cause === "timed-out" || cause === "undelivered";
  const endEpoch = isTaken ? jobEpoch + 1 : jobEpoch;
  if (record.state === "cancelling") {
    const payload: Cancelled = { jobEpoch: endEpoch, leaseHash, cause };
    return { draft: draft(context, "build:cancelled", ticket.id, payload), state: "cancelled" };
  }
  const delayMs = mayRetry ? retryDelayMs(record, cause, context) : null;
  if (delayMs === null) {
    const payload: Failed = { jobEpoch: endEpoch, leaseHash, cause, error: error ?? lastLoss(record) };
    return { draft: draft(context, "build:failed", ticket.id, payload), state: "failed" };
  }
  const payload: Retried = {
    jobEpoch: jobEpoch + 1,
    leaseHash,
    cause,
    readyAtMs: Math.floor(context.nowMs) + delayMs,
    error,
  };
  return { draft: draft(context, "build:retried", ticket.id, payload), state: "pending" };
}

/** Null: its budget is spent. */
function retryDelayMs(
  { ticket, failures, losses, ended }: JobRecord,
  cause: EndOptions["cause"],
  { random }: DecideContext,
): number | null {
  const { policy } = ticket;
  if (isGivenBack(cause)) {
    // Those before it, of the attempts that are kept.
    const before = ended.length - 1 - ended.findLastIndex(({ end }) => !isGivenBack(end));
    if (before < HANDED_BACK_FREE) return 0;
    const fullMs = HANDED_BACK_MS_MIN * 2 ** (before - HANDED_BACK_FREE);
    return jittered(Math.min(HANDED_BACK_MS_MAX, fullMs), random);
  }
  if (cause === "lost") return losses < policy.lossesMax ? 0 : null;
  const mistakes = failures + 1;
  if (mistakes >= policy.attemptsMax) return null;
  return jittered(Math.min(policy.maxMs, policy.baseMs * 2 ** (mistakes - 1)), random);
}

/** Half of it is jitter: what failed together does not come back together. */
function jittered(fullMs: number, random: () => number): number {
  return Math.floor(fullMs / 2 + (random() * fullMs) / 2);
}

/** Also what an agent cancels that nobody has asked it to, and what never reaches one: its answer may be the reason. */
function isGivenBack(end: AttemptEnd): boolean {
  return end === "handed-back" || end === "cancelled" || end === "undelivered";
}

function lastLoss({ losses, run }: JobRecord & { readonly run: Run }): JobFailure {
  return {
    message: `agent ${run.agent} was lost with it, as others were ${losses} times before: it is not tried again`,
    detail: null,
  };
}
