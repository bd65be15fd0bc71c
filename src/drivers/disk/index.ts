// The door of drivers/disk: one data directory on real files, locked for as long as it is open.
//
//   openDataDirectory ──▶ open ──▶ closed      a process that dies leaves it unlocked, and as its last syncs left it
//
// What the files mean is the engine's business; this room knows bytes, names, the lock and how much room there is.

import { constants } from "node:fs";
import { dirname, resolve } from "node:path";
import { TenureError } from "../../core/kit/errors.ts";
import type { Disk } from "../../ports/disk.ts";
import { FilesDisk } from "./files-disk.ts";
import { errorCode, systemIo, type DiskIo } from "./io.ts";
import { FREE_BYTES_MIN } from "./limits.ts";
import { lockDirectory, type DirectoryLock } from "./lock.ts";
import { Space, type SpaceState } from "./space.ts";

export { systemIo } from "./io.ts";
export type { DiskIo } from "./io.ts";
export type { SpaceState } from "./space.ts";

const DIRECTORY_MODE = 0o700;

export interface DataDirectoryOptions {
  /** Below so much free space the state is "low". Default 64 MiB. */
  readonly minFreeBytes?: number | undefined;
  /** For tests and chaos: what is in for the operating system's calls. */
  readonly io?: DiskIo | undefined;
}

export interface DataDirectory {
  readonly disk: Disk;
  /** full: a write waits for room, and goes on by itself when there is some. */
  state(): SpaceState;
  /** As of about a second ago; null where the system does not say. */
  freeBytes(): number | null;
  onChange(listener: (state: SpaceState) => void): () => void;
  /** Gives up writes that wait for room, releases open files and the lock. Closing twice is harmless. */
  close(): Promise<void>;
}

/** Makes the directory where it is missing. Throws DATA_DIRECTORY_IN_USE, CONFIG_INVALID or PERMISSION_DENIED. */
export async function openDataDirectory(path: string, options: DataDirectoryOptions = {}): Promise<DataDirectory> {
  const io = options.io ?? systemIo;
  const directoryPath = resolve(path);
  await prepare(directoryPath, io);
  const lock = lockDirectory(directoryPath);
  try {
    const directoryFd = await io.open(directoryPath, constants.O_RDONLY, 0);
    const space = new Space(io, directoryPath, options.minFreeBytes ?? FREE_BYTES_MIN);
    await space.watch();
    return assemble(new FilesDisk(directoryPath, directoryFd, io, space), space, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function assemble(disk: FilesDisk, space: Space, lock: DirectoryLock): DataDirectory {
  let closing: Promise<void> | null = null;
  return {
    disk,
    state: () => space.state,
    freeBytes: () => space.freeBytes,
    onChange: (listener) => space.onChange(listener),
    close: () => {
      space.close();
      // The lock last: until every call under way is over, another opener would write next to it.
      closing ??= disk.close().finally(() => lock.release());
      return closing;
    },
  };
}

async function prepare(path: string, io: DiskIo): Promise<void> {
  try {
    const made = await io.makeDirectory(path, DIRECTORY_MODE);
    if (made !== undefined) await syncParents(path, made, io);
    if (!(await io.isDirectory(path))) throw notDirectory(path);
    await io.checkAccess(path);
  } catch (error) {
    throw explain(path, error);
  }
}

/** A new directory is a name in another one. Without this, a power loss would give a founder an empty disk. */
async function syncParents(path: string, firstMade: string, io: DiskIo): Promise<void> {
  for (let at = path; at.length >= firstMade.length; at = dirname(at)) {
    const fd = await io.open(dirname(at), constants.O_RDONLY, 0);
    try {
      await io.fsync(fd, "parent-sync-directory");
    } finally {
      await io.close(fd);
    }
  }
}

function notDirectory(path: string): TenureError {
  return new TenureError("CONFIG_INVALID", `${path} is not a directory. Give the data directory another path.`);
}

function explain(path: string, error: unknown): unknown {
  if (TenureError.is(error)) return error;
  const why = error instanceof Error ? error.message : String(error);
  switch (errorCode(error)) {
    case "EEXIST":
    case "ENOTDIR":
      return notDirectory(path);
    case "ENOENT":
      return new TenureError(
        "CONFIG_INVALID",
        `${path} can't be used as a data directory: nothing can be made at that place (${why}). Choose another one.`,
        { cause: error },
      );
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new TenureError(
        "PERMISSION_DENIED",
        `${path} can't be used as a data directory: ${why}. Let this user read and write it, or choose another one.`,
        { cause: error },
      );
    default:
      return new TenureError(
        "CONFIG_INVALID",
        `${path} can't be used as a data directory: ${why}. Choose another one.`,
        {
          cause: error,
        },
      );
  }
}
