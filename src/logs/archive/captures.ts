// What a snapshot carries of an archive, next to what is here.

import {
  decodeCapture,
  encodeCapture,
  isSameBytes,
  isSameEntry,
  readHeader,
  SegmentBuilder,
  type Capture,
  type ChainPoint,
  type ChainWalk,
  type Holdings,
  type SegmentEntry,
} from "../../core/archive/index.ts";
import { assert } from "../../core/kit/assert.ts";
import { DecodeError } from "../../core/kit/bytes.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import type { Digest } from "../../ports/digest.ts";
import type { ArchiveEnvironment } from "./recovery.ts";

interface CheckedCapture {
  readonly capture: Capture;
  readonly open: SegmentBuilder | null;
  /** After its head. */
  readonly walk: ChainWalk;
}

interface Own {
  readonly holdings: Holdings;
  readonly open: SegmentBuilder | null;
  readonly lastSequence: number;
  readonly lastHash: string | null;
}

/** What a snapshot carries, judged before anything is changed for it. Throws a DecodeError. */
export function checkedCapture(bytes: Uint8Array, environment: ArchiveEnvironment): CheckedCapture {
  const capture = decodeCapture(bytes);
  const { start, segments, head } = capture;
  const open = openOf(capture, environment);
  const sealedThrough = segments.at(-1)?.last ?? start.sequence;
  if ((open?.first ?? head.sequence + 1) !== sealedThrough + 1) {
    throw new DecodeError("malformed", "the open segment does not follow the last sealed one");
  }
  const walk = environment.chain.follow(head);
  if (walk === null) throw new DecodeError("malformed", "its head is no place in a chain");
  return { capture, open, walk };
}

/** The same without what was let go here, where that is of the same line: it would only be fetched, and let go again. */
export function withoutLetGo(capture: Capture, { start, checkpoint }: Holdings): Capture {
  const at = capture.segments.findIndex(({ last, lastHash }) => last === start.sequence && lastHash === start.hash);
  return at < 0 ? capture : { ...capture, start, checkpoint, segments: capture.segments.slice(at + 1) };
}

/** Whether all that it says is here, in the same line, and nothing of what it has let go. */
export function isHeld(capture: Capture, { holdings, open, lastSequence, lastHash }: Own): boolean {
  if (capture.head.sequence > lastSequence || capture.start.sequence > holdings.start.sequence) return false;
  if (capture.head.sequence === lastSequence && capture.head.hash !== lastHash) return false;
  const isSame = (entry: SegmentEntry): boolean => {
    const own = holdings.find(entry.first);
    return entry.last <= holdings.start.sequence || (own !== undefined && isSameEntry(own, entry));
  };
  if (!capture.segments.every(isSame)) return false;
  const next = (capture.segments.at(-1)?.last ?? capture.start.sequence) + 1;
  // Where it is sealed here, the log that is replayed from there on will show it.
  if (open === null || open.first !== next) return true;
  return isSameBytes(wholeOf(open.pieces()).subarray(0, capture.open.length), capture.open);
}

/** The segment that was open when it was captured; null where none was. */
function openOf({ open, head }: Capture, { digest, limits }: ArchiveEnvironment): SegmentBuilder | null {
  if (open.length === 0) return null;
  const read = readHeader(open, digest);
  if (read.kind !== "header") throw new DecodeError("malformed", "its open segment can't be read");
  const builder = SegmentBuilder.resume(read.header, open, limits, digest);
  if (builder.last !== head.sequence) throw new DecodeError("malformed", "it lacks events before its head");
  return builder;
}

/**
 * The same without what is before `start`, the end of one of its segments, or after the last: for a cluster in which nobody
 * has that. Null: nothing but the open segment is kept.
 */
export function captureFrom(
  bytes: Uint8Array,
  start: ChainPoint | null,
  digest: Digest,
): { readonly bytes: Uint8Array; readonly startSequence: number } {
  const capture = decodeCapture(bytes);
  const read = readHeader(capture.open, digest);
  const from = start ?? (read.kind === "header" ? read.header.before : capture.head);
  const startSequence = from.sequence;
  if (startSequence === capture.start.sequence) return { bytes, startSequence };
  const segments = capture.segments.filter(({ last }) => last > startSequence);
  return { bytes: encodeCapture({ ...capture, start: from, checkpoint: from, segments }), startSequence };
}

/** Where events are appended from. */
export function walkFrom(head: ChainPoint, { chain }: ArchiveEnvironment): ChainWalk {
  const walk = chain.follow(head);
  assert(walk !== null, "the archive's head is a place in the chain", () => String(head.sequence));
  return walk;
}
