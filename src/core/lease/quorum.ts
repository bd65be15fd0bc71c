// What answers prove. A voter's answer counts from the moment at which the request was sent, for a fixed time; a leader has what a majority
// of a roster's voters proves. The quorum is that of the roster, whoever is listed or answers: it never shrinks by silence.

import { assert } from "../kit/assert.ts";
import type { PeerKey } from "../kit/ids.ts";
import { type Instant, latest } from "../trust/window.ts";
import { LEASE_TTL_MS } from "./limits.ts";
import type { Outgoing, RosterVoter, VoterAnswer } from "./model.ts";
import { majorityOf } from "./roster.ts";

export type Proofs = ReadonlyMap<PeerKey, Instant>;

/**
 * The latest moment of which a majority of the voters has proofs; null: there is none. Counted, not sorted: the gate asks this before each effect, and
 * the lists for sorting were a tenth of what a leader under load allocated.
 */
export function provedBy(voters: readonly RosterVoter[], proofs: Proofs): Instant | null {
  let proved: Instant | null = null;
  for (const { peer } of voters) {
    const proof = proofs.get(peer);
    if (proof === undefined || (proved !== null && proof.monotonicMs <= proved.monotonicMs)) continue;
    let since = 0;
    for (const other of voters)
      since += Number((proofs.get(other.peer)?.monotonicMs ?? -Infinity) >= proof.monotonicMs);
    if (since >= majorityOf(voters.length)) proved = proof;
  }
  return proved;
}

export function earlier(a: Instant | null, b: Instant | null): Instant | null {
  if (a === null || b === null) return null;
  return latest(a, b) === a ? b : a;
}

export function hasMajority(voters: readonly RosterVoter[], is: (peer: PeerKey) => boolean): boolean {
  assert(voters.length > 0, "a roster has voters");
  return voters.filter(({ peer }) => is(peer)).length >= majorityOf(voters.length);
}

/** From exactly the voter that was asked, in its cluster: neither its wiped successor nor another cluster at its address counts. */
export function isFrom({ to, request }: Outgoing, { voter, clusterId }: VoterAnswer): boolean {
  return voter === to.peer && clusterId === request.clusterId;
}

/** An answer that promises less than the leader counts with is no proof. */
export function isProof({ outcome }: VoterAnswer): boolean {
  return outcome.kind === "accepted" && outcome.lastsMs >= LEASE_TTL_MS;
}
