// The bounds of spreading pages between sites.

/** The other sides have more of a line and nothing new has come for so long: one of them is asked. */
export const GRAFT_AFTER_MS = 1_000;
/** A page that was refused is not sent again, and whoever sent one that had to be refused is not asked again, before this is over. */
export const REFUSED_PAUSE_MS = 5_000;
/** A link over which a line comes with so many hops fewer replaces the one over which it comes now. */
export const HOPS_SAVED_MIN = 2;
/** A link is asked for its shorter way again after this: whoever claims one and sends nothing delays a line once in this time. */
export const SHORTER_WAY_AGAIN_MS = 10_000;
