// The files of an archive: their names, and writing them so that they are there as a whole or not at all.
//
//   events-0000000000000001    the segment that starts with event 1; names sort by sequence
//   events-catalog             what is known of the segments, so that a start need not read them all
//   tmp-events-…               a file that is not finished; worthless after a restart
//   damaged-events-…           a segment in which damage was found: evidence, until a peer's copy takes its place. A start
//                              looks at it again, and takes it back where it is whole after all
//   former-events-…            history that was given up, of another line or behind a gap; never read
//
// A failed sync is never tried again (trap 23): it becomes FSYNC_FAILED, and whoever catches that ends the process.

import { TenureError } from "../../core/kit/errors.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";

export const CATALOG_NAME = "events-catalog";
const SEGMENT_PATTERN = /^events-([0-9]{16})$/;
const DAMAGED_PREFIX = "damaged-";
const FORMER_PREFIX = "former-";
const SEQUENCE_DIGITS = 16;

export function segmentName(first: number): string {
  return `events-${String(first).padStart(SEQUENCE_DIGITS, "0")}`;
}

/** The first sequence of the segment with this name; null where it is no segment's. */
export function firstOf(name: string): number | null {
  const match = SEGMENT_PATTERN.exec(name);
  return match === null ? null : Number(match[1]);
}

function temporaryName(name: string): string {
  return `tmp-${name}`;
}

export function damagedName(first: number): string {
  return `${DAMAGED_PREFIX}${segmentName(first)}`;
}

/** The first sequence of the damaged segment with this name; null where it is no such name. */
export function damagedFirstOf(name: string): number | null {
  return name.startsWith(DAMAGED_PREFIX) ? firstOf(name.slice(DAMAGED_PREFIX.length)) : null;
}

export function formerName(first: number): string {
  return `${FORMER_PREFIX}${segmentName(first)}`;
}

/** Whether it was set aside, for an operator to look at and to remove. */
export function isAside(name: string): boolean {
  return name.startsWith(`${DAMAGED_PREFIX}events-`) || name.startsWith(`${FORMER_PREFIX}events-`);
}

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
    throw syncFailed("the archive's directory", error);
  }
}

/** When this resolves, `name` has these bytes after any crash. */
export async function writeDurably(disk: Disk, name: string, bytes: Uint8Array, kind: string): Promise<void> {
  const file = await disk.create(temporaryName(name), `${kind}-create`);
  await file.append(bytes, `${kind}-append`);
  await syncFile(file, `${kind}-fdatasync`);
  await file.close();
  await disk.rename(temporaryName(name), name, `${kind}-rename`);
  await syncDirectory(disk, `${kind}-sync-directory`);
}

function syncFailed(what: string, error: unknown): TenureError {
  const why = error instanceof Error ? error.message : String(error);
  const next = "The process must end; check the disk, then start again";
  return new TenureError("FSYNC_FAILED", `${what} could not be synced, and may have lost events: ${why}. ${next}.`);
}
