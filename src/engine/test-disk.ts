// A data directory in memory that lies as far as the Disk port allows, for the tests of the storage.
//
// It is harsher than file systems are: at a power loss each sector (16 bytes, so that small logs have many)
// and each unsynced directory operation survives or not by itself. After a kill -9 ("process") everything is still
// visible and still not durable, so that believing what was read, without syncing it, is found out.

import type { Random } from "../core/kit/random.ts";
import type { Disk, DiskFile } from "../ports/disk.ts";

const SECTOR_BYTES = 16;
const NOTHING = new Uint8Array(0);

/** What happens to unsynced data. */
export type CrashMode = "process" | "vanish" | "keep" | "random";
export const CRASH_MODES: readonly CrashMode[] = ["process", "vanish", "keep", "random"];

interface Inode {
  durable: Uint8Array;
  visible: Uint8Array;
  /** Bytes below this are the same in both. */
  sameBytes: number;
}

type NameOperation = (names: Map<string, Inode>) => void;

class CrashError extends Error {}

export class TestDisk implements Disk {
  /** Every call, as `label` or `label name`. */
  readonly calls: string[] = [];
  /** False: of what is reserved, only half finds room. */
  hasRoom = true;
  #durableNames = new Map<string, Inode>();
  #names = new Map<string, Inode>();
  #pendingNames: NameOperation[] = [];
  #crashAt = Infinity;
  #failures = new Map<string, Error>();

  /** The process dies in its `call`-th call from now on (1: the next one), and all later calls fail. */
  crashAt(call: number): void {
    this.#crashAt = this.calls.length + call;
  }

  /** The next call with this label is refused. */
  failNext(label: string, error: Error): void {
    this.#failures.set(label, error);
  }

  get isDead(): boolean {
    return this.calls.length >= this.#crashAt;
  }

