// The door of the transactions: calls become events, events become state.

export {
  decideDelivered,
  decideDropped,
  decideForce,
  decideOutcome,
  decideRecover,
  decideSettledKnown,
  decideTxn,
  type RecoverDecision,
  type TxnChange,
  type TxnChanges,
  type TxnContext,
  type TxnDecision,
} from "./decide.ts";
export { type TxnContent, txnDigestInput } from "./digest.ts";
export { readTxnEvent, writeTxnEvent } from "./codec/records.ts";
export { type TxnEvent, txnIdOf } from "./events.ts";
export { TxnsFold } from "./fold.ts";
export { TxnsHead } from "./head.ts";
export { type HomeChoice, homeOf, isBackendHash } from "./home.ts";
export { createdMs, isTxnId, newTxnId } from "./id.ts";
export type * from "./model.ts";
export { isToReport, locksOf, outboxBytes, waitsFor } from "./txn-state.ts";
export type { LockKey, TxnsReader, TxnView } from "./view.ts";
