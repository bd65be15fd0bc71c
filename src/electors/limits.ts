// The bounds of electors, and the timing that they have unless the caller says otherwise.

import { VALUES_MAX } from "../core/kit/limits.ts";
import { CONFIRM_WAIT_MS, TURNOVER_WAIT_MS } from "../core/kit/timeouts.ts";

/** The same complaint is logged again after this. */
export const ELECTOR_COMPLAINT_AGAIN_MS = 60_000;
/** How often a closed gate is polled; and the pause before work that was refused by one runs again. */
export const GATE_POLL_MS = 20;
/** Work that winds up for so long, and awaits the end of its own term, is reported. */
export const SELF_WAIT_MS = 1_000;
/** Of the pause between two attempts, before its own maximum is applied. */
export const RETRY_DOUBLINGS_MAX = 16;
/** Errors inside of errors that are read for what happened. */
export const CAUSES_MAX = 8;
export const REMOTE_HEARTBEAT_MS = 1_000;
export const HEARTBEAT_MS_MIN = 10;
export const REQUEST_TIMEOUT_MS_MAX = 5_000;

// ---- etcd

export const ETCD_TTL_S = 6;
export const ETCD_TTL_S_MAX = 3_600;
export const ETCD_PREFIX_BYTES_MAX = 256;
export const ETCD_POLL_MS_MAX = 2_000;
/** How often a beat starts again because etcd changed its leader in the middle of it. */
export const BEAT_ROUNDS_MAX = 3;
export const PAGE_KEYS_MAX = 1_000;
/** How often a leader may change between our read and our wish. */
export const ASK_ATTEMPTS_MAX = 5;
export const ETCD_HISTORY_RECORDS_MAX = 100;
/** etcd takes 128 operations in one transaction, as it is shipped; what is left over goes with the next win. */
export const ETCD_TRIM_RECORDS_MAX = 100;

// ---- servers of Tenure

export const SERVERS_TTL_MS = 6_000;
export const SERVERS_WAIT_MS_MAX = 20_000;
/** Between two attempts to reach the leader. */
export const LEADER_PAUSE_MS_MIN = 20;
export const LEADER_PAUSE_MS_MAX = 250;
export const LEADER_DOUBLINGS_MAX = 8;
/** Redirects in a row without a pause: a chain over three nodes is honest, two that name each other are not. */
export const LEADER_HOPS_MAX = 3;
export const LEADER_ANSWER_BYTES_MAX = 1024 * 1024;
/** How long the first answer that names a leader waits for a better one. */
export const LEADER_GRACE_MS = 50;
/** Members, alerts and the history of elections with their votes. */
export const CLUSTER_BYTES_MAX = 4 * 1024 * 1024;
/** Between two questions whose answers came early and held nothing new. */
export const FOLLOW_PAUSE_MS = 250;
/** A scope with its metadata has at most 10 KB as JSON. */
export const SCOPES_PAGE_BYTES_MAX = 8 * 1024 * 1024;
export const REFUSAL_CHARS_MAX = 300;
/** What a server may wait for before it answers a write of a value: whoever gives up sooner does not hear a definite refusal. */
export const VALUE_WRITE_WAIT_MS = TURNOVER_WAIT_MS + CONFIRM_WAIT_MS;
/** A page of values has half a megabyte of contents and one value more, and 256 names, each character of which may be written as six. */
export const VALUES_ANSWER_BYTES_MAX = 4 * 1024 * 1024;
export const VALUES_PAGES_MAX = VALUES_MAX + 1;
/** A watch ends with an error when no node has served it for so long. */
export const WATCH_OUTAGE_MS = 60_000;
/** A stream that was open for so long was served, also where nothing came. */
export const WATCH_STEADY_MS = 5_000;
/** Between two attempts to open a stream; the attempts themselves go from node to node. */
export const WATCH_PAUSE_MS_MIN = 100;
export const WATCH_PAUSE_MS_MAX = 2_000;

// ---- in memory, for tests

/** A request that is not answered for so long has failed. */
export const MEMORY_REQUEST_TIMEOUT_MS = 500;
/** A loop that sets its timer again without moving time would otherwise hang the test. */
export const MEMORY_EVENTS_PER_INSTANT_MAX = 100_000;

// ---- coordinators, inside a server

/** As long as a coordinator that has resigned stays away by itself (controller/coordinators). */
export const QUORUM_HOLD_BACK_MS = 1_000;
/** Above the time that the coordinator gives each voter for its answer to a release (trap 84). */
export const QUORUM_RELEASE_MS = 1_500;
export const QUORUM_RETRY_MS_MIN = 50;
export const QUORUM_RETRY_MS_MAX = 600;
