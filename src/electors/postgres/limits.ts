// The bounds of electors in Postgres, and the timing that they have unless the caller says otherwise: a margin and three beats fit
// into a server timeout (options.ts refuses what does not).

export const HEARTBEAT_MS = 1_000;
export const SERVER_TIMEOUT_MS = 6_000;
export const MARGIN_MS = 1_500;
/** How many beats must fit into a server timeout that nobody chose. */
export const BEATS_PER_TIMEOUT = 3;
export const POLL_RETRY_MS_MIN = 200;
export const POLL_RETRY_MS_MAX = 800;
export const HOLD_BACK_MS = 250;
export const RELEASE_TIMEOUT_MS = 1_000;
export const LOCK_TIMEOUT_MS = 1_000;
export const STATEMENT_TIMEOUT_MS = 2_000;
export const DURATION_MS_MAX = 24 * 60 * 60 * 1_000;
/** NAMEDATALEN − 1: longer names are cut by the server, silently. */
export const IDENTIFIER_BYTES_MAX = 63;
/** So that a hundred processes that hear of one resignation do not ask in the same millisecond. */
export const NOTIFIED_JITTER_MS = 20;
export const WATCH_POLL_MS = 1_000;
/** How long the session outlives the last who asked: `leader()` for each request should not connect each time. */
export const WATCH_LINGER_MS = 5_000;
/** Above READ COMMITTED a bump may come between snapshot and check; nothing of `work` has run by then. */
export const FENCE_BEGINS_MAX = 3;
/** Rows inside lists inside results: no client nests them deeper. */
export const PROOF_DEPTH_MAX = 4;
/** Of so many scopes that are fenced concurrently in one transaction, one succeeds in each round at least. */
export const PROOF_ATTEMPTS_MAX = 64;
