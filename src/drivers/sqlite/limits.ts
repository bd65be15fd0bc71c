// The bounds of the views: what waits, what one message, transaction, page or search may take.

import { READ_TURN_MS } from "../../core/kit/timeouts.ts";

/** Puts that wait; past it they are refused. */
export const PUTS_WAITING_MAX = 256;
/** Of jobs and logs that were posted to the writer and are not taken yet. */
export const IN_FLIGHT_BYTES_MAX = 8 * 1024 * 1024;
/** A put goes over in pieces: posting copies, and the main thread has other things to do. */
export const PIECE_BYTES_MAX = 256 * 1024;
export const PIECE_ROWS_MAX = 256;
/** How long the main thread converts jobs at a stretch; design D10 allows 5 ms. */
export const TURN_MS_MAX = 2;
/** Puts that wait share a transaction up to this size. */
export const TRANSACTION_BYTES_MAX = 4 * 1024 * 1024;

/** Reads that are with the thread: the one that it answers, and what it does next. */
export const READS_POSTED_MAX = 4;
/** How long a read waits for its turn; then it is refused. */
export const READ_WAIT_MS_MAX = READ_TURN_MS;
/** Memory: each is a few hundred bytes. */
export const READS_WAITING_MAX = 10_000;
export const PAGE_JOBS_MAX = 500;
/** A page is cut after the job that reaches it. */
export const JOBS_PAGE_BYTES_MAX = 1024 * 1024;
/** How long one page is looked for; then it is cut where the search has got to. */
export const PAGE_MS_MAX = 200;
/** Rows between two looks at the clock. */
export const PAGE_ROWS_PER_LOOK = 64;
/** A filter that fits fewer jobs than this is walked first; more are not counted. */
export const PROBE_ROWS_MAX = 10_000;
/** Sequences that a search looks at in one step. */
export const SEARCH_WINDOW = 500_000;
/** A filter that fits no more jobs than this is walked, whatever the others fit. */
export const PROBE_FEW = 100;
/** Words are counted in so many windows of so many sequences, to choose what is walked first. */
export const PROBE_WINDOW = 50_000;
export const PROBE_WINDOWS_MAX = 4;
/** What is looked at before anything is counted. */
export const GLANCE_ROWS_MAX = 1_000;
export const GLANCE_WINDOW = 10_000;
/** Prepared statements of a connection that are kept for the next page. */
export const STATEMENTS_KEPT = 64;
/** Ids of jobs that one question after expired ones is answered with. */
export const EXPIRED_JOBS_MAX = 10_000;

export const SEARCH_WORDS_MAX = 16;
/** Longer words are cut, in jobs and in searches alike. */
export const WORD_LENGTH_MAX = 64;
/** Words of one job that are found; a payload is no document store. */
export const JOB_WORDS_MAX = 1_000;
export const JOB_TEXT_LENGTH_MAX = 32 * 1024;

/** A thread that dies is started again so often; a healthy minute forgives. */
export const RESTARTS_MAX = 5;
export const RESTARTS_FORGIVEN_MS = 60_000;
/** How long `close` waits for what is under way; a put that it cuts off was not acknowledged. */
export const VIEWS_CLOSE_MS_MAX = 10_000;
export const THREAD_HEAP_MB_MAX = 128;

export const WRITER_CACHE_KIB = 16 * 1024;
export const READER_CACHE_KIB = 8 * 1024;
export const CHECKPOINT_PAGES = 4_000;
export const WAL_KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** Free pages that are kept for what comes next; what is above goes back to the disk, a little after each transaction. */
export const FREE_PAGES_KEPT = 1_024;
export const VACUUM_PAGES_MAX = 256;
/** Of files that were moved aside, the newest stay. */
export const ASIDE_FILES_KEPT = 1;

/** Free space below which a failed write is taken for a full disk. */
export const ROOM_BYTES_MIN = 1024 * 1024;
/** The longest character of a log: a page with less room could be empty for ever. */
export const LOG_CHARACTER_BYTES_MAX = 4;
/** For another thread's checkpoint, the only thing that a connection waits for. */
export const BUSY_MS_MAX = 5_000;
/** Nesting of a payload whose words are found. */
export const PAYLOAD_DEPTH_MAX = 64;

/** Rows of `event_log`: the newest. The archives have all of them. */
export const MESH_EVENTS_KEPT = 1_000_000;
/** Rows that are removed from it after one piece, so that no transaction is long. */
export const MESH_EVENTS_DROPPED_MAX = 1_024;
/** Places of receipts that are removed in one transaction. */
export const MESH_RECEIPTS_DROPPED_MAX = 4_096;
/** Lines of one site that are kept because the site says that they ended: it has no more generations than that. */
export const MESH_LINES_PER_SITE_MAX = 64;
/** Jobs of a line that are found at a time, where all of them are shown again. */
export const MESH_SHOWN_AGAIN_MAX = 1_024;
/** A longer payload is not copied into `event_log`. */
export const MESH_PAYLOAD_LENGTH_MAX = 4_096;
/** The longest time of a registration that a row of `controller_nodes` shows: the specification's default. */
export const MESH_REGISTRATION_MS = 300_000;
/** How long rows are counted at a stretch: other reads wait for it. */
export const MESH_COUNT_MS_MAX = 20;
/** A count that nobody goes on with for so long is given up. */
export const MESH_COUNT_IDLE_MS_MAX = 60_000;
/** Of a saved state, read at a time. */
export const BASE_READ_BYTES = 64 * 1024;
/** Sites that are listed. */
export const MESH_CONTROLLERS_MAX = 2_000;
/** Agents and events of one page. */
export const MESH_PAGE_ROWS_MAX = 500;
