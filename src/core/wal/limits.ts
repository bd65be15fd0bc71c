// The bounds of what the log's files are written and checked by.

/** First room for the head of a snapshot; it grows. */
export const SNAPSHOT_META_BUFFER_BYTES = 1024;
/** No more than this is checksummed between two yields: 0.25 ms with zlib, 2 ms at worst on a busy machine. */
export const CHECKSUM_SLICE_BYTES = 1024 * 1024;
