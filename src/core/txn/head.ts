// The leader's head of the transactions: the applied ones, and on top of them what this leader has appended (core/kit/keyed/head.ts).
//
// - Locks are not counted twice: one is in force while the transaction that owns it is prepared in the head. Of those that are appended and not
//   applied the keys are kept here; the others are the fold's.
// - The horizon is the applied one. An id above it that is unknown here was never known: nothing that is under way can forget it.

import { KeyedHead } from "../kit/keyed/head.ts";
import { type TxnEvent, txnIdOf } from "./events.ts";
import { raisedFence } from "./fence.ts";
import { reservedOf, type TxnsFold } from "./fold.ts";
import type { TcFence, TxnReserved, TxnState } from "./model.ts";
import { evolveTxn, locksOf, WEIGHT, weighTxn } from "./txn-state.ts";
import type { LockKey, TxnsReader } from "./view.ts";

export class TxnsHead<Batch> implements TxnsReader {
  readonly #applied: TxnsFold;
  readonly #head: KeyedHead<TxnState, Batch>;
  /** By value and by scope: who locks it, of what is appended. */
  readonly #values = new Map<string, string>();
  readonly #scopes = new Map<string, string>();
  #fence: { readonly fence: TcFence; readonly position: number } | null = null;

  constructor(applied: TxnsFold) {
    this.#applied = applied;
    this.#head = new KeyedHead((id) => applied.get(id), weighTxn);
  }

  get horizon(): string | null {
    return this.#applied.horizon;
  }

  get fence(): TcFence | null {
    return this.#fence?.fence ?? this.#applied.fence;
  }

  get staged(): number {
    return this.#applied.staged + this.#head.ahead[WEIGHT.staged]!;
  }

  get prepared(): number {
    return this.#applied.prepared + this.#head.ahead[WEIGHT.prepared]!;
  }

  get unsettled(): number {
    return this.#applied.unsettled + this.#head.ahead[WEIGHT.unsettled]!;
  }

  get bytes(): number {
    return this.#applied.bytes + this.#head.ahead[WEIGHT.bytes]!;
  }

  get reserved(): TxnReserved {
    const [applied, ahead] = [this.#applied.reserved, reservedOf(this.#head.ahead)];
    return {
      values: applied.values + ahead.values,
      bytes: applied.bytes + ahead.bytes,
      scopes: applied.scopes + ahead.scopes,
    };
  }

  /** Of the applied ones: those that are under way are few. */
  settledFrom(ms: number): number {
    return this.#applied.settledFrom(ms);
  }

  get(id: string): TxnState | undefined {
    return this.#head.get(id);
  }

  lockedBy(key: LockKey): string | null {
    const appended = "value" in key ? this.#values.get(key.value) : this.#scopes.get(key.scope);
    for (const id of [appended, this.#applied.lockedBy(key)])
      if (id !== undefined && id !== null && this.get(id)?.phase === "prepared") return id;
    return null;
  }

  underWay(id: string): Batch | null {
    return this.#head.underWay(id);
  }

  push(event: TxnEvent, place: number, position: number, batch: Batch): void {
    if ("fence" in event && event.fence !== null)
      this.#fence = { fence: raisedFence(this.fence, event.fence), position };
    if (event.kind === "txn-fence") return;
    const id = txnIdOf(event);
    this.#head.push(id, evolveTxn(this.get(id), event, place), position, batch);
    if (event.kind !== "txn-prepared") return;
    for (const key of locksOf(event.operations)) {
      if ("value" in key) this.#values.set(key.value, id);
      else this.#scopes.set(key.scope, id);
    }
  }

  applied(event: TxnEvent, position: number): void {
    if (this.#fence !== null && this.#fence.position <= position) this.#fence = null;
    if (event.kind === "txn-fence") return;
    const id = txnIdOf(event);
    this.#head.applied(id, position);
    if (event.kind !== "txn-prepared") return;
    for (const key of locksOf(event.operations)) {
      if ("value" in key) forget(this.#values, key.value, id);
      else forget(this.#scopes, key.scope, id);
    }
  }

  recount(): void {
    this.#head.recount();
  }

  clear(): void {
    this.#head.clear();
    this.#values.clear();
    this.#scopes.clear();
    this.#fence = null;
  }
}

/** The next one may lock it already. */
function forget(locks: Map<string, string>, key: string, id: string): void {
  if (locks.get(key) === id) locks.delete(key);
}
