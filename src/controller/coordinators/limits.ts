// The bounds of the coordinators' loop. What leases last is in core/lease/limits.ts.

import { ROUND_ANSWERED_MS } from "../../core/lease/limits.ts";

/** One request to another coordinator: a round of renewals is over within a renewal's interval. */
export const COORDINATOR_CALL_MS = 1_000;
/** Requests that wait for their turn at a voter, while its disk writes. What comes above it is not answered, as if it had been lost. */
export const DESK_REQUESTS_MAX = 256;
/** Who leads, asked of everybody before a campaign; after some in vain, for as long as a call may take. */
export const PRE_VOTE_MS = 500;
/** Where a majority has said that nobody leads, the others may answer within this. */
export const PRE_VOTE_REST_MS = 50;
/** A campaign that has no quorum by then is lost. */
export const CANDIDACY_MS = 1_000;
/** Candidates begin so far apart, at least and at most (pace.ts). */
export const TURN_MS_MIN = 15;
export const TURN_MS_MAX = 400;
/** So many of the last calls and writes say what one takes. */
export const PACE_KEPT = 32;
/** The rest after a campaign that came to nothing doubles so often, while nobody leads; from then on answers that are late are waited for. */
export const VAIN_DOUBLINGS_MAX = 4;
/** Rounds of renewals that a voter still gets after its removal was decided: one is on its way to the voters, the next ones have the news. */
export const REMOVED_ROUNDS = 4;
/** A leader that was outvoted is wanted again within this, or gives its lease back: an elector does so in the same turn in which its work ends. */
export const WANTED_AGAIN_MS = 50;
/** Whoever released lets others go first. */
export const RELEASED_AWAY_MS = 1_000;
/** Between two announcements. */
export const ANNOUNCE_EVERY_MS = 3_000;
/** Before the second try at those that did not answer: with both calls less than the interval. */
export const ANNOUNCE_AGAIN_MS = 500;
/** Endpoints that others have listed and this node has not met. */
export const HEARD_ENDPOINTS_MAX = 256;
/** Between two looks whether a cluster can be founded, or somebody has admitted this node. */
export const FOUNDING_EVERY_MS = 1_000;
/** All that are listed store a change of the registry within this, or it is undone. */
export const REGISTRY_STORED_MS = 1_500;
/** An undo is stored by a majority within this, or nobody knows. */
export const REGISTRY_UNDONE_MS = 3_000;
/** A change of the registry waits so long for one that is on its way. */
export const REGISTRY_TURN_MS = 2_000;
/** A change that was forwarded to the leader: all of its waits. */
export const REGISTRY_FORWARDED_MS = REGISTRY_STORED_MS + REGISTRY_TURN_MS + REGISTRY_UNDONE_MS;
/** A node that leaves is removed from the voters within this, or it stays. */
export const LEAVE_MS = 15_000;
/** At the end of a leave that is limited in time, this part of it is for the lists of the others. */
export const LEFT_FAN_OUT_MS = 500;
/** A graceful stop leaves within this, whatever answers. */
export const LEAVE_AT_STOP_MS = 2_000;
/** What is being written to the ledger, and the work of a term, end within this when a coordinator stops; a disk may hang. */
export const STOP_MS = 2_000;
/** Between two looks whether the registry has this node, drawn between the two. */
export const REGISTER_AGAIN_MS_MIN = 1_000;
export const REGISTER_AGAIN_MS_MAX = 4_000;
/** A voter is shown as silent when it has answered no request of the last two rounds: one may be on its way. */
export const VOTER_SILENT_AFTER_MS = 2 * ROUND_ANSWERED_MS;
