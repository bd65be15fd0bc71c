// `npm run bench -- gate [--rounds N] [--costs] [--save] [--json]`: what the gate and the fence cost, and how long nobody leads;
// with --costs, the first half alone.
//
// - check_ns: `gate.requireLeader()` while leading, on the system's clocks.
// - kill, term, stop: from the signal, as the harness sends it, to the next leader's first acknowledged fenced write, as
//   the harness hears of it; three worker processes under load, connected
//   directly and with pools in use, the library's own timing. Rounds of the kinds take
//   turns. Every increment is compared afterwards, as in `npm run chaos`: a fast takeover that loses something is none.
// - fenced_ratio: how much longer a transaction with one update takes through `term.tx` than without a fence, on the
//   same connections, in turns, round by round; the median of the rounds' ratios.
// - fence_proof_ratio: the same for a transaction of one's own: `term.fence`, which proves where it is, against its check
//   sent by hand (`select tenure_require_epoch($1, $2)`); fence_proof_cpu_ratio: the same in processor time of Node and of
//   Postgres's sessions, which a busy machine changes less (Linux; null elsewhere).
//
// On a real Postgres with fsync on. --save writes the result to bench/results/gate.json, which README's figures are
// compared with; with --costs it replaces the costs in it and leaves the failovers.

import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { Pool, type PoolClient } from "pg";
import { createElector, type LeaderGate } from "../src/entry/index.ts";
import { postgres } from "../src/entry/postgres.ts";
import type { FaultKind } from "../test/chaos/faults.ts";
import { figuresOf, median } from "../test/chaos/figures.ts";
import { runGate } from "../test/chaos/gate-run.ts";
import { type PostgresStage, postgresStage } from "../test/chaos/postgres-stage.ts";

const ROUNDS_MIN = 20;
const STOP_ROUNDS_MIN = 5;
const CHECKS = 1_000_000;
const SLICE_MS = 400;
const CLIENTS = [1, 16] as const;
const REQUIRE_EPOCH = "select tenure_require_epoch($1::text, $2::bigint)";
const WORKERS = 3;
const LANES = 8;
const THINK_MS_MAX = 5;
const RESULT = new URL("results/gate.json", import.meta.url);

const KILLS: readonly FaultKind[] = ["kill", "term", "kill-busy", "kill-stale"];

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    rounds: { type: "string" },
    costs: { type: "boolean" },
    save: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const rounds = Number(values.rounds ?? ROUNDS_MIN);
if (!Number.isSafeInteger(rounds) || rounds < 1)
  throw new RangeError(`--rounds takes a whole number, not ${values.rounds}`);
process.exitCode = await main();

async function main(): Promise<number> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const stage = await postgresStage({ lanes: LANES, thinkMsMax: THINK_MS_MAX, timing: undefined, direct: true });
  try {
    if (values.costs === true) {
      const costs = await measureCosts(stage);
      console.log([`${stage.server}, ${rounds} rounds`, ...peopleOfCosts(costs)].join("\n"));
      if (values.save === true) await save({ ...stored(), costs_rounds: rounds, ...costs });
      if (values.json === true) console.log(JSON.stringify(costs));
      return 0;
    }
    const failover = await measureFailover(stage, stop.signal);
    const costs = await measureCosts(stage);
    const result = {
      bench: "gate",
      node: process.version,
      postgres: stage.server.replace("PostgreSQL ", ""),
      fsync: (await setting(stage, "fsync")) === "on",
      cores: cpus().length,
      rounds,
      costs_rounds: rounds,
      ...costs,
      ...failover.figures,
      lost_updates: failover.lostUpdates,
      failed: failover.failed,
    };
    console.log(people(result));
    if (values.save === true) await save(result);
    if (values.json === true) console.log(JSON.stringify(result));
    return result.failed.length === 0 ? 0 : 1;
  } finally {
    await stage.end();
  }
}

async function measureFailover(stage: PostgresStage, signal: AbortSignal) {
  const stops = Math.max(Math.min(rounds, STOP_ROUNDS_MIN), Math.round(rounds / 4));
  const deck = Array.from({ length: rounds }, (_, round) =>
    round < stops ? [...KILLS, "stop" as const] : KILLS,
  ).flat();
  const run = await runGate(stage, {
    deck,
    minutes: 60,
    seed: 1,
    workers: WORKERS,
    signal,
    log: (line) => console.error(line),
  });
  const of = (family: string) => figuresOf(run.failoverMs.get(family) ?? []);
  return {
    figures: {
      kill: of("kill"),
      kill_busy: of("kill-busy"),
      kill_stale: of("kill-stale"),
      term: of("term"),
      stop: of("stop"),
    },
    lostUpdates: run.lostUpdates,
    failed: [...run.failed],
  };
}

