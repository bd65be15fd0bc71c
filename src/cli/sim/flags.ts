// The command line of `npm run sim`: what may be asked for, and one line for whoever asks for something else.
// What a user can get wrong is found before the first seed runs. Reads text only: files are opened by command.ts.

import { TYPO_DISTANCE_MAX } from "../../core/kit/limits.ts";
import { describe, kindsOf } from "../kit/description.ts";
import { editDistance } from "../kit/flags.ts";
import type { Planned } from "../../sim/kernel/index.ts";
import { SPARES_DRAWN_MAX, THREADS_MAX, VOTERS_DRAWN_MAX } from "../limits.ts";
import type { Subject } from "./simulators.ts";

export const HELP = `npm run sim -- [options]

  --elector          electors against a simulated server, instead of Raft clusters
  --jobs             jobs, agents and clients on three servers, instead of bare Raft clusters
  --mesh             five sites that share their histories, one of them of three nodes, instead of one Raft cluster
  --spread           sites that spread their lines over links that fail
  --tc               transaction coordinators that elect a leader by quorum leases
  --txn              transactions over two or three islands, with their coordinators
  --crowd            with --spread: 2,000 sites with six links each, of which 0.5 % restart in each second
  --race             with --jobs: 20 agents and 10 jobs in each run, while leaders die and are cut off
  --seeds N          how many seeds to run (default 1000, of a crowd 5); with --mutants for each (default 300, of jobs 30, of the mesh 60, of spread 100, of tc 200, of txn 60)
  --from S           the first seed (default: a fresh one, printed)
  --hours H          stop after H simulated cluster-hours
  --minutes M        stop after M minutes of real time (default 60)
  --threads N        how many threads run seeds (default 2)
  --nodes N          machines in the cluster, learners included, or instances (default: drawn by the seed)
  --learners N       how many of them are learners (default: drawn by the seed)
  --plain            runs within what etcd's specification describes, with --seed or many seeds
  --seed S           replay one seed with a readable trace
  --plan FILE        with --seed: the faults in FILE, a JSON array, instead of those that the seed draws
  --trace-etcd FILE  with --seed: etcd's state trace of the run, for its TLA+ specification
  --mutants          plant known mistakes; each must be found (with --elector, --jobs, --mesh, --spread, --tc or --txn: those alone)
  --only NAME        with --mutants: this one
  --runs N           with --mutants: find each N times, in fresh seeds each time (default 1)
  --json             one JSON object as the last line
  --help             this text

exit codes: 0 all well, 1 a violation or a missed mutant, 64 wrong use, 66 or 73 a file that cannot be read or
written, 130 interrupted (143 by SIGTERM): running seeds end, the summary is printed; a second signal ends at once
`;

const EXIT_USAGE = 64;

/** As the help says it: which flags take a value. */
const KINDS = kindsOf(describe("sim", "", HELP));
type Name = keyof typeof KINDS;
type Values = Partial<Record<Name, string>>;

/** What the command line is held against. */
export interface Known {
  readonly membersMax: number;
  readonly mutants: readonly string[];
}

const NEEDS: readonly (readonly [Name, Name])[] = [
  ["only", "mutants"],
  ["runs", "mutants"],
  ["race", "jobs"],
  ["crowd", "spread"],
  ["trace-etcd", "seed"],
  ["plan", "seed"],
];
const NOT_WITH_SEED: readonly Name[] = ["seeds", "from", "hours", "mutants"];
/** What is simulated instead of Raft clusters, in the order in which it is asked for; why, and with what, it does not go together. */
const OTHERS: readonly (readonly [Exclude<Subject, "raft">, string, readonly Name[]])[] = [
  ["elector", "runs no Raft cluster", ["jobs", "mesh", "spread", "tc", "txn", "learners", "plain", "trace-etcd"]],
  ["jobs", "runs three servers", ["mesh", "spread", "tc", "txn", "nodes", "learners", "plain", "trace-etcd"]],
  ["mesh", "runs five sites", ["spread", "tc", "txn", "nodes", "learners", "plain", "trace-etcd"]],
  ["spread", "runs sites of its own", ["tc", "txn", "nodes", "learners", "plain", "trace-etcd"]],
  ["tc", "runs coordinators alone", ["txn", "learners", "plain", "trace-etcd"]],
  ["txn", "runs islands of its own", ["nodes", "learners", "plain", "trace-etcd"]],
];

/** The user's mistake, in one line. */
export class UsageError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT_USAGE) {
    super(message);
    this.exitCode = exitCode;
  }
}

export type Flags = ReturnType<typeof readFlags>;

