// One transaction at one island.

import type { BackendHash, TxnOperation, TxnState } from "./model.ts";
import type { LockKey } from "./view.ts";

/** What it locks while it is prepared. */
export function locksOf(operations: readonly TxnOperation[]): readonly LockKey[] {
  return operations.flatMap((one): readonly LockKey[] => {
    if (one.kind === "job-submit") return [];
    return "name" in one ? [{ value: one.name }] : [{ scope: one.scope }];
  });
}

/** Of one that is committed here as home: participants that have not reported. */
export function waitsFor({ header, phase, settledBy, isSettled }: TxnState): readonly BackendHash[] {
  if (phase !== "committed" || isSettled) return [];
  return header.participants.filter((one) => one !== header.home && !settledBy.includes(one));
}

/** Committed at an island that is not home, with nothing left to deliver: home may be told. */
export function isDone({ header, phase, outbox, isSettled }: TxnState, self: BackendHash): boolean {
  return phase === "committed" && header.home !== self && outbox.length === 0 && !isSettled;
}
