// The log: ordered records, appended by the leader of one epoch at a time (design D2). A record's position is its place in
// the log, 1 for the first, equal on every node. What a record means is the business of whoever folds it.
//
// Promises, each a case of the conformance suite:
// - `open` raises the fence durably, before the first append of its epoch: from then on no lower epoch appends.
// - An append is all or nothing, directly after `after`, in the order of the calls.
// - `committed` is never taken back; `fenced` means that nothing was written, and nothing will be with this epoch;
//   `unknown` may turn out either way: open again (with a new epoch) and compare the head.
// - Who subscribes sees every committed record once, in order, without gaps, from the position it asked for.

import type { SnapshotData } from "./state-machine.ts";

export interface Log {
  /** The committed head as this node knows it: it may lag behind on a node that does not lead. */
  head(): LogHead;
  /** Everything committed before is known here when it resolves. Rejects (retryable) where no quorum answers. */
  open(epoch: number): Promise<LogOpened>;
  /**
   * `after`: the position of the last record that was appended, acknowledged or not. Appends may be pipelined: the next may
   * be sent before the last is answered. Rejects with a TenureError where nothing was written and the epoch may go on:
   * too large, too much waits, the disk is full.
   */
  append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended>;
  /**
   * Committed records from `from` on, at most `max`; fewer, also none, where the head is near. Rejects with LOG_COMPACTED
   * where they are not kept any more.
   */
  read(from: number, max: number): Promise<readonly LogRecord[]>;
  /**
   * Tells each committed record from `from` on, in order; `tell` is called synchronously and must not throw. `compacted` is told, and
   * nothing more, where records are not kept any more: read the state instead and subscribe from after it.
   */
  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void;
}

/** A log next to which something waits to be taken over into it: what is taken is gone there, in the same atomic step. */
export interface TakingLog extends Log {
  /** As `append`. Rejects, and nothing is written, where one of them is not there any more. */
  appendTaking(
    epoch: number,
    after: number,
    batch: readonly Uint8Array[],
    taken: readonly string[],
  ): Promise<LogAppended>;
}

export interface LogHead {
  /** The last committed record's; 0 for an empty log. */
  readonly position: number;
  /** The highest epoch that was opened. */
  readonly epoch: number;
}

export interface LogRecord {
  readonly position: number;
  readonly epoch: number;
  readonly data: Uint8Array;
}

export type LogOpened =
  | { readonly outcome: "opened"; readonly head: LogHead }
  /** A higher epoch was opened: this one is over. */
  | { readonly outcome: "fenced"; readonly epoch: number };

export type LogAppended =
  /** The position of the batch's last record. */
  | { readonly outcome: "committed"; readonly position: number }
  | { readonly outcome: "fenced"; readonly epoch: number | null }
  | { readonly outcome: "unknown" };

/** What a log is folded into on every node. Calls come in log order; `apply` must not fail. */
export interface Fold {
  apply(record: LogRecord): void;
  /** The state as of the last applied record, fixed in this turn; see StateMachine. */
  snapshot(): SnapshotData;
  restore(data: Uint8Array, head: LogHead): void;
  /** See StateMachine. */
  prepare?(data: Uint8Array): Generator<void, void, void>;
}
