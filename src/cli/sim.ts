// `npm run sim`: runs whole clusters, electors, or jobs on servers, under faults on virtual time, as many seeds as asked for, and reports
// what it met. `--seed S` replays one with a readable trace; `--mutants` plants known mistakes and must find each.

import { createWriteStream, openSync, readFileSync } from "node:fs";
import { randomInt } from "node:crypto";
import { assertNever } from "../core/kit/assert.ts";
import { MEMBERS_MAX } from "../core/kit/limits.ts";
import { systemDigest } from "../drivers/system/digest.ts";
import { etcdTracer } from "../sim/etcd-trace.ts";
import { ElectorCampaign, type ElectorFault, type ElectorRunResult, runElectorSeed } from "../sim/elector/index.ts";
import { JobsCampaign, type JobsFault, type JobsRunResult, runJobsSeed } from "../sim/jobs/index.ts";
import { shrink, type TraceSink } from "../sim/kernel/index.ts";
import { ELECTOR_MUTANTS } from "../sim/mutants/elector-list.ts";
import { JOBS_MUTANTS } from "../sim/mutants/jobs-list.ts";
import { MUTANTS } from "../sim/mutants/list.ts";
import { Campaign, runSeed, type RaftFault, type RunResult } from "../sim/raft/index.ts";
import type { Mutant } from "../sim/mutants/patch.ts";
import { HELP, parsePlan, readFlags, UsageError, type Flags } from "./sim-flags.ts";
import { firstLine, kindOfViolation, onInterruption, runPool, type Interruption } from "./sim-pool.ts";
import type { SeedJob, Subject } from "./sim-worker.ts";

const SHRINK_TRIES = 200;
const MUTANT_SEEDS_MAX = 2_000;
const ELECTOR_MUTANT_SEEDS_MAX = 1_500;
const JOBS_MUTANT_SEEDS_MAX = 300;
const EXPLAINED_MAX = 3;
const LISTED_SEEDS_MAX = 100;
const EXIT_NO_INPUT = 66;
const EXIT_CANNOT_CREATE = 73;
/** What a shell reports for a program whose reader went away. */
const EXIT_BROKEN_PIPE = 141;

const ALL_MUTANTS: readonly Mutant[] = [...MUTANTS, ...ELECTOR_MUTANTS, ...JOBS_MUTANTS];

type Result = RunResult | ElectorRunResult | JobsRunResult;
type AnyFault = RaftFault | ElectorFault | JobsFault;
type RunJob = SeedJob & { readonly narrate?: TraceSink | undefined; readonly trace?: ReturnType<typeof etcdTracer> };

function runHere(subject: Subject, job: RunJob): Promise<Result> {
  switch (subject) {
    case "elector":
      return runElectorSeed({ ...job, plan: job.plan as readonly ElectorFault[] | undefined });
    case "jobs":
      return runJobsSeed({ ...job, plan: job.plan as readonly JobsFault[] | undefined, digest: systemDigest });
    case "raft":
      return runSeed({ ...job, plan: job.plan as readonly RaftFault[] | undefined, digest: systemDigest });
    default:
      return assertNever(subject, "subject");
  }
}

/** Adds up runs; each kind of result goes to its own kind of campaign. */
function newTotal(subject: Subject) {
  const total = new { raft: Campaign, elector: ElectorCampaign, jobs: JobsCampaign }[subject](() => performance.now());
  return { total, add: (result: Result) => total.add(result as RunResult & ElectorRunResult & JobsRunResult) };
}

function subjectOf(flags: Flags): Subject {
  if (flags.jobs) return "jobs";
  return flags.elector ? "elector" : "raft";
}

function readPlan(file: string): AnyFault[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`cannot read the plan: ${(error as Error).message}`, EXIT_NO_INPUT);
  }
  return parsePlan(file, text) as AnyFault[];
}

/** A plan by hand may name what is not there; that the run broke on it is no finding. */
function checkPlan(file: string, { plan, knobs, violation }: Result): void {
  const kind = /^the simulation itself failed: .*exhaustive: fault: (.*)/.exec(violation ?? "")?.[1];
  if (kind !== undefined) throw new UsageError(`${file} is no plan: there is no such fault: ${kind}`);
  const nodes = nodesOf(knobs);
  const named = JSON.stringify(plan).matchAll(/"n(\d+)"/g);
  const stranger = [...named].find(([, number]) => Number(number) < 1 || Number(number) > nodes);
  if (violation !== null && stranger !== undefined)
    throw new UsageError(`${file} names ${stranger[0]}, but this seed's cluster has n1 to n${nodes}`);
}

function nodesOf(knobs: Result["knobs"]): number {
  if ("servers" in knobs) return knobs.servers;
  return "instances" in knobs ? knobs.instances : knobs.voters + knobs.learners + knobs.spares;
}

