// Operations of a transaction in the names of the wire, and back. What a client sends and what islands send each other is the same, but for jobs: between
// islands nothing of them is left out, so that two releases with other defaults mean the same job.

import type { JobSpec } from "../jobs/model.ts";
import { assertNever } from "../kit/assert.ts";
import type { Json } from "../kit/json.ts";
import { parseJson } from "../kit/parse-json.ts";
import type { TxnOperation } from "./model.ts";

interface OfValue {
  readonly name: string;
}

interface OfScope {
  readonly scope: string;
}

/** `Job`: what POST /v1/jobs takes as one. */
export type OperationBody<Job = JobFields> =
  | (OfValue & { readonly op: "value.put"; readonly value: Json; readonly if_version?: number })
  | (OfValue & { readonly op: "value.delete"; readonly if_version?: number })
  | (OfValue & { readonly op: "value.check"; readonly if_version: number })
  | (OfScope & { readonly op: "scope.release"; readonly epoch: number })
  | (OfScope & {
      readonly op: "scope.acquire";
      readonly session: string;
      readonly identity: string;
      readonly metadata?: Readonly<Record<string, string>>;
      readonly ttl_ms: number;
    })
  | { readonly op: "job.submit"; readonly job: Job };

/** A whole one: nothing is left to defaults. */
export interface JobFields {
  readonly kind: string;
  readonly payload: Json;
  readonly queue: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly platform: string | null;
  readonly priority: number;
  readonly not_before_ms: number | null;
  readonly attempts_max: number;
  readonly losses_max: number;
  readonly backoff: { readonly base_ms: number; readonly max_ms: number };
  readonly timeout_ms: number | null;
  readonly retention_ms: number;
  readonly concurrency: { readonly key: string; readonly limit: number } | null;
}

/** What this room can't do by itself. */
export interface OperationReaders<Job> {
  /** The value's canonical JSON, in UTF-8. */
  readonly data: (value: Json) => Uint8Array;
  readonly spec: (job: Job) => JobSpec;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Names, braces and numbers of one operation, about. */
const OPERATION_REST = 128;

export function operationBody(operation: TxnOperation): OperationBody {
  switch (operation.kind) {
    case "value-put": {
      const { name, data, ifVersion } = operation;
      const value = parseJson(decoder.decode(data)) as Json;
      return { op: "value.put", name, value, ...conditionBody(ifVersion) };
    }
    case "value-delete":
      return { op: "value.delete", name: operation.name, ...conditionBody(operation.ifVersion) };
    case "value-check":
      return { op: "value.check", name: operation.name, if_version: operation.ifVersion };
    case "scope-release":
      return { op: "scope.release", scope: operation.scope, epoch: operation.epoch };
    case "scope-acquire": {
      const { scope, session, identity, metadata, ttlMs } = operation;
      return { op: "scope.acquire", scope, session, identity, metadata, ttl_ms: ttlMs };
    }
    case "job-submit":
      return { op: "job.submit", job: jobFields(operation.spec) };
    default:
      return assertNever(operation, "operationBody");
  }
}

/** Of a body that was checked. */
export function operationOf<Job>(body: OperationBody<Job>, { data, spec }: OperationReaders<Job>): TxnOperation {
  switch (body.op) {
    case "value.put":
      return { kind: "value-put", name: body.name, data: data(body.value), ifVersion: body.if_version ?? null };
    case "value.delete":
      return { kind: "value-delete", name: body.name, ifVersion: body.if_version ?? null };
    case "value.check":
      return { kind: "value-check", name: body.name, ifVersion: body.if_version };
    case "scope.release":
      return { kind: "scope-release", scope: body.scope, epoch: body.epoch };
    case "scope.acquire": {
      const { scope, session, identity, metadata = {}, ttl_ms: ttlMs } = body;
      return { kind: "scope-acquire", scope, session, identity, metadata, ttlMs };
    }
    case "job.submit":
      return { kind: "job-submit", spec: spec(body.job) };
    default:
      return assertNever(body, "operationOf");
  }
}

/** What they have as JSON at the most. */
export function operationsBytes(operations: readonly TxnOperation[]): number {
  return operations.reduce((bytes, operation) => bytes + bytesOf(operation) + OPERATION_REST, 0);
}

function bytesOf(operation: TxnOperation): number {
  switch (operation.kind) {
    case "value-put":
      return jsonBytes(operation.name) + operation.data.length;
    case "value-delete":
    case "value-check":
      return jsonBytes(operation.name);
    case "scope-release":
      return jsonBytes(operation.scope);
    case "scope-acquire": {
      const { scope, session, identity, metadata } = operation;
      return jsonBytes([scope, session, identity, metadata]);
    }
    case "job-submit":
      return jsonBytes(operation.spec);
    default:
      return assertNever(operation, "operationsBytes");
  }
}

function conditionBody(ifVersion: number | null): { readonly if_version?: number } {
  return ifVersion === null ? {} : { if_version: ifVersion };
}

function jobFields(spec: JobSpec): JobFields {
  const { backoff, concurrency } = spec;
  return {
    kind: spec.kind,
    payload: spec.payload,
    queue: spec.queue,
    labels: spec.labels,
    platform: spec.platform,
    priority: spec.priority,
    not_before_ms: spec.notBeforeMs,
    attempts_max: spec.attemptsMax,
    losses_max: spec.lossesMax,
    backoff: { base_ms: backoff.baseMs, max_ms: backoff.maxMs },
    timeout_ms: spec.timeoutMs,
    retention_ms: spec.retentionMs,
    concurrency: concurrency && { key: concurrency.key, limit: concurrency.limit },
  };
}

const encoder = new TextEncoder();

function jsonBytes(value: object | string): number {
  return encoder.encode(JSON.stringify(value)).length;
}
