// Users of one inbox who have nothing to do with each other: transactions that commit in another order than they submitted,
// SERIALIZABLE ones, one that stays open for hours, another log's.

import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { PostgresInbox } from "../../src/logs/postgres/index.ts";
import { connectTo } from "../postgres/test-seat.ts";
import { freshDatabase, one } from "../postgres/test-sql.ts";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { inboxOf, type Look, watchedDesk } from "./test-inbox.ts";
import { bytes, logNode } from "./test-log-node.ts";

/** What no look may need, however many rows are dead: pages of 8 KiB. */
const PAGES_MAX = 60;

let server: PostgresServer;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", autovacuum: "off" } });
});

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

afterAll(async () => {
  await server.end();
});

async function users(url: string, count: number): Promise<Client[]> {
  const all = await Promise.all(Array.from({ length: count }, () => connectTo(url)));
  for (const user of all) closing.push(() => user.end());
  return all;
}

function opened(inbox: PostgresInbox): PostgresInbox {
  closing.push(() => inbox.close());
  return inbox;
}

async function payloads(inbox: PostgresInbox): Promise<string[]> {
  return (await inbox.next(100)).map(({ payload }) => payload);
}

test.each(["read committed", "repeatable read", "serializable"])(
  "two transactions at %s that submit have nothing to do with each other: both commit",
  async (level) => {
    const [a, b] = (await users(await freshDatabase(server), 2)) as [Client, Client];
    for (const user of [a, b]) await user.query(`begin isolation level ${level}`);
    for (const user of [a, b]) await user.query("select tenure_submit('k', '1')");
    for (const user of [a, b]) await user.query("commit");
    expect(await one(a, "select count(*)::int from tenure_inbox")).toBe(2);
  },
);

test("a lower number that is committed later is told at once, and in its place among those that wait", async () => {
  const url = await freshDatabase(server);
  const [slow, quick] = (await users(url, 2)) as [Client, Client];
  const inbox = opened(inboxOf(url, { fullLookMs: 600_000 }));
  await quick.query("select tenure_submit('k', '0')");
  expect(await payloads(inbox)).toEqual(["0"]);
  await slow.query("begin; select tenure_submit('k', '1')");
  await quick.query("select tenure_submit('k', '2')");
  expect(await payloads(inbox)).toEqual(["2"]);
  await slow.query("commit");
  await quick.query("select tenure_submit('k', '3')");
  expect(await payloads(inbox)).toEqual(["1", "3"]);
});

test("one whose number was forgotten is told by the next look at everything", async () => {
  const url = await freshDatabase(server);
  const [slow, quick] = (await users(url, 2)) as [Client, Client];
  const inbox = opened(inboxOf(url, { fullLookMs: 300, pollMs: 50 }));
  await quick.query("select tenure_submit('k', '0')");
  expect(await payloads(inbox)).toEqual(["0"]);
  await slow.query("begin; select tenure_submit('k', '1')");
  // More numbers are passed over than are remembered.
  await quick.query("begin; select tenure_submit('k', 'null') from generate_series(1, 3000); rollback");
  await quick.query("select tenure_submit('k', '2')");
  expect(await payloads(inbox)).toEqual(["2"]);
  await slow.query("commit");
  expect(await payloads(inbox)).toEqual(["1"]);
});

test("while one old transaction is open, rows that were taken over cost neither a submission nor a look", async () => {
  const url = await freshDatabase(server);
  const [user, old] = (await users(url, 2)) as [Client, Client];
  await old.query("begin isolation level repeatable read; select count(*) from tenure_log_head");
  const { desk, looks } = watchedDesk(url);
  const inbox = opened(inboxOf(url, { desk, fullLookMs: 600_000 }));
  await user.query(
    "insert into tenure_inbox (log, kind, payload, options) select 'jobs', 'k', '1', '{}' from generate_series(1, 50000)",
  );
  await user.query("delete from tenure_inbox");
  await user.query("select tenure_submit('k', '1')");
  expect(await payloads(inbox)).toEqual(["1"]);
  await user.query("select tenure_submit('k', '2')");
  expect(await payloads(inbox)).toEqual(["2"]);
  const last = looks.at(-1) as Look;
  expect(await pagesOf(user, last.text, last.values)).toBeLessThan(PAGES_MAX);
  // Its triggers, indexes and the sequence included.
  await user.query("select tenure_submit('k', '3')");
  expect(await pagesOf(user, "select tenure_submit('k', '4')", [])).toBeLessThan(PAGES_MAX);
});

async function pagesOf(user: Client, text: string, values: readonly unknown[]): Promise<number> {
  const plan = (await one(user, `explain (analyze, buffers, format json) ${text}`, values)) as [
    { Plan: Record<string, number> },
  ];
  return plan[0].Plan["Shared Hit Blocks"]! + plan[0].Plan["Shared Read Blocks"]!;
}

test("two logs of one schema do not take each other's submissions, and each row says who submitted it", async () => {
  const url = await freshDatabase(server);
  const [user] = (await users(url, 1)) as [Client];
  await user.query(
    "create role app login password 'secret'; grant execute on function tenure_submit(text, jsonb, jsonb, text) to app",
  );
  const app = await connectTo(server.url(new URL(url).pathname.slice(1), "app", "secret"));
  closing.push(() => app.end());
  await app.query("select tenure_submit('k', '1')");
  await user.query("select tenure_submit('k', '2', '{}', 'other')");
  const jobs = opened(inboxOf(url));
  const other = opened(inboxOf(url, { log: "other" }));
  expect(await jobs.next(10)).toMatchObject([{ payload: "1", by: "app" }]);
  const [foreign] = await other.next(10);
  expect(foreign).toMatchObject({ payload: "2", by: "postgres" });
  const leader = logNode(url, "leader");
  closing.push(() => leader.log.close());
  await leader.log.start();
  await leader.log.open(1);
  await expect(leader.log.appendTaking(1, 0, [bytes("x")], [foreign!.id])).rejects.toThrow(/taken by somebody else/);
  expect(await one(user, "select count(*)::int from tenure_inbox")).toBe(2);
});

test("a submission wakes its own log's inbox, also where others wait already", async () => {
  const url = await freshDatabase(server);
  const [user] = (await users(url, 1)) as [Client];
  const { desk, looks } = watchedDesk(url);
  const inbox = opened(inboxOf(url, { desk, pollMs: 600_000, fullLookMs: 600_000 }));
  await user.query("select tenure_submit('k', '1')");
  expect(await payloads(inbox)).toEqual(["1"]);
  const next = payloads(inbox);
  await waitFor("it to have looked", () => looks.length >= 2);
  await user.query("select tenure_submit('k', '2', '{}', 'other')");
  await user.query("select tenure_submit('k', '3')");
  expect(await next).toEqual(["3"]);
});
