// What a term can do depends on its backend, and the compiler knows. `npm run check` compiles this file; what must
// not compile is marked, and a mark on something that does compile is an error too. Nothing here is executed: at run
// time each test only says that the file was read.

import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { CompiledQuery, type Kysely, type Transaction } from "kysely";
import type { Client, Pool, PoolClient } from "pg";
import type { Sql } from "postgres";
import { describe, expectTypeOf, it } from "vitest";
import { type EtcdTerm, etcd } from "../../src/entry/etcd.ts";
import { createElector, type Elector, type Term } from "../../src/entry/index.ts";
import { type FenceRun, postgres, type PostgresTerm } from "../../src/entry/postgres.ts";
import { servers, type ServersTerm, type StoredValue } from "../../src/entry/servers.ts";
import { testBackend } from "../../src/entry/testing.ts";

type TermOf<E> = E extends Elector<infer Extras> ? Term & Extras : never;

const scope = "payer";
const onUrl = () => createElector({ scope, backend: postgres("postgres://127.0.0.1/db") });
const onPool = (pool: Pool) => createElector({ scope, backend: postgres({ connect: () => pool.connect() }) });
const onEtcd = () => createElector({ scope, backend: etcd("http://127.0.0.1:2379") });
const onServers = () => createElector({ scope, backend: servers("http://127.0.0.1:7401") });
const inMemory = () => createElector({ scope, backend: testBackend() });

describe("a term of Postgres", () => {
  it("has tx and fence", () => {
    expectTypeOf<TermOf<ReturnType<typeof onUrl>>>().toHaveProperty("tx");
    expectTypeOf<TermOf<ReturnType<typeof onUrl>>>().toHaveProperty("fence");
    expectTypeOf<TermOf<ReturnType<typeof onUrl>>>().toExtend<Term>();
  });

  it("gives tx the client of the user's own pool", () => {
    void ((pool: Pool) =>
      onPool(pool).lead((term) =>
        term.tx(async (client) => {
          expectTypeOf(client).toEqualTypeOf<PoolClient>();
          return (await client.query<{ n: number }>("select 1 as n")).rows[0]?.n;
        }),
      ));
  });

  it("infers what tx and lead resolve to", () => {
    const run = (pool: Pool) => onPool(pool).lead((term) => term.tx(async () => ({ paid: 3 })));
    expectTypeOf<ReturnType<typeof run>>().toEqualTypeOf<Promise<{ paid: number }>>();
  });
});

describe("the run of a fence", () => {
  type Fence = PostgresTerm<PoolClient>["fence"];

  it("is each client's own way to send a text, without a cast", () => {
    void (async (fence: Fence, client: Client, pooled: PoolClient, sql: Sql, trx: Transaction<object>) => {
      await fence((text, values) => client.query(text, values));
      await fence((text, values) => pooled.query(text, values));
      await fence((text, values) => sql.unsafe(text, values));
      await sql.begin((tx) => fence((text, values) => tx.unsafe(text, values)));
      await fence((text, values) => trx.executeQuery(CompiledQuery.raw(text, values)));
    });
    void (async (fence: Fence, db: NodePgDatabase, other: PostgresJsDatabase, kysely: Kysely<object>) => {
      await db.transaction((tx) => fence((text) => tx.execute(text)));
      await other.transaction((tx) => fence((text) => tx.execute(text)));
      await kysely.transaction().execute((trx) => fence((text) => trx.executeQuery(CompiledQuery.raw(text))));
    });
  });

  it("may be one that was written for values of any type", () => {
    expectTypeOf<(text: string, values: unknown[]) => Promise<unknown>>().toExtend<FenceRun>();
    expectTypeOf<(text: string, values: readonly (string | number)[]) => Promise<void>>().toExtend<FenceRun>();
  });

  it("must give a promise", () => {
    expectTypeOf<() => undefined>().not.toExtend<FenceRun>();
  });
});

describe("a term of the test backend", () => {
  it("has tx and fence, with a client of its own", () => {
    void (() =>
      inMemory().lead(async (term) => {
        await term.fence((text, values) => term.tx((client) => client.query(text, values)));
        return term.tx(async (client) => (await client.query<{ n: number }>("select 1 as n")).rows[0]?.n);
      }));
  });

  it("has the values of Tenure's own servers too", () => {
    void (async (work: (term: Term & ServersTerm) => Promise<void>) => {
      const backend = testBackend();
      await createElector({ scope, backend }).lead((term) => work(term));
      await createElector({ scope, backend: backend.instance("a") }).lead((term) => work(term));
    });
  });

  it("fits code that was written for a pool of pg", () => {
    void (async (work: (term: Term & PostgresTerm<PoolClient>) => Promise<void>) => {
      const backend = testBackend<PoolClient>();
      await createElector({ scope, backend }).lead((term) => work(term));
      await createElector({ scope, backend: backend.instance("a") }).lead((term) => work(term));
    });
  });
});

describe("a term of Tenure's own servers", () => {
  it("has get, put and delete, of lead and by hand", () => {
    expectTypeOf<TermOf<ReturnType<typeof onServers>>>().toExtend<Term & ServersTerm>();
    void (() =>
      onServers().lead(async (term) => {
        expectTypeOf(term.get("cursor")).toEqualTypeOf<Promise<StoredValue | null>>();
        const { version } = await term.put("cursor", { at: [1, null, "x"] }, { ifVersion: 0 });
        expectTypeOf(version).toEqualTypeOf<number>();
        return (await term.delete("cursor", { ifVersion: version })).deleted;
      }));
    void (async () => {
      await using term = await onServers().acquire();
      await term.put("cursor", 1);
    });
  });

  it("takes what JSON can say, and conditions that there are", () => {
    void ((term: ServersTerm) => {
      // @ts-expect-error: a date is no JSON.
      void term.put("cursor", new Date());
      // @ts-expect-error: the scope and the epoch are the term's own.
      void term.put("cursor", 1, { epoch: 7 });
      // @ts-expect-error: servers have no SQL transaction.
      void term.tx;
    });
  });

  it("is not a term of etcd, which has no values", () => {
    void (() =>
      onEtcd().lead((term) => {
        // @ts-expect-error: no values there.
        void term.put;
      }));
  });
});

describe("a term without a database", () => {
  it("has neither tx nor fence: etcd", () => {
    void (() =>
      onEtcd().lead(async (term) => {
        // @ts-expect-error: etcd has no SQL transaction.
        void term.tx;
        // @ts-expect-error: nor the SQL fence.
        void term.fence;
        return term.check();
      }));
  });

  it("has what etcd adds", () => {
    expectTypeOf<TermOf<ReturnType<typeof onEtcd>>>().toExtend<Term & EtcdTerm>();
  });

  it("is a term by hand too", () => {
    void (async () => {
      await using term = await onEtcd().acquire();
      expectTypeOf(term.epoch).toEqualTypeOf<number>();
      // @ts-expect-error: the term of acquire has no more than that of lead.
      void term.tx;
    });
  });
});
