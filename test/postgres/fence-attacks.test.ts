// What a reviewer tried against the fence, and what code does to a transaction by mistake. Each was a hole once.

import type { Socket } from "node:net";
import { type Client, Pool, type PoolClient, Query } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { checkSchema } from "../../src/postgres/schema/schema.ts";
import { createElector } from "../../src/entry/index.ts";
import { type PooledClient, postgres, type PostgresTerm } from "../../src/entry/postgres.ts";
import type { Term } from "../../src/ports/elector.ts";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { connectTo, FAST } from "./test-seat.ts";
import { bump, bumpAgain, freshDatabase, one, refusal } from "./test-sql.ts";

let server: PostgresServer;
let url: string;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close().catch(() => undefined);
});

afterAll(async () => {
  await server.end();
});

async function client(to = url): Promise<Client> {
  const connected = await connectTo(to);
  connected.on("error", () => undefined);
  closing.push(() => connected.end());
  return connected;
}

async function database(): Promise<Client> {
  url = await freshDatabase(server);
  const admin = await client();
  await admin.query("create table written (what text)");
  return admin;
}

async function lead(scope: string): Promise<Term & PostgresTerm<PooledClient>> {
  const elector = createElector({ scope, backend: postgres({ ...FAST, url }) });
  closing.push(() => elector.close());
  return elector.acquire();
}

async function written(): Promise<string[]> {
  const { rows } = await (await client()).query<{ what: string }>("select what from written order by 1");
  return rows.map((row) => row.what);
}

const codeOf = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "resolved",
    (error: { code?: unknown }) => error.code,
  );

describe("a stranger who may create in Tenure's schema", () => {
  test("does not get an overload called with the owner's rights", async () => {
    const admin = await database();
    await admin.query(`create table seen (who text);
      create function public.tenure_record(bigint, timestamptz, bigint, text, text, text) returns void language sql as
      $$ insert into public.seen values (current_user) $$`);
    expect(await bump(admin, 7, "typed")).toBe(1);
    expect(await one(admin, "select count(*)::int from seen")).toBe(0);
  });

  test("does not get an overload called in place of the fence of tx", async () => {
    const admin = await database();
    const term = await lead("typed");
    await admin.query(
      "create procedure public.tenure_fence(bigint, integer) language plpgsql as $$ begin return; end $$",
    );
    await admin.query("update tenure_leader_state set epoch = epoch + 1");
    expect(await codeOf(term.tx((db) => db.query("insert into written values ('stale')")))).toBe("STALE_EPOCH");
    expect(await written()).toEqual([]);
  });

  test("is found by the schema check, and nobody leads until it is mended", async () => {
    const admin = await database();
    await admin.query("drop role if exists stranger; create role stranger; grant create on schema public to stranger");
    await admin.query(`set role stranger; create function public.tenure_require_epoch(text, integer) returns void
      language sql as $$ select $$; reset role`);
    const session = { query: async (text: string, values: unknown[]) => (await admin.query(text, values)).rows };
    const state = await checkSchema(session as never, "public");
    expect(state).toMatchObject({ foreign: ["tenure_require_epoch(text,integer)"] });
    expect(await codeOf(lead("typed"))).toBe("PERMISSION_DENIED");
    await admin.query("drop function public.tenure_require_epoch(text, integer)");
    expect((await lead("typed")).epoch).toBe(1);
    await admin.query("drop owned by stranger; drop role stranger");
  });
});

