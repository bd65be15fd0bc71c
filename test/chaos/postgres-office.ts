// A worker's office on Tenure's Postgres backend: every write is a `term.tx`; stale writes call the SQL function of the
// fence by hand, in a transaction of their own, past the gate and past the library.

import { Pool, type PoolClient } from "pg";
import { createElector, TenureError, type Transition } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import type { StaleOutcome, WorkerConfig } from "./messages.ts";
import type { Office, OfficeTerm } from "./office.ts";
import { lanesOf, READ_LANES, WRITE, WRITE_STALE } from "./postgres-tables.ts";

const STALE_CONNECTIONS = 4;

export function postgresOffice(config: WorkerConfig, onTransition: (transition: Transition) => void): Office {
  const { scope, url, name } = config;
  const pool = config.pool === "own" ? warmPool(url, config.lanes) : undefined;
  const elector = createElector({
    scope,
    identity: name,
    backend: postgres({ url, connect: pool && (() => pool.connect()), ...config.timing }),
    onTransition,
  });
  const stale = new StaleSender(url, scope, name);
  return {
    lead: (work, signal) => elector.lead((term) => work(termOf(term)), { signal }),
    stale: (epoch, think) => stale.attempt(epoch, think),
    newest: () => stale.newest(),
    close: async () => {
      await elector.close();
      await stale.close();
      await pool?.end();
    },
  };

  function termOf(term: PostgresTerm): OfficeTerm {
    return {
      epoch: term.epoch,
      signal: term.signal,
      isOpen: () => elector.gate.isLeader,
      // Without a fence, where that can be: no older epoch can write any more since this term began.
      read: async () =>
        lanesOf(
          pool === undefined
            ? await term.tx(async (client) => (await client.query(READ_LANES)).rows)
            : (await pool.query<object>(READ_LANES)).rows,
        ),
      write: (increment, think) =>
        term.tx(async (client) => {
          await think();
          const { lane, value, worker, seq } = increment;
          await client.query(WRITE, [lane, value, worker, seq, term.epoch]);
          await think();
        }),
      // Whatever else it says, it says that nothing was written (trap 66), and the ledger takes it at its word.
      outcomeOf: (error) => (TenureError.is(error) && error.code === "OUTCOME_UNKNOWN" ? "unknown" : "refused"),
      busy: (ms) => term.tx(async (client) => void (await client.query("select pg_sleep($1)", [ms / 1_000]))),
    };
  }
}

type PostgresTerm = Parameters<
  Parameters<ReturnType<typeof createElector<ExtrasOf<ReturnType<typeof postgres>>>>["lead"]>[0]
>[0];
type ExtrasOf<B> = B extends { seat(claim: never): { extras(term: never): infer Extras extends object } }
  ? Extras
  : never;

/** As in a service that works on other things too: its connections are open when it becomes the leader. */
function warmPool(url: string, size: number): Pool {
  const pool = new Pool({ connectionString: url, max: size + 2, min: size, idleTimeoutMillis: 0 });
  pool.on("error", ignore);
  const opened = Array.from({ length: size }, () => pool.connect().then((client) => client.release(), ignore));
  void Promise.all(opened);
  return pool;
}

/** Fenced transactions with whatever epoch it is told, by hand. */
export class StaleSender {
  readonly #pool: Pool;
  readonly #scope: string;
  readonly #name: string;

  constructor(url: string, scope: string, name: string) {
    this.#scope = scope;
    this.#name = name;
    this.#pool = new Pool({
      connectionString: url,
      max: STALE_CONNECTIONS,
      connectionTimeoutMillis: 2_000,
      query_timeout: 5_000,
    });
    this.#pool.on("error", () => undefined);
  }

  /** `think`: between the fence and the write, as a leader does. */
  async attempt(epoch: number, think: () => Promise<void>): Promise<StaleOutcome> {
    let client: PoolClient;
    try {
      client = await this.#pool.connect();
    } catch {
      // Nothing was sent, so nothing was refused either.
      return "unknown";
    }
    let outcome: StaleOutcome = "unknown";
    try {
      client.on("error", ignore);
      await client.query(`begin; select tenure_require_epoch(${client.escapeLiteral(this.#scope)}, ${epoch})`);
      await think();
      await client.query(WRITE_STALE, [this.#name, epoch]);
      await client.query("commit");
      outcome = "accepted";
    } catch (error) {
      if ((error as { code?: string }).code === "TN001") {
        outcome = "refused";
        await client.query("rollback").catch(ignore);
      }
    } finally {
      client.off("error", ignore);
      client.release(outcome === "unknown");
    }
    return outcome;
  }

  async newest(): Promise<number> {
    const { rows } = await this.#pool.query<{ epoch: string }>(
      "select epoch::text from tenure_leader_state where scope = $1",
      [this.#scope],
    );
    return Number(rows[0]?.epoch ?? 0);
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

function ignore(): void {}
