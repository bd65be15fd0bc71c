// Runs seeds of jobs on simulated servers, for the tests of the simulator: the short ones of npm test and the long ones.

import { runPool } from "../src/cli/sim/pool.ts";
import type { SeedJob } from "../src/cli/sim/simulators.ts";
import type { JobsRunResult } from "../src/sim/jobs/index.ts";
import { JOBS_MUTANTS } from "../src/sim/mutants/jobs-list.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";

/** In the order of the seeds; `until` ends it early. */
export async function runJobs(
  seeds: readonly number[],
  { mutant = null, reversed = false, race = false, until = () => false, threads = 2 }: Runs = {},
): Promise<JobsRunResult[]> {
  const jobs: SeedJob[] = seeds.map((seed) => ({ seed, limits: mutant?.limits ?? { race }, reversed }));
  const results: JobsRunResult[] = [];
  const next = (): SeedJob | undefined => jobs.shift();
  const onResult = (result: JobsRunResult): boolean => results.push(result) > 0 && !until(result);
  await runPool(threads, mutant, next, onResult, "jobs");
  return results.toSorted((a, b) => a.seed - b.seed);
}

interface Runs {
  readonly mutant?: Mutant | null;
  readonly reversed?: boolean;
  readonly race?: boolean;
  readonly until?: (result: JobsRunResult) => boolean;
  readonly threads?: number;
}

export function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at + 1);
}

function fails({ violation }: JobsRunResult): boolean {
  return violation !== null;
}

/** Whether one of the first so many seeds fails with this mistake. */
export async function isFound(name: string, seeds: number): Promise<boolean> {
  const mutant = JOBS_MUTANTS.find((one) => one.name === name)!;
  return (await runJobs(numbers(seeds), { mutant, until: fails, threads: 1 })).some(fails);
}
