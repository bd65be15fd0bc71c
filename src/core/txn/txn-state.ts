// One transaction at one island: its phases are drawn in model.ts. States never change; an event makes a new one, or none.
//
// What is rolled back nobody needs any more, from the start: home answers the same for what it does not know. A commit is needed until home has heard
// of all participants, and a participant's until home has heard of it; and as long as jobs of it are to be delivered.

import { assert, assertNever } from "../kit/assert.ts";
import type { TxnDecidedEvent, TxnOneEvent, TxnPreparedEvent, TxnStagedEvent } from "./events.ts";
import type { BackendHash, TxnHeader, TxnOperation, TxnOutboxEntry, TxnReserved, TxnState } from "./model.ts";
import { operationBytes } from "./operations.ts";
import { specBytes } from "./codec/spec.ts";
import type { LockKey } from "./view.ts";

export const NOTHING_RESERVED: TxnReserved = { values: 0, bytes: 0, scopes: 0 };

/** All of it but `by`: other words under the same id are of another transaction. What is staged knows home alone. */
export function isSameTxn(state: TxnState, header: TxnHeader): boolean {
  const { home, participants, digest, timeoutMs } = state.header;
  if (home !== header.home) return false;
  if (state.phase === "staged") return true;
  return (
    digest === header.digest &&
    timeoutMs === header.timeoutMs &&
    participants.length === header.participants.length &&
    participants.every((one, at) => one === header.participants[at])
  );
}

/** Of an event that fits. Null: nothing is known of it from there on. */
export function evolveTxn(before: TxnState | undefined, event: TxnOneEvent, place: number): TxnState | null {
  switch (event.kind) {
    case "txn-staged":
    case "txn-prepared":
      return begun(event, place);
    case "txn-decided":
      return decided(event, place);
    case "txn-delivered":
      assert(before !== undefined, "what is delivered is known");
      return settledIfDone({ ...before, outbox: [] });
    case "txn-settled":
      assert(before !== undefined, "what is settled is known");
      if (event.by === null) return settled(before);
      return settledIfDone({ ...before, settledBy: [...before.settledBy, event.by] });
    case "txn-dropped":
      return null;
    default:
      return assertNever(event, "event of a transaction");
  }
}

function begun(event: TxnStagedEvent | TxnPreparedEvent, place: number): TxnState {
  const { header, operations, atMs } = event;
  const isStaged = event.kind === "txn-staged";
  const reserved = isStaged ? NOTHING_RESERVED : event.reserved;
  const rest = { results: [], outbox: [], reason: null, settledBy: [], isSettled: false };
  return { header, phase: isStaged ? "staged" : "prepared", operations, reserved, place, atMs, ...rest };
}

function decided({ header, outcome, results, outbox, reason, atMs }: TxnDecidedEvent, place: number): TxnState {
  const rest = { operations: [], reserved: NOTHING_RESERVED, settledBy: [] };
  const state = { header, phase: outcome, place, atMs, results, outbox, reason, ...rest, isSettled: false };
  return settledIfDone(state);
}

function settledIfDone(state: TxnState): TxnState {
  if (state.phase === "rolled-back") return settled(state);
  return state.outbox.length === 0 && waitsFor(state).length === 0 ? settled(state) : state;
}

function settled(state: TxnState): TxnState {
  return { ...state, settledBy: [], isSettled: true };
}

/**
 * Of one that is committed: participants that have not reported to home. (At an island that is not home: all but home, itself included. It asks
 * nobody; home's answer settles it.)
 */
export function waitsFor({ header, phase, settledBy, isSettled }: TxnState): readonly BackendHash[] {
  if (phase !== "committed" || isSettled) return [];
  return header.participants.filter((one) => one !== header.home && !settledBy.includes(one));
}

/** Committed at an island that is not home, and all of it is done: it is to be reported to home. */
export function isToReport({ header, phase, outbox, isSettled }: TxnState, self: BackendHash): boolean {
  return phase === "committed" && header.home !== self && outbox.length === 0 && !isSettled;
}

/** What it locks while it is prepared. */
export function locksOf(operations: readonly TxnOperation[]): readonly LockKey[] {
  const keys: LockKey[] = [];
  for (const one of operations) {
    const key = lockOf(one);
    if (key !== null) keys.push(key);
  }
  return keys;
}

export function lockOf(operation: TxnOperation): LockKey | null {
  if (operation.kind === "job-submit") return null;
  return "name" in operation ? { value: operation.name } : { scope: operation.scope };
}

/** What the sums over all transactions count. */
export const WEIGHT = {
  staged: 0,
  prepared: 1,
  unsettled: 2,
  bytes: 3,
  values: 4,
  valueBytes: 5,
  scopes: 6,
  jobs: 7,
} as const;

const NO_WEIGHT: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0];

export function weighTxn(state: TxnState | null): readonly number[] {
  if (state === null) return NO_WEIGHT;
  switch (state.phase) {
    case "rolled-back":
      return NO_WEIGHT;
    case "staged":
      return [1, 0, 0, operationsBytes(state.operations), 0, 0, 0, 0];
    case "prepared": {
      const { values, bytes, scopes } = state.reserved;
      return [0, 1, 0, operationsBytes(state.operations), values, bytes, scopes, 0];
    }
    case "committed":
      return [0, 0, Number(!state.isSettled), outboxBytes(state.outbox), 0, 0, 0, state.outbox.length];
    default:
      return assertNever(state.phase, "phase of a transaction");
  }
}

export function operationsBytes(operations: readonly TxnOperation[]): number {
  return operations.reduce((sum, one) => sum + operationBytes(one), 0);
}

/** At most what the operations had that it is made of: a commit never needs more. */
export function outboxBytes(outbox: readonly TxnOutboxEntry[]): number {
  return outbox.reduce((sum, { spec }) => sum + specBytes(spec).length, 0);
}
