// Work, clients and options that nobody would recommend: what is written stays fenced, what work throws comes out unchanged, and no
// session goes back to a pool inside of a transaction.

import { sql as text } from "drizzle-orm";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { AbortedTransactionError, Kysely, PostgresDialect, sql as raw } from "kysely";
import { Client, Pool } from "pg";
import postgresJs from "postgres";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { HOSTILE } from "../../src/core/kit/test-hostile.ts";
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
  elector = createElector({
    scope: "careless",
    backend: postgres({ url: server.url(), serverTimeoutMs: 60_000, marginMs: 1_000 }),
  });
  term = await elector.acquire();
});
beforeEach(() => server.query("truncate written"));
afterAll(async () => {
  await elector?.close();
  await server?.end();
});

const written = async (): Promise<string[]> => {
  const rows = await server.query<{ memo: string }>("select memo from written");
  return rows.map(({ memo }) => memo);
};
const insert = "insert into written values ('rent', 1)";

describe.each(LIBRARIES)("%s: whatever work throws comes out unchanged, and its transaction has ended", (name) => {
  let library: Library;
  beforeAll(() => {
    library = libraryOf(name, server.url(), 1);
  });
  const own: Readonly<Record<string, () => unknown>> = {
    ...HOSTILE,
    "a network error of something else": () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }),
    "the end of another session": () => Object.assign(new Error("ended"), { code: "57P01", severity: "FATAL" }),
    "that another transaction was rolled back": () => new AbortedTransactionError(),
  };
  afterAll(() => library.end());

  test.each(Object.entries(own))("%s", async (_, make) => {
    const thrown = make();
    const caught = await library
      .transact(term, async (send) => {
        await send(insert);
        throw thrown;
      })
      .catch((error: unknown) => ({ error }));
    // Not by `expect`: it would read what can't be read.
    expect(typeof caught === "object" && caught !== null && "error" in caught && caught.error === thrown).toBe(true);
    await library.transact(term, (send) => send("select 1"));
    expect(await written()).toEqual([]);
  });
});

describe("postgres.js", () => {
  let sql: ReturnType<typeof postgresJs>;
  beforeAll(() => {
    sql = postgresJs(server.url(), { max: 1 });
  });
  afterAll(() => sql.end());

  test("a query that failed before it was sent, and was forgotten: its own error, and not an unknown outcome", async () => {
    const forgotten = inPostgresJs(term, sql, async (tx) => {
      await tx.unsafe(insert);
      await tx`select ${undefined as never}`.catch(() => undefined);
    });
    await expect(forgotten).rejects.toMatchObject({ code: "UNDEFINED_VALUE" });
    expect(await written()).toEqual([]);
  });

  test("tx.file and tx.notify would be sent outside of the fence: they are refused", async () => {
    const filed = inPostgresJs(term, sql, async (tx) => {
      await tx.unsafe(insert);
      // Nobody waits for it: the file is read while the transaction is committed.
      void tx.file("/dev/null").execute();
    });
    await expect(filed).rejects.toMatchObject({
      code: "TX_MISUSED",
      message: expect.stringMatching("tx.file") as string,
    });
    const notified = inPostgresJs(term, sql, async (tx) => {
      await tx.unsafe(insert);
      void tx.notify("rent", "paid");
    });
    await expect(notified).rejects.toMatchObject({
      code: "TX_MISUSED",
      message: expect.stringMatching("tx.notify") as string,
    });
    expect(await written()).toEqual([]);
  });
});

describe("Drizzle over one client", () => {
  test("a second transaction is refused, and does not end the first", async () => {
    const client = new Client({ connectionString: server.url() });
    await client.connect();
    const db = drizzlePg({ client });
    const value = await inDrizzle(term, db, async (tx) => {
      await tx.execute(text.raw(insert));
      await expect(inDrizzle(term, db, async () => 2)).rejects.toMatchObject({ code: "TX_MISUSED" });
      await tx.execute(text.raw(insert));
      return 1;
    });
    expect([value, await inDrizzle(term, db, async () => 2)]).toEqual([1, 2]);
    expect(await written()).toEqual(["rent", "rent"]);
    await client.end();
  });
});

describe("Kysely over a pool with query_timeout", () => {
  const QUERY_TIMEOUT_MS = 4_321;
  let pool: Pool;
  let db: Kysely<object>;
  beforeEach(() => {
    pool = new Pool({ connectionString: server.url(), max: 1, query_timeout: QUERY_TIMEOUT_MS });
    pool.on("error", () => undefined);
    db = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await pool.end();
  });

  test("no timer of pg is left, which would keep the process alive and end a pipelined session", async () => {
    const set = vi.spyOn(globalThis, "setTimeout");
    const cleared = vi.spyOn(globalThis, "clearTimeout");
    await inKysely(term, db, (trx) => raw.raw(insert).execute(trx));
    const timers = set.mock.results.filter((_, i) => set.mock.calls[i]?.[1] === QUERY_TIMEOUT_MS);
    expect(timers.length).toBeGreaterThan(5);
    const ended = cleared.mock.calls.map(([timer]) => timer);
    expect(timers.filter(({ value }) => !ended.includes(value as NodeJS.Timeout))).toEqual([]);
  });

  test("a BEGIN that was not answered in time: its session is not lent again, and what others write is committed", async () => {
    const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
    const pid = rows[0]!.pid;
    process.kill(pid, "SIGSTOP");
    try {
      const late = inKysely(term, db, (trx) => raw.raw(insert).execute(trx));
      await expect(late).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await raw.raw(insert).execute(db);
    expect(await written()).toEqual(["rent"]);
  });
});
