// Sessions and clients from a user's own pool (`connect: () => pool.connect()`).
//
// Invariants: a client that served a session is given back destroyed, never to the pool (traps 39 and 41: it may hold
// a lock or have settings of ours); a client that arrives too late is given back destroyed too.

import { mustLive, sqlLifeOf } from "../../core/kit/sql-life.ts";
import type { SqlDriver, SqlLender, SqlLoan, SqlRow } from "../../ports/backends/sql.ts";
import { finish, run } from "./client.ts";
import { type PgConnection, PgSession } from "./session.ts";

/** A client of `pg`, as far as we need one: of a user's pool, or of ours. `tx` releases it, whoever works with it does not. */
export interface PooledClient {
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as in `pg`: the caller knows the row's type
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: unknown[],
  ): Promise<{ rows: Row[]; rowCount: number | null; command: string }>;
  on(event: "error" | "end" | "notification", listener: (argument: never) => void): unknown;
  release(destroy?: boolean): void;
}

type Connect<Client> = () => Promise<Client>;

export function poolDriver(connect: Connect<PooledClient>, where: string): SqlDriver {
  return { where, open: (events) => new PgSession(poolConnection(connect), events) };
}

function poolConnection(connect: Connect<PooledClient>): PgConnection {
  let taken: PooledClient | undefined;
  let unwanted = false;
  const drop = (): void => {
    unwanted = true;
    const client = taken;
    taken = undefined;
    client?.release(true);
  };
  const client = Promise.resolve()
    .then(connect)
    .then((arrived) => {
      taken = arrived;
      // A pool listens only to its idle clients: an error of this one would end the process.
      arrived.on("error", () => undefined);
      if (unwanted) drop();
      return arrived;
    });
  return {
    client,
    // Destroyed, not given back to the pool: it has settings of ours.
    end: async () => drop(),
    destroy: () => {
      client.catch(() => undefined);
      drop();
    },
  };
}

export function poolLender<Client extends PooledClient>(connect: Connect<Client>): SqlLender<Client> {
  return {
    borrow: async () => loanOf(await connect()),
    // The pool is the user's to close.
    close: async () => undefined,
  };
}

export function loanOf<Client extends PooledClient>(client: Client): SqlLoan<Client> {
  const life = sqlLifeOf(client);
  let isBack = false;
  return {
    client,
    query: async <Row extends object = SqlRow>(text: string, values?: readonly unknown[]) => {
      mustLive(life);
      return (await run(client, text, values)) as Row[];
    },
    finish: async (text) => {
      mustLive(life);
      return finish(client, text);
    },
    giveBack: (broken) => {
      if (isBack) return;
      isBack = true;
      client.release(broken || life.hasEnded);
    },
  };
}
