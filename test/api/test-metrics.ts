// What a server might have counted.

import { Histogram } from "../../src/core/kit/histogram.ts";
import type { MetricsSource } from "../../src/drivers/telemetry/index.ts";
import type { EngineStats, JobsServerStats, ServerStats } from "../../src/ports/server-stats.ts";

const empty = new Histogram().snapshot();

export function sourceOf(
  server: Partial<ServerStats>,
  engine: Partial<EngineStats> = {},
  jobs: Partial<JobsServerStats> = {},
): MetricsSource {
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
        clockSkewMs: server.leaderId === null ? null : 1_500,
      },
      engine: {
        proposals: { committed: 5, refused: 1, unknown: 0 },
        commitMs: empty,
        fsyncMs: empty,
        refusedFrames: 0,
        droppedFrames: 0,
        limitedVotes: 0,
        stalls: 0,
        strainMs: 0,
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
        certificateNotAfterMs: 1_900_000_000_500,
      },
      disk: { freeBytes: 1_000, isFull: false },
      loopDelayMs: empty,
      loopTurns: { turns: 1_000, longestMs: 4.5, p99Ms: 0.5 },
      ...server,
    },
    mesh:
      server.leaderId === null
        ? null
        : {
            arrival: 70,
            viewsLag: 2,
            receipts: { pages: 4, events: 10 },
            refused: { invalid: 1 },
            forks: 0,
            isSigning: true,
            sources: [{ site: "far", missingEvents: 2, missingMs: 40 }],
            propagation: [{ site: "far", histogram: empty }],
            links: [
              {
                site: "far",
                isConnected: true,
                lagEvents: 1,
                lagMs: 30,
                missingEvents: 2,
                heardMsAgo: 100,
                roundTripMs: 12,
                skewMs: 3,
              },
            ],
          },
    values:
      server.leaderId === null
        ? null
        : {
            values: 3,
            bytes: 4_000,
            watching: 2,
            writes: { committed: 12, stale: 1, conflict: 2, locked: 0, full: 0, unknown: 0 },
          },
    coordinators:
      server.leaderId === null
        ? null
        : {
            leads: true,
            term: 7,
            leaseRemainingMs: 2_500,
            voters: { leads: 1, answers: 1, silent: 1, leaving: 0, unknown: 0 },
            quorum: 2,
            members: 3,
            registry: 3,
            mismatched: 0,
            shared: 0,
            electionsWon: 2,
            over: { expired: 1, "higher-term": 0, released: 0 },
            refused: { "lease-active": 1 },
          },
    transactions:
      server.leaderId === null
        ? null
        : {
            prepared: 2,
            inDoubt: 1,
            oldestInDoubtMs: 45_500,
            kept: 40,
            undelivered: 1,
            decided: { committed: 30, "rolled-back": 4 },
            staleTerms: 1,
          },
    decider:
      server.leaderId === null
        ? null
        : { outcomes: { committed: 20, "rolled-back": 3, unknown: 1, refused: 2 }, running: 5, forwarded: 6 },
    jobs: {
      byState: { pending: 3, assigned: 2, building: 1, cancelling: 0, completed: 9, failed: 1, cancelled: 1 },
      counts: {
        submitted: 17,
        leased: 14,
        finished: { completed: 9, failed: 1, cancelled: 1 },
        retried: { failed: 1, "timed-out": 0, lost: 2, "handed-back": 0, undelivered: 0, asked: 0 },
        commitMs: empty,
        assignedMs: empty,
        scheduleLagMs: empty,
      },
      waitingPolls: 4,
      agentsOnline: 5,
      staleRejected: 6,
      idempotencyKeys: { remembered: 8, droppedEarly: 1 },
      events: { first: 11, sequence: 60 },
      archive: { usedBytes: 5_000, quotaBytes: 9_000, missingSegments: 1, lostSegments: 1, unsyncedBytes: 12 },
      views: { lagEvents: 7, waiting: 8 },
      ...jobs,
    },
    http: {
      requests: [{ route: "GET /leader", status: 200, count: 4 }],
      durationMs: [{ route: "GET /leader", histogram: empty }],
      inFlight: 0,
      droppedConnections: 0,
      cutConnections: { newcomer: 0, "slow-reader": 0, age: 0, pipelined: 0 },
      connections: 0,
      badConnections: 0,
      streams: 3,
    },
    apiCertificateNotAfterMs: 1_910_000_000_000,
    droppedLogLines: 0,
    lastBackupAtMs: 1_800_000_000_500,
  };
}
