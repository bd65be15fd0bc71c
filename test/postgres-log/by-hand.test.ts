// Rows that no function has written, and ends that were lost: what a person does in psql, a restored backup, a promotion. The
// log says what it is, and goes on as soon as it is repaired.

import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { connectTo } from "../postgres/test-seat.ts";
import { one, refusal } from "../postgres/test-sql.ts";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { bytes, type LogNode, type LogNodeOptions, logNode } from "./test-log-node.ts";

let server: PostgresServer;
let databases = 0;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
});

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

afterAll(async () => {
  await server.end();
});

async function node(url: string, name: string, options: LogNodeOptions = {}): Promise<LogNode> {
  const made = logNode(url, name, { pollMs: 50, ...options });
  closing.push(() => made.log.close());
  await made.log.start();
  return made;
}

/** A leader of epoch 1 with three records, and somebody with psql. */
async function stage(options: LogNodeOptions = {}): Promise<{ url: string; leader: LogNode; hand: Client }> {
  const url = await server.createDatabase(`hand_${++databases}`);
  const leader = await node(url, "leader", options);
  await leader.log.open(1);
  await leader.log.append(1, 0, [bytes("a"), bytes("b"), bytes("c")]);
  const hand = await connectTo(url);
  closing.push(() => hand.end());
  return { url, leader, hand };
}

test.each([
  ["more than the bytes", "'abc', '{2, 50}'"],
  ["less than the bytes", "'abc', '{1, 1}'"],
  ["one of them negative", "'abc', '{4, -1}'"],
  ["one of them missing", "'abc', '{3, null}'"],
  ["none", "'', '{}'"],
  ["no list", "'abc', null"],
  ["no bytes", "null, '{0}'"],
])("an append whose lengths do not fit (%s) is refused, and nothing is written", async (_what, data) => {
  const { leader, hand } = await stage();
  const append = `select taken from tenure_log_append('jobs', 1, 1, 3, ${data}, null)`;
  expect(await refusal(hand.query(append))).toBe("TN006");
  await expect(hand.query(append)).rejects.toThrow(/must be there, and add up to/);
  expect(await leader.log.append(1, 3, [bytes(""), bytes("d")])).toEqual({ outcome: "committed", position: 5 });
});

test.each([4, 5, 999])(
  "a row that was inserted by hand at %i, beyond the end, is no record: readers pass it over, an append names it",
  async (position) => {
    const { url, leader, hand } = await stage();
    await hand.query("insert into tenure_log (log, position, epoch, data) values ('jobs', $1, 1, 'x')", [position]);
    const reader = await node(url, "reader");
    expect(reader.fold.applied).toEqual(["1:1:a", "2:1:b", "3:1:c"]);
    const batch = Array.from({ length: 2 }, () => bytes("d"));
    if (position < 6) {
      const refused = leader.log.append(1, 3, batch);
      await expect(refused).rejects.toThrow(/ends at 3, and its table has rows beyond that.*by hand/);
      await expect(refused).rejects.toThrow(`delete from "public".tenure_log where log = 'jobs' and position > 3`);
      await hand.query("delete from tenure_log where log = 'jobs' and position > 3");
    }
    expect(await leader.log.append(1, 3, batch)).toEqual({ outcome: "committed", position: 5 });
    await waitFor("the reader to have it", () => reader.fold.applied.length === 5);
    expect([...leader.fatal, ...reader.fatal]).toEqual([]);
  },
);

/** Another record 3, of a later epoch: the end was lost, and somebody has gone on from before it. In one step, unseen. */
async function loseTheEnd(hand: Client): Promise<void> {
  await hand.query(`begin; alter table tenure_log_head disable trigger user;
    delete from tenure_log where position = 3;
    insert into tenure_log (log, position, epoch, data) values ('jobs', 3, 2, 'other');
    update tenure_log_head set epoch = 2, opened = opened + 1;
    alter table tenure_log_head enable trigger user; commit`);
}

test("a node that runs while its log loses its end notices, also where the new one is as long, and serves nothing more", async () => {
  const { url, hand } = await stage();
  const running = await node(url, "running");
  expect(running.fold.applied).toHaveLength(3);
  await loseTheEnd(hand);
  await waitFor("it to notice", () => running.fatal.length === 1);
  expect(running.fatal[0]).toMatchObject({ code: "CHAIN_BROKEN" });
  expect(String(running.fatal[0])).toContain("its record 3 is another one than was applied here");
  await expect(running.log.read(1, 10)).rejects.toMatchObject({ code: "CHAIN_BROKEN" });
  const anew = await node(url, "anew");
  expect(anew.fold.applied).toEqual(["1:1:a", "2:1:b", "3:2:other"]);
});

test("a node that began with a snapshot of the very end notices too", async () => {
  const { url, leader, hand } = await stage({ snapshots: { everyRecords: 3 } });
  await leader.log.settled();
  expect(await one(hand, "select snapshot_position::int from tenure_log_head")).toBe(3);
  const running = await node(url, "running");
  expect(running.fold.restored).toHaveLength(1);
  await loseTheEnd(hand);
  await waitFor("it to notice", () => running.fatal.length === 1);
  expect(String(running.fatal[0])).toContain("its record 3 is another one than was applied here");
});

test("a log of the same length whose last record is another one is not opened, also on the session that was there before", async () => {
  const { leader, hand } = await stage({ pollMs: 60_000 });
  await hand.query(`begin; set local session_replication_role = replica;
    update tenure_log set data = 'x' where position = 3; commit`);
  await expect(leader.log.open(2)).rejects.toMatchObject({ code: "CHAIN_BROKEN" });
  await waitFor("the node to be told", () => leader.fatal.length === 1);
  await expect(leader.log.append(2, 3, [bytes("d")])).rejects.toMatchObject({ code: "CHAIN_BROKEN" });
  expect(await one(hand, "select position from tenure_log_head")).toBe("3");
});
