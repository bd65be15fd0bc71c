// The door of the simulated electors.

export { electorCampaign } from "./campaign.ts";
export type { ElectorLimits } from "./knobs.ts";
export type { ElectorFault } from "./plan.ts";
export { type ElectorRunOptions, type ElectorRunResult, runElectorSeed } from "./run.ts";
