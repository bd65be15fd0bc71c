// What one server counts, for its metrics. Every number grows from 0 at the start of the process, or is the present value.

import type { JobState } from "../core/jobs/model.ts";
import type { VoterState } from "./coordinators.ts";
import type { HistogramSnapshot } from "./elector.ts";
import type { EventsHead } from "./events.ts";

export interface ServerStats {
  readonly nodeId: string;
  readonly leaderId: string | null;
  readonly role: "LEADER" | "STANDBY" | "DRAINING";
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
  readonly health: HealthStats;
  readonly engine: EngineStats;
  readonly wire: WireStats;
  readonly disk: { readonly freeBytes: number | null; readonly isFull: boolean };
  /** How late the event loop was, sampled. */
  readonly loopDelayMs: HistogramSnapshot;
  readonly loopTurns: LoopTurns;
}

/** Turns of the event loop in the last minute: what runs between two waits for the world. */
export interface LoopTurns {
  readonly turns: number;
  readonly longestMs: number;
  readonly p99Ms: number;
}

/** Counted from the events of one node's Raft. */
export interface HealthStats {
  /** Campaigns of this node that asked for votes (pre-votes that came to nothing are not elections). */
  readonly electionsStarted: number;
  readonly electionsWon: number;
  readonly electionDurationMs: HistogramSnapshot;
  /** 0 to 1, over the last five minutes; null where there was no election. */
  readonly electionSuccessRate: number | null;
  /** Changes of leader that nobody had asked for, as this node saw them. */
  readonly failovers: number;
  readonly transfers: { readonly succeeded: number; readonly failed: number };
  readonly splitBrains: number;
  /** How far this node's wall clock is ahead of the time that a majority of the voters' clocks agrees on; null: none does. */
  readonly clockSkewMs: number | null;
}

export interface EngineStats {
  readonly proposals: { readonly committed: number; readonly refused: number; readonly unknown: number };
  /** From the proposal to its application on the leader. */
  readonly commitMs: HistogramSnapshot;
  readonly fsyncMs: HistogramSnapshot;
  readonly refusedFrames: number;
  readonly droppedFrames: number;
  readonly limitedVotes: number;
  readonly stalls: number;
  /** By how much this node waits longer than configured before it takes another for lost. */
  readonly strainMs: number;
  readonly syncs: number;
  readonly snapshotsSaved: number;
  readonly snapshotsRestored: number;
}

export interface WireStats {
  readonly sentFrames: number;
  readonly sentBytes: number;
  readonly receivedFrames: number;
  readonly receivedBytes: number;
  /** Messages that found no connection, or one whose queue was full. */
  readonly droppedFrames: number;
  readonly connections: number;
  /** Connections refused or ended for cause, by reason. */
  readonly refused: Readonly<Record<string, number>>;
  /** When the certificate for other nodes ends, as it is in use; null without TLS. */
  readonly certificateNotAfterMs: number | null;
}

/** Of jobs, their events and what is made of them, on one node. */
export interface JobsServerStats {
  readonly byState: Readonly<Record<JobState, number>>;
  readonly counts: JobsCounts;
  /** Agents whose call waits on this node for a job. */
  readonly waitingPolls: number;
  readonly agentsOnline: number;
  /** Results that this node has refused as STALE_EPOCH. */
  readonly staleRejected: number;
  /** `droppedEarly`: for want of room, since this node's start. */
  readonly idempotencyKeys: { readonly remembered: number; readonly droppedEarly: number };
  readonly events: EventsHead;
  readonly archive: {
    readonly usedBytes: number;
    /** Null: no quota. */
    readonly quotaBytes: number | null;
    readonly missingSegments: number;
    /** Of those: no member has them. */
    readonly lostSegments: number;
    readonly unsyncedBytes: number;
  };
  readonly views: {
    /** Events that are applied and not yet shown in lists, searches and logs. */
    readonly lagEvents: number;
    /** Changes that wait to be put. */
    readonly waiting: number;
  };
}