async function measureCosts(stage: PostgresStage) {
  const pool = new Pool({ connectionString: stage.database.url(), max: Math.max(...CLIENTS), idleTimeoutMillis: 0 });
  pool.on("error", () => undefined);
  const elector = createElector({
    scope: "bench",
    backend: postgres({ url: stage.database.url(), connect: () => pool.connect() }),
  });
  try {
    await pool.query(
      "create table if not exists bench_row (id integer primary key, n bigint not null) with (fillfactor = 50)",
    );
    await pool.query("insert into bench_row select n, 0 from generate_series(0, 63) n on conflict do nothing");
    const term = await elector.acquire();
    const check_ns = await measureCheck(elector.gate);
    const fenced = (id: number): Promise<void> => term.tx((client) => update(client, id));
    const unfenced = (id: number): Promise<void> => transaction(pool, id);
    const cpuUs = await cpuOf(pool);
    const one = await measureRatio({ with: fenced, without: unfenced }, CLIENTS[0], cpuUs);
    const many = await measureRatio({ with: fenced, without: unfenced }, CLIENTS[1], cpuUs);
    const proofs = {
      with: (id: number) => transaction(pool, id, (client) => term.fence((text, none) => client.query(text, none))),
      without: (id: number) => transaction(pool, id, (client) => client.query(REQUIRE_EPOCH, [term.scope, term.epoch])),
    };
    const proved = await measureRatio(proofs, CLIENTS[0], cpuUs);
    const provedMany = await measureRatio(proofs, CLIENTS[1], cpuUs);
    return {
      check_ns,
      fenced_ratio: { clients_1: one.ratio, clients_16: many.ratio },
      fenced_tx_per_s: { clients_1: one.with, clients_16: many.with },
      unfenced_tx_per_s: { clients_1: one.without, clients_16: many.without },
      fence_proof_ratio: { clients_1: proved.ratio, clients_16: provedMany.ratio },
      fence_proof_cpu_ratio: { clients_1: proved.cpuRatio, clients_16: provedMany.cpuRatio },
      proved_tx_per_s: { clients_1: proved.with, clients_16: provedMany.with },
      unproved_tx_per_s: { clients_1: proved.without, clients_16: provedMany.without },
    };
  } finally {
    await elector.close();
    await pool.end();
  }
}

async function measureCheck(gate: LeaderGate): Promise<number> {
  const times: number[] = [];
  for (let round = -3; round < rounds; round++) {
    // Heartbeats go out in between: on a busy machine all rounds together take longer than the gate stays open.
    await new Promise((resolve) => void setImmediate(resolve));
    const startedMs = performance.now();
    for (let at = 0; at < CHECKS; at++) gate.requireLeader();
    if (round >= 0) times.push(((performance.now() - startedMs) * 1e6) / CHECKS);
  }
  return Math.round(median(times));
}

interface Sides {
  readonly with: (id: number) => Promise<void>;
  readonly without: (id: number) => Promise<void>;
}

interface Slice {
  /** Transactions a second. */
  readonly rate: number;
  /** Of one transaction. */
  readonly cpuUs: number;
}

/** Processor time of this process and of the pool's sessions so far; NaN where the system does not say. */
async function cpuOf(pool: Pool): Promise<() => number> {
  const clients = await Promise.all(Array.from({ length: Math.max(...CLIENTS) }, () => pool.connect()));
  const pids: number[] = [];
  for (const client of clients) {
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    pids.push(rows[0]!.pid);
    client.release();
  }
  return () => {
    const { user, system } = process.cpuUsage();
    return pids.reduce((sum, pid) => sum + sessionCpuUs(pid), user + system);
  };
}

function sessionCpuUs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ", 1)[0]) / 1_000;
  } catch {
    return Number.NaN;
  }
}

/** Who goes first changes from round to round. */
async function measureRatio(sides: Sides, clients: number, cpuUs: () => number) {
  const ratios: number[] = [];
  const cpuRatios: number[] = [];
  const rates: Record<keyof Sides, number[]> = { with: [], without: [] };
  for (let round = -1; round < rounds; round++) {
    const slice: Partial<Record<keyof Sides, Slice>> = {};
    const order = ["with", "without"] as const;
    for (const side of round % 2 === 0 ? order : order.toReversed())
      slice[side] = await measureSlice(sides[side], clients, cpuUs);
    if (round < 0) continue;
    ratios.push(slice.without!.rate / slice.with!.rate);
    cpuRatios.push(slice.with!.cpuUs / slice.without!.cpuUs);
    for (const side of order) rates[side].push(slice[side]!.rate);
  }
  const cpuRatio = median(cpuRatios);
  return {
    ratio: Math.round(median(ratios) * 1_000) / 1_000,
    cpuRatio: Number.isFinite(cpuRatio) ? Math.round(cpuRatio * 1_000) / 1_000 : null,
    with: Math.round(median(rates.with)),
    without: Math.round(median(rates.without)),
  };
}

