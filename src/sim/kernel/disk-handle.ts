// The Disk port of one life. An operation takes effect in the page cache when it is called, and completes as an
// event of its process: later by its latency, in order within a file, not while the disk hangs, held while the
// process is paused, never once it is dead.
// Invariant: a sync reaches the platter when the device completes it, whether or not the process can hear of it.

import { InvariantError } from "../../core/kit/assert.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import type { DiskOperation, SimDisk } from "./disk.ts";
import { DiskError } from "./disk-faults.ts";
import type { Inode } from "./disk-inode.ts";
import type { Life } from "./process.ts";

interface Lane {
  laneMs: number;
}

/** What the device does at completion; a DiskError is what the caller gets instead of a value. */
type Effect<T> = () => T | DiskError;

export class DiskHandle implements Disk {
  readonly #disk: SimDisk;
  readonly #life: Life;

  constructor(disk: SimDisk, life: Life) {
    this.#disk = disk;
    this.#life = life;
  }

  list(label: string): Promise<string[]> {
    return this.#submit("list", label, this.#directory, (failure) => () => failure ?? this.#directory.names());
  }

  read(name: string, label: string): Promise<Uint8Array> {
    return this.#submit("read", label, this.#directory.find(name) ?? this.#directory, (failure) => {
      return () => failure ?? this.#directory.find(name)?.content() ?? missing(name);
    });
  }

  async sizeBytes(name: string, label: string): Promise<number> {
    return (await this.read(name, label)).length;
  }

  create(name: string, label: string): Promise<DiskFile> {
    return this.#submit("create", label, this.#directory, (failure) => {
      if (failure !== undefined) return () => failure;
      const completed = this.#directory.find(name)?.truncate(0) ?? this.#directory.create(name);
      const inode = this.#directory.find(name) as Inode;
      return () => {
        completed();
        return this.#file(name, inode);
      };
    });
  }

  open(name: string, label: string): Promise<DiskFile> {
    return this.#submit("open", label, this.#directory, (failure) => {
      const inode = this.#directory.find(name);
      if (failure === undefined) inode?.open();
      return () => failure ?? (inode === undefined ? missing(name) : this.#file(name, inode));
    });
  }

  rename(from: string, to: string, label: string): Promise<void> {
    return this.#submit("rename", label, this.#directory, (failure) => {
      if (failure !== undefined) return () => failure;
      if (this.#directory.find(from) === undefined) return () => missing(from);
      return this.#directory.rename(from, to);
    });
  }

  remove(name: string, label: string): Promise<void> {
    return this.#submit("remove", label, this.#directory, (failure) => {
      if (failure !== undefined) return () => failure;
      if (this.#directory.find(name) === undefined) return () => missing(name);
      return this.#directory.remove(name);
    });
  }

  syncDirectory(label: string): Promise<void> {
    return this.#submit("syncDirectory", label, this.#directory, (failure) => {
      const point = this.#directory.syncPoint();
      return () => failure ?? this.#directory.sync(point);
    });
  }

  get #directory() {
    return this.#disk.directory;
  }

  #file(name: string, inode: Inode): DiskFile {
    let open = true;
    const submit = <T>(operation: DiskOperation, label: string, begin: (failure?: DiskError) => Effect<T>) => {
      if (open) return this.#submit(operation, label, inode, begin);
      const misuse = new InvariantError("a closed file is not used", `${operation} of ${name} (${label})`);
      return Promise.reject<T>(misuse);
    };
    return {
      name,
      append: (bytes, label) => submit("append", label, (failure) => this.#append(inode, bytes, failure)),
      reserve: (sizeBytes, label) => submit("reserve", label, (failure) => this.#reserve(inode, sizeBytes, failure)),
      truncate: (sizeBytes, label) =>
        submit("truncate", label, (failure) => (failure === undefined ? inode.truncate(sizeBytes) : () => failure)),
      fdatasync: (label) =>
        submit("fdatasync", label, (failure) => {
          const point = inode.syncPoint();
          if (failure === undefined) return () => inode.sync(point);
          inode.abandon(point);
          return () => failure;
        }),
      close: () => {
        open = false;
        return Promise.resolve();
      },
    };
  }

  /** A write that meets a full disk may have got some of its bytes down. */
  #append(inode: Inode, bytes: Uint8Array, failure: DiskError | undefined): Effect<void> {
    this.#disk.scheduler.traceBytes(bytes);
    if (failure === undefined) return inode.append(bytes);
    const written = this.#disk.random.chance(0.5) ? this.#disk.random.below(bytes.length + 1) : 0;
    const completed = inode.append(bytes.subarray(0, written));
    return () => {
      completed();
      return failure;
    };
  }

  /** No room is no failure; a part of the zeros may have found some. */
  #reserve(inode: Inode, sizeBytes: number, failure: DiskError | undefined): Effect<boolean> {
    if (failure !== undefined && failure.code !== "ENOSPC") return () => failure;
    const missingBytes = Math.max(0, sizeBytes - inode.sizeBytes);
    const foundBytes = failure === undefined ? missingBytes : this.#disk.random.below(missingBytes + 1);
    const completed = inode.reserve(inode.sizeBytes + foundBytes);
    return () => {
      completed();
      return failure === undefined;
    };
  }

  #submit<T>(
    operation: DiskOperation,
    label: string,
    lane: Lane,
    begin: (failure: DiskError | undefined) => Effect<T>,
  ): Promise<T> {
    const disk = this.#disk;
    const life = this.#life;
    if (!life.alive) return new Promise(() => undefined);
    disk.counts[operation]++;
    disk.scheduler.trace(operation, label);
    const failure = disk.faults.meet(operation, label);
    if (failure !== undefined) {
      disk.counts.failed++;
      disk.scheduler.narrate(life.process.name, () => `disk: ${failure.message}`);
    }
    const effect = begin(failure);
    lane.laneMs = Math.max(disk.scheduler.nowMs + disk.latencyMs(operation), lane.laneMs);
    return new Promise<T>((resolve, reject) => {
      const complete = (): void => {
        if (!life.alive) return;
        if (disk.faults.hung) {
          disk.counts.parked++;
          disk.faults.park(complete);
          return;
        }
        const value = effect();
        life.deliver(() => (value instanceof DiskError ? reject(value) : resolve(value)));
      };
      disk.scheduler.schedule(lane.laneMs, life.process.owner, complete);
    });
  }
}

function missing(name: string): DiskError {
  return new DiskError("ENOENT", `no such file: ${name}`);
}
