// What the coordinator of a transaction does next, by what islands have answered (decision 69). The loop is in controller/transactions/decider.
//
//   ⓪ where home decided nothing the last time: does it now? ──no──▶ nothing is begun
//   ① prepare, everywhere but at home ──all prepared──▶ ② commit at home ──committed──▶ ③ commit at the others ──▶ the client is answered
//       │        └──refused, or silent──▶ rollback at home ──rolled back──▶ the client is answered, the others get a hint
//       └──a later term is known there──▶ nothing more: what becomes of it is not known here
//
// Invariants: only home's answer says what became of a transaction; a refusal at home that is no record is never reported as a rollback; a conflict counts
// neither as prepared nor as applied.

import { assertNever } from "../kit/assert.ts";
import type { ErrorCode } from "../kit/errors.ts";
import type { BackendHash, TxnAnswer, TxnReason, TxnResult } from "./model.ts";

/** What came of one call. `lost`: it was not made, because this node may not act any more. */
export type Heard = TxnAnswer | "silent" | "lost";

export type AfterAsking =
  | { readonly kind: "begin" }
  /** Home answers, and decides nothing at this moment. */
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "unknown"; readonly why: string };

export type AfterPrepare =
  | { readonly kind: "wait" }
  | { readonly kind: "commit" }
  | { readonly kind: "rollback"; readonly reason: TxnReason }
  | { readonly kind: "stop"; readonly why: string };

export type AfterHome =
  | { readonly kind: "committed"; readonly results: readonly TxnResult[] }
  | { readonly kind: "rolled-back"; readonly reason: TxnReason | null }
  /** Definite: home can't ever commit this body under this id. */
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string }
  /** Home has not decided, and won't: it is to be asked to roll back. */
  | { readonly kind: "rollback"; readonly reason: TxnReason }
  | { readonly kind: "unknown"; readonly why: string };

export interface AfterCommit {
  readonly state: "applied" | "pending" | "rolled-back";
  readonly results: readonly TxnResult[];
}

/**
 * A rollback for one of these reasons is returned as the error of that name. `txn_expired` is not among them: as an error it is home's refusal of an id that
 * home has forgotten, and says that nobody knows what became of it; a rollback that home has recorded because of an id's age is definite.
 */
const RETURNED_AS_ERRORS: ReadonlySet<ErrorCode> = new Set(["txn_fanout_failed", "txn_conflict"]);
/** Home has another body under this id, or has forgotten it for good. */
const NEVER_AT_HOME: ReadonlySet<ErrorCode> = new Set(["txn_conflict", "txn_expired", "invalid_txn_id"]);

/** Of an island that can't write now. They say nothing of the transaction. */
const NOT_NOW: ReadonlySet<ErrorCode> = new Set(["DISK_FULL", "CLUSTER_PAUSED", "NOT_SUPPORTED"]);

/** Until somebody does something about it. */
const LASTING: ReadonlySet<ErrorCode> = new Set([
  "DISK_FULL",
  "CLUSTER_PAUSED",
  "NOT_SUPPORTED",
  "tc_cluster_mismatch",
  "invalid_term",
  // Restored, or moved: another island is at all of its addresses until the registry can be changed, and what is prepared for it waits for ever.
  "txn_backend_mismatch",
]);

/** ⓪ `heard`: to `recover`, or to what home was to decide. */
export function afterAsking(home: BackendHash, heard: Heard): AfterAsking {
  if (heard === "lost") return { kind: "unknown", why: TERM_OVER };
  if (heard === "silent") return { kind: "unknown", why: `its home ${home} does not answer` };
  if (isStale(heard)) {
    const why = staleAt(home);
    return { kind: "unknown", why };
  }
  const refusal = heard.kind === "recovered" ? heard.refusesNew : heard.kind === "refused" ? heard : NO_ANSWER;
  if (refusal === undefined) return { kind: "begin" };
  const { code, message } = refusal;
  if (NOT_NOW.has(code)) return { kind: "refused", code, message };
  return { kind: "unknown", why: `its home ${home} decides nothing at this moment (${code}): ${message}` };
}

/** Home was to decide, and has not, for a reason that lasts: another transaction would come to the same there. Other refusals are of one call alone. */
export function isUndecidedAtHome(heard: Heard): boolean {
  return heard === "silent" || (typeof heard === "object" && heard.kind === "refused" && LASTING.has(heard.code));
}

