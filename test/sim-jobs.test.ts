// Jobs on simulated servers as a command: fixed seeds, the same trace twice and in whatever order nodes are listed, and
// planted mistakes that are found.

import { describe, expect, it } from "vitest";
import { readFlags, UsageError } from "../src/cli/sim/flags.ts";
import type { JobsRunResult } from "../src/sim/jobs/index.ts";
import { isFound, numbers, runJobs } from "./test-sim-jobs.ts";

/** test/sim-long.test.ts runs more of them, and looks for what takes longer to find. */
const SEEDS = 4;
const MUTANT_SEEDS = 30;
const FEW = [1, 2];
/** One agent of capacity 1, and an outage of 581 days: the jobs that schedules owe then take longer than 480 s. */
const LONG_OUTAGE_SEED = 605_489_659;
const MINUTES = 60_000;

describe("npm run sim -- --jobs", () => {
  it("runs a few fixed seeds under all faults without a violation", { timeout: 2 * MINUTES }, async () => {
    const results = await runJobs(numbers(SEEDS));
    expect(results.filter(({ violation }) => violation !== null)).toEqual([]);
    expect(results.every(({ jobs, events }) => jobs > 0 && events > 2 * jobs)).toBe(true);
  });

  it("waits for as long as the work takes that schedules owe after 581 days", { timeout: MINUTES }, async () => {
    const [result] = await runJobs([LONG_OUTAGE_SEED], { threads: 1 });
    expect(result?.violation).toBeNull();
  });

  it("20 agents and 10 jobs: a race with failovers, without a violation", { timeout: 2 * MINUTES }, async () => {
    const [result] = await runJobs([1], { race: true });
    expect(result?.violation).toBeNull();
    expect(result?.race).toMatchObject({ completed: 10 });
  });

  it(
    "trap 32: gives the same trace for the same seed, in whichever order its machines are listed",
    { timeout: MINUTES },
    async () => {
      const hashes = (results: readonly JobsRunResult[]): string[] =>
        results.map(({ seed, hash }) => `${seed} ${hash}`);
      const first = hashes(await runJobs(FEW, { threads: 1 }));
      expect(hashes(await runJobs(FEW, { reversed: true, threads: 1 }))).toEqual(first);
      expect(new Set(first.map((one) => one.split(" ")[1])).size).toBe(FEW.length);
    },
  );

  it.each([
    "answer-before-commit",
    "read-from-head",
    "export-before-commit",
    "catch-up-without-a-slice",
    "any-row-counts",
    "list-states-the-position-of-the-log",
    "stream-skips-the-event-it-resumes-at",
    "revoked-key-found-by-its-hash",
    "known-events-of-a-page-counted-again",
    "fence-of-what-is-applied",
    "refused-by-what-was-given-up",
  ])("finds %s", { timeout: MINUTES }, async (name) => {
    expect(await isFound(name, MUTANT_SEEDS)).toBe(true);
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
