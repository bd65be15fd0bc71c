// What the writers, readers and watchers of values in a simulated cluster may take.

export const VALUE_AGAIN_MS = 100;
/** For a leader, for what a node of another release took over, and for nodes that catch up. */
export const VALUES_WITHIN_MS = 60_000;
export const WRITER_TTL_MS = 1_000;
export const WRITER_WAIT_MS = 300;
export const WRITER_UNANSWERED_MS = 400;
export const WRITER_STANDSTILL_MS = 1.5 * WRITER_TTL_MS;
export const WRITER_BURSTS_MAX = 12;
export const WRITER_LAST_EVERY_MS = 300;
