// How long an agent's process waits for its jobs, and its supervisor for it.

import { EXEC_KILL_MS } from "../../agent/limits.ts";

export const AGENT_NAME_LETTERS_MAX = 100;
export const ALIVE_EVERY_MS = 500;
/** For a job's SIGKILL to be seen, beyond its grace. */
export const JOB_KILL_MS = EXEC_KILL_MS + 1_000;
/** For what was killed in a hurry to be handed back. */
export const HURRY_MS = 2_000;