/** Opened before the run: a directory that is missing should not cost a run first. */
function openTrace(file: string): number {
  try {
    return openSync(file, "w");
  } catch (error) {
    throw new UsageError(`cannot write the trace: ${(error as Error).message}`, EXIT_CANNOT_CREATE);
  }
}

async function replay(flags: Flags, seed: number): Promise<number> {
  const { traceFile, planFile } = flags;
  const plan = planFile === undefined ? undefined : readPlan(planFile);
  const out = traceFile === undefined ? null : createWriteStream(traceFile, { fd: openTrace(traceFile) });
  const tracer = out === null ? null : etcdTracer((line) => out.write(`${line}\n`));
  const result = await runHere(subjectOf(flags), {
    seed,
    limits: flags.limits,
    plan,
    narrate: flags.json
      ? undefined
      : (atMs, owner, text) => console.log(`${atMs.toFixed(2).padStart(10)}  ${owner.padEnd(10)} ${text}`),
    ...(tracer === null ? {} : { trace: tracer }),
  });
  tracer?.finish();
  if (out !== null) await new Promise((done) => out.end(done));
  if (planFile !== undefined) checkPlan(planFile, result);
  if (!flags.json) console.log(`\nknobs ${JSON.stringify(result.knobs)}`);
  const { total: one, add } = newTotal(subjectOf(flags));
  add(result);
  if (result.violation !== null) await explain(result, flags, { exitCode: null });
  const failed_seeds = result.violation === null ? [] : [seed];
  console.log(
    flags.json
      ? JSON.stringify({ ...one.summary(), failed_seeds, seed, hash: result.hash })
      : `hash ${result.hash}, ${result.violation ?? "no violation"}`,
  );
  return result.violation === null ? 0 : 1;
}

async function campaign(flags: Flags): Promise<number> {
  const { seeds } = flags;
  const interruption = onInterruption();
  const from = flags.from ?? randomInt(1_000_000_000);
  const untilMs = performance.now() + flags.minutes * 60_000;
  console.log(`seeds ${from} to ${from + seeds - 1} on ${flags.threads} ${flags.threads === 1 ? "thread" : "threads"}`);
  const { total, add } = newTotal(subjectOf(flags));
  const failed: Result[] = [];
  let issued = 0;
  let reportAtMs = performance.now() + 5_000;
  await runPool(
    flags.threads,
    null,
    () => {
      const inTime = performance.now() < untilMs && interruption.exitCode === null;
      const more = issued < seeds && total.simulatedHours < flags.hours && inTime;
      return more ? { seed: from + issued++, limits: flags.limits } : undefined;
    },
    (result: Result) => {
      add(result);
      if (result.violation !== null) {
        failed.push(result);
        console.log(`FAILED: seed ${result.seed}: ${firstLine(result.violation)}; ${again(result.seed, flags)}`);
      }
      if (performance.now() > reportAtMs) {
        reportAtMs += 5_000;
        console.log(progress(total));
      }
      return true;
    },
    subjectOf(flags),
  );
  failed.sort((a, b) => a.seed - b.seed);
  await explainSome(failed, flags, interruption);
  // An interrupted campaign was not asked for as a whole: what it did not meet says nothing.
  const complaints = interruption.exitCode === null ? total.complaints() : [];
  for (const complaint of complaints) console.log(`FAILED: ${complaint}`);
  const failed_seeds = failed.slice(0, LISTED_SEEDS_MAX).map(({ seed }) => seed);
  console.log(flags.json ? JSON.stringify({ ...total.summary(), failed_seeds }) : progress(total));
  return interruption.exitCode ?? (failed.length + complaints.length > 0 ? 1 : 0);
}

function progress(total: { progress(): string }): string {
  return total.progress().replace(/\b1 violations\b/, "1 violation");
}

function again(seed: number, flags: Flags, plan: string | undefined = flags.planFile): string {
  const parts = [`--seed ${seed}`, ...flags.size, ...(plan === undefined ? [] : [`--plan ${plan}`])];
  return `replay: npm run sim -- ${parts.join(" ")}`;
}

/** Shrinking takes many runs: a few are explained, the others named. Whoever interrupts wants no shrinking at all. */
async function explainSome(failed: readonly Result[], flags: Flags, interruption: Interruption): Promise<void> {
  let explained = 0;
  for (const result of failed.slice(0, EXPLAINED_MAX)) {
    if (interruption.exitCode !== null) break;
    await explain(result, flags, interruption);
    explained++;
  }
  const rest = failed.slice(explained).map(({ seed }) => seed);
  if (rest.length === 0) return;
  const listed = rest.slice(0, LISTED_SEEDS_MAX).join(", ");
  const what = `${rest.length} ${explained > 0 ? "more " : ""}failing ${rest.length === 1 ? "seed" : "seeds"}`;
  console.log(`\n${what}: ${listed}${rest.length > LISTED_SEEDS_MAX ? ", …" : ""}`);
}

