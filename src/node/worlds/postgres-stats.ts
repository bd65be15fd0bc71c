// What a node on Postgres counts, in the words of every server's metrics. It has no Raft and no peers: what belongs to those
// has never happened here, and is 0.

import type { SiteCluster } from "../../controller/cluster/site-cluster.ts";
import { Histogram } from "../../core/kit/histogram.ts";
import type { DataDirectory } from "../../drivers/disk/index.ts";
import type { LoopMonitor } from "../../drivers/telemetry/index.ts";
import type { PostgresLog, PostgresNodes } from "../../logs/index.ts";
import type { Elector } from "../../ports/elector.ts";
import type { ServerStats } from "../../ports/server-stats.ts";
import { nodeStats } from "./stats.ts";

export interface SiteCounted {
  readonly cluster: SiteCluster;
  readonly nodes: Pick<PostgresNodes, "clockSkewMs">;
  readonly log: Pick<PostgresLog, "counts">;
  readonly elector: Pick<Elector, "stats">;
  readonly directory: Pick<DataDirectory, "freeBytes" | "state">;
  readonly loop: LoopMonitor;
}

const NEVER = new Histogram().snapshot();

export function siteStats({ cluster, nodes, log, elector, directory, loop }: SiteCounted): ServerStats {
  const { acquiredTotal, acquireAttemptsTotal, acquireLatencyMs } = elector.stats();
  const { appends, unknown } = log.counts;
  return {
    ...nodeStats(cluster.view(), directory, loop),
    health: {
      electionsStarted: acquireAttemptsTotal,
      electionsWon: acquiredTotal,
      electionDurationMs: acquireLatencyMs,
      electionSuccessRate: null,
      failovers: 0,
      transfers: { succeeded: 0, failed: 0 },
      splitBrains: 0,
      clockSkewMs: nodes.clockSkewMs,
    },
    engine: {
      proposals: { committed: appends - unknown, refused: 0, unknown },
      commitMs: NEVER,
      fsyncMs: NEVER,
      refusedFrames: 0,
      droppedFrames: 0,
      limitedVotes: 0,
      stalls: 0,
      strainMs: 0,
      syncs: 0,
      snapshotsSaved: 0,
      snapshotsRestored: 0,
    },
    wire: {
      sentFrames: 0,
      sentBytes: 0,
      receivedFrames: 0,
      receivedBytes: 0,
      droppedFrames: 0,
      connections: 0,
      refused: {},
      certificateNotAfterMs: null,
    },
  };
}
