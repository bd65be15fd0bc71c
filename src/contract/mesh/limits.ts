// The bounds of what sites send to one another.

import { ENTRY_BYTES_MAX } from "../../core/kit/limits.ts";

export const PAGES_PER_DELIVERY_MAX = 16;
/** One for each line that a site may know of others (LINES_MAX of core/mesh/receipts), and for each generation of its own. */
export const HEADS_MAX = 4_096 + 32;
/** A line's name, a size, a root, what is withheld, and one signature. */
export const NOTE_BYTES_MAX = 1_024;
export const GRAFTS_MAX = 4_096;
/** `<controller id>.<32 digits>`. */
export const LINE_ID_BYTES_MAX = 63 + 1 + 32;
/** A page has one event of nearly an entry's size at most; its text inside of JSON may need an escape for every second byte. */
export const DELIVERY_BYTES_MAX = 2 * ENTRY_BYTES_MAX + 64 * 1024;
