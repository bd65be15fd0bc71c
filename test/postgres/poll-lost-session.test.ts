// Fifty scopes on one connection (`wait: "poll"`) in each of two processes' worth of electors, and the session that carries all of
// them is lost: ended by the server, reset by the network, or silent. Every term ends in time, every scope is led again, and no
// epoch of a scope is ever written in by two at the resource.

import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createElector, type Elector, type Term, type Transition } from "../../src/entry/index.ts";
import { type PooledClient, postgres, type PostgresTerm } from "../../src/entry/postgres.ts";
import { type PostgresServer, startPostgres, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";

const SCOPES = 50;
/** Long enough for fifty heartbeats on one connection of a busy machine. */
const TIMING = { heartbeatMs: 500, serverTimeoutMs: 6_000, marginMs: 1_500, retryMinMs: 50, retryMaxMs: 500 } as const;

let server: PostgresServer;
let pool: Pool;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  await server.query(
    "create table resource (scope text, epoch bigint, writer text, at timestamptz default clock_timestamp())",
  );
  pool = new Pool({ connectionString: server.url(), max: 10 });
  pool.on("error", () => undefined);
}, 120_000);

afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
  await server.query("truncate resource");
});

afterAll(async () => {
  await pool?.end();
  await server?.end();
});

/** One process: fifty electors, one session for all of them, through a proxy of its own. */
class Crew {
  readonly transitions = new Map<string, Transition[]>();
  readonly electors: Elector<PostgresTerm<PooledClient>>[] = [];
  readonly proxy: TcpProxy;
  readonly #name: string;
  readonly #works: Promise<unknown>[] = [];

  constructor(name: string, proxy: TcpProxy) {
    this.#name = name;
    this.proxy = proxy;
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;
    // Its transactions come from a pool that is not cut: a term that is over must be refused by gate or fence.
    const backend = postgres({ ...TIMING, url, wait: "poll", connect: () => pool.connect() });
    for (let at = 0; at < SCOPES; at++) this.#add(`scope-${at}`, backend);
  }

  #add(scope: string, backend: ReturnType<typeof postgres>): void {
    const seen: Transition[] = [];
    this.transitions.set(scope, seen);
    const elector = createElector({ scope, backend, identity: this.#name, onTransition: (one) => void seen.push(one) });
    this.electors.push(elector);
    this.#works.push(elector.lead((term) => this.#work(term)).catch(() => undefined));
  }

  async #work(term: Term & PostgresTerm<PooledClient>): Promise<void> {
    while (!term.signal.aborted) {
      const text = "insert into resource (scope, epoch, writer) values ($1, $2, $3)";
      await term.tx((db) => db.query(text, [term.scope, term.epoch, this.#name])).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  get leading(): number {
    return this.electors.filter(({ gate }) => gate.isLeader).length;
  }

  get ends(): number {
    return [...this.transitions.values()].flat().filter(({ kind }) => kind === "ended").length;
  }

  /** Scopes in which `other` led before the gate here was closed. */
  closedAfter(other: Crew): string[] {
    return [...this.transitions].flatMap(([scope, seen]) => {
      const closed = seen.find(({ kind }) => kind === "suspended" || kind === "ended");
      const led = other.transitions.get(scope)?.find(({ kind }) => kind === "leading");
      return led !== undefined && (closed?.atMs ?? Infinity) > led.atMs ? [scope] : [];
    });
  }

  async close(): Promise<void> {
    await this.proxy.heal();
    await Promise.all(this.electors.map((elector) => elector.close()));
    await Promise.all(this.#works);
    await this.proxy.end();
  }
}

async function crew(name: string): Promise<Crew> {
  const made = new Crew(name, await startProxy({ host: "127.0.0.1", port: server.port }));
  closing.push(() => made.close());
  return made;
}

const writersOf = `select scope, epoch, count(distinct writer)::int as writers from resource group by scope, epoch`;

test.each(["ended by the server", "reset by the network", "silent"])(
  `the session of ${SCOPES} scopes is %s: all terms end in time, all scopes are led again, and no epoch has two writers`,
  async (how) => {
    const first = await crew("first");
    await waitFor("the first to lead all", () => first.leading === SCOPES);
    expect(first.proxy.connections).toBe(1);
    const second = await crew("second");
    await waitFor("all scopes to be written", async () => (await server.query(writersOf)).length === SCOPES);
    const lostMs = performance.now();
    if (how === "silent") first.proxy.cut();
    if (how === "reset by the network") first.proxy.reset();
    if (how === "ended by the server") {
      await server.query(`select pg_terminate_backend(l.pid) from pg_locks l where l.locktype = 'advisory'
        and l.mode = 'ExclusiveLock' group by l.pid having count(*) > 1`);
    }
    await waitFor("every gate to be closed", () => first.leading === 0 || first.ends >= SCOPES);
    const closedMs = performance.now() - lostMs;
    await waitFor("every term to end", () => first.ends >= SCOPES);
    await waitFor("every scope to be led again", () => first.leading + second.leading === SCOPES);
    if (how === "silent") await first.proxy.heal();
    await waitFor("every scope to be written in a second epoch", async () => {
      const epochs = await server.query<{ scope: string }>(writersOf);
      const many = Map.groupBy(epochs, ({ scope }) => scope);
      return many.size === SCOPES && [...many.values()].every((one) => one.length >= 2);
    });
    const rows = await server.query<{ scope: string; epoch: string; writers: number }>(writersOf);
    expect(rows.filter(({ writers }) => writers !== 1)).toEqual([]);
    // In the order of the writes, epochs of a scope never go back.
    const back = await server.query(`select from (select epoch < max(epoch) over (partition by scope order by at
      rows between unbounded preceding and current row) as is_back from resource) r where is_back`);
    expect(back).toEqual([]);
    // Nobody ended the session at the server: there the old leader's gate is closed before another leads.
    if (how === "silent") expect(first.closedAfter(second)).toEqual([]);
    console.info(`${how}: gates closed after ${closedMs.toFixed(0)} ms; second leads ${second.leading} of ${SCOPES}`);
  },
  120_000,
);
