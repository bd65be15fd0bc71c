// The bounds of a cluster's members, beacons and hand-overs.

import { MEMBERS_MAX } from "../../core/kit/limits.ts";

/** The head, and a few of the indexes that every node names, so that any two nodes name one in common. */
export const BEACON_POINTS_MAX = 4;
export const BEACON_INTERVAL_MS = 1_000;
/** Of a process that has just begun, and twice as long each time: until clocks were heard of, none is believed. */
export const BEACON_FIRST_PAUSE_MS = 50;
/** At 20,000 entries a second and a beacon each second, a peer's point is still found when it comes 0.2 s late. */
export const CHAIN_POINTS_MAX = 4_096;
/** Of one state machine. */
export const INNER_MACHINES_MAX = 16;
export const NODE_ID_BYTES_MAX = 63;
/** At once waiting to join; more are refused before they are proposed, and ignored where they were. */
export const INVITED_MAX = MEMBERS_MAX;
/** Entries up to about this size are hashed after their index and term in one piece. */
export const LINK_BUFFER_BYTES = 1_024;
export const CLUSTER_TICK_MS = 1_000;
/** Under load a follower in step is always a few batches late; more is a node that would hold commits up as a voter. */
export const CAUGHT_UP_LAG_ENTRIES_MAX = 256;
/** How often the leader checks on those who are to join; and how long it pauses for one whose change was refused. */
export const JOINERS_CHECK_MS = 250;
export const JOINERS_IDLE_CHECK_MS = 1_000;
export const JOIN_RETRY_MS_MIN = 500;
export const JOIN_RETRY_MS_MAX = 15_000;
/** An earlier change takes a few round trips; past this its refusal is reported. */
export const PENDING_PATIENCE_MS = 5_000;
export const PENDING_POLL_MS = 25;
export const CATCH_UP_MS_MAX = 30_000;
export const CATCH_UP_POLL_MS = 100;
/** An operator's changes that wait for their turn, or for a node to catch up. */
export const MEMBER_CHANGES_MAX = 32;
export const SOLE_HISTORY_CHECK_MS = 500;
/** Until another node leads: at a drain, and at an operator's transfer. */
export const HANDED_OVER_MS_MAX = 3_000;
export const TRANSFER_MS_MAX = 3_000;
export const TRANSFER_POLL_MS = 5;
/** A node that was not heard of for so long is gone, or cut off. */
export const NODE_SILENT_MS_MAX = 5_000;
