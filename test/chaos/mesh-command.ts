// `npm run chaos -- mesh`: reads the command line, runs, and reports as text and as one JSON object.

import { freshSeed, interruptible, log } from "./command.ts";
import { UsageError } from "./flags.ts";
import { MESH_HELP, type MeshFlags, readMeshFlags } from "./mesh-flags.ts";
import { MESH_PLANTS } from "./mesh-plants.ts";
import { type MeshRunResult, runMesh } from "./mesh-run.ts";

export async function meshCommand(args: readonly string[]): Promise<number> {
  const flags = readMeshFlags(args, freshSeed);
  if (flags === undefined) {
    process.stdout.write(MESH_HELP);
    return 0;
  }
  const stop = interruptible();
  const hasFailed = await play(flags, stop.signal);
  return stop.exitCode() ?? (hasFailed ? 1 : 0);
}

async function play(flags: MeshFlags, signal: AbortSignal): Promise<boolean> {
  const { minutes, forks, seed, plant, json } = flags;
  if (plant !== undefined && !Object.hasOwn(MESH_PLANTS, plant))
    throw new UsageError(`--plant: there is no ${plant}, only ${Object.keys(MESH_PLANTS).join(", ")}`);
  log(`chaos mesh: five sites, ${minutes} minutes, ${forks} forks, seed ${seed}`);
  const startedMs = performance.now();
  const edits = plant === undefined ? [] : MESH_PLANTS[plant];
  const run = await runMesh({ minutes, forks, seed, edits, signal, log });
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  console.log(people(run, seconds));
  if (json) {
    const told = { chaos: "mesh", node: process.version, sites: 5, ...run, planted: plant ?? null, seed, seconds };
    console.log(JSON.stringify(told));
  }
  return run.failed.length > 0;
}

function people(run: MeshRunResult, seconds: number): string {
  const { bad_pages: bad, forks } = run;
  return [
    `five sites, ${seconds} s: ${run.acked} jobs acknowledged, ${run.completed} completed, ${run.events} events`,
    `lost ${run.lost}, diverged ${run.diverged}; all agreed ${run.heal_ms ?? "never, not"} ms after the last fault`,
    `bad pages refused ${bad.refused} of ${bad.sent}; forks found ${forks.found} of ${forks.planted}, false ${forks.false}`,
    `faults: ${Object.entries(run.faults)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(", ")}`,
    ...run.failed.map((reason) => `FAILED: ${reason}`),
  ].join("\n");
}
