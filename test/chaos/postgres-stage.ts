// A chaos run on a real PostgreSQL, with fsync on, as in production.

import { Pool } from "pg";
import { startPostgres, waitFor, type PostgresServer } from "../servers/index.ts";
import type { FaultKind } from "./faults.ts";
import type { Resource } from "./ledger.ts";
import { StaleSender } from "./postgres-office.ts";
import { CREATE_TABLES, lanesOf, READ_LANES, READ_ROWS, rowOf } from "./postgres-tables.ts";
import { Proxies, SCOPE, type Stage, type StageOptions } from "./stage.ts";
import type { StaleOutcome, WorkerConfig, WorkerKind } from "./messages.ts";

type Stored = Parameters<typeof rowOf>[0];

/** The session that holds the scope, and those that wait for it. */
const SESSIONS = `
select l.pid, l.granted from pg_locks l join tenure_leader_state s on s.scope = $1
where l.locktype = 'advisory' and l.objsubid = 1 and l.mode = 'ExclusiveLock'
  and l.classid::bigint = ((s.scope_key >> 32) & 4294967295) and l.objid::bigint = (s.scope_key & 4294967295)`;

/** `kind` "bare-lock" is the control, which knows nothing of Tenure's tables. */
export async function postgresStage(
  options: StageOptions,
  kind: Extract<WorkerKind, "postgres" | "bare-lock"> = "postgres",
): Promise<PostgresStage> {
  const server = await startPostgres();
  try {
    await server.query(CREATE_TABLES.replaceAll(";\n", ";"));
    await server.query("create sequence chaos_holder");
    await server.query("insert into chaos_lane select n, 0 from generate_series(0, $1::int - 1) n", [options.lanes]);
    const [row] = await server.query<{ version: string }>("select current_setting('server_version') as version");
    return new PostgresStage(server, options, kind, `PostgreSQL ${row!.version}`);
  } catch (error) {
    await server.end();
    throw error;
  }
}

export class PostgresStage implements Stage {
  readonly backend = "postgres";
  readonly server: string;
  readonly proxies: Proxies;
  readonly database: PostgresServer;
  readonly options: StageOptions;
  readonly #kind: WorkerKind;
  readonly #pool: Pool;
  readonly #stale: StaleSender;
  #base: readonly number[];
  #ended = false;

  constructor(database: PostgresServer, options: StageOptions, kind: WorkerKind, server: string) {
    this.database = database;
    this.server = server;
    this.proxies = new Proxies(database.port);
    this.options = options;
    this.#kind = kind;
    this.#base = Array.from({ length: options.lanes }, () => 0);
    this.#pool = new Pool({ connectionString: database.url(), max: 2 });
    this.#pool.on("error", () => undefined);
    this.#stale = new StaleSender(database.url(), SCOPE, "harness");
  }

  configure(place: number, name: string): WorkerConfig {
    const { lanes, thinkMsMax, timing, direct = false } = this.options;
    const url = new URL(this.database.url());
    if (!direct) url.port = String(this.proxies.at(place).port);
    const pool = direct || place % 2 === 0 ? "own" : "library";
    return { kind: this.#kind, name, scope: SCOPE, url: url.href, pool, lanes, thinkMsMax, timing };
  }

  async hasWaiters(count: number): Promise<boolean> {
    return (await this.#sessions()).filter(({ granted }) => !granted).length >= count;
  }

  async strike(kind: FaultKind): Promise<number> {
    switch (kind) {
      case "terminate": {
        const pid = await this.#holder();
        const atMs = performance.now();
        await this.#pool.query("select pg_terminate_backend($1)", [pid]);
        return atMs;
      }
      case "restart-fast":
        await this.database.restart("fast");
        return performance.now();
      case "restart-immediate":
        await this.database.restart("immediate");
        return performance.now();
      case "restart-kill":
        await this.database.kill();
        await this.database.start();
        return performance.now();
      default:
        throw new Error(`${kind} is no fault of Postgres`);
    }
  }

  /** Resolves when a fenced statement of a leader sleeps on the server. */
  async busy(): Promise<void> {
    const asleep = "select 1 from pg_stat_activity where wait_event = 'PgSleep' and state = 'active'";
    await waitFor("the fenced statement to run", async () => (await this.#pool.query(asleep)).rows.length > 0, 10_000);
  }

  sendStale(epoch: number, think: () => Promise<void>): Promise<StaleOutcome> {
    return this.#stale.attempt(epoch, think);
  }

  async read(): Promise<Resource> {
    const { rows } = await this.#pool.query<Stored>(READ_ROWS);
    const lanes = await this.#lanes();
    return { rows: rows.map(rowOf), lanes, base: this.#base };
  }

  async clear(): Promise<void> {
    this.#base = await this.#lanes();
    await this.#pool.query("truncate chaos_increment");
  }

  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.proxies.end();
    await Promise.allSettled([this.#pool.end(), this.#stale.close()]);
    await this.database.end();
  }

  async #holder(): Promise<number> {
    if (this.#kind === "bare-lock") {
      const text = "select pid from pg_locks where locktype = 'advisory' and granted";
      return (await this.#pool.query<{ pid: number }>(text)).rows[0]!.pid;
    }
    const holder = (await this.#sessions()).find(({ granted }) => granted);
    if (holder === undefined) throw new Error("no session holds the scope");
    return holder.pid;
  }

  async #sessions(): Promise<{ pid: number; granted: boolean }[]> {
    if (this.#kind === "bare-lock") {
      return (
        await this.#pool.query<{ pid: number; granted: boolean }>(
          "select pid, granted from pg_locks where locktype = 'advisory'",
        )
      ).rows;
    }
    return (await this.#pool.query<{ pid: number; granted: boolean }>(SESSIONS, [SCOPE])).rows;
  }

  async #lanes(): Promise<number[]> {
    return lanesOf((await this.#pool.query<object>(READ_LANES)).rows);
  }
}