  /** Decides what survives; afterwards the directory can be opened again. */
  restart(mode: CrashMode, random: Random): void {
    this.#crashAt = Infinity;
    if (mode === "process") return;
    const survives = (): boolean => mode === "keep" || (mode === "random" && random.chance(0.5));
    for (const operation of this.#pendingNames) if (survives()) operation(this.#durableNames);
    this.#pendingNames = [];
    this.#names = new Map(this.#durableNames);
    for (const inode of new Set(this.#names.values())) settle(inode, mode, random);
  }

  /** Visible bytes; changing them is rot. */
  bytesOf(name: string): Uint8Array {
    return this.#find(name).visible;
  }

  names(): string[] {
    return [...this.#names.keys()].toSorted();
  }

  /** Rot, or somebody's hand: becomes durable at once. */
  put(name: string, bytes: Uint8Array): void {
    const inode: Inode = { durable: bytes, visible: bytes, sameBytes: bytes.length };
    this.#names.set(name, inode);
    this.#durableNames.set(name, inode);
  }

  drop(name: string): void {
    this.#names.delete(name);
    this.#durableNames.delete(name);
  }

  /** An independent copy; everything in it is durable. */
  clone(): TestDisk {
    const copy = new TestDisk();
    for (const name of this.names()) copy.put(name, this.bytesOf(name).slice());
    return copy;
  }

  /** An independent copy, in which as much is durable as here. Only where no name waits to become durable. */
  fork(): TestDisk {
    if (this.#pendingNames.length > 0) throw new Error("names that are not durable yet can't be copied");
    const copy = new TestDisk();
    const inodes = new Map<Inode, Inode>();
    const copied = (inode: Inode): Inode => {
      const { durable, visible, sameBytes } = inode;
      const made = inodes.get(inode) ?? { durable: durable.slice(), visible: visible.slice(), sameBytes };
      inodes.set(inode, made);
      return made;
    };
    for (const [name, inode] of this.#names) copy.#names.set(name, copied(inode));
    for (const [name, inode] of this.#durableNames) copy.#durableNames.set(name, copied(inode));
    return copy;
  }

  async list(label: string): Promise<string[]> {
    this.#call(label);
    return [...this.#names.keys()];
  }

  async read(name: string, label: string): Promise<Uint8Array> {
    this.#call(label, name);
    return this.#find(name).visible.slice();
  }

  async sizeBytes(name: string, label: string): Promise<number> {
    this.#call(label, name);
    return this.#find(name).visible.length;
  }

  async create(name: string, label: string): Promise<DiskFile> {
    const existing = this.#names.get(name);
    const inode = existing ?? { durable: new Uint8Array(0), visible: new Uint8Array(0), sameBytes: 0 };
    if (existing === undefined) this.#rename((names) => void names.set(name, inode));
    change(inode, new Uint8Array(0), 0);
    this.#call(label, name);
    return this.#file(name, inode);
  }

  async open(name: string, label: string): Promise<DiskFile> {
    this.#call(label, name);
    return this.#file(name, this.#find(name));
  }

  async rename(from: string, to: string, label: string): Promise<void> {
    const inode = this.#find(from);
    this.#rename((names) => {
      names.delete(from);
      names.set(to, inode);
    });
    this.#call(label, to);
  }

  async remove(name: string, label: string): Promise<void> {
    this.#find(name);
    this.#rename((names) => void names.delete(name));
    this.#call(label, name);
  }

  async syncDirectory(label: string): Promise<void> {
    this.#call(label);
    this.#durableNames = new Map(this.#names);
    this.#pendingNames = [];
  }

  #file(name: string, inode: Inode): DiskFile {
    /** After it there is nothing, or reserved zeros. */
    let endBytes = inode.visible.length;
    return {
      name,
      append: async (bytes, label) => {
        change(inode, overwritten(inode.visible, endBytes, bytes), endBytes);
        endBytes += bytes.length;
        this.#call(label, name);
      },
      reserve: async (sizeBytes, label) => {
        const { visible } = inode;
        const toBytes = this.hasRoom ? sizeBytes : (visible.length + sizeBytes) >>> 1;
        if (toBytes > visible.length) change(inode, overwritten(visible, toBytes, NOTHING), visible.length);
        this.#call(label, name);
        return this.hasRoom;
      },
      truncate: async (sizeBytes, label) => {
        change(inode, inode.visible.slice(0, sizeBytes), sizeBytes);
        endBytes = sizeBytes;
        this.#call(label, name);
      },
      fdatasync: async (label) => {
        this.#call(label, name);
        inode.durable = inode.visible;
        inode.sameBytes = inode.visible.length;
      },
      close: () => Promise.resolve(),
    };
  }

  #find(name: string): Inode {
    const inode = this.#names.get(name);
    if (inode === undefined) throw Object.assign(new Error(`ENOENT: ${name}`), { code: "ENOENT" });
    return inode;
  }

  #rename(operation: NameOperation): void {
    if (this.isDead) return;
    operation(this.#names);
    this.#pendingNames.push(operation);
  }

  /** Writes have reached the page cache when this throws, syncs have not done anything yet. */
  #call(label: string, name = ""): void {
    if (this.isDead) throw new CrashError("the process is dead");
    this.calls.push(name === "" ? label : `${label} ${name}`);
    if (this.isDead) throw new CrashError(`crashed in ${label}`);
    const failure = this.#failures.get(label);
    this.#failures.delete(label);
    if (failure !== undefined) throw failure;
  }
}

/** A copy, as long as it has to be, with these bytes at that place. */
function overwritten(before: Uint8Array, at: number, bytes: Uint8Array): Uint8Array {
  const after = new Uint8Array(Math.max(before.length, at + bytes.length));
  after.set(before);
  after.set(bytes, at);
  return after;
}

function change(inode: Inode, visible: Uint8Array, fromBytes: number): void {
  inode.visible = visible;
  inode.sameBytes = Math.min(inode.sameBytes, fromBytes);
}

function settle(inode: Inode, mode: CrashMode, random: Random): void {
  if (mode === "keep") inode.durable = inode.visible;
  if (mode === "random" && (inode.sameBytes < inode.visible.length || inode.sameBytes < inode.durable.length)) {
    inode.durable = mix(inode, random);
  }
  inode.visible = inode.durable;
  inode.sameBytes = inode.durable.length;
}

/** Any size between the two, and each sector old, new or zeros. */
function mix({ durable, visible, sameBytes }: Inode, random: Random): Uint8Array {
  const sizes = [durable.length, visible.length];
  const sizeBytes = Math.round(random.between(Math.min(...sizes), Math.max(...sizes) + 0.999) - 0.4999);
  const mixed = new Uint8Array(random.chance(0.5) ? sizeBytes : visible.length);
  mixed.set(visible.subarray(0, Math.min(sameBytes, mixed.length)));
  for (let start = 0; start < mixed.length; start += SECTOR_BYTES) {
    const source = random.pick([visible, visible, durable, new Uint8Array(0)]);
    for (let at = Math.max(start, sameBytes); at < Math.min(start + SECTOR_BYTES, mixed.length); at++) {
      mixed[at] = source[at] ?? 0;
    }
  }
  return mixed;
}
