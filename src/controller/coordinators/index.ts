// The door of the transaction coordinators.

export type { CoordinatorNews } from "./context.ts";
export { Coordinator } from "./coordinator.ts";
