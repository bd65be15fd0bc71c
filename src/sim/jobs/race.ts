// Twenty agents wait and ten jobs come, while leaders die and are cut off: each job is given to one agent. It is given again
// only where the lease before has ended in the log, which happens where the answer to an agent was lost, and its next poll says
// so, or a server was away for so long that the lease ran out. Where leases outlast all faults, a job that has come to an agent never comes to another.
// At the end ten jobs are completed, each once.

import { type JobSpec, PLAIN_SPEC } from "../../core/jobs/model.ts";
import { type JobsKnobs, LONG_TTL_MS } from "./knobs.ts";
import type { JobsOracle } from "./oracle/oracle.ts";

export const RACE_JOBS = 10;
/** The jobs come while everything goes wrong already, or a little before. */
export const RACE_BEGINS_MS: readonly [number, number] = [300, 3_000];

export const RACE_SPEC: JobSpec = {
  ...PLAIN_SPEC,
  kind: "work",
  attemptsMax: 100,
  lossesMax: 100,
  backoff: { baseMs: 50, maxMs: 500 },
  retentionMs: 3_600_000,
};

export interface RaceResult {
  /** In the log. */
  readonly assignments: number;
  /** Leases that ended without a result; and those of them whose answer never reached an agent. */
  readonly lost: number;
  readonly undelivered: number;
  readonly completed: number;
  /** How often a job came to an agent, and how often to one more than the first. */
  readonly deliveries: number;
  readonly redeliveries: number;
  readonly failovers: number;
}

export function raceResult({ jobs, holders, probes }: JobsOracle): RaceResult {
  const all = [...jobs.values()];
  const ends = all.flatMap((job) => [...job.ends.values()]);
  const { all: deliveries, again: redeliveries } = holders.deliveries;
  return {
    assignments: all.reduce((sum, { assignments }) => sum + assignments, 0),
    lost: ends.filter(({ cause }) => cause === "lost" || cause === "undelivered").length,
    undelivered: ends.filter(({ cause }) => cause === "undelivered").length,
    completed: ends.filter(({ cause }) => cause === "completed").length,
    deliveries,
    redeliveries,
    // The first leader takes over from nobody.
    failovers: Math.max(0, (probes.failover ?? 0) - 1),
  };
}

/** Null: it is as it should be. */
export function raceProblem(oracle: JobsOracle, { ttlMs }: JobsKnobs): string | null {
  const { assignments, lost, completed, redeliveries } = raceResult(oracle);
  const { size } = oracle.jobs;
  if (size !== RACE_JOBS) return `a race for ${size} jobs, not ${RACE_JOBS}`;
  if (completed !== RACE_JOBS) return `${completed} results of ${RACE_JOBS} jobs`;
  if (ttlMs >= LONG_TTL_MS && redeliveries > 0)
    return `${redeliveries} jobs came to two agents, by leases of ${ttlMs} ms`;
  const extra = assignments - RACE_JOBS;
  return extra === lost ? null : `${assignments} assignments of ${RACE_JOBS} jobs, and ${lost} leases were lost`;
}
