// Rosters: their order, their generations, and how one follows another.
//
// Invariants: what follows a roster in a term has the next version, and at most one voter more or less; the first roster of a term is the
// winner's own one with its term (`restamped`); only `recovered` enters another generation.

import { assert } from "../kit/assert.ts";
import { type PeerKey } from "../kit/ids.ts";
import { MEMBERS_MAX } from "../kit/limits.ts";
import { GENERATION_TERMS, REGISTRY_ENTRIES_MAX, LEASE_TERM_JUMP_MAX } from "./limits.ts";
import type { Ledger, Position, RegistryEntries, Roster, RosterVoter } from "./model.ts";

export const EMPTY_LEDGER: Ledger = { clusterId: null, term: 0, grant: null, roster: null, shown: null };

export function generationOf(term: number): number {
  return Math.floor(term / GENERATION_TERMS);
}

/** The first term of the generation after that of this one. */
export function nextGeneration(term: number): number {
  return (generationOf(term) + 1) * GENERATION_TERMS;
}

/** Whether somebody who knows of the one term believes the other one: terms rise by one, and forged or corrupt ones by anything (trap 31). */
export function isCredible(term: number, known: number): boolean {
  if (!Number.isSafeInteger(term)) return false;
  return term - Math.max(known, generationOf(term) * GENERATION_TERMS) <= LEASE_TERM_JUMP_MAX;
}

/** Below 0: `a` is older. */
export function comparePositions(a: Position, b: Position): number {
  return a.term - b.term || a.version - b.version;
}

export function positionOf({ term, version }: Position): Position {
  return { term, version };
}

export function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}

export function isVoter({ voters }: Roster, peer: PeerKey): boolean {
  return voters.some((voter) => voter.peer === peer);
}

/** The same roster under the term of whoever won with it. */
export function restamped(roster: Roster, term: number): Roster {
  assert(
    term > roster.term && generationOf(term) === generationOf(roster.term),
    "a winner's term follows its roster's",
  );
  return { ...roster, term, version: 1 };
}

export function withVoters(roster: Roster, voters: readonly RosterVoter[]): Roster {
  const added = voters.filter(({ peer }) => !isVoter(roster, peer)).length;
  const removed = roster.voters.length + added - voters.length;
  assert(voters.length > 0 && voters.length <= MEMBERS_MAX, "a roster has voters, and not too many");
  assert(added + removed === 1, "one voter differs", () => `${added} added, ${removed} removed`);
  return { ...roster, version: roster.version + 1, voters: voters.toSorted((a, b) => (a.peer < b.peer ? -1 : 1)) };
}

/** The same voters, one of them at another address: whoever restarts without any membership lease looks for voters where the roster has them. */
export function withEndpoint(roster: Roster, peer: PeerKey, endpoint: string): Roster {
  const voters = roster.voters.map((voter) => (voter.peer === peer ? { peer, endpoint } : voter));
  return { ...roster, version: roster.version + 1, voters };
}

export function withRegistry(roster: Roster, registry: RegistryEntries): Roster {
  assert(registry.length <= REGISTRY_ENTRIES_MAX, "a registry is bounded");
  return { ...roster, version: roster.version + 1, registry };
}

/** The ledger of whoever founds a cluster: the only voter. */
export function founded(clusterId: string, self: RosterVoter): Ledger {
  const roster: Roster = { term: 0, version: 1, recoveredBy: null, voters: [self], registry: [] };
  return { clusterId, term: 0, grant: null, roster, shown: null };
}

/**
 * What `tenure tc recover --force` writes while the node is stopped: a generation of its own, in which it is the only voter. The grant stays, so
 * that the next start waits for a leader that this voter may have renewed.
 */
export function recovered(ledger: Ledger, self: RosterVoter): Ledger {
  const { roster } = ledger;
  assert(ledger.clusterId !== null && roster !== null, "only a member of a cluster can be recovered");
  const term = nextGeneration(Math.max(ledger.term, roster.term));
  return {
    ...ledger,
    term,
    roster: { term, version: 1, recoveredBy: self.peer, voters: [self], registry: roster.registry },
  };
}
