// The door: a node's two processes, started, stopped and replaced by role.

export { SupervisedClearance, type SupervisedClearanceOptions } from "./clearance.ts";
export type { FromController } from "./messages.ts";
export { Supervisor, type SupervisorOptions } from "./supervisor.ts";
