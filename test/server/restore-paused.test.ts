// Issue 19: a restored copy acts, unless it is restored with --paused. A snapshot with jobs that wait and a schedule whose times have
// passed, which a preloaded module sets the server's wall clock forward for: the copy that is paused leases, fires and grants
// nothing, also after a restart, and says so; `tenure cluster resume` lets it.

import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, type Client } from "../../src/entry/client.ts";
import { tenure, tenureJson } from "../cli/test-tenure.ts";
import { CLIENT_KEY, startTenureCluster, type TenureCluster, type TenureNode, waitFor } from "../servers/index.ts";
import { HISTORY_ELECTION } from "./test-history.ts";

const JOBS = 3;
const MISSED_MS = 180_000;
/** Each waits a second at the server: one that acts has leased and fired long before. */
const POLLS = 5;
/** Less than the polls together. */
const HELD_MS = 3_000;

let cluster: TenureCluster;
let node: TenureNode;
let client: Client;
let file: string;
let agents = 0;

beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1, election: HISTORY_ELECTION });
  [node] = cluster.nodes as [TenureNode];
  client = createClient({ urls: [node.url], key: cluster.key, timeoutMs: 60_000 });
  await client.putSchedule("minutely", { cron: "* * * * *", spec: { kind: "report" }, catchUp: "all" });
  for (let at = 0; at < JOBS; at++) await client.submit({ kind: "work" });
  file = join(cluster.directory, "nightly.snap");
  // Its session asks again and again, which restarts the lease: it is held when the snapshot is taken.
  expect(await acquire("held", HELD_MS)).toMatchObject({ status: 200, body: { granted: true } });
  const holding = setInterval(() => void acquire("held", HELD_MS).catch(() => undefined), HELD_MS / 10);
  expect(await tenure("cluster", "snapshot", "save", file, ...access())).toMatchObject({ code: 0 });
  clearInterval(holding);
  const calendar = `const real = Date.now; Date.now = () => real() + ${MISSED_MS};`;
  node.nodeFlags = ["--import", `data:text/javascript,${encodeURIComponent(calendar)}`];
}, 120_000);

afterAll(() => cluster?.end());

function access(): string[] {
  return ["--url", node.url, "--key", cluster.key];
}

async function restore(...flags: readonly string[]): Promise<string> {
  await node.term();
  node.wipe();
  const { code, stdout, stderr } = await tenure(
    "server",
    "restore",
    "--snapshot",
    file,
    ...flags,
    "--config",
    node.configFile,
  );
  expect({ code, stderr }).toMatchObject({ code: 0 });
  await startAlone();
  return stdout;
}

async function startAlone(): Promise<void> {
  node.start();
  await waitFor("it to lead", async () => (await node.view())?.role === "LEADER");
}

/** The jobs that a new agent is given, which waits for them. */
async function leased(kind: string, waitMs: number): Promise<number> {
  const name = `agent-${++agents}`;
  const agent = { name, session: name, kinds: [kind], labels: {}, platform: "test", capacity: JOBS };
  const request = { agent, renew: [], progress: [], logs: [], max: JOBS, waitMs, ttlMs: 30_000 };
  return (await client.work.lease(request)).leases.length;
}

async function firedAtMs(): Promise<number | null> {
  return (await client.schedules()).find(({ name }) => name === "minutely")?.lastAtMs ?? null;
}

/** Their ids. */
async function pending(): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of client.jobs({ states: ["pending"] })) ids.push(id);
  return ids;
}

function acquire(scope: string, ttlMs = 5_000): Promise<{ readonly status: number; readonly body: object }> {
  const body = { session: scope, identity: "me", ttl_ms: ttlMs, wait_ms: 0, metadata: {} };
  return node.call(`/v1/scopes/${scope}/acquire`, { key: CLIENT_KEY, body });
}

async function holder(scope: string): Promise<unknown> {
  return (await node.call<{ holder: unknown }>(`/v1/scopes/${scope}`, { key: CLIENT_KEY })).body.holder;
}

async function expectPaused(): Promise<void> {
  for (let poll = 0; poll < POLLS; poll++) expect(await leased("work", 1_000)).toBe(0);
  expect(await firedAtMs()).toBeNull();
  expect(await pending()).toHaveLength(JOBS);
  expect(await holder("held"), "its lease was over long ago").toMatchObject({ identity: "me" });
  expect(await acquire("s1")).toMatchObject({ status: 503, body: { error: "CLUSTER_PAUSED" } });
}

test("without --paused a restored copy acts at once: its schedule catches up, and its jobs are leased", async () => {
  await restore();
  await waitFor("the times that passed to be fired", async () => (await firedAtMs()) !== null);
  expect(await leased("work", 10_000)).toBe(JOBS);
  expect(await acquire("s1")).toMatchObject({ status: 200, body: { granted: true } });
});

test("with --paused it leases, fires and grants nothing, says so, and stays so over a restart until it is resumed", async () => {
  expect(await restore("--paused")).toContain("tenure cluster resume");
  await expectPaused();
  const [job] = await pending();
  expect((await client.job(job!)).pendingReason).toEqual({ reason: "cluster-paused" });
  const list = await tenure("job", "list", "--state", "pending", ...access());
  expect(list.stdout.match(/the cluster was restored paused: .*`tenure cluster resume`$/gm)).toHaveLength(JOBS);
  const status = await tenureJson<{ paused: boolean; alerts: { name: string }[] }>("cluster", "status", ...access());
  expect(status).toMatchObject({ code: 0, paused: true });
  expect(status.alerts.map(({ name }) => name)).toContain("cluster_paused");
  expect((await tenure("cluster", "status", ...access())).stdout).toMatch(/paused \(tenure cluster resume\)/);
  await node.kill9();
  await startAlone();
  await expectPaused();
  // Its quorum may be lost as well as any other's: that is no word of an operator that it is to act.
  await node.term();
  const recover = ["server", "recover", "--force-new-cluster", "--config", node.configFile];
  expect(await tenure(...recover)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("It is paused") as string,
  });
  await startAlone();
  await expectPaused();

  const { agentsOnline } = await client.stats();
  const waiting = leased("work", 20_000);
  await waitFor("the agent to be there", async () => (await client.stats()).agentsOnline > agentsOnline);
  expect(await tenure("cluster", "resume", ...access())).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("is not paused") as string,
  });
  expect(await waiting).toBe(JOBS);
  await waitFor("the times that passed to be fired", async () => (await firedAtMs()) !== null);
  expect(await acquire("s1")).toMatchObject({ status: 200, body: { granted: true } });
  await waitFor("the hold of the copy to end", async () => (await holder("held")) === null);
  expect(await tenure("cluster", "resume", ...access())).toMatchObject({ code: 0 });
  await node.kill9();
  await startAlone();
  expect(await node.view()).toMatchObject({ is_paused: false });
  await waitFor("the alert to be gone", async () => (await node.view())?.alerts.length === 0);
}, 180_000);
