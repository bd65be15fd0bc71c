// What happens to leases without a word of the agent that has them, and to agents: a lease that nobody renewed, an attempt
// that took too long, an agent that is silent, removed, drained or about to stop, an answer that did not reach it.

import type { LeaseRef } from "../../../ports/jobs.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers } from "../commands.ts";
import { answeredBefore, decided, draft, leasedBy, leaseRef, refused, unchanged } from "./decision.ts";
import { type EndOptions, endAttempt } from "./ending.ts";
import type { EventDraft, Offline, Registered, Removed } from "../events.ts";
import { markOf } from "../state/idempotency.ts";
import type { JobRecord, Run } from "../state/records.ts";
import type { BookState } from "../state/state.ts";

type Decided<Kind extends keyof JobsAnswers> = Decision<JobsAnswers[Kind]>;

export function decideLeaseExpired(
  state: BookState,
  command: CommandOf<"lease-expired">,
  context: DecideContext,
): Decided<"lease-expired"> {
  return takeAway(state, command, context, { cause: "lost", error: null, mayRetry: true });
}

export function decideTimedOut(
  state: BookState,
  command: CommandOf<"attempt-timed-out">,
  context: DecideContext,
): Decided<"attempt-timed-out"> {
  const timeoutMs = state.jobs.get(command.jobId)?.ticket.policy.timeoutMs ?? null;
  const error = { message: `it took longer than its timeout of ${timeoutMs} ms`, detail: null };
  return takeAway(state, command, context, { cause: "timed-out", error, mayRetry: true });
}

function takeAway(
  state: BookState,
  { jobId, jobEpoch }: { readonly jobId: string; readonly jobEpoch: number },
  context: DecideContext,
  options: EndOptions,
): Decided<"lease-expired"> {
  const record = state.jobs.get(jobId);
  // A late timer: that lease has ended otherwise (trap 56).
  if (record === undefined || record.run === null || record.jobEpoch !== jobEpoch) return unchanged({ state: null });
  const ended = endAttempt(context, record as JobRecord & { readonly run: Run }, options);
  return decided([ended.draft], { state: ended.state });
}

export function decideAgentOffline(
  state: BookState,
  { name, session }: CommandOf<"agent-offline">,
  context: DecideContext,
): Decided<"agent-offline"> {
  const record = state.agents.get(name);
  if (record?.state !== "online" || record.info.session !== session) return unchanged({ isChanged: false });
  const payload: Offline = { sessionHash: session };
  return decided([draft(context, "worker:offline", name, payload)], { isChanged: true });
}

export function decideRemoveAgent(
  state: BookState,
  { request, name }: CommandOf<"remove-agent">,
  context: DecideContext,
): Decided<"remove-agent"> {
  const before = answeredBefore(state, request, "remove-agent", context, () => ({ lost: [] }));
  if (before !== null) return before;
  const record = state.agents.get(name);
  if (record === undefined) return refused("NOT_FOUND", `There is no agent ${name}.`);
  if (record.state === "removed" && request.idempotencyKey === null) return unchanged({ lost: [] });
  const payload: Removed = { cause: "asked", ...markOf(request, "remove-agent") };
  const drafts: EventDraft[] = [draft(context, "worker:removed", name, payload)];
  const lost = leasedBy(state, name).map(({ ticket, run, ...rest }) => {
    drafts.push(endAttempt(context, { ticket, run, ...rest }, { cause: "lost", error: null, mayRetry: true }).draft);
    return leaseRef(ticket.id, run);
  });
  return decided(drafts, { lost });
}

export function decideDrainAgent(
  state: BookState,
  { request, name, draining }: CommandOf<"drain-agent">,
  context: DecideContext,
): Decided<"drain-agent"> {
  const before = answeredBefore(state, request, "drain-agent", context, () => ({ isChanged: false }));
  if (before !== null) return before;
  const record = state.agents.get(name);
  if (record === undefined || record.state === "removed") return refused("NOT_FOUND", `There is no agent ${name}.`);
  const isChanged = record.isDraining !== draining;
  if (!isChanged && request.idempotencyKey === null) return unchanged({ isChanged });
  const { session, kinds, labels, platform, capacity } = record.info;
  const about = { sessionHash: session, kinds, labels, platform, capacity };
  const payload: Registered = { ...about, draining, ...markOf(request, "drain-agent") };
  return decided([draft(context, "worker:registered", name, payload)], { isChanged });
}

export function decideHandBack(
  state: BookState,
  { name }: CommandOf<"hand-back">,
  context: DecideContext,
): Decided<"hand-back"> {
  const drafts: EventDraft[] = [];
  const handedBack = leasedBy(state, name).map((record) => {
    drafts.push(endAttempt(context, record, { cause: "handed-back", error: null, mayRetry: true }).draft);
    return leaseRef(record.ticket.id, record.run);
  });
  // It was killed, so nobody waits for its silence to be long enough.
  const agent = state.agents.get(name);
  const gone: Offline | null = agent?.state === "online" ? { sessionHash: agent.info.session } : null;
  if (gone !== null) drafts.push(draft(context, "worker:offline", name, gone));
  return decided(drafts, { handedBack });
}

/**
 * Exactly what was given between the two: a call that comes late, or twice, must not take away what a later one was given,
 * and what is at or below `answered` has come to the agent, or was taken back before.
 */
export function decideTakeBack(
  state: BookState,
  { name, session, poll, answered }: CommandOf<"take-back">,
  context: DecideContext,
): Decided<"take-back"> {
  const drafts: EventDraft[] = [];
  const takenBack: LeaseRef[] = [];
  for (const record of leasedBy(state, name)) {
    const { run, ticket } = record;
    if (run.session !== session || run.poll <= answered || run.poll >= poll) continue;
    drafts.push(endAttempt(context, record, { cause: "undelivered", error: null, mayRetry: true }).draft);
    takenBack.push(leaseRef(ticket.id, run));
  }
  return decided(drafts, { takenBack });
}
