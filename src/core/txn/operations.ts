// What operations may be, whatever the state: their texts, their numbers, their bytes, and that no two are about one thing.

import { assertNever } from "../kit/assert.ts";
import { ByteWriter } from "../kit/bytes.ts";
import { type ErrorCode, TenureError } from "../kit/errors.ts";
import {
  INTEGER_MAX,
  JOB_PAYLOAD_BYTES_MAX,
  TXN_BYTES_MAX,
  TXN_OPERATIONS_MAX,
  VALUE_BYTES_MAX,
} from "../kit/limits.ts";
import type { JobSpec } from "../jobs/model.ts";
import { checkAcquire, checkScope } from "../scopes/index.ts";
import { checkValueName, checkValueTerms } from "../values/index.ts";
import type { TxnOperation } from "./model.ts";
import { writeOperation } from "./codec/operation.ts";
import { specBytes } from "./codec/spec.ts";

export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Null: nothing is wrong with them. `problemOf`: why nobody can do a job. */
export function operationsProblem(
  operations: readonly TxnOperation[],
  problemOf: (spec: JobSpec) => string | null,
): Refusal | null {
  if (operations.length === 0 || operations.length > TXN_OPERATIONS_MAX)
    return invalid(`There are ${operations.length} operations; send 1 to ${TXN_OPERATIONS_MAX} for each island.`);
  const twin = twinOf(operations);
  if (twin !== null) return invalid(`Two operations are about ${twin}; send one.`);
  let bytes = 0;
  for (const operation of operations) {
    const problem = operationProblem(operation, problemOf);
    if (problem !== null) return problem;
    bytes += operationBytes(operation);
  }
  if (bytes <= TXN_BYTES_MAX) return null;
  return invalid(`The operations have ${bytes} bytes, and a transaction may have ${TXN_BYTES_MAX}.`);
}

export function areSameOperations(some: readonly TxnOperation[], others: readonly TxnOperation[]): boolean {
  return (
    some.length === others.length &&
    some.every((one, at) => {
      const [bytes, other] = [bytesOf(one), bytesOf(others[at]!)];
      return bytes.length === other.length && bytes.every((byte, place) => byte === other[place]);
    })
  );
}

function bytesOf(operation: TxnOperation): Uint8Array {
  const writer = new ByteWriter();
  writeOperation(writer, operation);
  return writer.finish();
}

/** Names and contents, as the log has them, about. Of an operation without a problem. */
export function operationBytes(operation: TxnOperation): number {
  switch (operation.kind) {
    case "value-put":
      return operation.name.length + operation.data.length;
    case "value-delete":
    case "value-check":
      return operation.name.length;
    case "scope-release":
      return operation.scope.length;
    case "scope-acquire": {
      const { scope, session, identity, metadata } = operation;
      return Object.entries(metadata)
        .flat()
        .reduce((sum, text) => sum + text.length, scope.length + session.length + identity.length);
    }
    case "job-submit":
      return specBytes(operation.spec).length;
    default:
      return assertNever(operation, "operation of a transaction");
  }
}

function operationProblem(operation: TxnOperation, problemOf: (spec: JobSpec) => string | null): Refusal | null {
  try {
    if (operation.kind !== "job-submit") {
      checkOperation(operation);
      return null;
    }
    const problem = problemOf(operation.spec) ?? payloadProblem(operation.spec);
    return problem === null ? null : { code: "BAD_REQUEST", message: `A job of it can't be submitted: ${problem}.` };
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return invalid(error.message);
  }
}

function payloadProblem(spec: JobSpec): string | null {
  const bytes = specBytes(spec).length;
  return bytes <= JOB_PAYLOAD_BYTES_MAX ? null : `it has ${bytes} bytes, and ${JOB_PAYLOAD_BYTES_MAX} are allowed`;
}

/** Throws BAD_REQUEST. */
function checkOperation(operation: Exclude<TxnOperation, { readonly kind: "job-submit" }>): void {
  switch (operation.kind) {
    case "value-put":
    case "value-delete":
    case "value-check":
      checkValueName(operation.name);
      checkValueTerms(operation.ifVersion, null);
      if (operation.kind === "value-put" && operation.data.length > VALUE_BYTES_MAX)
        throw bad(`value has ${operation.data.length} bytes, and ${VALUE_BYTES_MAX} are allowed.`);
      return;
    case "scope-release":
      checkScope(operation.scope);
      if (!Number.isSafeInteger(operation.epoch) || operation.epoch < 1)
        throw bad(`epoch must be an integer from 1 to ${INTEGER_MAX}, not ${operation.epoch}.`);
      return;
    case "scope-acquire":
      return checkAcquire({ ...operation, waitMs: 0 });
    default:
      return assertNever(operation, "operation of a transaction");
  }
}

/** What two of them are about. */
function twinOf(operations: readonly TxnOperation[]): string | null {
  const seen = new Set<string>();
  for (const operation of operations) {
    if (operation.kind === "job-submit") continue;
    const key = "name" in operation ? `value "${operation.name}"` : `scope "${operation.scope}"`;
    if (seen.has(key)) return key;
    seen.add(key);
  }
  return null;
}

function bad(message: string): TenureError {
  return new TenureError("BAD_REQUEST", message);
}

function invalid(message: string): Refusal {
  return { code: "invalid_operations", message };
}
