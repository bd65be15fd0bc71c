// The bounds of a site among other sites.

/** Points of the own tree that are kept: whoever pulls asks for what follows the page that it has just had. */
export const POINTS_KEPT_MAX = 256;
/** Signed notes that are kept: a head is asked for by every peer, each second. */
export const NOTES_KEPT_MAX = 256;
/** Pages of the own line that are cut at one moment: each may read a segment of the history. */
export const PAGES_AT_ONCE_MAX = 2;
export const PAGES_WAITING_MAX = 128;
/** How often the leader checks that the ring names every member. */
export const RING_CHECK_MS = 1_000;
/** So long a leader waits for the keys of members that do not answer, before it writes a ring without them. */
export const RING_WAIT_MS = 10_000;
/** Rings of one line: all of them are in the state of every node. */
export const RINGS_MAX = 256;
/** Of a site's own lines, those of the last generations can be asked for. */
export const GENERATIONS_KEPT_MAX = 32;
/** Of lines before the newest one that a site names where it registers, as far as their rings fit (INTRODUCED_LENGTH_MAX). */
export const INTRODUCED_LINES_MAX = GENERATIONS_KEPT_MAX - 1;
/** Of all that a site says of itself where it registers, but for its proof: a receiver takes 16 KiB (SITE_METADATA_BYTES_MAX of the contract). */
export const INTRODUCED_LENGTH_MAX = 15 * 1024;
/** Of the generations before those only the names of their lines. */
export const EARLIER_LINES_MAX = 1_024;
/** Of the addresses that a site shows of itself. */
export const OWN_URLS_MAX = 32;
/** What one peer may send in a second. Its requests of any kind: the smallest costs some 0.1 ms. */
export const PEER_EVENTS_PER_S_MAX = 5_000;
export const PEER_BYTES_PER_S_MAX = 8 * 1024 * 1024;
export const PEER_REQUESTS_PER_S_MAX = 300;
/** Requests that come before the time of Retry-After is over and are refused like the first one: a site may have several links, and each sends one request. */
export const EARLY_FORGIVEN_MAX = 8;
/** So much of that time nobody has to wait for: clocks and timers differ. */
export const EARLY_FORGIVEN_MS = 50;
/** An event of a page that is refused for its bytes, and a byte of what is no request, count as so many: it was hashed or parsed, and brings nothing. */
export const REFUSED_COST = 4;
/** A stream that is opened counts as so many events: ten in a second, for a peer that sends nothing else. */
export const STREAM_OPENED_EVENTS = 500;
/** Evidence of forks of lines whose ring is not known here yet: of all sites, of one, and the length of each as JSON. */
export const EVIDENCE_WAITING_MAX = 256;
export const EVIDENCE_WAITING_PER_LINE_MAX = 16;
export const EVIDENCE_WAITING_LENGTH_MAX = 8 * 1024;
/** Between the beginnings of two deliveries of a link. */
export const DELIVERY_EVERY_MS = 5;
/** Consecutive pages that go together (PAGES_PER_DELIVERY_MAX of contract/mesh): all of them have no more events and bytes than one page may have. */
export const PAGES_SENT_MAX = 16;
/** Pages of one peer that wait to be verified or applied: two requests with as many as fit, and the stream's. */
export const PAGES_WAITING_PER_PEER_MAX = 3 * PAGES_SENT_MAX;
/** So long nothing of a parent's stream is read after a page of it that had to be refused. */
export const BAD_PAGE_PAUSE_MS = 1_000;
/** Peers whose mistakes are counted. */
export const PEERS_BLAMED_MAX = 4_096;
/** Of a line's name in an answer about a page that is none. */
export const LINE_SHOWN_LENGTH_MAX = 128;
/**
 * Between two attempts to reach a parent: a random part of a bound that doubles, from the one to the other. Sites must agree within 10 s after
 * a cut of any length, and a restarted one signs when every child has dialled it again.
 */
export const REDIAL_MS_MIN = 200;
export const REDIAL_MS_MAX = 5_000;
/** The longest that is waited because another site asked for it (Retry-After). */
export const RETRY_AFTER_MS_MAX = 30_000;
/** How often an address of a parent that is not used looks whether another address of the same site is still linked. */
export const SPARE_DIAL_MS = 1_000;
/** How often a head that is shorter than ours is compared with our history, for each peer and line: that reads some of it. */
export const HEAD_PROOF_EVERY_MS = 10_000;
/** Peers and lines for which that was done. */
export const PROOFS_REMEMBERED_MAX = 16_384;
/** How often lines and rights are compared with what the registry says. */
export const LINES_CHECK_MS = 1_000;
/** Receipts of all lines that are in memory, for those to whom they are passed on. */
export const RECENT_BYTES_MAX = 8 * 1024 * 1024;
/** Receipts that are read from the archive at a time. */
export const RECEIPTS_READ_MAX = 256;
/** Lines of which hashes of blocks are kept for proofs. */
export const PROVEN_LINES_KEPT_MAX = 64;
/** Pages that wait for the append before theirs; past them whoever brings one is refused for now. */
export const RECEIPTS_WAITING_MAX = 1_024;
export const RECEIPTS_WAITING_BYTES_MAX = 16 * 1024 * 1024;
/** So many times that a link is sent heads, one of them has all, whether they are new or not. */
export const HEADS_ALL_EVERY = 10;
/** A link without new heads is sent something one time in so many: the other side cuts it after ten times (SITE_SILENCE_MS). */
export const HEADS_QUIET_EVERY = 3;
/** How often a node that does not sign yet asks the other members whether they do. */
export const GATE_ASK_MS = 1_000;
/** How long the links of a site that leaves stay for sites that do not have its word yet. */
export const LEAVE_WAIT_MS = 10_000;
/** Places of a line whose ages are remembered while somebody lacks them. */
export const MARKS_MAX = 128;
/** Digits that set one author of a site apart from all others that a disk of it may have had. */
export const AUTHOR_DIGITS = 12;
/** Of what a site says of another one that it vouches for: as much as a site may say that registers. */
export const VOUCHED_URL_LENGTH_MAX = 512;
export const VOUCHED_NAME_LENGTH_MAX = 128;
/** Sites that one site may vouch for, itself or through others: a hostile one must not fill the registry. */
export const VOUCHED_PER_LINE_MAX = 256;
/** Lines of one site that others have vouched for, and of which nothing has come: with as many that the site names itself they are fewer than are kept. */
export const VOUCHED_EMPTY_LINES_MAX = 15;
/** Arrivals that wait in memory to be shown; past them they are read from the archives. */
export const FEED_WAITING_MAX = 8_192;
export const FEED_WAITING_BYTES_MAX = 16 * 1024 * 1024;
/** Of one put: copying it takes about a millisecond. */
export const FEED_PUT_MAX = 512;
/** Between two puts of less than that: each is a transaction, and a line that trickles would cost one for each page. */
export const FEED_GATHER_MS = 200;
/** Between two attempts to feed what the mesh shows. */
export const FEED_RETRY_MS = 1_000;
/** After a replay that could not be finished. */
export const MESH_REPLAY_RETRY_MS = 600_000;
/** Of one replay, where old history is let go meanwhile: each archive lets go once an hour. */
export const REPLAY_BEGINS_MAX = 3;
/** Sites that metrics name; the others are counted together. */
export const SITES_MEASURED_MAX = 64;
/** From one network hop to a cut that lasted a day. */
export const PROPAGATION_BUCKETS_MS = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 300_000, 3_600_000, 86_400_000,
];
