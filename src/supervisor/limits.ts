// How long the supervisor and its client wait.

/** How long a node stays empty after `empty`: longer than a transfer takes. Then the worker starts again. */
export const EMPTY_NODE_MS = 3_000;
/** For a supervisor's answer to `empty`. */
export const EMPTY_ANSWER_MS = 1_000;
/** After a clearance that came too late: longer than the elections that follow from it. */
export const CLEARANCE_HOLD_MS = 5_000;
/** Between two searches for processes that outlived SIGKILL. */
export const SURVIVORS_AGAIN_MS = 2_000;
