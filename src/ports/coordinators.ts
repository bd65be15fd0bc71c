// What a transaction coordinator needs of the world: the other coordinators, and a file for its ledger.

import type {
  CoordinatorStatus,
  Ledger,
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
  | { readonly kind: "done"; readonly registry: RegistryEntries }
  /** A listed member has not stored it: nothing has changed. */
  | { readonly kind: "not-replicated" }
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
