// `npm run chaos -- tc`: reads the command line, runs, and reports as text and as one JSON object.

import { freshSeed, interruptible, log } from "./command.ts";
import { UsageError } from "./flags.ts";
import { readTcFlags, TC_HELP } from "./tc-flags.ts";
import { TC_PLANTS } from "./tc-plants.ts";
import { runTc, type TcRunResult } from "./tc-run.ts";

export async function tcCommand(args: readonly string[]): Promise<number> {
  const flags = readTcFlags(args, freshSeed);
  if (flags === undefined) {
    process.stdout.write(TC_HELP);
    return 0;
  }
  const { minutes, seed, plant, json } = flags;
  if (plant !== undefined && !Object.hasOwn(TC_PLANTS, plant))
    throw new UsageError(`--plant: there is no ${plant}, only ${Object.keys(TC_PLANTS).join(", ")}`);
  const stop = interruptible();
  log(`chaos tc: three islands, ${minutes} minutes, seed ${seed}`);
  const startedMs = performance.now();
  const edits = plant === undefined ? [] : TC_PLANTS[plant];
  const run = await runTc({ minutes, seed, edits, signal: stop.signal, log });
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  console.log(people(run, seconds));
  if (json) {
    const result = { chaos: "tc", node: process.version, islands: 3, ...run, planted: plant ?? null, seed, seconds };
    console.log(JSON.stringify(result));
  }
  return stop.exitCode() ?? (run.failed.length > 0 ? 1 : 0);
}

function people(run: TcRunResult, seconds: number): string {
  const { registry_changes: changes } = run;
  const times = (["leave", "kill", "stop"] as const).map((kind) => {
    const { count, p50_ms, p99_ms, max_ms } = run[kind];
    return `${kind} ${count} × p50 ${p50_ms} ms, p99 ${p99_ms} ms, max ${max_ms} ms`;
  });
  return [
    `three islands, ${seconds} s: ${run.elections} elections, ${run.samples} answers, ${changes.made} changes of the registry`,
    `terms with two leaders ${run.terms_with_two_leaders}, overlapping leases ${run.overlapping_leases}, terms that fell ${run.terms_fell}, registry split ${run.registry_split}`,
    `next leader: ${times.join("; ")}`,
    `faults: ${Object.entries(run.faults)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(", ")}`,
    ...run.failed.map((reason) => `FAILED: ${reason}`),
  ].join("\n");
}
