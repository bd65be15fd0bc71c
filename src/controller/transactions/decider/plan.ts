// What is to be done for one transaction, and under which header: the same wherever it is asked for, and however often.

import { TXN_TIMEOUT_MS } from "../../../core/kit/limits.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { homeOf } from "../../../core/txn/home.ts";
import type { BackendHash, TxnHeader, TxnOperation, TxnRequire } from "../../../core/txn/model.ts";
import { operationsBytes } from "../../../core/txn/wire-operations.ts";
import type { TxnBody, TxnDecide } from "../../../ports/transactions.ts";

export interface TxnPlan {
  readonly header: TxnHeader;
  /** At home. */
  readonly require: readonly TxnRequire[];
  /** Those with operations but home, in order. */
  readonly others: readonly BackendHash[];
  /** In the order of the request; null: what was staged there. Of an island without any: none. */
  readonly operations: ReadonlyMap<BackendHash, readonly TxnOperation[] | null>;
  /** Of them all, as `operationsBytes` has it. */
  readonly bytes: number;
}

/** SHA-256 of all that a transaction is to do. */
export type DigestOf = (body: TxnBody, home: BackendHash) => string;

export function planOf(body: TxnBody, by: string, digestOf: DigestOf): TxnPlan {
  const home = homeOf(body);
  if (home === null)
    throw new TenureError("missing_participants", "The transaction names no island: nothing could decide it.");
  const elsewhere = body.require.find(({ backendHash }) => backendHash !== home);
  if (elsewhere !== undefined)
    throw new TenureError(
      "invalid_require",
      `What a transaction requires is checked at its home ${home}, in the record that decides. The scope ${elsewhere.scope} is at ${elsewhere.backendHash}: make that the home, and require nothing elsewhere.`,
    );
  const operations = new Map(body.participants.map(({ backendHash, operations: all }) => [backendHash, all]));
  const participants = [...operations.keys()].toSorted();
  return {
    header: { id: body.id, home, participants, digest: digestOf(body, home), timeoutMs: timeOf(body), by },
    require: body.require.map(({ scope, epoch }) => ({ scope, epoch })),
    others: othersOf(home, participants),
    operations,
    bytes: body.bytes ?? operationsBytes(body.participants.flatMap((one) => one.operations)),
  };
}

/** Of staged operations: whoever decides does not know them. Whoever asks for the opposite means the same transaction, so the header has nothing else in it. */
export function stagedPlanOf({ id, home, participants }: TxnDecide, by: string, digestOf: DigestOf): TxnPlan {
  const operations = new Map(participants.map((island) => [island, null]));
  const sorted = [...operations.keys()].toSorted();
  const none = participants.map((backendHash) => ({ backendHash, operations: [] }));
  const digest = digestOf({ id, home, timeoutMs: null, require: [], participants: none }, home);
  return {
    header: { id, home, participants: sorted, digest, timeoutMs: TXN_TIMEOUT_MS, by },
    require: [],
    others: othersOf(home, sorted),
    operations,
    bytes: 0,
  };
}

function timeOf({ timeoutMs }: TxnBody): number {
  return timeoutMs ?? TXN_TIMEOUT_MS;
}

function othersOf(home: BackendHash, participants: readonly BackendHash[]): readonly BackendHash[] {
  return participants.filter((island) => island !== home);
}
