// The bounds of the jobs service: what waits, what one turn takes, and how often something is checked or tried again.

/** How often a request checks whether the time of day is known by now. */
export const TIME_POLL_MS = 50;
/** Each of them finds the job changed in between: nobody is as unlucky as that. */
export const FOUND_LOOKS_MAX = 3;
/** How often views that are not there yet are asked again. */
export const FINDER_POLL_MS = 10;
/** Jobs of one request from which on it waits for its turn; smaller ones, and renewals, wait for nobody. */
export const SUBMITTED_LARGE_MIN = 32;
/** Jobs in one turn, unless one request alone has more: some eight milliseconds. */
export const SUBMITTED_PER_TURN = 256;
export const POLLS_MAX = 20_000;
export const LEASING_RETRY_MS = 50;
/** How often timers are checked at the latest: a loop that paused for longer than this and a stall is noticed. */
export const JOB_TIMERS_CHECK_MS = 500;
export const JOB_TIMERS_RETRY_MS = 250;
/** How long a job that is being cancelled may go on while its agent renews it; from then on renewals are not counted. */
export const CANCEL_MS_MAX = 60_000;
/** Longer than the longest poll and its answer take: an agent that polls is never silent for so long. */
export const AGENT_SILENCE_MS = 90_000;
/** What was fired and is not applied by then was refused (there is no room for the job), and is fired again. */
export const SCHEDULE_RETRY_MS = 10_000;
/** After a rollback: other appends are under way, and are over by then. */
export const SCHEDULE_ROLLBACK_RETRY_MS = 250;
/** After a leader's begin: its views have to follow first. */
export const RETENTION_FIRST_CHECK_MS = 1_000;
/** How late a job may be forgotten, about. */
export const RETENTION_CHECK_MS = 10_000;
/** Between two pages: time for the views to follow. Nearly 10,000 jobs in a second, which is more than a leader finishes. */
export const RETENTION_PAGE_MS = 100;
export const RETENTION_PAGE_JOBS_MAX = 1_000;
/** Submissions in one append, whose size is bounded. */
export const SUBMISSIONS_TAKEN_MAX = 400;
export const SUBMISSIONS_CHARS_MAX = 128 * 1024;
export const SUBMISSIONS_RETRY_MS_MIN = 500;
export const SUBMISSIONS_RETRY_MS_MAX = 10_000;
/** Jobs of transactions in one append. */
export const DELIVERED_JOBS_MAX = 200;
export const DELIVERED_CHARS_MAX = 128 * 1024;
/** So often a submission may fail by itself: the first time it may have been something else. */
export const SUBMISSION_FAILURES_MAX = 3;
export const PROBLEM_LENGTH_MAX = 500;
/** Jobs that go to the views at once; less where the turn's slice is over before. */
export const PUT_JOBS_MAX = 500;
/** Of a walk through the book, between two reads of the clock. */
export const WALKED_PER_LOOK = 16;
/** Changes of jobs that are taken or forgotten stay in the queue until there are so many of them. */
export const CHANGES_KEPT = 1_024;
export const JOBS_WAITING_MAX = 100_000;
export const LOG_CHARS_WAITING_MAX = 32 * 1024 * 1024;
export const VIEWS_RETRY_MS = 1_000;
/** A replay whose history is being fetched from other nodes, or can't be read. */
export const HISTORY_RETRY_MS = 5_000;
/**
 * From when the views had everything until they are fed again. A busy node's jobs go through several states in it and are
 * written once; after a quiet moment the first change is put at once.
 */
export const VIEWS_REST_MS = 200;
/** What jobs that have not ended yet, as far as the replay is, may have logged. */
export const LOG_CHARS_HELD_MAX = 16 * 1024 * 1024;
export const REPLAYED_PER_LOOK = 16;
/** The loop belongs to others after so long, for a while: nobody waits for what is replayed. */
export const REPLAY_SLICE_MS = 2;
export const REPLAY_REST_MS = 6;
/** Jobs whose way to an agent is timed at one moment; of more that wait, those that came later are not. */
export const JOBS_TIMED_MAX = 10_000;
