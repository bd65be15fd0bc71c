// Where a log can't be kept it says so at the start, in words that say what to do: a pooler, a standby, a role without its
// grants, no server at all. The role of docs/reference/permissions.md is enough.

import { readFile } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { urlDriver } from "../../src/drivers/postgres/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { settingsOf } from "../../src/electors/postgres/index.ts";
import { PostgresDesk } from "../../src/postgres/desk.ts";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { connectTo } from "../postgres/test-seat.ts";
import { one, refusal } from "../postgres/test-sql.ts";
import {
  freePort,
  pgBouncerPath,
  type PostgresServer,
  startPgBouncer,
  startPostgres,
  waitFor,
} from "../servers/index.ts";
import { bytes, type LogNode, logNode } from "./test-log-node.ts";

let server: PostgresServer;
const nodes: LogNode[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterEach(async () => {
  await Promise.all(nodes.splice(0).map(({ log }) => log.close()));
});

afterAll(async () => {
  await server.end();
});

function node(url: string, options: Parameters<typeof logNode>[2] = {}): LogNode {
  const made = logNode(url, "n", options);
  nodes.push(made);
  return made;
}

test.skipIf(pgBouncerPath() === undefined)("trap 41: a pooler in transaction mode is refused", async () => {
  const bouncer = await startPgBouncer(server, "transaction");
  try {
    const start = node(bouncer?.url() ?? "").log.start();
    await expect(start).rejects.toMatchObject({ code: "POOLER_IN_PATH", retryable: false });
    await expect(start).rejects.toThrow("give the URL of the server itself, or of a pool in session mode");
  } finally {
    await bouncer?.end();
  }
});

test("trap 37: a standby is refused, tried again, and followed once it is promoted; the old epoch appends nothing there", async () => {
  const primary = node(server.url());
  await primary.log.start();
  await primary.log.open(1);
  expect(await primary.log.append(1, 0, [bytes("a")])).toMatchObject({ outcome: "committed" });
  const standby = await server.standby();
  try {
    await standby.caughtUp(server);
    const waiting = node(standby.url());
    const started = waiting.log.start();
    await waitFor("it to be refused", () => waiting.warnings.some((line) => line.includes("is a standby")));
    await expect(waiting.log.open(2)).rejects.toMatchObject({ code: "BACKEND_READ_ONLY", retryable: true });
    await standby.promote();
    await started;
    expect(waiting.fold.applied).toEqual(["1:1:a"]);
    // As a leader of epoch 1 would that has lost its primary: same epoch, same opening, same position, another timeline.
    const append = "select taken from tenure_log_append('jobs', 1, 1, 1, 'b', '{1}', null)";
    expect(await standby.query(append)).toEqual([{ taken: false }]);
    expect(await waiting.log.open(2)).toEqual({ outcome: "opened", head: { position: 1, epoch: 2 } });
    expect(await waiting.log.append(2, 1, [bytes("b")])).toMatchObject({ outcome: "committed" });
  } finally {
    await Promise.all(nodes.splice(0).map(({ log }) => log.close()));
    await standby.end();
  }
});

test("a server that is not there is waited for, with the reason in the log, and an append fails at once where nothing was sent", async () => {
  const { log, warnings } = node(`postgres://u:secret@127.0.0.1:${await freePort()}/db`);
  const started = log.start();
  started.catch(() => undefined);
  await waitFor("an attempt", () => warnings.length >= 1);
  expect(warnings.join()).toContain("connection refused");
  expect(warnings.join()).not.toContain("secret");
  await expect(log.open(1)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
  await log.close();
  await expect(started).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
});

test("the roles of the reference are enough for a log and for submissions, and less is refused by name", async () => {
  const url = await server.createDatabase("roles");
  const admin = await connectTo(url);
  await admin.query(schemaSql("tenure"));
  const document = await readFile(new URL("../../docs/reference/permissions.md", import.meta.url), "utf8");
  for (const name of ["log", "submitter"]) {
    const sql = new RegExp(`^\`\`\`sql ${name}\\n(.*?)^\`\`\`$`, "ms").exec(document)?.[1] ?? "";
    await admin.query(sql);
    await admin.query(`alter role tenure_${name} password 'secret'`);
  }
  const own = server.url("roles", "tenure_log", "secret");
  const desk = (): PostgresDesk =>
    new PostgresDesk(
      urlDriver(own, "tenure"),
      systemClock,
      settingsOf({ url: own, schema: "tenure", migrate: "check" }),
      "the log",
    );
  const { log } = node(own, { schema: "tenure", desk: desk(), snapshots: { everyRecords: 1, keepRecords: 0 } });
  await log.start();
  await log.open(1);
  const submitter = await connectTo(server.url("roles", "tenure_submitter", "secret"));
  const id = String(await one(submitter, "select tenure.tenure_submit('k', '{}')"));
  expect(await log.appendTaking(1, 0, [bytes("a")], [id])).toMatchObject({ outcome: "committed" });
  await log.settled();
  expect(await one(admin, "select first from tenure.tenure_log_head")).toBe("2");
  expect(await refusal(submitter.query("select * from tenure.tenure_inbox"))).toBe("42501");
  expect(await refusal(submitter.query("select tenure.tenure_log_open('jobs', 9)"))).toBe("42501");
  await admin.query("revoke select on tenure.tenure_log from tenure_log");
  const start = node(own, { schema: "tenure", desk: desk() }).log.start();
  await expect(start).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  await expect(start).rejects.toThrow("table tenure_log ");
  await submitter.end();
  await admin.end();
});

test("a database whose defaults are serializable and asynchronous keeps the log's promises all the same", async () => {
  const url = await server.createDatabase("defaults");
  await server.query(`alter database defaults set default_transaction_isolation = 'serializable'`);
  await server.query(`alter database defaults set synchronous_commit = off`);
  const desk = new PostgresDesk(urlDriver(url, "tenure"), systemClock, settingsOf({ url }), "the log");
  const lane = await desk.connect("tenure look", {});
  const settings = ["default_transaction_isolation", "synchronous_commit", "statement_timeout", "lock_timeout"];
  const [row] = await lane.ask(`select ${settings.map((name) => `current_setting('${name}') as ${name}`).join(", ")}`);
  expect(row).toEqual({
    default_transaction_isolation: "read committed",
    synchronous_commit: "on",
    statement_timeout: "2s",
    lock_timeout: "1s",
  });
  await lane.end();
});

test("trap 43: the head can't be sent back or deleted, and records can't be changed, by the owner neither", async () => {
  const url = await server.createDatabase("guarded");
  const { log } = node(url);
  await log.start();
  await log.open(3);
  await log.append(3, 0, [bytes("a"), bytes("b")]);
  const admin = await connectTo(url);
  for (const text of [
    "delete from tenure_log_head",
    "truncate tenure_log_head",
    "truncate tenure_log",
    "update tenure_log_head set epoch = 2",
    "update tenure_log_head set opened = 0",
    "update tenure_log_head set position = 1",
    "update tenure_log_head set log = 'other'",
    "update tenure_log set data = 'x'",
  ]) {
    expect(await refusal(admin.query(text)), text).toBe("TN007");
  }
  await admin.end();
});

test.each(["", "Jobs", "a b", "a:b", "-a", "a".repeat(64)])("a log can't be named %j", (log) => {
  expect(() => logNode("postgres://u@127.0.0.1/db", "n", { log })).toThrow(/a log can't be named/);
});
