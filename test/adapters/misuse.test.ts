// What the adapters refuse, and what they pass on: errors of the work, refusals of the server, mistakes with the transaction.

import { sql as text } from "drizzle-orm";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { CamelCasePlugin, Kysely, PostgresDialect, sql as raw, type Transaction } from "kysely";
import { Pool } from "pg";
import postgresJs from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from "vitest";
import { fencedTransaction as inDrizzle } from "../../src/entry/drizzle.ts";
import { createElector, type Elector } from "../../src/entry/index.ts";
import { fencedTransaction as inKysely } from "../../src/entry/kysely.ts";
import { type PooledClient, postgres, type PostgresTerm } from "../../src/entry/postgres.ts";
import { fencedTransaction as inPostgresJs } from "../../src/entry/postgres-js.ts";
import { type PostgresServer, startPostgres } from "../servers/index.ts";
import { type FencedTerm, LIBRARIES, type Library, libraryOf } from "./test-libraries.ts";

let server: PostgresServer;
let elector: Elector<PostgresTerm<PooledClient>>;
let term: FencedTerm;

beforeAll(async () => {
  server = await startPostgres();
  await server.query("create table written (memo text not null, epoch bigint not null)");
  await server.query("create table single (n int, unique (n) deferrable initially deferred)");
  elector = createElector({
    scope: "misuse",
    backend: postgres({ url: server.url(), serverTimeoutMs: 60_000, marginMs: 1_000 }),
  });
});
beforeEach(async () => {
  await server.query("truncate written, single");
  term = await elector.acquire();
});
afterEach(() => term.resign());
afterAll(async () => {
  await elector?.close();
  await server?.end();
});

const written = async (): Promise<number> => (await server.query("select from written")).length;
const insert = "insert into written values ('rent', 1)";

describe.each(LIBRARIES)("%s", (name) => {
  let library: Library;
  beforeEach(() => {
    library = libraryOf(name, server.url(), 1);
  });
  afterEach(() => library.end());

  test("gives back what the work returns, and its errors unchanged", async () => {
    const value = await library.transact(term, async (send) => {
      await send(insert);
      return [1, 2];
    });
    expect(value).toEqual([1, 2]);
    const own = new Error("no funds", { cause: "mine" });
    const failed = library.transact(term, async (send) => {
      await send(insert);
      throw own;
    });
    await expect(failed).rejects.toBe(own);
    expect(await written()).toBe(1);
  });

  test("an old epoch writes nothing: STALE_EPOCH, and the term is over", async () => {
    await library.transact(term, (send) => send(insert));
    await server.query("update tenure_leader_state set epoch = epoch + 1");
    await expect(library.transact(term, (send) => send(insert))).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(await term.ended).toBe("superseded");
    await expect(library.transact(term, (send) => send(insert))).rejects.toMatchObject({ code: "NOT_LEADER" });
    expect(await written()).toBe(1);
  });

  test("a statement that failed and was forgotten rolls all of it back: it does not resolve", async () => {
    const forgotten = library.transact(term, async (send) => {
      await send(insert);
      await send("select 1 / 0").catch(() => undefined);
    });
    // postgres.js and its Drizzle see it themselves, and let the statement's own error out.
    await expect(forgotten).rejects.toMatchObject({ code: expect.stringMatching(/^(TX_MISUSED|22012)$/) as string });
    expect(await written()).toBe(0);
  });

  test.each(["commit", "rollback", "commit; begin"])("work that ends the transaction by %s is refused", async (end) => {
    const ended = library.transact(term, async (send) => {
      await send(end);
      await send(insert);
    });
    await expect(ended).rejects.toMatchObject({
      code: "TX_MISUSED",
      message: expect.stringContaining("ended inside") as string,
    });
  });

  test("a statement that comes after its work is not sent", async () => {
    let late: Promise<unknown> | undefined;
    let sendLater: ((statement: string) => Promise<unknown>) | undefined;
    await library.transact(term, async (send) => {
      sendLater = send;
      await send(insert);
      late = Promise.resolve().then(async () => {
        for (let i = 0; i < 20; i++) await Promise.resolve();
        return send(insert);
      });
      late.catch(() => undefined);
    });
    await expect(late).rejects.toThrow();
    await expect(sendLater?.(insert)).rejects.toThrow();
    expect(await written()).toBe(1);
  });

  test("a refusal of COMMIT by a deferred constraint is the server's own error, and the session goes on", async () => {
    const twice = library.transact(term, async (send) => {
      await send(insert);
      await send("insert into single values (7), (7)");
    });
    await expect(twice).rejects.toMatchObject({ code: "23505" });
    await library.transact(term, (send) => send(insert));
    expect(await written()).toBe(1);
  });

  test("a server that can't be reached: BACKEND_UNAVAILABLE", async () => {
    const nobody = libraryOf(name, "postgres://postgres@127.0.0.1:1/postgres", 1);
    await expect(nobody.transact(term, (send) => send(insert))).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await nobody.end();
  });
});

