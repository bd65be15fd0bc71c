// A leader of one term: what it sends in each round, what the answers prove, and how rosters follow one another.
//
//   opening ── a majority has stored the roster under this term ──▶ open ── expired, higher term, released ──▶ over
//
// Why at most one leader acts (the design's 2.6, explored exhaustively within small bounds):
//
// - A grant is durable before it is answered, and a voter grants a term to one holder. So a majority of one roster elects one leader of a term.
// - Rosters differ by one voter at most from the one before, so majorities of the same roster, and of two neighbours, have a voter in common.
// - Before a roster that is two steps ahead exists, a majority of the voters between has stored the one between. Every majority of the oldest
//   contains one of these voters, and that voter refuses candidates with an older roster. So nobody wins with a roster that is not the
//   leader's, or its neighbour. The same holds over terms: a winner first stores its own roster under its own term.
// - So a new leader's quorum contains a voter that has answered the old leader's last majority. That voter refuses for LEASE_TTL_MS from its
//   receipt, over a restart too; the old leader counts LEASE_TRUST_MS from its sending, which is earlier. With clocks that differ by no more than
//   20 % each from true time, the old leader's time is over when the voter's is, or earlier.
// - A leader whose roster is followed by another one, of which it does not know, is a leader whose voters have granted a higher term:
//   its renewals no longer have a majority, and its time ends as above.
//
// Until a majority of the new voters has stored a roster, renewals count with majorities of both. That is for liveness: the old
// majority still answers while the new one is being built.

import { assert } from "../kit/assert.ts";
import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import { deadlineOf, type Instant, latest, remainingMs } from "../trust/window.ts";
import { dueVoters } from "./changes.ts";
import { LEASE_TRUST_MS, LEASE_TTL_MS, ROUND_ANSWERED_MS } from "./limits.ts";
import type { Outgoing, Position, RegistryEntries, Roster, RosterVoter, VoterAnswer } from "./model.ts";
import { earlier, hasMajority, isFrom, isProof, provedBy, type Proofs } from "./quorum.ts";
import {
  comparePositions,
  generationOf,
  isCredible,
  isVoter,
  positionOf,
  restamped,
  withEndpoint,
  withRegistry,
  withVoters,
} from "./roster.ts";

export type OverBecause = "expired" | "higher-term" | "released";

/** A change of the registry on its way. `storing` and `undoing` end, or the leader does. */
export interface RegistryChange {
  readonly before: RegistryEntries;
  /** Who must have stored it, besides a majority of the voters: all that were listed. */
  readonly listed: readonly PeerKey[];
  position: Position;
  state: "storing" | "shown" | "undoing" | "undone";
}

interface LeaderOptions {
  readonly self: PeerKey;
  readonly clusterId: string;
  readonly term: number;
  /** With which it won. */
  readonly roster: Roster;
  readonly proofs: Proofs;
  readonly granted: ReadonlySet<PeerKey>;
}

export class QuorumLeader {
  readonly self: PeerKey;
  readonly term: number;
  readonly #clusterId: string;
  /** When the request left that each voter answered last. */
  readonly #proofs: Map<PeerKey, Instant>;
  /** Who has granted this term: only these can renew and store. */
  readonly #granted: Set<PeerKey>;
  readonly #renewed = new Set<PeerKey>();
  readonly #stored = new Map<PeerKey, Position>();
  readonly #leaving = new Set<PeerKey>();
  readonly #replaced = new Set<PeerKey>();
  readonly #forgetful = new Set<PeerKey>();
  /** In the last round. Of others nothing is kept, and late answers count for nothing. */
  #asked: ReadonlySet<PeerKey> = new Set();
  #roster: Roster;
  /** The last one that a majority of its voters has stored; null while this leader opens. */
  #committed: Roster | null = null;
  /** What everybody who has stored it may show. */
  #mark: Position | null = null;
  #registry: RegistryChange | null = null;
  #over: OverBecause | null = null;
  /** Since when it asks all voters, by the monotonic clock. */
  #openedMs: number | null = null;
  #news = 0;

  constructor({ self, clusterId, term, roster, proofs, granted }: LeaderOptions) {
    this.self = self;
    this.term = term;
    this.#clusterId = clusterId;
    this.#roster = restamped(roster, term);
    this.#proofs = new Map(proofs);
    this.#granted = new Set(granted);
  }

  get over(): OverBecause | null {
    return this.#over;
  }

  get isOpened(): boolean {
    return this.#committed !== null;
  }

  get roster(): Roster {
    return this.#roster;
  }

  get committed(): Roster | null {
    return this.#committed;
  }

  /** Grows whenever there is something to send before the next renewal is due. */
  get news(): number {
    return this.#news;
  }