describe("work that breaks its transaction", () => {
  test("by sending on its client after it has settled is told, and nothing of that is sent", async () => {
    await database();
    const term = await lead("late");
    const gate = Promise.withResolvers<void>();
    let late: Promise<unknown> = Promise.resolve();
    const failed = term.tx(async (db) => {
      await db.query("insert into written values ('inside')");
      late = gate.promise.then(() => db.query("insert into written values ('late')"));
      throw new Error("the other one failed");
    });
    await expect(failed).rejects.toThrow("the other one failed");
    gate.resolve();
    expect(await codeOf(late)).toBe("TX_MISUSED");
    expect(await written()).toEqual([]);
  });

  test.each(["commit", "rollback", "commit and chain", "rollback and chain", "begin; commit", "commit; begin"])(
    "by %s is told",
    async (ending) => {
      await database();
      const term = await lead("ended");
      const ended = term.tx(async (db) => {
        await db.query(ending);
        await db.query("select 1");
      });
      expect(await codeOf(ended)).toBe("TX_MISUSED");
      expect(await codeOf(term.tx((db) => db.query("select 1")))).toBe("resolved");
    },
  );

  test("by releasing its client is told", async () => {
    await database();
    const term = await lead("released");
    expect(await codeOf(term.tx((db) => db.release()))).toBe("TX_MISUSED");
  });

  test("with savepoints is none: those are its own", async () => {
    await database();
    const term = await lead("savepoints");
    await term.tx(async (db) => {
      await db.query("savepoint a");
      await db.query("insert into written values ('undone')");
      await db.query("rollback to a");
      await db.query("insert into written values ('kept')");
    });
    expect(await written()).toEqual(["kept"]);
  });
});

/** A client of `pg`, with all that it has. */
type Whole = PooledClient & Client & { connection: { query(text: string): void; stream: Socket } };

describe("work that keeps more of its client than it was lent", () => {
  const INSERT_LATE = "insert into written values ('late')";
  /** Each takes something from the client while it is lent; sending on it afterwards must be refused. */
  const keepers: Record<string, (db: Whole) => (text: string) => unknown> = {
    "what on() returned": (db) => {
      const kept = db.on("notice", () => undefined);
      return (text) => kept.query(text);
    },
    "what once() returned": (db) => {
      const kept = db.once("notice", () => undefined);
      return (text) => kept.query(text);
    },
    "what off() returned": (db) => {
      const kept = db.off("notice", () => undefined);
      return (text) => kept.query(text);
    },
    "what removeAllListeners() returned": (db) => {
      const kept = db.removeAllListeners("some event");
      return (text) => kept.query(text);
    },
    "this of a listener": (db) => {
      let kept: Client = db;
      const listener = function (this: Client): void {
        // oxlint-disable-next-line typescript/no-this-alias -- that is what is tried
        kept = this;
      };
      db.on("probe" as never, listener);
      db.emit("probe");
      return (text) => kept.query(text);
    },
    "its connection": (db) => {
      const { connection } = db;
      return (text) => connection.query(text);
    },
    "its connection's descriptor": (db) => {
      const connection = Object.getOwnPropertyDescriptor(db, "connection")!.value as Whole["connection"];
      return (text) => connection.query(text);
    },
    "its socket": (db) => {
      const { stream } = db.connection;
      const message = (text: string): Buffer => {
        const bytes = Buffer.from(`Q....${text}\0`);
        bytes.writeInt32BE(bytes.length - 1, 1);
        return bytes;
      };
      return (text) => stream.write(message(text));
    },
    "a method": (db) => db.query.bind(db),
  };

  test("is refused whatever of it is used after the work has settled, and nothing is written", async () => {
    await database();
    const term = await lead("kept");
    const outcomes: Record<string, unknown> = {};
    for (const [name, keep] of Object.entries(keepers)) {
      let send: (text: string) => unknown = () => undefined;
      await term.tx((db) => {
        send = keep(db as Whole);
      });
      outcomes[name] = await codeOf((async () => send(INSERT_LATE))());
      // The pool's one client is used once more, so that what was sent on it has been answered.
      await term.tx((db) => db.query("select 1")).catch(() => undefined);
    }
    expect(outcomes).toEqual(Object.fromEntries(Object.keys(keepers).map((name) => [name, "TX_MISUSED"])));
    expect(await written()).toEqual([]);
  });

  test("a listener is taken away by the function that was added", async () => {
    await database();
    const term = await lead("listeners");
    const heard: string[] = [];
    const listener = (notice: { message?: string | undefined }): void => void heard.push(String(notice.message));
    await term.tx(async (db) => {
      const whole = db as Whole;
      whole.on("notice", listener);
      await db.query("do $$ begin raise notice 'one'; end $$");
      whole.off("notice", listener);
      await db.query("do $$ begin raise notice 'two'; end $$");
    });
    expect(heard).toEqual(["one"]);
  });

  test("a method that is replaced on the client is refused: the next one to borrow it would call it", async () => {
    await database();
    const term = await lead("patched");
    const patched = term.tx((db) => {
      (db as { query: unknown }).query = () => Promise.resolve({ rows: [{ what: "nothing was asked" }] });
    });
    expect(await codeOf(patched)).toBe("TX_MISUSED");
    const { rows } = await term.tx((db) => db.query("select 'asked' as what"));
    expect(rows).toEqual([{ what: "asked" }]);
  });

  test.each([Symbol.dispose, Symbol.asyncDispose])(
    "a client that releases itself by %o is not released",
    async (how) => {
      await database();
      const pool = new Pool({ connectionString: url, max: 1 });
      closing.push(() => pool.end());
      const connect = async (): Promise<PoolClient> => {
        const pooled = await pool.connect();
        return Object.assign(pooled, { [how]: () => pooled.release() });
      };
      const elector = createElector({ scope: "disposed", backend: postgres({ ...FAST, url, connect }) });
      closing.push(() => elector.close());
      const term = await elector.acquire();
      const disposed = term.tx((db) => (db as unknown as Record<symbol, () => unknown>)[how]!());
      expect(await codeOf(disposed)).toBe("TX_MISUSED");
    },
  );
});

