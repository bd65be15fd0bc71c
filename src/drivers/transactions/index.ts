// The door to other islands.

export { HttpIslandCalls, type HttpIslandCallsOptions } from "./island-calls.ts";
export { httpTxnForward } from "./txn-forward.ts";
