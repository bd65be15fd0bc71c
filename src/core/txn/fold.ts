// All transactions that an island knows, folded from the log.

import type { SnapshotData } from "../../ports/state-machine.ts";
import type { TxnEvent } from "./events.ts";
import type { BackendHash, TcFence, TxnOpen, TxnReserved, TxnState } from "./model.ts";
import type { LockKey, TxnsReader } from "./view.ts";

export class TxnsFold implements TxnsReader {
  get horizon(): string | null {
    throw new Error("not written yet");
  }
  get fence(): TcFence | null {
    throw new Error("not written yet");
  }
  get staged(): number {
    throw new Error("not written yet");
  }
  get prepared(): number {
    throw new Error("not written yet");
  }
  get unsettled(): number {
    throw new Error("not written yet");
  }
  get bytes(): number {
    throw new Error("not written yet");
  }
  get reserved(): TxnReserved {
    return { values: 0, bytes: 0, scopes: 0 };
  }
  /** All that are kept, outcomes that nobody needs any more included. */
  get size(): number {
    throw new Error("not written yet");
  }
  /** Nothing at all is to be kept in a snapshot. */
  get isEmpty(): boolean {
    return true;
  }
  /** Jobs that are to be delivered. */
  get undeliveredJobs(): number {
    throw new Error("not written yet");
  }
  get(id: string): TxnState | undefined {
    throw new Error(`not written yet: ${id}`);
  }
  lockedBy(key: LockKey): string | null {
    return key === undefined ? "" : null;
  }
  /** All, by id, after the id `after`. Nothing may change meanwhile. */
  from(after: string | null): Generator<TxnState, void, void> {
    throw new Error(`not written yet: ${after}`);
  }
  /** Those that are staged, prepared, or committed and needed still: TXNS_OPEN_MAX + TXNS_STAGED_MAX at most. */
  live(after: string | null): Generator<TxnState, void, void> {
    throw new Error(`not written yet: ${after}`);
  }
  /** Prepared here, or committed here as home and not done everywhere: by id, at most `limit` after `after`. */
  openOf(
    self: BackendHash,
    after: string | null,
    limit: number,
  ): { readonly open: readonly TxnOpen[]; readonly next: string | null } {
    throw new Error(`not written yet: ${self} ${after} ${limit}`);
  }
  /** Those with jobs that are to be delivered, in the order of their places. */
  undelivered(): Generator<TxnState, void, void> {
    throw new Error("not written yet");
  }
  /** Whether the event makes sense here. */
  fits(event: TxnEvent): boolean {
    throw new Error(`not written yet: ${event.kind}`);
  }
  /** One that fits. */
  evolve(event: TxnEvent, place: number): void {
    throw new Error(`not written yet: ${event.kind} ${place}`);
  }
  snapshot(): SnapshotData {
    throw new Error("not written yet");
  }
  restore(bytes: Uint8Array): void {
    throw new Error(`not written yet: ${bytes.length}`);
  }
}
