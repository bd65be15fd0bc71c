// A voter: to whom it has granted which term, which roster it has stored, and until when it excludes others.
//
// Invariants: the ledger's term, its grant's term and its roster never fall; a term is granted to one holder; a roster is stored only from the
// holder of the current grant; the lease in memory never ends earlier than any answer promised. `decide` returns the ledger that must be
// written and synced before the answer leaves, and before the next request is decided.
//
// A voter counts from the receipt of a request, a leader from its sending, which is earlier. What a voter has promised is in memory only, so
// after a start it takes the recorded holder for the leader, longer than any promise that it may have made before.

import { assert, assertNever } from "../kit/assert.ts";
import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import { LEASE_BOOT_WAIT_MS, LEASE_TTL_MS } from "./limits.ts";
import type {
  AcquireRequest,
  CoordinatorStatus,
  KnownLeader,
  Ledger,
  LeaseRefusal,
  ReleaseRequest,
  RenewRequest,
  Roster,
  RosterVoter,
  Shown,
  VoterAnswer,
  VoterOutcome,
  VoterRequest,
} from "./model.ts";
import { comparePositions, founded, generationOf, isCredible, isVoter, positionOf } from "./roster.ts";

interface Promised {
  readonly holder: PeerKey;
  readonly term: number;
  /** Of the monotonic clock. */
  readonly untilMs: number;
}

export interface VoterDecision {
  /** To be durable before the answer leaves; null: nothing changed. */
  readonly ledger: Ledger | null;
  readonly answer: VoterAnswer;
  /** Nobody leads any more: candidates need not wait for an expiry. */
  readonly isReleased: boolean;
}

export class Voter {
  readonly self: PeerKey;
  /** It asked to be removed, and says so in each answer. */
  isLeaving = false;
  #ledger: Ledger;
  #promised: Promised | null;
  /** The start, or the last release. */
  #freeFromMs: number;
  /** The highest that anybody has spoken of. */
  #generation = 0;

  constructor(self: PeerKey, ledger: Ledger, startedMs: number) {
    this.self = self;
    this.#ledger = ledger;
    this.#freeFromMs = startedMs;
    const { grant } = ledger;
    const untilMs = startedMs + LEASE_BOOT_WAIT_MS;
    this.#promised = grant === null || grant.released ? null : { holder: grant.leader, term: grant.term, untilMs };
    if (ledger.roster !== null) this.noteTerm(ledger.roster.term);
  }

  get ledger(): Ledger {
    return this.#ledger;
  }

  /** A higher generation exists: this voter serves none below it. */
  noteTerm(term: number): void {
    this.#generation = Math.max(this.#generation, generationOf(term));
  }

  get generation(): number {
    return this.#generation;
  }

  /** A higher generation than that of its own roster exists: it waits to be admitted there. */
  get isOutdated(): boolean {
    const { roster } = this.#ledger;
    return roster !== null && generationOf(roster.term) < this.#generation;
  }

  /** Whose lease excludes others here. */
  leaderAt(nowMs: number): KnownLeader | null {
    const promised = this.#inForce(nowMs);
    if (promised === null) return null;
    const { holder: peer, term } = promised;
    const endpoint = this.#ledger.roster?.voters.find((voter) => voter.peer === peer)?.endpoint ?? null;
    return { peer, endpoint, term };
  }

  /** When the lease in force ends, or null. */
  promisedUntilMs(nowMs: number): number | null {
    return this.#inForce(nowMs)?.untilMs ?? null;
  }