/** Each client has a row of its own, so that none waits for another's. */
async function measureSlice(
  transact: (id: number) => Promise<void>,
  clients: number,
  cpuUs: () => number,
): Promise<Slice> {
  const startedMs = performance.now();
  const startedCpuUs = cpuUs();
  let done = 0;
  await Promise.all(
    Array.from({ length: clients }, async (_, id) => {
      while (performance.now() - startedMs < SLICE_MS) {
        await transact(id);
        done++;
      }
    }),
  );
  return { rate: (done * 1_000) / (performance.now() - startedMs), cpuUs: (cpuUs() - startedCpuUs) / done };
}

async function transaction(
  pool: Pool,
  id: number,
  fence: (client: PoolClient) => Promise<unknown> | undefined = () => undefined,
): Promise<void> {
  const client = await pool.connect();
  let broken = true;
  try {
    await client.query("begin");
    await fence(client);
    await update(client, id);
    await client.query("commit");
    broken = false;
  } finally {
    client.release(broken);
  }
}

async function update(client: PoolClient, id: number): Promise<void> {
  await client.query("update bench_row set n = n + 1 where id = $1", [id]);
}

async function setting(stage: PostgresStage, name: string): Promise<string | undefined> {
  const [row] = await stage.database.query<{ value: string }>("select current_setting($1) as value", [name]);
  return row?.value;
}

type Result = Awaited<ReturnType<typeof measureCosts>> &
  Awaited<ReturnType<typeof measureFailover>>["figures"] & {
    postgres: string;
    node: string;
    fsync: boolean;
    failed: string[];
  };

function people(result: Result): string {
  const { kill, kill_busy, kill_stale, term, stop } = result;
  const named = { kill, "kill, 8 s statement runs": kill_busy, "kill, stale leader sends": kill_stale, term, stop };
  return [
    `PostgreSQL ${result.postgres} (fsync ${result.fsync ? "on" : "off"}), Node ${result.node}, ${rounds} rounds`,
    ...peopleOfCosts(result),
    "the next leader acts after      count   p50 ms   p99 ms   max ms",
    ...Object.entries(named).map(([name, { count, p50_ms, p99_ms, max_ms }]) =>
      [
        name.padEnd(30),
        String(count).padStart(6),
        ...[p50_ms, p99_ms, max_ms].map((ms) => ms.toFixed(1).padStart(8)),
      ].join(" "),
    ),
    ...result.failed.map((reason) => `FAILED: ${reason}`),
  ].join("\n");
}

function peopleOfCosts(costs: Awaited<ReturnType<typeof measureCosts>>): string[] {
  const each = ["clients_1", "clients_16"] as const;
  return [
    `gate check       ${costs.check_ns} ns`,
    ...each.map(
      (clients) =>
        `fence, ${clients.replace("_", " ").padEnd(10)} ${costs.fenced_ratio[clients]} × (${costs.fenced_tx_per_s[clients]} fenced, ${costs.unfenced_tx_per_s[clients]} unfenced transactions a second)`,
    ),
    ...each.map(
      (clients) =>
        `proof, ${clients.replace("_", " ").padEnd(10)} ${costs.fence_proof_ratio[clients]} ×, CPU ${costs.fence_proof_cpu_ratio[clients] ?? "unknown"} × (${costs.proved_tx_per_s[clients]} by term.fence, ${costs.unproved_tx_per_s[clients]} by tenure_require_epoch)`,
    ),
  ];
}

interface Saved {
  readonly failed: readonly string[];
  readonly costs_rounds: number;
}

function stored(): Saved {
  return JSON.parse(readFileSync(RESULT, "utf8")) as Saved;
}

/** Figures for the record come from a whole run in which nothing failed. */
async function save(result: Saved): Promise<void> {
  if (result.failed.length > 0 || rounds < ROUNDS_MIN) {
    console.error(`bench: not saved, because ${result.failed[0] ?? `${rounds} rounds are fewer than ${ROUNDS_MIN}`}`);
    return;
  }
  await mkdir(new URL(".", RESULT), { recursive: true });
  await writeFile(RESULT, `${JSON.stringify(result, null, 2)}\n`);
}
