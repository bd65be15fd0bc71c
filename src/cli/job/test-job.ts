// Jobs for the tests of `tenure job`: one that has everything, and what a list has of it.

import type { JobBrief, JobView } from "../../client/index.ts";

export const NOW_MS = Date.parse("2030-01-01T00:01:00Z");
const THEN_MS = Date.parse("2030-01-01T00:00:00Z");

const LEASE = { jobEpoch: 2, leaderEpoch: 7, attempt: 2, agent: "w2", session: "5e55", ttlMs: 15_000 } as const;

/** Runs for the second time, and has all that a job can have; no real one has all of it at once. */
export function jobOf(more: Partial<JobView> = {}): JobView {
  return {
    id: "j1",
    spec: {
      kind: "build",
      payload: { repository: "a/b" },
      queue: "default",
      labels: { zone: "a" },
      platform: "linux",
      priority: 5,
      notBeforeMs: THEN_MS,
      attemptsMax: 3,
      lossesMax: 10,
      backoff: { baseMs: 1_000, maxMs: 300_000 },
      timeoutMs: 60_000,
      retentionMs: 604_800_000,
      concurrency: { key: "deploy", limit: 1 },
    },
    state: "building",
    jobEpoch: 2,
    failures: 1,
    losses: 0,
    submittedAtMs: THEN_MS,
    submittedSequence: 12,
    submittedBy: "ci",
    readyAtMs: THEN_MS + 5_000,
    lease: LEASE,
    progress: { share: 0.5, message: "fetched", atMs: THEN_MS + 8_000 },
    attempts: [
      {
        ...LEASE,
        jobEpoch: 1,
        attempt: 1,
        agent: "w1",
        assignedAtMs: THEN_MS + 1_000,
        startedAtMs: THEN_MS + 2_000,
        endedAtMs: THEN_MS + 4_000,
        end: "failed",
      },
      { ...LEASE, assignedAtMs: THEN_MS + 6_000, startedAtMs: null, endedAtMs: null, end: null },
    ],
    finishedAtMs: null,
    result: { bytes: 9 },
    error: { message: "no such\nrepository", detail: { status: 404 } },
    pendingReason: { reason: "paused", queue: "default" },
    timeline: [
      {
        atMs: THEN_MS,
        what: "submitted",
        attempt: null,
        jobEpoch: null,
        leaderEpoch: null,
        agent: null,
        end: null,
      },
      { atMs: THEN_MS + 4_000, what: "ended", attempt: 1, jobEpoch: 1, leaderEpoch: 7, agent: "w1", end: "failed" },
    ],
    ...more,
  };
}

export function briefOf(more: Partial<JobBrief> = {}): JobBrief {
  return {
    id: "j1",
    kind: "build",
    queue: "default",
    labels: {},
    platform: null,
    priority: 0,
    state: "pending",
    jobEpoch: 0,
    failures: 0,
    losses: 0,
    submittedAtMs: THEN_MS,
    submittedBy: "ci",
    readyAtMs: THEN_MS,
    agent: null,
    progress: null,
    finishedAtMs: null,
    errorMessage: null,
    ...more,
  };
}
