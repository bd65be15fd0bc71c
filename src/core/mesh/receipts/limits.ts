// The bounds of receipts, and of the records that they are made of.

import { ENTRY_BYTES_MAX } from "../../kit/limits.ts";

/** Of one record: one page of the largest kind with the state after it, far below what an entry of the log may have. */
export const RECORD_BYTES_MAX = ENTRY_BYTES_MAX - 64 * 1024;
/** Of pages that are gathered into one record: it is applied in one turn on every node. A page alone may have more. */
export const RECORD_GATHERED_BYTES_MAX = 256 * 1024;
export const RECORD_PAGES_MAX = 64;
/** Of a line's state: 255 keys of a ring, the frontier, a note. */
export const LINE_STATE_BYTES_MAX = 48 * 1024;
/** All of them are in memory and in each snapshot. */
export const LINES_MAX = 4_096;
export const LINE_NAME_BYTES_MAX = 128;
export const CHECKPOINT_BYTES_MAX = 1_024;
/** Of a snapshot, made in one turn. */
export const LINES_SLICE_BYTES = 64 * 1024;
/** Lines that are read of a snapshot in one turn. */
export const LINES_PER_SLICE = 64;