  /** Since when no lease is in force here; null: one is. */
  leaderlessSinceMs(nowMs: number): number | null {
    if (this.#inForce(nowMs) !== null) return null;
    return Math.max(this.#freeFromMs, this.#promised?.untilMs ?? -Infinity);
  }

  statusAt(nowMs: number): CoordinatorStatus {
    const { clusterId, term, roster } = this.#ledger;
    const leader = this.leaderAt(nowMs);
    const position = roster === null ? null : positionOf(roster);
    return { self: this.self, clusterId, term, roster: position, isLeaving: this.isLeaving, leader };
  }

  /** The first voter of a new cluster. */
  found(clusterId: string, endpoint: string): Ledger {
    assert(this.#ledger.clusterId === null, "a cluster is founded by whoever is in none");
    return (this.#ledger = founded(clusterId, { peer: this.self, endpoint } satisfies RosterVoter));
  }

  /** On arrival: a request may wait for its decision while the disk writes, and of which generation it is counts at once. */
  hear(caller: string, request: VoterRequest): void {
    if (request.kind === "release" || request.roster === null || this.#stranger(caller, request) !== null) return;
    this.#rosterProblem(request, request.roster);
  }

  /** `caller`: the node id of the certificate that the request came with. */
  decide(nowMs: number, caller: string, request: VoterRequest): VoterDecision {
    const before = this.#ledger;
    const outcome = this.#outcome(nowMs, caller, request);
    const { clusterId, term, roster } = this.#ledger;
    const position = roster === null ? null : positionOf(roster);
    const { self: voter, isLeaving } = this;
    const isReleased = request.kind === "release" && outcome.kind === "accepted";
    const ledger = before === this.#ledger ? null : this.#ledger;
    if (ledger !== null) checkSuccession(before, ledger);
    return { ledger, answer: { voter, clusterId, term, roster: position, isLeaving, outcome }, isReleased };
  }

  #outcome(nowMs: number, caller: string, request: VoterRequest): VoterOutcome {
    const stranger = this.#stranger(caller, request);
    if (stranger !== null) return refused(stranger);
    switch (request.kind) {
      case "acquire":
        return this.#acquire(nowMs, request);
      case "renew":
        return this.#renew(nowMs, request);
      case "release":
        return this.#release(nowMs, request);
      default:
        return assertNever(request, "Voter.decide");
    }
  }

  /** Why this request is not one for this voter. */
  #stranger(caller: string, request: VoterRequest): LeaseRefusal | null {
    // An identity is the certificate's, whatever the body says; only its own leases can be asked for, renewed and released.
    if (nodeIdOf(request.holder) !== caller) return "identity-mismatch";
    if (request.voter !== this.self) return "other-voter";
    const { clusterId } = this.#ledger;
    return clusterId !== null && clusterId !== request.clusterId ? "cluster-mismatch" : null;
  }

  #acquire(nowMs: number, request: AcquireRequest): VoterOutcome {
    const { holder, term, roster, ttlMs, clusterId } = request;
    if (roster === null) return refused("roster-missing");
    const reason = this.#rosterProblem(request, roster) ?? this.#grantProblem(nowMs, request, roster);
    if (reason !== null) return refused(reason);
    const grant = { term, leader: holder, released: false };
    const { shown } = this.#ledger;
    const isKnown = this.#holds(request) && comparePositions(roster, this.#ledger.roster ?? NOTHING) === 0;
    if (!isKnown) this.#ledger = { clusterId, term, grant, roster, shown };
    return this.#promise(nowMs, holder, term, ttlMs);
  }

  /** Why this voter does not grant. */
  #grantProblem(nowMs: number, request: AcquireRequest, roster: Roster): LeaseRefusal | null {
    const ledger = this.#ledger;
    // Terms never fall, whether or not the vote for one was ever heard of: the same term goes to the same holder only, until it releases.
    if (request.term <= ledger.term && !this.#holds(request)) return "term-stale";
    // Who has no roster knows nothing of the cluster yet (trap 73).
    if (ledger.roster !== null && !isCredible(request.term, ledger.term)) return "impossible";
    if (ledger.roster !== null && comparePositions(roster, ledger.roster) < 0) return "roster-stale";
    const inForce = this.#inForce(nowMs);
    return inForce !== null && inForce.holder !== request.holder ? "lease-active" : null;
  }

  #renew(nowMs: number, request: RenewRequest): VoterOutcome {
    const { roster, holder, term, ttlMs } = request;
    if (roster === null) return refused("roster-missing");
    const reason = this.#rosterProblem(request, roster);
    if (reason !== null) return refused(reason);
    if (!this.#holds(request)) return refused("not-holder");
    const ledger = this.#ledger;
    const isNews = comparePositions(roster, ledger.roster ?? NOTHING) > 0;
    const stored = isNews ? roster : ledger.roster!;
    const shown = shownAfter(ledger, stored, request);
    if (isNews || shown !== ledger.shown) this.#ledger = { ...ledger, roster: stored, shown };
    return this.#promise(nowMs, holder, term, ttlMs);
  }

  #release(nowMs: number, request: ReleaseRequest): VoterOutcome {
    const { grant } = this.#ledger;
    if (grant === null || grant.leader !== request.holder || grant.term !== request.term) return refused("not-holder");
    if (!grant.released) this.#ledger = { ...this.#ledger, grant: { ...grant, released: true } };
    this.#promised = null;
    this.#freeFromMs = nowMs;
    return { kind: "accepted", lastsMs: 0 };
  }

  #holds({ holder, term }: VoterRequest): boolean {
    const { grant } = this.#ledger;
    return grant !== null && grant.leader === holder && grant.term === term && !grant.released;
  }

