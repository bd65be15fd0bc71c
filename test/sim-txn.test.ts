// The simulation of transactions over islands, as a command: fixed seeds, the same trace twice, and planted mistakes that it notices.

import { expect, it } from "vitest";
import { readFlags, UsageError } from "../src/cli/sim/flags.ts";
import { runPool } from "../src/cli/sim/pool.ts";
import type { SeedJob } from "../src/cli/sim/simulators.ts";
import type { Mutant } from "../src/sim/mutants/patch.ts";
import { TXN_MUTANTS } from "../src/sim/mutants/txn-list.ts";
import type { TxnRunResult } from "../src/sim/txn/index.ts";

const SEEDS = Array.from({ length: 12 }, (_, at) => at + 1);
/** An island so far away that what one transaction had locked was in the way of the next one, again and again. */
const FAR_SEED = 512_743_927;

async function resultsOf(seeds: readonly number[], mutant: Mutant | null, reversed = false): Promise<TxnRunResult[]> {
  const results: TxnRunResult[] = [];
  const jobs: SeedJob[] = seeds.map((seed) => ({ seed, limits: mutant?.limits ?? {}, reversed }));
  await runPool(
    1,
    mutant,
    () => jobs.shift(),
    // One that finds the mistake is enough.
    (result) => results.push(result) > 0 && (mutant === null || result.violation === null),
    "txn",
  );
  return results;
}

it(`runs ${SEEDS.length + 1} fixed seeds under all faults without a violation`, async () => {
  const results = await resultsOf([...SEEDS, FAR_SEED], null);
  expect(results.filter(({ violation }) => violation !== null)).toEqual([]);
  expect(results.reduce((sum, { committed }) => sum + committed, 0)).toBeGreaterThan(10 * SEEDS.length);
});

it("gives the same trace for the same seed, also with its nodes in another order", async () => {
  const seeds = SEEDS.slice(0, 3);
  const hashes = (await resultsOf(seeds, null)).map(({ hash }) => hash);
  expect(new Set(hashes).size).toBe(seeds.length);
  expect((await resultsOf(seeds, null, true)).map(({ hash }) => hash)).toEqual(hashes);
});

it.each(["commit-without-all-prepared", "lock-not-taken", "outbox-forgotten", "inquire-without-tombstone"])(
  "finds a planted mistake: %s",
  async (name) => {
    const mutant = TXN_MUTANTS.find((one) => one.name === name)!;
    const violations = (await resultsOf(SEEDS, mutant)).map(({ violation }) => violation);
    expect(violations.some((violation) => violation !== null)).toBe(true);
  },
);

it("refuses what its islands do not have", () => {
  const known = { membersMax: 32, mutants: [] };
  for (const flags of [["--learners", "1"], ["--plain"], ["--nodes", "5"]]) {
    expect(() => readFlags(["--txn", ...flags], known)).toThrow(UsageError);
  }
  expect(readFlags(["--txn"], known).limits).toEqual({});
});
