// Three members of etcd, of which one stops: what the leader of a scope may believe of the others' word.

import { expect, onTestFinished, test } from "vitest";
import type { Transition } from "../../src/entry/index.ts";
import { waitFor } from "../servers/index.ts";
import { EtcdCluster } from "./test-cluster.ts";
import { electorAt } from "./test-elector.ts";
import { freshScope, never, noEtcd, QUICK, quickEtcd, seatAt } from "./test-seat.ts";

test.skipIf(noEtcd)(
  "a stopped leader of etcd ends no term, and its word is not taken for a proof when it goes on",
  async () => {
    const cluster = await EtcdCluster.start(QUICK);
    onTestFinished(() => cluster.end());
    const stopped = await cluster.leader(cluster.members);
    expect(stopped).toBeDefined();
    if (stopped === undefined) return;
    const others = cluster.members.filter((member) => member !== stopped);

    const transitions: Transition[] = [];
    const endpoints = [stopped, ...others].map(({ endpoint }) => endpoint);
    const elector = electorAt(endpoints, freshScope(), 6, (one) => transitions.push(one));
    const term = await elector.acquire();
    // This one knows the stopped member alone.
    const { seat, losses } = seatAt(quickEtcd(stopped.endpoint, { ttlSeconds: 30 }), freshScope());
    const { epoch } = await seat.acquire(never);
    await seat.beat(epoch);

    stopped.process.signal("SIGSTOP");
    await waitFor("another leader of etcd", async () => (await cluster.leader(others)) !== undefined);
    const stoppedMs = performance.now();
    await waitFor("a beat through another member", () => heartbeatAtMs(elector.stats().heartbeatAgeMs) > stoppedMs);
    const beating = seat.beat(epoch);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const continuedMs = performance.now();
    stopped.process.signal("SIGCONT");
    // It renews the lease at once, as the leader that it no longer is: that keepalive was sent before, and must not count.
    expect((await beating).sentAt.monotonicMs).toBeGreaterThan(continuedMs);
    expect(losses).toEqual([]);
    expect(elector.gate.requireLeader()).toBe(term.epoch);
    expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading"]);
  },
);

function heartbeatAtMs(ageMs: number | null): number {
  return performance.now() - (ageMs ?? Infinity);
}
