// A segment from a peer: judged from end to end before it is put in place as a whole.
//
// A peer is not trusted. The manifest came with a snapshot, through the log's own quorum; so a segment is what it must be
// if its contents have the hash that the manifest names, and its chain links to its neighbours.

import { checkSegment, isSameEntry, type Holdings, type SegmentEntry } from "../../../core/archive/index.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { writeDurably } from "../file-names.ts";
import type { ArchiveEnvironment } from "../recovery.ts";
import { Slices } from "../slices.ts";

/** Throws CHAIN_BROKEN, and nothing was changed. */
export async function checkInstallation(
  environment: ArchiveEnvironment,
  holdings: Holdings,
  bytes: Uint8Array,
  expected: SegmentEntry,
): Promise<void> {
  const problem = await segmentProblem(environment, holdings, bytes, expected);
  if (problem !== null) throw wrong(expected, problem);
}

/** Why the bytes are not the segment that `holdings` names; null where they are. */
export async function segmentProblem(
  { chain, digest, clock, limits }: Pick<ArchiveEnvironment, "chain" | "digest" | "clock" | "limits">,
  holdings: Holdings,
  bytes: Uint8Array,
  expected: SegmentEntry,
): Promise<string | null> {
  if (bytes.length !== expected.sizeBytes) return `${bytes.length} bytes, not ${expected.sizeBytes}`;
  const input = { bytes, first: expected.first, before: null, blockBytesMax: limits.blockBytesMax };
  const verdict = await new Slices(clock).run(checkSegment(input, chain, digest));
  if (verdict.kind === "newer") return `it has format version ${verdict.version}`;
  if (verdict.kind === "broken") return `event ${verdict.sequence}: ${verdict.why}`;
  if (verdict.kind === "open") return verdict.tail ?? "it has no footer";
  if (!isSameEntry(verdict.entry, expected)) return "its contents have another hash";
  if (verdict.entry.lastHash !== expected.lastHash) return "its last event has another hash";
  if (verdict.header.before.hash !== holdings.hashBefore(expected)) return "it does not link to the one before";
  return null;
}

export async function placeSegment(
  { disk, names }: Pick<ArchiveEnvironment, "disk" | "names">,
  entry: SegmentEntry,
  bytes: Uint8Array,
): Promise<void> {
  await writeDurably(disk, names.segment(entry.first), [bytes], "archive-install");
  const found = await disk.list("archive-list");
  // The evidence has served: what was damaged is here again.
  if (found.includes(names.damaged(entry.first))) await disk.remove(names.damaged(entry.first), "archive-remove");
}

function wrong({ first, last }: SegmentEntry, why: string): TenureError {
  const next = "It is refused, and fetched from another node";
  return new TenureError(
    "CHAIN_BROKEN",
    `the segment of events ${first} to ${last} is not the one that is missing: ${why}. ${next}.`,
  );
}
