// What a node shows of a transaction: the applied state.

import { type LockKey, locksOf, type TxnOperation, type TxnState, waitsFor } from "../../core/txn/index.ts";
import type { BackendHash } from "../../core/txn/model.ts";
import type { TxnView } from "../../ports/transactions.ts";

/** `self`: this island. */
export function viewOf(state: TxnState, self: BackendHash): TxnView {
  const { header, phase, atMs, results, reason, outbox, isSettled } = state;
  return {
    header,
    phase,
    atMs,
    locks: phase === "prepared" ? locksOf(state.operations).map(lockText) : [],
    results,
    reason,
    undelivered: outbox.length,
    waitsFor: awaited(state, self),
    isSettled,
    isInDoubt: isInDoubt(state),
  };
}

/** Prepared: home has to decide. Committed: at home, who has not reported; elsewhere home, which has not answered this island's report. */
function awaited(state: TxnState, self: BackendHash): readonly BackendHash[] {
  const { home, participants } = state.header;
  const unreported = waitsFor(state);
  // Under a former hash of this island nobody is asked, and nothing reported.
  const reports = unreported.length > 0 && home !== self && participants.includes(self);
  return state.phase === "prepared" || reports ? [home] : unreported;
}

/** Prepared and not decided, or decided here as home and not done everywhere. */
export function isInDoubt(state: TxnState): boolean {
  return state.phase === "prepared" || waitsFor(state).length > 0;
}

/** For people. */
function lockText(key: LockKey): string {
  return "value" in key ? `value ${key.value}` : `scope ${key.scope}`;
}

/** Names of the scopes that are locked by these. */
export function lockedScopes(operations: readonly TxnOperation[]): string[] {
  return locksOf(operations).flatMap((key) => ("scope" in key ? [key.scope] : []));
}
