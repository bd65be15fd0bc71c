// `npm run sim`: runs whole clusters under faults on virtual time, as many seeds as asked for, and reports what
// it met. `--seed S` replays one with a readable trace; `--mutants` plants known mistakes and must find each.

import { createWriteStream } from "node:fs";
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { systemDigest } from "../drivers/system/digest.ts";
import { etcdTracer } from "../sim/etcd-trace.ts";
import { shrink } from "../sim/kernel/index.ts";
import { MUTANTS } from "../sim/mutants/list.ts";
import { Campaign, runSeed, type KnobLimits, type RunResult } from "../sim/raft/index.ts";
import type { Mutant } from "../sim/mutants/patch.ts";
import { runPool } from "./sim-pool.ts";
import type { SeedJob } from "./sim-worker.ts";

const HELP = `npm run sim -- [options]

  --seeds N          how many seeds to run (default 1000)
  --from S           the first seed (default: a fresh one, printed)
  --hours H          stop after H simulated cluster-hours
  --minutes M        stop after M minutes of real time (default 60)
  --jobs N           threads (default 2)
  --nodes N          machines in the cluster, learners included (default: drawn by the seed)
  --learners N       how many of them are learners (default: drawn by the seed)
  --seed S           replay one seed with a readable trace
  --trace-etcd FILE  with --seed: etcd's state trace of the run, for its TLA+ specification
  --plain            with --seed: a run within what etcd's specification describes
  --mutants          plant known mistakes; each must be found
  --only NAME        with --mutants: this one
  --json             one JSON object as the last line
`;
const SHRINK_TRIES = 200;
const MUTANT_SEEDS_MAX = 600;

type Flags = ReturnType<typeof readFlags>;

