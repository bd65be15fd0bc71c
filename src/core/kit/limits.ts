// Every queue, batch, frame, retry and loop has its bound here, with the unit last in its name.

/** The largest term or index that may be decoded: integers above it are not exact in a double. */
export const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
/**
 * A term further ahead than this is forged or corrupt (trap 31). An election takes milliseconds, so an
 * honest cluster needs decades to get here; `recover --force-new-cluster` adds 2^20 (design D1).
 */
export const TERM_JUMP_MAX = 2 ** 32;

export const MEMBERS_MAX = 32;
/** One change may replace every member: each old one removed, each new one added. */
export const CONF_CHANGE_OPERATIONS_MAX = 2 * MEMBERS_MAX;
/** A node id of 63, "@", an incarnation of 16. */
export const PEER_KEY_BYTES_MAX = 80;
export const CLUSTER_ID_BYTES_MAX = 128;
/** Peers that the wire has introduced and that are still heard, the last ones seen; a node id may have two disks among them. */
export const INTRODUCED_MAX = 64;

export const ENTRY_BYTES_MAX = 1024 * 1024;
/** What an entry costs beside its data, in memory and on disk, about. */
export const ENTRY_OVERHEAD_BYTES = 32;
export const PROPOSALS_PER_STEP_MAX = 4096;
export const APPEND_BYTES_MAX = 256 * 1024;
export const APPEND_ENTRIES_MAX = 4096;
export const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
export const SNAPSHOT_BYTES_MAX = 256 * 1024 * 1024;

export const INFLIGHT_MESSAGES_MAX = 64;
export const INFLIGHT_BYTES_MAX = 1024 * 1024;
export const UNCOMMITTED_BYTES_MAX = 16 * 1024 * 1024;
export const APPLY_BYTES_MAX = 4 * 1024 * 1024;
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
/** A leader whose entries are not committed for so many election timeouts has no quorum that can write. */
export const COMMIT_STALL_TIMEOUTS = 10;
/** Entries that stay in a leader's memory for a healthy follower that still needs them, past those that are always kept. */
export const COMPACTION_HOLD_ENTRIES_MAX = 200_000;
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
/** A batch header's payload; the search for them behind damaged bytes checks no longer frames, so it stays linear. */
export const WAL_BATCH_PAYLOAD_BYTES_MAX = 16;

/**
 * Writes that may wait behind a hung disk; past it a node hears nothing, as if messages were lost. An honest leader
 * has few under way, but its probes go on for as long as a disk hangs. A busy leader has one write in each turn of its
 * loop, so a disk that is merely slow must stay far below this: at 20,000 turns a second it is a sync of 0.8 s.
 */
export const WRITE_QUEUE_MAX = 16_384;

/** A node snapshots its state after this many applied entries or bytes, whichever comes first. */
export const SNAPSHOT_AFTER_ENTRIES = 50_000;
export const SNAPSHOT_AFTER_BYTES = 64 * 1024 * 1024;
export const SNAPSHOT_KEEP_ENTRIES = 5_000;
/** A timer that fires this late was held up by a stopped or starved process. */
export const LOOP_STALL_MS = 100;

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
/** Campaigns that wait for one scope, or for all scopes together, on one leader. */
export const SCOPE_WAITERS_MAX = 1_000;
export const SCOPE_WAITERS_TOTAL_MAX = 20_000;
export const SCOPE_TTL_MS_MIN = 1_000;
export const SCOPE_TTL_MS_MAX = 600_000;
export const SCOPE_WAIT_MS_MAX = 60_000;
export const SCOPE_IDENTITY_BYTES_MAX = 512;
export const SCOPE_METADATA_ENTRIES_MAX = 16;
export const SCOPE_METADATA_BYTES_MAX = 4 * 1024;
