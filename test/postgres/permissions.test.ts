// docs/reference/permissions.md, run as it stands: its SQL blocks make the roles, and the roles do their work with
// nothing else.

import { readFile } from "node:fs/promises";
import type { Client } from "pg";
import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { schema as schemaCommand } from "../../src/cli/schema/command.ts";
import { createElector } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { connectTo, FAST } from "./test-seat.ts";
import { one, refusal } from "./test-sql.ts";

const SCHEMA = "tenure";
const ROLES = ["owner", "elector", "application", "operator"] as const;
type Role = (typeof ROLES)[number];

let server: PostgresServer;
let blocks: ReadonlyMap<string, string>;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const text = await readFile(new URL("../../docs/reference/permissions.md", import.meta.url), "utf8");
  blocks = new Map([...text.matchAll(/^```sql (\w+)\n(.*?)^```$/gms)].map(([, name, sql]) => [name!, sql!]));
  server = await startPostgres();
  await block("owner");
  expect(await apply("owner")).toBe(0);
  for (const name of ["elector", "application", "operator"]) await block(name);
  await server.query("create table public.payment (id int primary key)");
  await server.query("grant insert, select on public.payment to tenure_application");
});

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

afterAll(async () => {
  await server.end();
});

/** Runs a block of the document as the superuser, and gives its roles passwords, which the document leaves to you. */
async function block(name: string): Promise<void> {
  const sql = blocks.get(name);
  if (sql === undefined) throw new Error(`the document has no block "sql ${name}"`);
  const admin = await connectTo(server.url());
  await admin.query(sql);
  for (const [, role] of sql.matchAll(/create role (\w+)/g)) await admin.query(`alter role ${role} password 'secret'`);
  await admin.end();
}

function urlOf(role: Role): string {
  return server.url("postgres", `tenure_${role}`, "secret");
}

function apply(role: Role): Promise<number> {
  return schemaCommand(["apply", "--schema", SCHEMA, "--backend", urlOf(role)]);
}

function check(role: Role): Promise<number> {
  return schemaCommand(["check", "--schema", SCHEMA, "--backend", urlOf(role)]);
}

async function client(role: Role): Promise<Client> {
  const connected = await connectTo(urlOf(role));
  closing.push(() => connected.end());
  return connected;
}

function electorFor(scope: string) {
  const pool = new Pool({ connectionString: urlOf("application") });
  pool.on("error", () => undefined);
  const backend = postgres({
    ...FAST,
    url: urlOf("elector"),
    connect: () => pool.connect(),
    schema: SCHEMA,
    migrate: "check",
  });
  const elector = createElector({ scope, backend });
  closing.push(async () => {
    await elector.close();
    await pool.end();
  });
  return elector;
}

test("the document has a block for each role, and one for pg_signal_backend", () => {
  expect([...blocks.keys()]).toEqual([...ROLES, "log", "submitter", "signal"]);
});

test("the elector leads and observes, and the application writes, with what the document grants", async () => {
  const elector = electorFor("payer");
  const term = await elector.acquire();
  await term.tx((db) => db.query("insert into payment values (1)"));
  await term.tx(async (db) => {
    await term.fence((text, values) => db.query(text, values));
    await db.query("insert into payment values (2)");
  });
  expect(await elector.leader()).toMatchObject({ epoch: term.epoch, identity: elector.identity });
  await term.resign();
  expect(await elector.leader()).toBeNull();
  expect(await server.query("select id from payment order by 1")).toEqual([{ id: 1 }, { id: 2 }]);
});

test("the operator sees who leads and asks it to step down", async () => {
  const operator = await client("operator");
  const term = await electorFor("asked").acquire();
  const asked = await operator.query("select * from tenure.tenure_ask_resign('asked', false)");
  expect(asked.rows).toEqual([expect.objectContaining({ epoch: String(term.epoch), terminated: 0 })]);
  await waitFor("the request", () => term.signal.aborted);
  await term.resign();
  const reason = "select reason from tenure.tenure_transition where epoch = $1 order by id desc limit 1";
  await waitFor("the resignation", async () => (await one(operator, reason, [term.epoch])) === "asked");
});

