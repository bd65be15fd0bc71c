// What a transaction coordinator needs of the world: the other coordinators, and a file for its ledger.

import type { PeerKey } from "../core/kit/ids.ts";
import type {
  CoordinatorStatus,
  Ledger,
  Position,
  RegistryEntries,
  RegistryEntry,
  VoterAnswer,
  VoterRequest,
} from "../core/lease/model.ts";

/** What coordinators ask each other. Each is a route of /v1/tc. */
export type CoordinatorRequest =
  | VoterRequest
  | { readonly kind: "status" }
  | { readonly kind: "announce"; readonly endpoint: string }
  /** Removes the caller's membership lease, and nothing else. */
  | { readonly kind: "leave" }
  /** Forwarded once at most. */
  | {
      readonly kind: "registry";
      readonly change: "register" | "unregister";
      readonly entry: RegistryEntry;
      readonly isForwarded: boolean;
    };

export interface MemberEndpoints {
  readonly endpoints: readonly string[];
}

export type RegistryAnswer =
  /** Over the network only the entries of the backend that was asked about come back. */
  | { readonly kind: "done"; readonly registry: RegistryEntries }
  /** It has as many entries as it takes: nothing has changed. */
  | { readonly kind: "full" }
  /** The server at this endpoint, a listed member, says that it is of another island: nothing has changed. */
  | { readonly kind: "other-backend" }
  /** A listed member did not answer, or has not stored it: nothing has changed. `missing`: endpoints of such members. */
  | { readonly kind: "not-replicated"; readonly missing: readonly string[] }
  | { readonly kind: "not-leader"; readonly leaderEndpoint: string | null }
  /** The quorum was lost meanwhile: what became of the change is not known. */
  | { readonly kind: "unknown" };

interface Answers {
  readonly acquire: VoterAnswer;
  readonly renew: VoterAnswer;
  readonly release: VoterAnswer;
  readonly status: CoordinatorStatus;
  readonly announce: MemberEndpoints;
  readonly leave: MemberEndpoints;
  readonly registry: RegistryAnswer;
}

export type AnswerTo<R extends CoordinatorRequest> = Answers[R["kind"]];

export interface Answered<R extends CoordinatorRequest> {
  /** The node id of the certificate that answered. */
  readonly from: string;
  readonly answer: AnswerTo<R>;
}

export interface CoordinatorCalls {
  /** Null: no answer within the time. Never rejects. The request may arrive later, more than once, or never. */
  call<R extends CoordinatorRequest>(endpoint: string, request: R, withinMs: number): Promise<Answered<R> | null>;
}

export interface LedgerFile {
  /** The ledger survives any crash once this resolves. A rejection ends the process. */
  write(ledger: Ledger): Promise<void>;
}

export interface MembershipFile {
  /** Not durable: after a crash the file may be an older one, or none. One write at a time; a rejection is of no consequence. */
  write(leases: readonly MembershipLeaseView[]): Promise<void>;
}

/** One membership lease each, by identity. Wall time; for discovery only. */
export interface MembershipLeaseView {
  readonly identity: string;
  readonly endpoint: string;
  readonly updatedAtMs: number;
  readonly expiresAtMs: number;
}

/** How a voter answered the last round of renewals. Only the leader knows; elsewhere it is `unknown`. */
export type VoterState = "leads" | "answers" | "silent" | "leaving" | "unknown";

export interface VoterView {
  readonly peer: PeerKey;
  readonly endpoint: string;
  readonly state: VoterState;
}

/** What a node knows of the members and voters: the body of GET /v1/tc/cluster/list. */
export interface MembersView {
  /** Sorted, normalised, each once. */
  readonly endpoints: readonly string[];
  readonly leases: readonly MembershipLeaseView[];
  readonly updatedAtMs: number;
  readonly voters: readonly VoterView[];
  /** How many of the voters a leader needs; 0 where there is no roster. */
  readonly quorum: number;
  readonly roster: Position | null;
}

/** The registry as this node shows it: the body of GET /v1/tc/rm/list. */
export interface RegistryView {
  readonly entries: RegistryEntries;
  /** Wall time at which this node began to show it; 0: it shows none. */
  readonly updatedAtMs: number;
}

/** The body of GET /v1/tc/leader, as this node answers it. */
export interface CoordinatorView extends CoordinatorStatus {
  /** Of this node's island: SHA-256 of "tenure-backend\n" and the cluster id, in lower-case hex. */
  readonly backendHash: string;
  /** Wall time at which the lease of `leader` ends at this node's voter; null where nobody leads. */
  readonly leaderExpiresAtMs: number | null;
  /** The term in which this very node may act now; null: it may not. */
  readonly actsInTerm: number | null;
  /** Why this node is in no cluster of coordinators yet: seeds that have not answered. Empty: it is, or it waits to be admitted. */
  readonly waitsFor: readonly string[];
  /** It left, and announces itself no more. */
  readonly hasLeft: boolean;
}

/** `refused`: it is a member as before, and `message` says who stood in the way. */
export type LeaveResult =
  | { readonly kind: "left" }
  | { readonly kind: "sole-voter" }
  | { readonly kind: "refused"; readonly message: string };

/** A node's own coordinator, as its API serves it. */
export interface Coordinators {
  readonly self: PeerKey;
  readonly endpoint: string;
  view(): CoordinatorView;
  members(): MembersView;
  registry(): RegistryView;
  /** `caller`: the node id of the certificate that the request came with. */
  answer<R extends CoordinatorRequest>(caller: string, request: R): Promise<AnswerTo<R>>;
  /** This node's own: transactional. At shutdown `bestEffort` ends within its time, whatever answers. */
  leave(bestEffort?: { readonly withinMs: number }): Promise<LeaveResult>;
  /** After a leave: announces itself again. */
  rejoin(): Promise<void>;
}
