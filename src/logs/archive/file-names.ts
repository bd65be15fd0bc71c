// The files of an archive: their names, and how they are written.
//
//   events-0000000000000001    the segment that starts with event 1; names sort by sequence
//   events-catalog             what is known of the segments, so that a start need not read them all
//   tmp-events-…               a file that is not finished; worthless after a restart
//   damaged-events-…           a segment in which damage was found: evidence, until a peer's copy takes its place. A start
//                              looks at it again, and takes it back where it is whole after all
//   former-events-…            history that was given up, of another line or behind a gap; never read

import { durableFiles } from "../../loops/durable-file.ts";

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

export const { syncFile, syncDirectory, writeDurably } = durableFiles(
  "the archive's directory",
  (what, why) => `${what} could not be synced, and may have lost events: ${why}.`,
);
