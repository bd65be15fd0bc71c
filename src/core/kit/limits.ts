// Every queue, batch, frame, retry and loop has its bound here, with the unit last in its name. Waits that
// lie inside of one another: timeouts.ts.

import { LONG_POLL_MS_MAX } from "./timeouts.ts";

/** The largest term or index that may be decoded: integers above it are not exact in a double. */
export const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
/** A term further ahead than this is forged or corrupt, whoever sends it (trap 31). */
export const TERM_JUMP_MAX = 2 ** 32;
/**
 * How far and how fast other nodes may raise a node's term: so much at once after its start, and then so much in a second,
 * which it may save up to TERM_JUMP_MAX. An election raises it by one, `recover --force-new-cluster` by 2^20 (design D1): a
 * node that missed 15 of those comes back at once. At this rate the range of terms lasts for a thousand years, whoever
 * sends what, and a node that is further off still comes back after a while.
 */
export const TERM_RISE_AT_START = 2 ** 24;
export const TERM_RISE_PER_S_MAX = 2 ** 18;

export const MEMBERS_MAX = 32;
/** One change may replace every member: each old one removed, each new one added. */
export const CONF_CHANGE_OPERATIONS_MAX = 2 * MEMBERS_MAX;
/** A node id of 63, "@", an incarnation of 16. */
export const PEER_KEY_BYTES_MAX = 80;
export const CLUSTER_ID_BYTES_MAX = 128;
/** Clusters that one names as those that it was recovered or restored from; older ones are forgotten. */
export const ANCESTORS_MAX = 16;
/** Peers that the wire has introduced and that are still heard, the last ones seen; a node id may have two disks among them. */
export const INTRODUCED_MAX = 64;
/**
 * Disks that were removed and are remembered by name, the latest ones. An older one is refused all the same, because it is
 * no member; only the reason that it hears is less exact.
 */
export const REMOVED_MAX = 128;
/** How long a member's word counts that somebody else is a member by now; who still needs it asks again. */
export const VOUCH_MS = 10_000;
/** How long a member's word counts that we were removed: whoever refuses us repeats it each time we dial. */
export const REMOVED_WORD_MS = 30_000;
/** So long a node may refuse a leader or candidate that it does not know, without a leader, before it reports that; and then so often. */
export const STRANGER_REPORT_AFTER_MS = 5_000;
export const STRANGER_REPORT_INTERVAL_MS = 60_000;

export const ENTRY_BYTES_MAX = 1024 * 1024;
/** What an entry costs next to its data, in memory and on disk, about. */
export const ENTRY_OVERHEAD_BYTES = 32;
export const PROPOSALS_PER_STEP_MAX = 4096;
export const APPEND_BYTES_MAX = 256 * 1024;
export const APPEND_ENTRIES_MAX = 4096;
export const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
/** Everything that the limits of scopes and jobs allow fits into it. */
export const SNAPSHOT_BYTES_MAX = 512 * 1024 * 1024;

export const INFLIGHT_MESSAGES_MAX = 64;
export const INFLIGHT_BYTES_MAX = 1024 * 1024;
export const UNCOMMITTED_BYTES_MAX = 16 * 1024 * 1024;
/** Of entries at once, and one of them at least; a turn of the loop ends with those that reach it (design D10). */
export const APPLY_BYTES_MAX = 32 * 1024;
/**
 * How long a server's followers may wait to hear that what they have is committed. Under load the next append says it
 * first, and a message and its answer are saved for each write; a read at a follower waits so much longer at most.
 */
export const COMMIT_NOTICE_MS = 1;

/** How long a follower that is being sent a snapshot may stay silent about it before it is probed again. */
export const SNAPSHOT_RETRY_MS = 2_000;

export const PENDING_READS_MAX = 4096;
/** Callers that wait for an entry of theirs: empty and tiny entries hardly count as uncommitted bytes. */
export const PENDING_PROPOSALS_MAX = 65_536;
export const HEARTBEAT_ROUNDS_MAX = 256;

