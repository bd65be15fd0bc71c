// The door of the simulated sites that spread their lines.

export { SpreadCampaign } from "./campaign.ts";
export type { SpreadLimits } from "./knobs.ts";
export type { SpreadFault } from "./plan.ts";
export { runSpreadSeed, type SpreadRunOptions, type SpreadRunResult } from "./run.ts";
