// The door of the simulated transaction coordinators.

export { tcCampaign } from "./campaign.ts";
export type { TcLimits } from "./knobs.ts";
export type { TcFault } from "./plan.ts";
export { runTcSeed, type TcRunOptions, type TcRunResult } from "./run.ts";
