// Copies of sealed segments that somebody has made of a node's files, next to the snapshot that lists them by their hashes: how
// much of the history can be put back with that snapshot.
//
// Sealed segments never change, so a copy of a running node's file is whole once the segment is sealed. Of the segment that was
// open meanwhile a copy may be torn: it is judged as every other one, and the snapshot has that segment itself.

import {
  decodeCapture,
  Holdings,
  readHeader,
  SEGMENT_LIMITS,
  type ChainPoint,
  type SegmentEntry,
} from "../../../core/archive/index.ts";
import { assert } from "../../../core/kit/assert.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Digest } from "../../../ports/digest.ts";
import { captureFrom } from "../captures.ts";
import type { ArchiveKind } from "../kinds.ts";
import { segmentProblem } from "./installation.ts";

/** Null where there is no such file. */
export type ReadCopy = (name: string) => Promise<Uint8Array | null>;

export interface UsableCopies {
  /** What the snapshot carries of the archive, without what is not among the copies. */
  readonly captured: Uint8Array;
  /** History begins there; null: with the segment that was open. */
  readonly start: ChainPoint | null;
  readonly firstEvent: number;
  /** Of the snapshot. */
  readonly lastEvent: number;
  readonly segments: number;
  /** What is the newest segment that can't be used, and why; null where all can. */
  readonly why: string | null;
}

/** A chain has no gaps: from the newest segment back to the first that is not there, or is not the one that is listed. */
export async function usableCopies(
  captured: Uint8Array,
  read: ReadCopy,
  { names, chain }: ArchiveKind,
  { digest, clock }: { readonly digest: Digest; readonly clock: Clock },
): Promise<UsableCopies> {
  const capture = decodeCapture(captured);
  const holdings = new Holdings();
  holdings.adopt(capture, capture.checkpoint);
  const environment = { chain: chain(digest), digest, clock, limits: SEGMENT_LIMITS };
  const problemOf = async (bytes: Uint8Array | null, entry: SegmentEntry): Promise<string | null> =>
    bytes === null ? "there is no such file" : await segmentProblem(environment, holdings, bytes, entry);
  let start: ChainPoint | null = null;
  let segments = 0;
  let why: string | null = null;
  for (const entry of capture.segments.toReversed()) {
    const bytes = await read(names.segment(entry.first));
    const problem = await problemOf(bytes, entry);
    if (problem !== null) {
      why = `${names.segment(entry.first)}: ${problem}`;
      break;
    }
    const head = readHeader(bytes!, digest);
    assert(head.kind === "header", "a segment that was found whole has a header");
    start = head.header.before;
    segments++;
  }
  const kept = captureFrom(captured, start, digest);
  const events = { firstEvent: kept.startSequence + 1, lastEvent: capture.head.sequence };
  return { captured: kept.bytes, start, ...events, segments, why };
}
