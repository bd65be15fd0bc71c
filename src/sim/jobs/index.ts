// The door of the simulation of jobs.

export { JobsCampaign } from "./campaign.ts";
export type { JobsLimits } from "./knobs.ts";
export type { JobsFault } from "./plan.ts";
export { runJobsSeed, type JobsRunResult } from "./run.ts";
