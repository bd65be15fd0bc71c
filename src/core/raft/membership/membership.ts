// How a configuration becomes the next one.
//
//   simple ──(≤ 1 voter changes)──▶ simple
//   simple ──(more)──▶ joint: both halves decide ──(no operations = leave)──▶ simple
//
// Invariants:
// - Any majority before a change meets any majority after it, so no two leaders of one term can be
//   elected on both sides of it (Raft thesis, section 4). One changed voter keeps that by arithmetic;
//   more go through a joint configuration, which is left by the leader itself (autoLeave).
// - One node id has one vote: two incarnations of it are never both in `voters`, the incoming half.
//   The old disk may still be in the outgoing half: that is the replacement of design D5.
// - A voter that becomes a learner goes on counting in the outgoing half, and waits in `learnersNext`.
// - A disk that was a member and was removed is remembered by name (`removed`), as a reason to refuse it; that it is
//   no member is enough to refuse it too, so the list may be bounded (docs/decisions/0024).
// - A configuration that breaks an invariant is never returned. What was asked for wrongly is refused
//   with a reason; a configuration that is wrong to begin with is our own mistake.

import { assert, assertNever } from "../../kit/assert.ts";
import { nodeIdOf, parsePeerKey, type PeerKey } from "../../kit/ids.ts";
import { CONF_CHANGE_OPERATIONS_MAX, MEMBERS_MAX, REMOVED_MAX } from "../../kit/limits.ts";
import { isJoint, isMember, members, voterKeys } from "./quorum.ts";
import type { ConfChange, ConfChangeOperation, Configuration } from "../types.ts";

export type ConfChangeOutcome =
  | { readonly ok: true; readonly configuration: Configuration }
  | { readonly ok: false; readonly reason: string };

/** What a node knows that has not joined yet. It becomes another one only by a snapshot or a bootstrap. */
export function emptyConfiguration(): Configuration {
  return configurationOf([]);
}

export function configurationOf(voters: readonly PeerKey[], learners: readonly PeerKey[] = []): Configuration {
  const configuration = simpleConfiguration(new Set(voters), new Set(learners));
  const broken = checkConfiguration(configuration);
  assert(broken === null, "configuration is well-formed", () => String(broken));
  return configuration;
}

export function applyConfChange(configuration: Configuration, change: ConfChange): ConfChangeOutcome {
  const broken = checkConfiguration(configuration);
  assert(broken === null, "configuration is well-formed", () => String(broken));
  const { operations } = change;
  if (operations.length === 0) return leaveJoint(configuration);
  if (isJoint(configuration)) {
    return refused("a joint configuration is being left; change it once it is simple again");
  }
  if (operations.length > CONF_CHANGE_OPERATIONS_MAX) {
    return refused(`${operations.length} operations in one change; at most ${CONF_CHANGE_OPERATIONS_MAX} are taken`);
  }

  const voters = new Set(configuration.voters);
  const learners = new Set(configuration.learners);
  const named = new Set<PeerKey>();
  for (const operation of operations) {
    const { peer } = operation;
    if (named.has(peer)) return refused(`${peer} is named twice in one change; name each peer once`);
    named.add(peer);
    const reason = applyOperation(voters, learners, operation);
    if (reason !== null) return refused(reason);
  }
  if (voters.size === 0) return refused("no voter would be left, so nothing could ever be committed again");

  const isSimple = movedVoters(configuration.voters, voters) <= 1;
  if (!isSimple && configuration.voters.length === 0) {
    return refused("an empty configuration takes its first voter alone: it has no majority that could decide on more");
  }
  const next = isSimple
    ? simpleConfiguration(voters, learners)
    : jointConfiguration(configuration.voters, voters, learners);
  const fault = checkConfiguration(next);
  return fault === null ? { ok: true, configuration: remember(configuration, next) } : refused(fault);
}

/** The first broken invariant, or null. The empty configuration is a whole one. */
export function checkConfiguration(configuration: Configuration): string | null {
  const { voters, votersOutgoing, learners, learnersNext, autoLeave } = configuration;
  const listFault =
    checkPeers("voters", voters) ??
    checkPeers("votersOutgoing", votersOutgoing) ??
    checkPeers("learners", learners) ??
    checkPeers("learnersNext", learnersNext);
  if (listFault !== null) return listFault;

  const memberCount = members(configuration).length;
  if (memberCount > MEMBERS_MAX) return `${memberCount} members; at most ${MEMBERS_MAX} are allowed`;
  if (voters.length === 0 && memberCount > 0) return "members without a voter among them";

  // The outgoing half was incoming once, so the same holds for it.
  const twice = repeatedNodeId(voters) ?? repeatedNodeId(votersOutgoing);
  if (twice !== null) return `two incarnations of ${twice} would both be voters; remove the old one in the same change`;
  const deciders = voterKeys(configuration);
  const both = learners.find((peer) => deciders.includes(peer));
  if (both !== undefined) return `${both} is both a voter and a learner`;
  const unstaged = learnersNext.find((peer) => !votersOutgoing.includes(peer) || voters.includes(peer));
  if (unstaged !== undefined) return `${unstaged} waits to become a learner, but is not an outgoing voter alone`;
  const removedFault = checkRemoved(configuration);
  if (removedFault !== null) return removedFault;
  if (!isJoint(configuration) && autoLeave) return "autoLeave without a joint configuration to leave";
  return null;
}

