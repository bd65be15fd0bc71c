// `npm run bench -- writes [--clients 1,16,64,512] [--rounds N] [--window-ms N] [--warm-ms N] [--alone] [--json]`:
// durable, replicated writes of 128 bytes a second, three nodes each, fsync on, next to etcd where it is on PATH (--alone:
// not).
//
// One client process writes to both, in turns: a short window at one, then at the other, who goes first changes from round
// to round. So whatever else the machine does hits both; the median of the rounds counts, and of the rounds' ratios. Never
// do both work at once; the one that waits only keeps its heartbeats. Servers live long, so both are warmed up first. A window
// in which a write failed (somebody lost its leader) is said and measured again, but not for ever.

import { parseArgs } from "node:util";
import { median } from "../test/chaos/figures.ts";
import type { Side, WindowResult } from "./load-messages.ts";
import { counted, rounded, say, type Stage, withStage } from "./stage.ts";

const CLIENTS = "1,16,64,512";
const ROUNDS = 7;
const WINDOW_MS = 3_000;
const WARM_MS = 5_000;
const WARM_CLIENTS = 64;
/** Of each window, until the clients are in their stride. */
const LEAD_IN_MS = 300;
const DISTURBED_MAX = 5;

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    clients: { type: "string" },
    rounds: { type: "string" },
    "window-ms": { type: "string" },
    "warm-ms": { type: "string" },
    alone: { type: "boolean" },
    json: { type: "boolean" },
  },
});

interface Row {
  readonly clients: number;
  readonly tenure_per_s: number;
  readonly tenure_p50_ms: number;
  readonly tenure_p99_ms: number;
  readonly peer_per_s: number | null;
  readonly peer_p50_ms: number | null;
  readonly peer_p99_ms: number | null;
  readonly ratio: number | null;
}

const rounds = counted("rounds", values.rounds, ROUNDS);
const windowMs = counted("window-ms", values["window-ms"], WINDOW_MS);
const warmMs = counted("warm-ms", values["warm-ms"], WARM_MS);
const counts = (values.clients ?? CLIENTS).split(",").map((text) => counted("clients", text, 1));

const result = await withStage({ isProxied: false, withPeer: values.alone !== true }, async (stage) => {
  const rows: Row[] = [];
  for (const side of sidesOf(stage)) {
    await open(stage, side);
    await stage.load.window({ side, clients: WARM_CLIENTS, warmMs: 0, ms: warmMs });
  }
  for (const clients of counts) rows.push(await measure(stage, clients));
  return { bench: "writes", peer: stage.peer, rows };
});
for (const row of result.rows) console.log(people(row));
if (values.json === true) console.log(JSON.stringify(result));

async function measure(stage: Stage, clients: number): Promise<Row> {
  const windows: Record<Side, WindowResult[]> = { tenure: [], etcd: [] };
  const sides = sidesOf(stage);
  for (const side of sides) await open(stage, side);
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const one = await undisturbed(stage, side, clients);
      windows[side].push(one);
      const rate = `${Math.round(one.perSecond)}/s, p99 ${one.p99Ms.toFixed(2)} ms`;
      say(`${clients} clients, round ${round + 1}/${rounds}, ${side}: ${rate}`);
    }
  }
  const of = (side: Side, figure: keyof WindowResult): number => median(windows[side].map((one) => one[figure]));
  const orNull = (value: number): number | null => (stage.etcd === null ? null : value);
  const ratios = windows.etcd.map(({ perSecond }, at) => windows.tenure[at]!.perSecond / perSecond);
  return {
    clients,
    tenure_per_s: Math.round(of("tenure", "perSecond")),
    tenure_p50_ms: rounded(of("tenure", "p50Ms"), 3),
    tenure_p99_ms: rounded(of("tenure", "p99Ms"), 3),
    peer_per_s: orNull(Math.round(of("etcd", "perSecond"))),
    peer_p50_ms: orNull(rounded(of("etcd", "p50Ms"), 3)),
    peer_p99_ms: orNull(rounded(of("etcd", "p99Ms"), 3)),
    ratio: orNull(rounded(median(ratios), 2)),
  };
}

async function undisturbed(stage: Stage, side: Side, clients: number): Promise<WindowResult> {
  for (let attempt = 1; ; attempt++) {
    const one = await stage.load.window({ side, clients, warmMs: LEAD_IN_MS, ms: windowMs });
    if (one.failed === 0) return one;
    const what = `${one.failed} writes failed at ${side} with ${clients} clients: it lost its leader`;
    if (attempt > DISTURBED_MAX) throw new Error(what);
    say(`${what}; measuring again`);
    await open(stage, side);
  }
}

function sidesOf({ etcd }: Stage): readonly Side[] {
  return etcd === null ? ["tenure"] : ["tenure", "etcd"];
}

async function open({ tenure, etcd, load }: Stage, side: Side): Promise<void> {
  const ports = side === "tenure" ? tenure.ports : etcd!.ports;
  const leader = side === "tenure" ? (await tenure.leader()).name : await etcd!.leader();
  await load.open({ side, ports, leader, patienceMs: null, refusalsMax: null });
}

function people(row: Row): string {
  const ours = `${row.tenure_per_s}/s (p50 ${row.tenure_p50_ms} ms, p99 ${row.tenure_p99_ms} ms)`;
  const theirs = `${row.peer_per_s}/s (p50 ${row.peer_p50_ms} ms, p99 ${row.peer_p99_ms} ms)`;
  const beside = row.ratio === null ? "" : `; etcd ${theirs}; ratio ${row.ratio}`;
  return `${String(row.clients).padStart(4)} clients: ${ours}${beside}`;
}
