// The simulation of transaction coordinators, as a command: fixed seeds, the same trace twice, and planted mistakes that it notices.

import { expect, it } from "vitest";
import { readFlags, UsageError } from "../src/cli/sim/flags.ts";
import { runPool } from "../src/cli/sim/pool.ts";
import type { SeedJob } from "../src/cli/sim/simulators.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";
import { TC_MUTANTS } from "../src/sim/mutants/tc-list.ts";
import type { TcRunResult } from "../src/sim/tc/index.ts";

const SEEDS = Array.from({ length: 40 }, (_, at) => at + 1);

async function resultsOf(seeds: readonly number[], mutant: Mutant | null, reversed = false): Promise<TcRunResult[]> {
  const results: TcRunResult[] = [];
  const jobs: SeedJob[] = seeds.map((seed) => ({ seed, limits: mutant?.limits ?? {}, reversed }));
  await runPool(
    1,
    mutant,
    () => jobs.shift(),
    (result) => results.push(result) > 0,
    "tc",
  );
  return results;
}

it(`runs ${SEEDS.length} fixed seeds under all faults without a violation`, async () => {
  const results = await resultsOf(SEEDS, null);
  expect(results.filter(({ violation }) => violation !== null)).toEqual([]);
  expect(results.reduce((sum, { elections }) => sum + elections, 0)).toBeGreaterThan(SEEDS.length);
});

it("gives the same trace for the same seed, also with its nodes in another order", async () => {
  const seeds = SEEDS.slice(0, 6);
  const hashes = (await resultsOf(seeds, null)).map(({ hash }) => hash);
  expect(new Set(hashes).size).toBe(seeds.length);
  expect((await resultsOf(seeds, null, true)).map(({ hash }) => hash)).toEqual(hashes);
});

it.each(["grant-before-durable", "roster-order-ignored", "release-with-open-gate", "registry-shown-early"])(
  "finds a planted mistake: %s",
  async (name) => {
    const mutant = TC_MUTANTS.find((one) => one.name === name)!;
    const violations = (await resultsOf(SEEDS, mutant)).map(({ violation }) => violation);
    expect(violations.some((violation) => violation !== null)).toBe(true);
  },
);

it("refuses what its nodes do not have", () => {
  const known = { membersMax: 32, mutants: [] };
  for (const flags of [["--learners", "1"], ["--plain"], ["--spread"]]) {
    expect(() => readFlags(["--tc", ...flags], known)).toThrow(UsageError);
  }
  expect(readFlags(["--tc", "--nodes", "5"], known).limits).toEqual({ nodes: 5 });
});
