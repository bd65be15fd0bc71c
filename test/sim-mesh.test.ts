// Sites of a mesh on one simulated world, as a command: fixed seeds, the same trace twice and in whatever order nodes are listed, and
// planted mistakes that are found. `npm run sim -- --mesh --mutants` looks for all of them.

import { describe, expect, it } from "vitest";
import { readFlags, UsageError } from "../src/cli/sim/flags.ts";
import { runPool } from "../src/cli/sim/pool.ts";
import type { SeedJob } from "../src/cli/sim/simulators.ts";
import { MeshCampaign, type MeshRunResult } from "../src/sim/mesh/index.ts";
import { MESH_MUTANTS } from "../src/sim/mutants/mesh-list.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";

const SEEDS = [1, 2, 3, 4, 5, 8];
const FEW = [1, 2];
const MUTANT_SEEDS = [1, 2, 3, 4, 5, 6];
const MINUTES = 60_000;

/** In the order of the seeds; with a mistake, until it is found. */
async function runs(
  seeds: readonly number[],
  mutant: Mutant | null = null,
  reversed = false,
): Promise<MeshRunResult[]> {
  const jobs: SeedJob[] = seeds.map((seed) => ({ seed, limits: mutant?.limits ?? {}, reversed }));
  const results: MeshRunResult[] = [];
  const next = (): SeedJob | undefined => jobs.shift();
  const onResult = (result: MeshRunResult): boolean =>
    results.push(result) > 0 && (mutant === null || result.violation === null);
  await runPool(1, mutant, next, onResult, "mesh");
  return results;
}

describe("npm run sim -- --mesh", () => {
  it("runs a few fixed seeds under all faults without a violation", { timeout: 3 * MINUTES }, async () => {
    const total = new MeshCampaign(() => performance.now());
    const results = await runs(SEEDS);
    for (const result of results) total.add(result);
    expect(results.filter(({ violation }) => violation !== null)).toEqual([]);
    const summary = total.summary();
    expect(summary).toMatchObject({ seeds: SEEDS.length, sites: 5, violations: 0, forks: { false: 0 } });
    expect(summary.events).toBeGreaterThan(100 * SEEDS.length);
    expect(summary.partitions).toBeGreaterThan(0);
    expect(summary.convergence_ms.p99).toBeGreaterThanOrEqual(summary.convergence_ms.p50);
  });

  it(
    "trap 32: gives the same trace for the same seed, in whichever order its nodes are listed",
    { timeout: 2 * MINUTES },
    async () => {
      const hashes = (await runs(FEW)).map(({ hash }) => hash);
      expect((await runs(FEW, null, true)).map(({ hash }) => hash)).toEqual(hashes);
      expect(new Set(hashes).size).toBe(FEW.length);
    },
  );

  it.each([
    "mesh-any-key-signs",
    "mesh-keys-leave-the-site",
    "mesh-fork-keeps-one-branch",
    "mesh-arrival-without-own-events",
    "mesh-nobody-vouches",
    "mesh-one-row-for-all-lines",
  ])("finds %s", { timeout: 2 * MINUTES }, async (name) => {
    const mutant = MESH_MUTANTS.find((one) => one.name === name)!;
    expect((await runs(MUTANT_SEEDS, mutant)).some(({ violation }) => violation !== null)).toBe(true);
  });

  it.each([
    [["--mesh", "--jobs"], /--jobs runs three servers/],
    [["--mesh", "--spread"], /--mesh runs five sites/],
    [["--mesh", "--nodes", "5"], /--mesh runs five sites/],
  ] as const)("refuses %j", (args, message) => {
    const read = (): unknown => readFlags(args, { membersMax: 9, mutants: [] });
    expect(read).toThrow(UsageError);
    expect(read).toThrow(message);
  });
});
