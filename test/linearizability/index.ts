// The door to the linearizability checker.

export { checkHistory, describeOperation } from "./checker.ts";
export { History, type Ask } from "./history.ts";