/** Of what this node has committed as leader; over all nodes each counts once. */
export interface JobsCounts {
  readonly submitted: number;
  readonly leased: number;
  readonly finished: Readonly<Record<"completed" | "failed" | "cancelled", number>>;
  /** Sent round again, by what ended the attempt before. */
  readonly retried: Readonly<Record<"failed" | "timed-out" | "lost" | "handed-back" | "undelivered" | "asked", number>>;
  /** From a submission to its commit. */
  readonly commitMs: HistogramSnapshot;
  /** From a submission, or from when it may run, until its first assignment is committed. */
  readonly assignedMs: HistogramSnapshot;
  /** How long after its time a schedule fired. */
  readonly scheduleLagMs: HistogramSnapshot;
}

/** Of a site among other sites, as one node counts it. Links exist at the leader alone; sites are at most as many as metrics may name. */
export interface MeshServerStats {
  /** Events that have arrived, own and foreign. */
  readonly arrival: number;
  /** Of those: not yet in the merged state. */
  readonly viewsLag: number;
  readonly receipts: { readonly pages: number; readonly events: number };
  /** What others delivered that was not in order, by reason. */
  readonly refused: Readonly<Record<string, number>>;
  readonly forks: number;
  readonly isSigning: boolean;
  /** What is lacking here of each site's lines, as far as linked sites say: how many events, and since when the oldest is known of. */
  readonly sources: readonly { readonly site: string; readonly missingEvents: number; readonly missingMs: number }[];
  readonly propagation: readonly { readonly site: string; readonly histogram: HistogramSnapshot }[];
  readonly links: readonly {
    readonly site: string;
    readonly isConnected: boolean;
    readonly lagEvents: number;
    readonly lagMs: number;
    readonly missingEvents: number;
    readonly heardMsAgo: number | null;
    readonly roundTripMs: number | null;
    /** Its wall clock minus ours. */
    readonly skewMs: number | null;
  }[];
}

/** Of a transaction coordinator, as this node knows the others. */
export interface CoordinatorServerStats {
  /** It may act as leader now. */
  readonly leads: boolean;
  /** The highest that it knows. */
  readonly term: number;
  /** Of the leader's lease, as this node's voter has it; 0: nobody leads. */
  readonly leaseRemainingMs: number;
  readonly voters: Readonly<Record<VoterState, number>>;
  readonly quorum: number;
  readonly members: number;
  readonly registry: number;
  /** Nodes of another cluster of coordinators, and identities of which two are alive, that it has met lately. */
  readonly mismatched: number;
  readonly shared: number;
  readonly electionsWon: number;
  /** Leaderships of this node that have ended, by why. */
  readonly over: Readonly<Record<"expired" | "higher-term" | "released", number>>;
  /** Requests for leases that its voter has refused, by why. */
  readonly refused: Readonly<Record<string, number>>;
}

/** What the API counts, by the routes of the contract. */
export interface HttpStats {
  readonly requests: readonly { readonly route: string; readonly status: number; readonly count: number }[];
  /** From the headers' arrival to the last byte handed over, by route. Waiting on purpose counts too. */
  readonly durationMs: readonly { readonly route: string; readonly histogram: HistogramSnapshot }[];
  /** Being answered at this moment. */
  readonly inFlight: number;
  /** Connections that were closed unheard, at the limit. */
  readonly droppedConnections: number;
  /** What came was no HTTP, or came too slowly. */
  readonly badConnections: number;
  /** Connections that were cut, by why: see traffic/connections.ts. */
  readonly cutConnections: Readonly<Record<CutReason, number>>;
  /** Connections that are open. */
  readonly connections: number;
  /** Of events and logs, open at this moment. */
  readonly streams: number;
  /** When a snapshot of this node was last reported as stored elsewhere, by the wall clock; 0: not since this process began. */
  readonly lastBackupAtMs: number;
}

export type CutReason = "newcomer" | "slow-reader" | "age" | "pipelined";
