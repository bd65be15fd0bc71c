// What people get wrong: each time the message says what to do, and nothing acts.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { TenureError } from "../../src/core/kit/errors.ts";
import { createElector } from "../../src/entry/index.ts";
import { type PooledClient, postgres, type PostgresOptions } from "../../src/entry/postgres.ts";
import { freePort, type PostgresServer, startPostgres, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import { Candidate } from "./test-elector.ts";
import { connectTo, FAST, NEVER, seatOf } from "./test-seat.ts";

const PASSWORD = "s3cret-in-the-url";

let server: PostgresServer;
let proxy: TcpProxy;

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  proxy = await startProxy({ host: "127.0.0.1", port: server.port });
  await server.query(`create role limited login password '${PASSWORD}'`);
});
afterEach(() => {
  proxy.rewrite = undefined;
});
afterAll(async () => {
  await proxy?.end();
  await server?.end();
});

/** What `lead` rejects with, through a whole elector; nothing may have acted. */
async function refusal(scope: string, options: PostgresOptions<PooledClient>): Promise<TenureError> {
  let acted = false;
  const elector = createElector({ scope, backend: postgres({ ...FAST, ...options }) });
  try {
    await elector.lead(() => {
      acted = true;
    });
  } catch (error) {
    expect(acted).toBe(false);
    if (!TenureError.is(error)) throw error;
    expect(error.message).not.toContain(PASSWORD);
    return error;
  } finally {
    await elector.close();
  }
  throw new Error("it led");
}

/** What an elector that goes on trying says; nothing may have acted. */
async function complaint(scope: string, options: PostgresOptions<PooledClient>): Promise<string> {
  const candidate = new Candidate(scope, options);
  try {
    await waitFor("a warning", () => candidate.warnings.length > 0);
    expect(candidate.epochs).toEqual([]);
    expect(candidate.refusal).toBeUndefined();
    expect(candidate.warnings.join()).not.toContain(PASSWORD);
    return candidate.warnings[0] ?? "";
  } finally {
    await candidate.close();
  }
}

