// What a server might have counted.

import { Histogram } from "../../src/core/kit/histogram.ts";
import type { MetricsSource } from "../../src/drivers/telemetry/index.ts";
import type { EngineStats, ServerStats } from "../../src/ports/server-stats.ts";

const empty = new Histogram().snapshot();

export function sourceOf(server: Partial<ServerStats>, engine: Partial<EngineStats> = {}): MetricsSource {
  return {
    server: {
      nodeId: "n1",
      leaderId: "n2",
      role: "STANDBY",
      term: 1,
      commit: 10,
      applied: 9,
      health: {
        electionsStarted: 3,
        electionsWon: 2,
        electionDurationMs: empty,
        electionSuccessRate: server.leaderId === null ? null : 0.5,
        failovers: 1,
        transfers: { succeeded: 2, failed: 1 },
        splitBrains: 0,
      },
      engine: {
        proposals: { committed: 5, refused: 1, unknown: 0 },
        commitMs: empty,
        fsyncMs: empty,
        refusedFrames: 0,
        droppedFrames: 0,
        limitedVotes: 0,
        stalls: 0,
        syncs: 7,
        snapshotsSaved: 1,
        snapshotsRestored: 0,
        ...engine,
      },
      wire: {
        sentFrames: 1,
        sentBytes: 2,
        receivedFrames: 3,
        receivedBytes: 4,
        droppedFrames: 5,
        connections: 2,
        refused: { "bad-certificate": 1 },
      },
      disk: { freeBytes: 1_000, isFull: false },
      loopDelayMs: empty,
      ...server,
    },
    http: {
      requests: [{ route: "GET /leader", status: 200, count: 4 }],
      durationMs: [{ route: "GET /leader", histogram: empty }],
      inFlight: 0,
      droppedConnections: 0,
      badConnections: 0,
    },
    droppedLogLines: 0,
  };
}
