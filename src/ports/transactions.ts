// Transactions over islands: what a node's API serves, what the coordinators' leader calls, and what an island needs of the others.

import type { JobSpec } from "../core/jobs/model.ts";
import type {
  BackendHash,
  TcFence,
  TxnAnswer,
  TxnHeader,
  TxnOperation,
  TxnPhase,
  TxnReason,
  TxnRequest,
  TxnRequire,
  TxnResult,
} from "../core/txn/model.ts";

/** This island's own part. The leader of the island decides; every node shows the applied state. */
export interface TxnParticipant {
  readonly backendHash: BackendHash;
  /**
   * Resolves when what is answered is committed, and this node still led after the call arrived. Rejects with NOT_LEADER, OUTCOME_UNKNOWN, OVERLOADED,
   * ERR_NO_LEADER, NOT_SUPPORTED (a member could not read such records).
   */
  answer(request: TxnRequest): Promise<TxnAnswer>;
  /** Applied state of this node. */
  get(id: string): TxnView | null;
  /** By id: at most `limit` after `after`. In doubt: prepared and not decided, or decided here as home and not done everywhere. */
  list(request: { readonly inDoubt: boolean; readonly after: string | null; readonly limit: number }): TxnsPage;
  /**
   * Asks home now, and reports what is open. `force`: an operator's word for one that is prepared here and whose home is gone for good; it is written
   * as such. `committed` also ends the wait for such a home to record that it is done here, and at home the wait for participants. Of one that is unknown
   * here: null.
   */
  replay(id: string, force: "committed" | "rolled-back" | null): Promise<TxnPhase | null>;
  stats(): TxnStats;
}

export interface TxnView {
  readonly header: TxnHeader;
  readonly phase: TxnPhase;
  readonly atMs: number;
  /** Kinds and names of what it locks here, while it is prepared: "value orders/cursor". */
  readonly locks: readonly string[];
  readonly results: readonly TxnResult[];
  readonly reason: TxnReason | null;
  /** Jobs of it that are not yet in the jobs' log. */
  readonly undelivered: number;
  /** Prepared: home. Committed: at home participants that have not reported, elsewhere home, which has not answered the report. */
  readonly waitsFor: readonly BackendHash[];
  readonly isSettled: boolean;
  readonly isInDoubt: boolean;
}

export interface TxnsPage {
  readonly transactions: readonly TxnView[];
  readonly next: string | null;
}

export interface TxnStats {
  readonly prepared: number;
  /** Prepared for longer than their time, or committed as home and not done everywhere within it. */
  readonly inDoubt: number;
  /** How long the oldest of these has been so; 0: there is none. Of the leader's clock; elsewhere by wall time. */
  readonly oldestInDoubtMs: number;
  /** All that is remembered. */
  readonly kept: number;
  readonly undelivered: number;
  /** What this node has decided as its island's leader. */
  readonly decided: Readonly<Record<"committed" | "rolled-back", number>>;
  readonly staleTerms: number;
}

/** Calls of one island to another, by its backend hash: to the leader of that island, among its registered endpoints only. */
export interface IslandCalls {
  /** Null: no answer within the time, or none that counts. Never rejects. The request may arrive later, more than once, or never. */
  call(target: BackendHash, request: TxnRequest, withinMs: number): Promise<TxnAnswer | null>;
  /** As the registry that this node shows has them. */
  islands(): readonly BackendHash[];
  /**
   * Asks every registered node of that island. True: one answers, be it that nobody leads there. False: all of them are silent, or of another island, or
   * none is registered. Null: this node can't tell, because it has no registry yet.
   */
  isHeard(target: BackendHash, withinMs: number): Promise<boolean | null>;
}

/** A transaction as a client asks for it. */
export interface TxnBody {
  readonly id: string;
  /** Null: as `homeOf` (core/txn) chooses it. */
  readonly home: BackendHash | null;
  /** Null: the default. */
  readonly timeoutMs: number | null;
  readonly require: readonly (TxnRequire & { readonly backendHash: BackendHash })[];
  readonly participants: readonly { readonly backendHash: BackendHash; readonly operations: readonly TxnOperation[] }[];
  /** Of all operations, as `operationsBytes` (core/txn) has it; left out: they are not measured yet. */
  readonly bytes?: number | undefined;
}

