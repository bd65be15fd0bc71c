// The bounds of the journal: its snapshots, its appends, and those who read it.

import { ENTRY_BYTES_MAX } from "../../core/kit/limits.ts";

export const TENANT_NAME_BYTES_MAX = 64;
export const JOURNAL_HEADER_BYTES_MAX = 192;
export const TENANTS_MAX = 64;
export const TENANT_STATE_BYTES_MAX = 16 * 1024 * 1024;
/** Of one decision; what the log adds to each record, and to the whole, is far below the rest. */
export const DECISION_BYTES_MAX = ENTRY_BYTES_MAX - 256 * 1024;
export const DECISION_EVENTS_MAX = 4_096;
/** Appends that may wait to be committed; past it new requests are refused for now. */
export const APPENDS_MAX = 1_024;
/** So many more for what ends work that goes on: an agent whose results are refused keeps what others wait for. */
export const APPENDS_MORE_MAX = 256;
/** Of what several decisions write together: an entry is applied in one turn of the loop, on every node. */
export const GATHERED_BYTES_MAX = 64 * 1024;
export const GATHERED_EVENTS_MAX = 128;
/** Of readers of old events: each reads a whole segment, and takes the loop's time in slices. */
export const EVENT_READERS_MAX = 4;
/** All streams that one node serves, when they come back after its restart, and some more. */
export const EVENT_READERS_WAITING_MAX = 1_024;
export const TAIL_EVENTS_MAX = 32_768;
export const TAIL_BYTES_MAX = 16 * 1024 * 1024;
/** What the tail drops is cut off in one step when it is so many: each cut moves the rest. */
export const TAIL_CUT_EVENTS = 4_096;
export const HISTORY_PAGE_EVENTS_MAX = 500;
/** The loop belongs to others after so long. */
export const HISTORY_SLICE_MS = 4;
export const HISTORY_EVENTS_PER_LOOK = 32;
export const PROOFS_WAITING_MAX = 16;
