// The Disk port on the files of one directory. Names are plain names: a path that leads elsewhere is our mistake.
//
// The directory itself is open for as long as the disk is, so that an error in writing its entries is told to the next
// sync, whenever it happened (a descriptor hears only of errors since it was opened).

import { constants } from "node:fs";
import { join } from "node:path";
import { assert } from "../../core/kit/assert.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { DataFile, type FileHandles } from "./file.ts";
import type { DiskIo } from "./io.ts";
import { READ_PIECE_BYTES } from "./limits.ts";
import { LOCK_NAMES } from "./lock.ts";
import type { Space } from "./space.ts";

const FILE_MODE = 0o600;
const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;
/** Elsewhere O_DSYNC leaves bytes in the drive's cache, which fdatasync as libuv calls it does not (macOS). */
const HAS_SYNCED_WRITES = process.platform === "linux";

export class FilesDisk implements Disk {
  readonly #path: string;
  readonly #io: DiskIo;
  readonly #space: Space;
  readonly #directoryFd: number;
  readonly #files = new Set<DataFile>();
  #isClosed = false;

  constructor(path: string, directoryFd: number, io: DiskIo, space: Space) {
    this.#path = path;
    this.#directoryFd = directoryFd;
    this.#io = io;
    this.#space = space;
  }

  async list(): Promise<string[]> {
    this.#checkOpen();
    return (await this.#io.list(this.#path)).filter((name) => !LOCK_NAMES.includes(name));
  }

  async read(name: string): Promise<Uint8Array> {
    const fd = await this.#io.open(this.#pathOf(name), constants.O_RDONLY, FILE_MODE);
    try {
      const bytes = new Uint8Array(await this.#io.sizeBytes(fd));
      for (let at = 0; at < bytes.length;) {
        const readBytes = await this.#io.read(fd, bytes.subarray(at, at + READ_PIECE_BYTES), at);
        if (readBytes === 0) return bytes.subarray(0, at);
        at += readBytes;
      }
      return bytes;
    } finally {
      await this.#io.close(fd);
    }
  }

  async sizeBytes(name: string): Promise<number> {
    const fd = await this.#io.open(this.#pathOf(name), constants.O_RDONLY, FILE_MODE);
    try {
      return await this.#io.sizeBytes(fd);
    } finally {
      await this.#io.close(fd);
    }
  }

  async create(name: string): Promise<DiskFile> {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC;
    return this.#file(name, await this.#open(name, flags), 0);
  }

  async open(name: string): Promise<DiskFile> {
    const handles = await this.#open(name, constants.O_RDWR);
    return this.#file(name, handles, await this.#io.sizeBytes(handles.fd));
  }

  async rename(from: string, to: string): Promise<void> {
    const paths = [this.#pathOf(from), this.#pathOf(to)] as const;
    await this.#space.whenRoom(() => this.#io.rename(...paths));
  }

  async remove(name: string): Promise<void> {
    await this.#io.remove(this.#pathOf(name));
  }

  async syncDirectory(label: string): Promise<void> {
    this.#checkOpen();
    await this.#io.fsync(this.#directoryFd, label);
  }

  /** Files that are still open are released: what they had not synced was never said to be durable. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const file of this.#files) await file.abandon();
    await this.#io.close(this.#directoryFd);
  }

  async #open(name: string, flags: number): Promise<FileHandles> {
    const path = this.#pathOf(name);
    const fd = await this.#space.whenRoom(() => this.#io.open(path, flags, FILE_MODE));
    if (!HAS_SYNCED_WRITES) return { fd, syncedFd: null };
    try {
      return { fd, syncedFd: await this.#io.open(path, constants.O_RDWR | constants.O_DSYNC, FILE_MODE) };
    } catch (error) {
      await this.#io.close(fd);
      throw error;
    }
  }

  #file(name: string, handles: FileHandles, sizeBytes: number): DiskFile {
    const file = new DataFile(name, handles, sizeBytes, this.#io, this.#space, () => this.#files.delete(file));
    this.#files.add(file);
    return file;
  }

  #pathOf(name: string): string {
    this.#checkOpen();
    assert(NAME_PATTERN.test(name) && !LOCK_NAMES.includes(name), "a file's name is a plain name", () => name);
    return join(this.#path, name);
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new Error(`the data directory ${this.#path} was closed`);
  }
}
