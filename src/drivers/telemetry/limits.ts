// The bounds of logs, metrics and the event loop's monitor.

/** Lines that wait for the log's reader: some thousands. More are dropped. */
export const LOG_SINK_BYTES_MAX = 1024 * 1024;
export const LOG_SINK_CLOSE_MS = 1_000;
/** The latest lines, some thousands, for an operator's support bundle. */
export const RECENT_CHARACTERS_MAX = 512 * 1024;
export const RECENT_LINE_CHARACTERS_MAX = 8 * 1024;

/** Every wake costs an idle node: 20 ms are 0.5 % of a core. A stall is seen short by at most this. */
export const LOOP_INTERVAL_MS = 250;
/**
 * The interval of prom-client's own metrics of the event loop: never. They wake the process every 10 ms, which is half of what
 * an idle node costs, and count that interval as lag. tenure_loop_delay_ms reports the delay without it.
 */
export const NEVER_MS = 2 ** 31 - 1;
/** The first bucket of turns ends here; 8 buckets double it. 160 reach from 0.01 ms to 10 s. */
export const FIRST_BUCKET_MS = 0.01;
export const TURNS_SLICE_MS = 10_000;
