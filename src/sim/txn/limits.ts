// The bounds of simulated transactions.

export const TXN_STEPS_MAX = 6_000_000;
/** After the last fault: islands elect, coordinators elect, whatever is in doubt is asked for, and done. */
export const TXN_CONVERGE_MS = 120_000;
/** What is asked again after the rest is settled: messages of long ago arrive now. */
export const TXN_GHOSTS_MS = 20_000;
/** Nobody waits for longer than this for an answer. */
export const TXN_ANSWER_MS = 20_000;
/** A transaction that nobody answers is given up by its client after so many calls. */
export const TXN_CALLS_MAX = 6;
/** Messages that are kept, to be delivered again at the end. */
export const TXN_GHOSTS_MAX = 400;
