// What `term.tx` rejects with when something fails inside: a failure of the database is a TenureError with its cause, the
// server's answer to a statement and whatever the work throws by itself come out as they are.

import { drizzle } from "drizzle-orm/node-postgres";
import { Pool, type PoolClient } from "pg";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { createElector, TenureError } from "../../src/entry/index.ts";
import { postgres, type PostgresTerm } from "../../src/entry/postgres.ts";
import type { Term } from "../../src/ports/elector.ts";
import { waitFor } from "../servers/index.ts";
import { FAST } from "./test-seat.ts";
import { one } from "./test-sql.ts";
import { writtenTable } from "./test-written.ts";

const database = writtenTable("what text unique");
let term: Term & PostgresTerm<PoolClient>;

beforeEach(async () => {
  const pool = new Pool({ connectionString: database.url, max: 2 });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  const elector = createElector({
    scope: "errors",
    backend: postgres({ ...FAST, url: database.url, connect: () => pool.connect() }),
  });
  onTestFinished(() => elector.close());
  term = await elector.acquire();
});

async function pidOf(db: PoolClient): Promise<unknown> {
  return (await db.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid;
}

/** As the next leader's bump does with a fenced transaction that takes too long. */
async function endSession(db: PoolClient): Promise<void> {
  const pid = await pidOf(db);
  const ended = new Promise<void>((resolve) => db.on("end", () => resolve()));
  await database.admin.query("select pg_terminate_backend($1)", [pid]);
  await ended;
}

async function insert(db: PoolClient): Promise<unknown> {
  return db.query("insert into written values ('gone')");
}

async function sleeping(db: PoolClient, sleep: (db: PoolClient) => Promise<unknown>): Promise<void> {
  await insert(db);
  const pid = await pidOf(db);
  const slept = sleep(db);
  slept.catch(() => undefined);
  const runs = "select count(*)::int from pg_stat_activity where pid = $1 and query like '%pg_sleep%'";
  await waitFor("the statement to run", async () => (await one(database.admin, runs, [pid])) === 1);
  await database.admin.query("select pg_terminate_backend($1)", [pid]);
  await slept;
}

const failures: Record<string, (db: PoolClient) => Promise<unknown>> = {
  "in a statement": (db) => sleeping(db, () => db.query("select pg_sleep(60)")),
  "in a statement with a callback": (db) =>
    sleeping(
      db,
      () =>
        new Promise((resolve, reject) =>
          db.query("select pg_sleep(60)", (error: Error | null) => (error === null ? resolve(1) : reject(error))),
        ),
    ),
  "in a statement of a query builder, which wraps the error": (db) =>
    sleeping(db, () => drizzle({ client: db }).execute("select pg_sleep(60)")),
  "before a statement": async (db) => {
    await insert(db);
    await endSession(db);
    await db.query("select 1");
  },
};

test.each(Object.keys(failures))(
  "a session that ends %s is BACKEND_UNAVAILABLE, with pg's error as its cause",
  async (when) => {
    const failed: unknown = await term.tx((db) => failures[when]!(db)).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true, message: /nothing was written/ });
    expect(TenureError.is(failed) && failed.cause).toBeInstanceOf(Error);
    expect(await one(database.admin, "select count(*)::int from written")).toBe(0);
    await term.tx((db) => db.query("insert into written values ('next')"));
  },
);

test("what the work throws by itself comes out as it is, also where its session has ended", async () => {
  const mine = new Error("the mail server is down");
  const failed = term.tx(async (db) => {
    await endSession(db);
    throw mine;
  });
  await expect(failed).rejects.toBe(mine);
});

test("trap 80: whatever the work throws comes out as it is", async () => {
  const throwing = new Proxy(new Error("hidden"), {
    get: () => {
      throw new Error("not to be read");
    },
  });
  for (const thrown of [undefined, null, 0, "text", Object.create(null) as unknown, throwing]) {
    for (const end of [false, true]) {
      let caught: unknown = "nothing";
      try {
        await term.tx(async (db) => {
          if (end) await endSession(db);
          // oxlint-disable-next-line typescript/only-throw-error -- that is what is tried
          throw thrown;
        });
      } catch (error) {
        caught = error;
      }
      expect(Object.is(caught, thrown)).toBe(true);
    }
  }
});

test("the server's answer to a statement comes out as it is: its SQLSTATE is the code", async () => {
  await database.admin.query("insert into written values ('gone')");
  await expect(term.tx(insert)).rejects.toMatchObject({ code: "23505", constraint: "written_what_key" });
});

test("a fence that is missing, or may not be called, says so as a TenureError", async () => {
  onTestFinished(async () => void (await database.admin.query(schemaSql("public"))));
  await database.admin.query("drop procedure tenure_fence");
  const failed: unknown = await term.tx(insert).catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: "SCHEMA_MISSING", cause: { code: "42883" } });
  expect(TenureError.is(failed)).toBe(true);
});
