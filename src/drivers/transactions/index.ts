// The door to other islands.

export { HttpIslandCalls } from "./island-calls.ts";
export { httpTxnForward } from "./txn-forward.ts";
