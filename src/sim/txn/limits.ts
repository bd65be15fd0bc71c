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
export const TXN_SIM_TRY_MS = 600;
export const TXN_SIM_REST_MS = 40;
export const TXN_SIM_AGAIN_MS = 700;
export const TXN_SIM_LOOK_EVERY_MS = 250;
export const TXN_SIM_SILENCE_MS = 6_000;
/** Ids of clients whose clocks are right are taken there, and for some seconds more. */
export const TXN_SIM_BEHIND_MS_MAX = 7_000;
export const TXN_SIM_AHEAD_MS_MAX = 11.9 * 3_600_000;
export const TXN_SIM_RESTART_AFTER_EXIT_MS = 50;
export const TXN_SIM_LATE_MS = 2_000;
export const TXN_RATE_MIN = 0.8;
export const TXN_RATE_MAX = 1.2;
/** How far a slow clock falls back in a run, at most, about. */
export const TXN_SIM_DRIFT_MS = 40_000;
export const TXN_SIM_STAGED_FOR_MS = 20_000;
export const TXN_SIM_ANSWERS_IN_MS = 1_000;
/** Faults begin when islands and coordinators have their first leaders, mostly. */
export const TXN_SIM_FROM_MS = 3_000;
export const TXN_SIM_EVERY_MS = 250;
export const TXN_SIM_HELD_MAX = 12;
