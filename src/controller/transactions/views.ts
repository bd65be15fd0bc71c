// What a node shows of a transaction: the applied state.

import { type LockKey, locksOf, type TxnOperation, type TxnState, waitsFor } from "../../core/txn/index.ts";
import type { TxnView } from "../../ports/transactions.ts";

export function viewOf(state: TxnState): TxnView {
  const { header, phase, atMs, results, reason, outbox, isSettled } = state;
  return {
    header,
    phase,
    atMs,
    locks: phase === "prepared" ? locksOf(state.operations).map(lockText) : [],
    results,
    reason,
    undelivered: outbox.length,
    waitsFor: waitsFor(state),
    isSettled,
    isInDoubt: isInDoubt(state),
  };
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
