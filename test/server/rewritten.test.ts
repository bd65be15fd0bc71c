// Readers that outlive a rewritten history, on real processes (trap 82): a survivor that lacks the end becomes a new cluster by force, and
// a snapshot is restored. Each reader gets all events of the history that there is then, or the named error: nobody passes over any.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { start, tenure } from "../cli/test-tenure.ts";
import { ChainedReader, EventReader, problemsOf, type SeenEvent } from "../servers/event-readers.ts";
import {
  CALM_ELECTION,
  OPERATOR_KEY as key,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";

let cluster: TenureCluster;

beforeAll(async () => {
  cluster = await startTenureCluster({ election: CALM_ELECTION });
}, 300_000);

afterAll(() => cluster?.end());

function clientOf(...nodes: readonly TenureNode[]) {
  return createClient({ urls: nodes.map(({ url }) => url), key, timeoutMs: 30_000 });
}

async function submit(count: number, ...nodes: readonly TenureNode[]): Promise<readonly string[]> {
  return await clientOf(...nodes).submitMany(Array.from({ length: count }, () => ({ kind: randomUUID() })));
}

async function lastSequence(node: TenureNode): Promise<number> {
  return (await clientOf(node).stats({ consistency: "linearizable" })).lastSequence;
}

async function historyOf(node: TenureNode): Promise<SeenEvent[]> {
  const { firstSequence } = await clientOf(node).stats();
  const all: SeenEvent[] = [];
  for (;;) {
    const after = firstSequence - 1 + all.length;
    const { body } = await node.call<{ events: SeenEvent[] }>(`/api/events/since/${after}?limit=1000`, { key });
    if (body.events.length === 0) return all;
    all.push(...body.events);
  }
}

/** Everybody who reads; `urls` are theirs for good, whatever becomes of the nodes. */
function readersOf(...nodes: readonly TenureNode[]) {
  const urls = nodes.map(({ url }) => url);
  const readers = [
    new EventReader({ name: "events()", urls, key }),
    new EventReader({
      name: "events() of cancelled jobs, of which there is none",
      urls,
      key,
      types: ["build:cancelled"],
    }),
    new EventReader({ name: "events() of submitted jobs", urls, key, types: ["build:submitted"] }),
    new ChainedReader(urls, key),
  ] as const;
  const tail = start(["event", "tail", "--after", "0", "--url", urls.join(","), "--key", key, "-o", "jsonl"]);
  return { readers, tail };
}

/** That they have heard of `sequence`: those whose filter leaves it out hear of it by a heartbeat, which takes 15 s. */
async function haveSeen({ readers, tail }: ReturnType<typeof readersOf>, sequence: number): Promise<void> {
  const [all, , some, chained] = readers;
  await waitFor("the readers to have seen it", async () => {
    return (
      [all, some, chained].every(({ last }) => last >= sequence) && tail.said.stdout.includes(`"sequence":${sequence},`)
    );
  });
}

async function expectNamedOrAll(
  { readers, tail }: ReturnType<typeof readersOf>,
  node: TenureNode,
  common: number,
): Promise<void> {
  const end = await lastSequence(node);
  const [all, , some, chained] = readers;
  await waitFor("the readers to go on", async () => all.last >= end && some.last >= end && chained.rewrites.length > 0);
  const said = await tail.ended;
  await Promise.all(readers.map((reader) => reader.stop()));
  const history = await historyOf(node);
  expect(readers.flatMap((reader) => problemsOf(reader, history))).toEqual([]);
  expect(
    all.rewrites.map((one) => one.common),
    "named, once, with the last common event",
  ).toEqual([common]);
  expect(some.rewrites).toHaveLength(1);
  expect(said.code).toBe(69);
  expect(said.stderr).toContain("history was rewritten");
  expect(said.stderr).toContain(`Start again after ${common}.`);
}

test("a survivor that lacks the end becomes a new cluster: each reader gets the named error, and starts again from the last common event", async () => {
  const leader = cluster.node(await cluster.leader());
  const [survivor, other] = cluster.nodes.filter(({ id }) => id !== leader.id) as [TenureNode, TenureNode];
  await submit(5, ...cluster.nodes);
  const common = await lastSequence(leader);
  await waitFor("the survivor to have it", async () => (await clientOf(survivor).stats()).lastSequence === common);
  const readers = readersOf(...cluster.nodes);
  await survivor.kill9();
  const [lost] = await submit(3, leader, other);
  await haveSeen(readers, common + 3);
  const waiting = clientOf(...cluster.nodes)
    .wait(lost!)
    .catch((error: unknown) => error);
  const follower = start(["job", "wait", lost!, "--url", cluster.urls.join(","), "--key", key]);
  for (const node of [leader, other]) await node.kill9();
  expect(await tenure("server", "recover", "--force-new-cluster", "--config", survivor.configFile)).toMatchObject({
    code: 0,
  });
  survivor.start();
  await waitFor("it to lead alone", async () => (await survivor.view())?.role === "LEADER");
  await submit(6, survivor);
  await expectNamedOrAll(readers, survivor, common);
  expect(await waiting, "wait() of a job that is lost").toMatchObject({ code: "NOT_FOUND" });
  expect((await follower.ended).code).not.toBe(0);
}, 300_000);

test("a snapshot is restored: the same", async () => {
  const alone = cluster.nodes.find(({ pid }) => pid !== undefined)!;
  const file = join(cluster.directory, "before.snap");
  const access = ["--url", alone.url, "--key", key];
  const common = await lastSequence(alone);
  expect(await tenure("cluster", "snapshot", "save", file, ...access)).toMatchObject({ code: 0 });
  const readers = readersOf(alone);
  await submit(3, alone);
  await haveSeen(readers, common + 3);
  await alone.term();
  alone.wipe();
  expect(await tenure("server", "restore", "--snapshot", file, "--config", alone.configFile)).toMatchObject({
    code: 0,
  });
  alone.start();
  await waitFor("it to lead", async () => (await alone.view())?.role === "LEADER");
  await submit(6, alone);
  await expectNamedOrAll(readers, alone, common);
}, 300_000);
