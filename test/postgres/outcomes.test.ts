// What an error to COMMIT means (src/core/kit/sql-outcome.ts), on a real server, for `term.tx`, for the log and for the adapters of
// query builders: each fault is planted at COMMIT, and the verdict is compared with what is in the table afterwards. "Refused" means: not written, ever.
//
// The faults come from a deferred constraint trigger, which runs inside COMMIT, and from a proxy that answers in the name of
// servers and poolers that we can't run here. Not produced: a PANIC of the server after its commit record was written; the
// proxy says what such a server would say.

import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TenureError } from "../../src/core/kit/errors.ts";
import { createElector, type Elector } from "../../src/entry/index.ts";
import { type PooledClient, postgres, type PostgresTerm } from "../../src/entry/postgres.ts";
import { bytes, type LogNode, logNode } from "../postgres-log/test-log-node.ts";
import { type PostgresServer, startPostgres, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import { LIBRARIES, type Library, libraryOf } from "../adapters/test-libraries.ts";
import { commitAnswered } from "./test-answers.ts";
import { connectTo } from "./test-seat.ts";

type Verdict = "committed" | "refused" | "unknown";

interface Writer {
  /** What must be there before it can write. */
  ready(): Promise<void>;
  /** Writes one text in a transaction of its own. */
  write(text: string): Promise<Verdict>;
  count(text: string): Promise<number>;
}

/** A text says what happens while it is committed: "raise 40001", "sleep", "wait" (for a standby that is not there). */
const FAULTS = `
create function planted_fault(what text) returns void language plpgsql as $$
begin
  if what like 'raise %' then
    raise exception using errcode = split_part(what, ' ', 2), message = 'planted';
  elsif what like 'sleep%' then perform pg_sleep(60);
  elsif what like 'wait%' then perform set_config('synchronous_commit', 'on', true);
  end if;
end $$;
create function planted_row() returns trigger language plpgsql as $$ begin perform planted_fault(new.what); return null; end $$;
create function planted_record() returns trigger language plpgsql as $$
begin perform planted_fault(convert_from(new.data, 'utf8')); return null; end $$;
create table written (what text);
create constraint trigger planted after insert on written deferrable initially deferred
  for each row execute function planted_row()`;

let server: PostgresServer;
let proxy: TcpProxy;
let elector: Elector<PostgresTerm<PooledClient>>;
let pool: Pool;
let node: LogNode;
let texts = 0;
const libraries = new Map<string, Library>();

const fresh = (fault: string): string => `${fault} #${++texts}`;
const throughProxy = (): string => `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;

beforeAll(async () => {
  // Only a transaction that asks for it waits for the standby.
  const settings = { synchronous_standby_names: "nobody", synchronous_commit: "local", restart_after_crash: "on" };
  server = await startPostgres({ settings });
  proxy = await startProxy({ host: "127.0.0.1", port: server.port });
  node = logNode(throughProxy(), "n");
  await node.log.start();
  await server.query(FAULTS);
  await server.query(`create constraint trigger planted after insert on tenure_log deferrable initially deferred
    for each row execute function planted_record()`);
  pool = new Pool({ connectionString: throughProxy(), max: 2 });
  pool.on("error", () => undefined);
  for (const name of LIBRARIES) libraries.set(name, libraryOf(name, throughProxy(), 2));
  elector = createElector({
    scope: "outcomes",
    backend: postgres({ url: server.url(), connect: () => pool.connect(), serverTimeoutMs: 60_000, marginMs: 1_000 }),
  });
}, 120_000);

afterAll(async () => {
  await elector?.close();
  for (const library of libraries.values()) await library.end();
  await pool?.end();
  await node?.log.close();
  await proxy?.end();
  await server?.end();
});

let term: Awaited<ReturnType<typeof elector.acquire>> | undefined;
let epoch = 0;

/** In the table, by a transaction of the term. */
function inTerm(transact: (text: string) => Promise<unknown>): Writer {
  return {
    ready: async () => {
      if (term === undefined || term.signal.aborted) term = await elector.acquire();
    },
    write: async (text) => {
      try {
        await transact(text);
        return "committed";
      } catch (error) {
        return TenureError.is(error) && error.code === "OUTCOME_UNKNOWN" ? "unknown" : "refused";
      }
    },
    count: async (text) => (await server.query("select from written where what = $1", [text])).length,
  };
}

function byLibrary(name: (typeof LIBRARIES)[number]): Writer {
  const writer = inTerm(async (text) => {
    await libraries.get(name)!.transact(term!, async (send) => {
      await send(`insert into written values ('${text}')`);
    });
  });
  const ready = async (): Promise<void> => {
    await writer.ready();
    // Its pool may still have sessions that a test before has ended.
    await waitFor("a session", async () => (await writer.write(fresh("plain"))) === "committed");
  };
  return { ...writer, ready };
}

const writers: Readonly<Record<"term.tx" | "the log" | (typeof LIBRARIES)[number], Writer>> = {
  "term.tx": inTerm((text) =>
    term!.tx(async (db) => {
      // A savepoint makes `tx` mark its transaction: the answer to COMMIT is longer then, as the proxy needs it.
      await db.query("savepoint a");
      await db.query("insert into written values ($1)", [text]);
    }),
  ),
  kysely: byLibrary("kysely"),
  drizzle: byLibrary("drizzle"),
  "drizzle-postgres-js": byLibrary("drizzle-postgres-js"),
  "postgres-js": byLibrary("postgres-js"),
  "the log": {
    ready: opened,
    write: async (text) => {
      try {
        return (await node.log.append(epoch, node.log.head().position, [bytes(text)])).outcome as Verdict;
      } catch {
        return "refused";
      }
    },
    count: async (text) => (await server.query("select from tenure_log where data = $1", [bytes(text)])).length,
  },
};

async function opened(): Promise<void> {
  await waitFor("the log to be opened", async () => {
    try {
      return (await node.log.open(++epoch)).outcome === "opened";
    } catch {
      return false;
    }
  });
}

/** The process of the session that is inside COMMIT. */
async function committing(event: "PgSleep" | "SyncRep"): Promise<number> {
  let pid = 0;
  await waitFor(`a session in ${event}`, async () => {
    const text = "select pid from pg_stat_activity where wait_event = $1";
    [{ pid } = { pid: 0 }] = await server.query<{ pid: number }>(text, [event]);
    return pid > 0;
  });
  return pid;
}

async function restarted(): Promise<void> {
  await waitFor("the server to be back", async () => {
    return server.query("select").then(
      () => true,
      () => false,
    );
  });
}

describe.each(["term.tx", "the log", ...LIBRARIES] as const)("%s, when COMMIT fails", (name) => {
  const writer = writers[name];
  beforeEach(() => writer.ready());

  test("a commit without a fault is committed", async () => {
    const text = fresh("plain");
    expect(await writer.write(text)).toBe("committed");
    expect(await writer.count(text)).toBe(1);
  });

  test.each(["40001", "40P01", "23505", "53100", "57014", "54000"])(
    "with %s and a session that goes on, it is refused and not written",
    async (sqlstate) => {
      const text = fresh(`raise ${sqlstate}`);
      expect(await writer.write(text)).toBe("refused");
      expect(await writer.count(text)).toBe(0);
    },
  );

  test.each(["58030", "58000", "XX000", "XX001", "40003", "08006", "08007", "57P01", "57P02", "57P03"])(
    "with %s it is unknown: who says that may have committed",
    async (sqlstate) => {
      const text = fresh(`raise ${sqlstate}`);
      expect(await writer.write(text)).toBe("unknown");
      expect(await writer.count(text)).toBe(0);
    },
  );

  test("because it is cancelled, it is refused and not written", async () => {
    const text = fresh("sleep");
    const verdict = writer.write(text);
    await server.query("select pg_cancel_backend($1)", [await committing("PgSleep")]);
    expect(await verdict).toBe("refused");
    expect(await writer.count(text)).toBe(0);
  });

  test("a cancelled wait for a standby is committed, as the server says", async () => {
    const text = fresh("wait");
    const verdict = writer.write(text);
    await server.query("select pg_cancel_backend($1)", [await committing("SyncRep")]);
    expect(await verdict).toBe("committed");
    expect(await writer.count(text)).toBe(1);
  });

  test("because its session is terminated before the commit record, it is unknown and not written", async () => {
    const text = fresh("sleep");
    const verdict = writer.write(text);
    await server.query("select pg_terminate_backend($1)", [await committing("PgSleep")]);
    expect(await verdict).toBe("unknown");
    expect(await writer.count(text)).toBe(0);
  });

  test("because its session is terminated after the commit record, it is unknown and written", async () => {
    const text = fresh("wait");
    const verdict = writer.write(text);
    await server.query("select pg_terminate_backend($1)", [await committing("SyncRep")]);
    expect(await verdict).toBe("unknown");
    expect(await writer.count(text)).toBe(1);
  });
});

test.each(["term.tx", "the log"] as const)("%s, when its backend is killed, or another's is: unknown", async (name) => {
  const writer = writers[name];
  for (const whose of ["own", "another's"]) {
    await writer.ready();
    const text = fresh("sleep");
    const verdict = writer.write(text);
    const pid = await committing("PgSleep");
    const other = await connectTo(server.url());
    const { rows } = await other.query<{ pid: number }>("select pg_backend_pid() as pid");
    process.kill(whose === "own" ? pid : rows[0]!.pid, "SIGKILL");
    expect(await verdict, whose).toBe("unknown");
    await other.end().catch(() => undefined);
    await restarted();
    expect(await writer.count(text), whose).toBe(0);
  }
  await writer.ready();
  const after = fresh("plain");
  expect([await writer.write(after), await writer.count(after)]).toEqual(["committed", 1]);
});

test.each(["term.tx", "the log"] as const)(
  "%s, with 40003 of a server that has committed and goes on: unknown and written",
  async (name) => {
    const text = fresh("plain");
    expect(await answered(writers[name], text, "40003", "ERROR")).toBe("unknown");
    expect(await writers[name].count(text)).toBe(1);
  },
);

test.each(Object.entries(writers))(
  "%s, when the connection breaks while COMMIT waits behind its record: unknown and written",
  async (_name, writer) => {
    const text = fresh("wait");
    await writer.ready();
    const verdict = writer.write(text);
    const pid = await committing("SyncRep");
    proxy.reset();
    expect(await verdict).toBe("unknown");
    await server.query("select pg_cancel_backend($1)", [pid]);
    await waitFor("the commit", async () => (await writer.count(text)) === 1);
  },
);

test("the log, when a server that has committed says PANIC in its own language and is gone: unknown and written", async () => {
  const text = fresh("plain");
  const writer = writers["the log"];
  expect(await answered(writer, text, "53100", "PANIK", true)).toBe("unknown");
  expect(await writer.count(text)).toBe(1);
});

test("a server that takes no connections (57P03) has been sent nothing: refused, and the next attempt is committed", async () => {
  const standby = await server.standby();
  try {
    await standby.query("alter system set hot_standby = off");
    await standby.stop();
    // It never answers: the wait for that ends with the server.
    standby.start().catch(() => undefined);
    const target = { host: "127.0.0.1", port: standby.port };
    await waitFor("57P03", () =>
      connectTo(standby.url()).then(
        () => false,
        (error) => error.code === "57P03",
      ),
    );
    for (const name of ["term.tx", "the log"] as const) {
      const writer = writers[name];
      const text = fresh("plain");
      await writer.ready();
      proxy.swap(target);
      proxy.reset();
      await waitFor("idle clients to be gone", () => pool.idleCount === 0 && proxy.connections === 0);
      expect(await writer.write(text)).toBe("refused");
      proxy.swap({ host: "127.0.0.1", port: server.port });
      await writer.ready();
      expect([await writer.write(text), await writer.count(text)]).toEqual(["committed", 1]);
    }
  } finally {
    await standby.end();
  }
});

/** The server commits, and this is what the client hears in place of the answer; then, perhaps, nothing more. */
async function answered(
  writer: Writer,
  text: string,
  sqlstate: string,
  severity: string,
  isLast = false,
): Promise<Verdict> {
  await writer.ready();
  let isSaid = false;
  proxy.rewrite = (chunk) => {
    const changed = isSaid ? undefined : commitAnswered(chunk, { sqlstate, severity });
    if (changed === undefined) return chunk;
    isSaid = true;
    if (isLast) proxy.cut();
    return changed;
  };
  try {
    return await writer.write(text);
  } finally {
    proxy.rewrite = undefined;
    await proxy.heal();
    expect(isSaid).toBe(true);
  }
}
