// The door of the transaction coordinators.

export type { CoordinatorNews, CoordinatorWork } from "./context.ts";
export { Coordinator } from "./coordinator.ts";
