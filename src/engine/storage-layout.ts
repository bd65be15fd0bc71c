// The names in a data directory, and how its files are written.
//
//   stamp                  whose directory this is
//   wal-0000000001         the log, one segment after the other
//   snapshot-12-3          the state at index 12, of term 3
//   recovered              the state with which an operator begins a new cluster; counts only while the stamp says so
//   tmp-…                  a file that is not finished; worthless after a restart
//   damaged-1-wal-…        set aside by the first replacement of a damaged disk; evidence, never read
//   former-2-wal-…         the same, of the cluster that was here before a new one was forced

import type { SegmentFile } from "../core/wal/index.ts";
import { durableFiles } from "../loops/durable-file.ts";
import type { Disk } from "../ports/disk.ts";

export const STAMP_NAME = "stamp";
export const RECOVERED_NAME = "recovered";

const SEGMENT_PATTERN = /^wal-([0-9]{10,16})$/;
const SNAPSHOT_PATTERN = /^snapshot-[0-9]+-[0-9]+$/;
const ASIDE_PATTERN = /^(?:damaged|former)-([0-9]+)-/;

export interface Directory {
  readonly stamp: Uint8Array | null;
  readonly segments: readonly SegmentFile[];
  readonly snapshots: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  readonly temporary: readonly string[];
  readonly hasRecovered: boolean;
  /** How often files were set aside here. */
  readonly replacements: number;
}

export function segmentName(number: number): string {
  return `wal-${String(number).padStart(10, "0")}`;
}

export function snapshotName(index: number, term: number): string {
  return `snapshot-${index}-${term}`;
}

export function isSegmentName(name: string): boolean {
  return SEGMENT_PATTERN.test(name);
}

export function isSnapshotName(name: string): boolean {
  return SNAPSHOT_PATTERN.test(name);
}

export const { syncFile, syncDirectory, writeDurably } = durableFiles(
  "the data directory",
  (what, why) => `${what} could not be synced: ${why}. What was written may be lost although nothing says so.`,
);

export function asideName(why: "damaged" | "former", name: string, replacement: number): string {
  return `${why}-${replacement}-${name}`;
}

/** Reads everything that recovery judges. The order of the names is the same wherever the disk lists them otherwise. */
export async function readDirectory(disk: Disk): Promise<Directory> {
  const names = (await disk.list("directory-list")).toSorted();
  const segments: SegmentFile[] = [];
  const snapshots: { name: string; bytes: Uint8Array }[] = [];
  let replacements = 0;
  for (const name of names) {
    const segment = SEGMENT_PATTERN.exec(name);
    if (segment !== null) {
      segments.push({ name, number: Number(segment[1]), bytes: await disk.read(name, "wal-read") });
    } else if (isSnapshotName(name)) {
      snapshots.push({ name, bytes: await disk.read(name, "snapshot-read") });
    }
    replacements = Math.max(replacements, Number(ASIDE_PATTERN.exec(name)?.[1] ?? 0));
  }
  const stamp = names.includes(STAMP_NAME) ? await disk.read(STAMP_NAME, "stamp-read") : null;
  const temporary = names.filter((name) => name.startsWith("tmp-"));
  const hasRecovered = names.includes(RECOVERED_NAME);
  return { stamp, segments, snapshots, temporary, hasRecovered, replacements };
}
