// The bounds of supervision: how often a process is started again, and after how long.

/** An agent whose key is not known, or may not do this, is started again after this. */
export const AGENT_KEY_RETRY_MS = 60_000;
/** A process that ends so often in a row, each time after less than SHORT_RUN_MS, is given up. */
export const CRASHES_MAX = 5;
export const SHORT_RUN_MS = 10_000;
export const SUPERVISION_TICK_MS = 500;
/** A command that ended by itself waits this long, doubling, until it is started again; a run that was long enough resets it. */
export const RESTART_MS_MIN = 100;
export const RESTART_MS_MAX = 5_000;
export const RUN_HEALTHY_AFTER_MS = 10_000;
