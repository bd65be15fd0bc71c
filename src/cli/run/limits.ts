// How long `tenure run`, its guard and the command wait for each other.

/** A campaign that is won at once does not report who led before. */
export const ASK_WHO_AFTER_MS = 300;
/** The backend may be out of reach: the scope is then released by its server timeout. */
export const CLOSE_MS_MAX = 5_000;
export const RUN_GRACE_MS = 2_000;
/** How often the gate is asked for its deadline; that moves with each heartbeat only. */
export const EXTEND_EVERY_MS = 100;
export const GATE_EVERY_MS = 50;
/** A change of the deadline that is worth a message. */
export const EXTENSION_MS_MIN = 1;
/** Guards in a row that do not get ready (out of memory, of processes), or freeze before they start the command. */
export const GUARD_ATTEMPTS_MAX = 3;
/** Beyond grace and drain: what SIGKILL may take, with room. The work of a term always settles in less. */
export const SETTLE_MS_MAX = 30_000;
/** Timers follow the monotonic clock; a jump of the wall clock is seen after so long at most. */
export const GUARD_CHECK_MS = 100;
/** While the group is ending. */
export const GONE_EVERY_MS = 10;
/** A member in uninterruptible sleep outlives SIGKILL, though it runs no more of its own code. */
export const UNKILLABLE_AFTER_MS = 5_000;
export const GUARD_FAREWELL_MS = 1_000;
/** So late with a kill, a guard is taken for frozen. */
export const GUARD_LATE_MS = 250;
/** A guard that has not answered for so long, or for the trust window if that is shorter, is taken for frozen. */
export const GUARD_ANSWER_MS_MAX = 5_000;
/** Deadlines that a frozen guard does not read; one is sent for each heartbeat. */
export const GUARD_UNREAD_BYTES_MAX = 64 * 1024;
/** An environment and a command line fit; execve takes about 2 MB of both. */
export const GUARD_LINE_CHARACTERS_MAX = 8 * 1024 * 1024;
