// The bounds of transactions at one island.

/** Questions to one home that are under way: the driver gathers what goes to one island. */
export const TXN_INQUIRIES_AT_ONCE = 64;
export const TXN_INQUIRY_WITHIN_MS = 2_000;
/** Initial and maximum delay before another island, or the jobs' log, is tried again. */
export const TXN_RETRY_MS_MIN = 250;
export const TXN_RETRY_MS_MAX = 5_000;
/** What is done here is reported to its home so late, unless many reports have gathered. */
export const TXN_REPORT_MS = 200;
/** Transactions of one report. */
export const TXN_REPORT_IDS = 128;
export const TXN_REPORT_WITHIN_MS = 2_000;
/** Jobs that are given to the jobs' log together; those of one transaction are never parted. */
export const TXN_DELIVERED_JOBS = 128;
/** Of these, about: they are measured and written in one turn, and after an outage there may be megabytes of them. */
export const TXN_DELIVERED_BYTES = 1024 * 1024;
/** Transactions that a leader lists in answer to one `recover`. */
export const TXN_RECOVERED_PAGE = 256;
/** Transactions that a new leader takes up in one turn. */
export const TXN_OPEN_SLICE = 256;
/** What is staged is dropped so late, whatever the clock of the leader that wrote it said. */
export const TXN_STAGED_MS = 60_000;
/** Before a person's word counts, every node of home has so long to answer anything: longer than one waits for a leadership that changes (TURNOVER_WAIT_MS). */
export const TXN_HOME_GONE_MS = 3_000;
