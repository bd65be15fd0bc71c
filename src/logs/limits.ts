// The bounds of logs and of the archive.

/** Kept for readers that lag; whoever needs older ones reads the state. */
export const KEPT_RECORDS_MAX = 65_536;
export const KEPT_BYTES_MAX = 16 * 1024 * 1024;
/** Of one append. */
export const BATCH_RECORDS_MAX = 4_096;

// ---- the archive

/** Nobody waits for events to reach the archive: they are in the log. So they are synced seldom, and many at once. */
export const ARCHIVE_SYNC_MS = 200;
export const ARCHIVE_SYNC_BYTES = 1024 * 1024;
/** What waits for the disk is in memory; past this, whoever admits commands should admit no more. */
export const ARCHIVE_UNSYNCED_BYTES_ALARM = 64 * 1024 * 1024;
/** Segments in one go: others wait for the disk meanwhile. */
export const SEGMENTS_REMOVED_MAX = 64;
export const RETENTION_INTERVAL_MS = 3_600_000;
/** So many times as old as it is kept, history goes although somebody may still need it. */
export const STUCK_TIMES_MAX = 2;
/** Read segments in memory, 4 MiB each. */
export const SEGMENTS_KEPT_MAX = 2;
export const READ_EVENTS_MAX = 256;
export const READ_BYTES_MAX = 256 * 1024;
export const READ_STEPS_PER_LOOK = 32;
/** Steps are well below a millisecond, so a slice stays below 5 ms. */
export const ARCHIVE_SLICE_MS = 3;
/** A missing segment, fetched from other nodes in pieces. */
export const PIECE_TIMEOUT_MS = 5_000;
export const FETCH_RETRY_MS_MIN = 250;
export const FETCH_RETRY_MS_MAX = 60_000;
export const FETCH_DOUBLINGS_MAX = 10;
/** So many segments in a row that nobody has, and the rest waits too. */
export const FETCH_FAILURES_MAX = 3;

// ---- in Postgres

/** A notice may be lost: the log is read this often without one. */
export const LOG_READ_MS = 500;
export const LOG_PAGE_RECORDS_MAX = 1_000;
/** A page has at least one record, whatever its size. */
export const LOG_READ_BYTES_MAX = 4 * 1024 * 1024;
/** A snapshot may be replaced while it is read. */
export const SNAPSHOT_ATTEMPTS_MAX = 5;
export const REPLAY_PAGE_RECORDS_MAX = 500;
export const REPLAY_RETRY_MS = 250;
export const SESSION_RETRY_MS_MIN = 100;
export const SESSION_RETRY_MS_MAX = 1_000;
/** A node keeps its name by beats; the server ends a session that is silent for several of them. */
export const NODE_BEAT_MS = 1_000;
export const NODE_SESSION_IDLE_MS = 6_000;
/** A frozen namesake, or our own session of a broken connection, has lost the name after NODE_SESSION_IDLE_MS. */
export const NODE_CLAIM_MS_MAX = NODE_SESSION_IDLE_MS + 2_000;
/** From here on a name is no twin: a node that was renamed leaves its old name for a day. */
export const TWIN_SILENT_MS_MAX = 5_000;
export const OUTAGE_AGAIN_MS = 60_000;
/** Of a snapshot, made in one turn. */
export const SNAPSHOT_PART_BYTES_MAX = 1024 * 1024;
export const TRIMMED_RECORDS_MAX = 1_000;
/** What is sent as one transaction. One append alone may be as large as an append may be. */
export const GROUP_RECORDS_MAX = 8_192;
export const GROUP_BYTES_MAX = 2 * 1024 * 1024;
/** Longer than an open may wait for an append under way. A session that was idle may be dead without anybody knowing. */
export const WRITER_OPEN_MS_MAX = 2_500;
export const INBOX_POLL_MS = 200;
/** While no number is known yet each poll reads everything. */
export const INBOX_FIRST_POLL_MS = 1_000;
/** How long a submission may wait that was committed when nobody thought of its number any more. */
export const INBOX_FULL_POLL_MS = 10_000;
export const INBOX_RETRY_MS_MIN = 100;
export const INBOX_RETRY_MS_MAX = 2_000;
export const INBOX_TAKEN_MAX = 1_000;
export const INBOX_UNDER_WAY_MAX = 10_000;
/** How long a submission's number is waited for: longer than a transaction should be open. */
export const INBOX_MARK_KEPT_MS = 60_000;
/** Numbers that are waited for: each costs a read of the index. */
export const INBOX_PASSED_OVER_MAX = 1_000;