describe("no role can do more than that", () => {
  test.each([
    ["elector", ["tenure_beat", "tenure_bump", "tenure_resign", "tenure_wait"]],
    ["application", ["tenure_fence", "tenure_require_epoch"]],
    ["operator", ["tenure_ask_resign"]],
  ] as const)("the %s executes only what is its own", async (role, routines) => {
    const text = `select array_agg(p.proname::text order by p.proname) from pg_proc p
      where p.pronamespace = 'tenure'::regnamespace and has_function_privilege($1, p.oid, 'execute')`;
    const admin = await connectTo(server.url());
    closing.push(() => admin.end());
    expect(await one(admin, text, [`tenure_${role}`])).toEqual(routines);
    const writable = `select count(*)::int from pg_class c where c.relnamespace = 'tenure'::regnamespace and relkind = 'r'
      and has_table_privilege($1, c.oid, 'insert, update, delete, truncate, references, trigger')`;
    expect(await one(admin, writable, [`tenure_${role}`])).toBe(0);
  });

  test("the application reads no table and takes no epoch", async () => {
    const application = await client("application");
    expect(await refusal(application.query("select from tenure.tenure_leader_state"))).toBe("42501");
    const bump = "select tenure.tenure_bump(1, 's', 'me', '{}', 'c', null)";
    expect(await refusal(application.query(bump))).toBe("42501");
    expect(await refusal(application.query("select tenure.tenure_holds(1)"))).toBe("42501");
  });

  test("nobody but the owner applies the schema", async () => {
    await expect(apply("elector")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    expect(await apply("owner")).toBe(0);
  });
});

test("check passes for the elector, and names what another role lacks", async () => {
  expect(await check("elector")).toBe(0);
  expect(await check("application")).toBe(77);
  const elector = createElector({
    scope: "denied",
    backend: postgres({ ...FAST, url: urlOf("application"), schema: SCHEMA, migrate: "check" }),
  });
  closing.push(() => elector.close());
  await expect(elector.acquire()).rejects.toMatchObject({ code: "PERMISSION_DENIED", message: /tenure_bump/ });
});

describe("a transaction that outlives its leader", () => {
  /** Holds the fence as the application's role, on a scope that its first leader has just left by force. */
  async function left(scope: string, key: number): Promise<{ next: Client; stuck: Client }> {
    const [first, next, stuck] = [await client("elector"), await client("elector"), await client("application")];
    await first.query("select pg_advisory_lock($1)", [key]);
    await first.query("select tenure.tenure_bump($1, $2, 'first', '{}', 'c', null)", [key, scope]);
    await stuck.query(`begin; call tenure.tenure_fence(${key}, 1)`);
    await first.query("select pg_advisory_unlock($1)", [key]);
    await next.query("set statement_timeout = '600ms'");
    await next.query("select pg_advisory_lock($1)", [key]);
    return { next, stuck };
  }

  const again = "select tenure.tenure_bump($1, $2, 'next', '{}', 'c', null) as epoch";

  test("is waited for without pg_signal_backend, and the error says what to grant", async () => {
    const { next, stuck } = await left("waited for", 71);
    await expect(next.query(again, [71, "waited for"])).rejects.toMatchObject({
      code: "TN004",
      hint: expect.stringContaining("pg_signal_backend"),
    });
    const waiting = one(next, again, [71, "waited for"]);
    await stuck.query("commit");
    expect(await waiting).toBe("2");
  });

  test("is ended with it, and force works", async () => {
    const operator = await client("operator");
    const forced = "select terminated from tenure.tenure_ask_resign('ended', true)";
    const { next, stuck } = await left("ended", 72);
    await expect(operator.query(forced)).rejects.toMatchObject({
      code: "42501",
      message: /the owner of this function/,
    });
    await block("signal");
    expect(await one(next, again, [72, "ended"])).toBe("2");
    expect(await refusal(stuck.query("commit"))).not.toBe("");
    expect(await one(operator, forced)).toBe(1);
  });
});
