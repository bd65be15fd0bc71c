// Jobs on simulated servers as a command: fixed seeds, the same trace twice and in whatever order nodes are listed, and
// planted mistakes that are found.

import { describe, expect, it } from "vitest";
import { runPool } from "../src/cli/sim-pool.ts";
import { readFlags, UsageError } from "../src/cli/sim-flags.ts";
import type { SeedJob } from "../src/cli/sim-worker.ts";
import { JobsCampaign, type JobsRunResult } from "../src/sim/jobs/index.ts";
import { JOBS_MUTANTS } from "../src/sim/mutants/jobs-list.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";

const SEEDS = 10;
const RACES = 12;
/** Within so many each of those below is found. */
const MUTANT_SEEDS = 30;
const FEW = [1, 2];
const MINUTES = 60_000;

/** In the order of the seeds; `until` ends it early. */
async function run(
  seeds: readonly number[],
  { mutant = null, reversed = false, race = false, until = () => false, threads = 2 }: Runs = {},
): Promise<JobsRunResult[]> {
  const jobs: SeedJob[] = seeds.map((seed) => ({ seed, limits: { race }, reversed }));
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

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at + 1);
}

describe("npm run sim -- --jobs", () => {
  it(
    "runs fixed seeds under all faults without a violation, and every job comes to its end",
    { timeout: 2 * MINUTES },
    async () => {
      const total = new JobsCampaign(() => performance.now());
      const results = await run(numbers(SEEDS));
      for (const result of results) total.add(result);
      expect(results.filter(({ violation }) => violation !== null)).toEqual([]);
      const { seeds, jobs, events, probes, faults } = total.summary();
      expect(seeds).toBe(SEEDS);
      expect(jobs).toBeGreaterThan(SEEDS * 10);
      expect(events).toBeGreaterThan(2 * jobs);
      // What makes it worth anything: these were met.
      for (const probe of [
        "outcome-unknown",
        "stale-result-told",
        "lease-lost-told",
        "lost-answer-taken-back",
        "repeated-idempotent-answer",
        "missed-time-fired",
        "caught-up-by-two-leaders",
      ]) {
        expect(probes[probe], probe).toBeGreaterThan(0);
      }
      expect(probes["append-refused-and-rolled-back"]).toBeGreaterThan(0);
      expect(faults["crash-leader"]).toBeGreaterThan(SEEDS / 2);
    },
  );

  it(
    "20 agents and 10 jobs: each is given to one agent, and again only behind the end of its lease, with failovers",
    { timeout: 2 * MINUTES },
    async () => {
      const total = new JobsCampaign(() => performance.now());
      for (const result of await run(numbers(RACES), { race: true })) {
        expect(result.violation, `seed ${result.seed}`).toBeNull();
        total.add(result);
      }
      const races = total.summary().races!;
      expect(races).toMatchObject({ races: RACES, completed: 10 * RACES });
      expect(races.assignments).toBe(10 * RACES + races.leases_lost);
      // What nobody heard of did not come to anybody before.
      expect(races.redeliveries).toBeLessThanOrEqual(races.leases_lost - races.leases_undelivered);
      expect(races.races_of_ten_assignments).toBeGreaterThan(RACES / 3);
      expect(races.failovers).toBeGreaterThan(RACES);
    },
  );

  it(
    "trap 32: gives the same trace for the same seed, in whichever order its machines are listed",
    { timeout: MINUTES },
    async () => {
      const hashes = (results: readonly JobsRunResult[]): string[] =>
        results.map(({ seed, hash }) => `${seed} ${hash}`);
      const first = hashes(await run(FEW, { threads: 1 }));
      expect(hashes(await run(FEW, { reversed: true, threads: 1 }))).toEqual(first);
      expect(new Set(first.map((one) => one.split(" ")[1])).size).toBe(FEW.length);
    },
  );

  it.each([
    "answer-before-commit",
    "read-from-head",
    "export-before-commit",
    "unknown-told-as-not-done",
    "lease-by-wall-clock",
    "what-is-due-stays-due",
    "takes-back-what-was-answered",
    "answered-without-taking-back",
    "catch-up-without-a-slice",
    "catch-up-over-a-rollback",
    "walk-resumed-too-late",
    "firing-not-remembered",
  ])("finds %s", { timeout: MINUTES }, async (name) => {
    const mutant = JOBS_MUTANTS.find((one) => one.name === name)!;
    const isFound = ({ violation }: JobsRunResult): boolean => violation !== null;
    const results = await run(numbers(MUTANT_SEEDS), { mutant, until: isFound, threads: 1 });
    expect(results.some(isFound)).toBe(true);
  });

  it.each([
    [["--jobs", "--elector"], /--jobs/],
    [["--jobs", "--nodes", "5"], /--jobs runs three servers/],
    [["--jobs", "2"], /2 belongs to no flag/],
    [["--race"], /--race goes only with --jobs/],
  ] as const)("refuses %j", (args, message) => {
    const read = (): unknown => readFlags(args, { membersMax: 9, mutants: [] });
    expect(read).toThrow(UsageError);
    expect(read).toThrow(message);
  });
});
