// `npm run bench -- txn [--clients 1,8,64] [--nodes N] [--rounds N] [--window-ms N] [--alone] [--json]`: one transaction puts one value of 128 bytes on each of
// three islands, next to PostgreSQL: one row on each of three servers, by PREPARE TRANSACTION at all in parallel, a record of the decision that is committed
// at the first, and COMMIT PREPARED at all in parallel. Both sync everything, as they do by default; islands have TLS, PostgreSQL's driver none.
//
// - All sides take turns of a window in each round, and who goes first changes; the median of the rounds counts, and of their ratios.
// - The record of the decision is what a correct driver can't do without. The ratio without it is told too (`ratio_undecided`), and the one to a driver that
//   prepares at two servers only and decides at the third, with its row (`ratio_home`).
// - One process loads all of them: see txn-sides.ts.
// - `processor_us`: what one transaction costs all islands together. It varies by a few per cent where the rates vary by twenty.

import { parseArgs } from "node:util";
import { ISLANDS_START_MS, TestIslands } from "../test/archipelago/test-islands.ts";
import { median } from "../test/chaos/figures.ts";
import { type PostgresServer, startPostgres } from "../test/servers/index.ts";
import { type ProcessorTime, processorTimeOf, spentBetween } from "./processor-time.ts";
import { counted, pause, rounded, say } from "./stage.ts";
import { TxnGenerator, type TxnWindow } from "./txn-generator.ts";
import { accountsFor, TABLES } from "./txn-postgres.ts";
import { type Opened, type SideName, WAYS } from "./txn-sides.ts";

const CLIENTS = "1,8,64";
const ISLANDS = 3;
const ROUNDS = 7;
const WINDOW_MS = 2_000;
const WARM_MS = 3_000;
const EXIT_INTERRUPTED = 130;
/** Nobody would run it with what tests give it. What is prepared must have its place: the default is none. */
const POSTGRES_SETTINGS = {
  shared_buffers: "256MB",
  max_wal_size: "2GB",
  max_connections: "300",
  max_prepared_transactions: "300",
};

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    clients: { type: "string" },
    nodes: { type: "string" },
    rounds: { type: "string" },
    "window-ms": { type: "string" },
    "warm-ms": { type: "string" },
    alone: { type: "boolean" },
    json: { type: "boolean" },
  },
});
const rounds = counted("rounds", values.rounds, ROUNDS);
const windowMs = counted("window-ms", values["window-ms"], WINDOW_MS);
const warmMs = counted("warm-ms", values["warm-ms"], WARM_MS);
const nodes = counted("nodes", values.nodes, 1);
const counts = (values.clients ?? CLIENTS).split(",").map((text) => counted("clients", text, 1));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(EXIT_INTERRUPTED));

const result = await main();
for (const row of result.rows) console.log(JSON.stringify(row));
if (values.json === true) console.log(JSON.stringify(result));

async function main() {
  const generator = new TxnGenerator();
  const servers: PostgresServer[] = [];
  say(`starting ${ISLANDS} islands of ${nodes}`);
  const islands = await TestIslands.make({ islands: ISLANDS, nodes });
  try {
    for (const island of islands.all) island.start();
    await islands.settled(ISLANDS_START_MS);
    if (values.alone !== true) await startPeer(servers);
    const [version] = (await servers[0]?.query<{ version: string }>("show server_version")) ?? [];
    const rows: Awaited<ReturnType<typeof measure>>[] = [];
    for (const clients of counts) {
      for (const side of await sides(islands, servers)) await generator.open(side, clients);
      rows.push(await measure(generator, clients, islands));
      say(JSON.stringify(rows.at(-1)));
      await generator.close();
    }
    const peer =
      version === undefined
        ? null
        : { name: "PostgreSQL", servers: servers.length, version: Object.values(version)[0] ?? "" };
    return { bench: "txn", islands: ISLANDS, nodes_each: nodes, peer, rows };
  } finally {
    generator.end();
    await Promise.all(servers.map((server) => server.end()));
    await islands.end();
  }
}

