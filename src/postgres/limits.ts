// The bounds of sessions and of the functions in the database.

export const POSTGRES_VERSION_MIN = 140_000;
/** Others may be migrating: the script waits up to 10 s for them. */
export const SCHEMA_MS_MAX = 15_000;
export const APPLICATION_NAME_BYTES_MAX = 63;
export const CONNECTION_CHECK_MS = 1_000;
/** For connecting, and for statements that have nothing to wait for. */
export const POSTGRES_ANSWER_MS_MAX = 5_000;
/** And three quarters of the session's statement_timeout, so that the caller reads why. */
export const FENCE_WAIT_MS_MAX = 1_500;
/** How long fenced transactions of the previous leader may still take before they are ended. */
export const FENCE_GRACE_MS = 20;
/** Of each scope. */
export const TRANSITIONS_KEPT = 100;
/** A session can stack one lock (trap 40); more than this is a mistake. */
export const UNLOCKS_MAX = 1_000;
/** Of payload and options together: what is submitted must fit into a record of the log, with room for the rest of it. */
export const SUBMISSION_BYTES_MAX = 256 * 1024;
