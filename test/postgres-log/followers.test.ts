// Those who follow: everything once and in order, also when notifications are lost, the database restarts, or a node comes
// late and finds only a snapshot of what was before.

import { expect, test } from "vitest";
import { urlDriver } from "../../src/drivers/postgres/index.ts";
import type { LogRecord } from "../../src/ports/log.ts";
import type { SqlDriver } from "../../src/ports/backends/sql.ts";
import { waitFor } from "../servers/index.ts";
import { connectTo } from "../postgres/test-seat.ts";
import { bytes, type LogNode } from "./test-log-node.ts";
import { useLogServer } from "./test-log-server.ts";

const { server, freshDatabase, started } = useLogServer("follow");

/** Appends so many records, in batches, without waiting for each. */
async function fill({ log }: LogNode, epoch: number, after: number, count: number, batch = 10): Promise<void> {
  const answers: Promise<unknown>[] = [];
  for (let at = after; at < after + count; at += batch) {
    const size = Math.min(batch, after + count - at);
    const records = Array.from({ length: size }, (_, of) => bytes(`r${at + of + 1}`));
    answers.push(log.append(epoch, at, records));
  }
  for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ outcome: "committed" });
}

const expected = (from: number, to: number, epoch = 1): string[] =>
  Array.from({ length: to - from + 1 }, (_, at) => `${from + at}:${epoch}:r${from + at}`);

test("trap 67: ten thousand records reach two followers once and in order, and who subscribes at the first gets all", async () => {
  const { url } = await freshDatabase();
  const leader = await started(url, "leader");
  const followers = [await started(url, "b"), await started(url, "c", { kept: { recordsMax: 100 } })];
  const told: number[][] = [];
  for (const { log } of followers) {
    const positions: number[] = [];
    told.push(positions);
    log.subscribe(
      1,
      ({ position }) => positions.push(position),
      () => positions.push(Number.NaN),
    );
  }
  await leader.log.open(1);
  await fill(leader, 1, 0, 10_000, 7);
  for (const { log, fold } of followers) {
    await waitFor("a follower to have everything", () => log.head().position === 10_000);
    expect(fold.applied).toEqual(expected(1, 10_000));
  }
  const all = Array.from({ length: 10_000 }, (_, at) => at + 1);
  expect(told).toEqual([all, all]);
  // Memory has the last hundred only; what is older comes from the table.
  const late: number[] = [];
  const stop = followers[1]!.log.subscribe(
    1,
    ({ position }: LogRecord) => late.push(position),
    () => late.push(Number.NaN),
  );
  await fill(leader, 1, 10_000, 50);
  await waitFor("the late subscriber", () => late.length >= 10_050);
  expect(late).toEqual([...all, ...Array.from({ length: 50 }, (_, at) => 10_001 + at)]);
  stop();
  expect((await followers[1]!.log.read(5, 2)).map(({ position }) => position)).toEqual([5, 6]);
});

test("trap 46: where notifications are lost, polling repairs it", async () => {
  const { url } = await freshDatabase();
  const leader = await started(url, "leader");
  const inner = urlDriver(url, "tenure");
  let lost = 0;
  const deaf: SqlDriver = {
    where: inner.where,
    open: (events) => inner.open({ ...events, notified: () => void lost++ }),
  };
  const follower = await started(url, "deaf", { driver: deaf, pollMs: 100 });
  await leader.log.open(1);
  await fill(leader, 1, 0, 200);
  await waitFor("the deaf one to have everything", () => follower.log.head().position === 200);
  expect(follower.fold.applied).toEqual(expected(1, 200));
  expect(follower.log.head().epoch).toBe(1);
  expect(lost).toBeGreaterThan(0);
});

test("one notification wakes a follower long before its poll", async () => {
  const { url } = await freshDatabase();
  const leader = await started(url, "leader");
  const follower = await started(url, "b", { pollMs: 600_000 });
  await leader.log.open(1);
  for (let at = 0; at < 20; at++) {
    await fill(leader, 1, at, 1);
    await waitFor("the record", () => follower.log.head().position === at + 1);
  }
});

test("a leader does not read back what it appends", async () => {
  const { url } = await freshDatabase();
  const inner = urlDriver(url, "tenure");
  let reads = 0;
  const counting: SqlDriver = {
    where: inner.where,
    open: (events) => {
      const session = inner.open(events);
      return {
        ready: session.ready,
        query: (statement, values) => {
          if (statement.includes("tenure_log l")) reads++;
          return session.query(statement, values);
        },
        end: () => session.end(),
        destroy: () => session.destroy(),
      };
    },
  };
  const leader = await started(url, "leader", { pollMs: 600_000, driver: counting });
  await leader.log.open(1);
  await fill(leader, 1, 0, 10);
  const before = reads;
  for (let at = 10; at < 60; at += 10) await fill(leader, 1, at, 10);
  expect(leader.fold.applied).toEqual(expected(1, 60));
  expect(before).toBeGreaterThan(0);
  expect(reads - before).toBe(0);
});

test("a restart of the database costs nobody a record: the leader opens again, followers come back", async () => {
  const { url } = await freshDatabase();
  const leader = await started(url, "leader");
  const follower = await started(url, "b", { pollMs: 100 });
  await leader.log.open(1);
  await fill(leader, 1, 0, 100);
  for (const mode of ["fast", "immediate"] as const) {
    await server().restart(mode);
    await waitFor("the log to be opened again", () =>
      leader.log.open(1).then(
        (opened) => opened.outcome === "opened",
        () => false,
      ),
    );
    const { position } = leader.log.head();
    await fill(leader, 1, position, 100);
    await waitFor("the follower", () => follower.log.head().position === position + 100);
  }
  expect(leader.fold.applied).toEqual(expected(1, 300));
  expect(follower.fold.applied).toEqual(expected(1, 300));
  expect([...leader.fatal, ...follower.fatal]).toEqual([]);
});

