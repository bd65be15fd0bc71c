import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { dirname } from "node:path";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { Kysely, PostgresDialect, sql as kyselySql } from "kysely";
import { Client, Pool } from "pg";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  etcdPath,
  freePort,
  pgBouncerPath,
  startEtcd,
  startPgBouncer,
  startPostgres,
  startProxy,
  waitFor,
  type PostgresServer,
  type TcpProxy,
} from "./index.ts";

const enders: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of enders.splice(0).toReversed()) await end();
});

function endLater<T extends { end(): Promise<void> }>(server: T): T {
  enders.push(() => server.end());
  return server;
}

async function refuses(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.once("error", () => resolve(true));
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
  });
}

/** An orphan that has ended keeps its number for a while; what it cannot keep is its open files. */
function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) throw new Error("it never had a process");
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || readdirSync(`/proc/${pid}/fd`).length > 0;
  } catch {
    return false;
  }
}

async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  enders.push(() => client.end());
  return client;
}

describe("PostgreSQL", () => {
  test("starts with our settings, syncs its writes, and is gone after end()", async () => {
    const server = endLater(await startPostgres({ settings: { max_connections: "33", work_mem: "1MB" } }));
    const settings = "select name, setting from pg_settings where name = any($1) order by name";
    const names = ["fsync", "max_connections", "wal_level", "work_mem"];
    expect(await server.query(settings, [names])).toEqual([
      { name: "fsync", setting: "on" },
      { name: "max_connections", setting: "33" },
      { name: "wal_level", setting: "replica" },
      { name: "work_mem", setting: "1024" },
    ]);
    expect(await server.query("select current_setting('server_version_num')::int / 10000 as major")).toEqual([
      { major: 18 },
    ]);
    const { pid, dataDirectory } = server;
    expect(isAlive(pid)).toBe(true);
    await server.end();
    await server.end();
    expect(isAlive(pid)).toBe(false);
    expect(await refuses(server.port)).toBe(true);
    expect(existsSync(dirname(dataDirectory))).toBe(false);
  });

  test("keeps what was committed over restarts and a kill, on the same port", async () => {
    const server = endLater(await startPostgres());
    const url = await server.createDatabase("shop");
    await server.query("create table seen (n int)", [], "shop");
    for (const [index, again] of [
      () => server.restart("fast"),
      () => server.restart("immediate"),
      () => server.kill().then(() => server.start()),
    ].entries()) {
      const before = server.pid;
      await server.query("insert into seen values ($1)", [index], "shop");
      await again();
      expect(server.pid).not.toBe(before);
    }
    const client = await connected(url);
    expect((await client.query("select n from seen order by n")).rows).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
  });

  test("leaves no process behind after a kill, not even a backend that works", async () => {
    const server = endLater(await startPostgres());
    const client = await connected(server.url());
    const backend = (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid;
    const sleeping = client.query("select pg_sleep(600)").then(
      () => "slept",
      () => "broken",
    );
    await waitFor(
      "the sleep",
      async () =>
        (
          await server.query("select 1 from pg_stat_activity where query like '%pg_sleep(600)%' and pid = $1", [
            backend,
          ])
        ).length === 1,
    );
    await server.kill();
    expect(isAlive(backend)).toBe(false);
    expect(server.pid).toBeUndefined();
    expect(await sleeping).toBe("broken");
  });

  test("asks other roles for their password", async () => {
    const server = endLater(await startPostgres());
    await server.query("create role app login password 'it''s'");
    const client = await connected(server.url("postgres", "app", "it's"));
    expect((await client.query("select current_user as me")).rows).toEqual([{ me: "app" }]);
    await expect(connected(server.url("postgres", "app", "wrong"))).rejects.toMatchObject({ code: "28P01" });
  });

  test("has standbys, which follow and can be promoted to a new timeline", async () => {
    const primary = endLater(await startPostgres());
    await primary.query("create table seen as select generate_series(1, 1000) as n");
    const standby = endLater(await primary.standby());
    const count = "select count(*)::int as count, pg_is_in_recovery() as standby from seen";
    await primary.query("insert into seen values (1001)");
    await standby.caughtUp(primary);
    expect(await standby.query(count)).toEqual([{ count: 1001, standby: true }]);
    await standby.restart();
    await primary.restart();
    await primary.query("insert into seen values (1002)");
    await standby.caughtUp(primary);
    expect(await primary.timeline()).toBe(1);
    await primary.kill();
    await standby.promote();
    expect(await standby.timeline()).toBe(2);
    await standby.query("insert into seen values (1003)");
    expect(await standby.query(count)).toEqual([{ count: 1003, standby: false }]);
  });

  test("is reached by every client that tests use, and they share one pg", async () => {
    const server = endLater(await startPostgres());
    const pool = new Pool({ connectionString: server.url() });
    const kysely = new Kysely<object>({ dialect: new PostgresDialect({ pool }) });
    expect((await kyselySql<{ n: number }>`select 1 as n`.execute(kysely)).rows).toEqual([{ n: 1 }]);
    expect((await drizzle(pool).execute(drizzleSql`select 2 as n`)).rows).toEqual([{ n: 2 }]);
    const ours = drizzle({ connection: server.url() }).$client;
    expect(ours).toBeInstanceOf(Pool);
    const js = postgres(server.url());
    expect([...(await js`select 3 as n`)]).toEqual([{ n: 3 }]);
    await Promise.all([kysely.destroy(), ours.end(), js.end()]);
  });

  test("says why it does not start", async () => {
    await expect(startPostgres({ settings: { no_such_setting: "1" } })).rejects.toThrow("no_such_setting");
  });

  test.skipIf(process.platform === "win32")("ends when the process that started it is killed", async () => {
    const door = new URL("./index.ts", import.meta.url).href;
    const program = `const { startPostgres } = await import(${JSON.stringify(door)});
      const server = await startPostgres();
      console.log(server.port + " " + server.pid + " " + server.dataDirectory);
      setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [port, , dataDirectory] = await new Promise<string[]>((resolve) => {
      child.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.trim().split(" ")));
    });
    expect(await refuses(Number(port))).toBe(false);
    child.kill("SIGKILL");
    await waitFor("the directory to vanish", () => !existsSync(dirname(dataDirectory ?? "")));
    expect(await refuses(Number(port))).toBe(true);
  });
});

describe("PgBouncer", () => {
  test.skipIf(pgBouncerPath() === undefined)(
    "shares connections per transaction or per session (skipped where it is not installed)",
    async () => {
      const server = endLater(await startPostgres());
      await server.query("create role app login password 'secret'");
      for (const mode of ["transaction", "session"] as const) {
        const settings = { default_pool_size: "1" };
        const bouncer = await startPgBouncer(server, mode, { users: { app: "secret" }, settings });
        if (bouncer === undefined) throw new Error("PgBouncer was there a moment ago");
        endLater(bouncer);
        const one = await connected(bouncer.url("postgres", "app"));
        await one.query("select 1");
        const two = new Client({ connectionString: bouncer.url("postgres", "app") });
        await two.connect();
        // With one server connection, a second client is served between transactions, or never.
        const answer = two.query("select current_user as me").then(({ rows }) => rows as unknown);
        const patience = new Promise((resolve) =>
          setTimeout(resolve, mode === "session" ? 300 : 30_000, "waits").unref(),
        );
        expect(await Promise.race([answer, patience])).toEqual(mode === "session" ? "waits" : [{ me: "app" }]);
        await one.end();
        expect(await answer).toEqual([{ me: "app" }]);
        await two.end();
        const { pid } = bouncer;
        await bouncer.stop();
        expect(isAlive(pid)).toBe(false);
        await bouncer.start();
        await bouncer.end();
        expect(await refuses(bouncer.port)).toBe(true);
      }
    },
  );
});

describe("etcd", () => {
  test.skipIf(etcdPath() === undefined)(
    "keeps its keys over a stop and a kill (skipped where it is not installed)",
    async () => {
      const server = endLater(await startEtcd());
      const ask = async (path: string, body: object): Promise<unknown> => {
        const response = await fetch(`${server.endpoint}${path}`, { method: "POST", body: JSON.stringify(body) });
        return response.json();
      };
      const key = Buffer.from("leader").toString("base64");
      const value = Buffer.from("n1").toString("base64");
      await ask("/v3/kv/put", { key, value });
      const { pid } = server;
      await server.stop();
      expect(isAlive(pid)).toBe(false);
      await server.start();
      await server.kill();
      expect(server.pid).toBeUndefined();
      await server.start();
      expect(await ask("/v3/kv/range", { key })).toMatchObject({ kvs: [{ key, value }] });
      await server.end();
      await server.end();
      expect(await refuses(server.port)).toBe(true);
      expect(existsSync(dirname(server.dataDirectory))).toBe(false);
    },
  );
});

describe("the proxy", () => {
  /** Says back what it hears; `said` is what the client got. */
  async function echo(): Promise<{ proxy: TcpProxy; heard: () => string; ask: () => Promise<Asked> }> {
    let heard = "";
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (bytes) => {
        heard += bytes.toString();
        socket.write(bytes);
      });
      socket.on("end", () => socket.end());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    enders.push(async () => void server.close());
    const proxy = endLater(await startProxy({ host: "127.0.0.1", port: (server.address() as AddressInfo).port }));
    return { proxy, heard: () => heard, ask: () => asked(proxy.port) };
  }

  interface Asked {
    readonly socket: Socket;
    said: string;
    ended: string;
  }

  async function asked(port: number): Promise<Asked> {
    const socket = connect(port, "127.0.0.1");
    const state: Asked = { socket, said: "", ended: "" };
    socket.on("data", (bytes) => {
      state.said += bytes.toString();
    });
    socket.on("end", () => {
      state.ended ||= "end";
    });
    socket.on("error", (error) => {
      state.ended ||= (error as NodeJS.ErrnoException).code ?? "error";
    });
    await new Promise((resolve) => socket.once("connect", resolve));
    enders.push(async () => void socket.destroy());
    return state;
  }

  test("passes bytes and ends, and counts connections", async () => {
    const { proxy, ask } = await echo();
    const client = await ask();
    client.socket.write("one");
    await waitFor("the echo", () => client.said === "one");
    expect(proxy.connections).toBe(1);
    client.socket.end("two");
    await waitFor("the end", () => client.ended === "end");
    expect(client.said).toBe("onetwo");
    await waitFor("the proxy to notice", () => proxy.connections === 0);
    expect(proxy.accepted).toBe(1);
  });

  test("a cut connection is silent, and resumes with all that was held back", async () => {
    const { proxy, heard, ask } = await echo();
    const client = await ask();
    client.socket.write("a");
    await waitFor("the echo", () => client.said === "a");
    proxy.cut("to-client");
    client.socket.write("b");
    await waitFor("the server to hear", () => heard() === "ab");
    proxy.cut("to-server");
    client.socket.write("c");
    const late = await ask();
    late.socket.write("d");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([heard(), client.said, client.ended, late.said, late.ended]).toEqual(["ab", "a", "", "", ""]);
    await proxy.heal("resume");
    await waitFor("what was held back", () => client.said === "abc" && late.said === "d");
  });

  test("a cut hides that the client went away, until the heal that resets", async () => {
    const { proxy, ask } = await echo();
    const client = await ask();
    const other = await ask();
    other.socket.write("x");
    await waitFor("the echo", () => other.said === "x");
    proxy.cut("both", "refused");
    client.socket.destroy();
    expect(await refuses(proxy.port)).toBe(true);
    expect(other.ended).toBe("");
    await proxy.heal("reset");
    await waitFor("the reset", () => other.ended === "ECONNRESET");
    const fresh = await ask();
    fresh.socket.write("y");
    await waitFor("the echo", () => fresh.said === "y");
  });

  test("resets, delays, rewrites and swaps", async () => {
    const { proxy, ask } = await echo();
    const client = await ask();
    proxy.rewrite = (bytes) => Buffer.from(bytes.toString().toUpperCase());
    client.socket.write("quiet");
    await waitFor("the echo", () => client.said === "QUIET");
    proxy.delay(60);
    const startedAt = performance.now();
    client.socket.write("!");
    await waitFor("the echo", () => client.said === "QUIET!");
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(119);
    proxy.swap({ host: "127.0.0.1", port: await freePort() });
    const lost = await ask();
    await waitFor("the end of the one that finds no server", () => lost.ended === "ECONNRESET");
    expect(client.ended).toBe("");
    proxy.reset();
    await waitFor("the reset", () => client.ended === "ECONNRESET");
    await proxy.end();
    await proxy.end();
    expect(await refuses(proxy.port)).toBe(true);
  });
});

describe("PostgreSQL behind the proxy", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.end());

  test("a query that was cut off is answered after the heal, and was done meanwhile", async () => {
    const proxy = endLater(await startProxy({ host: "127.0.0.1", port: server.port }));
    const url = new URL(server.url());
    url.port = String(proxy.port);
    const client = await connected(url.href);
    proxy.cut("to-client");
    const answer = client.query("create table done (n int)");
    await waitFor(
      "the table",
      async () =>
        (await server.query<{ done: boolean }>("select to_regclass('done') is not null as done"))[0]?.done === true,
    );
    await proxy.heal("resume");
    expect((await answer).command).toBe("CREATE");
  });
});
