// The door of the health core: one node's judgement of itself and of the cluster around it.

export { Clocks, type ClockView, isPossible } from "./clocks.ts";
export { Health } from "./health.ts";
export { certificatesProblem } from "./machine-alerts.ts";
export type {
  Beacon,
  CertificateEnd,
  ChainPoint,
  HealthOutput,
  KeptElection,
  Moment,
  Observation,
  SigningHeld,
} from "./outputs.ts";