describe("each library's own ways", () => {
  interface Tables {
    written: { memo: string; epoch: number };
  }
  let pool: Pool;
  let sql: ReturnType<typeof postgresJs>;
  beforeEach(() => {
    pool = new Pool({ connectionString: server.url(), max: 2 });
    sql = postgresJs(server.url(), { max: 1 });
  });
  afterEach(async () => {
    await pool.end();
    await sql.end();
  });

  test("Kysely: plugins, its log and the types of its tables; no transaction in a transaction", async () => {
    const logged: unknown[] = [];
    const db = new Kysely<Tables>({
      dialect: new PostgresDialect({ pool }),
      plugins: [new CamelCasePlugin()],
      log: ({ query }) => void logged.push(query.sql.slice(0, 6)),
    });
    const memo = await inKysely(
      term,
      db,
      async (trx) => {
        expectTypeOf(trx).toEqualTypeOf<Transaction<Tables>>();
        await expect(inKysely(term, trx, async () => 1)).rejects.toMatchObject({ code: "TX_MISUSED" });
        await trx.insertInto("written").values({ memo: "rent", epoch: 1 }).execute();
        const { rows } = await raw<{ isolation: string }>`show transaction_isolation`.execute(trx);
        expect(rows).toEqual([{ transactionIsolation: "serializable" }]);
        return (await trx.selectFrom("written").select("memo").executeTakeFirstOrThrow()).memo;
      },
      { isolation: "serializable" },
    );
    expectTypeOf(memo).toEqualTypeOf<string>();
    expect(memo).toBe("rent");
    expect(logged).toContain("insert");
    expect(logged.every((one) => typeof one === "string")).toBe(true);
    await expect(inKysely(term, db, async () => 1, { isolation: "none" as never })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
    });
  });

  test("Drizzle: savepoints roll back to themselves; no transaction in a transaction", async () => {
    const db = drizzlePg({ client: pool });
    const result = await inDrizzle(term, db, async (tx) => {
      expectTypeOf(tx).toExtend<Parameters<Parameters<typeof db.transaction>[0]>[0]>();
      await expect(inDrizzle(term, tx, async () => 1)).rejects.toMatchObject({ code: "TX_MISUSED" });
      await tx.execute(text.raw(insert));
      await tx.transaction(async (inner) => inner.execute(text`select 1 / 0`)).catch(() => undefined);
      return "kept";
    });
    expectTypeOf(result).toEqualTypeOf<string>();
    expect([result, await written()]).toEqual(["kept", 1]);
  });

  test("postgres.js: savepoints roll back to themselves; no transaction in a transaction, nothing prepared", async () => {
    const result = await inPostgresJs(term, sql, async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<postgresJs.TransactionSql>();
      await expect(inPostgresJs(term, tx as never, async () => 1)).rejects.toMatchObject({ code: "TX_MISUSED" });
      expect(() => tx.prepare("later")).toThrow(/PREPARE TRANSACTION/);
      await tx`insert into written ${tx({ memo: "rent", epoch: 1 })}`;
      await tx.savepoint((inner) => inner`select 1 / 0`).catch(() => undefined);
      const [row] = await tx<{ n: number }[]>`select count(*)::int as n from written`;
      return row?.n;
    });
    expect([result, await written()]).toEqual([1, 1]);
  });
});
