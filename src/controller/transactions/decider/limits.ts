// The bounds of the coordinator of transactions. A transaction's own time is `timeout_ms`, which its islands have too:
//
//   0 ────── ① prepare ────── ½ ────── ② home decides ────── 1 ── ③ the others commit   ── + TXN_APPLY_MS
//
// An island asks home when the whole time has passed since it prepared, and home, not knowing the transaction, would end it. So ① has the first half: what is
// not prepared by then is rolled back, and ② always begins while half of the time is left.

/** The part of a transaction's time within which all islands have prepared. */
export const TXN_PREPARE_PART = 0.5;
/** The part within which a home that decided nothing the last time has to answer, before anything is prepared for it. */
export const TXN_HOME_PART = 0.2;
/** After home has committed, the client waits so long for the other islands; those that have not answered are `pending`. */
export const TXN_APPLY_MS = 1_000;
/** One call, before the term is asked again and the call is repeated. The driver repeats it within that time by itself. */
export const TXN_CALL_MS = 2_000;
/** Between two calls of which the first one came to nothing at once. */
export const TXN_CALL_AGAIN_MS = 25;
/** Transactions that one node coordinates, and as many that it forwards or stages at other islands, at one moment. */
export const TXN_RUNNING_MAX = 1_024;
/** Of their operations, as JSON, of those that are run, and of those that are forwarded or staged: 128 of the largest. */
export const TXN_RUNNING_BYTES_MAX = 64 * 1024 * 1024;
/** Ids that a node remembers because an attempt of its own has begun something. */
export const TXN_BEGUN_MAX = 4_096;
/** What a forwarded transaction takes longer than one that is run here: the way there, and a busy machine. */
export const TXN_FORWARD_EXTRA_MS = 1_000;
/** An island stages within this, or what became of it is not known. */
export const TXN_STAGE_WITHIN_MS = 5_000;
/** A new leader, at one island: a page of what is open there. */
export const TXN_RECOVER_CALL_MS = 2_000;
/** Initial and maximum delay before an island that did not answer is asked again. */
export const TXN_RECOVER_RETRY_MS_MIN = 100;
export const TXN_RECOVER_RETRY_MS_MAX = 5_000;
/** Between two looks whether the registry has another island. */
export const TXN_RECOVER_LOOK_MS = 1_000;
/** Hints to one island that are under way; the driver gathers them. */
export const TXN_HINTS_AT_ONCE = 64;
/** A home that decides nothing: initial and maximum delay before it is asked again whether it does. */
export const TXN_HOME_RETRY_MS_MIN = 100;
export const TXN_HOME_RETRY_MS_MAX = 2_000;
