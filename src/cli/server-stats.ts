// All that one server counts, gathered at one moment.

import type { ClusterService } from "../controller/cluster.ts";
import type { HistogramSnapshot } from "../ports/elector.ts";
import type { ServerStats } from "../ports/server-stats.ts";
import type { WireStats } from "../drivers/wire/index.ts";
import type { ConsensusNode } from "./server-consensus.ts";

export function serverStats(
  { engine, wire, directory }: ConsensusNode,
  cluster: ClusterService,
  loopDelayMs: HistogramSnapshot,
): ServerStats {
  const { nodeId, leader, role, term, commit, applied } = cluster.view();
  return {
    nodeId,
    leaderId: leader?.nodeId ?? null,
    role,
    term,
    commit,
    applied,
    health: cluster.stats(),
    engine: engine.stats(),
    wire: wireStats(wire.stats()),
    disk: { freeBytes: directory.freeBytes(), isFull: directory.state() === "full" },
    loopDelayMs,
  };
}

function wireStats(stats: WireStats): ServerStats["wire"] {
  return {
    sentFrames: stats.sentMessages,
    sentBytes: stats.sentBytes,
    receivedFrames: stats.receivedMessages,
    receivedBytes: stats.receivedBytes,
    droppedFrames: stats.droppedUnconnected + stats.droppedFull + stats.droppedBulks,
    connections: stats.connected,
    refused: { ...stats.refused },
  };
}
