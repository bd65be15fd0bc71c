// A first node whose peers are reached through TCP proxies, as with sidecars: the proxies accept connections before there is
// anybody to pass them to.

import { expect, onTestFinished, test } from "vitest";
import { startProxy, startTenureCluster, waitFor } from "../servers/index.ts";

const LIMIT_MS = 4 * 60_000;

test(
  "a cluster is founded and grows although a proxy accepts for a node that comes up later, and for one that never comes",
  { timeout: 2 * LIMIT_MS },
  async () => {
    const cluster = await startTenureCluster({ nodes: 0 });
    onTestFinished(() => cluster.end());
    const [n1, n2] = [await cluster.make("n1"), await cluster.make("n2")];
    const [host, port] = n2.peerAddress.split(":");
    const late = await startProxy({ host: host!, port: Number(port) });
    onTestFinished(() => late.end());
    const never = await startProxy({ host: "127.0.0.1", port: 1 });
    onTestFinished(() => never.end());
    never.cut();
    const peers = { n2: `127.0.0.1:${late.port}`, n3: `127.0.0.1:${never.port}` };
    n1.configure({ peers: { ...peers, n1: n1.peerAddress }, bootstrap: { expect: ["n1", "n2"] } });
    n2.configure({ peers: { n1: n1.peerAddress }, bootstrap: { expect: [] } });

    n1.start(["--bootstrap"]);
    await waitFor("n1 to lead the cluster that it founded", async () => (await n1.view())?.role === "LEADER", LIMIT_MS);
    expect(never.accepted).toBeGreaterThan(0);
    expect(n1.log()).toContain("silent-peers-absent");

    n2.start();
    await cluster.steady(LIMIT_MS);
    const ids = await Promise.all([n1, n2].map(async (node) => (await node.view())?.cluster_id));
    expect(new Set(ids).size).toBe(1);
  },
);
