// The bounds of sessions and pools.

/** How long a session may take to end before its socket is destroyed. */
export const GOODBYE_MS = 1_000;
export const POSTGRES_KEEPALIVE_MS = 2_000;
/** Transactions of `term.tx` under way at once; more wait for one to end. */
export const LENT_CLIENTS_MAX = 10;
export const LENT_CONNECT_TIMEOUT_MS = 5_000;
export const LENT_CLOSE_MS = 1_000;
