// What a term can do depends on its backend, and the compiler knows. `npm run check` compiles this file; what must
// not compile is marked, and a mark on something that does compile is an error too. Nothing here is executed: at run
// time each test only says that the file was read.

import type { Pool, PoolClient } from "pg";
import { describe, expectTypeOf, it } from "vitest";
import { type EtcdTerm, etcd } from "../../src/entry/etcd.ts";
import { createElector, type Elector, type Term } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import { testBackend } from "../../src/entry/testing.ts";

type TermOf<E> = E extends Elector<infer Extras> ? Term & Extras : never;

const scope = "payer";
const onUrl = () => createElector({ scope, backend: postgres("postgres://127.0.0.1/db") });
const onPool = (pool: Pool) => createElector({ scope, backend: postgres({ connect: () => pool.connect() }) });
const onEtcd = () => createElector({ scope, backend: etcd("http://127.0.0.1:2379") });
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

describe("a term without a database", () => {
  it("has neither tx nor fence: memory", () => {
    void (() =>
      inMemory().lead(async (term) => {
        // @ts-expect-error: there is no database, so there is no transaction.
        void term.tx;
        // @ts-expect-error: nor a fence.
        void term.fence;
        return term.check();
      }));
  });

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
      await using term = await inMemory().acquire();
      expectTypeOf(term.epoch).toEqualTypeOf<number>();
      // @ts-expect-error: the term of acquire has no more than that of lead.
      void term.tx;
    });
  });
});
