// Majorities over a configuration: what is committed, who won, who belongs.
//
// Invariants:
// - Only voters count, each once; learners never do (trap 8).
// - A joint configuration decides where both halves decide (Raft thesis, section 4.3). An empty half
//   agrees with everything, so that a configuration that is not joint is no case of its own. Where both
//   are empty there is nobody to agree: nothing is committed, nothing is won.
// - A configuration is never changed in place: what is derived from one object is derived once.

import type { PeerKey } from "../../kit/ids.ts";
import type { Configuration } from "../types.ts";

/** The highest index that a majority of each half has acknowledged. */
export function committedIndex(configuration: Configuration, ackedIndexOf: (peer: PeerKey) => number): number {
  const incoming = majorityIndex(configuration.voters, ackedIndexOf);
  const outgoing = majorityIndex(configuration.votersOutgoing, ackedIndexOf);
  const index = Math.min(incoming, outgoing);
  return index === Infinity ? 0 : index;
}

/** `voteOf` is undefined for a voter that has not answered. */
export function voteResult(
  configuration: Configuration,
  voteOf: (peer: PeerKey) => boolean | undefined,
): "won" | "lost" | "pending" {
  if (configuration.voters.length + configuration.votersOutgoing.length === 0) return "lost";
  const incoming = majorityVote(configuration.voters, voteOf);
  const outgoing = majorityVote(configuration.votersOutgoing, voteOf);
  if (incoming === outgoing) return incoming;
  return incoming === "lost" || outgoing === "lost" ? "lost" : "pending";
}

export function isJoint(configuration: Configuration): boolean {
  return configuration.votersOutgoing.length > 0;
}

/** In either half: such a peer may vote, campaign and lead. */
export function isVoter(configuration: Configuration, peer: PeerKey): boolean {
  return configuration.voters.includes(peer) || configuration.votersOutgoing.includes(peer);
}

/** A voter on its way to being a learner is not one yet. */
export function isLearner(configuration: Configuration, peer: PeerKey): boolean {
  return configuration.learners.includes(peer);
}

export function isMember(configuration: Configuration, peer: PeerKey): boolean {
  return isVoter(configuration, peer) || isLearner(configuration, peer);
}

/** Voters of both halves and learners, sorted: everybody to whom a leader replicates. */
export function members(configuration: Configuration): readonly PeerKey[] {
  return unionsOf(configuration).members;
}

/** Voters of both halves, sorted. */
export function voterKeys(configuration: Configuration): readonly PeerKey[] {
  return unionsOf(configuration).voters;
}

/** Only ever used between two lines of majorityIndex; kept so that counting acknowledgements allocates nothing. */
const ascending: number[] = [];

function majorityIndex(voters: readonly PeerKey[], ackedIndexOf: (peer: PeerKey) => number): number {
  if (voters.length === 0) return Infinity;
  for (let count = 0; count < voters.length; count++) {
    const index = ackedIndexOf(voters[count] as PeerKey);
    let at = count;
    // Insertion: for the three to seven voters of a cluster nothing is faster, and 32 are the most.
    for (; at > 0 && (ascending[at - 1] as number) > index; at--) ascending[at] = ascending[at - 1] as number;
    ascending[at] = index;
  }
  return ascending[voters.length - majorityOf(voters.length)] as number;
}

function majorityVote(
  voters: readonly PeerKey[],
  voteOf: (peer: PeerKey) => boolean | undefined,
): "won" | "lost" | "pending" {
  let granted = 0;
  let refused = 0;
  for (const voter of voters) {
    const vote = voteOf(voter);
    if (vote === true) granted++;
    else if (vote === false) refused++;
  }
  const majority = majorityOf(voters.length);
  if (voters.length === 0 || granted >= majority) return "won";
  return voters.length - refused < majority ? "lost" : "pending";
}

function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}

interface Unions {
  readonly voters: readonly PeerKey[];
  readonly members: readonly PeerKey[];
}

const unionsByConfiguration = new WeakMap<Configuration, Unions>();

function unionsOf(configuration: Configuration): Unions {
  let unions = unionsByConfiguration.get(configuration);
  if (unions === undefined) {
    const voters = [...new Set([...configuration.voters, ...configuration.votersOutgoing])].sort();
    unions = { voters, members: [...new Set([...voters, ...configuration.learners])].sort() };
    unionsByConfiguration.set(configuration, unions);
  }
  return unions;
}
