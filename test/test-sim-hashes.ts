// Trace hashes of simulated runs, to compare.

import { runPool } from "../src/cli/sim/pool.ts";
import type { SeedJob } from "../src/cli/sim/simulators.ts";

/** Of the first seeds, whatever they draw, by seed. */
export async function hashesOf(seeds: number, reversed: boolean): Promise<Map<number, string>> {
  const hashes = new Map<number, string>();
  let seed = 0;
  const next = (): SeedJob | undefined => (seed < seeds ? { seed: ++seed, limits: {}, reversed } : undefined);
  await runPool(2, null, next, (result) => hashes.set(result.seed, result.hash).size > 0);
  return new Map([...hashes].toSorted(([a], [b]) => a - b));
}
