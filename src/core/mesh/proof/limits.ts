// The bounds of what sites send each other as proof: rings, notes, pages, evidence.

import { ENTRY_BYTES_MAX, MEMBERS_MAX } from "../../kit/limits.ts";

/** Public keys of a site: one for each node, and a cluster has no more. */
export const RING_KEYS_MAX = MEMBERS_MAX;
export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
/** Of a key's id in a note (C2SP signed-note). */
export const KEY_ID_BYTES = 4;
/** A line's id: 63 of the controller, a dot, 32 digits. The longest note has 476 bytes; what is longer is not read. */
export const NOTE_LENGTH_MAX = 512;
/** Of the hash of the first ring, in the line's name. */
export const LINE_DIGITS = 32;

export const PAGE_ITEMS_MAX = 512;
/** Of all items in UTF-8; a single item may be larger. */
export const PAGE_BYTES_MAX = 512 * 1024;
/** Of a page with a single item: the largest event that a journal writes (DECISION_BYTES_MAX of controller/journal). */
export const PAGE_ITEM_BYTES_MAX = ENTRY_BYTES_MAX - 256 * 1024;
/** A check of a page yields after so many items, or so many bytes, whichever comes first: far below 5 ms. */
export const SLICE_ITEMS = 32;
export const SLICE_BYTES = 64 * 1024;

/** Hashes of a consistency proof: one for each level of a tree of 2^53 leaves, and one more. */
export const PATH_HASHES_MAX = 54;
/** Of a tree's frontier (MerkleFrontier.encode): a version, a size, 53 hashes with their lengths. */
export const FRONTIER_BYTES_MAX = 2_048;
/** Of a timestamp in decimal digits. */
export const TIMESTAMP_TEXT_MAX = 32;

/** Of a name or a key in a line's state. */
export const NAME_BYTES_MAX = 128;
/** In which the bytes of a text are counted; those of a longer one are counted unit by unit. */
export const PAGE_SCRATCH_BYTES = 16 * 1_024;
