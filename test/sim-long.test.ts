// The simulator with many seeds, and the planted mistakes that take more than a few of them (npm run test:long). The short half is
// in test/sim.test.ts and test/sim-jobs.test.ts.

import { execFile } from "node:child_process";
import { describe, expect, it } from "vitest";
import { COMMON_JOBS_PROBES, JobsCampaign } from "../src/sim/jobs/index.ts";
import { hashesOf } from "./test-sim-hashes.ts";
import { isFound, numbers, runJobs } from "./test-sim-jobs.ts";

const SIM = new URL("../src/cli/sim/command.ts", import.meta.url).pathname;
const SEEDS = 10;
const RACES = 12;
/** Within so many each of those below is found. */
const MUTANT_SEEDS = 30;
const MINUTES = 60_000;

function sim(...args: string[]): Promise<{ readonly code: number; readonly stdout: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [SIM, ...args], { maxBuffer: 64 * 1024 * 1024 }, (error, stdout) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout });
    });
  });
}

function lastLine(text: string): Record<string, unknown> {
  return JSON.parse(text.trimEnd().split("\n").at(-1)!) as Record<string, unknown>;
}

describe("npm run sim", () => {
  it("runs 200 fixed seeds under all faults without a violation", { timeout: 4 * MINUTES }, async () => {
    const { code, stdout } = await sim("--seeds", "200", "--from", "1", "--json");
    const summary = lastLine(stdout);
    expect(summary, stdout.slice(-4_000)).toMatchObject({ seeds: 200, violations: 0 });
    expect(code).toBe(0);
    expect(Object.keys(summary)).toEqual(
      expect.arrayContaining(["simulated_hours", "steps", "elections", "faults", "probes", "wall_s", "speedup"]),
    );
    expect(summary["acknowledged"]).toBeGreaterThan(10_000);
    expect(
      Object.values(summary["faults"] as Record<string, number>).every((fired) => fired > 0),
      stdout,
    ).toBe(true);
  });

  it("runs seven nodes with two learners under all faults", { timeout: 4 * MINUTES }, async () => {
    const { code, stdout } = await sim("--seeds", "20", "--from", "1", "--nodes", "7", "--learners", "2", "--json");
    expect(lastLine(stdout), stdout.slice(-4_000)).toMatchObject({ seeds: 20, violations: 0 });
    expect(code).toBe(0);
  });
});

describe("a leak of determinism", () => {
  it(
    "is not there: neither a second run nor another order of nodes changes the hash",
    { timeout: 5 * MINUTES },
    async () => {
      const hashes = await hashesOf(24, false);
      expect(new Set(hashes.values()).size).toBe(24);
      expect(await hashesOf(24, false)).toEqual(hashes);
      expect(await hashesOf(24, true)).toEqual(hashes);
    },
  );
});

describe("npm run sim -- --jobs", () => {
  it(
    "runs fixed seeds under all faults without a violation, and every job comes to its end",
    { timeout: 2 * MINUTES },
    async () => {
      const total = new JobsCampaign(() => performance.now());
      const results = await runJobs(numbers(SEEDS));
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
        ...COMMON_JOBS_PROBES,
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
      for (const result of await runJobs(numbers(RACES), { race: true })) {
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

  it.each([
    "unknown-told-as-not-done",
    "lease-by-wall-clock",
    "what-is-due-stays-due",
    "takes-back-what-was-answered",
    "answered-without-taking-back",
    "catch-up-over-a-rollback",
    "walk-resumed-too-late",
    "firing-not-remembered",
    "views-have-a-position-before-their-rows",
    "feeder-believes-its-own-position",
    "wait-looks-once",
    "segment-installed-without-its-check",
    "torn-end-of-a-segment-kept",
    "snapshot-without-revoked-certificates",
    "refused-by-a-leader-that-was-deposed",
    "watcher-misses-what-a-snapshot-brought",
    "restarted-node-knows-all-changes",
    "values-written-though-a-member-can-not-read-them",
  ])("finds %s", { timeout: 2 * MINUTES }, async (name) => {
    expect(await isFound(name, MUTANT_SEEDS)).toBe(true);
  });
});
