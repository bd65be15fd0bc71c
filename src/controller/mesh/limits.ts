// The bounds of a site among other sites.

/** Points of the own tree that are kept: whoever pulls asks for what follows the page that it has just had. */
export const POINTS_KEPT_MAX = 256;
/** Signed notes that are kept: a head is asked for by every peer, each second. */
export const NOTES_KEPT_MAX = 256;
/** Pages of the own line that are cut at one moment: each may read a segment of the history. */
export const PAGES_AT_ONCE_MAX = 2;
export const PAGES_WAITING_MAX = 128;
/** How often the leader checks that the ring names every member. */
export const RING_CHECK_MS = 1_000;
/** So long a leader waits for the keys of members that do not answer, before it writes a ring without them. */
export const RING_WAIT_MS = 10_000;
/** Rings of one line: all of them are in the state of every node. */
export const RINGS_MAX = 256;
/** Of a site's own lines, those of the last generations can be asked for. */
export const GENERATIONS_KEPT_MAX = 32;
/** Of the addresses that a site shows of itself. */
export const OWN_URLS_MAX = 32;
