// What the tests of the lease share: voters, rosters, requests, and a leader whose voters answer as they are told to.

import { type PeerKey } from "../kit/ids.ts";
import { Candidacy } from "./candidacy.ts";
import type { QuorumLeader } from "./leader.ts";
import { LEASE_TTL_MS } from "./limits.ts";
import type {
  AcquireRequest,
  Ledger,
  Outgoing,
  RenewRequest,
  Roster,
  RosterVoter,
  VoterAnswer,
  VoterRequest,
} from "./model.ts";
import { EMPTY_LEDGER, positionOf } from "./roster.ts";
import { Voter } from "./voter.ts";

export const CLUSTER = "cluster-1";

export function peer(text: string): PeerKey {
  return text as PeerKey;
}

export function votersOf(...peers: readonly string[]): readonly RosterVoter[] {
  return peers.map((text) => ({ peer: peer(text), endpoint: text.split("@")[0]! }));
}

export function rosterOf(term: number, version: number, ...peers: readonly string[]): Roster {
  return { term, version, recoveredBy: null, voters: votersOf(...peers), registry: [] };
}

export function ledgerOf(roster: Roster, more: Partial<Ledger> = {}): Ledger {
  return { ...EMPTY_LEDGER, clusterId: CLUSTER, term: roster.term, roster, ...more };
}

/** Of a voter that was started so long ago that no restart matters. */
export function voterOf(self: string, ledger: Ledger = EMPTY_LEDGER, startedMs = -1_000_000): Voter {
  return new Voter(peer(self), ledger, startedMs);
}

export function acquire(holder: string, voter: string, term: number, roster: Roster | null): AcquireRequest {
  const ttlMs = LEASE_TTL_MS;
  return { kind: "acquire", clusterId: CLUSTER, holder: peer(holder), voter: peer(voter), term, ttlMs, roster };
}

export function renew(holder: string, voter: string, term: number, roster: Roster | null): RenewRequest {
  return { ...acquire(holder, voter, term, roster), kind: "renew", mark: null };
}

export function release(holder: string, voter: string, term: number): VoterRequest {
  return { kind: "release", clusterId: CLUSTER, holder: peer(holder), voter: peer(voter), term };
}

/** As the holder's own certificate sends it. `accepted`, or why not. */
export function asked(voter: Voter, nowMs: number, request: VoterRequest): string {
  const { outcome } = voter.decide(nowMs, request.holder.split("@")[0]!, request).answer;
  return outcome.kind === "accepted" ? "accepted" : outcome.reason;
}

export function accepted(sent: Outgoing, more: Partial<VoterAnswer> = {}): VoterAnswer {
  const { request, to } = sent;
  const outcome = { kind: "accepted", lastsMs: LEASE_TTL_MS } as const;
  const roster = request.roster === null ? null : positionOf(request.roster);
  return { voter: to.peer, clusterId: CLUSTER, term: request.term, roster, isLeaving: false, outcome, ...more };
}

export function refused(sent: Outgoing, reason: "term-stale" | "not-holder" | "generation-over", term: number) {
  return { ...accepted(sent), term, outcome: { kind: "refused", reason } as const };
}

export function at(ms: number): { readonly monotonicMs: number; readonly wallMs: number } {
  return { monotonicMs: ms, wallMs: 1_000_000 + ms };
}

/** A round in which these voters answer, and nobody else. */
export function round(
  leader: QuorumLeader,
  ms: number,
  answering: readonly string[],
  others: readonly string[] = [],
): void {
  for (const sent of leader.round(votersOf(...others))) {
    if (answering.includes(sent.to.peer)) leader.took(sent, at(ms), accepted(sent));
  }
}

/** The first of the roster has won with the answers of all. */
export function elected(roster: Roster, term: number, ms = 0): QuorumLeader {
  const candidacy = new Candidacy({ self: roster.voters[0]!.peer, clusterId: CLUSTER, roster, term });
  const own = candidacy.ownRequest();
  candidacy.took(own, at(ms), accepted(own));
  for (const sent of candidacy.otherRequests()) candidacy.took(sent, at(ms), accepted(sent));
  return candidacy.leader();
}

/** Elected, and its roster is stored by all. */
export function opened(roster: Roster, term: number, ms = 0): QuorumLeader {
  const leader = elected(roster, term, ms);
  round(
    leader,
    ms,
    roster.voters.map((voter) => voter.peer),
  );
  return leader;
}
