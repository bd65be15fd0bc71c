// `testBackend().pool` in place of a pool of `pg`: the query builders' own transactions, fenced, without a database.

import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text as column } from "drizzle-orm/pg-core";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import type { Pool } from "pg";
import { describe, expect, it } from "vitest";
import { createElector, type Term } from "../src/entry/index.ts";
import type { PostgresTerm } from "../src/entry/postgres.ts";
import { testBackend } from "../src/entry/testing.ts";

const written = pgTable("written", { what: column().notNull() });
type Tables = { written: { what: string } };
type FencedTerm = Term & PostgresTerm<never>;

const clients: Record<string, (pool: Pool, term: FencedTerm, isRight: boolean) => Promise<unknown>> = {
  kysely: async (pool, term, isRight) => {
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    await db.transaction().execute(async (trx) => {
      await term.fence((text, values) => (isRight ? trx : db).executeQuery(CompiledQuery.raw(text, values)));
      await trx.insertInto("written").values({ what: "rent" }).execute();
    });
  },
  drizzle: async (pool, term, isRight) => {
    const db = drizzle({ client: pool });
    await db.transaction(async (tx) => {
      await term.fence((text) => (isRight ? tx : db).execute(text));
      await tx.insert(written).values({ what: "rent" });
    });
  },
};

describe.each(Object.keys(clients))("%s on the pool of a test backend", (name) => {
  async function stage() {
    const backend = testBackend();
    const elector = createElector({ scope: "payer", backend: backend.instance("a") });
    const next = createElector({ scope: "payer", backend: backend.instance("b") });
    const term = await elector.acquire();
    const post = (isRight: boolean): Promise<unknown> =>
      clients[name]!(backend.pool as unknown as Pool, term as unknown as FencedTerm, isRight);
    return { backend, next, post };
  }

  it("commits with the epoch in force", async () => {
    const { backend, post } = await stage();
    await post(true);
    expect(backend.pool.committed).toMatchObject([{ values: ["rent"] }]);
  });

  it("is refused where the database was written for the transaction, and writes nothing", async () => {
    const { backend, post } = await stage();
    await expect(post(false)).rejects.toMatchObject({ code: "TX_MISUSED" });
    expect(backend.pool.committed).toEqual([]);
  });

  it("is refused with an epoch that is over, and writes nothing", async () => {
    const { backend, next, post } = await stage();
    await backend.kill("a");
    await next.acquire();
    await expect(post(true)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(backend.pool.committed).toEqual([]);
  });
});
