// `tenure_submit` inside a user's own transaction, and the leader that takes submissions over: in the inbox or in the log,
// never in both, never in none.

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { JobBody, shape } from "../../src/contract/index.ts";
import type { PostgresInbox } from "../../src/logs/postgres/index.ts";
import { connectTo } from "../postgres/test-seat.ts";
import { one, refusal } from "../postgres/test-sql.ts";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { inboxOf } from "./test-inbox.ts";
import { bytes, type LogNode, logNode, text } from "./test-log-node.ts";

let server: PostgresServer;
let databases = 0;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

afterAll(async () => {
  await server.end();
});

async function stage(): Promise<{ url: string; leader: LogNode; inbox: PostgresInbox }> {
  const url = await server.createDatabase(`inbox_${++databases}`);
  const leader = logNode(url, "leader");
  await leader.log.start();
  await leader.log.open(1);
  const inbox = inboxOf(url);
  open.push(leader.log, inbox);
  return { url, leader, inbox };
}

test("a submission counts with the user's transaction: committed it is told once, rolled back it never was", async () => {
  const { url, leader, inbox } = await stage();
  const user = await connectTo(url);
  await user.query("create table orders (id integer); begin; insert into orders values (1)");
  const kept = await one(user, `select tenure_submit('mail', '{"to": 1}', '{"priority": 2}')`);
  await user.query("commit; begin");
  await one(user, "select tenure_submit('mail', '{}')");
  await user.query("rollback");
  const found = await inbox.next(10);
  expect(found).toEqual([
    {
      id: kept,
      kind: "mail",
      payload: '{"to": 1}',
      options: '{"priority": 2}',
      submittedAtMs: expect.any(Number),
      by: "postgres",
    },
  ]);
  const ids = found.map(({ id }) => id);
  expect(await leader.log.appendTaking(1, 0, [bytes("mail 1")], ids)).toEqual({ outcome: "committed", position: 1 });
  inbox.settle(ids);
  expect(await one(user, "select count(*)::int from tenure_inbox")).toBe(0);
  await user.end();
});

test("submissions are told in their order, not twice while they are under way, and again where the append was refused", async () => {
  const { url, leader, inbox } = await stage();
  const user = await connectTo(url);
  for (let at = 0; at < 5; at++) await user.query("select tenure_submit('k', to_jsonb($1::int))", [at]);
  const first = await inbox.next(2);
  const second = await inbox.next(10);
  expect([...first, ...second].map(({ payload }) => payload)).toEqual(["0", "1", "2", "3", "4"]);
  const ids = first.map(({ id }) => id);
  await expect(leader.log.appendTaking(1, 7, [bytes("no")], ids)).rejects.toMatchObject({ code: "BAD_REQUEST" });
  inbox.settle(ids);
  expect((await inbox.next(10)).map(({ payload }) => payload)).toEqual(["0", "1"]);
  await user.end();
});

test("who lost the epoch takes nothing, and of two who saw the same submission one has it", async () => {
  const { url, leader, inbox } = await stage();
  const user = await connectTo(url);
  await user.query("select tenure_submit('k', '1')");
  const ids = (await inbox.next(10)).map(({ id }) => id);
  const next = logNode(url, "next");
  await next.log.start();
  open.push(next.log);
  await next.log.open(2);
  expect(await leader.log.appendTaking(1, 0, [bytes("old")], ids)).toEqual({ outcome: "fenced", epoch: 2 });
  expect(await one(user, "select count(*)::int from tenure_inbox")).toBe(1);
  expect(await next.log.appendTaking(2, 0, [bytes("new")], ids)).toEqual({ outcome: "committed", position: 1 });
  await expect(next.log.appendTaking(2, 1, [bytes("again")], ids)).rejects.toThrow(/taken by somebody else/);
  expect(await next.log.append(2, 1, [bytes("goes on")])).toEqual({ outcome: "committed", position: 2 });
  expect((await next.log.read(1, 10)).map(({ data }) => text(data))).toEqual(["new", "goes on"]);
  await user.end();
});

