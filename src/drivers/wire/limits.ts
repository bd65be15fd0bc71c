// The bounds of the wire, each with its unit. What a message may weigh is core/kit/limits.ts's business.

import {
  ANSWER_BYTES_MAX,
  APPEND_BYTES_MAX,
  BEACON_BYTES_MAX,
  ENTRY_BYTES_MAX,
  MESSAGE_BYTES_MAX,
  QUERY_BYTES_MAX,
  SNAPSHOT_BYTES_MAX,
} from "../../core/kit/limits.ts";

/** What the engine puts around a message: checksum, length and addresses. */
const ENVELOPE_BYTES_MAX = 4 * 1024;
export const MESSAGE_FRAME_BYTES_MAX = MESSAGE_BYTES_MAX + ENVELOPE_BYTES_MAX;
export const BEACON_FRAME_BYTES_MAX = BEACON_BYTES_MAX;
/** Nobody is known before the handshake is over, so little is believed until then. */
export const HANDSHAKE_BYTES_MAX = 4 * 1024;
export const HANDSHAKE_MS_MAX = 3_000;
/** A SYN that nobody answers is sent again by the kernel only after a second; a fresh dial costs the same. */
export const DIAL_MS_MAX = 1_000;
/** How long a refused connection may take to read why. */
export const LINGER_MS_MAX = 1_000;
export const REASON_BYTES_MAX = 1_024;
export const ADDRESS_BYTES_MAX = 262;
export const URL_BYTES_MAX = 1_024;
/** Peers that an acknowledgement names: they fit into HANDSHAKE_BYTES_MAX together with everything else. */
export const PEERS_TOLD_MAX = 16;
export const PEERS_TOLD_BYTES_MAX = 1_536;

/** Frames below it are copied out of the chunk they came in: a heartbeat must not keep 64 KiB alive. */
export const COPY_BELOW_BYTES = 4 * 1024;
/** Payloads up to it are copied into one write with their neighbours; larger ones are handed over as they are. */
export const INLINE_BYTES_MAX = 16 * 1024;
/** What may wait for one peer; past it messages are dropped, as if they were lost on the way. */
export const QUEUE_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Messages above it, which only snapshots are, travel on a connection of their own, so that heartbeats do not wait behind
 * them. The largest append stays below: entries must not overtake each other, or the follower refuses them.
 */
export const BULK_ABOVE_BYTES = ENTRY_BYTES_MAX + APPEND_BYTES_MAX;
export const BULK_BYTES_MAX = SNAPSHOT_BYTES_MAX + MESSAGE_FRAME_BYTES_MAX;
export const BULK_CHUNK_BYTES = 64 * 1024;
/** What is handed to the kernel, or taken from it, in one turn of the loop. */
export const BULK_BYTES_PER_TURN = 4 * BULK_CHUNK_BYTES;
/** All peers together: each may be as large as BULK_BYTES_MAX. */
export const BULK_ASSEMBLIES_MAX = 4;
/** A bulk that does not move for so long is given up; the engine sends it again. */
export const BULK_STALL_MS = 10_000;
/** The last part may lie in the kernel's buffers, megabytes of it, for as long as a slow network needs for them. */
export const BULK_FINISH_MS = 60_000;

/** The number of the question, and of the answer also its kind, come before what core/kit/limits.ts bounds. */
export const QUERY_FRAME_BYTES_MAX = 4 + QUERY_BYTES_MAX;
export const ANSWER_FRAME_BYTES_MAX = 5 + ANSWER_BYTES_MAX;
/** Of one peer, on either side of the connection. */
export const QUERIES_PENDING_MAX = 8;
export const ANSWERING_MAX = 8;
/** A question that is not answered for so long is given up. */
export const QUERY_MS_MAX = 10_000;

/** The dialler asks for a sign of life so often, and gives the connection up after so long without one. */
export const PING_INTERVAL_MS = 1_000;
export const SILENCE_MS_MAX = 3_000;
/** Whoever dialled us pings; one that has not been heard for so long is gone without a word. */
export const INBOUND_SILENCE_MS_MAX = 10_000;
/** A tick that comes so late tells of our own stop, not of the others' silence (trap 29). */
export const OWN_STALL_MS = 1_000;
export const KEEPALIVE_DELAY_MS = 5_000;

/** A connection that stood for so long was a good one: the next dial after its loss is made at once. */
export const STOOD_MS = 1_000;
export const BACKOFF_MS_MIN = 20;
export const BACKOFF_MS_MAX = 1_000;
/** A peer that answers and then fails the handshake so often in a row is dialled less often. */
export const BREAKER_FAILURES = 5;
export const BREAKER_MS_MAX = 10_000;
/** A dying process closes its sockets one by one: a dial may still reach its listener, and is cut a moment later. */
export const CUT_REDIALS_AT_ONCE_MAX = 4;
export const CUT_REDIALS_MAX = 12;
export const CUT_REDIAL_MS = 1;

/** A connection that is older is made anew, so that whom a certificate or an authority no longer vouches for is out. */
export const CONNECTION_AGE_MS_MAX = 24 * 3_600_000;
/** Where a new one can't be reached, the old one goes on for so long before the next try. */
export const RENEW_RETRY_MS = 60_000;

/** Peers that handshakes introduced; the configuration's own are not counted. */
export const LEARNED_MAX = 64;
export const CONNECTIONS_MAX = 512;
/** Of these: whose hello was not accepted yet, from one address and in all. For the next one the oldest is closed. */
export const NEWCOMERS_PER_ADDRESS_MAX = 64;
export const NEWCOMERS_MAX = 256;
/** A complaint is logged again after so long, with the number of those in between. */
export const COMPLAINT_INTERVAL_MS = 60_000;
export const COMPLAINTS_MAX = 256;
/** After the first answer to "which cluster is this", the others get so long to contradict it. */
export const CONTRADICTION_MS = 300;
export const ASK_INTERVAL_MS = 250;
/**
 * A seed that takes connections and says nothing on them, for so long, is taken for absent by a founder: a proxy accepts for
 * nodes that are not up. A node that is frozen says nothing either; it gets this long to come back.
 */
export const SILENT_SEED_MS = 30_000;
/** Peers whose process marks are remembered, and marks of each. */
export const BOOTS_PEERS_MAX = 128;
export const BOOTS_MARKS_MAX = 1_024;
/** So long after the last time it was seen, a copy counts as gone. */
export const CLONED_FOR_MS = 3_600_000;
export const MARK_BYTES_MAX = 64;
