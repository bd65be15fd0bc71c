// The door: agents, over whatever carries their calls.

export { type Agent, JobAgent } from "./agent.ts";
export { Complaints } from "./complaints.ts";
export { ExecJobs, jobEnvironment } from "./exec.ts";
export type { DeskOptions, LeaseDesk } from "./desk.ts";
export { type AbortReason, JobAborted, JobError } from "./outcome.ts";
export {
  AGENT_SETTINGS,
  type AgentJob,
  type AgentSettings,
  checkSettings,
  type JobContext,
  type JobHandler,
  type JobHandlers,
  type JobKinds,
} from "./settings.ts";
