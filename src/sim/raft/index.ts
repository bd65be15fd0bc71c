// The door of the simulated Raft cluster.

export { raftCampaign } from "./campaign.ts";
export type { KnobLimits } from "./knobs.ts";
export type { RaftFault } from "./plan.ts";
export { runSeed, type RunOptions, type RunResult } from "./run.ts";
export { DiskWitness } from "./disk-witness.ts";
