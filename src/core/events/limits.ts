// The bounds of events: what is kept to encode the next one faster, and where scanning changes its way.

/** The same few names come in every event: each of these is quoted once. Callers have names too, so it is begun anew when it is full. */
export const NAME_TEXTS_MAX = 1_024;
export const NAME_TEXT_LENGTH_MAX = 64;
/** Of the event types that were met: each is parsed once. */
export const ENTITIES_KEPT_MAX = 1_024;
/**
 * Events are many and small: each a buffer of its own would cost more than its text. They lie next to each other in slabs, which
 * live as long as the last of their events; a larger one gets a buffer of its own.
 */
export const SLAB_BYTES = 64 * 1024;
export const SLAB_SHARE_MAX = SLAB_BYTES / 8;
/** Of each half of an event's type. */
export const WORD_BYTES_MAX = 32;
/** Of one object; past it a set is cheaper than comparing with each. */
export const KEYS_COMPARED_MAX = 16;
