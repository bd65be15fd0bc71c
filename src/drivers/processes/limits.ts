// How long processes may take to start, to end and to be found.

/** Until SIGKILL counts as failed: uninterruptible sleep outlives it. Whoever waits asks again. */
export const KILL_MS_MAX = 2_000;
/** A controller with a gigabyte of memory takes longer to end. */
export const CONTROLLER_KILL_MS_MAX = 15_000;

/** Between two checks whether a family is gone: at first, and later. */
export const FAMILY_QUICK_MS = 2;
export const FAMILY_PATIENT_MS = 10;
/** Reads of the process table until no new process of a family appears; a machine may start processes all the time. */
export const TABLE_ROUNDS_MAX = 50;
/** The reaper's kills take some ten milliseconds. */
export const REAPER_PATIENCE_MS = 250;

export const KEEPER_TICK_MS_MAX = 1_000;
/** For short leases the keeper's first shell wakes more often: this many ticks at least, the last one for the sweep to begin. */
export const KEEPER_TICKS_MIN = 6;
export const KEEPER_ORPHAN_MS = 10_000;
export const KEEPER_RESTART_MS_MIN = 200;
export const KEEPER_RESTART_MS_MAX = 10_000;
/** A keeper whose sweep takes longer, because a process outlives SIGKILL, goes on by itself. */
export const KEEPER_CLOSE_MS = 3_000;
/** Of a file in /proc, read at once. */
export const TABLE_CHUNK_BYTES = 64 * 1024;
