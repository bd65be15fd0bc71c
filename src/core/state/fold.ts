// Scopes, values and transactions, folded from one log: what is applied on this node. Equal on every node at the same position.
//
// Invariants:
// - A record changes all that it names, or nothing: one that can't be read, or of which a part does not fit, is counted.
// - One of a later format was applied by others: FORMAT_UNSUPPORTED is thrown, and the node must end before its state is another one.

import { TenureError } from "../kit/errors.ts";
import type { Fold, LogRecord } from "../../ports/log.ts";
import type { SnapshotData } from "../../ports/state-machine.ts";
import { epochAt, ScopesFold } from "../scopes/index.ts";
import { type LockKey, type TxnReserved, txnIdOf, TxnsFold, type TxnsView } from "../txn/index.ts";
import { ValuesFold } from "../values/index.ts";
import {
  decodeRecord,
  isOfScope,
  isOfTxn,
  isOfValue,
  RECORD_VERSION,
  type StateChange,
  type StateRecord,
} from "./records.ts";
import { restoreState, stateSnapshot } from "./snapshot.ts";

export class StateFold implements Fold, TxnsView {
  readonly counts = { malformed: 0, unfit: 0 };
  readonly scopes: ScopesFold;
  readonly values = new ValuesFold();
  readonly txns = new TxnsFold();
  /** The last record that changed nothing. */
  #unfitAt = 0;

  constructor(scopesMax?: number) {
    this.scopes = new ScopesFold(scopesMax);
  }

  /** Of a grant, or of a value's content, at this place in the log. */
  placeOf(position: number): number {
    return epochAt(this.scopes.epochBase, position);
  }

  /** As the leader's head has it (head.ts). */
  heldEpoch(scope: string): number | null {
    const epoch = this.scopes.get(scope)?.hold?.epoch ?? null;
    return epoch !== null && epoch > this.scopes.epochBase ? epoch : null;
  }

  /** The transaction that locks it; null: none. */
  lockedBy(key: LockKey): string | null {
    return this.txns.lockedBy(key);
  }

  /** Room that prepared transactions keep. */
  get reserved(): TxnReserved {
    return this.txns.reserved;
  }

  apply({ position, data }: LogRecord): void {
    const record = decodeRecord(data);
    if (record.kind === "malformed") this.counts.malformed++;
    else if (record.kind === "later-version") throw laterVersion(record.version);
    else if (!this.#evolve(record.changes, this.placeOf(position))) {
      this.counts.unfit++;
      this.#unfitAt = position;
    }
  }

  /** Of the record that was applied last: whether it changed what it names. */
  hasTaken(position: number): boolean {
    return position !== this.#unfitAt;
  }

  snapshot(): SnapshotData {
    return stateSnapshot(this);
  }

  restore(data: Uint8Array): void {
    restoreState(this, data);
  }

  #evolve(changes: StateRecord, place: number): boolean {
    if (hasTwins(changes)) return false;
    if (!this.#fit(changes, place)) return false;
    for (const one of changes) {
      if (isOfValue(one)) this.values.evolve(one, place);
      else if (isOfTxn(one)) this.txns.evolve(one, place);
      else this.scopes.evolve(one, place);
    }
    return true;
  }

  /** Each of them alone, but for the scopes that may be held: what ends makes room for what is granted after it. */
  #fit(changes: StateRecord, place: number): boolean {
    let { room } = this.scopes;
    return changes.every((change) => {
      if (isOfValue(change)) return this.values.fits(change);
      if (isOfTxn(change)) return this.txns.fits(change);
      const fits = this.scopes.fits(change, place, room);
      if (change.kind !== "resign-requested") room += change.kind === "granted" ? -1 : 1;
      return fits;
    });
  }
}

/** Two changes of one thing: each was looked at as if it were alone. */
function hasTwins(changes: StateRecord): boolean {
  if (changes.length === 1) return false;
  // What a transaction locks, keeps and delivers was looked at for one: a record stages, prepares or decides one transaction.
  if (changes.filter((one) => "header" in one).length > 1) return true;
  return new Set(changes.map(keyOf)).size < changes.length;
}

function keyOf(change: StateChange): string {
  if (isOfValue(change)) return `value ${change.name}`;
  if (isOfScope(change)) return `scope ${change.scope}`;
  return change.kind === "txn-fence" ? "fence" : `txn ${txnIdOf(change)}`;
}

function laterVersion(version: number): TenureError {
  return new TenureError(
    "FORMAT_UNSUPPORTED",
    `a record of scopes, values and transactions has format ${version}, and this node reads ${RECORD_VERSION} at most. It stops, because others have applied it: start the newer version of Tenure here too.`,
  );
}
