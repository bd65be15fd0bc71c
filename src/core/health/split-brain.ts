// Looks for what Raft makes impossible: two leaders of one term, or two different states at one applied index. It judges by
// what nodes say, so a planted or a real mistake in the core, on a disk or in memory is seen, and it trusts no clock.
//
// Two leaders of different terms at one moment are normal (trap 22): the lower one has not heard yet.
//
// Reports come late, twice and in any order. So what is compared is not "now" but claims about one term, or one index,
// and those are remembered: a second leader of a term is found also if the first is long gone.
// - A claim of leadership is the leader's own, or that of anybody who follows it: whoever follows has heard it lead.
// - A claim about state is the hash over everything applied up to an index. It is compared with our own at that index as
//   soon as we know it; while we do not, with the first claim of another node.
// Each finding is reported once: a term's each further leader, and each two nodes whose states differ.

import type { PeerKey } from "../kit/ids.ts";
import { CHAIN_CLAIMS_MAX, CLAIMED_TERMS_MAX, DIVERGED_PAIRS_MAX } from "./limits.ts";
import type { ChainPoint } from "./outputs.ts";

export type SplitBrainFinding =
  | { readonly kind: "two-leaders"; readonly term: number; readonly leaders: readonly [PeerKey, PeerKey] }
  | { readonly kind: "diverged"; readonly index: number; readonly nodes: readonly [PeerKey, PeerKey] };

interface ChainClaim extends ChainPoint {
  readonly by: PeerKey;
  comparedWithOurs: boolean;
}

export class SplitBrain {
  readonly #self: PeerKey;
  /** Null where this node does not know: not applied yet, or too long ago. */
  readonly #ownHashAt: (index: number) => number | null;
  readonly #leaders = new Map<number, Set<PeerKey>>();
  /** In the order of their arrival: the oldest goes first. */
  readonly #claims = new Map<string, ChainClaim>();
  readonly #firstClaims = new Map<number, ChainClaim>();
  readonly #divergedPairs = new Set<string>();

  constructor(self: PeerKey, ownHashAt: (index: number) => number | null) {
    this.#self = self;
    this.#ownHashAt = ownHashAt;
  }

  /** Somebody says that this peer leads, or led, this term. */
  leads(term: number, leader: PeerKey): SplitBrainFinding[] {
    const known = this.#leaders.get(term);
    if (known === undefined) {
      this.#leaders.set(term, new Set([leader]));
      if (this.#leaders.size > CLAIMED_TERMS_MAX) this.#forgetLowestTerm();
      return [];
    }
    if (known.has(leader)) return [];
    const [first] = known;
    known.add(leader);
    return [{ kind: "two-leaders", term, leaders: [first!, leader] }];
  }

  /** A node says that this is the hash of its state at that index. */
  claims(by: PeerKey, point: ChainPoint): SplitBrainFinding[] {
    const key = `${point.index} ${point.hash} ${by}`;
    if (this.#claims.has(key)) return [];
    const claim: ChainClaim = { ...point, by, comparedWithOurs: false };
    this.#claims.set(key, claim);
    if (this.#claims.size > CHAIN_CLAIMS_MAX) this.#forgetOldestClaim();
    const first = this.#firstClaims.get(point.index);
    if (first === undefined) this.#firstClaims.set(point.index, claim);
    const withOurs = this.#compareWithOurs(claim);
    // Where we know our own, whoever differs from us is found already, and so is who differs from whom.
    if (claim.comparedWithOurs || first === undefined || first.hash === point.hash) return withOurs;
    return this.#diverged(point.index, first.by, by);
  }

  /** Our own state has moved on: claims about what we had not applied yet can be judged now. */
  recheck(): SplitBrainFinding[] {
    return [...this.#claims.values()].flatMap((claim) => this.#compareWithOurs(claim));
  }

  #compareWithOurs(claim: ChainClaim): SplitBrainFinding[] {
    if (claim.comparedWithOurs || claim.by === this.#self) return [];
    const ours = this.#ownHashAt(claim.index);
    if (ours === null) return [];
    claim.comparedWithOurs = true;
    return ours === claim.hash ? [] : this.#diverged(claim.index, this.#self, claim.by);
  }

  #diverged(index: number, one: PeerKey, other: PeerKey): SplitBrainFinding[] {
    // One node with two states at one index is as wrong as two nodes.
    const pair = [one, other].sort().join(" ");
    if (this.#divergedPairs.has(pair) || this.#divergedPairs.size >= DIVERGED_PAIRS_MAX) return [];
    this.#divergedPairs.add(pair);
    return [{ kind: "diverged", index, nodes: [one, other] }];
  }

  #forgetLowestTerm(): void {
    this.#leaders.delete(Math.min(...this.#leaders.keys()));
  }

  #forgetOldestClaim(): void {
    const [key, claim] = this.#claims.entries().next().value!;
    this.#claims.delete(key);
    if (this.#firstClaims.get(claim.index) === claim) this.#firstClaims.delete(claim.index);
  }
}
