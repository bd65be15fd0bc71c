// The cluster as one node shows it, made from what it has in memory at the moment of the call.

import type { Observation } from "../../core/health/index.ts";
import { incarnationOf, nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import { isJoint, isMember, members, type Configuration, type RaftStatus } from "../../core/raft/index.ts";
import type { ClusterView, MemberView } from "../../ports/cluster.ts";
import type { Members } from "../../ports/consensus.ts";
import type { Peers } from "../../ports/peers/peers.ts";

/** Where this node itself can be reached. */
export interface OwnAddress {
  readonly address: string | null;
  readonly url: string | null;
}

export interface Surroundings {
  readonly consensus: Pick<Members, "followerOf">;
  readonly peers: Peers;
  readonly own: OwnAddress;
}

/** Established (design D9), and in contact with a quorum not longer ago than it is content with itself, where there are others. */
export function isConfirmedLeader(status: RaftStatus, nowMs: number, electionTimeoutMaxMs: number): boolean {
  if (status.role !== "leader" || !status.established) return false;
  return isOnlyVoter(status) || nowMs - status.quorumContactMs <= electionTimeoutMaxMs + status.strainMs;
}

export function isOnlyVoter({ configuration, peer }: RaftStatus): boolean {
  const { voters, votersOutgoing } = configuration;
  return voters.length === 1 && voters[0] === peer && votersOutgoing.length === 0;
}

export const REMOVED =
  "was removed from the cluster: stop it, or start it with an empty data directory and let it join again with `tenure member add`";

/** Null: it is ready. Once it has caught up it stays so, until it is removed. */
export function whyNotReady(status: RaftStatus, hasCaughtUp: boolean, alerts: ClusterView["alerts"]): string | null {
  const { peer, configuration, committedConfiguration, leader, applied } = status;
  if (hasCaughtUp) {
    // It was away when it was removed: its own log will never say so.
    const removal = alerts.find(({ name }) => name === "node_removed");
    if (removal !== undefined) return `is refused by other nodes: ${removal.message}`;
    // One that is not committed may never be, and a joint configuration counts those who leave.
    return isMember(configuration, peer) || isMember(committedConfiguration, peer) ? null : REMOVED;
  }
  if (!isMember(configuration, peer)) {
    // Where others are members, its log is that of one who was removed, or whom a snapshot from before brought so far.
    const yet = configuration.voters.length > 0 ? ", or no longer" : "";
    return `is no member of the cluster yet${yet}: it joins by itself if it was invited, else by \`tenure member add\``;
  }
  if (leader === null) return "no leader was heard of since the start; a majority of the voters has to run";
  return `has applied ${applied} entries and is still catching up with the leader ${nodeIdOf(leader)}`;
}

export function leaderView({ peers, own }: Surroundings, { peer: self, leader }: RaftStatus): ClusterView["leader"] {
  if (leader === null) return null;
  const nodeId = nodeIdOf(leader);
  if (leader === self) return { nodeId, ...own };
  const link = peers.list().find((one) => one.nodeId === nodeId);
  return { nodeId, address: link?.address ?? null, url: link?.apiUrl ?? null };
}

export function memberViews(around: Surroundings, status: RaftStatus, nowMs: number): readonly MemberView[] {
  const links = new Map(around.peers.list().map((link) => [link.nodeId, link]));
  return members(status.configuration).map((peer) => {
    const isSelf = peer === status.peer;
    const link = links.get(nodeIdOf(peer));
    return {
      nodeId: nodeIdOf(peer),
      incarnation: incarnationOf(peer),
      kind: kindOf(status.configuration, peer),
      isLeader: peer === status.leader,
      address: isSelf ? around.own.address : (link?.address ?? null),
      url: isSelf ? around.own.url : (link?.apiUrl ?? null),
      // A connection to a node's new disk is none to its old one.
      isConnected: isSelf || (link?.isConnected === true && link.peer === peer),
      refusal: isSelf || link?.isConnected === true ? null : (link?.refusal ?? null),
      progress: progressOf(around.consensus, status, peer, nowMs),
    };
  });
}

/** Members whose disk was not heard, in its last handshake, to be of a release that agrees on this protocol. */
export function membersBelow(protocol: number, peers: Peers, { configuration, peer: self }: RaftStatus): string[] {
  const able = new Set(peers.list().flatMap((link) => ((link.protocol ?? 0) >= protocol ? [link.peer] : [])));
  return members(configuration)
    .filter((peer) => peer !== self && !able.has(peer))
    .map(nodeIdOf);
}

/** Members that were heard to speak an older protocol; one that was not heard is not among them. */
export function membersHeardBelow(protocol: number, peers: Peers, { configuration }: RaftStatus): string[] {
  const below = new Set(peers.list().flatMap((link) => ((link.protocol ?? protocol) < protocol ? [link.peer] : [])));
  return members(configuration)
    .filter((peer) => below.has(peer))
    .map(nodeIdOf);
}

type MembersSeen = Pick<Observation, "isMember" | "leader" | "leaderContactMs" | "cloned" | "refused">;

/** Who leads, of whose disk there are two, and which members answer and do not accept this node, or are not accepted by it. */
export function membersSeen(peers: Peers, status: RaftStatus): MembersSeen {
  const { configuration, peer, leader, leaderContactMs } = status;
  const nodeIds = new Set(members(configuration).map(nodeIdOf));
  const refused = peers.list().flatMap(({ nodeId, isConnected, refusal = null }) => {
    return nodeIds.has(nodeId) && !isConnected && refusal !== null ? [{ nodeId, why: refusal }] : [];
  });
  return { isMember: isMember(configuration, peer), leader, leaderContactMs, cloned: peers.cloned?.(), refused };
}

function kindOf(configuration: Configuration, peer: PeerKey): MemberView["kind"] {
  const { voters, votersOutgoing, learners } = configuration;
  if (learners.includes(peer)) return "learner";
  if (!isJoint(configuration)) return "voter";
  if (!voters.includes(peer)) return "leaving";
  return votersOutgoing.includes(peer) ? "voter" : "joining";
}

function progressOf(
  consensus: Surroundings["consensus"],
  status: RaftStatus,
  peer: PeerKey,
  nowMs: number,
): MemberView["progress"] {
  if (status.role !== "leader") return null;
  const { lastIndex } = status;
  if (peer === status.peer) {
    return { match: lastIndex, next: lastIndex + 1, lag: 0, state: "replicate", lastContactMs: 0, healthy: true };
  }
  const follower = consensus.followerOf(peer);
  if (follower === null) return null;
  const { match, next, state, unhealthy } = follower;
  const lastContactMs = Math.max(0, nowMs - follower.lastContactMs);
  return { match, next, lag: Math.max(0, lastIndex - match), state, lastContactMs, healthy: !unhealthy };
}
