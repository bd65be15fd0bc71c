// The bounds of the disk driver.

/**
 * A large file is synced each time this much of it is written. With one sync at the end, the log's own syncs waited for all of
 * it: 50 to 75 ms at worst during a snapshot of 200 MiB, now 5 to 7 ms.
 */
export const DISK_UNSYNCED_BYTES_MAX = 8 * 1024 * 1024;

/** A full disk: between two attempts to write, and between two checks of the free space. */
export const SPACE_RETRY_MS = 500;
export const SPACE_CHECK_MS = 1_000;
export const WRITE_PIECE_BYTES = 1024 * 1024;
export const WRITE_BUFFER_BYTES_MIN = 64 * 1024;
export const READ_PIECE_BYTES = 16 * 1024 * 1024;
/** Below so much free space the state is "low". */
export const FREE_BYTES_MIN = 64 * 1024 * 1024;
