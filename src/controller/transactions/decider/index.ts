// The door of the coordinator of transactions.

export { Decider } from "./decider.ts";
