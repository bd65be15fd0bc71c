// `npm run chaos -- cluster`: reads the command line, runs, and reports as text and as one JSON object.

import { seededRandom } from "../../src/core/kit/random.ts";
import { freshSeed, interruptible, log } from "./command.ts";
import { CLUSTER_WEIGHTS, victimOf } from "./cluster-faults.ts";
import { CLUSTER_HELP, type ClusterFlags, readClusterFlags } from "./cluster-flags.ts";
import { PLANTS } from "./cluster-plants.ts";
import { type ClusterRunResult, runCluster } from "./cluster-run.ts";
import { deckOf } from "./faults.ts";
import { figuresOf } from "./figures.ts";

export async function clusterCommand(args: readonly string[]): Promise<number> {
  const flags = readClusterFlags(args, freshSeed);
  if (flags === undefined) {
    process.stdout.write(CLUSTER_HELP);
    return 0;
  }
  const stop = interruptible();
  const startedMs = performance.now();
  log(`chaos cluster: ${flags.iterations} iterations, seed ${flags.seed}`);
  const run = await runCluster({ ...flags, ...plantedOf(flags), signal: stop.signal, log });
  const result = summary(flags, run, (performance.now() - startedMs) / 1_000);
  console.log(people(result));
  if (flags.json) console.log(JSON.stringify(result));
  return stop.exitCode() ?? (result.failed.length === 0 ? 0 : 1);
}

function plantedOf({ plant, faults, iterations, seed }: ClusterFlags) {
  const planted = plant === undefined ? undefined : PLANTS[plant];
  const kinds = faults ?? planted?.faults;
  return {
    node: planted?.node,
    linkDelayMs: planted?.linkDelayMs,
    deck: deckOf(CLUSTER_WEIGHTS, iterations, seededRandom(seed).fork("deck"), kinds),
  };
}

function summary(flags: ClusterFlags, run: ClusterRunResult, seconds: number) {
  const byFault = [...run.recoveryMs].toSorted(([a], [b]) => a.localeCompare(b));
  // Where there was no majority until the harness gave it back, or the leader was not hurt, nothing was failed over.
  const ofLeader = byFault.filter(([kind]) => victimOf(kind) === "leader").flatMap(([, times]) => times);
  const { p50_ms, p99_ms, max_ms } = figuresOf(ofLeader);
  return {
    chaos: "cluster",
    node: process.version,
    iterations: run.iterations,
    failovers: run.failovers,
    faults: run.faults,
    acked: run.acked,
    reads: run.reads,
    lost: run.lost,
    unknown: run.unknown,
    refused: run.refused,
    dual_leader: run.dualLeader,
    linearizable: run.linearizable,
    checked_operations: run.checkedOperations,
    keys: run.keys,
    key_calls: run.keyCalls,
    keys_unsure: run.keysUnsure,
    keys_refused: run.keysRefused,
    p50_ms,
    p99_ms,
    max_ms,
    by_fault: Object.fromEntries(byFault.map(([kind, times]) => [kind, figuresOf(times)] as const)),
    planted: flags.plant ?? null,
    seed: flags.seed,
    seconds: Math.round(seconds),
    failed: run.failed,
  };
}

function people(result: ReturnType<typeof summary>): string {
  return [
    `${result.iterations} iterations, ${result.failovers} failovers, seed ${result.seed}, ${result.seconds} s`,
    `acknowledged ${result.acked}, unknown ${result.unknown}, lost ${result.lost}, terms with two leaders ${result.dual_leader}`,
    `linearizable: ${result.linearizable ?? "undecided"} (${result.checked_operations} operations)`,
    `replicated keys ${result.keys}, calls with them ${result.key_calls}, nodes that could not say ${result.keys_unsure}, refused ${result.keys_refused}`,
    `a fault on the leader until the next acknowledged write: p50 ${result.p50_ms} ms, p99 ${result.p99_ms} ms, max ${result.max_ms} ms`,
    "fault                 count   p50 ms   p99 ms   max ms",
    ...Object.entries(result.by_fault).map(([kind, figures]) => row(kind, figures)),
    ...result.failed.map((reason) => `FAILED: ${reason}`),
  ].join("\n");
}

function row(name: string, { count, p50_ms, p99_ms, max_ms }: ReturnType<typeof figuresOf>): string {
  const times = [p50_ms, p99_ms, max_ms].map((ms) => ms.toFixed(1).padStart(8));
  return [name.padEnd(20), String(count).padStart(6), ...times].join(" ");
}
