// Each adapter with its real library, as a service uses it: one pool for the life of the process. And the same libraries without
// their adapter, `term.fence` alone, to show what the adapters are for.

import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleJs } from "drizzle-orm/postgres-js";
import { sql as text } from "drizzle-orm";
import { CompiledQuery, Kysely, PostgresDialect, sql as raw } from "kysely";
import { Pool, type PoolConfig } from "pg";
import postgresJs from "postgres";
import { fencedTransaction as inDrizzle } from "../../src/entry/drizzle.ts";
import type { Term } from "../../src/entry/index.ts";
import { fencedTransaction as inKysely } from "../../src/entry/kysely.ts";
import type { PooledClient, PostgresTerm } from "../../src/entry/postgres.ts";
import { fencedTransaction as inPostgresJs } from "../../src/entry/postgres-js.ts";

export const LIBRARIES = ["kysely", "drizzle", "drizzle-postgres-js", "postgres-js"] as const;
export const PLAIN = ["plain-kysely", "plain-drizzle"] as const;
export type LibraryName = (typeof LIBRARIES)[number] | (typeof PLAIN)[number];

export type FencedTerm = Term & PostgresTerm<PooledClient>;
/** Sends one statement inside the transaction. */
export type Send = (statement: string) => Promise<unknown>;

export interface Library {
  transact<R>(term: FencedTerm, work: (send: Send) => Promise<R>): Promise<R>;
  /** Sessions that the pool has, or thinks that it has; undefined where it does not say. */
  sessions(): number | undefined;
  end(): Promise<void>;
}

export const APPLICATION = "adapter";

export function libraryOf(name: LibraryName, url: string, max: number): Library {
  const options: PoolConfig = { connectionString: url, application_name: APPLICATION, max };
  if (name.endsWith("postgres-js")) return overPostgresJs(name, url, max);
  const pool = new Pool(options);
  // An idle session that ends is the pool's to report: its users listen, as pg's documents say.
  pool.on("error", () => undefined);
  const db = new Kysely<{ written: { memo: string; epoch: number } }>({ dialect: new PostgresDialect({ pool }) });
  const drizzle = drizzlePg({ client: pool });
  const rest = { sessions: () => pool.totalCount, end: () => pool.end() };
  switch (name) {
    case "kysely":
      return {
        ...rest,
        transact: (term, work) => inKysely(term, db, (trx) => work((one) => raw.raw(one).execute(trx))),
      };
    case "plain-kysely":
      return {
        ...rest,
        transact: (term, work) =>
          db.transaction().execute(async (trx) => {
            await term.fence((one, values) => trx.executeQuery(CompiledQuery.raw(one, [...values])));
            return work((one) => raw.raw(one).execute(trx));
          }),
      };
    case "drizzle":
      return {
        ...rest,
        transact: (term, work) => inDrizzle(term, drizzle, (tx) => work((one) => tx.execute(text.raw(one)))),
      };
    default:
      return {
        ...rest,
        transact: (term, work) =>
          drizzle.transaction(async (tx) => {
            await term.fence((one) => tx.execute(text.raw(one)));
            return work((one) => tx.execute(text.raw(one)));
          }),
      };
  }
}

function overPostgresJs(name: LibraryName, url: string, max: number): Library {
  const sql = postgresJs(url, {
    max,
    connection: { application_name: APPLICATION },
    backoff: false,
    onnotice: () => undefined,
  });
  const db = drizzleJs({ client: sql });
  const rest = { sessions: () => undefined, end: () => sql.end({ timeout: 1 }) };
  switch (name) {
    case "postgres-js":
      return {
        ...rest,
        transact: (term, work) => inPostgresJs(term, sql, (tx) => work(async (one) => tx.unsafe(one))),
      };
    default:
      return {
        ...rest,
        transact: (term, work) => inDrizzle(term, db, (tx) => work((one) => tx.execute(text.raw(one)))),
      };
  }
}
