// Syncing, and files that are there as a whole or not at all.
//
// A failed sync is never tried again: the kernel has marked the pages clean, so a second sync would succeed
// without having written them (trap 23). It becomes FSYNC_FAILED, and whoever catches that ends the process.

import { TenureError } from "../core/kit/errors.ts";
import type { Disk, DiskFile } from "../ports/disk.ts";
import { temporaryName } from "./storage-layout.ts";

const PIECE_BYTES = 4 * 1024 * 1024;

export async function syncFile(file: DiskFile, label: string): Promise<void> {
  try {
    await file.fdatasync(label);
  } catch (error) {
    throw syncFailed(file.name, error);
  }
}

export async function syncDirectory(disk: Disk, label: string): Promise<void> {
  try {
    await disk.syncDirectory(label);
  } catch (error) {
    throw syncFailed("the data directory", error);
  }
}

/**
 * `kind` starts the labels of its disk calls. When this resolves, `name` has these bytes, the parts one behind the
 * other, after any crash. It is written piece by piece, each synced: hundreds of megabytes in one sync hold up the log's.
 */
export async function writeDurably(
  disk: Disk,
  name: string,
  parts: readonly Uint8Array[],
  kind: string,
): Promise<void> {
  const file = await disk.create(temporaryName(name), `${kind}-create`);
  for (const bytes of parts) {
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      if (from > 0) await syncFile(file, `${kind}-fdatasync`);
      await file.append(bytes.subarray(from, from + PIECE_BYTES), `${kind}-append`);
    }
  }
  await syncFile(file, `${kind}-fdatasync`);
  await file.close();
  await disk.rename(temporaryName(name), name, `${kind}-rename`);
  await syncDirectory(disk, `${kind}-sync-directory`);
}

function syncFailed(what: string, error: unknown): TenureError {
  const why = error instanceof Error ? error.message : String(error);
  const next =
    "What was written may be lost although nothing says so. The process must end; check the disk, then start again";
  return new TenureError("FSYNC_FAILED", `${what} could not be synced: ${why}. ${next}.`);
}