/** What happened, with how few faults it still happens, and how to see it again. */
async function explain(result: Result, flags: Flags, interruption: Interruption): Promise<void> {
  const { seed } = result;
  console.log(`\nseed ${seed}: ${result.violation}`);
  console.log(again(seed, flags));
  const kind = kindOfViolation(result.violation);
  // With fewer faults it would prove even less: there is nothing to shrink.
  if (kind === null) return;
  const stillFails = async (plan: readonly AnyFault[]): Promise<boolean> => {
    if (interruption.exitCode !== null) return false;
    const { violation } = await runHere(subjectOf(flags), { seed, limits: flags.limits, plan });
    return kindOfViolation(violation) === kind;
  };
  const small = await shrink<AnyFault>(result.plan, stillFails, SHRINK_TRIES);
  console.log(
    `${result.plan.length} faults, of which ${small.plan.length} ${small.plan.length === 1 ? "is" : "are"} enough`,
  );
  console.log(`${again(seed, flags, "FILE").replace("replay:", "replay these alone:")}, with FILE containing:`);
  console.log(JSON.stringify(small.plan));
}

async function mutants(flags: Flags): Promise<number> {
  const interruption = onInterruption();
  const all = mutantsOf(flags);
  const chosen = all.filter((mutant) => flags.only === undefined || mutant.name === flags.only);
  const most = Math.max(...chosen.map(seedsMaxOf));
  console.log(`${chosen.length} ${chosen.length === 1 ? "mutant" : "mutants"}, up to ${most} seeds each`);
  const missed: string[] = [];
  const needed: number[] = [];
  for (const mutant of chosen) {
    const { seeds, found } = await hunt(mutant, flags.threads, interruption);
    if (found === null && interruption.exitCode !== null) break;
    if (found === null) missed.push(mutant.name);
    else needed.push(found.seed);
    const why = firstLine(found?.violation ?? "").slice(0, 110);
    const verdict = found === null ? `MISSED in ${seeds} seeds` : `caught by seed ${found.seed}: ${why}`;
    console.log(`${mutant.name.padEnd(46)} ${mutant.breaks.padEnd(10)} ${verdict}`);
  }
  const unfinished = chosen.length - needed.length - missed.length;
  needed.sort((a, b) => a - b);
  const median_seeds = needed[Math.floor(needed.length / 2)] ?? null;
  const summary = { mutants: chosen.length, caught: needed.length, missed, unfinished, median_seeds };
  const list = missed.length > 0 ? `, missed: ${missed.join(", ")}` : "";
  const left = unfinished > 0 ? `, ${unfinished} not tried to the end` : "";
  console.log(flags.json ? JSON.stringify(summary) : `${needed.length} of ${chosen.length} caught${list}${left}`);
  return interruption.exitCode ?? (missed.length === 0 ? 0 : 1);
}

function mutantsOf({ elector, jobs }: Flags): readonly Mutant[] {
  if (jobs) return JOBS_MUTANTS;
  return elector ? ELECTOR_MUTANTS : ALL_MUTANTS;
}

function seedsMaxOf({ subject }: Mutant): number {
  return { raft: MUTANT_SEEDS_MAX, elector: ELECTOR_MUTANT_SEEDS_MAX, jobs: JOBS_MUTANT_SEEDS_MAX }[subject ?? "raft"];
}

/** The first seed that fails with the mistake and passes without it. */
async function hunt(
  mutant: Mutant,
  threads: number,
  interruption: Interruption,
): Promise<{ seeds: number; found: Result | null }> {
  const limits = mutant.limits ?? {};
  const subject = mutant.subject ?? "raft";
  const seedsMax = seedsMaxOf(mutant);
  let seeds = 0;
  for (;;) {
    let found: Result | null = null;
    const next = (): SeedJob | undefined =>
      seeds < seedsMax && interruption.exitCode === null ? { seed: ++seeds, limits } : undefined;
    const onResult = (result: Result): boolean => {
      if (result.violation !== null && (found === null || result.seed < found.seed)) found = result;
      return found === null;
    };
    await runPool(threads, mutant, next, onResult, subject);
    const caught = found as Result | null;
    if (caught === null) return { seeds, found: null };
    const sound = await runHere(subject, { seed: caught.seed, limits });
    if (sound.violation === null) return { seeds, found: caught };
    console.log(`seed ${caught.seed} fails without any mistake: ${firstLine(sound.violation)}`);
  }
}

async function main(): Promise<number> {
  try {
    const flags = readFlags(process.argv.slice(2), {
      membersMax: MEMBERS_MAX,
      mutants: ALL_MUTANTS.map((mutant) => mutant.name),
    });
    if (flags.help) {
      console.log(HELP);
      return 0;
    }
    if (flags.seed !== undefined) return await replay(flags, flags.seed);
    return await (flags.mutants ? mutants(flags) : campaign(flags));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message} (see npm run sim -- --help)`);
    return error.exitCode;
  }
}

// `| head -1` has read enough: that is no error of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(EXIT_BROKEN_PIPE);
});
process.exitCode = await main();
