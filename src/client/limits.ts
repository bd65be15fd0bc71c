// The bounds of the SDK: attempts, pauses, sizes of answers.

/** Configured URLs and learned members together. */
export const ADDRESSES_MAX = 64;

/** Attempts of one call. The pauses grow, so the call's own time limit comes first. */
export const CALL_ATTEMPTS_MAX = 256;
/** Redirects from one leader to another without a pause. */
export const CALL_HOPS_MAX = 3;
/** An election after a crash takes some tens of milliseconds, so the first pauses between attempts are short. */
export const CALL_PAUSE_MS_MIN = 10;
export const CALL_PAUSE_MS_MAX = 250;
/** For the list of members, before a stream is opened; the stream opens without it where nobody answers. */
export const MEMBERS_TIMEOUT_MS = 1_000;
/** How long other nodes may take to contradict the first answer that names a leader. */
export const DISCOVERY_GRACE_MS = 30;
/** How long a read waits for one node before the next is asked too. */
export const HEAD_START_MS = 150;
/** `nodes`: a node that takes longer is shown as not answering. */
export const NODE_TIMEOUT_MS = 2_000;
export const DOWNLOAD_TIMEOUT_MS = 600_000;
/** The server sends a space every 15 seconds, so a node that died is noticed long before. */
export const VERIFY_TIMEOUT_MS = 24 * 3_600_000;

/** A JSON answer: the largest is the view of a cluster of 32 members with 128 elections, or a page of 256 scopes. */
export const JSON_ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Errors below an error that are searched for the reason of a failed connection. */
export const EXCHANGE_CAUSES_MAX = 4;
/** Pages of one list: a server that sends more is in error. */
export const JOB_PAGES_MAX = 100_000;

/** Of one list of values: ten times as many as a server keeps. */
export const VALUE_PAGES_MAX = 100_000;

/** A transaction as a whole, unless its caller says otherwise: longer than its locks are kept and the coordinators need for a new leader, one after the other. */
export const TRANSACTION_CALL_MS = 20_000;
/** Between attempts under another id, where others hold a lock: half of it to all of it, twice as long each time. */
export const TRANSACTION_PAUSE_MS_MIN = 10;
export const TRANSACTION_PAUSE_MS_MAX = 1_000;
/** Of one list: more than a server keeps. */
export const TRANSACTION_PAGES_MAX = 10_000;

/** `wait`: for how long no node may answer; each answer begins the time anew. */
export const WAIT_OUTAGE_MS = 600_000;
/** `wait` also reads the job this often, for an end that no event reports any more. */
export const FINAL_CHECK_MS = 30_000;
/** A stream that was open for this long was served, also where it carried no event. */
export const STREAM_STEADY_MS = 5_000;
/** A stream ends with an error when no node has served it for this long. */
export const STREAM_OUTAGE_MS = 60_000;
/** Above this the older half is thinned: close to the end nearly each event is known, further back fewer and fewer. */
export const KNOWN_POINTS_MAX = 256;
