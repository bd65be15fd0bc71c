// The door of the ports: interfaces only, no code.

export type { Clock, Timer } from "./clock.ts";
export type { Digest } from "./digest.ts";
export type { Disk, DiskFile } from "./disk.ts";
export type { StateMachine } from "./state-machine.ts";
export type { Wire, WireHandlers } from "./wire.ts";
