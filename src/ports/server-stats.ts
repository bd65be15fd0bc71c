// What one server counts, for its metrics. Every number grows from 0 at the start of the process, or is the present value.

import type { HistogramSnapshot } from "./elector.ts";

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
}
