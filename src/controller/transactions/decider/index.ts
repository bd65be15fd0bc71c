// The door of the coordinator of transactions.

export { Decider, type DeciderOptions } from "./decider.ts";
export { NotTheCoordinator } from "./refusals.ts";
