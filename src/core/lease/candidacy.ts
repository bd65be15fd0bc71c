// How somebody becomes leader: first it asks who leads, which changes nothing (a pre-vote); where a majority of its roster knows nobody, and no newer
// roster, it asks for the next term. A candidate that can't win holds votes, its own at least, and keeps others from winning: so who would be
// refused does not begin, and who has been refused by too many ends at once.
//
// The candidate's own grant comes first, and is durable before any request for the term leaves. So a term that was once on the wire is never asked
// for again by this node, also after a restart, and a release that is late can't be one of a later campaign in the same term. A release is on the
// wire too: of a term without that grant nothing is sent to others, not even that it was given up.

import { assert } from "../kit/assert.ts";
import type { PeerKey } from "../kit/ids.ts";
import type { Instant } from "../trust/window.ts";
import { QuorumLeader } from "./leader.ts";
import { LEASE_TTL_MS } from "./limits.ts";
import type { CoordinatorStatus, Ledger, Outgoing, Roster, RosterVoter, VoterAnswer } from "./model.ts";
import { hasMajority, isFrom, isProof } from "./quorum.ts";
import { comparePositions, generationOf, isCredible, isVoter } from "./roster.ts";

export type PreVote =
  | { readonly kind: "campaign"; readonly term: number }
  | {
      readonly kind: "wait";
      readonly because: "no-voter" | "outdated" | "leader-known" | "terms-used-up";
    };

/** `statuses`: the candidate's own, and what was answered, by the peer that answered. */
export function preVote(self: PeerKey, { roster, term }: Ledger, statuses: readonly CoordinatorStatus[]): PreVote {
  if (roster === null || !isVoter(roster, self)) return { kind: "wait", because: "no-voter" };
  const generation = generationOf(roster.term);
  const terms = statuses.map((status) => status.term);
  const knownMax = Math.max(term, ...terms.filter((known) => isCredible(known, term)));
  if (generationOf(Math.max(term, ...terms)) > generation) return { kind: "wait", because: "outdated" };
  const isFree = ({ leader, roster: theirs }: CoordinatorStatus): boolean =>
    (leader === null || leader.peer === self) && (theirs === null || comparePositions(theirs, roster) <= 0);
  const knowsNobody = (peer: PeerKey): boolean => statuses.some((status) => status.self === peer && isFree(status));
  if (!knowsNobody(self) || !hasMajority(roster.voters, knowsNobody)) return { kind: "wait", because: "leader-known" };
  // Above the own ledger's term in any case: after a restart nobody knows what was begun in that one.
  if (generationOf(knownMax + 1) > generation) return { kind: "wait", because: "terms-used-up" };
  return { kind: "campaign", term: knownMax + 1 };
}

/**
 * How many voters begin before this one when a leadership has ended: those that its roster lists before it. Whoever led comes last, because it has
 * given its lease up, or is gone.
 */
export function placeOf(self: PeerKey, { roster, grant }: Ledger): number {
  const voters = roster?.voters.map(({ peer }) => peer) ?? [];
  // A candidate that lost has a grant too, but no roster of its own term.
  const former = grant !== null && grant.term === roster?.term ? grant.leader : null;
  const places = [...voters.filter((peer) => peer !== former), former];
  return Math.max(0, places.indexOf(self));
}

export interface CandidacyOptions {
  readonly self: PeerKey;
  readonly clusterId: string;
  readonly roster: Roster;
  readonly term: number;
}

export class Candidacy {
  readonly #options: CandidacyOptions;
  readonly #proofs = new Map<PeerKey, Instant>();
  readonly #granted = new Set<PeerKey>();
  readonly #refused = new Set<PeerKey>();
  #isLost = false;

  constructor(options: CandidacyOptions) {
    this.#options = options;
  }

  /** This node's own grant is durable. False: nobody else has heard of the term, or ever must. */
  get hasOwnGrant(): boolean {
    return this.#granted.has(this.#options.self);
  }

  /** To itself. The others are asked after it was granted. */
  ownRequest(): Outgoing {
    const own = this.#options.roster.voters.find(({ peer }) => peer === this.#options.self);
    assert(own !== undefined, "a candidate is a voter of its roster");
    return this.#requestTo(own);
  }

  otherRequests(): Outgoing[] {
    assert(this.hasOwnGrant, "the candidate's own grant is durable before it asks others");
    const { roster, self } = this.#options;
    return roster.voters.filter(({ peer }) => peer !== self).map((voter) => this.#requestTo(voter));
  }

  took(sent: Outgoing, sentAt: Instant, answer: VoterAnswer): void {
    if (!isFrom(sent, answer)) return;
    const { term } = this.#options;
    if (answer.term > term && isCredible(answer.term, term)) this.#isLost = true;
    if (answer.outcome.kind === "refused") return void this.#refused.add(answer.voter);
    this.#granted.add(answer.voter);
    if (isProof(answer)) this.#proofs.set(answer.voter, sentAt);
  }

  get verdict(): "open" | "won" | "lost" {
    const { roster, self } = this.#options;
    // Each is asked once.
    if (this.#isLost || !hasMajority(roster.voters, (peer) => !this.#refused.has(peer))) return "lost";
    const isWon = this.#proofs.has(self) && hasMajority(roster.voters, (peer) => this.#proofs.has(peer));
    return isWon ? "won" : "open";
  }

  /** Nobody but these is expected to answer, and with what was refused there is no majority. Each may still answer: the verdict is open. */
  isHopeless(expected: ReadonlySet<PeerKey>): boolean {
    if (this.#refused.size === 0) return false;
    const mayGrant = (peer: PeerKey): boolean =>
      this.#granted.has(peer) || (expected.has(peer) && !this.#refused.has(peer));
    return !hasMajority(this.#options.roster.voters, mayGrant);
  }

  leader(): QuorumLeader {
    assert(this.verdict === "won", "a leader has a quorum, its own grant included");
    return new QuorumLeader({ ...this.#options, proofs: this.#proofs, granted: this.#granted });
  }

  #requestTo(to: RosterVoter): Outgoing {
    const { self: holder, clusterId, roster, term } = this.#options;
    return { to, request: { kind: "acquire", clusterId, holder, voter: to.peer, term, ttlMs: LEASE_TTL_MS, roster } };
  }
}
