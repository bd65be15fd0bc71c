// `testBackend().pool` in place of a pool of `pg`: the query builders' own transactions, fenced, without a database.

import { sql } from "drizzle-orm";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { pgTable, text as column } from "drizzle-orm/pg-core";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import type { Pool } from "pg";
import { describe, expect, it } from "vitest";
import { fencedTransaction as fencedDrizzle } from "../src/entry/drizzle.ts";
import { createElector, type Term } from "../src/entry/index.ts";
import { fencedTransaction as fencedKysely } from "../src/entry/kysely.ts";
import type { PostgresTerm } from "../src/entry/postgres.ts";
import { testBackend } from "../src/entry/testing.ts";

const written = pgTable("written", { what: column().notNull() });
type Tables = { written: { what: string } };
type Tx = Parameters<Parameters<NodePgDatabase["transaction"]>[0]>[0];
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
  "fencedTransaction of tenure/kysely": async (pool, term, isRight) => {
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    const post = (on: Kysely<Tables>): Promise<unknown> =>
      fencedKysely(term, on, (trx) => trx.insertInto("written").values({ what: "rent" }).execute());
    await (isRight ? post(db) : db.transaction().execute(post));
  },
  "fencedTransaction of tenure/drizzle": async (pool, term, isRight) => {
    const db = drizzle({ client: pool });
    const post = (on: Pick<typeof db, "transaction">): Promise<unknown> =>
      fencedDrizzle(term, on, async (tx: Tx) => {
        await tx.insert(written).values({ what: "rent" });
      });
    await (isRight ? post(db) : db.transaction(post));
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

type Send = (text: string) => Promise<unknown>;

const adapters: Record<string, (pool: Pool, term: FencedTerm, work: (send: Send) => Promise<void>) => Promise<void>> = {
  kysely: (pool, term, work) =>
    fencedKysely(term, new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) }), (trx) =>
      work((text) => trx.executeQuery(CompiledQuery.raw(text))),
    ),
  drizzle: (pool, term, work) =>
    fencedDrizzle(term, drizzle({ client: pool }), (tx: Tx) => work((text) => tx.execute(sql.raw(text)))),
};

describe.each(Object.keys(adapters))("fencedTransaction of tenure/%s on the pool of a test backend", (name) => {
  async function stage(query?: (text: string) => object[]) {
    const backend = testBackend(query === undefined ? {} : { query });
    const elector = createElector({ scope: "payer", backend: backend.instance("a") });
    const next = createElector({ scope: "payer", backend: backend.instance("b") });
    const term = await elector.acquire();
    const run = (work: (send: Send) => Promise<void>): Promise<void> =>
      adapters[name]!(backend.pool as unknown as Pool, term as unknown as FencedTerm, work);
    return { backend, next, run };
  }

  it("keeps nothing of work that throws, and throws the same", async () => {
    const { backend, run } = await stage();
    const own = new Error("no");
    const posted = run(async (send) => {
      await send("insert into written");
      throw own;
    });
    await expect(posted).rejects.toBe(own);
    expect(backend.pool.committed).toEqual([]);
  });

  it("refuses a COMMIT inside of its work", async () => {
    const { run } = await stage();
    const posted = run(async (send) => {
      await send("commit");
    });
    await expect(posted).rejects.toMatchObject({ code: "TX_MISUSED", message: /was ended inside of its work/ });
  });

  it("refuses a statement that failed and was ignored, and writes nothing", async () => {
    const { backend, run } = await stage((text) => {
      if (text === "fail") throw Object.assign(new Error("no"), { code: "23505", severity: "ERROR" });
      return [];
    });
    const posted = run(async (send) => {
      await send("insert into written");
      await send("fail").catch(() => undefined);
    });
    await expect(posted).rejects.toMatchObject({ code: "TX_MISUSED", message: /had a statement that failed/ });
    expect(backend.pool.committed).toEqual([]);
  });

  it("is ended by the next leader in the middle, and writes nothing", async () => {
    const { backend, next, run } = await stage();
    const posted = run(async (send) => {
      await send("insert into written");
      await backend.kill("a");
      await next.acquire();
    });
    await expect(posted).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(backend.pool.committed).toEqual([]);
  });
});
