// What Tenure's servers answer, checked field by field: a field that is missing or of another type is an error, never a
// default. Fields that we do not know are ignored: a newer server may have more.

import { TenureError, VersionConflictError } from "../../core/kit/errors.ts";
import type { Json } from "../../core/kit/json.ts";
import { ANCESTORS_MAX } from "../../core/kit/limits.ts";
import type { Leader } from "../../ports/elector.ts";
import type { ScopeRecord, TransitionRecord } from "../../ports/backends/scope-admin.ts";
import type { StoredChange, StoredValue } from "../../ports/stored-values.ts";
import type { ValueDeleted } from "../../ports/values.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Which cluster a node says that it belongs to, and where that comes from. */
export interface ClusterWord {
  readonly clusterId: string | null;
  /** Null: the node does not know yet. */
  readonly ancestors?: readonly string[] | null | undefined;
  readonly isPaused?: boolean | undefined;
}

/** What one node says of the cluster's leader. */
export interface LeaderWord {
  /** Of the node that said it; null where it did not say. */
  readonly nodeId: string | null;
  readonly leader: { readonly nodeId: string; readonly url: string | null; readonly term: number } | null;
}

export interface Introduction extends LeaderWord, ClusterWord {
  readonly clusterId: string;
  readonly nodeId: string;
  readonly members: readonly { readonly nodeId: string; readonly url: string | null }[];
}

export type Acquired =
  | { readonly granted: true; readonly epoch: number; readonly ttlMs: number }
  | { readonly granted: false };

export interface Renewed {
  readonly epoch: number;
  readonly ttlMs: number;
  readonly resignRequested: boolean;
}

/** A scope as it stands: the last epoch that was granted, and who holds it. */
export interface ScopeState {
  readonly epoch: number;
  readonly leader: Leader | null;
}

export const NEVER_LED: ScopeState = { epoch: 0, leader: null };

/** `GET /v1/cluster`. */
export function introductionOf(body: Fields): Introduction {
  const term = integer(body, "term");
  const leader = body["leader"] === null ? null : object(body, "leader");
  return {
    clusterId: text(body, "cluster_id"),
    ancestors: ancestorsIn(body),
    isPaused: body["is_paused"] === true,
    nodeId: text(body, "node_id"),
    leader: leader === null ? null : { nodeId: text(leader, "node_id"), url: textOrNull(leader, "url"), term },
    members: list(body, "members").map((one) => ({ nodeId: text(one, "node_id"), url: textOrNull(one, "url") })),
  };
}

/** `GET /leader`, where there is one. */
export function leaderWordOf(body: Fields): LeaderWord {
  const leader = { nodeId: text(body, "leader_id"), url: textOrNull(body, "leader_url"), term: integer(body, "term") };
  return { nodeId: text(body, "node_id"), leader };
}

export function acquiredOf(body: Fields): Acquired {
  if (!flag(body, "granted")) return { granted: false };
  return { granted: true, epoch: epochIn(body), ttlMs: integer(body, "ttl_ms") };
}

export function renewedOf(body: Fields): Renewed {
  return {
    epoch: epochIn(body),
    ttlMs: integer(body, "ttl_ms"),
    resignRequested: flag(body, "resign_requested"),
  };
}

export function scopeStateOf(body: Fields): ScopeState {
  const holder = body["holder"] === null ? null : object(body, "holder");
  return { epoch: integer(body, "epoch"), leader: holder === null ? null : leaderOf(holder) };
}

/** `GET /v1/scopes`: one page, and the name after which the next one begins. */
export function scopePageOf(body: Fields): { readonly records: ScopeRecord[]; readonly next: string | null } {
  return { records: list(body, "scopes").map(scopeRecordOf), next: textOrNull(body, "next") };
}

/** `GET /v1/scopes/{scope}`. */
export function scopeRecordOf(body: Fields): ScopeRecord {
  const { epoch, leader } = scopeStateOf(body);
  const acquiredAtMs = leader === null ? null : milliseconds(object(body, "holder"), "acquired_at_ms");
  const { identity = null, metadata = {} } = leader ?? {};
  // The cluster frees what is not renewed: there is no heartbeat whose age would tell more than the holder does.
  return { scope: text(body, "scope"), epoch, identity, metadata, acquiredAtMs, heartbeatAtMs: null };
}

export function transitionsOf(body: Fields): TransitionRecord[] {
  return list(body, "transitions").map((one) => ({
    atMs: milliseconds(one, "at_ms"),
    epoch: integer(one, "epoch"),
    identity: text(one, "identity"),
    reason: text(one, "reason"),
    heldMs: one["held_ms"] === null ? null : milliseconds(one, "held_ms"),
  }));
}

