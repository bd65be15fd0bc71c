// The door of the simulator's kernel: a deterministic world of clocks, networks, disks and processes, and the frame of a run and
// of a campaign of many.

export { Campaign } from "./campaign.ts";
export { type DiskModel, type FileInfo, type Region, SimDisk } from "./disk.ts";
export { type Inode } from "./disk-inode.ts";
export type { Owner, Scheduled } from "./event-heap.ts";
export { apply, type Fault, strike } from "./faults.ts";
export type { Planned } from "./injector.ts";
export { type LinkModel } from "./link.ts";
export { WALL_START_MS } from "./process-clock.ts";
export { type DrawnKind, randomPlan, weighted } from "./plan.ts";
export { reached } from "./probes.ts";
export { noEffect, playScene, type SeedOptions, type SeedResult } from "./run.ts";
export { type RunEnd } from "./scheduler.ts";
export { shrink } from "./shrink.ts";
export { type Boot, World } from "./world.ts";