  /** From when trust counts; null: there is no quorum. Its own voter is always part of it, so that a leader whose disk hangs is none (trap 30). */
  get provedAt(): Instant | null {
    const own = this.#proofs.get(this.self) ?? null;
    const proved = earlier(own, provedBy(this.#roster.voters, this.#proofs));
    const isChanging = this.#committed !== null && this.#committed !== this.#roster;
    return isChanging ? earlier(proved, provedBy(this.#committed!.voters, this.#proofs)) : proved;
  }

  /** The gate. To be asked before each effect; a later answer may open it again, in the same term. */
  isOpen(now: Instant): boolean {
    return this.#over === null && this.isOpened && this.#leftMs(now, LEASE_TRUST_MS) > 0;
  }

  /** Another incarnation answered for it last: its disk is gone. */
  isReplaced(peer: PeerKey): boolean {
    return this.#replaced.has(peer);
  }

  /** It wants to be removed. */
  isLeaving(peer: PeerKey): boolean {
    return this.#leaving.has(peer);
  }

  /** When the request left that it answered last with all of the lease; null: it has answered none. */
  answeredAt(peer: PeerKey): Instant | null {
    return this.#proofs.get(peer) ?? null;
  }

  /** Voters that have forgotten what they granted to this leader: their disks are older copies. */
  get forgetful(): ReadonlySet<PeerKey> {
    return this.#forgetful;
  }

  /** Nobody has proved anything for the whole lease: another leader must be expected. */
  passTime(now: Instant): void {
    if (this.#leftMs(now, LEASE_TTL_MS) === 0) this.#over ??= "expired";
  }

  /** The gate closes now, and for good. */
  release(): void {
    this.#over ??= "released";
  }

  /** A higher generation exists: whatever this leader's voters say, it is of a cluster that was given up. */
  yieldTo(generation: number): void {
    if (generation > generationOf(this.term)) this.#over ??= "higher-term";
  }

  /** What leaves now: to the voters, and, when these have stored the roster, to everybody else who is listed. */
  round(others: readonly RosterVoter[]): Outgoing[] {
    const to = new Map<PeerKey, RosterVoter>();
    const all = [...this.#roster.voters, ...(this.#committed === null ? [] : [...this.#committed.voters, ...others])];
    for (const voter of all) if (!to.has(voter.peer)) to.set(voter.peer, voter);
    this.#keepOnly(new Set(to.keys()));
    return [...to.values()].map((voter) => this.#requestTo(voter));
  }

  took(sent: Outgoing, sentAt: Instant, answer: VoterAnswer): void {
    if (this.#over !== null) return;
    const { peer } = sent.to;
    if (!this.#asked.has(peer)) return;
    if (answer.voter !== peer && nodeIdOf(answer.voter) === nodeIdOf(peer)) this.#replaced.add(peer);
    if (!isFrom(sent, answer)) return;
    // The last answer says which disk there is: an earlier one can come back.
    this.#replaced.delete(peer);
    // Also where a voter has given this very term to another candidate, who lost: it can't follow before the next one.
    const isHigher = answer.term > this.term && isCredible(answer.term, this.term);
    const isBeyond = isHigher || (answer.term === this.term && isStale(answer));
    if (isBeyond) return void (this.#over = "higher-term");
    // Only a voter that has granted this term is sent a renewal, and no ledger's term ever falls: an older copy of its disk answers.
    if (sent.request.kind === "renew" && answer.term < this.term) this.#forget(peer);
    if (answer.isLeaving) this.#leaving.add(peer);
    else this.#leaving.delete(peer);
    if (answer.outcome.kind === "refused") {
      if (answer.outcome.reason === "not-holder") this.#granted.delete(peer);
      if (answer.outcome.reason === "generation-over") this.#over = "higher-term";
      return;
    }
    if (!this.#granted.has(peer)) this.#news++;
    this.#granted.add(peer);
    if (sent.request.kind === "renew") this.#renewed.add(peer);
    const before = this.#proofs.get(peer);
    if (isProof(answer)) this.#proofs.set(peer, before === undefined ? sentAt : latest(before, sentAt));
    const known = this.#stored.get(peer);
    if (answer.roster !== null && (known === undefined || comparePositions(answer.roster, known) > 0))
      this.#stored.set(peer, answer.roster);
    this.#settle();
  }

  /** The next change of voters, where one is due and allowed. True: there is a new roster to send. */
  changeVoters(now: Instant, listed: readonly RosterVoter[], listedIds: ReadonlySet<string>): boolean {
    if (!this.#mayChange(now)) return false;
    const openedMs = (this.#openedMs ??= now.monotonicMs);
    const isYoung = now.monotonicMs - openedMs <= ROUND_ANSWERED_MS;
    const { voters } = this.#roster;
    const next = dueVoters({
      self: this.self,
      voters,
      listed: listedIds,
      joiners: listed.filter(({ peer }) => this.#renewed.has(peer) && this.#hasAnswered(peer, now)),
      isLeaving: (peer) => this.#leaving.has(peer),
      isReplaced: (peer) => this.#replaced.has(peer),
      hasAnswered: (peer) => this.#hasAnswered(peer, now),
      isSilent: (peer) => !isYoung && !this.#hasAnswered(peer, now),
    });
    if (next === null) return false;
    this.#advance(withVoters(this.#roster, next));
    return true;
  }

  /** Where a voter is by now, as far as it has answered there; undefined: not known. True: there is a new roster to send. */
  moveVoters(now: Instant, endpointOf: (peer: PeerKey) => string | undefined): boolean {
    if (!this.#mayChange(now)) return false;
    const moved = this.#roster.voters.find(({ peer, endpoint }) => (endpointOf(peer) ?? endpoint) !== endpoint);
    if (moved === undefined) return false;
    this.#advance(withEndpoint(this.#roster, moved.peer, endpointOf(moved.peer)!));
    return true;
  }

  /** Null: not now, another change is on its way, or the gate is closed. */
  changeRegistry(now: Instant, registry: RegistryEntries, listed: readonly PeerKey[]): RegistryChange | null {
    if (!this.#mayChange(now)) return null;
    const before = this.#roster.registry;
    this.#advance(withRegistry(this.#roster, registry));
    return (this.#registry = { before, listed, position: positionOf(this.#roster), state: "storing" });
  }

  /** Listed members that have not stored it yet. */
  unstoredOf({ listed, position }: RegistryChange): readonly PeerKey[] {
    return listed.filter((peer) => !this.#hasStored(peer, position));
  }

  /** Somebody has not stored it: what was before comes back as the next version. Nobody has shown anything else meanwhile. */
  undoRegistry(change: RegistryChange): void {
    if (this.#registry !== change || change.state !== "storing") return;
    this.#advance(withRegistry(this.#roster, change.before));
    change.position = positionOf(this.#roster);
    change.state = "undoing";
  }

  #mayChange(now: Instant): boolean {
    return this.isOpen(now) && this.#committed === this.#roster && this.#registry === null;
  }

  #advance(roster: Roster): void {
    assert(isVoter(roster, this.self), "a leader is a voter");
    this.#roster = roster;
    this.#news++;
  }

  /** What it has promised and stored counts no more: others may get it from that voter. */
  #forget(peer: PeerKey): void {
    this.#forgetful.add(peer);
    this.#granted.delete(peer);
    this.#proofs.delete(peer);
    this.#stored.delete(peer);
  }

  #settle(): void {
    const roster = this.#roster;
    const position = positionOf(roster);
    if (this.#committed !== roster && hasMajority(roster.voters, (peer) => this.#hasStored(peer, position))) {
      this.#committed = roster;
      this.#news++;
      if (this.#registry === null) this.#mark = position;
    }
    const change = this.#registry;
    if (change === null || this.#committed !== roster) return;
    const isStored = change.state === "undoing" || this.unstoredOf(change).length === 0;
    if (!isStored) return;
    change.state = change.state === "undoing" ? "undone" : "shown";
    this.#registry = null;
    this.#mark = position;
    this.#news++;
  }

  #keepOnly(asked: ReadonlySet<PeerKey>): void {
    this.#asked = asked;
    const byPeer = [this.#proofs, this.#granted, this.#renewed, this.#leaving, this.#replaced, this.#forgetful];
    for (const known of byPeer) for (const peer of known.keys()) if (!asked.has(peer)) known.delete(peer);
    const listed = this.#registry?.listed ?? [];
    for (const peer of this.#stored.keys()) if (!asked.has(peer) && !listed.includes(peer)) this.#stored.delete(peer);
  }

  #requestTo(to: RosterVoter): Outgoing {
    const roster = this.#rosterFor(to);
    const { self: holder, term } = this;
    const common = { clusterId: this.#clusterId, holder, voter: to.peer, term, ttlMs: LEASE_TTL_MS, roster };
    // Who has not granted this term stores nothing of it: the grant comes first.
    if (!this.#granted.has(to.peer)) return { to, request: { ...common, kind: "acquire" } };
    return { to, request: { ...common, kind: "renew", mark: this.#mark } };
  }

  /** Until a majority of its voters has stored a roster, nobody else hears of it: whoever has it refuses older ones, and can't elect with it. */
  #rosterFor({ peer }: RosterVoter): Roster {
    if (this.#committed === null || isVoter(this.#roster, peer)) return this.#roster;
    return this.#committed;
  }

  #hasStored(peer: PeerKey, position: Position): boolean {
    const stored = this.#stored.get(peer);
    return stored !== undefined && comparePositions(stored, position) >= 0;
  }

  #hasAnswered(peer: PeerKey, now: Instant): boolean {
    const proof = this.#proofs.get(peer);
    return proof !== undefined && now.monotonicMs - proof.monotonicMs <= ROUND_ANSWERED_MS;
  }

  #leftMs(now: Instant, lastsMs: number): number {
    const { provedAt } = this;
    return provedAt === null ? 0 : remainingMs(deadlineOf(provedAt, lastsMs), now.monotonicMs, now.wallMs);
  }
}

function isStale({ outcome }: VoterAnswer): boolean {
  return outcome.kind === "refused" && outcome.reason === "term-stale";
}