function readFlags() {
  const { values } = parseArgs({
    strict: true,
    allowPositionals: false,
    options: {
      seeds: { type: "string", default: "1000" },
      from: { type: "string" },
      hours: { type: "string" },
      minutes: { type: "string", default: "60" },
      jobs: { type: "string", default: "2" },
      nodes: { type: "string" },
      learners: { type: "string" },
      seed: { type: "string" },
      "trace-etcd": { type: "string" },
      plain: { type: "boolean", default: false },
      mutants: { type: "boolean", default: false },
      only: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const learners = optional(values.learners, (text) => count("learners", text));
  const nodes = optional(values.nodes, (text) => count("nodes", text));
  const voters = nodes === undefined ? undefined : nodes - (learners ?? 0);
  if (voters !== undefined && voters < 1) throw new Error("--nodes must leave at least one voter beside --learners");
  const jobs = count("jobs", values.jobs);
  if (jobs < 1) throw new Error("--jobs takes at least 1");
  return {
    seeds: count("seeds", values.seeds),
    from: optional(values.from, (text) => count("from", text)),
    hours: optional(values.hours, (text) => amount("hours", text)) ?? Infinity,
    minutes: amount("minutes", values.minutes),
    jobs,
    seed: optional(values.seed, (text) => count("seed", text)),
    traceFile: values["trace-etcd"],
    mutants: values.mutants,
    only: values.only,
    json: values.json,
    help: values.help,
    /** What a replay must be given again to be the same run. */
    size: [
      ...(nodes === undefined ? [] : ["--nodes", nodes]),
      ...(learners === undefined ? [] : ["--learners", learners]),
      ...(values.plain ? ["--plain"] : []),
    ].join(" "),
    limits: { voters, learners, plain: values.plain } satisfies KnobLimits,
  };
}

function optional<T>(text: string | undefined, read: (text: string) => T): T | undefined {
  return text === undefined ? undefined : read(text);
}

function count(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`--${name} takes a whole number, not ${JSON.stringify(text)}`);
  return value;
}

function amount(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0)
    throw new Error(`--${name} takes a number above 0, not ${JSON.stringify(text)}`);
  return value;
}

async function replay(flags: Flags, seed: number): Promise<number> {
  const { traceFile } = flags;
  const out = traceFile === undefined ? null : createWriteStream(traceFile);
  const tracer = out === null ? null : etcdTracer((line) => out.write(`${line}\n`));
  const result = await runSeed({
    seed,
    limits: flags.limits,
    digest: systemDigest,
    narrate: flags.json
      ? undefined
      : (atMs, owner, text) => console.log(`${atMs.toFixed(2).padStart(10)}  ${owner.padEnd(10)} ${text}`),
    trace: tracer ?? undefined,
  });
  tracer?.finish();
  if (out !== null) await new Promise((done) => out.end(done));
  if (!flags.json) console.log(`\nknobs ${JSON.stringify(result.knobs)}`);
  const one = new Campaign(() => performance.now());
  one.add(result);
  if (result.violation !== null) await explain(result, flags);
  console.log(
    flags.json
      ? JSON.stringify({ ...one.summary(), seed, hash: result.hash })
      : `hash ${result.hash}, ${result.violation ?? "no violation"}`,
  );
  return result.violation === null ? 0 : 1;
}

async function campaign(flags: Flags): Promise<number> {
  const { seeds } = flags;
  const from = flags.from ?? randomInt(1_000_000_000);
  const untilMs = performance.now() + flags.minutes * 60_000;
  console.log(`seeds ${from} to ${from + seeds - 1} on ${flags.jobs} threads`);
  const total = new Campaign(() => performance.now());
  const failed: RunResult[] = [];
  let issued = 0;
  let reportAtMs = performance.now() + 5_000;
  await runPool(
    flags.jobs,
    null,
    () => {
      const more = issued < seeds && total.simulatedHours < flags.hours && performance.now() < untilMs;
      return more ? { seed: from + issued++, limits: flags.limits } : undefined;
    },
    (result) => {
      total.add(result);
      if (result.violation !== null) failed.push(result);
      if (performance.now() > reportAtMs) {
        reportAtMs += 5_000;
        console.log(total.progress());
      }
      return true;
    },
  );
  for (const result of failed.slice(0, 3)) await explain(result, flags);
  const complaints = total.complaints();
  for (const complaint of complaints) console.log(`FAILED: ${complaint}`);
  console.log(flags.json ? JSON.stringify(total.summary()) : total.progress());
  return failed.length + complaints.length > 0 ? 1 : 0;
}

/** What happened, with how few faults it still happens, and how to see it again. */
async function explain(result: RunResult, flags: Flags): Promise<void> {
  console.log(`\nseed ${result.seed}: ${result.violation}`);
  console.log(`replay: npm run sim -- --seed ${result.seed} ${flags.size}`);
  const stillFails = async (plan: RunResult["plan"]): Promise<boolean> =>
    (await runSeed({ seed: result.seed, limits: flags.limits, digest: systemDigest, plan })).violation !== null;
  const small = await shrink(result.plan, stillFails, SHRINK_TRIES);
  console.log(`${result.plan.length} faults, of which these are enough:`);
  for (const fault of small.plan) console.log(`  ${JSON.stringify(fault)}`);
}

async function mutants(flags: Flags): Promise<number> {
  const chosen = MUTANTS.filter((mutant) => flags.only === undefined || mutant.name === flags.only);
  if (chosen.length === 0) throw new Error(`there is no mutant ${JSON.stringify(flags.only)}`);
  const missed: string[] = [];
  const needed: number[] = [];
  for (const mutant of chosen) {
    const { seeds, found } = await hunt(mutant, flags.jobs);
    if (found === null) missed.push(mutant.name);
    else needed.push(found.seed);
    const why = found?.violation?.split("\n")[0]?.slice(0, 110);
    const verdict = found === null ? `MISSED in ${seeds} seeds` : `caught by seed ${found.seed}: ${why}`;
    console.log(`${mutant.name.padEnd(46)} ${mutant.breaks.padEnd(10)} ${verdict}`);
  }
  needed.sort((a, b) => a - b);
  const median_seeds = needed[Math.floor(needed.length / 2)] ?? null;
  const summary = { mutants: chosen.length, caught: needed.length, missed, median_seeds };
  const list = missed.length > 0 ? `, missed: ${missed.join(", ")}` : "";
  console.log(flags.json ? JSON.stringify(summary) : `${needed.length} of ${chosen.length} caught${list}`);
  return missed.length === 0 ? 0 : 1;
}

/** The first seed that fails with the mistake and passes without it. */
async function hunt(mutant: Mutant, jobs: number): Promise<{ seeds: number; found: RunResult | null }> {
  const limits = mutant.limits ?? {};
  let seeds = 0;
  for (;;) {
    let found: RunResult | null = null;
    const next = (): SeedJob | undefined => (seeds < MUTANT_SEEDS_MAX ? { seed: ++seeds, limits } : undefined);
    await runPool(jobs, mutant, next, (result) => {
      if (result.violation !== null && (found === null || result.seed < found.seed)) found = result;
      return found === null;
    });
    const caught = found as RunResult | null;
    if (caught === null) return { seeds, found: null };
    const sound = await runSeed({ seed: caught.seed, limits, digest: systemDigest });
    if (sound.violation === null) return { seeds, found: caught };
    console.log(`seed ${caught.seed} fails without any mistake: ${sound.violation.split("\n")[0]}`);
  }
}

async function main(): Promise<number> {
  let flags: Flags;
  try {
    flags = readFlags();
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`);
    return 64;
  }
  if (flags.help) {
    console.log(HELP);
    return 0;
  }
  if (flags.seed !== undefined) return replay(flags, flags.seed);
  return flags.mutants ? mutants(flags) : campaign(flags);
}

process.exitCode = await main();
