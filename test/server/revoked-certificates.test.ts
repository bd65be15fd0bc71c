// One client certificate is revoked by `tenure cert revoke`, on real nodes with TLS: it is out at once and everywhere, on open
// connections, in calls that wait and on streams; the same person comes back with another certificate. The revocation is still
// there after kill -9 of all, in a snapshot, on a wiped disk, on a node that was down, and in a cluster that was restored.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tenure, tenureJson } from "../cli/test-tenure.ts";
import {
  CALM_ELECTION,
  OPERATOR_KEY as key,
  startPostgres,
  startTenureCluster,
  type TenureCluster,
  type TenureClusterOptions,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { writePlant } from "../servers/planted.ts";

const LIMIT_MS = 480_000;

interface Revoked {
  readonly certificates: readonly {
    readonly spiffe_id: string;
    readonly sha256: string;
    readonly revoked_by: string;
  }[];
}

async function started(options: TenureClusterOptions): Promise<TenureCluster> {
  const election = options.backend === undefined ? CALM_ELECTION : undefined;
  const cluster = await startTenureCluster({ tls: true, election, ...options });
  onTestFinished(() => cluster.end());
  return cluster;
}

/** The operator's own way in: a key, so that no certificate is needed to revoke one. */
function access(cluster: TenureCluster): string[] {
  return ["--url", cluster.urls.join(","), "--key", key, "--ca", join(cluster.authority, "ca.crt")];
}

/** A client certificate, and connections of its own that stay open. */
class Holder {
  readonly file: string;
  readonly #agent: Agent;

  constructor(directory: string, name: string) {
    const read = (ending: string): string => readFileSync(join(directory, `${name}.${ending}`), "utf8");
    this.file = join(directory, `${name}.crt`);
    const ca = readFileSync(join(directory, "ca.crt"), "utf8");
    this.#agent = new Agent({ keepAlive: true, ca, cert: read("crt"), key: read("key") });
    onTestFinished(() => this.#agent.destroy());
  }

  async open(node: TenureNode, path: string, body?: object): Promise<IncomingMessage> {
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    const sent = request(`${node.url}${path}`, {
      agent: this.#agent,
      method: body === undefined ? "GET" : "POST",
      headers,
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    return answer;
  }

  async status(node: TenureNode, path = "/v1/cluster", body?: object): Promise<number> {
    const answer = await this.open(node, path, body);
    answer.resume();
    await once(answer, "end");
    return answer.statusCode ?? 0;
  }
}

async function holderOf(cluster: TenureCluster, kind: "operator" | "sdk", name: string): Promise<Holder> {
  return new Holder(await cluster.issueTo(kind, name), `${kind}-${name}`);
}

function listed(cluster: TenureCluster): Promise<Revoked> {
  return tenureJson<Revoked>("cert", "revoked", ...access(cluster));
}

test(
  "a revoked certificate is out at once, everywhere, and stays out through restarts, snapshots and a restore",
  { timeout: LIMIT_MS },
  async () => {
    const cluster = await started({});
    const holder = await holderOf(cluster, "sdk", "payer");
    const other = await holderOf(cluster, "sdk", "reports");
    const leader = cluster.node(await cluster.leader());
    for (const node of cluster.nodes) expect(await holder.status(node), node.id).toBe(200);
    // A campaign that waits at the leader, and a stream at every node.
    const held = { session: "s", identity: "other", ttl_ms: 60_000, wait_ms: 0 };
    expect(await other.status(leader, "/v1/scopes/x/acquire", held)).toBe(200);
    const waiting = holder.status(leader, "/v1/scopes/x/acquire", { ...held, session: "w", wait_ms: 60_000 });
    const streams = await Promise.all(cluster.nodes.map((node) => holder.open(node, "/v1/events")));
    const ends = streams.map((stream) => once(stream.resume(), "end"));
    expect(streams.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);

    const done = await tenure("cert", "revoke", holder.file, ...access(cluster));
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect(done.stdout).toContain("spiffe://tenure/sdk/payer");
    expect(await waiting).toBe(401);
    await Promise.all(ends);
    const everywhereOut = async (): Promise<void> => {
      for (const node of cluster.nodes) {
        await waitFor(`${node.id} to refuse it`, async () => (await holder.status(node)) === 401);
        expect(await other.status(node), node.id).toBe(200);
      }
    };
    await everywhereOut();
    // Listed, audited; the same once more is no error, and a node's is refused.
    expect(await tenure("cert", "revoke", holder.file, ...access(cluster))).toMatchObject({ code: 0 });
    const entry = { spiffe_id: "spiffe://tenure/sdk/payer", revoked_by: "the-operator" };
    expect((await listed(cluster)).certificates).toEqual([expect.objectContaining(entry)]);
    const { body } = await leader.call<{ records: readonly Record<string, unknown>[] }>("/v1/admin/audit", { key });
    expect(body.records).toContainEqual(
      expect.objectContaining({ operation: "revokeCertificate", who: "the-operator", outcome: "OK" }),
    );
    const ofNode = await tenure("cert", "revoke", join(leader.home, `${leader.id}.crt`), ...access(cluster));
    expect(ofNode).toMatchObject({ code: 78, stderr: expect.stringContaining(`tenure member remove ${leader.id}`) });
    // A server of another island is a caller like any other.
    const island = join(cluster.directory, "far");
    await tenure("cert", "issue", "--dir", cluster.authority, "--out", island, "--node-id", "far-1");
    const far = new Holder(island, "far-1");
    expect(await far.status(leader)).toBe(200);
    expect(await tenure("cert", "revoke", far.file, ...access(cluster))).toMatchObject({ code: 0 });
    expect(await far.status(leader)).toBe(401);
    // The same program with another certificate.
    await tenure(
      "cert",
      "issue",
      "--dir",
      cluster.authority,
      "--out",
      join(cluster.directory, "again"),
      "--sdk",
      "payer",
    );
    const again = new Holder(join(cluster.directory, "again"), "sdk-payer");
    expect(await again.status(leader)).toBe(200);

    // kill -9 of all: from the log. Then from snapshots, of which one is restored as a cluster of its own.
    for (const node of cluster.nodes) await node.kill9();
    for (const node of cluster.nodes) node.start();
    await cluster.steady();
    await everywhereOut();
    const file = join(cluster.directory, "backup.snap");
    const saved = await tenure("cluster", "snapshot", "save", file, ...access(cluster));
    expect(saved, saved.stderr).toMatchObject({ code: 0 });
    for (const node of cluster.nodes)
      expect((await node.call("/v1/admin/snapshot", { key, body: {} })).status).toBe(200);
    for (const node of cluster.nodes) await node.restart();
    await cluster.steady();
    await everywhereOut();
    const { certificates } = await listed(cluster);
    const revoked = certificates.map((one) => one.spiffe_id);
    expect(revoked.toSorted()).toEqual(["spiffe://tenure/sdk/payer", "spiffe://tenure/server/far-1"]);

    const [first] = cluster.nodes;
    for (const node of cluster.nodes) await node.kill9();
    first!.wipe();
    const restored = await tenure("server", "restore", "--snapshot", file, "--config", first!.configFile);
    expect(restored, restored.stderr).toMatchObject({ code: 0 });
    first!.start();
    await waitFor("the restored node to lead", async () => (await first!.view())?.role === "LEADER");
    expect(await holder.status(first!)).toBe(401);
    expect(await other.status(first!)).toBe(200);
  },
);

/** Of the newest snapshot; 0: there is none. */
async function savedIndex(node: TenureNode): Promise<number> {
  const { body } = await node.call<{ snapshot: { index: number } | null }>("/v1/cluster", { key });
  return body.snapshot?.index ?? 0;
}

test(
  "a node that is started where nobody leads refuses whom it had refused before",
  { timeout: LIMIT_MS },
  async () => {
    const cluster = await started({ nodes: 2 });
    const holder = await holderOf(cluster, "operator", "bob");
    const other = await holderOf(cluster, "operator", "alice");
    const made = await tenure("key", "create", "--role", "operator", "--name", "bobs", ...access(cluster));
    const bobs = { key: made.stdout.trim(), body: {} };
    const [first] = cluster.nodes as [TenureNode];
    const revocations = [
      ["key", "revoke", "bobs"],
      ["cert", "revoke", holder.file],
    ];
    for (const revocation of revocations) {
      const before = await Promise.all(cluster.nodes.map(savedIndex));
      expect(await tenure(...revocation, ...access(cluster))).toMatchObject({ code: 0 });
      for (const [at, node] of cluster.nodes.entries())
        await waitFor(`${node.id} to keep it`, async () => (await savedIndex(node)) > before[at]!);
    }
    for (const node of cluster.nodes) await node.kill9();
    first.start();
    const saves = async (one: Holder): Promise<number> => one.status(first, "/v1/admin/snapshot", {}).catch(() => 0);
    await waitFor("it to answer", async () => (await saves(other)) === 200);
    expect(await saves(holder)).toBe(401);
    // It can't ask whether there is such a key by now.
    expect((await first.call("/v1/admin/snapshot", bobs)).status).toBe(503);
  },
);

test(
  "a node whose disk was wiped, and one that was down meanwhile, refuse it as soon as they are ready",
  { timeout: LIMIT_MS },
  async () => {
    const cluster = await started({ snapshots: { keep_entries: 0 } });
    const holder = await holderOf(cluster, "sdk", "payer");
    const other = await holderOf(cluster, "sdk", "reports");
    const leader = await cluster.leader();
    const [wiped, down] = cluster.nodes.filter(({ id }) => id !== leader) as [TenureNode, TenureNode];
    // Before that it can't know (decision 42).
    const refusesOnceReady = async (node: TenureNode): Promise<void> => {
      await waitFor(`${node.id} to be ready`, async () => (await node.view())?.is_ready === true, 90_000);
      expect(await holder.status(node), node.id).toBe(401);
      expect(await other.status(node), node.id).toBe(200);
    };

    await down.kill9();
    expect(await tenure("cert", "revoke", holder.file, ...access(cluster))).toMatchObject({ code: 0, stderr: "" });
    down.start();
    await refusesOnceReady(down);

    // The leader keeps nothing of its log before the snapshot: that alone can say so to an empty disk.
    const { incarnation } = (await wiped.view())!;
    expect((await cluster.node(leader).call("/v1/admin/snapshot", { key, body: {} })).status).toBe(200);
    await wiped.kill9();
    wiped.wipe();
    wiped.start();
    await refusesOnceReady(wiped);
    await cluster.steady(90_000);
    await refusesOnceReady(wiped);
    expect((await wiped.view())?.incarnation).not.toBe(incarnation);
  },
);

test("the first revocation waits for the last node that is upgraded", { timeout: LIMIT_MS }, async () => {
  const cluster = await started({
    prepare: (node) => {
      if (node.id !== "n3") return;
      // A release that speaks no protocol 4 has no such record.
      const edit = { file: "drivers/wire/handshake/hello.ts", find: "PROTOCOL_MAX = 7", replace: "PROTOCOL_MAX = 3" };
      node.nodeFlags = writePlant(join(node.home, "plant.mjs"), [edit]);
    },
  });
  const holder = await holderOf(cluster, "operator", "alice");
  const early = await tenure("cert", "revoke", holder.file, ...access(cluster));
  expect(early).toMatchObject({ code: 69, stderr: expect.stringMatching(/NOT_SUPPORTED|can read it/) });
  expect(early.stderr).toContain("n3");
  expect(await holder.status(cluster.node("n1"))).toBe(200);
  expect((await listed(cluster)).certificates).toEqual([]);
  const [last] = cluster.nodes.slice(-1);
  last!.nodeFlags = [];
  await last!.restart();
  await cluster.steady();
  await waitFor("the revocation", async () => {
    return (await tenure("cert", "revoke", holder.file, ...access(cluster))).code === 0;
  });
  for (const node of cluster.nodes) await waitFor("401", async () => (await holder.status(node)) === 401);
});

test("a site on Postgres revokes one too", { timeout: LIMIT_MS }, async () => {
  const server = await startPostgres();
  onTestFinished(() => server.end());
  const cluster = await started({ nodes: 2, backend: await server.createDatabase("revoked") });
  const holder = await holderOf(cluster, "sdk", "payer");
  for (const node of cluster.nodes) expect(await holder.status(node)).toBe(200);
  expect(await tenure("cert", "revoke", holder.file, ...access(cluster))).toMatchObject({ code: 0, stderr: "" });
  for (const node of cluster.nodes) await waitFor("401", async () => (await holder.status(node)) === 401);
  for (const node of cluster.nodes) await node.restart();
  await cluster.steady();
  for (const node of cluster.nodes) expect(await holder.status(node)).toBe(401);
  expect((await listed(cluster)).certificates).toHaveLength(1);
});
