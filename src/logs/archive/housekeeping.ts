// Files that go or change their names: after a checkpoint, after damage, and when a snapshot takes over.

import {
  checkSegment,
  isSameEntry,
  isSamePoint,
  type ChainPoint,
  type Holdings,
  type SegmentEntry,
} from "../../core/archive/index.ts";
import { chainBroken } from "../../core/events/index.ts";
import { syncDirectory } from "./file-names.ts";
import { readFile } from "./file-read.ts";
import { pointAt, type Readable } from "./reading.ts";
import type { ArchiveEnvironment } from "./recovery.ts";
import { Slices } from "./slices.ts";

type Directory = Pick<ArchiveEnvironment, "disk" | "names">;

/** Where history starts once it is cut after `checkpoint`. Throws CHAIN_BROKEN where that is no point of this chain. */
export async function retentionStart(readable: Readable, checkpoint: ChainPoint): Promise<ChainPoint> {
  const own = await pointAt(readable, checkpoint.sequence);
  if (!isSamePoint(own, checkpoint))
    throw chainBroken(checkpoint.sequence, "the checkpoint is not that of this archive");
  const holdings = readable.holdings();
  const lastGone = holdings.segments.findLast((entry) => entry.last <= checkpoint.sequence);
  return lastGone === undefined ? holdings.start : pointAt(readable, lastGone.last);
}

/** The directory is not synced for this: a segment that comes back is before the start, and removed again. */
export async function removeSegments({ disk, names }: Directory, gone: readonly SegmentEntry[]): Promise<void> {
  const found = new Set(await disk.list("archive-list"));
  for (const { first } of gone) {
    for (const name of [names.segment(first), names.damaged(first)]) {
      if (found.has(name)) await disk.remove(name, "archive-remove");
    }
  }
}

export function setAsideDamaged(directory: Directory, { first }: SegmentEntry): Promise<void> {
  return setAside(directory, first, directory.names.damaged(first));
}

/** It holds events of a line that was given up. */
export function setAsideFormer(directory: Directory, first: number): Promise<void> {
  return setAside(directory, first, directory.names.former(first));
}

async function setAside({ disk, names }: Directory, first: number, name: string): Promise<void> {
  const found = await disk.list("archive-list");
  if (!found.includes(names.segment(first))) return;
  await disk.rename(names.segment(first), name, "archive-set-aside");
  await syncDirectory(disk, "archive-sync-directory");
}

/** A snapshot has taken over: of the files that are here, finds those that it lists, and sets others aside. */
export async function adoptFiles(
  environment: ArchiveEnvironment,
  holdings: Holdings,
  openFirst: number | null,
): Promise<void> {
  const { disk, names } = environment;
  for (const name of (await disk.list("archive-list")).toSorted()) {
    const first = names.firstOf(name);
    if (first === null || first === openFirst) continue;
    const entry = holdings.find(first);
    if (entry === undefined || entry.first !== first) {
      if (first <= holdings.start.sequence) await disk.remove(name, "archive-remove");
      else await disk.rename(name, names.former(first), "archive-set-aside");
    } else if (holdings.stateOf(entry) === "missing" && (await isWhole(environment, entry))) {
      holdings.set(entry, "whole");
    }
  }
  await syncDirectory(disk, "archive-sync-directory");
}

async function isWhole(
  { disk, names, chain, digest, clock, limits }: ArchiveEnvironment,
  entry: SegmentEntry,
): Promise<boolean> {
  const read = await readFile(disk, names.segment(entry.first));
  if (read.kind === "damaged") return false;
  const input = { bytes: read.bytes, first: entry.first, before: null, blockBytesMax: limits.blockBytesMax };
  const verdict = await new Slices(clock).run(checkSegment(input, chain, digest));
  if (verdict.kind !== "sealed" || !isSameEntry(verdict.entry, entry)) return false;
  // It may be visible and not durable: the process that wrote it may have been killed before its sync.
  const file = await disk.open(names.segment(entry.first), "archive-open");
  await file.fdatasync("archive-fdatasync");
  await file.close();
  return true;
}
