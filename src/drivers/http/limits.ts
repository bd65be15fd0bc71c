// The bounds that the drivers over HTTP share.

/** How much of a foreign answer is quoted. */
export const QUOTE_CHARS_MAX = 80;

/** TCP keepalive, for a stream whose peer is gone without a reset. */
export const HTTP_KEEPALIVE_MS = 2_000;

/** Addresses that are remembered to have answered. */
export const ANSWERED_MAX = 1_024;