describe("the URL", () => {
  it.each([
    "",
    "localhost",
    "mysql://h/db",
    "http://h:5432",
    "host=localhost dbname=x",
    `postgres://u:${PASSWORD}@h:port/db`,
    `postgres://u:${PASSWORD}@h/a%zz`,
    `postgres://u:${PASSWORD}@h%zz/a`,
  ])("%j is refused at the call, and not shown", (url) => {
    expect(() => postgres(url)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(() => postgres(url)).toThrow(/postgres\(\): url .*postgres:\/\/user:password@host:5432\/database/);
    expect(() => postgres(url)).not.toThrow(PASSWORD);
  });

  it("may be missing only where there is a pool", () => {
    expect(() => postgres({})).toThrow(/postgres\(\): url is missing/);
    expect(() => postgres({ connect: "pool" } as never)).toThrow(/connect must be a function/);
  });

  it("with a host that does not exist: says so, and tries again", async () => {
    const said = await complaint("dns", { url: `postgres://u:${PASSWORD}@no-such-host.invalid/db` });
    expect(said).toContain("can't reach Postgres at no-such-host.invalid:5432/db: the host name is not known (DNS)");
  });

  it("of a server that is not there: says so, and leads when it is", async () => {
    const port = await freePort();
    const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
    const candidate = new Candidate("unreachable", { url });
    await waitFor("a warning", () => candidate.warnings.length > 0);
    expect(candidate.warnings[0]).toContain(`can't reach Postgres at 127.0.0.1:${port}/postgres: connection refused`);
    expect(candidate.epochs).toEqual([]);
    const late = await startPostgres({ port, settings: { fsync: "off" } });
    await waitFor("a term", () => candidate.epochs.length > 0);
    await candidate.close();
    await late.end();
  });

  it("with a wrong password, a missing one, or a database that does not exist: ends the campaign", async () => {
    const wrong = await refusal("password", { url: server.url("postgres", "limited", `${PASSWORD}-not`) });
    expect(wrong).toMatchObject({ code: "PERMISSION_DENIED", retryable: false });
    expect(wrong.message).toMatch(/password authentication failed.*Check the user and the password of the URL/);
    const none = await refusal("password", { url: server.url("postgres", "limited") });
    expect(none).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(none.message).toMatch(/wants a password, and the URL has none/);
    const database = await refusal("database", { url: server.url("no_such_database") });
    expect(database).toMatchObject({ code: "CONFIG_INVALID" });
    expect(database.message).toMatch(/no_such_database.*Create the database, or correct the last part of the URL/);
  });

  it("with TLS that the server does not speak: ends the campaign", async () => {
    const error = await refusal("tls", { url: `${server.url()}?sslmode=verify-full` });
    expect(error).toMatchObject({ code: "CONFIG_INVALID" });
    expect(error.message).toMatch(/TLS with Postgres at .* failed: .*Check sslmode/);
  });
});

it("without the package pg: names the command that installs it", async () => {
  const script = `
    import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) {
      if (name !== "pg") return next(name, context);
      throw Object.assign(new Error("Cannot find package 'pg'"), { code: "ERR_MODULE_NOT_FOUND" });
    } });
    const { createElector } = await import("./src/entry/index.ts");
    const { postgres } = await import("./src/entry/postgres.ts");
    const elector = createElector({ scope: "s", backend: postgres("postgres://h/d") });
    await elector.lead(() => console.log("acted")).catch((error) => console.log(error.code, error.message));
    await elector.close();`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
  expect(stdout).toContain('CONFIG_INVALID the package "pg" is not installed');
  expect(stdout).toContain("npm install pg");
  expect(stdout).not.toContain("acted");
});

describe("the role and the schema", () => {
  it("that may not create tables: names the grants", async () => {
    const url = server.url(await fresh("no_create"), "limited", PASSWORD);
    const error = await refusal("no-create", { url });
    expect(error).toMatchObject({ code: "PERMISSION_DENIED", retryable: false });
    expect(error.message).toContain("docs/reference/permissions.md");
  });

  it("that is missing where it is only checked: names the command", async () => {
    const error = await refusal("check", { url: server.url(await fresh("only_check")), migrate: "check" });
    expect(error).toMatchObject({ code: "SCHEMA_MISSING", retryable: false });
    expect(error.message).toContain('Run "tenure schema apply"');
    expect(error.message).toContain("table tenure_leader_state");
  });

  it("whose functions the role may not call: names each of them", async () => {
    const database = await fresh("no_execute");
    const owner = seatOf({ url: server.url(database) }, "owner");
    await owner.acquire(NEVER);
    await owner.close();
    const error = await refusal("no-execute", { url: server.url(database, "limited", PASSWORD) });
    expect(error).toMatchObject({ code: "PERMISSION_DENIED", retryable: false });
    expect(error.message).toContain("function tenure_bump");
  });

  it("with a name that can't be one", () => {
    expect(() => postgres({ url: server.url(), schema: 'x"; drop table y' })).toThrow(/schema is/);
  });
});

describe("the scope", () => {
  it("that is empty is refused at the call", () => {
    expect(() => createElector({ scope: "", backend: postgres(server.url()) })).toThrow(/scope must not be empty/);
  });

  it.each(["block", "poll"] as const)(
    "that shares its lock key with another is refused at once, and both are named (%s)",
    async (wait) => {
      const lockKey = wait === "block" ? 77n : "78";
      const first = seatOf({ url: server.url(), lockKey }, `one scope ${wait}`);
      // It leads: a clash must not look like waiting for one's turn.
      await first.acquire(NEVER);
      const error = await refusal(`another scope ${wait}`, { url: server.url(), lockKey, wait });
      expect(error).toMatchObject({ code: "SCOPE_CLASH", retryable: false });
      expect(error.message).toContain(`belongs to scope "one scope ${wait}". Rename scope "another scope ${wait}"`);
      const key = await refusal(`one scope ${wait}`, { url: server.url(), wait });
      expect(key).toMatchObject({ code: "SCOPE_CLASH", retryable: false });
      expect(key.message).toContain(`is stored with lock key ${lockKey}`);
      await first.close();
    },
  );
});

describe("the server", () => {
  it("older than 14 is refused, by its version", async () => {
    const [row] = await server.query<{ server_version_num: string }>("show server_version_num");
    const version = row?.server_version_num ?? "";
    proxy.rewrite = (bytes) => Buffer.from(bytes.toString("latin1").replaceAll(version, "130022"), "latin1");
    const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${proxy.port}/postgres`;
    const error = await refusal("old", { url });
    expect(error).toMatchObject({ code: "BACKEND_UNSUPPORTED", retryable: false });
    expect(error.message).toMatch(/is version 13 .*must be 14 or newer.*Upgrade the server/);
  });

  it("without a connection to spare: says what to raise, and tries again", async () => {
    const settings = { fsync: "off", max_connections: "4", superuser_reserved_connections: "3", max_wal_senders: "0" };
    const full = await startPostgres({ settings });
    try {
      await full.query(`create role limited login password '${PASSWORD}'`);
      const url = full.url("postgres", "limited", PASSWORD);
      const only = await connectTo(url);
      expect(await complaint("full", { url })).toMatch(/53300.*raise max_connections/);
      await only.end();
    } finally {
      await full.end();
    }
  });
});

/** A database that everybody may connect to, with nothing in it. */
async function fresh(name: string): Promise<string> {
  await server.createDatabase(name);
  return name;
}