export function askedEpochOf(body: Fields): { readonly epoch: number } | null {
  return body["epoch"] === null ? null : { epoch: epochIn(body) };
}

/** `GET /v1/values`: one page. */
export function valuesPageOf(body: Fields): ValuesListed {
  return {
    values: list(body, "values").map(valueOf),
    next: textOrNull(body, "next"),
    asOf: integer(body, "as_of"),
  };
}

export interface ValuesListed {
  readonly values: readonly StoredValue[];
  readonly next: string | null;
  /** What is listed is as of this version, at the earliest. */
  readonly asOf: number;
}

/** `data` of an event of `GET /v1/watch/values`. */
export function valueChangeOf(body: Fields): StoredChange {
  const kind = text(body, "kind");
  if (kind === "put") return { kind, ...valueOf(body) };
  if (kind !== "deleted") throw malformed("kind", '"put" or "deleted"');
  const updatedAtMs = milliseconds(body, "updated_at_ms");
  return { kind, name: text(body, "name"), version: versionIn(body), updatedAtMs };
}

export function writtenOf(body: Fields): { readonly version: number } {
  return { version: versionIn(body) };
}

export function deletedOf(body: Fields): ValueDeleted {
  const deleted = flag(body, "deleted");
  return { deleted, version: deleted ? versionIn(body) : null };
}

/** Of a refusal with VERSION_CONFLICT. */
export function conflictIn(body: Fields): VersionConflictError {
  return new VersionConflictError(text(body, "name"), body["version"] === null ? null : versionIn(body));
}

function valueOf(body: Fields): StoredValue {
  if (body["value"] === undefined) throw malformed("value", "there");
  const fence = body["epoch"] === undefined ? {} : { scope: text(body, "scope"), epoch: epochIn(body) };
  const value = body["value"] as Json;
  const updatedAtMs = milliseconds(body, "updated_at_ms");
  const pending = body["pending_txn"] === undefined ? {} : { pendingTxn: text(body, "pending_txn") };
  return { name: text(body, "name"), value, version: versionIn(body), updatedAtMs, ...fence, ...pending };
}

function versionIn(body: Fields): number {
  const version = integer(body, "version");
  if (version < 1) throw malformed("version", "at least 1");
  return version;
}

function leaderOf(holder: Fields): Leader {
  const metadata = Object.entries(object(holder, "metadata")).map(([name, value]): [string, string] => {
    if (typeof value === "string") return [name, value];
    throw malformed("metadata", "an object of texts");
  });
  return { epoch: epochIn(holder), identity: text(holder, "identity"), metadata: Object.fromEntries(metadata) };
}

function epochIn(body: Fields): number {
  const epoch = integer(body, "epoch");
  if (epoch < 1) throw malformed("epoch", "at least 1");
  return epoch;
}

function integer(body: Fields, name: string): number {
  const value = body[name];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw malformed(name, "a whole number");
}

/** Of clocks; not always whole. */
function milliseconds(body: Fields, name: string): number {
  const value = body[name];
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw malformed(name, "a number");
}

function text(body: Fields, name: string): string {
  const value = body[name];
  if (typeof value === "string" && value !== "") return value;
  throw malformed(name, "a text");
}

function textOrNull(body: Fields, name: string): string | null {
  return body[name] === null ? null : text(body, name);
}

function flag(body: Fields, name: string): boolean {
  const value = body[name];
  if (typeof value === "boolean") return value;
  throw malformed(name, "true or false");
}

function object(body: Fields, name: string): Fields {
  const value = body[name];
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw malformed(name, "an object");
}

function list(body: Fields, name: string): Fields[] {
  const value = body[name];
  if (!Array.isArray(value)) throw malformed(name, "a list");
  return value.map((one: unknown) => object({ [name]: one }, name));
}

/** Older servers do not name any, and a node that is not ready may not know them. */
function ancestorsIn(body: Fields): readonly string[] | null {
  const named = body["ancestors"] === undefined ? [] : texts(body, "ancestors").slice(0, ANCESTORS_MAX);
  return named.length === 0 && body["is_ready"] === false ? null : named;
}

function texts(body: Fields, name: string): string[] {
  const value = body[name];
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
  throw malformed(name, "a list of texts");
}

function malformed(name: string, wanted: string): TenureError {
  return new TenureError(
    "BACKEND_UNSUPPORTED",
    `the server's answer is not understood: "${name}" is not ${wanted}. Is it a server of Tenure, and not of another version?`,
  );
}
