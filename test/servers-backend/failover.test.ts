// The cluster loses its leader while others lead through it: holders stay, and whoever waits goes on waiting elsewhere.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { waitFor } from "../servers/index.ts";
import { electorAt, freshScope, quickServers, testCluster } from "./test-electors.ts";

/** As a cluster of three takes, about. */
const ELECTION_MS = 250;

test("a holder keeps its epoch, and its gate stays open, over a kill of the cluster's leader", async () => {
  const cluster = await testCluster();
  const { elector, transitions } = electorAt(quickServers(cluster.urls), freshScope(), "a");
  const term = await elector.acquire();
  for (const [from, to] of [
    [0, 1],
    [1, 2],
    [2, 0],
  ] as const) {
    await cluster.node(from).kill();
    cluster.elect(null);
    await sleep(ELECTION_MS);
    cluster.elect(to);
    const before = cluster.node(to).asked.length;
    await waitFor("a beat at the new leader", () =>
      cluster
        .node(to)
        .asked.slice(before)
        .some(({ path }) => path.endsWith("/renew")),
    );
    expect(elector.gate.requireLeader()).toBe(term.epoch);
    await cluster.node(from).start();
  }
  expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading"]);
});

test("a holder keeps its epoch when the cluster's leader falls silent instead of dying", async () => {
  const cluster = await testCluster();
  const { elector, transitions } = electorAt(quickServers(cluster.urls), freshScope(), "a");
  const term = await elector.acquire();
  cluster.node(0).isFrozen = true;
  await sleep(ELECTION_MS);
  cluster.elect(1);
  await waitFor("a beat at the new leader", () => cluster.node(1).asked.some(({ path }) => path.endsWith("/renew")));
  expect(elector.gate.requireLeader()).toBe(term.epoch);
  expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading"]);
});

test.each(["killed", "frozen"])("a waiting acquire moves over when the cluster's leader is %s", async (how) => {
  const cluster = await testCluster();
  const scope = freshScope();
  const holder = electorAt(quickServers(cluster.urls), scope, "a");
  const term = await holder.elector.acquire();
  const waiting = electorAt(quickServers(cluster.urls), scope, "b").elector.acquire();
  await waitFor("b to wait", () => cluster.node(0).asked.filter(({ path }) => path.endsWith("/acquire")).length >= 2);
  if (how === "killed") await cluster.node(0).kill();
  else cluster.node(0).isFrozen = true;
  cluster.elect(1);
  await waitFor("b to wait at the new leader", () =>
    cluster.node(1).asked.some(({ path }) => path.endsWith("/acquire")),
  );
  await term.resign();
  expect((await waiting).epoch).toBeGreaterThan(term.epoch);
});

test("a cluster without a leader for longer than the lease ends no term by itself: a new leader starts leases anew", async () => {
  const cluster = await testCluster();
  const { elector, transitions } = electorAt(quickServers(cluster.urls), freshScope(), "a");
  const term = await elector.acquire();
  cluster.elect(null);
  await waitFor("the gate to close", () => !elector.gate.isLeader);
  cluster.elect(2);
  await waitFor("the gate to open again", () => elector.gate.isLeader);
  expect(elector.gate.requireLeader()).toBe(term.epoch);
  expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading", "suspended", "resumed"]);
});

test("a holder whose scope was taken away hears it at once, not at its next beat", async () => {
  const cluster = await testCluster();
  const scope = freshScope();
  const backend = quickServers(cluster.urls, { ttlMs: 60_000, heartbeatMs: 15_000 });
  const { elector } = electorAt(backend, scope, "a");
  const term = await elector.acquire();
  const admin = backend.admin();
  const startedMs = performance.now();
  expect(await admin.askResign(scope, true)).toEqual({ epoch: term.epoch });
  expect(await term.ended).toBe("lease-gone");
  expect(performance.now() - startedMs).toBeLessThan(5_000);
  await admin.close();
});

test("nobody's way to the cluster depends on the first URL, nor on all of them", async () => {
  const cluster = await testCluster();
  await cluster.node(0).kill();
  cluster.elect(2);
  const { elector } = electorAt(quickServers([cluster.node(0).url, cluster.node(1).url]), freshScope(), "a");
  // n3 was never named: it is learned from n2.
  await elector.acquire();
  expect(cluster.node(2).asked.map(({ path }) => path)).toContainEqual(expect.stringMatching(/acquire$/));
});
