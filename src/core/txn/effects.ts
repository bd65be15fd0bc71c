// What a transaction's operations need of the state, and what they do to it at the commit.

import { assertNever } from "../kit/assert.ts";
import { VALUES_BYTES_MAX, VALUES_MAX } from "../kit/limits.ts";
import type { ScopeEvent } from "../scopes/index.ts";
import { type ValueEvent, valueBytes } from "../values/index.ts";
import type { TxnOperation, TxnOutboxEntry, TxnRequire, TxnReserved, TxnResult } from "./model.ts";
import type { Refusal } from "./operations.ts";
import { lockOf } from "./txn-state.ts";
import type { LockKey, TxnsView } from "./view.ts";

/** Why these operations can't be done, or be promised, as the state is; null: they can. */
export function statesProblem(view: TxnsView, operations: readonly TxnOperation[]): Refusal | null {
  for (const operation of operations) {
    const problem = lockProblem(view, operation) ?? stateProblem(view, operation);
    if (problem !== null) return problem;
  }
  return null;
}

/** The first epoch of these that is not held now. */
export function requireProblem(view: TxnsView, require: readonly TxnRequire[]): Refusal | null {
  const over = require.find(({ scope, epoch }) => view.heldEpoch(scope) !== epoch);
  return over === undefined ? null : staleEpoch(over);
}

function lockProblem(view: TxnsView, operation: TxnOperation): Refusal | null {
  const key = lockOf(operation);
  const by = key === null ? null : view.lockedBy(key);
  if (key === null || by === null) return null;
  return { code: "txn_locked", message: `${nameOf(key)} is locked by transaction ${by}, which is not decided yet.` };
}

function stateProblem(view: TxnsView, operation: TxnOperation): Refusal | null {
  switch (operation.kind) {
    case "value-put":
    case "value-delete":
    case "value-check": {
      const { name, ifVersion } = operation;
      const version = view.values.get(name)?.version ?? 0;
      if (ifVersion === null || ifVersion === version) return null;
      const now = version === 0 ? "there is no such value" : `it has version ${version}`;
      const message =
        ifVersion === 0
          ? `There is a value "${name}" already: ${now}.`
          : `The value "${name}" does not have version ${ifVersion}: ${now}.`;
      return { code: "VERSION_CONFLICT", message };
    }
    case "scope-release":
      return requireProblem(view, [operation]);
    case "scope-acquire": {
      const hold = view.scopes.get(operation.scope)?.hold ?? null;
      if (hold === null) return null;
      return { code: "txn_locked", message: `Scope "${operation.scope}" is held, in epoch ${hold.epoch}.` };
    }
    case "job-submit":
      return null;
    default:
      return assertNever(operation, "operation of a transaction");
  }
}

/**
 * Room that they need until they are done. What they free counts for what they add, in values: nobody else can change those meanwhile. It does not
 * in scopes: a hold may end before, and its place be taken.
 */
export function roomOf(view: TxnsView, operations: readonly TxnOperation[]): TxnReserved {
  const { values, bytes } = growthOf(view, operations);
  const scopes = operations.filter(({ kind }) => kind === "scope-acquire").length;
  return { values: Math.max(0, values), bytes: Math.max(0, bytes), scopes };
}

/** The same where they are done at once: what they release is free. */
export function roomNow(view: TxnsView, operations: readonly TxnOperation[]): TxnReserved {
  const room = roomOf(view, operations);
  const released = operations.filter(({ kind }) => kind === "scope-release").length;
  return { ...room, scopes: Math.max(0, room.scopes - released) };
}

export function roomProblem(view: TxnsView, room: TxnReserved): Refusal | null {
  const { values, scopes, reserved } = view;
  if (room.values > 0 && values.size + reserved.values + room.values > VALUES_MAX)
    return full(`${VALUES_MAX} values`, "values");
  if (room.bytes > 0 && values.bytes + reserved.bytes + room.bytes > VALUES_BYTES_MAX)
    return full(`${VALUES_BYTES_MAX} bytes of values`, "values");
  if (room.scopes > 0 && scopes.room - reserved.scopes < room.scopes) return full("held scopes", "scopes");
  return null;
}

function growthOf(view: TxnsView, operations: readonly TxnOperation[]): { values: number; bytes: number } {
  const growth = { values: 0, bytes: 0 };
  for (const operation of operations) {
    if (operation.kind !== "value-put" && operation.kind !== "value-delete") continue;
    const before = view.values.get(operation.name);
    const isPut = operation.kind === "value-put";
    growth.values += Number(isPut) - Number(before !== undefined);
    growth.bytes += (isPut ? valueBytes(operation) : 0) - (before === undefined ? 0 : valueBytes(before));
  }
  return growth;
}

export interface Effects {
  readonly changes: readonly (ValueEvent | ScopeEvent)[];
  readonly results: readonly TxnResult[];
  readonly outbox: readonly TxnOutboxEntry[];
}

export interface EffectsContext {
  readonly atMs: number;
  readonly place: number;
  readonly newJobId: () => string;
}

const NO_RESULT: TxnResult = { version: null, epoch: null, jobId: null };

/** Of operations that are checked, or were promised. In one record: all of it at one place, or nothing. */
export function effectsOf(view: TxnsView, operations: readonly TxnOperation[], context: EffectsContext): Effects {
  const values: ValueEvent[] = [];
  const ends: ScopeEvent[] = [];
  const grants: ScopeEvent[] = [];
  const results: TxnResult[] = [];
  const outbox: TxnOutboxEntry[] = [];
  const { place, atMs } = context;
  for (const [at, operation] of operations.entries()) {
    let result = NO_RESULT;
    switch (operation.kind) {
      case "value-put":
        values.push({ kind: "value-put", name: operation.name, data: operation.data, fence: null, atMs });
        result = { ...NO_RESULT, version: place };
        break;
      case "value-delete":
        if (view.values.get(operation.name) === undefined) break;
        values.push({ kind: "value-deleted", name: operation.name, fence: null, atMs });
        result = { ...NO_RESULT, version: place };
        break;
      case "value-check":
        break;
      case "scope-release": {
        const { scope, epoch } = operation;
        // It may have ended since it was promised.
        if (view.heldEpoch(scope) === epoch) ends.push({ kind: "resigned", scope, epoch, atMs });
        break;
      }
      case "scope-acquire": {
        const { scope, session, identity, metadata, ttlMs } = operation;
        grants.push({ kind: "granted", scope, session, identity, metadata, ttlMs, atMs });
        result = { ...NO_RESULT, epoch: place };
        break;
      }
      case "job-submit": {
        const jobId = context.newJobId();
        outbox.push({ operation: at, jobId, spec: operation.spec });
        result = { ...NO_RESULT, jobId };
        break;
      }
      default:
        assertNever(operation, "operation of a transaction");
    }
    results.push(result);
  }
  // What ends makes room for what is granted.
  return { changes: [...values, ...ends, ...grants], results, outbox };
}

function nameOf(key: LockKey): string {
  return "value" in key ? `The value "${key.value}"` : `Scope "${key.scope}"`;
}

function staleEpoch({ scope, epoch }: TxnRequire): Refusal {
  return { code: "STALE_EPOCH", message: `Epoch ${epoch} of scope "${scope}" is over, or never was.` };
}

function full(what: string, kept: string): Refusal {
  const message = `There is no room: ${what} are as many as an island has, with what other transactions keep of it. Remove ${kept} that are not needed.`;
  return { code: "QUOTA_EXCEEDED", message };
}
