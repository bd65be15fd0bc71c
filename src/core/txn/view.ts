// What decisions about transactions look at: the applied state, or the leader's head on top of it.

import type { ScopesReader } from "../scopes/index.ts";
import type { ValuesView } from "../values/index.ts";
import type { TcFence, TxnReserved, TxnState } from "./model.ts";

export type LockKey = { readonly value: string } | { readonly scope: string };

export interface TxnsReader {
  get(id: string): TxnState | undefined;
  /** The largest id that was ever forgotten: an unknown one up to here may have been known. */
  readonly horizon: string | null;
  readonly fence: TcFence | null;
  /** Outcomes that are kept, and nobody needs any more, of ids that are made then or later. */
  settledFrom(ms: number): number;
  /** How many there are. */
  readonly staged: number;
  readonly prepared: number;
  /** Committed, and needed still. */
  readonly unsettled: number;
  /** Of operations that are to be done, and of jobs that are to be delivered. */
  readonly bytes: number;
  /** Of all that are prepared. */
  readonly reserved: TxnReserved;
}

export interface TxnsView extends ValuesView {
  readonly scopes: ScopesReader;
  readonly txns: TxnsReader;
  readonly reserved: TxnReserved;
  /** The transaction that locks it; null: none. */
  lockedBy(key: LockKey): string | null;
}