export function readFlags(args: readonly string[], known: Known) {
  const values = parse(args);
  checkTogether(values);
  const nodesMax = known.membersMax - SPARES_DRAWN_MAX;
  const whole = (name: Name, least: number, most = Infinity): number | undefined =>
    optional(values[name], (text) => wholeNumber(name, text, least, most));
  const nodes = whole("nodes", 1, nodesMax);
  const learners = whole("learners", 0, nodesMax - (nodes === undefined ? VOTERS_DRAWN_MAX : 0));
  const voters = nodes === undefined ? undefined : nodes - (learners ?? 0);
  if (voters !== undefined && voters < 1)
    throw new UsageError("--nodes must leave at least one voter beside --learners");
  const seedsAsked = whole("seeds", 1);
  // A crowd takes half a minute for each.
  const seeds = seedsAsked ?? (values.crowd === undefined ? 1_000 : 5);
  const plain = values.plain !== undefined;
  const subject: Subject = OTHERS.find(([name]) => values[name] !== undefined)?.[0] ?? "raft";
  const race = values.race !== undefined;
  const crowd = values.crowd !== undefined;
  if (values.only !== undefined) checkMutant(values.only, known.mutants);
  return {
    seeds,
    seedsAsked,
    from: whole("from", 0, Number.MAX_SAFE_INTEGER - seeds),
    hours: optional(values.hours, (text) => amount("hours", text)) ?? Infinity,
    minutes: optional(values.minutes, (text) => amount("minutes", text)) ?? 60,
    threads: whole("threads", 1, THREADS_MAX) ?? 2,
    seed: whole("seed", 0),
    planFile: values.plan,
    traceFile: values["trace-etcd"],
    mutants: values.mutants !== undefined,
    only: values.only,
    runs: whole("runs", 1) ?? 1,
    subject,
    json: values.json !== undefined,
    help: values.help !== undefined,
    /** What a replay must be given again to be the same run. */
    size: [
      ...(subject === "raft" ? [] : [`--${subject}`]),
      ...(race ? ["--race"] : []),
      ...(crowd ? ["--crowd"] : []),
      ...(nodes === undefined ? [] : [`--nodes ${nodes}`]),
      ...(learners === undefined ? [] : [`--learners ${learners}`]),
      ...(plain ? ["--plain"] : []),
    ],
    limits: {
      raft: { voters, learners, plain },
      elector: { instances: nodes },
      jobs: { race },
      mesh: {},
      spread: { crowd },
      tc: { nodes },
      txn: {},
    }[subject],
  };
}

/** Node's parseArgs takes `--seeds -1` for a mistake of its own kind, and explains in several lines. */
function parse(args: readonly string[]): Values {
  const values: Values = {};
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] === "-h" ? "--help" : args[at]!;
    if (!arg.startsWith("-")) throw new UsageError(`${shown(arg)} belongs to no flag`);
    const [flag = "", ...rest] = arg.split("=");
    const inline = rest.length > 0 ? rest.join("=") : undefined;
    const name = flag.slice(2) as Name;
    if (!flag.startsWith("--") || !Object.hasOwn(KINDS, name)) {
      const near = close(
        flag,
        Object.keys(KINDS).map((one) => `--${one}`),
      );
      throw new UsageError(`there is no ${flag}${near.length > 0 ? `; did you mean ${near.join(" or ")}?` : ""}`);
    }
    if (KINDS[name] === "switch") {
      if (inline !== undefined) throw new UsageError(`${flag} takes no value`);
      values[name] = "";
      continue;
    }
    const value = inline ?? (args[at + 1]?.startsWith("--") === true ? undefined : args[at + 1]);
    if (value === undefined) throw new UsageError(`${flag} takes a value`);
    if (inline === undefined) at++;
    values[name] = value;
  }
  return values;
}

function checkTogether(values: Values): void {
  for (const [name, needed] of NEEDS) {
    if (values[name] !== undefined && values[needed] === undefined)
      throw new UsageError(`--${name} goes only with --${needed}`);
  }
  for (const [name, why, others] of [...OTHERS, ["seed", "replays one seed", NOT_WITH_SEED] as const]) {
    const other = others.find((one) => values[one] !== undefined);
    if (values[name] !== undefined && other !== undefined)
      throw new UsageError(`--${name} ${why}; it does not go with --${other}`);
  }
}

function checkMutant(only: string, names: readonly string[]): void {
  if (names.includes(only)) return;
  const near = [...new Set([...close(only, names), ...names.filter((name) => only !== "" && name.includes(only))])];
  throw new UsageError(
    near.length > 0
      ? `there is no mutant ${JSON.stringify(only)}; did you mean ${near.join(" or ")}?`
      : `there is no mutant ${JSON.stringify(only)}, only ${names.join(", ")}`,
  );
}

function optional<T>(text: string | undefined, read: (text: string) => T): T | undefined {
  return text === undefined ? undefined : read(text);
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  // Number() reads an empty text as 0, and 0x10 and 1e3 too: none of them is what a seed looks like.
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
    throw new UsageError(`--${name} takes a whole number${least > 0 ? ` above ${least - 1}` : ""}, not ${shown(text)}`);
  if (value > most) throw new UsageError(`--${name} takes at most ${most}, not ${text}`);
  return value;
}

function amount(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0)
    throw new UsageError(`--${name} takes a number above 0, not ${shown(text)}`);
  return value;
}

function shown(text: string): string {
  return /^[-+.\w]+$/.test(text) ? text : JSON.stringify(text);
}

/** The nearest of the names, as far as a typing mistake goes. */
function close(text: string, names: readonly string[]): string[] {
  const distances = names.map((name) => editDistance(text, name));
  const least = Math.min(...distances);
  return least > TYPO_DISTANCE_MAX ? [] : names.filter((_name, at) => distances[at] === least);
}

/** The text of a plan's file. */
export function parsePlan(file: string, text: string): Planned[] {
  let plan: unknown;
  try {
    plan = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${file} is no JSON: ${(error as Error).message.split("\n")[0]}`);
  }
  if (!Array.isArray(plan) || !plan.every(isFault))
    throw new UsageError(`${file} is no plan: a JSON array of faults, each with "atMs" and "kind"`);
  return plan;
}

/** What else a kind of fault must have is known where it is applied; a wrong one fails the run and says so. */
function isFault(value: unknown): value is Planned {
  const { atMs, kind } = (value ?? {}) as { atMs?: unknown; kind?: unknown };
  return typeof atMs === "number" && atMs >= 0 && typeof kind === "string";
}