describe("work that ends its transaction where nobody reads its texts", () => {
  /** Each sends the text past `query(text)`. */
  const senders: Record<string, (db: Whole, text: string) => unknown> = {
    "its connection": (db, text) => db.connection.query(text),
    "the prototype's query": (db, text) => Reflect.apply(Object.getPrototypeOf(db).query, db, [text]),
    "a submittable that shows another text": (db, text) => {
      const query = new Query(text);
      const submit = query.submit.bind(query);
      const shown = Object.assign(query, {
        submit: (connection: never) => {
          shown.text = text;
          submit(connection);
        },
        text: "select 1",
      });
      return new Promise((resolve, reject) => {
        shown.on("end", resolve).on("error", reject);
        void db.query(shown as never);
      });
    },
    "a prepared name": (db, text) => db.query({ name: "ends", text } as never),
    "a callback": (db, text) => new Promise<void>((resolve) => db.query(text, () => resolve())),
    "several statements": (db, text) => db.query(`select 1; /* */ ${text}`),
    "the client that on() returned": (db, text) => db.on("notice", () => undefined).query(text),
  };

  test.each(["commit", "rollback", "commit; begin"])(
    "by %s is reported as misuse, never as committed",
    async (ending) => {
      await database();
      const term = await lead("hidden");
      const outcomes: Record<string, unknown> = {};
      for (const [name, send] of Object.entries(senders)) {
        if (name === "a prepared name" && ending.includes(";")) continue;
        const ended = term.tx(async (db) => {
          await send(db as Whole, ending);
          await db.query("insert into written values ('after')");
        });
        outcomes[name] = await codeOf(ended);
      }
      expect(outcomes).toEqual(Object.fromEntries(Object.keys(outcomes).map((name) => [name, "TX_MISUSED"])));
    },
  );

  test("by a procedure, a DO block, DISCARD ALL or SET TRANSACTION is refused by the server", async () => {
    const admin = await database();
    await admin.query("create procedure ends() language plpgsql as $$ begin commit; end $$");
    const term = await lead("refused");
    const refused = (text: string): Promise<unknown> => codeOf(term.tx((db) => db.query(text)));
    expect(await refused("set transaction isolation level serializable")).toBe("25001");
    expect(await refused("discard all")).toBe("25001");
    expect(await refused("call ends()")).toBe("2D000");
    expect(await refused("do $$ begin commit; end $$")).toBe("2D000");
  });

  test("pg_advisory_unlock_all does not take the fence away: a bump ends the transaction all the same", async () => {
    const admin = await database();
    const term = await lead("unlocked");
    const key = String(await one(admin, "select scope_key from tenure_leader_state where scope = 'unlocked'"));
    const ended = term.tx(async (db) => {
      await db.query("select pg_advisory_unlock_all()");
      await db.query("insert into written values ('stale')");
      expect(await bumpAgain(admin, key, "unlocked")).toBe(term.epoch + 1);
      await db.query("insert into written values ('later')");
    });
    expect(await codeOf(ended)).not.toBe("resolved");
    expect(await written()).toEqual([]);
  });
});

