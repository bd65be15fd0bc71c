// One job for the views' tests and the processes that they start: no test library here.

import type { Job, JobSpec } from "../../src/core/jobs/model.ts";

export function newJob(sequence: number, changes?: Partial<Job>, spec?: Partial<JobSpec>): Job {
  return {
    id: `job-${sequence}`,
    spec: {
      kind: "exec",
      payload: { command: ["make", `target${sequence}`], env: { BRANCH: "main" } },
      queue: "default",
      labels: { os: "linux" },
      platform: null,
      priority: 0,
      notBeforeMs: null,
      attemptsMax: 3,
      lossesMax: 3,
      backoff: { baseMs: 1_000, maxMs: 60_000 },
      timeoutMs: null,
      retentionMs: 86_400_000,
      concurrency: null,
      ...spec,
    },
    state: "pending",
    jobEpoch: 0,
    failures: 0,
    losses: 0,
    submittedAtMs: 1_800_000_000_000 + Math.floor(sequence / 8),
    submittedSequence: sequence,
    submittedBy: "ci",
    readyAtMs: 1_800_000_000_000,
    lease: null,
    progress: null,
    attempts: [],
    finishedAtMs: null,
    result: null,
    error: null,
    ...changes,
  };
}
