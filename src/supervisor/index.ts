// The door: a node's two processes, started, stopped and replaced by role.

export { type Cleared, type FromController, readCleared } from "./messages.ts";
export { Supervisor, type SupervisorOptions } from "./supervisor.ts";
