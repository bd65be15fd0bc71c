// The door of the simulated transactions over islands.

export { txnCampaign } from "./campaign.ts";
export type { TxnKnobs, TxnLimits } from "./knobs.ts";
export type { TxnFault } from "./plan.ts";
export { runTxnSeed, type TxnRunOptions, type TxnRunResult } from "./run.ts";
