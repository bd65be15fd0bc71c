// The bounds of an agent: how long it waits, how much it collects, how often it tries again.

import { LOG_CHUNK_BYTES_MAX, UTF8_BYTES_PER_UNIT_MAX } from "../core/kit/limits.ts";

/** `stop`: how long jobs may go on, unless the caller says otherwise. */
export const STOP_DRAIN_MS = 10_000;
/** For handlers to settle after they were aborted. */
export const HANDLERS_GRACE_MS = 1_000;
/** For the last results and the last poll to be answered; for an agent that starts, its registration. */
export const AGENT_FAREWELL_MS = 5_000;
/** A job lease, unless the caller says otherwise. */
export const AGENT_LEASE_MS = 15_000;
/** An attempt checks its lease and its timeout at least this often. */
export const LEASE_CHECK_MS_MAX = 1_000;

/** Progress and logs are collected for this long before they are sent. */
export const REPORT_MS = 100;
/** At least one chunk of a log is sent with each renewal. */
export const LOG_BYTES_PER_CALL_MIN = 1;
/** Of logs in one call; one unit may take six letters in JSON, and a call at most a MiB. */
export const LOG_BYTES_PER_CALL_MAX = 128 * 1024;
/** Of one attempt's log, waiting to be sent. */
export const LOG_BUFFER_BYTES_MAX = 1024 * 1024;
/** Above it, whoever can wait does. */
export const LOG_BUFFER_BYTES_HIGH = LOG_BUFFER_BYTES_MAX / 2;
export const LOG_CHUNK_UNITS_MAX = Math.floor(LOG_CHUNK_BYTES_MAX / UTF8_BYTES_PER_UNIT_MAX);
/** Of all results in one call, in letters of JSON; a single result may have more. */
export const RESULTS_LETTERS_MAX = 256 * 1024;
/** How long one node may take to answer: an attempt's time for each so many letters, and twice as long after each failure. */
export const RESULTS_LETTERS_PER_ATTEMPT = 128 * 1024;
/** Of an error's name in a result. */
export const ERROR_NAME_LETTERS_MAX = 200;

/** The same complaint is logged again after this. */
export const COMPLAINT_AGAIN_MS = 10_000;
/** Between two attempts of a call that failed. */
export const CREW_RETRY_MS_MIN = 50;
export const CREW_RETRY_MS_MAX = 2_000;

/** Until the next poll, where the leader is being drained: it gives no jobs, and answers at once. */
export const DRAINING_PAUSE_MS = 500;
/** Until the next poll, where no job was given and the server did not wait. */
export const EMPTY_PAUSE_MS = 20;
/** For the last poll, in one attempt: a connection and a request with a latency of 400 ms take 1.6 s. */
export const LAST_POLL_MS = 2_500;

/** Until SIGKILL counts as failed: a process in uninterruptible sleep outlives it, though it runs none of its own code. */
export const EXEC_KILL_MS = 5_000;
/** Between two attempts to kill processes that outlived the first. */
export const EXEC_KILL_AGAIN_MS = 5_000;
/** For what a command printed before its end, where a process that escaped holds the pipe open. */
export const EXEC_PRINTED_MS = 1_000;
/** Of a wrong value that a message quotes. */
export const QUOTED_LETTERS_MAX = 60;
/** Of a command's last line of output, which becomes the error's message. */
export const LAST_LINE_LETTERS_MAX = 500;
