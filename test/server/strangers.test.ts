// Those who reach the peer port of a real node and do not belong to its cluster: a local user without the cluster's secret, a
// node with a good certificate that was never added, one that was removed and comes back with its old directory, and the
// copy of a disk. None of them moves the term, the leader or the log.

import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { peerKey, type PeerKey } from "../../src/core/kit/ids.ts";
import type { Message } from "../../src/core/raft/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { FRAME, frame } from "../../src/drivers/wire/frame.ts";
import { Secret } from "../../src/drivers/wire/handshake/secret.ts";
import { sealEnvelope } from "../../src/engine/envelope.ts";
import {
  CALM_ELECTION,
  OPERATOR_KEY,
  startTenureCluster,
  type TenureCluster,
  freePort,
  type TenureView,
  waitFor,
} from "../servers/index.ts";
import { TenureNode } from "../servers/tenure-node.ts";
import { Stranger } from "../wire/test-stranger.ts";

const STRANGER = peerKey("n9", "9");

async function viewOf(node: TenureNode): Promise<TenureView> {
  let view: TenureView | null = null;
  await waitFor(`an answer of ${node.id}`, async () => (view = await node.view()) !== null);
  return view!;
}

/** Who leads, in which term, and who the members are. */
async function facts(cluster: TenureCluster): Promise<unknown> {
  const { term, members, leader } = await viewOf(cluster.node(await cluster.leader()));
  return { term, leader, members: members.map((one) => [one.node_id, one.incarnation, one.kind]) };
}

function portOf(node: TenureNode): number {
  return Number(node.peerAddress.split(":").at(-1));
}

/** What the reviewer sent: an append of a later leader, and an answer from far ahead. */
function harm(from: PeerKey, view: TenureView): Uint8Array[] {
  const to = peerKey(view.node_id, view.incarnation);
  const [index, logTerm] = [view.commit, view.term];
  const ahead = (by: number) => ({ from, to, term: view.term + by }) as const;
  const entries = [{ term: view.term + 1, index: index + 1, type: "EntryNormal", data: new Uint8Array([1]) } as const];
  const messages: Message[] = [
    { ...ahead(1), type: "MsgApp", index, logTerm, entries, commit: index + 1, round: 1 },
    { ...ahead(2 ** 20), type: "MsgHeartbeatResp", round: 1, priority: 0, willing: true, stalled: false },
    { ...ahead(1), type: "MsgVote", index: 2 ** 40, logTerm: view.term + 1, transfer: true, priority: 0 },
  ];
  return messages.map((message) => frame(FRAME.message, sealEnvelope(message, view.cluster_id, null, systemDigest)));
}

describe("without TLS, on loopback", () => {
  let cluster: TenureCluster;
  beforeAll(async () => {
    cluster = await startTenureCluster({ nodes: 1, election: CALM_ELECTION });
  }, 120_000);
  afterAll(() => cluster?.end());

  test.each([
    ["says hello and speaks at once", null],
    ["has another secret", "not the secret".repeat(5)],
  ])("a local user who %s is refused, and the leader goes on", async (_what, secret) => {
    const node = cluster.node("n1");
    const before = await facts(cluster);
    const view = await viewOf(node);
    if (secret === null) {
      const stranger = await Stranger.dial(portOf(node));
      const [nodeId, incarnation] = STRANGER.split("@") as [string, string];
      stranger.hello({ clusterId: view.cluster_id, protocolMax: 3, nodeId, incarnation, mark: "0".repeat(32) });
      for (const bytes of harm(STRANGER, view)) stranger.write(bytes);
      await waitFor("the end of the connection", () => stranger.isClosed);
      expect(stranger.frames).toEqual([]);
    } else {
      const options = new Secret(new TextEncoder().encode(secret)).dialOptions();
      const dialled = connectTls({ host: "127.0.0.1", port: portOf(node), ...options });
      onTestFinished(() => void dialled.destroy());
      await expect(once(dialled, "secureConnect")).rejects.toThrow(/alert/);
    }
    expect(await facts(cluster)).toEqual(before);
    expect((await viewOf(node)).role).toBe("LEADER");
  });

  test("a secret that others can read is refused at the start, with what to do", async () => {
    const lone = await cluster.make("n7");
    onTestFinished(() => cluster.forget("n7"));
    const file = join(lone.home, "secret");
    writeFileSync(file, `${"a".repeat(64)}\n`, { mode: 0o644 });
    lone.configure({ peer: { listen: lone.peerAddress, secret_file: file } });
    lone.start(["--bootstrap"]);
    const { code, log } = await lone.ended();
    expect(code).not.toBe(0);
    expect(log).toContain("0600");
  });
});

