// The door of the ports: interfaces only, no code.

export type { Backend, Beat, Claim, Grant, Hold, LossReason, Seat } from "./backends/backend.ts";
export type { Clock, Timer } from "./clock.ts";
export type { Digest } from "./digest.ts";
export type { Disk, DiskFile } from "./disk.ts";
export type {
  CheckOptions,
  Elector,
  ElectorStats,
  EndReason,
  HistogramSnapshot,
  Leader,
  LeaderGate,
  LeadOptions,
  Term,
  Transition,
} from "./elector.ts";
export type { LogFields, Logger } from "./logger.ts";
export type { StateMachine } from "./state-machine.ts";
export type { Wire, WireHandlers } from "./peers/wire.ts";
