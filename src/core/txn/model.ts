// A transaction over islands, as one island knows it (decision 69).
//
//   staged ──▶ prepared ──▶ committed ──▶ settled        an island that is not home: holds its locks from prepared until decided
//      │           └──────▶ rolled back
//      └──▶ dropped                                      when it expires; nobody has been promised anything
//
//   (unknown) ──▶ committed | rolled back ──▶ settled    home: one record is the decision, with home's own effects

import type { ErrorCode } from "../kit/errors.ts";
import type { JobSpec } from "../jobs/model.ts";
import type { Metadata } from "../scopes/index.ts";

/** An island: SHA-256 of "tenure-backend\n" and its cluster id, in lower-case hex. */
export type BackendHash = string;

/** At most one operation of each value and of each scope in one transaction at one island. */
export type TxnOperation =
  | { readonly kind: "value-put"; readonly name: string; readonly data: Uint8Array; readonly ifVersion: number | null }
  | { readonly kind: "value-delete"; readonly name: string; readonly ifVersion: number | null }
  /** Only where it has this version; 0: only where there is none. */
  | { readonly kind: "value-check"; readonly name: string; readonly ifVersion: number }
  /** Only while this epoch is held; until the decision it is granted to nobody. */
  | { readonly kind: "scope-release"; readonly scope: string; readonly epoch: number }
  /** Only while nobody holds it. Its lease starts at the commit. */
  | {
      readonly kind: "scope-acquire";
      readonly scope: string;
      readonly session: string;
      readonly identity: string;
      readonly metadata: Metadata;
      readonly ttlMs: number;
    }
  | { readonly kind: "job-submit"; readonly spec: JobSpec };

/** What every record and every message about a transaction repeats. One that has another of these under the same id is refused: `txn_conflict`. */
export interface TxnHeader {
  /** A UUIDv7: it carries the time at which it was made. */
  readonly id: string;
  /** Whose record is the decision. */
  readonly home: BackendHash;
  /** Islands with operations, in order, each once; home may be among them. */
  readonly participants: readonly BackendHash[];
  /** SHA-256 of all that the transaction is to do, in hex. */
  readonly digest: string;
  /** How long after it was prepared an island waits before it asks home. */
  readonly timeoutMs: number;
  /** The client's name, for the jobs that it submits. Not compared. */
  readonly by: string;
}

/** In which term of which coordinators a call is made. `recoveredBy`: of the roster; two recoveries may win the same terms of one generation. */
export interface TcFence {
  readonly clusterId: string;
  readonly term: number;
  readonly recoveredBy: string | null;
}

/** Checked in the record of the decision, at home: this epoch of this scope is held there. */
export interface TxnRequire {
  readonly scope: string;
  readonly epoch: number;
}

export type TxnPhase = "staged" | "prepared" | "committed" | "rolled-back";

/** Of one operation, in order. `version`: of what was put or deleted; null where there was nothing to delete. */
export interface TxnResult {
  readonly version: number | null;
  readonly epoch: number | null;
  readonly jobId: string | null;
}

/** Why it was rolled back, and which island said so; null: home itself. */
export interface TxnReason {
  readonly code: ErrorCode;
  readonly message: string;
  readonly backendHash: BackendHash | null;
}

/** A job of a committed transaction that is to be given to the jobs' log, in the order of (place, operation). */
export interface TxnOutboxEntry {
  readonly operation: number;
  readonly jobId: string;
  readonly spec: JobSpec;
}

/** Room that a prepared transaction keeps, so that its commit can't fail. */
export interface TxnReserved {
  readonly values: number;
  readonly bytes: number;
  readonly scopes: number;
}

export interface TxnState {
  readonly header: TxnHeader;
  readonly phase: TxnPhase;
  /** While staged or prepared; none afterwards. */
  readonly operations: readonly TxnOperation[];
  readonly reserved: TxnReserved;
  /** Of the record that made the phase. */
  readonly place: number;
  /** Wall time of the leader that wrote it; of one that is staged: when it expires. */
  readonly atMs: number;
  readonly results: readonly TxnResult[];
  /** Jobs that are not yet in the jobs' log. */
  readonly outbox: readonly TxnOutboxEntry[];
  readonly reason: TxnReason | null;
  /** At home: participants that have reported that it is done there. */
  readonly settledBy: readonly BackendHash[];
  /** Nobody needs it any more: at home all participants have reported; elsewhere home knows. It may be forgotten. */
  readonly isSettled: boolean;
}

// ---- calls between islands: each is a route of /v1/txn ------------------------------------------------

export type TxnRequest =
  | {
      readonly kind: "stage";
      readonly id: string;
      readonly home: BackendHash;
      readonly by: string;
      readonly operations: readonly TxnOperation[];
      readonly expiresInMs: number;
    }
  /** Never to home. `operations` null: the staged ones. */
  | {
      readonly kind: "prepare";
      readonly header: TxnHeader;
      readonly operations: readonly TxnOperation[] | null;
      readonly fence: TcFence;
    }
  /** To home: decides; `require` is checked in that record. To another island: home has decided. `operations`: to home alone; null: the staged ones. */
  | {
      readonly kind: "commit";
      readonly header: TxnHeader;
      readonly operations: readonly TxnOperation[] | null;
      readonly require: readonly TxnRequire[];
      readonly fence: TcFence;
    }
  /** To home: decides. To another island: only a hint to ask home. */
  | { readonly kind: "rollback"; readonly header: TxnHeader; readonly reason: TxnReason; readonly fence: TcFence }
  /** To home, by an island that has prepared it: what is unknown there is rolled back from then on. */
  | { readonly kind: "inquire"; readonly header: TxnHeader }
  /** To home: `from` has done what was decided, and its outcome is durable there. */
  | { readonly kind: "settled"; readonly from: BackendHash; readonly ids: readonly string[] }
  /** A new leader: raises the fence, and hears what is open. `after`: the last id of the page before. */
  | { readonly kind: "recover"; readonly fence: TcFence; readonly after: string | null };

/** Prepared here, or committed here as home and not done everywhere. */
export interface TxnOpen {
  readonly header: TxnHeader;
  readonly phase: "prepared" | "committed";
  /** At home: participants that have not reported. */
  readonly waitsFor: readonly BackendHash[];
}

export type TxnAnswer =
  /** As it is after the call, committed in this island's log. To a hint (`rollback` at another island): as it is now. Null: unknown here. */
  | {
      readonly kind: "txn";
      readonly phase: TxnPhase | null;
      readonly results: readonly TxnResult[];
      readonly reason: TxnReason | null;
    }
  /** `ids`: home keeps nothing for these on this island's account any more. */
  | { readonly kind: "settled"; readonly ids: readonly string[] }
  /** `refusesNew`: why this island promises and decides nothing new at this moment; absent: it does. */
  | {
      readonly kind: "recovered";
      readonly open: readonly TxnOpen[];
      readonly next: string | null;
      readonly refusesNew?: { readonly code: ErrorCode; readonly message: string } | undefined;
    }
  /** Definite: this call has changed nothing. */
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string };
