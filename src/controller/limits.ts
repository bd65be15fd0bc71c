// The bounds of what the controller's services share.

/** Of running time, after all stalls since the last renewal together. */
export const STALL_GRACE_MS = 1_000;
/** The heap holds at most this many of leases that ended, next to as many as are live. */
export const LEASES_ENDED_KEPT_MAX = 1_024;
/** A start whose backend is away. */
export const START_RETRY_MS = 200;
/** A revoked certificate, after it has expired. */
export const CERTIFICATES_KEPT_MS = 24 * 3_600_000;