async function startPeer(servers: PostgresServer[]): Promise<void> {
  say(`starting ${ISLANDS} servers of PostgreSQL`);
  for (let at = 0; at < ISLANDS; at++) servers.push(await startPostgres({ settings: POSTGRES_SETTINGS }));
  for (const server of servers) {
    await server.query(TABLES);
    await server.query(accountsFor(Math.max(...counts)));
    await server.query("vacuum analyze accounts");
  }
}

async function sides(islands: TestIslands, servers: readonly PostgresServer[]): Promise<readonly Opened[]> {
  const { island } = await islands.leader();
  const hashes = new Set((await islands.views()).map(({ self }) => self.backend_hash));
  const tenure = {
    name: "tenure",
    url: island.url,
    certificate: await islands.issue("tc", "bench"),
    islands: [...hashes],
  } as const;
  const urls = servers.map((server) => server.url());
  return [tenure, ...(servers.length === 0 ? [] : WAYS.map((name) => ({ name, urls })))];
}

async function measure(generator: TxnGenerator, clients: number, islands: TestIslands) {
  const names: readonly SideName[] = values.alone === true ? ["tenure"] : ["tenure", ...WAYS];
  const found = new Map<SideName, TxnWindow[]>(names.map((name) => [name, []]));
  const spent = new Map<string, number>();
  for (const name of names) await generator.window(name, warmMs);
  for (let round = 0; round < rounds; round++) {
    for (let at = 0; at < names.length; at++) {
      const name = names[(round + at) % names.length]!;
      await pause();
      const before = processorTime(islands);
      found.get(name)!.push(await generator.window(name, windowMs));
      if (name !== "tenure") continue;
      for (const [part, us] of spentBetween(before, processorTime(islands)))
        spent.set(part, (spent.get(part) ?? 0) + us);
    }
  }
  const all = (name: SideName, of: (one: TxnWindow) => number): readonly number[] => found.get(name)!.map(of);
  const perS = (name: SideName): number => rounded(median(all(name, (one) => one.perS)), 1);
  const p50 = (name: SideName): number => rounded(median(all(name, (one) => one.p50Ms)), 2);
  const p99 = (name: SideName): number => rounded(median(all(name, (one) => one.p99Ms)), 2);
  const ratio = (to: SideName): number => {
    const theirs = all(to, (one) => one.perS);
    return rounded(median(all("tenure", (one) => one.perS).map((ours, at) => ours / theirs[at]!)), 2);
  };
  const transactions = all("tenure", ({ perS: each }) => (each * windowMs) / 1_000).reduce((sum, one) => sum + one, 0);
  const parts = [...spent].map(([part, us]) => [part, rounded(us / transactions, 0)] as const);
  const own = {
    clients,
    tenure_per_s: perS("tenure"),
    p50_ms: p50("tenure"),
    p99_ms: p99("tenure"),
    pending: all("tenure", ({ pending }) => pending).reduce((sum, one) => sum + one, 0),
    processor_us: Object.fromEntries(parts.filter(([, us]) => us > 0)),
  };
  if (values.alone === true) return { ...own, peer_per_s: null, ratio: null };
  return {
    ...own,
    peer_per_s: perS("decided"),
    peer_p50_ms: p50("decided"),
    peer_p99_ms: p99("decided"),
    ratio: ratio("decided"),
    undecided_per_s: perS("undecided"),
    ratio_undecided: ratio("undecided"),
    home_per_s: perS("home"),
    ratio_home: ratio("home"),
  };
}

function processorTime(islands: TestIslands): ProcessorTime {
  const pids = islands.all.flatMap(({ node: { pid } }) => pid ?? []);
  return processorTimeOf(pids.map((pid) => ({ label: "islands", pid })));
}
