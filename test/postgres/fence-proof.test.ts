// `term.fence` proves that the transaction of `run` holds the fence (trap 77): what people write by mistake is refused with
// TX_MISUSED, with the real clients, and what they mean is accepted, whatever their client answers.

import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import { CamelCasePlugin, CompiledQuery, Kysely, PostgresDialect } from "kysely";
import { type Client, Pool } from "pg";
import postgresJs from "postgres";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createElector } from "../../src/entry/index.ts";
import { type FenceRun, type PooledClient, postgres, type PostgresTerm } from "../../src/entry/postgres.ts";
import type { Term } from "../../src/ports/elector.ts";
import { pgBouncerPath, startPgBouncer } from "../servers/index.ts";
import { connectTo, DEAF } from "./test-seat.ts";
import { writtenTable } from "./test-written.ts";

type FencedTerm = Term & PostgresTerm<PooledClient>;

const database = writtenTable("what text");
let term: FencedTerm;
let pool: Pool;
let kysely: Kysely<{ written: { what: string } }>;
let sql: postgresJs.Sql;

beforeEach(async () => {
  const elector = createElector({ scope: "it's $1 ?", backend: postgres({ ...DEAF, url: database.url }) });
  onTestFinished(() => elector.close());
  term = await elector.acquire();
  pool = new Pool({ connectionString: database.url, max: 4 });
  pool.on("error", () => undefined);
  kysely = new Kysely({ dialect: new PostgresDialect({ pool }) });
  onTestFinished(() => kysely.destroy());
  sql = postgresJs(database.url, { max: 4, onnotice: () => undefined });
  onTestFinished(() => sql.end());
});

async function termOf(scope: string): Promise<FencedTerm> {
  const elector = createElector({ scope, backend: postgres({ ...DEAF, url: database.url }) });
  onTestFinished(() => elector.close());
  return elector.acquire();
}

/** As after a failover that the leader has not heard of yet. */
async function supersede(): Promise<void> {
  await database.admin.query("update tenure_leader_state set epoch = epoch + 1");
}

async function written(): Promise<unknown[]> {
  return (await database.admin.query<{ what: string }>("select what from written order by 1")).rows.map(
    (row) => row.what,
  );
}

async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => "accepted",
    (error: { code?: unknown }) => error.code ?? error,
  );
}

/** A client of its own, inside BEGIN … COMMIT; rolled back where the work throws. */
async function inTransaction<R>(work: (client: Client) => Promise<R>, to = database.url): Promise<R> {
  const client = await connectTo(to);
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("insert into written values ('fenced')");
    await client.query("commit");
    return result;
  } finally {
    await client.end();
  }
}