function leaveJoint(configuration: Configuration): ConfChangeOutcome {
  if (!isJoint(configuration)) return refused("there is no joint configuration to leave; name at least one operation");
  const learners = new Set([...configuration.learners, ...configuration.learnersNext]);
  const next = simpleConfiguration(new Set(configuration.voters), learners);
  return { ok: true, configuration: remember(configuration, next) };
}

/** Who left is remembered, the latest REMOVED_MAX of them; who is back is not removed any more. */
function remember(before: Configuration, next: Configuration): Configuration {
  const present = members(next);
  const left = members(before).filter((peer) => !present.includes(peer));
  const removed = [...(before.removed ?? []).filter((peer) => !present.includes(peer)), ...left].slice(-REMOVED_MAX);
  return removed.length === 0 ? next : { ...next, removed };
}

/** Changes both sets; returns why it did not. A change that changes nothing hides a misunderstanding. */
function applyOperation(
  voters: Set<PeerKey>,
  learners: Set<PeerKey>,
  { op, peer }: ConfChangeOperation,
): string | null {
  switch (op) {
    case "add-voter":
      if (voters.has(peer)) return `nothing to change: ${peer} is a voter already`;
      learners.delete(peer);
      voters.add(peer);
      return null;
    case "add-learner":
      if (learners.has(peer)) return `nothing to change: ${peer} is a learner already`;
      voters.delete(peer);
      learners.add(peer);
      return null;
    case "remove": {
      const wasVoter = voters.delete(peer);
      const wasLearner = learners.delete(peer);
      return wasVoter || wasLearner ? null : `nothing to change: ${peer} is not a member`;
    }
    default:
      return assertNever(op, "applyOperation");
  }
}

function simpleConfiguration(voters: ReadonlySet<PeerKey>, learners: ReadonlySet<PeerKey>): Configuration {
  return { voters: sorted(voters), votersOutgoing: [], learners: sorted(learners), learnersNext: [], autoLeave: false };
}

function jointConfiguration(
  votersOutgoing: readonly PeerKey[],
  voters: ReadonlySet<PeerKey>,
  learners: ReadonlySet<PeerKey>,
): Configuration {
  const demoted = votersOutgoing.filter((peer) => learners.has(peer));
  return {
    voters: sorted(voters),
    votersOutgoing,
    learners: sorted(learners).filter((peer) => !demoted.includes(peer)),
    learnersNext: demoted,
    autoLeave: true,
  };
}

/** How many peers are in one of the two sets of voters but not in the other. */
function movedVoters(before: readonly PeerKey[], after: ReadonlySet<PeerKey>): number {
  const kept = before.filter((peer) => after.has(peer)).length;
  return before.length + after.size - 2 * kept;
}

function checkPeers(list: string, peers: readonly PeerKey[]): string | null {
  let previous = "";
  for (const peer of peers) {
    if (parsePeerKey(peer) === undefined) return `${list} holds ${JSON.stringify(peer)}, which is not a peer key`;
    if (peer <= previous) return `${list} is not sorted and without repetition at ${peer}`;
    previous = peer;
  }
  return null;
}

/** In the order in which they left. */
function checkRemoved(configuration: Configuration): string | null {
  const removed = configuration.removed ?? [];
  if (removed.length > REMOVED_MAX) return `${removed.length} removed; at most ${REMOVED_MAX} are remembered`;
  if (new Set(removed).size < removed.length) return "a disk was removed twice";
  const fault = checkPeers("removed", [...removed].sort());
  if (fault !== null) return fault;
  const back = removed.find((peer) => isMember(configuration, peer));
  return back === undefined ? null : `${back} is both a member and removed`;
}

function repeatedNodeId(peers: readonly PeerKey[]): string | null {
  const seen = new Set<string>();
  for (const peer of peers) {
    const nodeId = nodeIdOf(peer);
    if (seen.has(nodeId)) return nodeId;
    seen.add(nodeId);
  }
  return null;
}

function sorted(peers: ReadonlySet<PeerKey>): PeerKey[] {
  return [...peers].sort();
}

function refused(reason: string): ConfChangeOutcome {
  return { ok: false, reason };
}