test("an idle leader whose session was ended goes on in its epoch without being opened again", async () => {
  const { name, url } = await freshDatabase();
  const leader = await started(url, "leader");
  await leader.log.open(1);
  await fill(leader, 1, 0, 1);
  const end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'tenure log%leader%'";
  await server().query(end, [], name);
  await waitFor("the session to be gone", async () => {
    const text = "select from pg_stat_activity where application_name like 'tenure log%leader%'";
    return (await server().query(text, [], name)).length === 0;
  });
  await waitFor("the next append", () =>
    leader.log.append(1, 1, [bytes("r2")]).then(({ outcome }) => outcome === "committed"),
  );
  expect(leader.fold.applied).toEqual(expected(1, 2));
});

test("a new node begins at the snapshot, and what lies before the kept records is refused", async () => {
  const { name, url } = await freshDatabase();
  const snapshots = { everyRecords: 500, keepRecords: 100 };
  const leader = await started(url, "leader", { snapshots, kept: { recordsMax: 50 } });
  await leader.log.open(1);
  await fill(leader, 1, 0, 1_700);
  await leader.log.settled();
  const [head] = await server().query<{ first: string; at: string; rows: number }>(
    "select first, snapshot_position as at, (select count(*) from tenure_log)::int as rows from tenure_log_head",
    [],
    name,
  );
  expect(Number(head?.at)).toBeGreaterThan(1_200);
  expect(Number(head?.first)).toBe(Number(head?.at) - 99);
  expect(head?.rows).toBe(1_700 - Number(head?.first) + 1);
  const late = await started(url, "late");
  expect(late.fold.restored).toEqual([{ position: Number(head?.at), epoch: 1 }]);
  expect(late.fold.count).toBe(1_700);
  expect(late.fold.applied).toEqual(expected(Number(head?.at) + 1, 1_700));
  await expect(leader.log.read(1, 1)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
  expect((await leader.log.read(Number(head?.first), 1))[0]?.position).toBe(Number(head?.first));
  let compacted = 0;
  late.log.subscribe(
    1,
    () => expect.unreachable(),
    () => compacted++,
  );
  await waitFor("to be told that they are gone", () => compacted === 1);
});

test("nothing from keepFrom on is deleted", async () => {
  const { name, url } = await freshDatabase();
  const snapshots = { everyRecords: 100, keepRecords: 0, keepFrom: () => 42 };
  const leader = await started(url, "leader", { snapshots });
  await leader.log.open(1);
  await fill(leader, 1, 0, 500);
  await leader.log.settled();
  const [row] = await server().query<{ first: string }>("select min(position) as first from tenure_log", [], name);
  expect(row?.first).toBe("42");
});

test("a snapshot of several parts is whole again", async () => {
  const { url } = await freshDatabase();
  const large = new Uint8Array(9 * 1024 * 1024 + 17).map((_, at) => at % 251);
  const restored: Uint8Array[] = [];
  const fold = {
    apply: () => undefined,
    snapshot: () => large,
    restore: (data: Uint8Array) => void restored.push(data),
  };
  const leader = await started(url, "leader", { fold, snapshots: { everyRecords: 10 } });
  await leader.log.open(1);
  await fill(leader, 1, 0, 10);
  await leader.log.settled();
  expect(leader.warnings).toEqual([]);
  await started(url, "late", { fold });
  expect(restored).toHaveLength(1);
  expect(Buffer.compare(restored[0]!, large)).toBe(0);
});

test("a database that lost the end of the log is not followed: fatal, and every call is refused", async () => {
  const { name, url } = await freshDatabase();
  const leader = await started(url, "leader");
  const follower = await started(url, "b", { pollMs: 50 });
  await leader.log.open(1);
  await fill(leader, 1, 0, 10);
  await waitFor("the follower", () => follower.log.head().position === 10);
  const admin = await connectTo(url);
  await admin.query("alter table tenure_log_head disable trigger user; alter table tenure_log disable trigger user");
  await admin.query("update tenure_log set data = 'another' where position = 10");
  const drop =
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tenure log jobs' and datname = $1";
  await admin.query(drop, [name]);
  await waitFor("both to see another record", () => follower.fatal.length === 1 && leader.fatal.length === 1);
  expect(follower.fatal[0]).toMatchObject({
    code: "CHAIN_BROKEN",
    message: expect.stringContaining("record 10 is another"),
  });
  await expect(leader.log.append(1, 10, [bytes("x")])).rejects.toMatchObject({ code: "CHAIN_BROKEN" });
  const fresh = await started(url, "fresh", { pollMs: 50 });
  const next = await started(url, "next", { pollMs: 600_000 });
  await admin.query("delete from tenure_log where position > 8; update tenure_log_head set position = 8");
  await waitFor("the end to be missed", () => fresh.fatal.length === 1);
  expect(fresh.fatal[0]).toMatchObject({ message: expect.stringContaining("ends at 8") });
  // Who has not looked since finds it when it opens, and does not lead from a state that the log does not have.
  await expect(next.log.open(2)).rejects.toMatchObject({ code: "CHAIN_BROKEN" });
  expect(next.fatal).toHaveLength(1);
  await admin.end();
});
