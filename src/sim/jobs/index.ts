// The door of the simulation of jobs.

export { JobsCampaign } from "./campaign.ts";
export type { JobsKnobs, JobsLimits } from "./knobs.ts";
export type { JobsFault } from "./faults/plan.ts";
export { COMMON_JOBS_PROBES } from "./probes.ts";
export { runJobsSeed, type JobsRunOptions, type JobsRunResult } from "./run.ts";
