// The bounds of the coordinators' leader lease. No setting changes them: voters and leaders that count with different times are not exclusive.

export { GENERATION_TERMS, REGISTRY_ENTRIES_MAX } from "../kit/limits.ts";

/** A grant excludes others for so long after a voter received the request that it answered. */
export const LEASE_TTL_MS = 3_000;
/**
 * A leader trusts an answer for so long after it sent the request. One clock may run 20 % slow and the other 20 % fast: then
 * 2000 / 0.8 = 3000 / 1.2, and nothing is left over. So the comparison is strict (leader.ts), and this is never rounded up.
 */
export const LEASE_TRUST_MS = (LEASE_TTL_MS * 2) / 3;
/** Between two rounds of renewals. */
export const LEASE_RENEW_MS = LEASE_TTL_MS / 3;
/** After its start a voter takes the recorded holder for the leader for so long: it may have renewed just before the stop. */
export const LEASE_BOOT_WAIT_MS = LEASE_TTL_MS * 1.2;
/** A voter has answered the last round of renewals if it answered a request that was sent within this: a round, and what timers are late. */
export const ROUND_ANSWERED_MS = LEASE_RENEW_MS + 100;
/** A membership lease, of wall time. It is for discovery: nothing that excludes rests on it. */
export const MEMBERSHIP_TTL_MS = 3 * LEASE_TTL_MS;
/**
 * A term of the same generation that is further above what a node knows is not believed: one forged message must not use up the terms (trap 31). An
 * election raises the term by one, so only a node that was away for so many of them is refused.
 */
export const LEASE_TERM_JUMP_MAX = 2 ** 16;
/** Membership leases that a node keeps, the last announced: a server can announce one identity only, but certificates are many. */
export const MEMBERSHIPS_KEPT = 256;
/** Identities, and other clusters, of which a node remembers what it saw; the last ones. */
export const SIGHTINGS_KEPT = 256;
/** Former disks, and former endpoints, that are remembered of one identity. */
export const SIGHTINGS_OF_ONE_KEPT = 4;
/** An identity that came back so often to an endpoint that it had left is at both. Once, and a second time by a late message, is a move. */
export const RETURNS_OF_SHARED_MIN = 3;
/** Returns count together within this: of two that announce every 3 s there is one in each. */
export const RETURNS_WITHIN_MS = 30_000;
/** What was seen is reported for so long after it was seen last. */
export const SEEN_FOR_MS = 60_000;
