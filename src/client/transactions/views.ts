// A transaction over islands, as the SDK takes and shows it. An island is a cluster of Tenure's servers; its backend hash names it everywhere.

import type { ErrorCode } from "../../contract/errors.ts";
import type { Json } from "../../core/kit/json.ts";
import type { JobRequest } from "../job-views.ts";

/** Of one island; at most one of each value and of each scope. In order: so are the results. */
export type TransactionOperation =
  | { readonly op: "value.put"; readonly name: string; readonly value: Json; readonly ifVersion?: number | undefined }
  | { readonly op: "value.delete"; readonly name: string; readonly ifVersion?: number | undefined }
  | { readonly op: "value.check"; readonly name: string; readonly ifVersion: number }
  | { readonly op: "scope.release"; readonly scope: string; readonly epoch: number }
  | {
      readonly op: "scope.acquire";
      readonly scope: string;
      readonly session: string;
      readonly identity: string;
      readonly metadata?: Readonly<Record<string, string>> | undefined;
      readonly ttlMs: number;
    }
  | { readonly op: "job.submit"; readonly job: JobRequest };

/** The same id with the same content is done once, whoever sends it however often. */
export interface TransactionRequest {
  /** A UUID of version 7: it says when it was made. */
  readonly id: string;
  /** The island whose record decides. Left out: that of the first `require`, else one that releases a scope, else any: the one with the smallest hash. */
  readonly home?: string | undefined;
  /** How long islands may keep their locks before they ask home; 5 seconds. */
  readonly timeoutMs?: number | undefined;
  /** Epochs that must be held, at home, when it decides. */
  readonly require?: readonly { readonly backendHash: string; readonly scope: string; readonly epoch: number }[];
  readonly participants: readonly {
    readonly backendHash: string;
    readonly operations: readonly TransactionOperation[];
  }[];
}

/** Of one operation; what it does not have is left out. */
export interface TransactionResult {
  /** Of what was put, or deleted; none where there was nothing to delete. */
  readonly version?: number | undefined;
  readonly epoch?: number | undefined;
  readonly jobId?: string | undefined;
}

export interface TransactionReason {
  readonly code: ErrorCode;
  readonly message: string;
  /** The island that refused; null: home, or none. */
  readonly backendHash: string | null;
}

export interface CommittedTransaction {
  readonly state: "committed";
  readonly id: string;
  /** Of the coordinators' leader. */
  readonly term: number;
  readonly home: string;
  readonly participants: readonly {
    readonly backendHash: string;
    /** `pending`: decided, so it will be applied there, but that island has not said so yet; then there are no results. */
    readonly state: "applied" | "pending";
    readonly results: readonly TransactionResult[];
  }[];
}

/** Nothing of it was done anywhere, nor will it be. */
export interface RolledBackTransaction {
  readonly state: "rolled-back";
  readonly id: string;
  readonly reason: TransactionReason;
}

/** It may have been committed, or may be yet. `client.transactions.run(request)` finds out, but for `txn_expired`: the same id is never done twice. */
export interface UnknownTransaction {
  readonly state: "unknown";
  readonly id: string;
  readonly request: TransactionRequest;
  /** `txn_expired`: the id is too old, or forgotten: sending it again finds nothing out. Look at what it was to change. */
  readonly code: "OUTCOME_UNKNOWN" | "txn_expired";
  /** For people. */
  readonly why: string;
}

export type TransactionOutcome = CommittedTransaction | RolledBackTransaction | UnknownTransaction;

/** As one island knows it. */
export interface TransactionView {
  readonly id: string;
  readonly state: "staged" | "prepared" | "committed" | "rolled-back";
  readonly home: string;
  readonly participants: readonly string[];
  /** Whose transaction it is. */
  readonly by: string;
  readonly timeoutMs: number;
  /** When it took this state, by the wall clock of the island's leader. */
  readonly atMs: number;
  /** What it locks there: "value orders/cursor". */
  readonly locks: readonly string[];
  readonly results: readonly TransactionResult[];
  readonly reason: TransactionReason | null;
  /** Jobs of it that are not in the island's jobs yet. */
  readonly undelivered: number;
  /** Prepared: home. Committed: at home the islands that have not reported that it is done, elsewhere home, which has not answered the report. */
  readonly waitsFor: readonly string[];
  readonly isSettled: boolean;
  readonly isInDoubt: boolean;
}