/** Fast detection (design D6): a pre-vote every 5 ms, 5 times, then the normal timeout. */
export const FAST_PRE_VOTE_INTERVAL_MS = 5;
export const FAST_PRE_VOTE_ATTEMPTS_MAX = 5;

/** So many campaigns may fail in a row before the next one waits longer: twice as long each time, up to the maximum. */
export const ELECTION_FAILURES_FREE = 3;
export const ELECTION_BACKOFF_MAX = 4;
/** A word that came late adds so much of its lateness to the patience, at most so many election timeouts; half is forgotten after so long. */
export const STRAIN_FACTOR = 3;
export const STRAIN_TIMEOUTS_MAX = 2;
export const STRAIN_HALF_LIFE_MS = 60_000;
/**
 * A leader whose write takes so many election timeouts takes its disk for hung and gives up. Disks are slow for a second when
 * their caches are written back, often those of all nodes at once, and then another leader is no better.
 */
export const DISK_HUNG_TIMEOUTS = 5;
/** A leader whose entries are not committed for so many election timeouts has no quorum that can write. */
export const COMMIT_STALL_TIMEOUTS = 10;
/** Entries that stay in a leader's memory for a healthy follower that still needs them, past those that are always kept. */
export const COMPACTION_HOLD_ENTRIES_MAX = 200_000;
/** Of the entries below a snapshot that are kept, for whatever reason: they lie in memory, and one may be a megabyte. */
export const COMPACTION_KEPT_BYTES_MAX = 32 * 1024 * 1024;
/** Who is not willing to lead waits so many times as long as the others before it campaigns. */
export const UNWILLING_PATIENCE = 3;
/** Requests for votes that one peer may send: an honest one needs five in 25 ms after a leader is gone, then few. */
export const VOTE_REQUESTS_BURST_MAX = 60;
export const VOTE_REQUESTS_PER_S_MAX = 30;

/** A transfer stops writes once the target is within this many entries of the leader's last one. */
export const TRANSFER_LAG_ENTRIES_MAX = 64;
/** A follower is unhealthy after this many heartbeat intervals without an answer. */
export const UNHEALTHY_AFTER_HEARTBEATS = 10;
/** Design D8: how long a preferred node must have been healthy and caught up, and how often it may act. */
export const PRIORITY_STABLE_MS = 30_000;
export const PRIORITY_INTERVAL_MS = 300_000;
/** How long a new incarnation's predecessor must have been silent before the leader swaps by itself. */
export const REPLACE_SILENCE_MS = 2_000;

/** How far two clocks may differ in rate (0.2: one runs 20 % fast, the other 20 % slow) in the lease's arithmetic. */
export const CLOCK_DRIFT_MAX = 0.2;

export const WAL_SEGMENT_BYTES_MAX = 16 * 1024 * 1024;
/** So many zeros are written ahead of the log's end, for small writes to take their place (decision 0010). */
export const WAL_RESERVE_BYTES = 1024 * 1024;
/**
 * A sync of more than this does not reserve: its bytes would be written twice, and there is less to win. Measured with
 * the zeros counted in, on ext4 on a virtual disk: 0.30 → 0.17 ms for 16 KiB, 0.34 → 0.30 for 64, 0.58 → 0.63 for 256.
 */
export const WAL_RESERVE_SYNC_BYTES_MAX = 32 * 1024;
/** A frame holds an entry, or a segment's header with its configuration: 32 members in four lists at most. */
export const WAL_FRAME_PAYLOAD_BYTES_MAX = ENTRY_BYTES_MAX + 64 * 1024;
/** A batch header's payload; the search for them after damaged bytes checks no longer frames, so it stays linear. */
export const WAL_BATCH_PAYLOAD_BYTES_MAX = 16;

