// The bounds of what is sent about transactions over islands.

import {
  SCOPE_BYTES_MAX,
  TXN_BATCH_BYTES_MAX,
  TXN_BATCH_MAX,
  TXN_BYTES_MAX,
  TXN_REQUIRES_MAX,
} from "../../core/kit/limits.ts";

/** Ids, islands, a fence, a reason: everything of a call but operations, and epochs that are required. */
export const TXN_NOTE_BODY_BYTES_MAX = 8 * 1024;
/** Of a client: operations of TXN_BYTES_MAX, with room for characters that it writes as escapes, and for spaces. */
export const TXN_BODY_BYTES_MAX = 2 * TXN_BYTES_MAX;
/** A scope whose characters are all escapes, and its epoch. */
const REQUIRE_JSON_BYTES_MAX = 6 * SCOPE_BYTES_MAX + 48;
/** Of an island's call: it writes as few escapes as there may be. */
export const TXN_CALL_BODY_BYTES_MAX =
  TXN_BYTES_MAX + TXN_REQUIRES_MAX * REQUIRE_JSON_BYTES_MAX + TXN_NOTE_BODY_BYTES_MAX;
/** Of many together, each with its name. */
export const TXN_BATCH_BODY_BYTES_MAX = TXN_BATCH_BYTES_MAX + TXN_BATCH_MAX * 48;
/** Rows of one page, which is made at once. */
export const TXNS_SHOWN_PER_PAGE_MAX = 256;
