// What becomes of the history of events where a cluster begins anew, by the documented commands (docs/runbooks), on real processes:
// it is kept where it is there, and where it is not, every node says with which event it begins, and nobody waits for the rest.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { tenure, tenureJson } from "../cli/test-tenure.ts";
import { OPERATOR_KEY as key, startTenureCluster, type TenureCluster, type TenureNode } from "../servers/index.ts";
import {
  commonHead,
  complete,
  expectSameHistory,
  HISTORY_ELECTION,
  historyOf,
  Load,
  sealedFiles,
  SMALL_SEGMENTS,
  verified,
} from "./test-history.ts";
import { done, leadsAlone, letIn } from "./test-last-resorts.ts";

let cluster: TenureCluster;
let [first, other]: TenureNode[] = [];

beforeAll(async () => {
  // For the commands that work on a node's directory.
  vi.stubEnv("NODE_OPTIONS", SMALL_SEGMENTS.join(" "));
  cluster = await startTenureCluster({
    nodes: 2,
    election: HISTORY_ELECTION,
    snapshots: { after_entries: 60, keep_entries: 20 },
    prepare: (node) => (node.nodeFlags = SMALL_SEGMENTS),
  });
  [first, other] = cluster.nodes;
}, 120_000);

afterAll(async () => {
  vi.unstubAllEnvs();
  await cluster?.end();
});

async function worked(urls: readonly string[], jobs: number): Promise<void> {
  const load = new Load(urls);
  onTestFinished(() => load.stop());
  await load.more(jobs);
  await load.stop();
}

/** With an empty disk; it fetches its history from the other one. */
async function letInWhole(node: TenureNode): Promise<void> {
  await letIn(cluster, first!, [node]);
  await complete(node);
}

/** What is before the first event is not kept, and says so; the chain goes on from there. */
async function expectBeginsWith(node: TenureNode, sequence: number): Promise<void> {
  expect(await verified(node)).toMatchObject({ valid: true, firstSequence: sequence });
  for (const after of [0, sequence - 2]) {
    const { status, body } = await node.call(`/api/events/since/${after}`, { key });
    expect({ status, body }).toMatchObject({ status: 410, body: { error: "LOG_COMPACTED" } });
  }
}

const recover = (node: TenureNode): Promise<string> =>
  done("server", "recover", "--force-new-cluster", "-o", "json", "--config", node.configFile);

test("recover keeps the history, also what is in the log alone, and its chain goes on under another author", async () => {
  await worked(cluster.urls, 60);
  const head = await commonHead(cluster.nodes);
  const before = await historyOf(first!, 0, head);
  // Killed: its last events are in the log, and maybe not in the archive.
  for (const node of cluster.nodes) await node.kill9();
  expect(JSON.parse(await recover(first!))).toMatchObject({ first_event: 1, notes: [] });
  await leadsAlone(first!);
  expect(await historyOf(first!, 0, head)).toEqual(before);
  expect(await verified(first!)).toMatchObject({ valid: true, firstSequence: 1 });
  await worked([first!.url], 40);
  const authors = await authorsOf(first!, head);
  expect(new Set(authors).size).toBe(2);
  await letInWhole(other!);
  expect(await expectSameHistory([first!, other!], 0)).toBeGreaterThan(head);
  expect(sealedFiles(other!)).toEqual(sealedFiles(first!));
}, 300_000);

test("recover where a segment is nowhere any more begins behind it, and keeps what was before it aside", async () => {
  const [lost, kept] = [...sealedFiles(first!).keys()].slice(1, 3);
  for (const node of cluster.nodes) await node.term();
  rmSync(join(first!.dataDir, lost!));
  const said = JSON.parse(await recover(first!)) as { first_event: number; notes: string[] };
  const begin = Number(kept!.slice("events-".length));
  expect(said.first_event).toBe(begin);
  expect(said.notes.join()).toContain(lost!);
  expect(readdirSync(first!.dataDir)).toContain("former-events-0000000000000001");
  await leadsAlone(first!);
  await expectBeginsWith(first!, begin);
  await letInWhole(other!);
  await expectBeginsWith(other!, begin);
  await expectSameHistory([first!, other!], begin - 1);
}, 300_000);

