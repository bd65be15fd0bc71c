// How often `tenure dev` checks, draws and submits, and how long it waits.

/** For nodes to stop; their files go anyway: nobody waits longer than this at a terminal. */
export const STOP_LIMIT_MS = 3_000;
/** Nobody stays frozen for longer, whatever becomes of us. */
export const FREEZE_S_MAX = 60;
export const PORT_TRIES_MAX = 200;
export const PARENT_CHECK_MS = 500;
export const RESTART_AFTER_MS = 3_000;
/** What fails so often before any server has answered will not succeed by itself. */
export const FAILED_STARTS_MAX = 3;
export const DEV_CHECK_MS = 100;
export const COUNT_EVERY_MS = 500;
export const CHECK_LIMIT_MS = 300;
export const SUMMARY_LIMIT_MS = 5_000;
export const DRAW_EVERY_MS = 200;
/** A node that was drained by a key may lead again after so long. */
export const DRAINED_MS = 10_000;
/** With --for: on a machine that does other things, the kills and the end may be so late. */
export const KILL_LATE_MS_MAX = 30_000;
/** Nobody waits longer at a terminal. */
export const FOR_MS_MAX = 86_400_000;
export const LOAD_EVERY_MS = 100;
export const LOAD_RETRY_MS = 5;
/** So long nothing is sent before somebody else leads; afterwards it may be that nobody will, because the leader was not hit. */
export const HASTE_MS = 3_000;
/** On one machine a server that says nothing for so long is frozen. */
export const LOAD_ATTEMPT_MS = 100;
export const LOAD_CALL_MS = 5_000;
/** Jobs that are searched for at the end; of a demonstration that ran for hours, the last. */
export const IDS_KEPT_MAX = 2_000;
export const LOAD_RETENTION_MS = 3_600_000;
export const PLAIN_EVERY_MS = 2_000;
/** Finished jobs are counted over so long. */
export const RATE_WINDOW_MS = 4_000;
export const HAPPENED_KEPT_MAX = 50;
export const HAPPENED_SHOWN_MAX = 10;
/** Of the sites of --sites: so often a job is submitted at each, and so long it runs. */
export const SITE_LOAD_EVERY_MS = 400;
export const SITE_JOB_MS = 250;
/** With --for: on a machine that does other things, each step may be so late, and the histories may become equal so late. */
export const SITES_LATE_MS_MAX = 60_000;
/** Each of three sites has a processor to share. */
export const SITE_CHECK_MS = 2_000;
