// How long `tenure doctor` asks, how much it reads, and from where on it complains.

/** Longer than an elector waits, so that what is too slow for it is reported as slow, and not as silent. */
export const DOCTOR_ANSWER_MS_MAX = 5_000;
export const DOCTOR_ANSWER_BYTES_MAX = 4 * 1024 * 1024;
export const NOTIFY_MS_MAX = 2_000;
export const CLOCK_OVER_MS = 1_000;
export const CLOCK_READINGS = 5;
export const LATENCY_SAMPLES_MAX = 200;
export const LATENCY_SAMPLES_MIN = 5;
/** Slow servers are measured with fewer. */
export const LATENCY_MS_MAX = 1_000;
/** Each costs a connection; whoever has more knows where to search. */
export const DATABASES_SEARCHED_MAX = 10;
/** Connecting, the schema's check and the settings themselves run under what the role brings. */
export const STATEMENT_MS_MIN = 1_000;
/** The bump ends fenced transactions after 20 ms; one that is older than this belongs to a leader that is slow. */
export const FENCED_MS_LONG = 5_000;
/** A database has one log for each site. */
export const LOG_HEADS_MAX = 20;
/** A leader takes submissions over in milliseconds. */
export const INBOX_MS_MAX = 30_000;
/** A node sends a beat once a second. */
export const LOG_NODE_SILENT_MS_MAX = 10_000;
