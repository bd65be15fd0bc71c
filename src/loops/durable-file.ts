// Syncing, and files that are there as a whole or not at all.
//
// A failed sync is never tried again: the kernel has marked the pages clean, so a second sync would succeed
// without having written them (trap 23). It becomes FSYNC_FAILED, and whoever catches that ends the process.

import { TenureError } from "../core/kit/errors.ts";
import type { Pieces } from "../core/kit/pieces.ts";
import type { Disk, DiskFile } from "../ports/disk.ts";
import { UNSYNCED_BYTES_MAX } from "./limits.ts";

export interface WriteOptions {
  /** Asked after each piece, which may be made only then. Null: the turn goes on; otherwise others have theirs. */
  readonly pause?: ((bytes: number) => Promise<void> | null) | undefined;
  /** False: it is not wanted any more. */
  readonly goesOn?: (() => boolean) | undefined;
}

/** For one directory, as messages name it; `failed` says what a failed sync means there. */
export function durableFiles(directory: string, failed: (what: string, why: string) => string) {
  const syncFailed = (what: string, error: unknown): TenureError => {
    const text = failed(what, error instanceof Error ? error.message : String(error));
    return new TenureError("FSYNC_FAILED", `${text} The process must end; check the disk, then start again.`);
  };

  async function syncFile(file: DiskFile, label: string): Promise<void> {
    try {
      await file.fdatasync(label);
    } catch (error) {
      throw syncFailed(file.name, error);
    }
  }

  async function syncDirectory(disk: Disk, label: string): Promise<void> {
    try {
      await disk.syncDirectory(label);
    } catch (error) {
      throw syncFailed(directory, error);
    }
  }

  /**
   * `kind` starts the labels of its disk calls. When this resolves, `name` has these bytes, the pieces one after the
   * other, after any crash. It is synced on its way: hundreds of megabytes in one sync hold up the log's. False: it was given up,
   * and nothing of it is left.
   */
  async function writeDurably(
    disk: Disk,
    name: string,
    pieces: Pieces,
    kind: string,
    { pause, goesOn = () => true }: WriteOptions = {},
  ): Promise<boolean> {
    const temporary = `tmp-${name}`;
    const file = await disk.create(temporary, `${kind}-create`);
    let unsyncedBytes = 0;
    for (const bytes of pieces) {
      if (!goesOn()) {
        await file.close();
        await disk.remove(temporary, `${kind}-remove`);
        return false;
      }
      if (unsyncedBytes + bytes.length > UNSYNCED_BYTES_MAX && unsyncedBytes > 0) {
        await syncFile(file, `${kind}-fdatasync`);
        unsyncedBytes = 0;
      }
      await file.append(bytes, `${kind}-append`);
      unsyncedBytes += bytes.length;
      await pause?.(bytes.length);
    }
    await syncFile(file, `${kind}-fdatasync`);
    await file.close();
    await disk.rename(temporary, name, `${kind}-rename`);
    await syncDirectory(disk, `${kind}-sync-directory`);
    return true;
  }

  return { syncFile, syncDirectory, writeDurably };
}
