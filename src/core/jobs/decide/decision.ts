// The small parts that all decisions are made of.

import type { ErrorCode } from "../../kit/errors.ts";
import type { LeaseRef, Request } from "../../../ports/jobs.ts";
import type { DecideContext, Decision } from "../commands.ts";
import type { EventDraft, EventPayload, JobsEventType } from "../events.ts";
import { recall, type Remembered } from "../state/idempotency.ts";
import type { JobRecord, Run } from "../state/records.ts";
import type { Times } from "../state/skips.ts";
import type { BookState } from "../state/state.ts";

export type Refused = Extract<Decision<never>, { readonly kind: "refused" }>;

export function refused(code: ErrorCode, message: string): Refused {
  return { kind: "refused", code, message };
}

export function decided<Answer>(drafts: readonly EventDraft[], answer: Answer): Decision<Answer> {
  return { kind: "decided", drafts, answer, isRepeated: false };
}

const NO_DRAFTS: readonly EventDraft[] = [];

/**
 * It is so already. Only without a key: what was answered under one has an event all the same, which says that it was asked
 * for and changes nothing. Otherwise the key would not be remembered, and the same request done later, against what others
 * have done since.
 */
export function unchanged<Answer>(answer: Answer): Decision<Answer> {
  return { kind: "decided", drafts: NO_DRAFTS, answer, isRepeated: false };
}

/** Null: the request is new. */
export function answeredBefore<Answer>(
  state: BookState,
  request: Request,
  command: string,
  times: Times,
  answer: (jobIds: readonly string[]) => Answer,
): Decision<Answer> | null {
  const before: Remembered = recall(state, request, command, times);
  if (before.kind === "new") return null;
  if (before.kind === "mismatch") {
    return refused(
      "IDEMPOTENCY_MISMATCH",
      "This idempotency key was used for another request. Nothing was done; use a new key, or send the same body again.",
    );
  }
  return { kind: "decided", drafts: NO_DRAFTS, answer: answer(before.jobIds), isRepeated: true };
}

/** `payload` is JSON by its making; see payloadOf. */
export function draft(
  { newId, nowMs }: DecideContext,
  eventType: JobsEventType,
  entityId: string,
  payload: object,
): EventDraft {
  const entityType = eventType.slice(0, eventType.indexOf(":"));
  return { id: newId(), eventType, entityId, entityType, payload: payload as EventPayload, timestamp: nowMs };
}

export function leaseRef(jobId: string, { jobEpoch, leaseId }: Run): LeaseRef {
  return { jobId, jobEpoch, leaseId };
}

/** The jobs that an agent has leases of. */
export function leasedBy(state: BookState, agent: string): readonly (JobRecord & { readonly run: Run })[] {
  return [...state.jobsOfAgent(agent)].map((slot) => state.shelf.at(slot) as JobRecord & { readonly run: Run });
}
