// The whole library over a real etcd: terms that end, suspend, resume and are fenced.

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Transition } from "../../src/entry/index.ts";
import { type EtcdServer, startEtcd, startProxy, waitFor } from "../servers/index.ts";
import { electorAt } from "./test-elector.ts";
import { api, freshScope, leaderKey, noEtcd, QUICK, quickEtcd } from "./test-seat.ts";

describe.skipIf(noEtcd)("an elector over etcd", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd(QUICK);
  });
  afterAll(() => server.end());

  test("a leader that resigns is followed at once, and no lease has to run out", async () => {
    const scope = freshScope();
    const first = electorAt(server.endpoint, scope, 10);
    const term = await first.acquire();
    const second = electorAt(server.endpoint, scope, 10);
    const waiting = second.acquire().then((next) => ({ next, atMs: performance.now() }));
    await waitFor("the waiter to see the leader", async () => (await second.leader())?.epoch === term.epoch);
    const resignedMs = performance.now();
    await term.resign();
    const { next, atMs } = await waiting;
    expect(next.epoch).toBeGreaterThan(term.epoch);
    expect(atMs - resignedMs).toBeLessThan(3_000);
    expect(await term.ended).toBe("resigned");
  });

  test("an operator who revokes the lease ends the term at once", async () => {
    const scope = freshScope();
    const term = await electorAt(server.endpoint, scope, 2).acquire();
    await api(server.endpoint, "lease/revoke", { ID: (await leaderKey(server.endpoint, scope))?.lease });
    expect(await term.ended).toBe("lease-gone");
    expect(() => term.check()).toThrow(expect.objectContaining({ code: "NOT_LEADER" }));
    await expect(term.txn({ success: [] })).rejects.toMatchObject({ code: "NOT_LEADER" });
  });

  test("an operator who asks ends the term with the next beat", async () => {
    const scope = freshScope();
    const term = await electorAt(server.endpoint, scope, 2).acquire();
    // Who does not resign then is given DRAIN_MS, which is no matter of etcd (src/electors/elector.test.ts).
    term.signal.addEventListener("abort", () => void term.resign(), { once: true });
    const admin = quickEtcd(server.endpoint).admin();
    onTestFinished(() => admin.close());
    expect(await admin.askResign(scope, false)).toEqual({ epoch: term.epoch });
    expect(await term.ended).toBe("asked");
    await waitFor("the release", async () => (await leaderKey(server.endpoint, scope)) === null);
  });

  test("trap 42: a cut that is shorter than the lease suspends the term and does not end it", async () => {
    const scope = freshScope();
    const proxy = await startProxy({ host: "127.0.0.1", port: server.port });
    onTestFinished(() => proxy.end());
    const transitions: Transition[] = [];
    const elector = electorAt(`http://127.0.0.1:${proxy.port}`, scope, 4, (one) => transitions.push(one));
    const term = await elector.acquire();
    proxy.cut();
    await waitFor("the gate to close", () => !elector.gate.isLeader);
    await proxy.heal("reset");
    await waitFor("the gate to open", () => elector.gate.isLeader);
    expect(elector.gate.requireLeader()).toBe(term.epoch);
    expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading", "suspended", "resumed"]);
  });

  test("a fenced transaction of a leader that was deposed unseen is refused, and ends its term", async () => {
    const scope = freshScope();
    const proxy = await startProxy({ host: "127.0.0.1", port: server.port });
    onTestFinished(() => proxy.end());
    const term = await electorAt(`http://127.0.0.1:${proxy.port}`, scope, 6).acquire();
    const data = { key: btoa(`${scope}/data`), value: btoa("1") };
    expect(await term.txn({ success: [{ request_put: data }] })).toMatchObject({ succeeded: true });
    // Its watch is slow, so the fence is the first to know.
    proxy.delay(150);
    const writing = term.txn({ success: [{ request_put: { ...data, value: btoa("2") } }] });
    await api(server.endpoint, "kv/deleterange", { key: btoa(`tenure/${scope}/leader`) });
    await expect(writing).rejects.toMatchObject({ code: "STALE_EPOCH", epoch: term.epoch });
    await term.ended;
    expect(await api(server.endpoint, "kv/range", { key: data.key })).toMatchObject({ kvs: [{ value: btoa("1") }] });
  });

  test("an etcd that restarts leaves the term as it is", async () => {
    const restarting = await startEtcd(QUICK);
    onTestFinished(() => restarting.end());
    const transitions: Transition[] = [];
    const elector = electorAt(restarting.endpoint, freshScope(), 6, (one) => transitions.push(one));
    const term = await elector.acquire();
    await restarting.kill();
    await restarting.start();
    const provedMs = performance.now();
    await waitFor(
      "a beat after the restart",
      () => (elector.stats().heartbeatAgeMs ?? Infinity) < performance.now() - provedMs,
    );
    expect(elector.gate.requireLeader()).toBe(term.epoch);
    expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading"]);
  });
});
