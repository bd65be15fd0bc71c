// The door of the transactions: calls become events, events become state.

export { decideRecover, decideTxn } from "./decide.ts";
export { txnDigestInput } from "./digest.ts";
export { readTxnEvent, writeTxnEvent } from "./codec/records.ts";
export { type TxnEvent, txnIdOf } from "./events.ts";
export { TxnsFold } from "./fold.ts";
export { TxnsHead } from "./head.ts";
export { homeOf } from "./home.ts";
export { createdMs, isTxnId } from "./id.ts";
export type * from "./model.ts";
export { isToReport, locksOf, outboxBytes, waitsFor } from "./txn-state.ts";
export type { LockKey, TxnsView } from "./view.ts";
export type { TxnChange, TxnContext, TxnDecision } from "./outcome.ts";
export {
  decideDelivered,
  decideDropped,
  decideForce,
  decideOutcome,
  decideSettledKnown,
  type TxnChanges,
} from "./own.ts";
