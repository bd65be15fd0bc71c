// `npm run bench -- jobs [--nodes 1,3] [--backends embedded,postgres] [--rounds N] [--window-ms N] [--warm-ms N]
// [--warm-first-ms N] [--samples N] [--batch N] [--raw] [--alone] [--calm] [--pending N] [--json]`: jobs leased and committed a second (durable, fenced, kept), and the
// time from a submission's departure until the handler is called; next to graphile-worker and pg-boss (--alone: not).
//
// - throughput, batched: submissions, leases and results of --batch jobs each; not batched: of one each, 16 at once.
// - latency: one job at a time on an idle system.
// - Ours go through the SDK, as theirs do; with --raw also through prepared requests (`…-raw`): what the servers can do.
// - Every side runs at full rate for a while before anything is counted, until its code is compiled (--warm-first-ms).
// - In turns, a short window each; the median of the rounds counts, and of the rounds' ratios: over the best peer in the same
//   shape (throughput: ours by theirs; latency: theirs by ours; more is better in both). The one that waits is idle.
// - cpu_us_per_job: processor time of all servers of a side, PostgreSQL included, by jobs done; the table says whose.
// - --calm: with long election timeouts, for a machine that does other things; the figures are then only for comparison.
// - With --pending: what a million jobs that wait cost (jobs-pending.ts).

import { parseArgs } from "node:util";
import { median } from "../test/chaos/figures.ts";
import type { FlowOptions, FlowResult } from "./jobs-flow.ts";
import { measurePending } from "./jobs-pending.ts";
import { type Backend, type Runner, withJobsStage } from "./jobs-stage.ts";
import { type ProcessorTime, spentBetween, totalOf } from "./processor-time.ts";
import { counted, rounded, say } from "./stage.ts";

const ROUNDS = 3;
const WINDOW_MS = 4_000;
const WARM_MS = 1_000;
/** In 16 windows of one node in a row, the three slowest were among the first four. */
const WARM_FIRST_MS = 16_000;
const SAMPLES = 200;
const WARM_SAMPLES = 20;
const BATCH = 100;
const DISTURBED_MAX = 5;
const LANES = { batched: 4, unbatched: 16 } as const;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    nodes: { type: "string" },
    backends: { type: "string" },
    rounds: { type: "string" },
    "window-ms": { type: "string" },
    "warm-ms": { type: "string" },
    "warm-first-ms": { type: "string" },
    samples: { type: "string" },
    batch: { type: "string" },
    raw: { type: "boolean" },
    alone: { type: "boolean" },
    calm: { type: "boolean" },
    pending: { type: "string" },
    json: { type: "boolean" },
  },
});

interface Peer {
  readonly per_s: number;
  readonly p50_ms: number;
}

interface Row {
  readonly shape: string;
  readonly nodes: number;
  readonly backend: Backend;
  readonly batched: boolean;
  readonly tenure_per_s: number;
  readonly tenure_p50_ms: number;
  readonly tenure_p99_ms: number;
  readonly cpu_us_per_job: number;
  readonly peers: { readonly graphile: Peer | null; readonly pgboss: Peer | null };
  readonly ratio: number | null;
}

interface Measured extends FlowResult {
  readonly spent: ProcessorTime;
}

interface Shape {
  readonly name: "throughput" | "latency";
  readonly batched: boolean;
  readonly rounds: number;
  readonly run: (runner: Runner) => Promise<FlowResult>;
}

const rounds = counted("rounds", values.rounds, ROUNDS);
const windowMs = counted("window-ms", values["window-ms"], WINDOW_MS);
const warmMs = counted("warm-ms", values["warm-ms"], WARM_MS);
const warmFirstMs = counted("warm-first-ms", values["warm-first-ms"], WARM_FIRST_MS);
const samples = counted("samples", values.samples, SAMPLES);
const batch = counted("batch", values.batch, BATCH);
const nodes = (values.nodes ?? "1,3").split(",").map((text) => counted("nodes", text, 1));
const backends = (values.backends ?? "embedded,postgres").split(",").map((text) => backendOf(text));
const pending = values.pending === undefined ? null : counted("pending", values.pending, 1);

if (pending === null) await main();
else
  await measurePending({
    pending,
    nodes: nodes.at(-1)!,
    batch,
    windowMs,
    warmMs,
    isCalm: values.calm === true,
    json: values.json === true,
  });

async function main(): Promise<void> {
  const clusters = backends.flatMap((backend) => nodes.map((count) => ({ nodes: count, backend })));
  const sides = values.raw === true ? (["sdk", "raw"] as const) : (["sdk"] as const);
  const result = await withJobsStage(
    { clusters, sides, withPeers: values.alone !== true, isCalm: values.calm === true },
    async (runners) => {
      const rows: Row[] = [];
      for (const runner of runners) {
        say(`${runner.name} warms up`);
        await undisturbed(warming(), runner);
      }
      for (const shape of shapes()) rows.push(...(await measure(shape, runners)));
      return { bench: "jobs", rows };
    },
  );
  for (const row of result.rows) console.log(people(row));
  if (values.json === true) console.log(JSON.stringify(result));
}

function flow(size: number, lanes: number): FlowOptions {
  return { batch: size, submitters: lanes, lanes, backlogMax: 2 * size * lanes, warmMs, ms: windowMs };
}

