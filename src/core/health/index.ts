// The door of the health core: one node's judgement of itself and of the cluster around it.

export { Clocks, type ClockState, type ClockView, isPossible } from "./clocks.ts";
export { Health, type HealthOptions } from "./health.ts";
export type { Beacon, ChainPoint, HealthOutput, KeptElection, Moment, Observation } from "./outputs.ts";
