// Writes down what this release keeps and says, under test/compat/VERSION: `node test/compat/write.ts 0.1.0`. Once for each
// release, by hand (CONTRIBUTING.md); what is there is never written again.
//
//   frames.jsonl    one of each frame, with its meaning
//   nodes.json.gz   the data directories of three nodes: log, snapshots, history with sealed segments, views
//   answers.json.gz what they answered before they were stopped, and when that was

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { type Client, createClient } from "../../src/client/index.ts";
import { ask } from "../server/test-ledger.ts";
import { CALM_ELECTION, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";
import { answersOf, type Recorded } from "./answers.ts";
import { pack, SMALL_SEGMENTS } from "./directories.ts";
import { allFrames } from "./frames.ts";

const DAY_MS = 86_400_000;
const LEASE_MS = 600_000;
const SHORT_JOBS = 24;
const AGENT = { name: "a-1", session: "session-of-a-1", labels: { zone: "a" }, platform: "linux", capacity: 100 };

const version = process.argv[2] ?? "";
if (!/^\d+\.\d+\.\d+$/.test(version))
  throw new Error(`give the release, such as 0.1.0, not ${JSON.stringify(version)}`);
const target = new URL(`./${version}/`, import.meta.url);
if (existsSync(target)) throw new Error(`${target.pathname} is there already, and what a release wrote stays as it is`);

const cluster = await startTenureCluster({
  election: CALM_ELECTION,
  prepare: (node) => {
    node.nodeFlags = SMALL_SEGMENTS;
  },
});
try {
  const client = createClient({ urls: cluster.urls, key: cluster.key });
  await fill(client, cluster);
  for (const { url } of cluster.nodes) await client.saveSnapshot({ url });
  // After the snapshot: what only the log has.
  await client.submit({ kind: "behind-the-snapshot" });
  await ask(cluster.node(await cluster.leader()), "behind-the-snapshot", "session-2");
  await same(cluster);
  const answers = await answersOf(cluster.node(await cluster.leader()));
  const atMs = Date.now();
  for (const node of cluster.nodes) await node.term();
  mkdirSync(target);
  const directories = Object.fromEntries(cluster.nodes.map(({ id, dataDir }) => [id, dataDir]));
  writeFileSync(new URL("nodes.json.gz", target), pack(directories));
  const recorded: Recorded = { atMs, ...answers };
  writeFileSync(new URL("answers.json.gz", target), gzipSync(JSON.stringify(recorded), { level: 9 }));
  const frames = allFrames().map((frame) => `${JSON.stringify(frame)}\n`);
  writeFileSync(new URL("frames.jsonl", target), frames.join(""));
} finally {
  await cluster.end();
}

/** Everything that there can be, once. */
async function fill(client: Client, servers: TenureCluster): Promise<void> {
  const leader = servers.node(await servers.leader());
  for (const scope of ["payments", "a scope / with ä"])
    await ask(leader, encodeURIComponent(scope), `session of ${scope}`);
  await client.keys.create({ name: "ci", role: "submitter" });
  await client.keys.create({ name: "gone", role: "viewer" });
  await client.keys.revoke("gone");
  const spec = { kind: "nightly", payload: { deep: [1, { ä: null }] }, retentionMs: 400 * DAY_MS };
  await client.putSchedule("nightly", {
    cron: "0 3 1 1 *",
    timeZone: "Europe/Vienna",
    spec,
    catchUp: "none",
    paused: true,
  });
  await client.pauseQueue("paused");
  const kept = { retentionMs: 400 * DAY_MS };
  await client.submit({ kind: "nobody-runs-this", labels: { gpu: "yes" }, platform: "mac", priority: -3, ...kept });
  await client.submit({ kind: "later", notBeforeMs: Date.now() + 300 * DAY_MS, ...kept });
  await client.submit(
    { kind: "short", queue: "paused", concurrency: { key: "k", limit: 1 }, ...kept },
    { idempotencyKey: "key-1" },
  );
  await client.cancel(await client.submit({ kind: "cancelled", ...kept }));
  await work(client, kept);
}

/** Jobs in every state that an agent brings about. */
async function work(client: Client, kept: { readonly retentionMs: number }): Promise<void> {
  const lease = async (kinds: readonly string[], max: number) => {
    const call = { renew: [], progress: [], logs: [], max, waitMs: 0, ttlMs: LEASE_MS };
    return (await client.work.lease({ agent: { ...AGENT, kinds }, ...call })).leases;
  };
  const jobs = Array.from({ length: SHORT_JOBS }, (_, n) => ({ kind: "short", payload: { n }, ...kept }));
  await client.submitMany(jobs);
  const end = async (kind: string, outcome: Parameters<Client["work"]["results"]>[1][number]["outcome"], max = 1) => {
    const given = await lease([kind], max);
    await client.work.results(
      AGENT.session,
      given.map((one) => ({ ...one, outcome })),
    );
  };
  await end("short", { kind: "completed", result: { ok: true } }, SHORT_JOBS);
  const error = { message: "it broke", detail: { code: 3 } };
  await client.submit({ kind: "failed", attemptsMax: 1, ...kept });
  await end("failed", { kind: "failed", error, retry: true });
  await client.submit({ kind: "backs-off", backoff: { baseMs: LEASE_MS, maxMs: LEASE_MS }, ...kept });
  await end("backs-off", { kind: "failed", error, retry: true });
  await client.submit({ kind: "handed-back", ...kept });
  await end("handed-back", { kind: "handed-back" });
  await client.submit({ kind: "assigned", timeoutMs: 20 * DAY_MS, ...kept });
  await lease(["assigned"], 1);
  const cancelling = await client.submit({ kind: "cancelling", ...kept });
  await lease(["cancelling"], 1);
  await client.cancel(cancelling);
  await client.submit({ kind: "building", ...kept });
  const [building] = await lease(["building"], 1);
  const progress = [{ ...building!, progress: { share: 0.5, message: "half way" } }];
  const logs = [{ ...building!, chunk: { offset: 0, text: "a line\nand ä\n" } }];
  const report = { renew: [building!], progress, logs, max: 0, waitMs: 0, ttlMs: LEASE_MS };
  await client.work.lease({ agent: { ...AGENT, kinds: ["building"] }, ...report });
  await client.drainAgent(AGENT.name, true);
}

/** All nodes have everything. */
async function same({ nodes, key }: TenureCluster): Promise<void> {
  await waitFor("all nodes to have the same last event", async () => {
    const heads = await Promise.all(nodes.map((node) => node.call<{ last_sequence: number }>("/v1/stats", { key })));
    return new Set(heads.map(({ body }) => body.last_sequence)).size === 1;
  });
}
