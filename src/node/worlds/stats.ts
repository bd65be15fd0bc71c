// What a server with a log of its own counts next to its jobs, gathered at one moment.

import type { ClusterService } from "../../controller/cluster/cluster.ts";
import type { DataDirectory } from "../../drivers/disk/index.ts";
import type { LoopMonitor } from "../../drivers/telemetry/index.ts";
import type { WireStats } from "../../drivers/wire/index.ts";
import type { ClusterView } from "../../ports/cluster.ts";
import type { ServerStats } from "../../ports/server-stats.ts";
import type { ConsensusNode } from "./consensus.ts";

export function serverStats(
  { engine, wire, directory }: ConsensusNode,
  cluster: ClusterService,
  loop: LoopMonitor,
): ServerStats {
  return {
    ...nodeStats(cluster.view(), directory, loop),
    health: cluster.stats(),
    engine: engine.stats(),
    wire: wireStats(wire.stats()),
  };
}

/** What every node counts, whatever keeps its log. */
export function nodeStats(
  { nodeId, leader, role, term, commit, applied }: ClusterView,
  directory: Pick<DataDirectory, "freeBytes" | "state">,
  loop: LoopMonitor,
): Omit<ServerStats, "health" | "engine" | "wire"> {
  const disk = { freeBytes: directory.freeBytes(), isFull: directory.state() === "full" };
  const loopStats = { loopDelayMs: loop.snapshot(), loopTurns: loop.turns() };
  return { nodeId, leaderId: leader?.nodeId ?? null, role, term, commit, applied, disk, ...loopStats };
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
    certificateNotAfterMs: stats.certificateNotAfterMs,
  };
}
