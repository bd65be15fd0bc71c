// `npm run chaos -- cluster` is in cluster-command.ts, `-- jobs` in jobs-command.ts, `-- node` in node-command.ts, `-- mesh` in mesh-command.ts, `-- tc` in tc-command.ts, `-- txn` in txn-command.ts. `npm run chaos -- gate`: leadership, gate and fence under real faults, next to controls that have no fence. Progress goes
// to standard error; the result, as text or with --json as one object in the last line, to standard output.

import { seededRandom } from "../../src/core/kit/random.ts";
import { etcdPath } from "../servers/index.ts";
import { freshSeed, interruptible, log } from "./command.ts";
import { clusterCommand } from "./cluster-command.ts";
import { bareLockControl, type ControlOptions, type ControlResult, etcdctlControl } from "./control.ts";
import { etcdStage } from "./etcd-stage.ts";
import { deckOf, WEIGHTS } from "./faults.ts";
import { figuresOf } from "./figures.ts";
import { type Flags, HELP, readFlags, UsageError } from "./flags.ts";
import { runGate, type RunResult } from "./gate-run.ts";
import { jobsCommand } from "./jobs-command.ts";
import { meshCommand } from "./mesh-command.ts";
import type { Timing } from "./messages.ts";
import { nodeCommand } from "./node-command.ts";
import { postgresStage } from "./postgres-stage.ts";
import { serversStage } from "./servers-stage.ts";
import type { Stage } from "./stage.ts";
import { tcCommand } from "./tc-command.ts";
import { txnCommand } from "./txn-command.ts";

/** Shorter than the library's own, so that a stop costs 2 s and not 6 s. */
const TIMING: Timing = { serverTimeoutMs: 2_000, heartbeatMs: 300, marginMs: 500 };
/** As many transactions are open at once. */
const LANES = 8;
const THINK_MS_MAX = 12;
const EXIT_USAGE = 64;

const STAGES = { postgres: postgresStage, etcd: etcdStage, servers: serversStage } as const;

// Not by letting the loop run dry: after runs with half-open sockets Node 26.10 was seen to spin for ever in its own cleanup
// (uv_run under FreeEnvironment). Hooks on the exit end servers and workers that are left.
process.exit(await main(process.argv.slice(2)));

async function main(args: readonly string[]): Promise<number> {
  try {
    if (args[0] === "cluster") return await clusterCommand(args.slice(1));
    if (args[0] === "jobs") return await jobsCommand(args.slice(1));
    if (args[0] === "node") return await nodeCommand(args.slice(1));
    if (args[0] === "mesh") return await meshCommand(args.slice(1));
    if (args[0] === "tc") return await tcCommand(args.slice(1));
    if (args[0] === "txn") return await txnCommand(args.slice(1));
    const flags = readFlags(args, freshSeed);
    if (flags === undefined) {
      process.stdout.write(HELP);
      return 0;
    }
    if (flags.backend === "etcd" && etcdPath() === undefined)
      throw new UsageError("etcd is not on PATH; install it first");
    return await play(flags);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`chaos: ${error.message}\nnpm run chaos -- --help lists what there is`);
    return EXIT_USAGE;
  }
}

async function play(flags: Flags): Promise<number> {
  const stop = interruptible();
  const startedMs = performance.now();
  const stage = { lanes: LANES, thinkMsMax: THINK_MS_MAX, timing: TIMING };
  log(
    `chaos gate on ${flags.backend}: ${flags.iterations} iterations, seed ${flags.seed}, ${LANES} transactions at once, timing ${JSON.stringify(TIMING)}`,
  );
  const [run, server] = await runOn(flags, stop.signal);
  const control = await controls({ stage, signal: stop.signal, log });
  const result = summary(flags, run, control, server, (performance.now() - startedMs) / 1_000);
  if (stop.exitCode() !== undefined) result.failed.push("interrupted");
  console.log(people(result));
  if (flags.json) console.log(JSON.stringify(result));
  return stop.exitCode() ?? (result.failed.length === 0 ? 0 : 1);
}

async function runOn(flags: Flags, signal: AbortSignal): Promise<[RunResult, string]> {
  const options = { lanes: LANES, thinkMsMax: THINK_MS_MAX, timing: TIMING };
  const stage: Stage = await STAGES[flags.backend](options);
  try {
    const deck = deckOf(WEIGHTS[flags.backend], flags.iterations, seededRandom(flags.seed).fork("deck"), flags.faults);
    return [await runGate(stage, { ...flags, deck, signal, log }), stage.server];
  } finally {
    await stage.end();
  }
}

interface Controls {
  readonly bare_lock: ControlResult | null;
  readonly etcdctl_lock: ControlResult | null;
  readonly failed: readonly string[];
}

async function controls(options: ControlOptions): Promise<Controls> {
  const failed: string[] = [];
  const tried = async (name: string, work: () => Promise<ControlResult | null>): Promise<ControlResult | null> => {
    if (options.signal.aborted) return null;
    try {
      const result = await work();
      if (result?.lost_updates === 0) failed.push(`the control ${name} lost no update: the harness is too weak`);
      return result;
    } catch (error) {
      failed.push(`the control ${name} did not run: ${(error as Error).message}`);
      return null;
    }
  };
  const [bare_lock, etcdctl_lock] = await Promise.all([
    tried("bare_lock", () => bareLockControl(options)),
    tried("etcdctl_lock", () => etcdctlControl(options)),
  ]);
  return { bare_lock, etcdctl_lock, failed };
}

function summary(flags: Flags, run: RunResult, control: Controls, server: string, seconds: number) {
  return {
    chaos: "gate",
    backend: flags.backend,
    server,
    node: process.version,
    timing: TIMING,
    concurrent_transactions: run.concurrentTransactions,
    iterations: run.iterations,
    increments: run.increments,
    lost_updates: run.lostUpdates,
    overlapping_terms: run.overlappingTerms,
    stale_attempts: run.staleAttempts,
    stale_rejected: run.staleRejected,
    stale_early: run.staleEarly,
    unknown: run.unknown,
    failover: Object.fromEntries(
      [...run.failoverMs]
        .toSorted(([a], [b]) => a.localeCompare(b))
        .map(([family, times]) => [family, figuresOf(times)] as const),
    ),
    control: { bare_lock: control.bare_lock, etcdctl_lock: control.etcdctl_lock },
    faults: run.fired,
    seed: flags.seed,
    seconds: Math.round(seconds),
    failed: [...run.failed, ...control.failed],
  };
}

function people(result: ReturnType<typeof summary>): string {
  const { control } = result;
  const lines = [
    `${result.server}, ${result.iterations} iterations, seed ${result.seed}, ${result.seconds} s`,
    `increments ${result.increments}, unknown ${result.unknown}, lost ${result.lost_updates}, overlapping terms ${result.overlapping_terms}`,
    `stale writes refused ${result.stale_rejected} of ${result.stale_attempts}`,
    `without a fence: bare lock lost ${control.bare_lock?.lost_updates ?? "(not run)"}, etcdctl lock lost ${control.etcdctl_lock?.lost_updates ?? "(not run)"}`,
    "failover          count   p50 ms   p99 ms   max ms",
    ...Object.entries(result.failover).map(([family, { count, p50_ms, p99_ms, max_ms }]) =>
      [
        family.padEnd(16),
        String(count).padStart(6),
        ...[p50_ms, p99_ms, max_ms].map((ms) => ms.toFixed(1).padStart(8)),
      ].join(" "),
    ),
    ...result.failed.map((reason) => `FAILED: ${reason}`),
  ];
  return lines.join("\n");
}
