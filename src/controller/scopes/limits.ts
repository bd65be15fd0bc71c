// The bounds of the scopes service.

/** How often leases are checked: a loop that paused for longer than this and a stall is noticed. */
export const SCOPE_LEASES_CHECK_MS = 500;
export const EXPIRY_RETRY_MS = 250;
/** While as many appends wait as may. */
export const BUSY_RETRY_MS = 10;
/** A hold that ends while it is repeated is followed by a campaign like any other; one that comes back, by another read. */
export const HOLD_AGAIN_MAX = 3;
export const SCOPE_WATCHERS_TOTAL_MAX = 20_000;