/**
 * Writes that may wait behind a hung disk; past it a node hears nothing, as if messages were lost. An honest leader
 * has few under way, but its probes go on for as long as a disk hangs. A busy leader has one write in each turn of its
 * loop, so a disk that is merely slow (DISK_HUNG_TIMEOUTS) must stay below this: at 20,000 turns a second it is a sync of 1.6 s.
 */
export const WRITE_QUEUE_MAX = 32_768;

/** A node snapshots its state after this many applied entries or bytes, whichever comes first. */
export const SNAPSHOT_AFTER_ENTRIES = 50_000;
export const SNAPSHOT_AFTER_BYTES = 64 * 1024 * 1024;
export const SNAPSHOT_KEEP_ENTRIES = 5_000;
export const SNAPSHOT_MEMORY_BYTES_MAX = 8 * 1024 * 1024;
/** A timer that fires this late was held up by a stopped or starved process. */
export const LOOP_STALL_MS = 100;
/**
 * How long one turn of the loop works on what has no end of its own: schedules to catch up with, leases that end together, jobs
 * that are handed out. Then messages and timers have their turn. Far below what a leader's quorum waits for it.
 */
export const TURN_SLICE_MS = 2;

/** A scope is a name that people type; a lock key is derived from it. */
export const SCOPE_BYTES_MAX = 256;
/** After the server timeout has passed without a proof, one last beat gets so long to be answered. */
export const LAST_CHANCE_MS = 500;
/** A beat that failed is sent again after a quarter of the interval, and at most so late. */
export const BEAT_RETRY_MS_MAX = 250;
/** Heartbeats are spread by ±20 %, so that many leaders do not beat in lockstep. */
export const HEARTBEAT_JITTER = 0.2;
/** How long `work` may go on after its signal has aborted. */
export const DRAIN_MS = 10_000;
/** Effects are counted by name; past so many names, under "other". */
export const EFFECT_NAMES_MAX = 100;

/** A status report between nodes: a few hundred bytes, and far below a frame's own limit. */
export const BEACON_BYTES_MAX = 4 * 1024;
/** Elections that a node remembers, newest first. */
export const ELECTION_HISTORY_MAX = 128;
/** Transitions that are kept of each scope. */
export const SCOPE_HISTORY_MAX = 32;
/** Scopes of one cluster: all of them live in memory and in each snapshot. */
export const SCOPES_MAX = 10_000;
/** What one answer lists is made at once, and the leader's heartbeats wait for it: 256 of the largest scopes take a few ms. */
export const SCOPES_PER_PAGE_MAX = 256;
/** A server that goes on for longer is not believed. */
export const SCOPE_PAGES_MAX = 1_000;
/** Campaigns that wait for one scope, or for all scopes together, on one leader. */
export const SCOPE_WAITERS_MAX = 1_000;
export const SCOPE_WAITERS_TOTAL_MAX = 20_000;
export const SCOPE_TTL_MS_MIN = 1_000;
export const SCOPE_TTL_MS_MAX = 600_000;
export const SCOPE_WAIT_MS_MAX = LONG_POLL_MS_MAX;
export const SCOPE_IDENTITY_BYTES_MAX = 512;
export const SCOPE_METADATA_ENTRIES_MAX = 16;
export const SCOPE_METADATA_BYTES_MAX = 4 * 1024;

// Values: all of them live in memory and in each snapshot.

export const VALUE_NAME_BYTES_MAX = 256;
/** As canonical JSON. */
export const VALUE_BYTES_MAX = 64 * 1024;
export const VALUES_MAX = 10_000;
/** Of names and contents together. */
export const VALUES_BYTES_MAX = 32 * 1024 * 1024;
export const VALUES_PER_PAGE_MAX = 256;
/** What one answer lists is made at once: a page ends before it is larger, with one value at least. */
export const VALUES_PAGE_BYTES_MAX = 512 * 1024;
/** Of a stream that is read: one event holds at most a payload of 256 KiB and a log chunk, escaped. */
export const FRAME_LETTERS_MAX = 4 * 1024 * 1024;

