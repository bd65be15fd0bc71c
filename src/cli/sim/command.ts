// `npm run sim`: runs whole clusters, electors, jobs on servers, or sites of a mesh, under faults on virtual time, as many seeds as asked for, and reports
// what it met. `--seed S` replays one with a readable trace; `--mutants` plants known mistakes and must find each.

import { createWriteStream, openSync, readFileSync } from "node:fs";
import { randomInt } from "node:crypto";
import { MEMBERS_MAX } from "../../core/kit/limits.ts";
import { etcdTracer } from "../../sim/etcd-trace.ts";
import { shrink } from "../../sim/kernel/index.ts";
import type { Mutant } from "../../sim/mutants/patch.ts";
import { EXPLAINED_MAX, LISTED_SEEDS_MAX, SHRINK_TRIES_MAX } from "../limits.ts";
import { HELP, parsePlan, readFlags, UsageError, type Flags } from "./flags.ts";
import { firstLine, kindOfViolation, onInterruption, runPool, type Interruption } from "./pool.ts";
import { type AnyFault, type Result, type RunJob, type SeedJob, SIMULATORS, type Subject } from "./simulators.ts";

const EXIT_NO_INPUT = 66;
const EXIT_CANNOT_CREATE = 73;
/** What a shell reports for a program whose reader went away. */
const EXIT_BROKEN_PIPE = 141;

const ALL_MUTANTS = Object.values(SIMULATORS).flatMap(({ mutants: some }) => some);

async function runHere(subject: Subject, job: RunJob): Promise<Result> {
  return (await SIMULATORS[subject].load()).run(job);
}

async function newTotal({ subject }: Flags) {
  return (await SIMULATORS[subject].load()).total(() => performance.now());
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
function checkPlan(file: string, subject: Subject, { plan, knobs, violation }: Result): void {
  const kind = /^the simulation itself failed: .*exhaustive: fault: (.*)/.exec(violation ?? "")?.[1];
  if (kind !== undefined) throw new UsageError(`${file} is no plan: there is no such fault: ${kind}`);
  const nodes = SIMULATORS[subject].nodesOf(knobs);
  const named = JSON.stringify(plan).matchAll(/"n(\d+)"/g);
  const stranger = [...named].find(([, number]) => Number(number) < 1 || Number(number) > nodes);
  if (violation !== null && stranger !== undefined)
    throw new UsageError(`${file} names ${stranger[0]}, but this seed's cluster has n1 to n${nodes}`);
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
  const result = await runHere(flags.subject, {
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
  if (planFile !== undefined) checkPlan(planFile, flags.subject, result);
  if (!flags.json) console.log(`\nknobs ${JSON.stringify(result.knobs)}`);
  const one = await newTotal(flags);
  one.add(result);
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
  const total = await newTotal(flags);
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
      total.add(result);
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
    flags.subject,
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
    const { violation } = await runHere(flags.subject, { seed, limits: flags.limits, plan });
    return kindOfViolation(violation) === kind;
  };
  const small = await shrink<AnyFault>(result.plan, stillFails, SHRINK_TRIES_MAX);
  console.log(
    `${result.plan.length} faults, of which ${small.plan.length} ${small.plan.length === 1 ? "is" : "are"} enough`,
  );
  console.log(`${again(seed, flags, "FILE").replace("replay:", "replay these alone:")}, with FILE containing:`);
  console.log(JSON.stringify(small.plan));
}

async function mutants(flags: Flags): Promise<number> {
  const interruption = onInterruption();
  const all = flags.subject === "raft" ? ALL_MUTANTS : SIMULATORS[flags.subject].mutants;
  const chosen = all.filter((mutant) => flags.only === undefined || mutant.name === flags.only);
  const from = flags.from ?? randomInt(1_000_000_000);
  const most = Math.max(...chosen.map((mutant) => seedsMaxOf(mutant, flags)));
  console.log(
    `${counted(chosen.length, "mutant")}, ${counted(flags.runs, "run")} of up to ${most} seeds each, from seed ${from}`,
  );
  const missed: string[] = [];
  const needed: number[] = [];
  let caught = 0;
  let unsound = 0;
  for (const mutant of chosen) {
    const hunted = await hunt(mutant, flags, from, interruption);
    unsound += hunted.unsound;
    if (hunted.needed.length < flags.runs && interruption.exitCode !== null) break;
    needed.push(...hunted.needed);
    if (hunted.needed.length < flags.runs) missed.push(mutant.name);
    else caught++;
    console.log(`${mutant.name.padEnd(46)} ${mutant.breaks.padEnd(10)} ${verdict(hunted, seedsMaxOf(mutant, flags))}`);
  }
  const unfinished = chosen.length - caught - missed.length;
  needed.sort((a, b) => a - b);
  const median_seeds = needed[Math.floor(needed.length / 2)] ?? null;
  const most_seeds = needed.at(-1) ?? null;
  const summary = { mutants: chosen.length, caught, missed, unfinished, median_seeds, most_seeds, unsound };
  const list = missed.length > 0 ? `, missed: ${missed.join(", ")}` : "";
  const left = unfinished > 0 ? `, ${unfinished} not tried to the end` : "";
  console.log(flags.json ? JSON.stringify(summary) : `${caught} of ${chosen.length} caught${list}${left}`);
  return interruption.exitCode ?? (missed.length + unsound === 0 ? 0 : 1);
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** Of a run: how many seeds it took. */
interface Hunted {
  readonly needed: readonly number[];
  readonly first: Result | null;
  /** Seeds that fail without the mistake too: findings of their own. */
  readonly unsound: number;
}

function verdict({ needed, first }: Hunted, seedsMax: number): string {
  const why = firstLine(first?.violation ?? "").slice(0, 110);
  const took = needed.length === 1 ? `caught by seed ${first?.seed}` : `caught after ${needed.join(", ")} seeds`;
  return first === null ? `MISSED in ${seedsMax} seeds` : `${took}: ${why}`;
}

function seedsMaxOf({ subject }: Mutant, { seedsAsked }: Flags): number {
  return seedsAsked ?? SIMULATORS[subject ?? "raft"].mutantSeedsMax;
}

/** As many seeds one after the other as it takes to find the mistake `runs` times; each run begins after the seed that ended the last one. */
async function hunt(mutant: Mutant, flags: Flags, from: number, interruption: Interruption): Promise<Hunted> {
  const limits = mutant.limits ?? {};
  const subject = mutant.subject ?? "raft";
  const seedsMax = seedsMaxOf(mutant, flags);
  const found: Result[] = [];
  let issued = 0;
  let newest = from - 1;
  const next = (): SeedJob | undefined =>
    from + issued - newest <= seedsMax && interruption.exitCode === null
      ? { seed: from + issued++, limits }
      : undefined;
  const onResult = (result: Result): boolean => {
    if (result.violation !== null) {
      found.push(result);
      newest = Math.max(newest, result.seed);
    }
    return found.length < flags.runs;
  };
  await runPool(flags.threads, mutant, next, onResult, subject);
  found.sort((a, b) => a.seed - b.seed);
  const sound: Result[] = [];
  for (const one of found.slice(0, flags.runs)) {
    const { violation } = await runHere(subject, { seed: one.seed, limits });
    if (violation === null) sound.push(one);
    else console.log(`FAILED: seed ${one.seed} fails without any mistake: ${firstLine(violation)}`);
  }
  const needed = sound.map(({ seed }, at) => seed - (sound[at - 1]?.seed ?? from - 1));
  return { needed, first: sound[0] ?? null, unsound: Math.min(found.length, flags.runs) - sound.length };
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
