// The bounds of what loops share.

/** Of a file that is written in pieces, before they are synced. */
export const UNSYNCED_BYTES_MAX = 4 * 1024 * 1024;
