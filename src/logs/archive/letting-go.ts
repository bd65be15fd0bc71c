// History that goes: after a checkpoint, by its age, or because it is nowhere any more. Whole segments only, from the
// start on; what stays begins after the last of them, and `verify` begins there.
//
// Invariants:
// - The catalog first: files that it no longer counts are removed, now or at the next start.
// - Only time that has passed for the history itself counts: a wall clock that jumps ahead lets nothing go.
// - What the newest snapshot of this node does not cover stays.

import type { ChainPoint, SegmentEntry } from "../../core/archive/index.ts";
import { SEGMENTS_REMOVED_MAX } from "../limits.ts";
import { removeSegments, retentionStart, setAsideFormer } from "./housekeeping.ts";
import { pointBehind, type Readable } from "./reading.ts";

/** The archive, for those who shorten it. */
export interface Shortened extends Readable {
  readonly durable: (sequence: number) => Promise<void>;
  readonly exclusive: (work: () => Promise<void>) => Promise<void>;
  readonly writeCatalog: () => Promise<void>;
  /** The head of the newest snapshot. */
  readonly snapshotThrough: () => number;
}

/** Throws CHAIN_BROKEN where the checkpoint is no point of this chain. Returns how many bytes that frees. */
export async function retain(archive: Shortened, checkpoint: ChainPoint): Promise<number> {
  const { holdings, environment } = archive;
  if (checkpoint.sequence <= holdings().start.sequence) return 0;
  const start = await retentionStart(archive, checkpoint);
  await archive.durable(checkpoint.sequence);
  let bytes = 0;
  await archive.exclusive(async () => {
    if (start.sequence <= holdings().start.sequence) return;
    const gone = await cut(archive, checkpoint, start);
    await removeSegments(environment, gone);
    bytes = gone.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  });
  return bytes;
}

/** Up to which event it may go, of those up to this one. */
export type MayGoThrough = (sequence: number) => Promise<number>;

/** Releases segments whose newest event is older than that, a few at a time; 0: there are no more, or no more may go. */
export async function letGoOlder(archive: Shortened, keepMs: number, mayGo: MayGoThrough): Promise<number> {
  const beforeMs = Math.min(archive.environment.clock.wallMs(), archive.head().timestamp) - keepMs;
  const point = await newestOlder(archive, beforeMs, Infinity);
  if (point === null) return 0;
  const through = await mayGo(point.sequence);
  const allowed = through >= point.sequence ? point : await newestOlder(archive, beforeMs, through);
  return allowed === null ? 0 : retain(archive, allowed);
}

/** The chain after the last of the first segments whose events are all from before; null where none is. */
async function newestOlder(archive: Shortened, beforeMs: number, allowed: number): Promise<ChainPoint | null> {
  const holdings = archive.holdings();
  const through = Math.min(archive.snapshotThrough(), allowed);
  const oldest = holdings.segments
    .slice(0, SEGMENTS_REMOVED_MAX)
    // One that is missing goes with a later one.
    .filter((entry) => holdings.stateOf(entry) === "whole" && entry.last <= through);
  let found: ChainPoint | null = null;
  let [low, high] = [0, oldest.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const point = await pointBehind(archive, oldest[middle]!);
    if (point !== null && point.timestamp < beforeMs) {
      found = point;
      low = middle + 1;
    } else high = middle;
  }
  return found;
}

/** Sets the files aside: part of it is nowhere any more. `start` is the end of a segment. */
export function giveUpBefore(archive: Shortened, start: ChainPoint): Promise<void> {
  return archive.exclusive(async () => {
    if (start.sequence <= archive.holdings().start.sequence) return;
    for (const { first } of await cut(archive, start, start)) await setAsideFormer(archive.environment, first);
  });
}

/** The same after a missing segment that no other node has any more; false where what follows it is not here yet. */
export async function giveUpThrough(archive: Shortened, entry: SegmentEntry): Promise<boolean> {
  const start = await pointBehind(archive, entry);
  if (start === null) return false;
  await archive.durable(start.sequence);
  await giveUpBefore(archive, start);
  return true;
}

async function cut(archive: Shortened, checkpoint: ChainPoint, start: ChainPoint): Promise<SegmentEntry[]> {
  const gone = archive.holdings().cut(checkpoint, start);
  await archive.writeCatalog();
  for (const entry of gone) archive.files.forget(entry);
  return gone;
}
