// What coordinators keep and say to each other. Types alone.
//
// A voter is `identity@incarnation`: a certificate's node id and one disk. A wiped disk is another voter (a PeerKey, core/kit/ids.ts).

import type { PeerKey } from "../kit/ids.ts";

/** Rosters are ordered by term, then version. */
export interface Position {
  readonly term: number;
  readonly version: number;
}

export interface RosterVoter {
  readonly peer: PeerKey;
  readonly endpoint: string;
}

/** An island that takes part in transactions. An endpoint answers for one backend. */
export interface RegistryEntry {
  readonly backendHash: string;
  readonly endpoint: string;
}

export type RegistryEntries = readonly RegistryEntry[];

/** Who votes, and which islands there are. Each is made by one leader, and never changed: the next one has another position. */
export interface Roster extends Position {
  /** Who entered this generation by `recover`; null in generation 0. */
  readonly recoveredBy: PeerKey | null;
  /** Sorted by peer. */
  readonly voters: readonly RosterVoter[];
  readonly registry: RegistryEntries;
}

/** A voter's durable word: nobody else gets this term from it, ever. */
export interface Grant {
  readonly term: number;
  readonly leader: PeerKey;
  readonly released: boolean;
}

/** The registry that a node shows. What is stored and not shown may be undone. */
export interface Shown extends Position {
  readonly registry: RegistryEntries;
}

/** All that a coordinator must not forget. Replaced as a whole, and synced before any answer that follows from it leaves. */
export interface Ledger {
  /** Null: it was never in a cluster of coordinators. */
  readonly clusterId: string | null;
  /** Never falls. */
  readonly term: number;
  readonly grant: Grant | null;
  readonly roster: Roster | null;
  readonly shown: Shown | null;
}

interface OfHolder {
  readonly clusterId: string;
  /** Who asks: the candidate, or the leader. */
  readonly holder: PeerKey;
  /** Who is asked: an address may have another disk by now. */
  readonly voter: PeerKey;
  readonly term: number;
}

export interface AcquireRequest extends OfHolder {
  readonly kind: "acquire";
  readonly ttlMs: number;
  /** Null: the body had none. Such a request is refused. */
  readonly roster: Roster | null;
}

export interface RenewRequest extends OfHolder {
  readonly kind: "renew";
  readonly ttlMs: number;
  readonly roster: Roster | null;
  /** Whoever has stored exactly this roster shows its registry. */
  readonly mark: Position | null;
}

export interface ReleaseRequest extends OfHolder {
  readonly kind: "release";
}

export type VoterRequest = AcquireRequest | RenewRequest | ReleaseRequest;

export type LeaseRefusal =
  /** The body names another identity than the caller's certificate. */
  | "identity-mismatch"
  | "cluster-mismatch"
  /** Another voter was asked: what is sent to a roster's voters is for these alone. */
  | "other-voter"
  | "roster-missing"
  /** A higher generation is known here. */
  | "generation-over"
  /** The term and the roster are of different generations, or the holder is no voter of its own roster. */
  | "impossible"
  | "invalid-ttl"
  | "term-stale"
  | "roster-stale"
  /** Another leader's lease is in force, or may be after a restart. */
  | "lease-active"
  /** The grant of this ledger is not the caller's. */
  | "not-holder";

export type VoterOutcome =
  /** `lastsMs`: for how long from now this voter excludes others. */
  { readonly kind: "accepted"; readonly lastsMs: number } | { readonly kind: "refused"; readonly reason: LeaseRefusal };

export interface VoterAnswer {
  /** Who answers: it counts for exactly this voter. */
  readonly voter: PeerKey;
  readonly clusterId: string | null;
  /** As the ledger has both, after this request. */
  readonly term: number;
  readonly roster: Position | null;
  /** The voter wants to be removed. Only it can say so. */
  readonly isLeaving: boolean;
  readonly outcome: VoterOutcome;
}

/** What a coordinator says of itself: the body of GET /v1/tc/leader. */
export interface CoordinatorStatus {
  readonly self: PeerKey;
  readonly clusterId: string | null;
  readonly term: number;
  readonly roster: Position | null;
  readonly isLeaving: boolean;
  /** Whose lease is in force at this voter, or may be after a restart. */
  readonly leader: KnownLeader | null;
  /** Of the island of this node, as its API says it; absent: it does not say. */
  readonly backendHash?: string | undefined;
}

export interface KnownLeader {
  readonly peer: PeerKey;
  readonly endpoint: string | null;
  readonly term: number;
}

/** A request of a candidate or leader, and to whom. */
export interface Outgoing {
  readonly to: RosterVoter;
  readonly request: AcquireRequest | RenewRequest;
}
