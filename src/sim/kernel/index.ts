// The door of the simulator's kernel: a deterministic world of clocks, networks, disks and processes.

export { type DiskModel, type FileInfo, type Region, SimDisk } from "./disk.ts";
export { type Inode } from "./disk-inode.ts";
export type { Owner } from "./event-heap.ts";
export { apply, type Fault } from "./faults.ts";
export { type FaultCount, Injector } from "./injector.ts";
export { type LinkModel } from "./link.ts";
export { WALL_START_MS } from "./process-clock.ts";
export { type DrawnKind, randomPlan } from "./plan.ts";
export { type RunEnd, type TraceSink } from "./scheduler.ts";
export { shrink } from "./shrink.ts";
export { type Boot, World } from "./world.ts";