/** ① The first that is not prepared decides; nobody waits for the others then. */
export function afterPrepare(others: readonly BackendHash[], heard: ReadonlyMap<BackendHash, Heard>): AfterPrepare {
  let isComplete = true;
  let reason: TxnReason | null = null;
  for (const island of others) {
    const said = heard.get(island);
    if (said === undefined) isComplete = false;
    else if (said === "lost") return { kind: "stop", why: TERM_OVER };
    else if (isStale(said)) return { kind: "stop", why: staleAt(island) };
    else if (!isPrepared(said)) reason ??= reasonOf(island, said);
  }
  if (reason !== null) return { kind: "rollback", reason };
  return isComplete ? { kind: "commit" } : { kind: "wait" };
}

/** ②, or a rollback: home's record. */
export function afterHome(home: BackendHash, asked: "commit" | "rollback", heard: Heard): AfterHome {
  if (heard === "lost") return { kind: "unknown", why: TERM_OVER };
  if (heard === "silent") return { kind: "unknown", why: `its home ${home} did not answer in time` };
  if (isStale(heard)) return { kind: "unknown", why: staleAt(home) };
  if (heard.kind === "txn" && heard.phase === "committed") return { kind: "committed", results: heard.results };
  if (heard.kind === "txn" && heard.phase === "rolled-back") return { kind: "rolled-back", reason: heard.reason };
  if (heard.kind !== "refused") return { kind: "unknown", why: `its home ${home} answered what is no decision` };
  const { code, message } = heard;
  if (NEVER_AT_HOME.has(code)) return { kind: "refused", code, message };
  if (asked === "commit") return { kind: "rollback", reason: { code, message, backendHash: null } };
  return { kind: "unknown", why: `its home ${home} refuses to roll it back (${code}): ${message}` };
}

/** ③ Home has committed. */
export function afterCommit(heard: Heard): AfterCommit {
  if (heard === "silent" || heard === "lost") return PENDING;
  switch (heard.kind) {
    case "txn":
      if (heard.phase === "committed") return { state: "applied", results: heard.results };
      // An operator's word: no island comes to this by itself.
      return heard.phase === "rolled-back" ? { state: "rolled-back", results: [] } : PENDING;
    case "refused":
      // Prepared is forgotten by no island: what home has committed was done there, before it was forgotten.
      return heard.code === "txn_expired" ? { state: "applied", results: [] } : PENDING;
    case "settled":
    case "recovered":
      return PENDING;
    default:
      return assertNever(heard, "afterCommit");
  }
}

/** Whether a rollback for this reason is returned as the error of this name. */
export function errorOfRollback(reason: TxnReason | null): ErrorCode | null {
  return reason !== null && RETURNED_AS_ERRORS.has(reason.code) ? reason.code : null;
}

/** It was committed there before: a repeated request need not say so again. */
export function isCommitted(heard: Heard | undefined): heard is Extract<TxnAnswer, { kind: "txn" }> {
  return typeof heard === "object" && heard.kind === "txn" && heard.phase === "committed";
}

const NO_ANSWER = { code: "INTERNAL", message: "it answered something else" } as const;
const TERM_OVER = "this node leads the coordinators no longer";
const PENDING: AfterCommit = { state: "pending", results: [] };

function staleAt(island: BackendHash): string {
  return `a later term of the coordinators is known at the island ${island}`;
}

function isStale(heard: Heard): boolean {
  return typeof heard === "object" && heard.kind === "refused" && heard.code === "tc_term_stale";
}

/** Committed: an earlier attempt has got as far as home, which will say so. */
function isPrepared(heard: Heard): boolean {
  return (
    typeof heard === "object" && heard.kind === "txn" && (heard.phase === "prepared" || heard.phase === "committed")
  );
}

function reasonOf(island: BackendHash, heard: Heard): TxnReason {
  if (typeof heard === "object" && heard.kind === "refused") {
    const { code, message } = heard;
    return { code, message, backendHash: island };
  }
  if (typeof heard === "object" && heard.kind === "txn" && heard.phase === "rolled-back") {
    const { code, message } = heard.reason ?? BEFORE;
    return { code, message, backendHash: heard.reason?.backendHash ?? island };
  }
  const message = `The island ${island} did not answer in time.`;
  return { code: "txn_fanout_failed", message, backendHash: island };
}

const BEFORE = { code: "txn_fanout_failed", message: "It was rolled back before." } as const;