test("the bump is let in between fenced transactions that each take longer than its first grace", async () => {
  const leader = await database();
  expect(await bump(leader, 9, "steady")).toBe(1);
  const pool = new Pool({ connectionString: url, max: 40 });
  pool.on("error", () => undefined);
  closing.push(() => pool.end());
  const warm = await Promise.all(Array.from({ length: 40 }, () => pool.connect()));
  for (const one of warm) {
    one.on("error", () => undefined);
    one.release();
  }
  const state = { stop: false, done: 0, ended: 0 };
  const streams = Array.from({ length: 16 }, async () => {
    while (!state.stop) {
      const writer = await pool.connect();
      try {
        await writer.query("begin; call tenure_fence(9::bigint, 1::bigint); select pg_sleep(0.03); commit");
        state.done++;
        writer.release();
      } catch (error) {
        if ((error as { code?: string }).code === "57P01") state.ended++;
        writer.release(true);
        if ((error as { code?: string }).code === "TN001") return;
      }
    }
  });
  await waitFor("traffic", () => state.done > 50);
  expect(await bumpAgain(leader, 9, "steady")).toBe(2);
  state.stop = true;
  await Promise.all(streams);
  // Ending whole batches again and again ended hundreds.
  expect(state.ended).toBeLessThan(64);
});

test("an epoch of the lost primary is not in force on a promoted standby that lacks its end", async () => {
  const leader = await database();
  expect(await bump(leader, 11, "promoted")).toBe(1);
  const standby = await server.standby();
  closing.push(() => standby.end());
  await standby.caughtUp(server);
  await standby.promote();
  const there = await client(standby.url(new URL(url).pathname.slice(1)));
  expect(await refusal(there.query("begin; select tenure_require_epoch('promoted', 1)"))).toBe("TN001");
  await there.query("rollback");
  expect(await bump(there, 11, "promoted")).toBe(2 ** 32 + 1);
  expect(await refusal(there.query(`select tenure_require_epoch('promoted', ${2 ** 32 + 1})`))).toBe("");
});

test("a role that may bump can't end whoever holds an advisory lock by choosing the key", async () => {
  const admin = await database();
  const victim = await client();
  const fence = await one(admin, "select tenure_fence_key(13)");
  await victim.query("select pg_advisory_lock($1::bigint)", [fence]);
  await admin.query("set statement_timeout = 1000");
  expect(await refusal(bump(admin, 13, "chosen"))).toBe("TN004");
  expect(await one(victim, "select 1")).toBe(1);
});

test("a scope whose fence key is another's lock key is a clash", async () => {
  const admin = await database();
  expect(await bump(admin, 15, "first")).toBe(1);
  const other = await client();
  const fence = String(await one(admin, "select tenure_fence_key(15)"));
  expect(await refusal(bump(other, fence, "second"))).toBe("TN002");
});