// Transactions over islands, as a request may have them (core/txn).

/** Of one transaction at one island. */
export const TXN_OPERATIONS_MAX = 64;
/** Islands of one transaction, home included. */
export const TXN_PARTICIPANTS_MAX = 16;
/** Of one transaction: names and contents of all its operations, as JSON and as the log has them. Those of one island are a record of its log. */
export const TXN_BYTES_MAX = 512 * 1024;
export const TXN_TIMEOUT_MS_MIN = 1_000;
export const TXN_TIMEOUT_MS_MAX = 60_000;
export const TXN_TIMEOUT_MS = 5_000;
/** How long operations may be staged. */
export const TXN_STAGED_MS_MAX = 60_000;
/** Scopes whose epochs one decision may check. */
export const TXN_REQUIRES_MAX = 64;
/** Calls of one island to another that are sent together, and reports of one call. */
export const TXN_BATCH_MAX = 128;
export const TXNS_PER_PAGE_MAX = 256;
/** Of the reason of a rollback, for people; a longer one is cut. */
export const TXN_MESSAGE_BYTES_MAX = 1_024;
/** A client's name, as its certificate has it. */
export const TXN_BY_BYTES_MAX = 512;
/** An id that is older, or further in the future, is not taken where it is not known. */
export const TXN_AGE_MS_MAX = 12 * 60 * 60 * 1000;
/**
 * Outcomes with ids of the future are forgotten last. Were all that are kept such, the horizon would be in the future, and every client with a right
 * clock refused: that takes (TXN_SETTLED_MAX - 2 * TXNS_AHEAD_MAX) / 10 s, about 5,700 transactions a second at one island.
 */
export const TXN_AHEAD_MS_MAX = 10 * 1000;
/** Terms of one generation of coordinators. Only their `recover` enters the next one. */
export const GENERATION_TERMS = 2 ** 20;

// Jobs, as the API takes them. What an event carries must fit into one entry of the log, whatever is next to it.

/** Kinds, queues, agents, platforms, schedules, concurrency keys. */
export const JOB_NAME_BYTES_MAX = 128;
export const JOB_ID_BYTES_MAX = 64;
/** A payload, a result, the detail of an error, each as JSON. */
export const JOB_PAYLOAD_BYTES_MAX = 256 * 1024;
/** Lists and objects inside one another. */
export const JSON_DEPTH_MAX = 32;
export const JOBS_PER_REQUEST_MAX = 1_000;
export const JOB_LABELS_MAX = 32;
export const JOB_LABELS_BYTES_MAX = 4 * 1024;
export const JOB_PRIORITY_MAX = 1_000_000;
/** Attempts, and losses of agents, that a job may be given. */
export const JOB_BUDGET_MAX = 1_000;
export const JOB_BACKOFF_MS_MAX = 86_400_000;
export const JOB_TIMEOUT_MS_MAX = 30 * 86_400_000;
export const JOB_RETENTION_MS_MAX = 400 * 86_400_000;
export const JOB_CONCURRENCY_MAX = 100_000;
/** Year 10000: a wall time beyond it is a mistake of units. */
export const WALL_MS_MAX = 253_402_300_800_000;
export const JOB_ERROR_BYTES_MAX = 8 * 1024;
export const JOB_PROGRESS_BYTES_MAX = 1_024;
export const LOG_CHUNK_BYTES_MAX = 64 * 1024;
/** Of one page of a job's log. */
export const LOG_PAGE_BYTES_MAX = 256 * 1024;
export const LOG_CHUNKS_PER_CALL_MAX = 64;
export const AGENT_KINDS_MAX = 256;
export const AGENT_CAPACITY_MAX = 1_000;
export const SESSION_BYTES_MAX = 128;
export const LEASE_TTL_MS_MIN = 1_000;
export const LEASE_TTL_MS_MAX = 600_000;
export const LEASE_WAIT_MS_MAX = LONG_POLL_MS_MAX;
export const RESULTS_PER_CALL_MAX = 1_000;
export const IDEMPOTENCY_KEY_BYTES_MAX = 200;
/** Keys that were created through the API. */
export const API_KEYS_MAX = 1_000;
export const API_KEY_NAME_BYTES_MAX = 64;
/** spiffe://, a trust domain of 255, the kind, a name of 63 (spiffe.ts). */
export const SPIFFE_ID_BYTES_MAX = 338;
/** Client certificates that were revoked and have not expired. */
export const CERTIFICATES_REVOKED_MAX = 1_000;

