// The bounds of the state log's services.

/** Appends that may wait to be committed; past it new requests are refused for now. */
export const STATE_APPENDS_MAX = 8_192;
/** An answer that rests on what is given up meanwhile is looked for again so often. */
export const DECIDE_AGAIN_MAX = 3;
