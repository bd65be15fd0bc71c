// A planted mistake: a disk that calls durable what it only holds in memory, and writes it a moment later. When the
// process is killed, what was held is gone, as a power loss would take what was never synced. A cluster on such
// disks acknowledges before the fsync, and a blackout of all nodes must show it.

import type { Disk, DiskFile } from "../../src/ports/disk.ts";

export function lyingDisk(disk: Disk, lieMs: number): Disk {
  const held = new Map<string, HeldFile>();
  const writeOut = async (name: string): Promise<void> => held.get(name)?.writeOut();
  const keep = (file: DiskFile): DiskFile => {
    const lying = new HeldFile(file, lieMs);
    held.set(file.name, lying);
    return lying;
  };
  return {
    list: (label) => disk.list(label),
    read: async (name, label) => {
      await writeOut(name);
      return disk.read(name, label);
    },
    sizeBytes: (name, label) => disk.sizeBytes(name, label),
    create: async (name, label) => keep(await disk.create(name, label)),
    open: async (name, label) => {
      await writeOut(name);
      return keep(await disk.open(name, label));
    },
    rename: async (from, to, label) => {
      await writeOut(from);
      await disk.rename(from, to, label);
    },
    remove: (name, label) => disk.remove(name, label),
    syncDirectory: (label) => disk.syncDirectory(label),
  };
}

class HeldFile implements DiskFile {
  readonly name: string;
  readonly #file: DiskFile;
  readonly #lieMs: number;
  #held: { readonly bytes: Uint8Array; readonly label: string }[] = [];
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(file: DiskFile, lieMs: number) {
    this.name = file.name;
    this.#file = file;
    this.#lieMs = lieMs;
  }

  append(bytes: Uint8Array, label: string): Promise<void> {
    // The caller may use its memory again.
    this.#held.push({ bytes: bytes.slice(), label });
    this.#timer ??= setTimeout(() => void this.writeOut(), this.#lieMs);
    return Promise.resolve();
  }

  /** What it holds is not in the file yet, so there is no end to reserve after. */
  reserve(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async truncate(sizeBytes: number, label: string): Promise<void> {
    await this.writeOut();
    await this.#file.truncate(sizeBytes, label);
  }

  /** The lie. */
  fdatasync(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    await this.writeOut();
    await this.#file.close();
  }

  writeOut(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const held = this.#held;
    this.#held = [];
    this.#writing = this.#writing.then(async () => {
      for (const { bytes, label } of held) await this.#file.append(bytes, label);
      if (held.length > 0) await this.#file.fdatasync("lying");
    });
    return this.#writing;
  }
}
