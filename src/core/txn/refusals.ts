// Why a call is refused, whatever it is about: the age of its id, what is open already, what is known under the id.

import { TXN_AGE_MS_MAX, TXN_AHEAD_MS_MAX } from "../kit/limits.ts";
import { createdMs } from "./id.ts";
import { TXNS_AHEAD_MAX, TXNS_BYTES_MAX, TXNS_OPEN_MAX } from "./limits.ts";
import type { BackendHash, TxnOperation, TxnReason, TxnState } from "./model.ts";
import type { Refusal } from "./operations.ts";
import { operationsBytes } from "./txn-state.ts";
import type { TxnsView } from "./view.ts";

/** Of one that is unknown here. */
export function ageProblem(view: TxnsView, id: string, atMs: number): Refusal | null {
  return horizonProblem(view, id) ?? clockProblem(id, atMs);
}

/** By this leader's clock. */
export function clockProblem(id: string, atMs: number): Refusal | null {
  const madeMs = createdMs(id);
  if (madeMs < atMs - TXN_AGE_MS_MAX)
    return { code: "txn_expired", message: `Transaction ${id} was made more than 12 hours ago. Make a new one.` };
  if (madeMs <= atMs + TXN_AHEAD_MS_MAX) return null;
  const message = `By the id, transaction ${id} is made more than ${TXN_AHEAD_MS_MAX / 1_000} s ahead of this island's clock. Set the clocks.`;
  return { code: "invalid_txn_id", message };
}

export function horizonProblem(view: TxnsView, id: string): Refusal | null {
  if (!isForgotten(view, id)) return null;
  const message = `This island has forgotten transactions as late as ${id}, and can't tell whether it was decided. Read what it was to change before you make a new one.`;
  return { code: "txn_expired", message };
}

/** It would be written down, and there are too many of these: whoever asks learns nothing of it, because by another clock it may be fine. */
export function aheadProblem(view: TxnsView, id: string, { atMs }: { readonly atMs: number }): Refusal | null {
  const fromMs = atMs + TXN_AHEAD_MS_MAX;
  if (createdMs(id) <= fromMs || view.txns.settledFrom(fromMs + 1) < TXNS_AHEAD_MAX) return null;
  return overloaded(
    `${TXNS_AHEAD_MAX} rollbacks of ids that are made in the future are kept: check the clocks of clients`,
  );
}

export function isForgotten({ txns }: TxnsView, id: string): boolean {
  return txns.horizon !== null && id <= txns.horizon;
}

export function openProblem(
  view: TxnsView,
  operations: readonly TxnOperation[],
  state: TxnState | undefined,
): Refusal | null {
  const { prepared, unsettled } = view.txns;
  if (prepared + unsettled >= TXNS_OPEN_MAX)
    return overloaded(`${TXNS_OPEN_MAX} transactions are prepared, or committed and not done everywhere`);
  return bytesProblem(view, operations, state);
}

/** `state`: where they are staged, they are counted already. */
export function bytesProblem(
  view: TxnsView,
  operations: readonly TxnOperation[],
  state: TxnState | undefined,
): Refusal | null {
  const counted = state === undefined ? 0 : operationsBytes(state.operations);
  if (view.txns.bytes - counted + operationsBytes(operations) <= TXNS_BYTES_MAX) return null;
  return overloaded(`transactions that are not done have ${TXNS_BYTES_MAX} bytes`);
}

export function overloaded(why: string): Refusal {
  return { code: "OVERLOADED", message: `At this island ${why}. Retry in a moment.` };
}

export function conflict(id: string): Refusal {
  return { code: "txn_conflict", message: `Under the id ${id} this island knows another transaction. Make a new id.` };
}

export function notStaged(id: string): Refusal {
  return { code: "txn_not_found", message: `No operations of transaction ${id} are staged at this island.` };
}

export function notHere(id: string, self: BackendHash): Refusal {
  return { code: "txn_backend_mismatch", message: `Transaction ${id} has no part at this island, which is ${self}.` };
}

export function undecided(id: string): TxnReason {
  const message = `Transaction ${id} was not decided before one of its islands asked: it is rolled back.`;
  return { code: "txn_fanout_failed", message, backendHash: null };
}