test("a thousand submissions from four sessions, taken over while they come: each is in the log once", async () => {
  const { url, leader, inbox } = await stage();
  const users = await Promise.all(Array.from({ length: 4 }, () => connectTo(url)));
  const submitted: string[] = [];
  const submitting = Promise.all(
    users.map(async (user) => {
      for (let at = 0; at < 250; at++) submitted.push(String(await one(user, "select tenure_submit('k', '{}')")));
    }),
  );
  const taken: string[] = [];
  while (taken.length < 1_000) {
    const ids = (await inbox.next(100)).map(({ id }) => id);
    const after = taken.length;
    expect(await leader.log.appendTaking(1, after, ids.map(bytes), ids)).toMatchObject({ outcome: "committed" });
    inbox.settle(ids);
    taken.push(...ids);
  }
  await submitting;
  expect(taken.toSorted()).toEqual(submitted.toSorted());
  expect(leader.fold.applied.map((line) => line.split(":")[2])).toEqual(taken);
  expect(await one(users[0]!, "select count(*)::int from tenure_inbox")).toBe(0);
  await Promise.all(users.map((user) => user.end()));
});

test("an empty inbox is woken by the first submission, long before its poll", async () => {
  const { url } = await stage();
  const patient = inboxOf(url, { pollMs: 600_000 });
  open.push(patient);
  const user = await connectTo(url);
  const next = patient.next(1);
  const listens =
    "select from pg_stat_activity where application_name = 'tenure inbox' and state = 'idle' and query like '%tenure_inbox i%'";
  await waitFor("it to have looked once", async () => (await user.query(listens)).rowCount === 1);
  await user.query("select tenure_submit('k', '1')");
  expect(await next).toHaveLength(1);
  await user.end();
});

const DEEP = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

test.each([
  ["select tenure_submit('', '{}')", /kind/],
  ["select tenure_submit(null, '{}')", /kind/],
  ["select tenure_submit(repeat('k', 129), '{}')", /kind/],
  ["select tenure_submit('send mail', '{}')", /kind must be 1 to 128 letters/],
  ["select tenure_submit('-k', '{}')", /kind/],
  ["select tenure_submit(E'k\\n', '{}')", /kind/],
  ["select tenure_submit('käse', '{}')", /kind/],
  ["select tenure_submit('k', null)", /payload/],
  ["select tenure_submit('k', '{}', '[]')", /options/],
  ["select tenure_submit('k', '{}', null)", /options/],
  ["select tenure_submit('k', to_jsonb(repeat('x', 262141)))", /262144 bytes/],
  ["select tenure_submit('k', '1e400')", /no number beyond 2\^53/],
  ["select tenure_submit('k', '[{\"a\": -9007199254740992}]')", /no number beyond 2\^53/],
  [`select tenure_submit('k', '${DEEP(33)}')`, /at most 32 levels/],
  [`select tenure_submit('k', '{"a": ${DEEP(32)}}')`, /at most 32 levels/],
  ["select tenure_submit('k', '1', '{}', 'Jobs')", /log/],
  ["select tenure_submit('k', '1', '{}', null)", /log/],
])("%s is refused and says why", async (statement, why) => {
  const { url } = await stage();
  const user = await connectTo(url);
  expect(await refusal(user.query(statement))).toBe("TN006");
  await expect(user.query(statement)).rejects.toThrow(why);
  await user.end();
});

test("a kind and a payload are taken here where the API takes them, and refused where it refuses them", async () => {
  const { url } = await stage();
  const user = await connectTo(url);
  const api = shape(JobBody);
  const kinds = [
    "k",
    "a.b_c:d-9",
    "K".repeat(128),
    "K".repeat(129),
    "9",
    ".k",
    "_k",
    ":k",
    "-k",
    "k k",
    "k/k",
    "k\n",
    "ä",
    "k\u0301",
  ];
  const payloads = [
    "null",
    DEEP(32),
    DEEP(33),
    `{"a": ${DEEP(31)}}`,
    `{"a": [${DEEP(31)}]}`,
    '[9007199254740991, -9007199254740991, 0.12345678901234567890, "99999999999999999999"]',
    "9007199254740992",
    '{"a": [{"b": -9007199254740992}]}',
    "1e15",
    "1e16",
    "1e400",
    JSON.stringify("x".repeat(262_140)),
    JSON.stringify("x".repeat(262_143)),
  ];
  const calls = [...kinds.map((kind) => [kind, "1"] as const), ...payloads.map((payload) => ["k", payload] as const)];
  for (const [kind, payload] of calls) {
    const isTaken = (await refusal(user.query("select tenure_submit($1, $2::jsonb)", [kind, payload]))) === "";
    const expected = api.check({ kind, payload: JSON.parse(payload) as unknown }).ok;
    expect(isTaken, `${kind} ${payload.slice(0, 80)}`).toBe(expected);
  }
  await user.end();
});
