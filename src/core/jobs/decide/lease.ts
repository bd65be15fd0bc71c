// A lease call: registers the agent where it is new or another, and gives it the next jobs. An agent is its name and the
// session of its process, new at each start (trap 55): when another process comes under a known name, the leases of the one
// before are lost at once, and that one is refused from then on.
//
// A call is the first of its process, which registers it, or goes on, which the agent's epoch shows: only the first may take a
// name over. So a process that stood still is refused however many came after it, and nobody has to remember it (trap 75). The past
// sessions that are kept refuse first calls that come late or twice.
//
// A name belongs to the caller that registered it, until an operator removes the agent or registers the name, or the book is full
// and its owner has more names than whoever needs the room. No owner can have all of them (name-shares.ts).

import { AGENT_PLACE_KEPT_MS, JOBS_READIED_PER_TURN_MAX } from "../../kit/limits.ts";
import type { GivenLease, LeaseRef } from "../../../ports/jobs.ts";
import type { JobsBook } from "../state/book.ts";
import type { CommandOf, DecideContext, Decision, JobsAnswers } from "../commands.ts";
import { decided, draft, leasedBy, leaseRef, refused, type Refused } from "./decision.ts";
import { endAttempt } from "./ending.ts";
import type { Assigned, EventDraft, Registered } from "../events.ts";
import type { JobClass } from "../state/job-class.ts";
import type { AgentInfo } from "../model.ts";
import { ownerShare } from "../state/name-shares.ts";
import { pick } from "./pick.ts";
import { type AgentRecord, specOf } from "../state/records.ts";
import { witnessedMs } from "../state/skips.ts";
import type { BookState } from "../state/state.ts";

export function decideLease(
  state: BookState,
  command: CommandOf<"lease">,
  context: DecideContext,
): Decision<JobsAnswers["lease"]> {
  const { agent, max, ttlMs, poll, caller } = command;
  const drafts: EventDraft[] = [];
  const known = state.agents.get(agent.name);
  const refusal =
    nameProblem(known, command) ??
    (known === undefined ? makeRoom(state, context, drafts, caller?.owner ?? null) : null);
  if (refusal !== null) return refusal;
  const lost: LeaseRef[] = [];
  // Also of a removed agent: nothing of it goes on.
  const isNew = known?.info.session !== agent.session || known.state === "removed";
  if (isNew) {
    for (const record of leasedBy(state, agent.name)) {
      lost.push(leaseRef(record.ticket.id, record.run));
      drafts.push(endAttempt(context, record, { cause: "lost", error: null, mayRetry: true }).draft);
    }
  }
  // One that has none yet, of an older release's making, is its process's.
  const owner = isNew ? caller?.owner : (known.owner ?? caller?.owner);
  const isSettled = !isNew && known.state === "online" && known.owner === (owner ?? null);
  if (!isSettled || !isSameInfo(known.info, agent)) {
    const { name, session, kinds, labels, platform, capacity } = agent;
    const by = owner === undefined ? {} : { owner };
    const payload: Registered = { sessionHash: session, kinds, labels, platform, capacity, ...by };
    const tooMuch = agentProblem(state, known, agent, owner ?? null);
    if (tooMuch !== null) return tooMuch;
    drafts.push(draft(context, "worker:registered", name, payload));
  }
  readyNow(state, context);
  const running = isNew ? 0 : state.jobsOfAgent(agent.name).size;
  // Attempts add to what a snapshot takes: past a limit others have to end first.
  const isDraining = !isNew && known.isDraining;
  const room = state.isOvergrown || isDraining ? 0 : Math.min(max, agent.capacity - running);
  const picked = pick(state.ready, agent, room, (queue) => state.paused.get(queue) !== undefined);
  const numbered = poll === undefined ? {} : { poll };
  const leases = picked.map((slot): GivenLease => {
    const record = state.shelf.at(slot);
    const { ticket } = record;
    const leaseId = context.newId();
    const [jobEpoch, attempt] = [record.jobEpoch + 1, record.attempt + 1];
    const [leaseHash, sessionHash] = [context.leaseHash(leaseId), agent.session];
    // In the order of their names: there are many, and they need not be sorted when they are sealed.
    const payload: Assigned = { agent: agent.name, attempt, jobEpoch, leaseHash, ...numbered, sessionHash, ttlMs };
    drafts.push(draft(context, "build:assigned", ticket.id, payload));
    return {
      jobEpoch,
      attempt,
      ttlMs,
      leaseId,
      jobId: ticket.id,
      leaderEpoch: context.leaderEpoch,
      spec: specOf(ticket),
    };
  });
  const isTaken = isNew && known !== undefined && known.owner !== null && known.owner !== owner;
  return decided(drafts, { leases, lost, takenFrom: isTaken ? known.owner : null });
}

/** What somebody waits for; a map has it all. */
export type WantedKinds = Pick<ReadonlyMap<string, unknown>, "size" | "has" | "keys">;

/**
 * Classes with jobs that an agent with one of these kinds could be given now; to be walked through while they are given. This
 * is asked at every command: of the kinds that are waited for and those that are ready the fewer are walked through.
 */
export function* openClasses(
  { state }: JobsBook,
  wanted: WantedKinds,
  context: Pick<DecideContext, "nowMs" | "wallMs">,
): Generator<OpenClass, void, void> {
  readyNow(state, context);
  if (state.isOvergrown) return;
  const { kinds: open } = state.ready;
  const [fewer, others] = open.size <= wanted.size ? [open, wanted] : [wanted, open];
  for (const kind of fewer.keys()) {
    if (!others.has(kind)) continue;
    for (const one of state.ready.classesWith(kind)) if (state.paused.get(one.queue) === undefined) yield one;
  }
}

