// How long each layer waits for the one inside of it, in one table (trap 84). Where two layers wait equally long, the outer one
// gives up while the inner one answers: a definite refusal becomes an unknown outcome. So an outer wait is longer than all the
// waits inside of it together, by a margin; timeouts.test.ts has the order, and docs/reference/timeouts.md the table.
//
//   handler's own waits  <  client's attempt at one node  <  client's call, over all nodes  <  whoever calls
//
// What is derived is not here: an elector's timing follows from its TTL (electors/*/options.ts), an agent's from its lease.

// ---- a server, before it answers -------------------------------------------------------------------

/** Before an API key that this node does not know is refused. */
export const KEY_WAIT_MS = 500;
/** A request that arrives while leadership changes: longer than an election takes; past it the caller is refused, definitely. */
export const TURNOVER_WAIT_MS = 1_000;
/** A decision that needs the views (of a job that the book has dropped), which lag. */
export const VIEWS_WAIT_MS = 1_000;
/** A renewal, until a majority has confirmed the leader. Shorter than the shortest lease. */
export const CONFIRM_WAIT_MS = 900;
/** A linearizable read, until everything committed before it is applied here; the same again until the views have it. */
export const LINEARIZABLE_WAIT_MS = 2_000;
/** A read until its turn comes: of the views, or of a page that takes the loop's time. */
export const READ_TURN_MS = 5_000;
/** A stream that resumes, until its turn comes to read an old point: up to three times, of two points and after catching up. */
export const STREAM_TURN_MS = 500;
/** A campaign, or a poll for jobs, that waits on purpose. */
export const LONG_POLL_MS_MAX = 60_000;
/** A stream on which nothing happens says so. */
export const STREAM_HEARTBEAT_MS = 15_000;
/** A reader of a stream that takes nothing is cut. */
export const STREAM_STALL_MS = 10_000;

// ---- a server, for its connections -----------------------------------------------------------------

export const HANDSHAKE_MS = 10_000;
export const HEADERS_MS = 10_000;
export const REQUEST_ARRIVES_MS = 15_000;
export const KEEP_ALIVE_MS = 65_000;
export const CONNECTION_IDLE_MS = 120_000;

// ---- a server that stops ---------------------------------------------------------------------------

export const HAND_OVER_MS = 3_000;
export const STOP_GRACE_MS = 5_000;

// ---- a client --------------------------------------------------------------------------------------

/** A mutation that may be repeated, at one node: one that says nothing for longer is frozen, or cut off. */
export const ATTEMPT_MS = 3_000;
/** The same of a renewal: its lease runs, so another node is asked sooner; what it says is repeated until it is answered. */
export const RENEWAL_ATTEMPT_MS = 1_000;
/** A whole call, with everything that is tried again. */
export const CALL_MS = 10_000;
/** Until a stream is open. */
export const STREAM_OPEN_MS = 6_500;
/** On an open stream nothing was heard. */
export const STREAM_SILENCE_MS = 40_000;

// ---- a site, for another one -----------------------------------------------------------------------

/** A page of another site, until it is verified, replicated and applied here: past it the sender is refused, and sends it again. */
export const PAGE_TAKEN_MS = 5_000;
/** One request to another site. */
export const SITE_CALL_MS = 10_000;
/** Signed heads, and what each link is asked to send. */
export const SITE_HEADS_MS = 1_000;
/** On the stream of another site nothing was heard. */
export const SITE_SILENCE_MS = 10_000;

// ---- an agent --------------------------------------------------------------------------------------

/** A poll's answer, after the time that the poll itself may wait. */
export const POLL_ANSWER_MS = 2_000;
/** `tenure agent start` that stops: its jobs may end by themselves, then each is asked to, then it is killed. */
export const AGENT_DRAIN_MS = 30_000;
export const AGENT_GRACE_MS = 5_000;