test("restore has the jobs of the snapshot, and the history of its open segment, on every node", async () => {
  const client = new Load([first!.url]);
  onTestFinished(() => client.stop());
  await client.more(20);
  await client.stop();
  const waiting = await client.client.submit({ kind: "nobody-runs-it" });
  const file = join(cluster.directory, "nightly.snap");
  await done("cluster", "snapshot", "save", file, "--url", first!.url, "--key", cluster.key);
  for (const node of cluster.nodes) await node.term();
  // History of another life is not taken for its own.
  const names = readdirSync(first!.dataDir).filter((name) => !name.startsWith("events-"));
  for (const name of names) rmSync(join(first!.dataDir, name), { recursive: true });
  const refused = await tenure("server", "restore", "--snapshot", file, "--config", first!.configFile);
  expect(refused).toMatchObject({ code: 78 });
  expect(refused.stderr).toContain("history of another cluster");
  first!.start(["--bootstrap"]);
  expect(await first!.ended()).toMatchObject({ code: 78, log: expect.stringContaining("history of another cluster") });
  first!.wipe();
  const said = JSON.parse(
    await done("server", "restore", "--snapshot", file, "-o", "json", "--config", first!.configFile),
  ) as { first_event: number };
  expect(said.first_event).toBeGreaterThan(1);
  await leadsAlone(first!);
  await expectBeginsWith(first!, said.first_event);
  expect(await client.client.job(waiting)).toMatchObject({ id: waiting, state: "pending" });
  await worked([first!.url], 40);
  await letInWhole(other!);
  await expectBeginsWith(other!, said.first_event);
  await expectSameHistory([first!, other!], said.first_event - 1);
}, 300_000);

test("restore with copies of the sealed segments, made while the node runs, has the history from its first event on", async () => {
  const { firstSequence } = await verified(first!);
  await worked(cluster.urls, 60);
  const head = await commonHead(cluster.nodes);
  const before = await historyOf(first!, firstSequence - 1, head);
  const file = join(cluster.directory, "with-history.snap");
  await done("cluster", "snapshot", "save", file, "--url", first!.url, "--key", cluster.key);
  // The segment that is open in the snapshot is sealed meanwhile, and the next one is torn in the copy.
  const load = new Load(cluster.urls);
  onTestFinished(() => load.stop());
  await load.more(40);
  const copies = join(cluster.directory, "history");
  mkdirSync(copies);
  for (const name of readdirSync(first!.dataDir).filter((one) => /^events-\d/.test(one)))
    cpSync(join(first!.dataDir, name), join(copies, name));
  await load.stop();
  for (const node of cluster.nodes) await node.kill9();
  expect(await verify(file, copies)).toMatchObject({ code: 0, history: { first_event: firstSequence, why: null } });
  expect(await restored(file, copies)).toMatchObject({ first_event: firstSequence, notes: [] });
  await leadsAlone(first!);
  expect(await verified(first!)).toMatchObject({ valid: true, firstSequence });
  expect(await historyOf(first!, firstSequence - 1, head)).toEqual(before);
  await worked([first!.url], 40);
  await letInWhole(other!);
  await expectSameHistory([first!, other!], firstSequence - 1);

  // One that is missing, and one with a wrong bit: history begins after them, and says why.
  const names = readdirSync(copies).toSorted();
  const wrong = join(copies, names[1]!);
  const bytes = readFileSync(wrong);
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(wrong, bytes);
  const begin = Number(names[2]!.slice("events-".length));
  expect(await verify(file, copies)).toMatchObject({
    code: 65,
    history: { first_event: begin, why: expect.stringContaining(names[1]!) as string },
  });
  rmSync(wrong);
  const partly = (await restored(file, copies)) as { first_event: number; notes: string[] };
  expect(partly).toMatchObject({ first_event: begin });
  expect(partly.notes.join()).toContain(`${names[1]!}: there is no such file`);
  await leadsAlone(first!);
  await expectBeginsWith(first!, begin);
}, 300_000);

async function verify(file: string, copies: string): Promise<object> {
  return await tenureJson("cluster", "snapshot", "verify", file, "--history", copies);
}

/** Into an empty directory of the first node. */
async function restored(file: string, copies: string): Promise<object> {
  for (const node of cluster.nodes) await node.kill9();
  first!.wipe();
  const from = ["--snapshot", file, "--history", copies];
  return JSON.parse(await done("server", "restore", ...from, "-o", "json", "--config", first!.configFile)) as object;
}

/** Of the event at `sequence` and of the newest one. */
async function authorsOf(node: TenureNode, sequence: number): Promise<string[]> {
  const head = await commonHead([node]);
  const author = async (of: number): Promise<string> => {
    const path = `/api/events/since/${of - 1}?limit=1`;
    const { body } = await node.call<{ events: { sourceControllerId: string }[] }>(path, { key });
    return body.events[0]!.sourceControllerId;
  };
  return [await author(sequence), await author(head)];
}
