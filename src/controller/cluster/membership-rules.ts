// What may be changed in a membership, decided from what the leader sees and nothing else; and how what became of a change is
// said.

import { assertNever } from "../../core/kit/assert.ts";
import { NotLeaderError, TenureError } from "../../core/kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import { isJoint, type Configuration, type RaftStatus } from "../../core/raft/index.ts";
import type { FollowerView, ProposeOutcome } from "../../ports/consensus.ts";
import { CAUGHT_UP_LAG_ENTRIES_MAX } from "./limits.ts";

export type MemberRole = "voter" | "learner" | "voter that is leaving";

export function diskIn(peers: readonly PeerKey[], nodeId: string): PeerKey | null {
  return peers.find((peer) => nodeIdOf(peer) === nodeId) ?? null;
}

/** Null for no member. */
export function roleIn(configuration: Configuration, nodeId: string): MemberRole | null {
  if (diskIn(configuration.voters, nodeId) !== null) return "voter";
  if (diskIn(configuration.votersOutgoing, nodeId) !== null) return "voter that is leaving";
  return diskIn(configuration.learners, nodeId) === null ? null : "learner";
}

/** Of a node that does not vote with another disk. */
export function isLearning(configuration: Configuration, disk: PeerKey | null): disk is PeerKey {
  return disk !== null && configuration.learners.includes(disk) && roleIn(configuration, nodeIdOf(disk)) === "learner";
}

/** Throws where the id is a member's. */
export function refuseInUse(configuration: Configuration, nodeId: string): void {
  const role = roleIn(configuration, nodeId);
  if (role === null) return;
  const why = `the id ${nodeId} is in use: it is a ${role} of this cluster. If its disk was lost, ask for \`replace\``;
  throw new TenureError("MEMBER_EXISTS", why);
}

/** Why a node can't be added that this one has no connection with. */
export function unseenText({ removed = [] }: Configuration, nodeId: string): string {
  const start = "with this cluster's certificate and a member in its `peers`, and try again";
  if (diskIn(removed, nodeId) === null) {
    return `this node never shook hands with ${nodeId}; start it first, ${start}`;
  }
  return `a disk of ${nodeId} was removed from this cluster and is refused; start it with an empty data directory, ${start}`;
}

export function lagOf(follower: FollowerView | null, { commit }: RaftStatus): number {
  return Math.max(0, commit - (follower?.match ?? 0));
}

export function isCaughtUp(follower: FollowerView | null, status: RaftStatus): boolean {
  if (follower === null || follower.unhealthy || follower.state !== "replicate") return false;
  return lagOf(follower, status) <= CAUGHT_UP_LAG_ENTRIES_MAX;
}

/** What the leader knows of the other voters. */
export interface VoterView {
  isHealthy(peer: PeerKey): boolean;
  /** It answers and holds the log: it knows the members, and can vouch for them. */
  isInStep(peer: PeerKey): boolean;
  membersKnownTo(peer: PeerKey): readonly PeerKey[];
}

/**
 * Throws where the cluster would be left without voters, or without a majority of voters that answer: the change itself
 * might still be committed by those who are there now, and nothing after it.
 */
export function refuseRemoval(
  { peer: self, configuration }: RaftStatus,
  leaving: readonly PeerKey[],
  view: VoterView,
): void {
  const { voters } = configuration;
  const rest = voters.filter((voter) => !leaving.includes(voter));
  if (rest.length === voters.length) return;
  const nodeId = nodeIdOf(leaving[0]!);
  if (rest.length === 0) {
    const why = `${nodeId} is the last voter: without it the cluster could not write any more. To give the cluster up, stop its servers`;
    throw new TenureError("CONF_CHANGE_INVALID", why);
  }
  const silent = rest.filter((voter) => voter !== self && !view.isHealthy(voter)).map(nodeIdOf);
  if (rest.length - silent.length >= majorityOf(rest)) return refuseCutOff(self, voters, rest, view);
  const why = `without ${nodeId} only ${rest.length - silent.length} of ${rest.length} voters would answer (${silent.join(", ")} would not), and nothing could be written any more. Bring them back, or remove them first`;
  throw new TenureError("CONF_CHANGE_INVALID", why);
}

