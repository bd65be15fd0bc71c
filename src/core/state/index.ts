// The door of the state log: records of scopes, values and transactions, what they are folded into, and the leader's head.

export { StateFold } from "./fold.ts";
export { StateHead, type StateKey } from "./head.ts";
export {
  decodeRecord,
  encodeRecord,
  isOfScope,
  isOfTxn,
  isOfValue,
  type StateChange,
  type StateRecord,
} from "./records.ts";
export { withNewLine } from "./snapshot.ts";