function shapes(): readonly Shape[] {
  const [batched, unbatched] = [flow(batch, LANES.batched), flow(1, LANES.unbatched)];
  const warm = Math.min(samples, WARM_SAMPLES);
  return [
    { name: "throughput", batched: true, rounds, run: ({ generator }) => generator.fullRate(batched) },
    { name: "throughput", batched: false, rounds, run: ({ generator }) => generator.fullRate(unbatched) },
    { name: "latency", batched: false, rounds: 1, run: ({ generator }) => generator.oneByOne(samples, warm) },
  ];
}

/** Not counted. */
function warming(): Shape {
  const long: FlowOptions = { ...flow(batch, LANES.batched), warmMs: 0, ms: warmFirstMs };
  return { name: "throughput", batched: true, rounds: 1, run: ({ generator }) => generator.fullRate(long) };
}

async function measure(shape: Shape, runners: readonly Runner[]): Promise<Row[]> {
  const windows = new Map<Runner, Measured[]>(runners.map((runner) => [runner, []]));
  for (let round = 0; round < shape.rounds; round++) {
    for (const runner of round % 2 === 0 ? runners : runners.toReversed()) {
      const one = await undisturbed(shape, runner);
      const { spent } = one;
      windows.get(runner)!.push(one);
      const what = `${shape.name}${shape.batched ? ", batched" : ""}, round ${round + 1}/${shape.rounds}, ${runner.name}`;
      say(`${what}: ${Math.round(one.perSecond)}/s, p50 ${one.p50Ms.toFixed(2)} ms, ${table(spent, one.jobs)}`);
    }
  }
  const peers = runners.filter(({ tenure }) => tenure === null);
  return runners.flatMap((runner) => (runner.tenure === null ? [] : [rowOf(shape, runner, peers, windows)]));
}

/** A window in which somebody lost its leader is said, and measured again, but not for ever. */
async function undisturbed(shape: Shape, runner: Runner): Promise<Measured> {
  for (let attempt = 1; ; attempt++) {
    const before = runner.processorTime();
    try {
      const one = await shape.run(runner);
      if (one.perSecond === 0) throw new Error("no job was done in the whole window");
      return { ...one, spent: spentBetween(before, runner.processorTime()) };
    } catch (error) {
      if (attempt > DISTURBED_MAX) throw error;
      say(`${runner.name} was disturbed: ${(error as Error).message}; measuring again`);
      await runner.reopen();
    }
  }
}

function rowOf(shape: Shape, runner: Runner, peers: readonly Runner[], windows: ReadonlyMap<Runner, Measured[]>): Row {
  const ours = windows.get(runner)!;
  const peerOf = (side: "graphile" | "pgboss"): Peer | null => {
    const theirs = peers.find((one) => one.side === side);
    if (theirs === undefined) return null;
    const all = windows.get(theirs)!;
    return {
      per_s: Math.round(median(all.map(({ perSecond }) => perSecond))),
      p50_ms: rounded(median(all.map(({ p50Ms }) => p50Ms)), 2),
    };
  };
  const ratios = ours.map((one, at) =>
    ratioOf(
      shape,
      one,
      peers.map((peer) => windows.get(peer)![at]!),
    ),
  );
  return {
    shape: runner.side === "raw" ? `${shape.name}-raw` : shape.name,
    nodes: runner.tenure!.nodes,
    backend: runner.tenure!.backend,
    batched: shape.batched,
    tenure_per_s: Math.round(median(ours.map(({ perSecond }) => perSecond))),
    tenure_p50_ms: rounded(median(ours.map(({ p50Ms }) => p50Ms)), 2),
    tenure_p99_ms: rounded(median(ours.map(({ p99Ms }) => p99Ms)), 2),
    cpu_us_per_job: rounded(median(ours.map(({ spent, jobs }) => totalOf(spent) / jobs)), 1),
    peers: { graphile: peerOf("graphile"), pgboss: peerOf("pgboss") },
    ratio: peers.length === 0 ? null : rounded(median(ratios), 2),
  };
}

function ratioOf(shape: Shape, ours: FlowResult, theirs: readonly FlowResult[]): number {
  return shape.name === "throughput"
    ? ours.perSecond / Math.max(...theirs.map(({ perSecond }) => perSecond))
    : Math.min(...theirs.map(({ p50Ms }) => p50Ms)) / ours.p50Ms;
}

/** Microseconds of a processor for each job, by process and part; what is nothing is left out. */
function table(spent: ProcessorTime, jobs: number): string {
  const parts = [...spent].map(([part, us]) => [part, us / jobs] as const).filter(([, us]) => us >= 0.1);
  const whole = (totalOf(spent) / jobs).toFixed(1);
  return `${whole} µs/job (${parts.map(([part, us]) => `${part} ${us.toFixed(1)}`).join(", ")})`;
}

function people(row: Row): string {
  const what = `${row.shape}${row.batched ? `, batches of ${batch}` : ""}, ${row.nodes} × ${row.backend}`;
  const ours = `${row.tenure_per_s}/s, p50 ${row.tenure_p50_ms} ms, p99 ${row.tenure_p99_ms} ms, ${row.cpu_us_per_job} µs/job`;
  const theirs = Object.entries(row.peers).map(([name, peer]) =>
    peer === null ? "" : `; ${name} ${peer.per_s}/s, p50 ${peer.p50_ms} ms`,
  );
  return `${what.padEnd(48)} ${ours}${theirs.join("")}${row.ratio === null ? "" : `; ratio ${row.ratio}`}`;
}

function backendOf(text: string): Backend {
  if (text === "embedded" || text === "postgres") return text;
  throw new RangeError(`--backends takes embedded, postgres, not ${text}`);
}
