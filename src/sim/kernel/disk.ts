// The disk of one node id. The platter survives crashes of the process; a life gets a handle on it (`open`).
// Modes, independent of each other: slow (a factor on every latency), hung (nothing completes), full (appends
// fail), armed (the next operation that matches a failure is refused).
// Invariants: nothing is durable before a sync covers it; a crash loses, tears or keeps what is pending, and
// nothing else; corruption is put only where the caller allows it.

import type { Random } from "../../core/kit/random.ts";
import { Directory } from "./disk-directory.ts";
import { DiskHandle } from "./disk-handle.ts";
import { DiskFaults } from "./disk-faults.ts";
import { type Inode, TEARS, type Tear } from "./disk-inode.ts";
import type { Life } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";

/** Latencies are uniform between the two numbers. */
export interface DiskModel {
  readonly readMs: readonly [number, number];
  readonly writeMs: readonly [number, number];
  readonly syncMs: readonly [number, number];
}

export const FAST_DISK: DiskModel = { readMs: [0.02, 0.1], writeMs: [0.005, 0.02], syncMs: [0.2, 1.5] };

const LATENCY_CLASS = {
  list: "readMs",
  read: "readMs",
  create: "writeMs",
  open: "readMs",
  rename: "writeMs",
  remove: "writeMs",
  syncDirectory: "syncMs",
  append: "writeMs",
  reserve: "writeMs",
  truncate: "writeMs",
  fdatasync: "syncMs",
} as const satisfies Record<string, keyof DiskModel>;
export type DiskOperation = keyof typeof LATENCY_CLASS;
const OPERATIONS = Object.keys(LATENCY_CLASS) as DiskOperation[];

export interface FileInfo {
  readonly name: string;
  /** These two with what is reserved. */
  readonly sizeBytes: number;
  readonly durableBytes: number;
  /** Of the durable ones, after all that was ever appended. */
  readonly reservedBytes: number;
  /** Bytes below it were durable before the last sync that added some: later data testifies to them. */
  readonly durableBeforeBytes: number;
}

export interface Region {
  readonly fromByte: number;
  readonly toByte: number;
}

export interface CrashOutcome {
  /** Files that had unsynced writes, and directory operations that were not synced, when the process died. */
  readonly unsyncedFiles: number;
  readonly unsyncedNames: number;
}

export class SimDisk {
  readonly node: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly faults: DiskFaults;
  readonly counts = {
    ...(Object.fromEntries(OPERATIONS.map((operation) => [operation, 0])) as Record<DiskOperation, number>),
    failed: 0,
    slowed: 0,
    parked: 0,
    unsyncedFiles: 0,
    unsyncedNames: 0,
    corrupted: 0,
    wiped: 0,
  };
  readonly #model: DiskModel;
  #directory = new Directory();

  constructor(node: string, scheduler: Scheduler, random: Random, model: DiskModel = FAST_DISK) {
    this.node = node;
    this.scheduler = scheduler;
    this.random = random;
    this.faults = new DiskFaults(scheduler, scheduler.owner(`disk/${node}`));
    this.#model = model;
  }

  get directory(): Directory {
    return this.#directory;
  }

  /** The Disk port of one life. */
  open(life: Life): DiskHandle {
    return new DiskHandle(this, life);
  }

  files(): FileInfo[] {
    return this.#directory.names().map((name) => {
      const { sizeBytes, durableBytes, reservedBytes, durableBeforeBytes } = this.#directory.find(name) as Inode;
      return { name, sizeBytes, durableBytes, reservedBytes, durableBeforeBytes };
    });
  }

  /** What lies on the platter under a visible name. */
  durableContent(name: string): Uint8Array | undefined {
    return this.#directory.find(name)?.durableContent();
  }

  /** The process died. `random` decides for each file by itself. */
  crash(tear: Tear | "random"): CrashOutcome {
    const unsyncedNames = this.#directory.pendingOperations;
    const survivors = tear === "keep" ? unsyncedNames : tear === "vanish" ? 0 : this.random.below(unsyncedNames + 1);
    let unsyncedFiles = 0;
    for (const inode of this.#directory.crash(survivors)) {
      if (inode.pendingWrites > 0) unsyncedFiles++;
      inode.crash(tear === "random" ? this.random.pick(TEARS) : tear, this.random);
    }
    this.faults.forget();
    this.counts.unsyncedFiles += unsyncedFiles;
    this.counts.unsyncedNames += unsyncedNames;
    return { unsyncedFiles, unsyncedNames };
  }

  /**
   * Flips one bit of a durable byte in a region that `choose` allows, or takes back one sector of the append that it is
   * in, as a drive does that loses a write. Undefined where it allows none.
   */
  corrupt(
    random: Random,
    choose: (file: FileInfo) => Region | undefined,
  ): { name: string; offset: number } | undefined {
    const places = this.files().flatMap((file) => {
      const region = choose(file);
      if (region === undefined) return [];
      const toByte = Math.min(region.toByte, file.durableBytes);
      return region.fromByte < toByte ? [{ name: file.name, fromByte: region.fromByte, toByte }] : [];
    });
    if (places.length === 0) return undefined;
    const place = random.pick(places);
    const offset = place.fromByte + random.below(place.toByte - place.fromByte);
    const inode = this.#directory.find(place.name) as Inode;
    const mask = 1 << random.below(8);
    const isLost = random.chance(0.5) && inode.lose(offset);
    if (!isLost) inode.flip(offset, mask);
    this.counts.corrupted++;
    this.scheduler.trace("corrupt", place.name, offset);
    const what = isLost ? "a write was lost around" : "a bit is wrong in";
    this.scheduler.narrate(this.node, () => `disk: ${what} byte ${offset} of ${place.name}`);
    return { name: place.name, offset };
  }

  /** The disk was replaced by an empty one. The process that used it must be dead. */
  wipe(): void {
    this.#directory = new Directory();
    this.counts.wiped++;
    this.scheduler.trace("wipe", this.node);
    this.scheduler.narrate(this.node, () => "disk: replaced by an empty one");
  }

  /** What is on the platter now, as a copy of the whole disk has it. */
  image(): ReadonlyMap<string, Uint8Array> {
    const durable = [...this.#directory.durable].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return new Map(durable.map(([name, inode]) => [name, inode.durableContent()]));
  }

  /** The disk has these files and nothing else, as a backup brings them back. The process that used it must be dead. */
  restore(image: ReadonlyMap<string, Uint8Array>): void {
    this.#directory = new Directory();
    for (const [name, bytes] of image) {
      this.#directory.create(name)();
      const inode = this.#directory.find(name) as Inode;
      inode.append(bytes)();
      inode.sync(inode.syncPoint());
    }
    this.#directory.sync(this.#directory.syncPoint());
    this.scheduler.trace("restore", this.node);
    this.scheduler.narrate(this.node, () => "disk: restored from a copy");
  }

  /** Somebody removed these files. The process that used them must be dead. */
  lose(isLost: (name: string) => boolean): void {
    for (const name of this.#directory.names().filter(isLost)) this.#directory.remove(name)();
    this.#directory.sync(this.#directory.syncPoint());
    this.scheduler.trace("lose", this.node);
  }

  latencyMs(operation: DiskOperation): number {
    const [fromMs, toMs] = this.#model[LATENCY_CLASS[operation]];
    const latencyMs = this.random.between(fromMs, toMs);
    const factor = this.faults.slowFactor();
    if (factor === 1) return latencyMs;
    this.counts.slowed++;
    return latencyMs * factor;
  }
}