describe("a fence that guards nothing is refused", () => {
  test("where run does nothing, or returns nothing of what the client answered", async () => {
    const runs: Record<string, (client: Client) => FenceRun> = {
      "does nothing": () => async () => {},
      "drops the answer": (client) => async (text) => {
        await client.query(text);
      },
      "sends something else": (client) => () => client.query("select 'fenced' as tenure_fence"),
      "sends the old call by hand": (client) => () =>
        client.query("select tenure_require_epoch($1, $2)", [term.scope, term.epoch]),
      "gives back what it was given": () => async (text, values) => ({ rows: [{ text, values }] }),
      "gives back the text as a row": () => async (text) => ({ rows: [{ text }] }),
      "gives what looks like an answer": () => async () => ({ rows: [{ "tenure.fence": "0123456789abcdef" }] }),
      "gives another epoch's mark": () => async () => ({ rows: [{ "tenure.fence": `"public"/1/${term.epoch + 1}` }] }),
      "forgets the first call": (client) => (text) => client.query(text.startsWith("call") ? "select 1" : text),
      "gives a number": () => async () => 1,
      "gives a proxy that throws": () => async () =>
        new Proxy([], {
          ownKeys: () => {
            throw new Error("not to be looked at");
          },
        }),
      "gives a list in a list without end": () => async () => {
        const list: unknown[] = [];
        list.push(list, list);
        return list;
      },
    };
    const outcomes: Record<string, unknown> = {};
    for (const [name, run] of Object.entries(runs)) {
      outcomes[name] = await codeOf(inTransaction((client) => term.fence(run(client))));
    }
    expect(outcomes).toEqual(Object.fromEntries(Object.keys(runs).map((name) => [name, "TX_MISUSED"])));
    expect(await written()).toEqual([]);
    expect(term.check()).toBe(term.epoch);
  });

  test("where run keeps answers: by text, or the first one for ever", async () => {
    const byText = new Map<string, unknown>();
    let first: unknown;
    const runs: Record<string, (client: Client) => FenceRun> = {
      "by text": (client) => async (text) => {
        if (!byText.has(text)) byText.set(text, await client.query(text));
        return byText.get(text);
      },
      "the first": (client) => async (text) => (first ??= await client.query(text)),
    };
    // What the cache answers the second time is of a transaction that is over.
    expect(await codeOf(inTransaction((client) => term.fence(runs["by text"]!(client))))).toBe("accepted");
    expect(await codeOf(inTransaction((client) => term.fence(runs["by text"]!(client))))).toBe("TX_MISUSED");
    expect(await codeOf(inTransaction((client) => term.fence(runs["the first"]!(client))))).toBe("TX_MISUSED");
    expect(await written()).toEqual(["fenced"]);
  });

  test.each([1, 4])("where run goes to a pool of %i, outside of any transaction", async (max) => {
    const own = new Pool({ connectionString: database.url, max });
    try {
      for (let round = 0; round < 4; round++) {
        expect(await codeOf(term.fence((text, values) => own.query(text, values)))).toBe("TX_MISUSED");
      }
      // All of its sessions have seen a fence by now.
      const clients = await Promise.all(Array.from({ length: max }, () => own.connect()));
      await Promise.all(clients.map((one) => codeOf(term.fence((text) => one.query(text)))));
      for (const one of clients) one.release();
      let turn = 0;
      const inTurn: FenceRun = (text) => clients[turn++ % max]!.query(text);
      expect(await codeOf(term.fence(inTurn))).toBe("TX_MISUSED");
    } finally {
      await own.end();
    }
  });

  test("where each call has a transaction of its own, or a savepoint that is rolled back", async () => {
    const apart: FenceRun = (text) => kysely.transaction().execute((trx) => trx.executeQuery(CompiledQuery.raw(text)));
    expect(await codeOf(term.fence(apart))).toBe("TX_MISUSED");
    const undone = inTransaction((client) =>
      term.fence(async (text) => {
        await client.query("savepoint a");
        const answer = await client.query(text);
        await client.query("rollback to a");
        return answer;
      }),
    );
    expect(await codeOf(undone)).toBe("TX_MISUSED");
    expect(await written()).toEqual([]);
  });

  test("where two transactions take turns", async () => {
    const taken = inTransaction((one) =>
      inTransaction(async (other) => {
        let calls = 0;
        await term.fence((text) => (calls++ === 0 ? one : other).query(text));
      }),
    );
    expect(await codeOf(taken)).toBe("TX_MISUSED");
    expect(await written()).toEqual([]);
  });

  test("where the transaction was fenced for another scope, or has a setting of that name", async () => {
    const other = await termOf("another");
    const befores: ((client: Client) => Promise<unknown>)[] = [
      (client) => other.fence((text) => client.query(text)),
      (client) => client.query("set local tenure.fence = 'mine'"),
    ];
    for (const before of befores) {
      const taken = inTransaction(async (client) => {
        await before(client);
        await term.fence((text) => (text.startsWith("call") ? pool : client).query(text));
      });
      expect(await codeOf(taken)).toBe("TX_MISUSED");
    }
    expect(await written()).toEqual([]);
  });

  test("where Kysely's db was written for trx: the epoch that is over commits nothing", async () => {
    const posted = (): Promise<unknown> =>
      kysely.transaction().execute(async (trx) => {
        await term.fence((text, values) => kysely.executeQuery(CompiledQuery.raw(text, values)));
        await supersede();
        await trx.insertInto("written").values({ what: "stale" }).execute();
      });
    expect(await codeOf(posted())).toBe("TX_MISUSED");
    expect(await written()).toEqual([]);
  });

  test("where Drizzle's db was written for tx, and postgres.js's sql for tx", async () => {
    const db = drizzleOnPg({ client: pool });
    const drizzle = db.transaction(() => term.fence((text) => db.execute(text)));
    expect(await codeOf(drizzle)).toBe("TX_MISUSED");
    const other = drizzleOnPostgresJs({ client: sql });
    expect(await codeOf(other.transaction(() => term.fence((text) => other.execute(text))))).toBe("TX_MISUSED");
    const plain = sql.begin(() => term.fence((text, values) => sql.unsafe(text, values)));
    expect(await codeOf(plain)).toBe("TX_MISUSED");
  });

  test("where run hides the refusal of an epoch that is over", async () => {
    await supersede();
    const hidden = inTransaction((client) => term.fence((text) => client.query(text).catch(() => undefined)));
    expect(await codeOf(hidden)).toBe("TX_MISUSED");
    expect(await written()).toEqual([]);
  });
});

