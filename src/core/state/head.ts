// The leader's head: scopes, values and transactions as they will be when all that this leader has appended is applied.

import { assertNever } from "../kit/assert.ts";
import { ScopesHead } from "../scopes/index.ts";
import { type LockKey, type TxnReserved, TxnsHead, type TxnsView } from "../txn/index.ts";
import { ValuesHead } from "../values/index.ts";
import type { StateFold } from "./fold.ts";
import { isOfTxn, isOfValue, type StateChange } from "./records.ts";

/** One scope, one value, or one transaction. */
export type StateKey = { readonly scope: string } | { readonly value: string } | { readonly txn: string };

export class StateHead<Batch> implements TxnsView {
  readonly scopes: ScopesHead<Batch>;
  readonly values: ValuesHead<Batch>;
  readonly txns: TxnsHead<Batch>;
  readonly #applied: StateFold;

  constructor(applied: StateFold) {
    this.#applied = applied;
    this.scopes = new ScopesHead(applied.scopes);
    this.values = new ValuesHead(applied.values);
    this.txns = new TxnsHead(applied.txns);
  }

  /** Of a grant, or of a value's content, at this place in the log. */
  placeOf(position: number): number {
    return this.#applied.placeOf(position);
  }

  /**
   * An epoch of before a restore or a recovery fences nothing: in what was lost it may have ended, and others may have been granted and have
   * written. (The hold is there still, so that nobody else leads before its lease is over, and nobody can renew it.)
   */
  heldEpoch(scope: string): number | null {
    const epoch = this.scopes.get(scope)?.hold?.epoch ?? null;
    return epoch !== null && epoch > this.#applied.scopes.epochBase ? epoch : null;
  }

  /** The transaction that locks it; null: none. */
  lockedBy(key: LockKey): string | null {
    return this.txns.lockedBy(key);
  }

  /** Room that prepared transactions keep. */
  get reserved(): TxnReserved {
    return this.txns.reserved;
  }

  /** The append on which it rests as it is now; null: it is committed. */
  underWay(key: StateKey): Batch | null {
    if ("scope" in key) return this.scopes.underWay(key.scope);
    if ("value" in key) return this.values.underWay(key.value);
    if ("txn" in key) return this.txns.underWay(key.txn);
    return assertNever(key, "key of the state");
  }

  /** A change that is being appended, at this position. */
  push(change: StateChange, position: number, batch: Batch): void {
    if (isOfValue(change)) this.values.push(change, this.placeOf(position), position, batch);
    else if (isOfTxn(change)) this.txns.push(change, this.placeOf(position), position, batch);
    else this.scopes.push(change, position, batch);
  }

  /** The record at this position is applied: to be said in the turn in which it is. */
  applied(change: StateChange, position: number): void {
    if (isOfValue(change)) this.values.applied(change.name, position);
    else if (isOfTxn(change)) this.txns.applied(change, position);
    else this.scopes.applied(change.scope, position);
  }

  /** The applied state has jumped. */
  recount(): void {
    this.scopes.recount();
    this.values.recount();
    this.txns.recount();
  }

  /** Appends were given up: what is left is pushed again. */
  clear(): void {
    this.scopes.clear();
    this.values.clear();
    this.txns.clear();
  }
}
