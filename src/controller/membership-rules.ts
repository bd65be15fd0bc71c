// What may be changed in a membership, decided from what the leader sees and nothing else.

import { TenureError } from "../core/kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../core/kit/ids.ts";
import type { Configuration, RaftStatus } from "../core/raft/index.ts";
import type { FollowerView } from "../ports/consensus.ts";

/** Under load a follower in step is always a few batches behind; more is a node that would hold commits up as a voter. */
const CAUGHT_UP_LAG_ENTRIES_MAX = 256;

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

export function lagOf(follower: FollowerView | null, { commit }: RaftStatus): number {
  return Math.max(0, commit - (follower?.match ?? 0));
}

export function isCaughtUp(follower: FollowerView | null, status: RaftStatus): boolean {
  if (follower === null || follower.unhealthy || follower.state !== "replicate") return false;
  return lagOf(follower, status) <= CAUGHT_UP_LAG_ENTRIES_MAX;
}

/**
 * Throws where the cluster would be left without voters, or without a majority of voters that answer: the change itself
 * might still be committed by those who are there now, and nothing after it.
 */
export function refuseRemoval(
  { peer: self, configuration }: RaftStatus,
  leaving: readonly PeerKey[],
  isHealthy: (peer: PeerKey) => boolean,
): void {
  const { voters } = configuration;
  const rest = voters.filter((voter) => !leaving.includes(voter));
  if (rest.length === voters.length) return;
  const nodeId = nodeIdOf(leaving[0]!);
  if (rest.length === 0) {
    const why = `${nodeId} is the last voter: without it the cluster could not write any more. To give the cluster up, stop its servers`;
    throw new TenureError("CONF_CHANGE_INVALID", why);
  }
  const silent = rest.filter((voter) => voter !== self && !isHealthy(voter)).map(nodeIdOf);
  const majority = Math.floor(rest.length / 2) + 1;
  if (rest.length - silent.length >= majority) return;
  const why = `without ${nodeId} only ${rest.length - silent.length} of ${rest.length} voters would answer (${silent.join(", ")} would not), and nothing could be written any more. Bring them back, or remove them first`;
  throw new TenureError("CONF_CHANGE_INVALID", why);
}
