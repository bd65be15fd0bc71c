// The bounds of calls to islands.

/** Exchanges with one island that are under way: while the island works on one, the next one is on its way. What comes meanwhile is gathered. */
export const ISLAND_EXCHANGES_MAX = 2;
/** One exchange with one node of an island; then another node is asked. Longer than a node waits for a leadership that changes (TURNOVER_WAIT_MS). */
export const ISLAND_TRY_MS = 1_500;
/** The same of one call alone, where such ones have had no answer in that time again and again: its bytes may take so long. */
export const ISLAND_TRY_MS_MAX = 10_000;
/** What goes together is not reduced further than to this, or one call: the smallest call is taken for 5 KiB. */
export const ISLAND_BATCH_BYTES_MIN = 8 * 1024;
/** After all nodes of an island have been asked in vain: initial and maximum delay. */
export const ISLAND_RETRY_MS_MIN = 20;
export const ISLAND_RETRY_MS_MAX = 500;
/** A node that did not answer is asked again only after the others, and not because one of these takes it for the leader. */
export const ISLAND_SILENT_MS = 3_000;
/** Calls to one island that wait. What comes above it is not answered. */
export const ISLAND_QUEUE_MAX = 8_192;
/** An answer that took longer than this: twice as much may take longer than a try. */
export const ISLAND_QUICK_MS = ISLAND_TRY_MS / 2;
