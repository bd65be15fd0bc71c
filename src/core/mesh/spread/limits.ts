// The bounds of spreading pages between sites.

/** The other sides have more of a line and nothing new has come for so long: one of them is asked. */
export const GRAFT_AFTER_MS = 1_000;
/** A link that claims more of a line and sends nothing is asked again after 1 s, 2 s, 4 s and so on, and then this often. */
export const GRAFT_AGAIN_MS_MAX = 8_000;
/** A page that was refused, or answered by a second gap within this time, is not sent again, and whoever sent one that had to be refused is not asked again, before this is over. */
export const REFUSED_PAUSE_MS = 5_000;
/** A link over which a line comes with at least so many hops fewer replaces the one over which it comes now. */
export const HOPS_SAVED_MIN = 1;
/** A link is asked for its shorter way again after this: whoever claims one and sends nothing delays a line once in this time. */
export const SHORTER_WAY_AGAIN_MS = 3_000;
