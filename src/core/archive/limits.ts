// The bounds of the archive.
//
// The first three are part of the format: where a segment ends follows from the events in it and from these, so that
// all nodes have the same segments, byte for byte. Change one only together with the format's version.

import { ENTRY_BYTES_MAX } from "../kit/limits.ts";

export const FORMAT_VERSION = 1;
/** A segment ends with the event that reaches one of the two. A file is read as a whole, so this bounds memory too. */
const SEGMENT_EVENTS_MAX = 32_768;
const SEGMENT_BYTES_MAX = 4 * 1024 * 1024;
/** A block ends with the event that reaches this: what is read at most to find an event. */
export const BLOCK_BYTES_MAX = 64 * 1024;

export const EVENT_BYTES_MAX = ENTRY_BYTES_MAX;
export const AUTHOR_BYTES_MAX = 512;
/** Header, author and frontier. */
export const SEGMENT_HEADER_BYTES_MAX = 4 * 1024;
/** A segment of the smallest blocks, its index and its hashes. */
export const FOOTER_BYTES_MAX = 256 * 1024;
export const SEGMENT_FILE_BYTES_MAX = SEGMENT_BYTES_MAX + EVENT_BYTES_MAX + SEGMENT_HEADER_BYTES_MAX + FOOTER_BYTES_MAX;
/** At 4 MiB each this is 4 TiB of history. */
export const SEGMENTS_MAX = 1_048_576;

/** In an answer to another node, 16 bytes each: far below the 256 KiB of an answer. */
export const LACKS_RANGES_MAX = 4_096;

export const SEGMENT_LIMITS = {
  eventsMax: SEGMENT_EVENTS_MAX,
  bytesMax: SEGMENT_BYTES_MAX,
  blockBytesMax: BLOCK_BYTES_MAX,
};

export type SegmentLimits = { readonly [Name in keyof typeof SEGMENT_LIMITS]: number };

/** 53 hashes, each with its length, and a head. */
export const FRONTIER_BYTES_MAX = 2_048;
export const TIMESTAMP_DIGITS_MAX = 32;
/** Of one segment. */
export const BLOCKS_MAX = 65_536;
/** Pieces of the open segment: each is twice as large as the one before, up to the second. */
export const PIECE_BYTES_MIN = 16 * 1024;
export const PIECE_BYTES_MAX = 256 * 1024;
/** Between two yields, whichever comes first; the runner looks at the clock then. */
export const CHECKED_EVENTS_PER_STEP = 32;
export const CHECKED_BYTES_PER_STEP = 64 * 1024;
