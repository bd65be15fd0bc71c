// The bounds of calls to other coordinators.

/**
 * Of an answer: a roster of 31 voters and a registry of REGISTRY_ENTRIES_MAX backends, with addresses of any length that is accepted; the answers to
 * TXN_BATCH_MAX calls, each with the results of TXN_OPERATIONS_MAX operations.
 */
export const TC_ANSWER_BYTES_MAX = 1536 * 1024;
/**
 * A connection that is kept. Members are called at least every three seconds; one that nobody used for longer may have died in silence, and would
 * cost a call its whole time.
 */
export const TC_KEPT_IDLE_MS = 10_000;
/** Endpoints for which the last complaint is remembered, so that the log has each once. */
export const TC_COMPLAINTS_MAX = 256;
