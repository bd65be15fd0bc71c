// The bounds of the transactions that an island keeps. What a request may have: core/kit/limits.ts.

/** Prepared, or committed and needed still. */
export const TXNS_OPEN_MAX = 4_096;
export const TXNS_STAGED_MAX = 1_024;
/** Of all operations that are staged or prepared, and of all jobs that are to be delivered: they are in memory, and in each snapshot. */
export const TXNS_BYTES_MAX = 16 * 1024 * 1024;
/** Outcomes that nobody needs any more, which those who repeat a call still get: past any of these the smallest ids are forgotten. */
export const TXN_SETTLED_MAX = 65_536;
export const TXN_SETTLED_BYTES_MAX = 24 * 1024 * 1024;
/**
 * Of these, rollbacks of ids that are made in the future. They are the last to be forgotten: were they all, forgetting one would end every id until its
 * time.
 */
export const TXNS_AHEAD_MAX = 4_096;
export const TXN_SETTLED_MS = 24 * 60 * 60 * 1000;
/** So many are forgotten with one record at most: more bytes than one outcome has. */
export const TXNS_FORGOTTEN_PER_RECORD_MAX = 64;
/** A piece of a snapshot is about so large. */
export const TXNS_PIECE_BYTES = 256 * 1024;
/** Outcomes are packed into memory of this size, one after the other. */
export const TXNS_PACK_BYTES = 64 * 1024;
/** Of an error code in a record: a later release may have longer ones than this has. */
export const TXN_CODE_BYTES_MAX = 64;
/**
 * A term whose generation is further above what an island knows is not believed: one call must not raise the fence for ever. Each generation is a
 * `recover` by an operator, so an island that has missed more of them waits until its own coordinator observes the leader.
 */
export const TXN_GENERATIONS_AHEAD_MAX = 16;
/** As JSON, of a call between islands: a header with TXN_PARTICIPANTS_MAX islands, a fence and a reason; a scope that is all escapes; an id in a list. */
export const TXN_CALL_BYTES_MAX = 5 * 1024;
export const TXN_REQUIRE_BYTES_MAX = 1_600;
export const TXN_ID_BYTES_MAX = 40;
/** Islands whose hash is not converted again between text and bytes. A power of two. */
export const RECENT_ISLANDS_KEPT = 64;
