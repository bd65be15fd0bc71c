// `npm run chaos -- jobs`: reads the command line, runs on each backend, and reports as text and as one JSON object.

import { freshSeed, interruptible, log } from "./command.ts";
import { type JobsFlags, JOBS_HELP, readJobsFlags } from "./jobs-flags.ts";
import { JOBS_PLANTS } from "./jobs-plants.ts";
import { runRace } from "./jobs-race.ts";
import { type JobsRunResult, runJobs } from "./jobs-run.ts";
import { runStops } from "./jobs-stops.ts";
import type { JobsBackend } from "./jobs-stage.ts";
import { sumOf } from "./jobs-submitters.ts";

export async function jobsCommand(args: readonly string[]): Promise<number> {
  const flags = readJobsFlags(args, freshSeed);
  if (flags === undefined) {
    process.stdout.write(JOBS_HELP);
    return 0;
  }
  const stop = interruptible();
  const failed = await played(flags, stop.signal);
  return stop.exitCode() ?? (failed ? 1 : 0);
}

function played(flags: JobsFlags, signal: AbortSignal): Promise<boolean> {
  if (flags.stops !== undefined) return stops(flags, flags.stops, signal);
  return flags.race === undefined ? play(flags, signal) : race(flags, flags.race, signal);
}

async function play(flags: JobsFlags, signal: AbortSignal): Promise<boolean> {
  const rows: Row[] = [];
  for (const backend of flags.backends) {
    if (!signal.aborted) rows.push(await rowOf(flags, backend, signal));
  }
  const result = { chaos: "jobs", node: process.version, ...totalOf(rows), seed: flags.seed, runs: rows };
  console.log(people(rows));
  if (flags.json) console.log(JSON.stringify(result));
  return result.failed.length > 0;
}

async function race(flags: JobsFlags, rounds: number, signal: AbortSignal): Promise<boolean> {
  const { minutes, seed, json } = flags;
  const rows = [];
  for (const backend of flags.backends) {
    if (signal.aborted) break;
    log(`chaos jobs on ${backend}: ${rounds} rounds of 10 jobs for 20 agents, seed ${seed}`);
    const row = await runRace({ backend, rounds, minutes, seed, signal, log });
    rows.push({ backend, ...row });
    console.log(
      `${backend}: ${row.exact} of ${rounds} rounds had exactly 10 assignments; ${row.kills} leaders killed, ${row.failovers} failovers, ${row.undelivered} leases that died with their leader`,
    );
    for (const reason of row.failed) console.log(`FAILED: ${reason}`);
  }
  if (json) console.log(JSON.stringify({ chaos: "jobs", mode: "race", node: process.version, seed, runs: rows }));
  return rows.some(({ failed }) => failed.length > 0);
}

async function stops(flags: JobsFlags, count: number, signal: AbortSignal): Promise<boolean> {
  const { minutes, seed, json } = flags;
  const rows = [];
  for (const backend of flags.backends) {
    if (signal.aborted) break;
    log(`chaos jobs on ${backend}: ${count} stops in order over links of 400 ms, seed ${seed}`);
    const row = await runStops({ backend, stops: count, minutes, seed, signal, log });
    rows.push({ backend, ...row });
    console.log(
      `${backend}: ${row.agentStops} agents and ${row.nodeStops} servers stopped, ${row.completed} of ${row.jobs} jobs completed; ${row.losses} attempts lost, ${row.undelivered} taken back in flight, ${row.handedBack} handed back`,
    );
    for (const reason of row.failed) console.log(`FAILED: ${reason}`);
  }
  if (json) console.log(JSON.stringify({ chaos: "jobs", mode: "stops", node: process.version, seed, runs: rows }));
  return rows.some(({ failed }) => failed.length > 0);
}

type Row = ReturnType<typeof summary>;

async function rowOf(flags: JobsFlags, backend: JobsBackend, signal: AbortSignal): Promise<Row> {
  const { jobs, perSecond, minutes, seed, plant } = flags;
  const startedMs = performance.now();
  log(`chaos jobs on ${backend}: ${jobs} jobs, at most ${perSecond} a second, seed ${seed}`);
  const planted = plant === undefined ? undefined : JOBS_PLANTS[plant];
  const run = await runJobs({ backend, jobs, perSecond, minutes, seed, plant: planted, signal, log });
  return summary(flags, backend, run, (performance.now() - startedMs) / 1_000);
}

function summary({ plant }: JobsFlags, backend: JobsBackend, run: JobsRunResult, seconds: number) {
  return {
    backend,
    jobs: run.jobs,
    completed: run.completed,
    lost: run.lost,
    double_committed: run.doubleCommitted,
    double_submitted: run.doubleSubmitted,
    executed_more_than_once: run.executedMoreThanOnce,
    stale_attempts: run.staleAttempts,
    stale_rejected: run.staleRejected,
    unknown: run.unknown,
    unresolved: run.unresolved,
    refused: run.refused,
    failovers: run.failovers,
    assignments: run.assignments,
    undelivered: run.undelivered,
    inside_stopped_leaders: run.insideStopped,
    keys: run.keys.made,
    key_calls: run.keys.calls,
    keys_unsure: run.keys.unsure,
    keys_refused: run.keys.refused,
    events: run.events,
    readers: run.readers.readers,
    readers_told_of_a_rewritten_history: run.readers.rewritten,
    faults: run.faults,
    planted: plant ?? null,
    seconds: Math.round(seconds),
    failed: run.failed,
  };
}

function totalOf(rows: readonly Row[]) {
  const sum = (count: (row: Row) => number): number => sumOf(rows, count);
  return {
    jobs: sum((row) => row.jobs),
    completed: sum((row) => row.completed),
    lost: sum((row) => row.lost),
    double_committed: sum((row) => row.double_committed),
    executed_more_than_once: sum((row) => row.executed_more_than_once),
    stale_rejected: sum((row) => row.stale_rejected),
    unknown: sum((row) => row.unknown),
    failovers: sum((row) => row.failovers),
    seconds: sum((row) => row.seconds),
    failed: rows.flatMap(({ backend, failed }) => failed.map((why) => `${backend}: ${why}`)),
  };
}

function people(rows: readonly Row[]): string {
  return rows
    .flatMap((row) => [
      `${row.backend}: ${row.jobs} jobs, ${row.completed} completed, ${row.failovers} failovers, ${row.seconds} s`,
      `lost ${row.lost}, committed twice ${row.double_committed}, submitted twice ${row.double_submitted}`,
      `run more than once, after a lease was lost ${row.executed_more_than_once} (that may be: a result is taken once)`,
      `stale results refused ${row.stale_rejected} of ${row.stale_attempts}; submissions unknown ${row.unknown}, for good ${row.unresolved}`,
      `replicated keys ${row.keys}, calls with them ${row.key_calls}, nodes that could not say ${row.keys_unsure}, refused ${row.keys_refused}`,
      `readers of events ${row.readers}, told of a rewritten history ${row.readers_told_of_a_rewritten_history}`,
      `faults: ${Object.entries(row.faults)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(", ")}`,
      ...row.failed.map((reason) => `FAILED: ${reason}`),
    ])
    .join("\n");
}
