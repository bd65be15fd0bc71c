// The bounds of health: what is remembered of elections and claims, and from where on an alert is raised.

export const LEADER_UNAVAILABLE_AFTER_MS = 30_000;
/** A site that was started compares its line with its peers within a second or two, where they answer. */
export const SIGNING_HELD_AFTER_MS = 30_000;
/** Somebody must have the time to make another certificate; deploy/prometheus says so at the same time. */
export const CERTIFICATE_ENDS_WITHIN_MS = 14 * 24 * 3_600_000;
export const ELECTION_SUCCESS_RATE_MIN = 0.9;
export const FAILOVERS_PER_HOUR_MAX = 5;
/** A parent that is out of reach for longer, in a mesh of sites: several attempts to dial it. */
export const MESH_UNREACHABLE_AFTER_MS = 60_000;
/** Events that are so long known of, and not yet at both ends of a link. */
export const MESH_LAGGING_AFTER_MS = 60_000;
/** Less can't be told from the network, whatever mesh.max_skew_ms says. */
export const MESH_SKEW_ALERT_MS_MIN = 100;
/** Sites that one alert names. */
export const MESH_SITES_NAMED_MAX = 8;
/** So long after the last one, stalls of the event loop are over. */
export const STALLED_FOR_MS = 60_000;
/** Claims of higher terms that this node remembers to have answered; an honest one is followed by its own step-down. */
export const ANSWERED_CLAIMS_MAX = 64;
/** The share of elections that succeed is taken over this. */
export const ELECTIONS_WINDOW_MS = 300_000;
/** Elections of one window. A node that campaigns without a pause asks for votes a few times a second at most. */
export const WINDOW_ELECTIONS_MAX = 2_048;
/** Rows of failed pre-votes among the ELECTION_HISTORY_MAX that are remembered. */
export const PRE_VOTES_KEPT_MAX = 32;
/** Until a failover counts as unplanned: several beacons long. */
export const UNDECIDED_MS_MAX = 5_000;
export const FAILOVERS_WINDOW_MS = 3_600_000;
/** More than this in an hour are as many for an alert; an election takes a fraction of a second. */
export const WINDOW_FAILOVERS_MAX = 1_024;
/** Leaders that followed each other faster than beacons could say why; the oldest is decided. */
export const UNDECIDED_MAX = 16;
/** Members and their former disks have one node id each; nobody else is alerted about. */
export const ALERTS_MAX = 256;
/** More terms than a cluster goes through in a day of trouble; a claim about an older one is not judged. */
export const CLAIMED_TERMS_MAX = 1_024;
/** Four a second from each of 31 peers would be eight seconds; most name the same indexes. */
export const CHAIN_CLAIMS_MAX = 1_024;
export const DIVERGED_PAIRS_MAX = 1_024;
/** Nobody has led the transaction coordinators for so long: several elections. */
export const TC_NO_LEADER_AFTER_MS = 15_000;
/** A voter has not answered the leader for so long: longer than a restart. */
export const TC_VOTER_MISSING_AFTER_MS = 30_000;
/** A transaction has been in doubt for so long: several retries of whoever asks for its decision, and an election. */
export const TXN_IN_DOUBT_AFTER_MS = 30_000;
/** Of one alert. */
export const TC_NAMED_MAX = 5;
