// The bounds of gaining, confirming and handing over leadership.

/** An open that was refused (too much waits, a transfer) is tried again after about this time. */
export const OPEN_RETRY_MS = 50;
export const REIGN_WAITERS_MAX = 8_192;
export const CONFIRMATIONS_PENDING_MAX = 65_536;
/** For the last leader's workers to end: somebody else leads sooner than a worker that can't be killed dies. */
export const CLEAR_MS_MAX = 150;
/** What was refused until a person repairs something: tried again so seldom, and logged each time. */
export const REFUSED_PAUSE_MS = 5_000;
/** Requests wait so long for a successor before they are refused. */
export const HANDING_OVER_MS_MAX = 1_000;
/** A successor that does not answer is cleared when it is elected. */
export const EMPTY_MS_MAX = 300;
/** For a hand-over by one that may do nothing meanwhile. */
export const GIVE_UP_MS_MAX = 1_000;
