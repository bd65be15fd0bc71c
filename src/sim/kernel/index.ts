// The door of the simulator's kernel: a deterministic world of clocks, networks, disks and processes.

export type { Redial } from "./connection.ts";
export { type CrashOutcome, type DiskModel, FAST_DISK, type FileInfo, type Region, SimDisk } from "./disk.ts";
export { DiskError, type DiskErrorCode, type DiskFailure, type DiskOperation } from "./disk-faults.ts";
export { type Inode, SECTOR_BYTES, type Tear } from "./disk-inode.ts";
export type { Owner, Scheduled } from "./event-heap.ts";
export { apply, type Fault, type FaultContext, type FaultKind } from "./faults.ts";
export { type FaultCount, Injector, type Planned } from "./injector.ts";
export { damage, LAN, type Link, type LinkModel } from "./link.ts";
export { type NetworkHooks, SimNetwork } from "./network.ts";
export { WALL_START_MS } from "./process-clock.ts";
export { DRAWN_KINDS, type DrawnKind, type PlanOptions, randomPlan } from "./plan.ts";
export { type Life, type ProcessState, SimProcess } from "./process.ts";
export { type RunEnd, type RunLimits, Scheduler, type TraceSink } from "./scheduler.ts";
export { type Shrunk, shrink } from "./shrink.ts";
export { TraceHash } from "./trace-hash.ts";
export { type Boot, type CrashOptions, type Finding, type SimNode, World, type WorldOptions } from "./world.ts";