/** An event wraps what was sent. */
export const EVENT_DEPTH_MAX = JSON_DEPTH_MAX + 16;
/** Year 2248: up to here a number of milliseconds has room for microseconds. */
export const EVENT_TIMESTAMP_MAX = 2 ** 43;
/** Of an event's own texts; its payload is bounded by ENTRY_BYTES_MAX. */
export const EVENT_ID_BYTES_MAX = 64;
export const EVENT_ENTITY_BYTES_MAX = 256;
/** A cluster id of 128, a generation, a timeline. */
export const EVENT_SOURCE_BYTES_MAX = 256;

// Jobs, as the leader's book holds them: all of it is in memory, and in each snapshot.

/** Jobs that are not finished. */
export const JOBS_LIVE_MAX = 2_000_000;
// What follows is counted in bytes of the snapshot (core/jobs/state/weights.ts): together, and with what other things take, it must
// fit into SNAPSHOT_BYTES_MAX.
/** Of jobs that are not finished: past it none is taken. */
export const JOBS_LIVE_BYTES_MAX = 256 * 1024 * 1024;
/** Of the same with what their attempts have added: past it no leases are given, and why an attempt failed is not kept. */
export const JOBS_GROWN_BYTES_MAX = 288 * 1024 * 1024;
/** Different sets of kind, queue, platform and labels among them: a lease looks at all that may fit the agent. */
export const JOB_CLASSES_MAX = 4_096;
/** Finished jobs that stay in memory, the last ones, for late and repeated results; the views have all. */
export const JOBS_FINISHED_MAX = 20_000;
export const JOBS_FINISHED_BYTES_MAX = 32 * 1024 * 1024;
/** Attempts that are kept of each job, the last ones. */
export const JOB_ATTEMPTS_KEPT = 8;
/** Of one attempt. */
export const JOB_LOG_BYTES_MAX = 64 * 1024 * 1024;
/** Delayed jobs that become ready in one turn; the rest in the next one. */
export const JOBS_READIED_PER_TURN_MAX = 1_024;
/** Those that are offline or removed included. */
export const AGENTS_MAX = 10_000;
export const AGENTS_BYTES_MAX = 24 * 1024 * 1024;
/** An agent that is away for less keeps its place in the book, whoever else wants it: its machine restarts, or is being repaired. */
export const AGENT_PLACE_KEPT_MS = 60 * 60 * 1000;
/** Ended processes of an agent that are remembered by their session, and stay refused. */
export const AGENT_SESSIONS_KEPT = 8;
export const QUEUES_PAUSED_MAX = 10_000;
export const SCHEDULES_MAX = 10_000;
export const SCHEDULES_BYTES_MAX = 24 * 1024 * 1024;
/** Missed times of a schedule that are caught up with, the last ones. */
export const SCHEDULE_CATCH_UP_MAX = 100;
/** A time that a leader comes to later than this was missed: longer than it takes to elect one. */
export const SCHEDULE_LATE_MS_MAX = 60_000;
export const IDEMPOTENCY_MS = 86_400_000;
/** Clocks that differ by more than this do not agree; a node whose clock is so far from the others' is unwilling to lead. */
export const CLOCK_SKEW_MS_MAX = 60_000;
/** The clock of a node that was not heard for so long is not known. */
export const CLOCK_HEARD_MS_MAX = 10_000;
/** So long the only clock there is has to go on evenly before a jump of it is believed. */
export const CLOCK_PROBATION_MS = 300_000;
/** From 1970 to 2109: a clock that shows anything else is broken, and is not asked. After it events have as much time again. */
export const CLOCK_MS_MIN = 1;
export const CLOCK_MS_MAX = 2 ** 42;
/** So long a leader that has never known the time of day waits for others' clocks, before it takes what there is for it. */
export const CLOCK_SETTLING_MS = 5_000;
/** The events' clock ends here. What is between here and EVENT_TIMESTAMP_MAX is for ticks: 8 million million events. */
export const EVENT_TIME_MS_MAX = EVENT_TIMESTAMP_MAX - 2 ** 33;
/** The events' clock runs slower while it is ahead of the time by more than this. */
export const EVENT_TIME_AHEAD_MS = 1_000;
/** A jump of the events' clock from here on is written down; a smaller one is not worth it. */
export const CLOCK_SKIP_MS_MIN = 1_000;
export const CLOCK_SKIPS_MAX = 64;
/** Past them the oldest are forgotten early. */
export const IDEMPOTENCY_KEYS_MAX = 200_000;
export const IDEMPOTENCY_BYTES_MAX = 40 * 1024 * 1024;
/** Expired keys that go with each event: more than one, so that they never pile up. */
export const IDEMPOTENCY_DROPPED_PER_EVENT_MAX = 4;
/** All of it is decided and applied in one turn each: about 2 ms; on the slowest machine that the simulator draws, 20. */
export const JOBS_FORGOTTEN_PER_COMMAND_MAX = 64;

