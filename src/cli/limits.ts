// The bounds of commands: what they read and show, and how long they wait.

import {
  JOB_PAYLOAD_BYTES_MAX,
  SNAPSHOT_BYTES_MAX,
  VALUE_BYTES_MAX,
  WAL_FRAME_PAYLOAD_BYTES_MAX,
} from "../core/kit/limits.ts";

/** An election takes less than a second: whoever waits at a terminal gets an error after this. */
export const LEADER_WAIT_MS = 3_000;
export const STATUS_MIN = 200;
export const STATUS_MAX = 599;
/** Far above what 256 keys and 64 peers take. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
export const CONFIG_DEPTH_MAX = 32;
export const LINE_SHOWN_MAX = 120;
/** More is not read into memory only to be refused. Spaces between the values of a file are not in the payload. */
export const PAYLOAD_FILE_BYTES_MAX = 4 * JOB_PAYLOAD_BYTES_MAX;
export const VALUE_FILE_BYTES_MAX = 4 * VALUE_BYTES_MAX;
/** Far above what the servers take: names and values may be written with escapes. */
export const TRANSACTION_FILE_BYTES_MAX = 8 * 1024 * 1024;
/** Of an island's backend hash in a list: enough to tell islands apart. */
export const HASH_LETTERS = 12;
/** Of a value in a table. */
export const VALUE_LETTERS_MAX = 60;
/** Letters of a name's beginning for a suggestion. */
export const BEGINNING_MIN = 4;
export const LIST_LIMIT_MAX = 100_000;
export const ATTEMPT_NUMBER_MAX = 1_000_000;
export const JOB_IDS_MAX = 1_000;
export const DELAY_MS_MAX = 365 * 24 * 3_600_000;
/** Jobs that are waited for at once: each waits on a stream of its own, and a server has a bounded number of them. */
export const WAITED_AT_ONCE_MAX = 16;
/** For the last read of a job when the time is over. */
export const LAST_READ_MS = 3_000;
/** So many sorts of jobs are asked about; of the others `tenure job show` says it. */
export const WHY_ASKED_MAX = 16;
/** Of events: as many digits as the servers read. */
export const SEQUENCE_MAX = 999_999_999_999_999;
export const PAYLOAD_LETTERS_MAX = 100;
export const BACKUPS_KEPT_MAX = 10_000;
export const BACKUP_UNFINISHED_MS = 24 * 3_600_000;
export const SNAPSHOT_FILE_BYTES_MAX = SNAPSHOT_BYTES_MAX + WAL_FRAME_PAYLOAD_BYTES_MAX;
/** A server that saves a snapshot first folds and syncs up to 256 MiB. */
export const SAVE_LIMIT_MS = 60_000;
export const WATCH_EVERY_MS = 1_000;
/** Beyond the servers' own limit (`transfer_timeout_ms`, 30 s), so that it is they who say how it ended. */
export const HAND_OVER_LIMIT_MS = 45_000;
/** A change waits for a majority of both configurations, and a promotion for the new voter to catch up. */
export const CHANGE_LIMIT_MS = 60_000;
/** Of one certificate, and of one command. */
export const CERTIFICATE_DAYS_MAX = 36_500;
export const HOSTS_MAX = 32;
export const CERTIFICATE_FILES_MAX = 100;
/** X.509 allows so many letters in an organisation's name, where the trust domain also is. */
export const TRUST_DOMAIN_LETTERS_MAX = 64;
/** Before it expires, a certificate is reported. */
export const CERTIFICATE_SOON_MS = 14 * 24 * 3_600_000;
/** Until a leader that was asked to resign is gone. */
export const SCOPE_CHANGE_MS = 10_000;
export const SCOPE_POLL_MS = 200;
export const NAMES_LISTED_MAX = 10;
/** For each question to each node; all nodes are asked at once. */
export const SUPPORT_ANSWER_MS = 10_000;
export const BUNDLED_BYTES_MAX = 4 * 1024 * 1024;
/** Shorter secrets are in every other word. */
export const SECRET_LENGTH_MIN = 4;
export const TAR_NAME_BYTES_MAX = 100;

/** Of one question of an audit: a page, or the first proof, which reads the whole history. */
export const MESH_CALL_MS = 60_000;
/** Pages of an audit that have come, or are asked for, before the one that is checked is done. */
export const MESH_PAGES_AHEAD_MAX = 3;
/** Events of `mesh log` in one answer, and how many are shown where nothing is asked for. */
export const MESH_LOG_PAGE = 100;
/** Of the newest: as many as one answer may have. */
export const MESH_LOG_NEWEST_MAX = 200;
/** Between two questions for events that have arrived since. */
export const MESH_LOG_POLL_MS = 500;
/** Of a replay: a node reads all that it has. */
export const MESH_VERIFY_MS = 86_400_000;
/** Of a question that a node is too busy to answer. */
export const MESH_RETRIES_MAX = 20;
/** Beyond a coordinator's own limit for leaving (LEAVE_MS, 15 s, and calls to all members around it), so that the node says how it ended. */
export const TC_LEAVE_LIMIT_MS = 30_000;

// ---- tenure sim

export const SHRINK_TRIES_MAX = 200;
/** Of the heap of a thread that runs seeds, the part for what lives shortly: with less of it much is copied while it dies. */
export const SIM_YOUNG_MB_MAX = 96;
export const EXPLAINED_MAX = 3;
export const LISTED_SEEDS_MAX = 100;
export const THREADS_MAX = 64;
/** What a seed draws at most next to what was asked for (sim/raft/knobs.ts). */
export const SPARES_DRAWN_MAX = 3;
export const VOTERS_DRAWN_MAX = 5;
/** npm passes on the Ctrl-C that the terminal has sent to us already: so soon after the first it is the same one. */
export const SAME_SIGNAL_MS = 300;