/**
 * Throws where a voter that was away while others were added would be left with so few voters that it knows, and that could
 * vouch for the others, that they may all fail while a majority lives: it would then refuse the candidates of that majority
 * for ever (docs/decisions/0024). Whoever is away itself, and whoever it does not know, may leave all the same.
 */
export function refuseCutOff(
  self: PeerKey,
  before: readonly PeerKey[],
  after: readonly PeerKey[],
  view: VoterView,
): void {
  const isInStep = (peer: PeerKey): boolean => peer === self || view.isInStep(peer);
  for (const away of before) {
    if (!after.includes(away) || isInStep(away)) continue;
    const known = view.membersKnownTo(away);
    const unknown = after.filter((peer) => peer !== away && !known.includes(peer));
    const vouchers = before.filter((peer) => peer !== away && known.includes(peer) && isInStep(peer));
    const left = vouchers.filter((peer) => after.includes(peer));
    if (unknown.length === 0 || left.length === vouchers.length) continue;
    if (left.length > after.length - majorityOf(after)) continue;
    const why = `${nodeIdOf(away)} has not heard yet that ${unknown.map(nodeIdOf).join(", ")} joined, and of those that it knows too few would be left to say so: after one more failure nobody might be elected any more. Bring ${nodeIdOf(away)} back, or remove it first`;
    throw new TenureError("CONF_CHANGE_INVALID", why);
  }
}

function majorityOf(voters: readonly PeerKey[]): number {
  return Math.floor(voters.length / 2) + 1;
}

export function notLeader(status: RaftStatus): NotLeaderError {
  const leader = status.leader === null || status.leader === status.peer ? null : nodeIdOf(status.leader);
  const who = leader === null ? "no leader is known here; retry in a moment" : `${leader} leads; ask it`;
  const known = leader === null ? null : { epoch: status.term, identity: leader };
  return new NotLeaderError("not-leading", `${nodeIdOf(status.peer)} does not lead this cluster: ${who}`, known);
}

export function unknownMember(nodeId: string): TenureError {
  return new TenureError("MEMBER_UNKNOWN", `${nodeId} is no member of this cluster; see \`tenure cluster status\``);
}

/** Also where this change would be a second one over a joint configuration. */
export function isEarlierChange(
  outcome: ProposeOutcome & { readonly outcome: "refused" },
  status: RaftStatus,
): boolean {
  return (
    outcome.code === "CONF_CHANGE_PENDING" || (outcome.code === "CONF_CHANGE_INVALID" && isJoint(status.configuration))
  );
}

export function settle(outcome: ProposeOutcome, status: RaftStatus): void {
  switch (outcome.outcome) {
    case "committed":
      return;
    case "refused":
      if (outcome.code === "NOT_LEADER") throw notLeader(status);
      throw new TenureError(outcome.code, outcome.message);
    case "unknown": {
      const why =
        "leadership moved while this was being written, and whether it counts is not known here; look at `tenure cluster status`, then try again";
      throw new TenureError("OUTCOME_UNKNOWN", why);
    }
    default:
      return assertNever(outcome, "settle");
  }
}

/** Whom leadership can be handed to; null: the best other voter. */
export function transferTarget(status: RaftStatus, target: string | null): PeerKey | null {
  const self = nodeIdOf(status.peer);
  const { voters, learners } = status.configuration;
  if (target === null) {
    if (voters.some((peer) => peer !== status.peer)) return null;
    throw invalidTarget(`${self} is the only voter; add another before leadership can be handed over`);
  }
  if (target === self) throw invalidTarget(`${self} leads already; name another voter`);
  const voter = diskIn(voters, target);
  if (voter !== null) return voter;
  if (diskIn(learners, target) !== null) {
    throw invalidTarget(`${target} is a learner, and a learner can't lead; promote it first`);
  }
  throw invalidTarget(`${target} is no member of this cluster; its voters are ${voters.map(nodeIdOf).join(", ")}`);
}

function invalidTarget(why: string): TenureError {
  return new TenureError("TRANSFER_TARGET_INVALID", why);
}