  /** What is wrong with a request's roster, whoever leads. Notes its generation where it is one of this cluster's. */
  #rosterProblem({ holder, term, ttlMs }: AcquireRequest | RenewRequest, roster: Roster): LeaseRefusal | null {
    const generation = generationOf(roster.term);
    if (
      !Number.isSafeInteger(term) ||
      generationOf(term) !== generation ||
      roster.term > term ||
      !isVoter(roster, holder)
    )
      return "impossible";
    if (!(ttlMs > 0)) return "invalid-ttl";
    const own = this.#ledger.roster;
    const isSame = own !== null && generationOf(own.term) === generation;
    if (isSame && own.recoveredBy !== roster.recoveredBy) return "cluster-mismatch";
    this.noteTerm(roster.term);
    return generation < this.#generation ? "generation-over" : null;
  }

  #inForce(nowMs: number): Promised | null {
    return this.#promised !== null && nowMs < this.#promised.untilMs ? this.#promised : null;
  }

  /** A request may ask for less than the fixed time, never for more; and no request takes back what an earlier answer promised. */
  #promise(nowMs: number, holder: PeerKey, term: number, ttlMs: number): VoterOutcome {
    const askedMs = Math.min(ttlMs, LEASE_TTL_MS);
    const asked = nowMs + askedMs;
    const before = this.#promised !== null && this.#promised.holder === holder ? this.#promised.untilMs : asked;
    const untilMs = Math.max(asked, before);
    this.#promised = { holder, term, untilMs };
    // The sum less its part may be a hair less than what was asked for, and then proves nothing to the leader.
    return { kind: "accepted", lastsMs: untilMs === asked ? askedMs : Math.max(askedMs, untilMs - nowMs) };
  }
}

const NOTHING = { term: -1, version: 0 };

/** A mark shows exactly its position. What is stored under any other one is not shown: it may be undone. */
function shownAfter(ledger: Ledger, stored: Roster, { mark }: RenewRequest): Shown | null {
  if (mark === null || comparePositions(mark, stored) !== 0) return ledger.shown;
  if (ledger.shown !== null && comparePositions(mark, ledger.shown) <= 0) return ledger.shown;
  return { ...positionOf(stored), registry: stored.registry };
}

function refused(reason: LeaseRefusal): VoterOutcome {
  return { kind: "refused", reason };
}

function checkSuccession(before: Ledger, after: Ledger): void {
  assert(after.term >= before.term, "a ledger's term never falls");
  const known = before.roster ?? NOTHING;
  assert(after.roster !== null && comparePositions(after.roster, known) >= 0, "a stored roster never falls");
  const was = before.grant;
  const is = after.grant;
  const isOther = was !== null && is !== null && was.leader !== is.leader;
  assert(!isOther || is.term > was.term, "a term is granted to one holder");
}
