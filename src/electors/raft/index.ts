// Leadership by the Raft that runs in this process: what a server of Tenure uses for itself. The scope is the cluster, the
// epoch is the term, and the fence is the log (logs/raft), which takes a record only from the leader of the term it names.

import type { ElectionConfig } from "../../core/raft/config.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { Backend } from "../../ports/backend.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Lead, Proposals } from "../../ports/consensus.ts";
import type { LeaderBoard } from "./leader-board.ts";
import { RaftSeat } from "./seat.ts";

export { LeaderBoard, type Notice } from "./leader-board.ts";

/** Clocks of different rates, and effects under way. */
const MARGIN_SHARE = 0.2;

export interface RaftBackendOptions {
  readonly consensus: Lead & Proposals;
  readonly board: LeaderBoard;
  readonly clock: Clock;
  readonly host: string;
  readonly election: ElectionConfig;
}

/** One elector at a time: a node has one will. */
export function raftBackend(options: RaftBackendOptions): Backend {
  const { consensus, board, clock, host, election } = options;
  return {
    kind: "raft",
    host,
    clock,
    timing: raftTiming(election),
    seat: (claim) => new RaftSeat(consensus, board, claim, election.electionTimeoutMinMs),
  };
}

export function raftTiming(election: ElectionConfig): Timing {
  const { electionTimeoutMinMs, electionTimeoutMaxMs, heartbeatIntervalMs } = election;
  return {
    serverTimeoutMs: electionTimeoutMinMs,
    marginMs: electionTimeoutMinMs * MARGIN_SHARE,
    heartbeatMs: heartbeatIntervalMs,
    retryMinMs: heartbeatIntervalMs / 5,
    retryMaxMs: heartbeatIntervalMs,
    holdBackMs: heartbeatIntervalMs,
    releaseTimeoutMs: 4 * electionTimeoutMaxMs,
  };
}
