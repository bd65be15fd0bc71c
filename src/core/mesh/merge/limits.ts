// The bounds of the merged state. Other sites choose what their events say: each text of a row is cut, each list is short.

/** Of a kind, a queue, a platform, the name of an agent or of who submitted, in UTF-16 units. */
export const NAME_LENGTH_MAX = 256;
/** Of an error's message. */
export const MESSAGE_LENGTH_MAX = 1_024;
export const URL_LENGTH_MAX = 2_048;
export const LABELS_MAX = 32;
export const KINDS_MAX = 64;
export const SITE_URLS_MAX = 32;
