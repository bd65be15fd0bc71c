// Which segments are the log, and where its last one ends: the part of recovery that tells a torn write
// from rot (the rule and its reasons stand in recovery.ts).
//
// Invariants of what `openLog` returns as a log:
// - every segment from the oldest that the last header counts up to the last one is there, with a whole
//   header, its own number and the size with which it was closed;
// - all of them are whole to the end, but for the last one, which is whole up to the cut.
//
// After the end of the last segment there may be zeros that were reserved for later batches. A segment is cut to its
// size before the next one is created, so in an earlier segment they are damage like anything else that is no frame.

import type { Digest } from "../../ports/digest.ts";
import { findTestimonyBytes, readSegment, segmentSeed } from "./segment.ts";
import type { SegmentHeader, SegmentRead, Trouble, WalRecord } from "./segment.ts";
import type { Stamp } from "./stamp.ts";
import { damaged, unsupported, type Damaged, type Refusal } from "./verdict.ts";

export interface SegmentFile {
  readonly name: string;
  /** As its name says. */
  readonly number: number;
  readonly bytes: Uint8Array;
}

export interface LogSegment {
  readonly file: SegmentFile;
  readonly header: SegmentHeader;
  readonly records: readonly WalRecord[];
}

export interface LogFiles {
  readonly kind: "log";
  /** Oldest first. */
  readonly segments: readonly LogSegment[];
  readonly tail: LogSegment;
  readonly cut: Cut | null;
}

export interface Cut {
  readonly name: string;
  /** 0: a segment that never got a durable header, and is to be removed. */
  readonly sizeBytes: number;
  /** False: nothing but reserved zeros goes, so there is nothing to tell an operator. */
  readonly isTorn: boolean;
}

interface OpenedSegment {
  readonly file: SegmentFile;
  readonly seed: number;
  readonly read: SegmentRead;
}

export function openLog(files: readonly SegmentFile[], stamp: Stamp, digest: Digest): LogFiles | Damaged | Refusal {
  const opened = files
    .map((file): OpenedSegment => {
      const seed = segmentSeed(stamp, file.number, digest);
      return { file, seed, read: readSegment(file.bytes, seed, digest) };
    })
    .toSorted((a, b) => a.file.number - b.file.number);
  // A later release's bytes are looked for first, in all files: they are to be refused, not called damaged.
  for (const { file, read } of opened) {
    if (read.trouble?.kind === "newer") return unsupported(file.name, read.trouble.version);
  }

  const last = opened.at(-1);
  if (last === undefined) return damaged("no segment is left", "directory");
  if (last.read.header !== null) {
    return collect(opened, last.read.header, (segment, trouble) => judgeTail(segment, trouble, digest));
  }
  const fault = faultOfUnborn(last, digest);
  if (fault !== null) return damaged(fault, last.file.name);
  const previous = opened.find((segment) => segment.file.number === last.file.number - 1);
  if (previous === undefined) return damaged("its header is torn, and the segment before is gone", last.file.name);
  if (previous.read.header === null) return damaged("its header is torn", previous.file.name);
  // Even an empty next segment testifies that this one was durable as a whole.
  const log = collect(opened, previous.read.header, (segment, trouble) => judgeClosed(segment, trouble));
  return log.kind === "log" ? { ...log, cut: { name: last.file.name, sizeBytes: 0, isTorn: true } } : log;
}

type Judge = (
  segment: OpenedSegment,
  trouble: Trouble,
) => Damaged | { readonly kind: "cut"; readonly sizeBytes: number; readonly isTorn: boolean };

function collect(opened: readonly OpenedSegment[], tailHeader: SegmentHeader, judgeLast: Judge): LogFiles | Damaged {
  const segments: LogSegment[] = [];
  let cut: Cut | null = null;
  const { oldestNumber, number: tailNumber } = tailHeader;
  for (let number = oldestNumber; number <= tailNumber; number++) {
    const segment = opened.find((other) => other.file.number === number);
    if (segment === undefined) return damaged(`segment ${number} is missing`, "directory");
    const { file, read } = segment;
    if (read.header === null) return damaged("its header is torn", file.name);
    if (read.header.number !== number)
      return damaged(`it is segment ${read.header.number} under another name`, file.name);
    if (read.trouble !== null) {
      const verdict = number === tailNumber ? judgeLast(segment, read.trouble) : judgeClosed(segment, read.trouble);
      if (verdict.kind === "damaged") return verdict;
      cut = { name: file.name, sizeBytes: verdict.sizeBytes, isTorn: verdict.isTorn };
    }
    const previous = segments.at(-1)?.file;
    if (previous !== undefined && previous.bytes.length !== read.header.previousBytes) {
      return damaged(`${previous.bytes.length} bytes; it was closed with ${read.header.previousBytes}`, previous.name);
    }
    segments.push({ file, header: read.header, records: read.records });
  }
  const tail = segments.at(-1);
  return tail === undefined
    ? damaged("its header counts no segment", "directory")
    : { kind: "log", segments, tail, cut };
}

function judgeClosed({ file }: OpenedSegment, trouble: Trouble): Damaged {
  return damaged(`${describe(trouble)}, and a later segment exists`, `${file.name} at ${trouble.at}`);
}

function judgeTail(segment: OpenedSegment, trouble: Trouble, digest: Digest): ReturnType<Judge> {
  const { file, seed } = segment;
  const where = `${file.name} at ${trouble.at}`;
  if (trouble.kind !== "torn") return damaged(describe(trouble), where);
  // Zeros to the very end, or it is no end: where a batch was lost, those after it testify that it was there.
  if (isZeroFrom(file.bytes, trouble.at)) return { kind: "cut", sizeBytes: trouble.at, isTorn: false };
  const testimonyBytes = findTestimonyBytes(file.bytes, trouble.at, seed, digest);
  if (testimonyBytes > trouble.at) return damaged(`${trouble.why}, and ${testimonyBytes} bytes were durable`, where);
  return { kind: "cut", sizeBytes: trouble.at, isTorn: true };
}

function isZeroFrom(bytes: Uint8Array, from: number): boolean {
  for (let at = from; at < bytes.length; at++) if (bytes[at] !== 0) return false;
  return true;
}

/**
 * A last segment without a readable header was created and never synced, or its header rotted. Nothing is
 * lost with it if no batch in it knew the header to be durable. (That the segment before must still be
 * here is for the caller to check: it is removed only after this header is durable.)
 */
function faultOfUnborn({ file, seed, read }: OpenedSegment, digest: Digest): string | null {
  if (read.trouble !== null && read.trouble.kind !== "torn") return describe(read.trouble);
  return findTestimonyBytes(file.bytes, 0, seed, digest) > 0 ? "its header is torn, and was durable" : null;
}

function describe(trouble: Trouble): string {
  return trouble.kind === "newer" ? `format version ${trouble.version}` : trouble.why;
}