/** `open`: empty when all of it that may run is given. */
export type OpenClass = Pick<JobClass, "kind" | "labels" | "missingAt"> & { readonly open: { readonly size: number } };

function readyNow({ ready }: BookState, { nowMs, wallMs }: Pick<DecideContext, "nowMs" | "wallMs">): void {
  ready.advance(nowMs, JOBS_READIED_PER_TURN_MAX);
  ready.advanceDates(wallMs, JOBS_READIED_PER_TURN_MAX);
}

/** Whether this process may call under this name at all. */
function nameProblem(
  known: AgentRecord | undefined,
  { agent: { name, session }, agentEpoch, goesOn = false, caller }: CommandOf<"lease">,
): Refused | null {
  if (known === undefined) {
    if (agentEpoch === undefined) return null;
    return refused(
      "STALE_EPOCH",
      `Agent ${name} (epoch ${agentEpoch}) is not known any more: it was silent, and others needed its place. End this process; another start is another agent.`,
    );
  }
  const { info, state, past, epoch, owner } = known;
  if (state === "removed" && info.session === session) {
    return refused("STALE_EPOCH", `Agent ${name} was removed. End this process; another start is another agent.`);
  }
  const isOld = agentEpoch !== undefined && epoch > 0 && agentEpoch !== epoch;
  if (info.session === session ? isOld : goesOn || agentEpoch !== undefined || past.includes(session)) {
    return refused(
      "STALE_EPOCH",
      `Another process has taken over the name ${name}, and the leases of this one are lost. End it, or give it another name.`,
    );
  }
  if (caller === undefined || caller.mayTakeOver || owner === null || owner === caller.owner) return null;
  return refused(
    "PERMISSION_DENIED",
    `The name ${name} belongs to ${owner}, and this call comes from ${caller.owner}. Give this agent another name, use the key or certificate that registered it, or have an operator remove it: tenure agent remove ${name}`,
  );
}

function agentProblem(
  state: BookState,
  known: AgentRecord | undefined,
  info: AgentInfo,
  owner: string | null,
): Refused | null {
  const rest = { registeredAtMs: 0, sinceMs: 0, isDraining: false, epoch: Number.MAX_SAFE_INTEGER, owner };
  const record: AgentRecord = { info, state: "online", ...rest, past: known?.past ?? [] };
  const before = known === undefined ? 0 : state.weights.agent(known);
  const after = state.weights.agent(record);
  const bytes = state.agentBytes - before + after;
  const { agentBytesMax } = state.limits;
  const what = "Remove some that are gone, or give them fewer kinds and labels.";
  if (bytes > agentBytesMax) {
    return refused(
      "OVERLOADED",
      `All agents together would take ${bytes} bytes, and ${agentBytesMax} are kept for them. ${what}`,
    );
  }
  const had = known?.owner === owner ? before : 0;
  const own = state.nameShares.of(owner).bytes - had + after;
  const share = ownerShare(agentBytesMax);
  // Whoever is past it, by an older release, may go on as it is.
  if (owner === null || own <= share || after <= had) return null;
  return refused(
    "OVERLOADED",
    `The agents of ${owner} would take ${own} bytes, and ${share} are the share of one owner. ${what}`,
  );
}

/**
 * Adds what makes room for one more agent of this owner; where nobody can go, says so. Whoever has its share of names gives up
 * its own. Otherwise nobody's names go first, then those of whoever has most, the one that is away longest; never one of an owner
 * that has no more names than this one, nor of another's that was there lately.
 */
function makeRoom(
  state: BookState,
  context: DecideContext,
  drafts: EventDraft[],
  owner: string | null,
): Refused | null {
  const { agentsMax } = state.limits;
  const { names } = state.nameShares.of(owner);
  const share = ownerShare(agentsMax);
  const hasShare = owner !== null && names >= share;
  if (state.agents.size < agentsMax && !hasShare) return null;
  const isLongAgo = (atMs: number): boolean =>
    context.nowMs - atMs >= AGENT_PLACE_KEPT_MS && witnessedMs(state, atMs, context) >= AGENT_PLACE_KEPT_MS;
  const mayGo = ({ info, state: now, owner: whose, sinceMs }: AgentRecord): boolean => {
    if (now === "online" || state.jobsOfAgent(info.name).size > 0) return false;
    if (whose === owner || hasShare) return whose === owner;
    return whose === null || (state.nameShares.of(whose).names > names && isLongAgo(sinceMs));
  };
  const rank = ({ owner: whose }: AgentRecord): number =>
    whose === null ? Infinity : state.nameShares.of(whose).names;
  let next: AgentRecord | null = null;
  for (const one of state.agents.values()) {
    if (!mayGo(one)) continue;
    const isBefore =
      next === null || rank(one) > rank(next) || (rank(one) === rank(next) && one.sinceMs < next.sinceMs);
    if (isBefore) next = one;
  }
  if (next !== null) {
    drafts.push(draft(context, "worker:removed", next.info.name, { cause: "room" }));
    return null;
  }
  const why = hasShare
    ? `${names} agents of ${owner} are online, and ${share} are the share of one owner.`
    : `${agentsMax} agents are known, which is the limit, and none of them has been away for long.`;
  return refused("OVERLOADED", `${why} Retry later, or have an operator remove some: tenure agent remove NAME`);
}

function isSameInfo(one: AgentInfo, other: AgentInfo): boolean {
  if (one === other) return true;
  const names = Object.keys(one.labels);
  return (
    one.capacity === other.capacity &&
    one.platform === other.platform &&
    one.kinds.length === other.kinds.length &&
    one.kinds.every((kind, at) => kind === other.kinds[at]) &&
    names.length === Object.keys(other.labels).length &&
    names.every((name) => Object.hasOwn(other.labels, name) && one.labels[name] === other.labels[name])
  );
}