export interface TxnOutcome {
  readonly id: string;
  readonly state: "committed" | "rolled-back";
  readonly term: number;
  readonly home: BackendHash;
  readonly reason: TxnReason | null;
  readonly participants: readonly {
    readonly backendHash: BackendHash;
    /** `pending`: decided, and not heard of there yet. */
    readonly state: "applied" | "pending" | "rolled-back";
    readonly results: readonly TxnResult[];
  }[];
}

/** The specification's decider: of operations that were staged at the islands before. `pending`: only asks. */
export interface TxnDecide {
  readonly id: string;
  readonly home: BackendHash;
  readonly state: "pending" | "commit" | "rollback";
  readonly participants: readonly BackendHash[];
  /** Wall time, in ms; null: the default timeout. */
  readonly expiresAtMs: number | null;
}

export interface TxnCaller {
  /** The name in the client's certificate, or on whose behalf a server forwards. */
  readonly by: string;
  /** A server forwards it: it is forwarded no further. */
  readonly isForwarded: boolean;
}

/** What decides: on every node; one that does not lead the coordinators forwards to the one that does, once. */
export interface TxnDecider {
  /**
   * Rejects with tc_unavailable, tc_not_leader (with `leaderEndpoint`), txn_conflict (definite), txn_expired (home has forgotten this id: nothing
   * comes of it from now on, and whether an earlier call was committed is not known any more), txn_fanout_failed (rolled back:
   * an island can't be reached), tc_rm_unavailable (an island is not registered; nothing was done), OUTCOME_UNKNOWN: repeat it with the same id.
   */
  run(body: TxnBody, caller: TxnCaller): Promise<TxnOutcome>;
  decide(
    request: TxnDecide,
    caller: TxnCaller,
  ): Promise<{ readonly id: string; readonly state: "pending" | "commit" | "rollback" }>;
  /** Stages at the island `target`. */
  stage(target: BackendHash, request: Extract<TxnRequest, { kind: "stage" }>): Promise<TxnAnswer>;
  stats(): DeciderStats;
}

export interface DeciderStats {
  /** Of transactions that this node has coordinated. */
  readonly outcomes: Readonly<Record<"committed" | "rolled-back" | "unknown" | "refused", number>>;
  readonly running: number;
  readonly forwarded: number;
}

/** Forwards to the coordinators' leader. Null: it can't be reached; a rejection is its refusal. */
export interface TxnForward {
  run(endpoint: string, body: TxnBody, by: string, withinMs: number): Promise<TxnOutcome | null>;
  decide(
    endpoint: string,
    request: TxnDecide,
    by: string,
    withinMs: number,
  ): Promise<{ readonly id: string; readonly state: "pending" | "commit" | "rollback" } | null>;
}

/** What the decider sees of this node's coordinator. */
export interface CoordinatorTerm {
  /** The term in which this node may act now, whose gate is open; null: it may not. Asked before each effect. */
  readonly fence: () => TcFence | null;
  readonly leaderEndpoint: () => string | null;
  /** Somebody leads, as far as this node knows. */
  readonly isLed: () => boolean;
}

/** Given to the jobs' log, once for ever, in the order of (place, operation): what is at or before the last one that was delivered is there. */
export interface JobsDelivery {
  /** Resolves when it is committed. Rejects with NOT_LEADER, OUTCOME_UNKNOWN, or a retryable refusal: it is tried again. */
  deliver(jobs: readonly DeliveredJob[]): Promise<void>;
}

export interface DeliveredJob {
  readonly id: string;
  readonly spec: JobSpec;
  readonly by: string;
  /** As the event names it: "txn:<id>:<operation>". */
  readonly mark: string;
  /** Of the record that committed the transaction. */
  readonly place: number;
  readonly operation: number;
}
