// All that one server counts, gathered at one moment.

import type { ClusterService } from "../../controller/cluster/cluster.ts";
import type { JobsFeeder } from "../../controller/jobs/feeder.ts";
import type { JobsMeter } from "../../controller/jobs/meter.ts";
import type { JobsService } from "../../controller/jobs/jobs.ts";
import type { Archive } from "../../logs/index.ts";
import type { EventsHead } from "../../ports/events.ts";
import type { JobsServerStats, ServerStats } from "../../ports/server-stats.ts";
import type { LoopMonitor } from "../../drivers/telemetry/index.ts";
import type { WireStats } from "../../drivers/wire/index.ts";
import type { ConsensusNode } from "../worlds/consensus.ts";

export function serverStats(
  { engine, wire, directory }: ConsensusNode,
  cluster: ClusterService,
  loop: LoopMonitor,
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
    loopDelayMs: loop.snapshot(),
    loopTurns: loop.turns(),
  };
}

interface JobsCounted {
  readonly jobs: Pick<JobsService, "stats" | "waiting">;
  readonly feeder: Pick<JobsFeeder, "position" | "waiting">;
  readonly meter: Pick<JobsMeter, "counts">;
  readonly fold: { readonly book: { readonly keys: JobsServerStats["idempotencyKeys"] } };
  readonly events: EventsHead;
  readonly archive: Pick<
    ReturnType<Archive["stats"]>,
    "usedBytes" | "quotaBytes" | "missingSegments" | "lostSegments" | "unsyncedBytes"
  >;
}

export function jobsStats({ jobs, feeder, meter, fold, events, archive }: JobsCounted): JobsServerStats {
  const { byState, agentsOnline, staleRejected } = jobs.stats();
  const { usedBytes, quotaBytes, missingSegments, lostSegments, unsyncedBytes } = archive;
  return {
    byState,
    counts: meter.counts(),
    waitingPolls: jobs.waiting,
    agentsOnline,
    staleRejected,
    idempotencyKeys: fold.book.keys,
    events,
    archive: { usedBytes, quotaBytes, missingSegments, lostSegments, unsyncedBytes },
    views: { lagEvents: Math.max(0, events.sequence - feeder.position), waiting: feeder.waiting },
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
    certificateNotAfterMs: stats.certificateNotAfterMs,
  };
}