describe("a fence in its transaction is accepted", () => {
  test("through pg: with rows as objects or lists, prepared by name, in a savepoint, twice", async () => {
    const ways: Record<string, (client: Client) => Promise<unknown>> = {
      objects: (client) => term.fence((text, values) => client.query(text, values)),
      lists: (client) => term.fence((text) => client.query({ text, rowMode: "array" })),
      "the rows alone": (client) => term.fence(async (text) => (await client.query(text)).rows),
      "rows and their result": (client) =>
        term.fence(async (text) => {
          const result = await client.query(text);
          return [result.rows, result];
        }),
      "prepared by name": (client) => term.fence((text) => client.query({ name: text.slice(-60), text })),
      "after a savepoint": async (client) => {
        await client.query("savepoint a");
        await term.fence((text) => client.query(text));
        await client.query("release a");
      },
      twice: async (client) => {
        await term.fence((text) => client.query(text));
        await term.fence((text) => client.query(text));
      },
    };
    const outcomes: Record<string, unknown> = {};
    for (const [name, way] of Object.entries(ways)) outcomes[name] = await codeOf(inTransaction(way));
    expect(outcomes).toEqual(Object.fromEntries(Object.keys(ways).map((name) => [name, "accepted"])));
    expect(await written()).toHaveLength(Object.keys(ways).length);
  });

  test("through Kysely with its plugins, Drizzle on pg and on postgres.js, and postgres.js", async () => {
    const camel = kysely.withPlugin(new CamelCasePlugin());
    await camel
      .transaction()
      .execute((trx) => term.fence((text, values) => trx.executeQuery(CompiledQuery.raw(text, values))));
    await drizzleOnPg({ client: pool }).transaction((tx) => term.fence((text) => tx.execute(text)));
    await drizzleOnPostgresJs({ client: sql }).transaction((tx) => term.fence((text) => tx.execute(text)));
    await sql.begin((tx) => term.fence((text, values) => tx.unsafe(text, values)));
    await sql.begin((tx) => term.fence((text, values) => tx.unsafe(text, values, { prepare: true })));
  });

  test("concurrently in one transaction, on a client that sends without waiting for answers", async () => {
    const ten = Array.from({ length: 10 });
    await sql.begin((tx) => Promise.all(ten.map(() => term.fence((text) => tx.unsafe(text)))));
  });

  test("for several scopes concurrently in one transaction, and for each of them in turn", async () => {
    const terms = [term, ...(await Promise.all(["a", "b", "c"].map((scope) => termOf(scope))))];
    const locks = "select count(distinct (classid, objid))::int as n from pg_locks where mode = 'ShareLock'";
    await sql.begin(async (tx) => {
      await Promise.all([...terms, ...terms].map((one) => one.fence((text) => tx.unsafe(text))));
      expect((await tx.unsafe<{ n: number }[]>(locks))[0]?.n).toBe(terms.length);
    });
    await inTransaction(async (client) => {
      for (const one of terms) await one.fence((text) => client.query(text));
    });
    expect(await written()).toEqual(["fenced"]);
  });

  test("where the session has a setting of that name, as it was afterwards", async () => {
    const client = await connectTo(database.url);
    try {
      await client.query("set tenure.fence = 'mine'");
      await client.query("begin");
      await term.fence((text) => client.query(text));
      await client.query("commit");
      expect((await client.query("show tenure.fence")).rows).toEqual([{ "tenure.fence": "mine" }]);
      expect(await codeOf(term.fence((text) => client.query(text)))).toBe("TX_MISUSED");
    } finally {
      await client.end();
    }
  });

  test("and its lock is held until the transaction ends", async () => {
    const held = "select count(*)::int as n from pg_locks where locktype = 'advisory' and mode = 'ShareLock'";
    const count = async (): Promise<unknown> => (await database.admin.query<{ n: number }>(held)).rows[0]?.n;
    await inTransaction(async (client) => {
      await term.fence((text) => client.query(text));
      expect(await count()).toBe(1);
    });
    expect(await count()).toBe(0);
  });

  test("an error that is no refusal comes out as it is", async () => {
    const mine = Object.assign(new Error("mine"), { code: "40001" });
    await expect(term.fence(() => Promise.reject(mine))).rejects.toBe(mine);
    await expect(term.fence(() => Promise.reject(Object.create(null)))).rejects.toEqual({});
  });
});

describe.skipIf(pgBouncerPath() === undefined)("through PgBouncer in transaction mode", () => {
  test("a transaction is fenced, and statements of their own are refused", async () => {
    const bouncer = await startPgBouncer(database.server, "transaction", { settings: { default_pool_size: "2" } });
    try {
      const through = bouncer!.url(new URL(database.url).pathname.slice(1));
      expect(await codeOf(inTransaction((client) => term.fence((text) => client.query(text)), through))).toBe(
        "accepted",
      );
      const outside = await connectTo(through);
      for (let round = 0; round < 4; round++) {
        expect(await codeOf(term.fence((text) => outside.query(text)))).toBe("TX_MISUSED");
      }
      await outside.end();
    } finally {
      await bouncer!.end();
    }
  });
});
