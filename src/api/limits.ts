// The bounds of the API: what a page, a stream and a connection may take, and how often something is checked.

/** Percent-encoded, a scope of 256 bytes has three times as many characters. */
export const PARAM_LENGTH_MAX = 1_024;
/** How often Node looks for requests that are late; its own 30 s would be the timeout. */
export const LATENESS_CHECK_MS = 1_000;
export const AUDIT_RECORDS_MAX = 256;
export const EVENTS_PAGE_BYTES_MAX = 1024 * 1024;
/** How often the views are asked how far they are, while a read waits for them. */
export const VIEWS_POLL_MS = 5;
/** Of a page of agents, queues or schedules; the last one may go past it. */
export const PAGE_CHARACTERS_MAX = 1024 * 1024;
/** How long streams are written to at a stretch; design D10 allows 5 ms for everything. */
export const FAN_SLICE_MS_MAX = 2;
/**
 * Between two slices. Node runs a timer that is due already in the same turn as the one before it, and one of a millisecond is
 * due as soon as the clock's next whole millisecond begins: only a longer one lets sockets come in between for certain.
 */
export const FAN_REST_MS = 2;
export const STREAM_PAGE_EVENTS_MAX = 500;
export const STREAM_PAGE_BYTES_MAX = 256 * 1024;
/** Frames that other pages will want too, in letters. */
export const FRAMES_KEPT_MAX = 4 * 1024 * 1024;
/** Pages that other streams will want too, in bytes. */
export const PAGES_KEPT_MAX = 4 * 1024 * 1024;
/** Changes of values that a stream looks at in one turn, and frames that other streams will want too, in bytes. */
export const VALUE_CHANGES_PER_READ_MAX = 64;
export const VALUE_FRAMES_KEPT_MAX = 4 * 1024 * 1024;
/** Views lag a little behind the events that wake us. */
export const LOG_POLL_MS = 50;
export const LOG_POLL_EVENTS_MAX = 1_000;
export const LOG_POLL_BYTES_MAX = 1024 * 1024;
/** Whether the caller of a stream or a long poll would still be admitted. */
export const ADMISSION_CHECK_MS_MAX = 1_000;
export const SWEEP_MS_MAX = 1_000;
/** A sweep of the connections that comes later than this tells of our own stop, not of the readers. */
export const STALL_FORGIVEN_MS = 250;
/** Of a connection on which no request was admitted; of one that has retired and has not ended. */
export const UNKNOWN_AGE_MS = 60_000;
export const RETIRED_MS_MAX = 120_000;
/** Answers that take milliseconds to make. Two: while one waits for the disk the other is made. */
export const HEAVY_AT_ONCE_MAX = 2;
/** A certificate that is valid for longer than this ends no call: no connection lasts for so long. */
export const CERTIFICATE_CHECK_MS_MAX = 24 * 3_600_000;
/** Callers whose rates are remembered; the one not seen for the longest goes first. */
export const RATED_CALLERS_MAX = 10_000;
/** Transactions in doubt that `GET /v1/islands` names, and locks of each. */
export const TXNS_SHOWN_MAX = 50;
export const TXN_LOCKS_SHOWN_MAX = 8;
export const ADDRESS_LENGTH_MAX = 64;
export const ORIGIN_SHOWN_MAX = 128;
/** Of what is wrong with a page of another site, and of the name of its line. */
export const PAGE_WORDS_SHOWN_MAX = 200;
/**
 * Requests of a site that was asked to wait and does not are held unread, so long and so many of one site. Each that ends costs a new connection, and
 * each that is held its connection and what has arrived of its body (64 KiB). More of them are refused at once.
 */
export const HELD_MS = 5_000;
export const HELD_PER_CALLER_MAX = 256;
