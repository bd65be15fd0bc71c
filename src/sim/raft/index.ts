// The door of the simulated Raft cluster.

export { Campaign, type CampaignSummary } from "./campaign.ts";
export type { KnobLimits } from "./knobs.ts";
export { PROBES, type Probe, type ProbeCounts } from "./probes.ts";
export type { RaftFault } from "./plan.ts";
export { runSeed, type RunOptions, type RunResult } from "./run.ts";
export { DiskWitness } from "./disk-witness.ts";
