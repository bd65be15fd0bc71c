// The door of trust: when an instance may act, and when its term is over.

export { type Effect, type Input, Machine, type MachineOptions } from "./machine.ts";
export type { EndReason, Transition } from "./transitions.ts";
export { type Deadline, deadlineOf, type Instant, latest, remainingMs, type Timing, trustMs } from "./window.ts";
