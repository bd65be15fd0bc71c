// The bounds of the state log's records.

/** Changes that one record makes together. */
export const CHANGES_PER_RECORD_MAX = 255;