/** Calls of one island to another that are sent together, as JSON. One call always fits. */
export const TXN_BATCH_BYTES_MAX = 1024 * 1024;

// ---- questions between peers -----------------------------------------------------------------------

export const QUERY_BYTES_MAX = 256;
export const ANSWER_BYTES_MAX = 256 * 1024;

/** Texts of messages that are kept to be returned for the same bytes (bytes.ts). */
export const RECENT_TEXTS_KEPT = 256;
export const RECENT_TEXT_BYTES_MAX = 128;

/** What can wait rests between two slices: not while a timer is only as late as it is by itself, then so many times as long. */
export const SLICE_LATE_MS = 4;
export const REST_PER_LATE = 2;
export const REST_MS_MAX = 50;

// ---- texts and messages ----------------------------------------------------------------------------

/** Letters that a mistyped name may differ by for a suggestion; longer names are not compared. */
export const TYPO_DISTANCE_MAX = 2;
export const TYPO_LENGTH_MAX = 64;

/** Of one UTF-16 unit of well-formed text in UTF-8, and in JSON (an escape). */
export const UTF8_BYTES_PER_UNIT_MAX = 3;
export const JSON_BYTES_PER_UNIT_MAX = 6;
export const PORT_MAX = 65_535;
/** Servers that a client is configured with. */
export const URLS_MAX = 64;
export const API_KEY_LENGTH_MAX = 1_024;
/** `https://host:port`. */
export const API_URL_LENGTH_MAX = 512;
/** Islands that the transaction coordinators of a cluster know, counted by their endpoints. */
export const REGISTRY_ENTRIES_MAX = 256;
/** Of what is missing in a history; a message that names them has to stay one line. */
export const RANGES_SHOWN_MAX = 4;

/** Of a map by text (text-map.ts). */
export const PLACES_MIN = 4;
/** A map of so few places is left as large as it is. */
export const PLACES_KEPT = 64;
/** Texts that meet in one chain; more are in a `Map`, which hashes by a secret. */
export const CHAIN_MAX = 32;
