// The bounds of a book's own memory and of its schedules. What a job, an agent or a call may have is in core/kit/limits.ts.

import { SNAPSHOT_BYTES_MAX } from "../kit/limits.ts";

/** The 29th of February can be eight years away (1896 to 1904, 2096 to 2104). */
export const CRON_SEARCH_DAYS_MAX = 8 * 366 + 2;
export const CRON_CHARACTERS_MAX = 256;
/** So often in a row a job is given back without a pause: its agent stops, and the next one too. */
export const HANDED_BACK_FREE = 2;
/** From then on, twice as long each time. */
export const HANDED_BACK_MS_MIN = 100;
export const HANDED_BACK_MS_MAX = 5_000;
/** Of one of the tables from an id to its job. */
export const ID_PLACES_MIN = 16;
/** What was unpacked lately is often asked for again, in the same turn: by whoever decides, and by whoever evolves. */
export const RECENT_JOBS_KEPT = 2_048;
export const RECENT_JOB_BYTES_MAX = 4 * 1024;
/** Of the slots that were left while somebody held the shelf, so many go with each job that comes or goes afterwards. */
export const SLOTS_FREED_MAX = 8;
/** Names, ids, sessions: far above what any of them may have. */
export const SNAPSHOT_NAME_BYTES_MAX = 4 * 1024;
export const SNAPSHOT_TEXT_BYTES_MAX = SNAPSHOT_BYTES_MAX;
/** Delayed jobs that become ready with each event: a follower's index must keep up with a leader's. */
export const READIED_PER_EVENT_MAX = 4;
/** Of one chunk of a ranked list. */
export const RANKED_CHUNK_MAX = 512;
/** Policies that are kept for the next job that has the same; past it all are dropped, which costs memory only. */
export const POLICIES_KEPT_MAX = 1_024;
/** In one turn: a millisecond, of a million jobs of which nothing has become. */
export const JOBS_SCANNED_MAX = 10_000;
/** Of the jobs' bytes. */
export const PACK_CHUNK_BYTES = 256 * 1024;
/** A slice ends after the record with which it reaches this: 80 small jobs, well below a millisecond. */
export const SNAPSHOT_SLICE_BYTES = 8 * 1024;
/** Room for the record that goes past it, as most are. */
export const SNAPSHOT_RECORD_BYTES = 4 * 1024;
