// The bounds of a site among other sites.

/** What one peer may send in a second. */
export const PEER_EVENTS_PER_S_MAX = 5_000;
export const PEER_BYTES_PER_S_MAX = 8 * 1024 * 1024;
/** Pages of one peer that wait to be verified or applied: two requests with as many as fit, and the stream's. */
export const PAGES_WAITING_PER_PEER_MAX = 33;
/** Peers whose mistakes are counted. */
export const PEERS_BLAMED_MAX = 4_096;
/** Of a line's name in an answer about a page that is none. */
export const LINE_SHOWN_LENGTH_MAX = 128;
/** Between two attempts to reach a parent, at first. */
export const REDIAL_MS_MIN = 200;
/** How often a head that is shorter than ours is compared with our history, for each line: that reads some of it. */
export const HEAD_PROOF_EVERY_MS = 10_000;
/** How often lines and rights are compared with what the registry says. */
export const LINES_CHECK_MS = 1_000;
