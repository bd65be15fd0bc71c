// Values: small JSON documents in the servers' replicated state, next to the scopes. A write may name the scope and the epoch of the leader
// that makes it: the log takes both in one record, or neither, so that nobody whose epoch is over changes anything. The leader of the cluster
// decides; every node shows the applied state. What is refused rejects with a TenureError: STALE_EPOCH, VERSION_CONFLICT (both definite: nothing was
// written), QUOTA_EXCEEDED, NOT_LEADER, OUTCOME_UNKNOWN, or a retryable one.
//
// A version is the place of its record in the log, like an epoch: it only grows, over deletions and restores too, and no two writes of a cluster
// have the same one. So a version names one content for ever.

import type { Json } from "../core/kit/json.ts";

export interface Values {
  /** Resolves when it is committed, with the new version. */
  put(request: ValuePut): Promise<{ readonly version: number }>;
  /** Of a value that is not there it is no error: `deleted` is false. */
  delete(request: ValueDelete): Promise<ValueDeleted>;
  /** Applied state of this node. */
  get(name: string): ValueView | null;
  /** Applied state of this node, by name: at most `limit` after the name `after` (null: from the first), of those that begin with `prefix`. */
  list(request: ValuesList): ValuesPage;
  /**
   * Changes of values whose names begin with `prefix`, with a version above `after`, in the order in which they were made; at most
   * `limit`. Null: changes after it are not kept any more on this node, so list again.
   */
  changes(prefix: string, after: number, limit: number): ValueChanges | null;
  /**
   * Resolves when there may be a change of such a value above `after`, or the signal aborts: with the version up to which there is none, from
   * which to go on. (Changes of other values push old ones out; a watcher of this prefix has missed nothing by that.) Rejects with OVERLOADED where
   * too many wait.
   */
  changed(prefix: string, after: number, signal: AbortSignal): Promise<number>;
}

/** Who writes: only while this epoch of this scope is held. */
export interface ValueFence {
  readonly scope: string;
  readonly epoch: number;
}

export interface ValuePut {
  readonly name: string;
  readonly value: Json;
  /** Only where the value has this version now; 0: only where there is none. Null: whatever is there. */
  readonly ifVersion: number | null;
  readonly fence: ValueFence | null;
}

export interface ValueDelete {
  readonly name: string;
  readonly ifVersion: number | null;
  readonly fence: ValueFence | null;
}

export interface ValueDeleted {
  readonly deleted: boolean;
  /** Of the deletion; null: there was nothing to delete. */
  readonly version: number | null;
}

export interface ValueView {
  readonly name: string;
  readonly value: Json;
  readonly version: number;
  /** Wall time of the leader that wrote it. */
  readonly updatedAtMs: number;
  /** With which it was written; null: without one. */
  readonly fence: ValueFence | null;
  /** The transaction that locks it: prepared here, and not decided yet. Null: none. */
  readonly pendingTxn: string | null;
}

export interface ValuesList {
  readonly prefix: string;
  readonly after: string | null;
  readonly limit: number;
}

export interface ValuesPage {
  readonly values: readonly ValueView[];
  /** The last name of this page, where more follow; null: it is the last page. */
  readonly next: string | null;
  /** What is listed is as of this version: changes above it are what came after. */
  readonly asOf: number;
}

export type ValueChange =
  | (ValueView & { readonly kind: "put" })
  | { readonly kind: "deleted"; readonly name: string; readonly version: number; readonly updatedAtMs: number };

export interface ValueChanges {
  readonly changes: readonly ValueChange[];
  /** Everything up to this version has been looked at. */
  readonly through: number;
}

export interface ValuesStats {
  readonly values: number;
  /** With their names: what the bound of a cluster counts. */
  readonly bytes: number;
  readonly watching: number;
  /** Puts and deletions that this node has decided as leader. That there was nothing to delete is none. */
  readonly writes: Readonly<Record<ValueWriteOutcome, number>>;
}

/** `stale`, `conflict`, `locked` (by a transaction), `full`: refused, and nothing was written. */
export type ValueWriteOutcome = "committed" | "stale" | "conflict" | "locked" | "full" | "unknown";