describe("with certificates", () => {
  let cluster: TenureCluster;
  beforeAll(async () => {
    cluster = await startTenureCluster({ tls: true, election: CALM_ELECTION });
  }, 120_000);
  afterAll(() => cluster?.end());

  const steer = async (body: object): Promise<{ readonly status: number }> =>
    cluster.node(await cluster.leader()).call("/v1/admin/members", { key: OPERATOR_KEY, body, limitMs: 60_000 });

  test("a node with a good certificate that was never added is let in, and changes nothing", async () => {
    await cluster.issue("n9");
    const read = (file: string): string => readFileSync(join(cluster.directory, "n9", file), "utf8");
    const tls = { ca: read("ca.crt"), cert: read("n9.crt"), key: read("n9.key") };
    const before = await facts(cluster);
    for (const node of cluster.nodes) {
      const view = await viewOf(node);
      const stranger = await Stranger.dial(portOf(node), tls);
      const [nodeId, incarnation] = STRANGER.split("@") as [string, string];
      stranger.hello({ clusterId: view.cluster_id, protocolMax: 3, nodeId, incarnation });
      await stranger.ack();
      for (const bytes of harm(STRANGER, view)) stranger.write(bytes);
      // A ping that is answered came after them, so they were heard.
      stranger.write(frame(FRAME.ping, new Uint8Array()));
      await waitFor("the pong", () => stranger.frames.some(({ type }) => type === FRAME.pong));
    }
    expect(await facts(cluster)).toEqual(before);
  });

  test("a node that was removed comes back with its old directory: it hears so, and disturbs nobody", async () => {
    const leader = await cluster.leader();
    const gone = cluster.nodes.find(({ id }) => id !== leader)!;
    await gone.kill9();
    expect(await steer({ op: "remove", node_id: gone.id })).toMatchObject({ status: 200 });
    const before = await facts(cluster);
    gone.start();
    await waitFor("the node to hear that it was removed", () => /was removed from this cluster/.test(gone.log()));
    await waitFor(
      "its alert",
      async () => (await gone.view())?.alerts.some(({ name }) => name === "node_removed") === true,
    );
    expect(await facts(cluster)).toEqual(before);
    await gone.kill9();
    // With an empty directory it is another disk, and may be added again.
    gone.wipe();
    gone.start();
    await waitFor("the empty node", async () => (await gone.view()) !== null);
    expect(await steer({ op: "add", node_id: gone.id, promote: true })).toMatchObject({ status: 200 });
    await cluster.steady();
  });

  test("two processes with one disk, copied: the others see both, refuse one, and raise an alert", async () => {
    const leader = await cluster.leader();
    const original = cluster.nodes.find(({ id }) => id !== leader)!;
    await original.kill9();
    const home = join(cluster.directory, "copy");
    cpSync(original.home, home, { recursive: true });
    original.start();
    await cluster.steady();
    const { peer, api, peers, ...config } = original.config;
    const [peerPort, apiPort] = [await freePort(), await freePort()];
    const others = Object.fromEntries(Object.entries(peers ?? {}).filter(([id]) => id !== original.id));
    const copy = new TenureNode(home, {
      ...config,
      data_dir: join(home, "data"),
      peer: { ...peer, listen: `127.0.0.1:${peerPort}` },
      api: { ...api, listen: `127.0.0.1:${apiPort}`, advertise: `https://127.0.0.1:${apiPort}` },
      peers: others,
    });
    onTestFinished(() => copy.kill9());
    copy.start();
    const watcher = cluster.node(leader);
    await waitFor(
      "the alert",
      async () => (await watcher.view())?.alerts.some(({ name }) => name === "disk_cloned") === true,
    );
    expect(watcher.log()).toContain("cloned-disk");
  });
});
