// The simulation of sites that spread their lines, as a command: fixed seeds, the same trace twice, and planted mistakes that it notices.

import { expect, it } from "vitest";
import { readFlags, UsageError } from "../src/cli/sim/flags.ts";
import { runPool } from "../src/cli/sim/pool.ts";
import type { SeedJob } from "../src/cli/sim/simulators.ts";
import { SPREAD_MUTANTS } from "../src/sim/mutants/spread-list.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";
import type { SpreadRunResult } from "../src/sim/spread/index.ts";

const SEEDS = Array.from({ length: 60 }, (_, at) => at + 1);

async function resultsOf(
  seeds: readonly number[],
  mutant: Mutant | null,
  reversed = false,
): Promise<SpreadRunResult[]> {
  const results: SpreadRunResult[] = [];
  const jobs: SeedJob[] = seeds.map((seed) => ({ seed, limits: {}, reversed }));
  await runPool(
    1,
    mutant,
    () => jobs.shift(),
    (result) => results.push(result) > 0,
    "spread",
  );
  return results;
}

it(`runs ${SEEDS.length} fixed seeds under all faults without a violation`, async () => {
  const results = await resultsOf(SEEDS, null);
  expect(results.filter(({ violation }) => violation !== null)).toEqual([]);
});

it("gives the same trace for the same seed, also with its links in another order", async () => {
  const seeds = SEEDS.slice(0, 6);
  const hashes = (await resultsOf(seeds, null)).map(({ hash }) => hash);
  expect(new Set(hashes).size).toBe(seeds.length);
  expect((await resultsOf(seeds, null, true)).map(({ hash }) => hash)).toEqual(hashes);
});

it.each(["two-way-prune", "links-born-eager", "graft-never-repeated"])("finds a planted mistake: %s", async (name) => {
  const mutant = SPREAD_MUTANTS.find((one) => one.name === name)!;
  const violations = (await resultsOf(SEEDS, mutant)).map(({ violation }) => violation);
  expect(violations.some((violation) => violation !== null)).toBe(true);
});

it("refuses what its sites do not have", () => {
  const known = { membersMax: 32, mutants: [] };
  for (const flags of [["--nodes", "4"], ["--plain"], ["--jobs"]]) {
    expect(() => readFlags(["--spread", ...flags], known)).toThrow(UsageError);
  }
  expect(() => readFlags(["--crowd"], known)).toThrow(UsageError);
  expect(readFlags(["--spread", "--crowd"], known).limits).toEqual({ crowd: true });
});
