// The door: a node's two processes, started, stopped and replaced by role.

export { SupervisedClearance, workerName } from "./clearance.ts";
export type { FromController } from "./messages.ts";
export { Supervisor } from "./supervisor.ts";
