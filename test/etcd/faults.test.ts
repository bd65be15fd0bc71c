// What networks and restarts do to a seat in etcd.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EtcdServer, startEtcd, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import {
  api,
  blindHold,
  type Finished,
  freshScope,
  leaderKey,
  never,
  noEtcd,
  QUICK,
  quickEtcd,
  seatAt,
} from "./test-seat.ts";

// Next to each other: they mostly wait.
describe.skipIf(noEtcd)("a seat in etcd, over a bad network", { concurrent: true }, () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd(QUICK);
  });
  afterAll(() => server.end());

  async function proxied(finished: Finished): Promise<{ proxy: TcpProxy; endpoint: string }> {
    const proxy = await startProxy({ host: "127.0.0.1", port: server.port });
    finished(() => proxy.end());
    return { proxy, endpoint: `http://127.0.0.1:${proxy.port}` };
  }

  test("trap 44: a hold is proved from the moment when the lease was asked for, and a beat from its sending", async ({
    onTestFinished,
  }) => {
    const { proxy, endpoint } = await proxied(onTestFinished);
    const { seat } = seatAt(quickEtcd(endpoint, { ttlSeconds: 20 }), freshScope(), "someone", onTestFinished);
    await seat.leader();
    proxy.delay(100);
    const { epoch, sentAt } = await seat.acquire(never);
    // Two round trips of 200 ms: the lease, then the key on it.
    const sinceGrantMs = performance.now() - sentAt.monotonicMs;
    expect(sinceGrantMs).toBeGreaterThanOrEqual(390);
    const beforeMs = performance.now();
    const beat = await seat.beat(epoch);
    expect(beat.sentAt.monotonicMs - beforeMs).toBeLessThan(150);
    expect(performance.now() - beat.sentAt.monotonicMs).toBeGreaterThanOrEqual(390);
  });

  test("a lost answer to the winning transaction does not make the seat wait for itself", async ({
    onTestFinished,
  }) => {
    const scope = freshScope();
    const { proxy, endpoint } = await proxied(onTestFinished);
    const { seat, losses } = seatAt(quickEtcd(endpoint, { ttlSeconds: 6 }), scope, "someone", onTestFinished);
    proxy.delay(300);
    const unknown = expect(seat.acquire(never)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    await waitFor("the key", async () => (await leaderKey(server.endpoint, scope)) !== null);
    const orphan = await leaderKey(server.endpoint, scope);
    proxy.cut("to-client");
    await unknown;
    expect((await leaderKey(server.endpoint, scope))?.create_revision).toBe(orphan?.create_revision);
    proxy.delay(0);
    await proxy.heal("reset");
    const startedMs = performance.now();
    const { epoch } = await seat.acquire(never);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    expect(epoch).toBeGreaterThan(Number(orphan?.create_revision));
    await seat.beat(epoch);
    expect(losses).toEqual([]);
  });

  test("an answer to the winning transaction that was cut off by a reset is no win either", async ({
    onTestFinished,
  }) => {
    const scope = freshScope();
    const { proxy, endpoint } = await proxied(onTestFinished);
    const { seat } = seatAt(quickEtcd(endpoint, { ttlSeconds: 6 }), scope, "someone", onTestFinished);
    proxy.rewrite = (bytes) => {
      if (bytes.includes('"succeeded":true')) proxy.reset();
      return bytes;
    };
    await expect(seat.acquire(never)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    proxy.rewrite = undefined;
    const startedMs = performance.now();
    const { epoch } = await seat.acquire(never);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    expect((await leaderKey(server.endpoint, scope))?.create_revision).toBe(String(epoch));
  });

  test("trap 66: a transaction whose answer is lost has an unknown outcome; one that was never sent has none", async ({
    onTestFinished,
  }) => {
    const scope = freshScope();
    const { proxy, endpoint } = await proxied(onTestFinished);
    const { seat } = seatAt(quickEtcd(endpoint, { ttlSeconds: 10 }), scope, "someone", onTestFinished);
    const { epoch } = await seat.acquire(never);
    const term = seat.extras(blindHold(scope, epoch));
    const key = btoa(`${scope}/data`);
    const write = (value: string): Promise<unknown> =>
      term.txn({ success: [{ request_put: { key, value: btoa(value) } }] });
    const read = async (): Promise<string> =>
      atob((await api(server.endpoint, "kv/range", { key })).kvs?.[0]?.value ?? "");
    await write("before");

    proxy.cut("to-client");
    await expect(write("silence")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: false });
    expect(await read()).toBe("silence");
    await proxy.heal("reset");

    proxy.rewrite = (bytes) => {
      if (bytes.includes("response_txn")) proxy.reset();
      return bytes;
    };
    await expect(write("reset")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(await read()).toBe("reset");
    proxy.rewrite = undefined;

    proxy.cut("both", "refused");
    proxy.reset();
    await waitFor("the connections to end", () => proxy.connections === 0);
    await expect(write("refused")).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    expect(await read()).toBe("reset");
  });

  test("trap 42: beats into a half-open connection fail in time and are no loss; after it they go on", async ({
    onTestFinished,
  }) => {
    const { proxy, endpoint } = await proxied(onTestFinished);
    const { seat, losses } = seatAt(quickEtcd(endpoint, { ttlSeconds: 5 }), freshScope(), "someone", onTestFinished);
    const { epoch } = await seat.acquire(never);
    proxy.cut();
    const startedMs = performance.now();
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    // A quarter of what is trusted of 5 s: two beats of two requests fit.
    expect(performance.now() - startedMs).toBeLessThan(1_500);
    await proxy.heal("reset");
    const { sentAt } = await seat.beat(epoch);
    expect(sentAt.monotonicMs).toBeGreaterThan(startedMs);
    expect(losses).toEqual([]);
  });

  test("a cut-off leader's scope goes to another when its lease ends, and its return tells it so", async ({
    onTestFinished,
  }) => {
    const scope = freshScope();
    const { proxy, endpoint } = await proxied(onTestFinished);
    const cutOff = seatAt(quickEtcd(endpoint, { ttlSeconds: 2 }), scope, "cut-off", onTestFinished);
    const { epoch } = await cutOff.seat.acquire(never);
    await cutOff.seat.beat(epoch);
    proxy.cut();
    const cutAtMs = performance.now();
    const next = await seatAt(
      quickEtcd(server.endpoint, { ttlSeconds: 2 }),
      scope,
      "next",
      onTestFinished,
    ).seat.acquire(never);
    const tookMs = performance.now() - cutAtMs;
    expect(next.epoch).toBeGreaterThan(epoch);
    expect(tookMs).toBeGreaterThan(1_500);
    expect(tookMs).toBeLessThan(2_000 + 1_500);
    expect(cutOff.losses).toEqual([]);
    await proxy.heal("reset");
    await waitFor("the loss", () => cutOff.losses.length > 0);
    expect(cutOff.losses[0]).toMatchObject({ epoch, reason: "superseded" });
    await expect(cutOff.seat.beat(epoch)).rejects.toMatchObject({ code: "STALE_EPOCH" });
  });

  test("a waiter whose watch went silent hears of the free scope all the same", async ({ onTestFinished }) => {
    const scope = freshScope();
    const { proxy, endpoint } = await proxied(onTestFinished);
    const holder = seatAt(quickEtcd(server.endpoint, { ttlSeconds: 60 }), scope, "holder", onTestFinished);
    const { epoch } = await holder.seat.acquire(never);
    const waiter = seatAt(quickEtcd(endpoint, { ttlSeconds: 2 }), scope, "waiter", onTestFinished);
    const first = waiter.seat.acquire(never);
    const outcome = first.then(
      () => "won",
      (error: { code?: string }) => error.code,
    );
    await waitFor("the watch", () => proxy.connections > 0);
    proxy.cut();
    await holder.seat.release(epoch);
    // It does not wait for ever on a dead stream: the poll that is not answered ends the attempt.
    expect(await outcome).toBe("BACKEND_UNAVAILABLE");
    await proxy.heal("resume");
    expect((await waiter.seat.acquire(never)).epoch).toBeGreaterThan(epoch);
  });

  test("a poll notices what a silent watch did not tell", async ({ onTestFinished }) => {
    const scope = freshScope();
    const { proxy, endpoint } = await proxied(onTestFinished);
    const holder = seatAt(quickEtcd(server.endpoint, { ttlSeconds: 60 }), scope, "holder", onTestFinished);
    const { epoch } = await holder.seat.acquire(never);
    // The deletion's event is made unreadable as an event: the watch is alive, and says nothing of use.
    proxy.rewrite = (bytes) => Buffer.from(bytes.toString("latin1").replaceAll('"events":', '"evemts":'), "latin1");
    const waiter = seatAt(quickEtcd(endpoint, { ttlSeconds: 2 }), scope, "waiter", onTestFinished);
    const waiting = waiter.seat.acquire(never);
    await waitFor("the watch", () => proxy.connections >= 2);
    const releasedAtMs = performance.now();
    await holder.seat.release(epoch);
    expect((await waiting).epoch).toBeGreaterThan(epoch);
    expect(performance.now() - releasedAtMs).toBeLessThan(2_000);
  });

  test("the next endpoint is asked after one that does not answer", async ({ onTestFinished }) => {
    const { proxy, endpoint } = await proxied(onTestFinished);
    const { seat } = seatAt(
      quickEtcd([endpoint, server.endpoint], { ttlSeconds: 8 }),
      freshScope(),
      "someone",
      onTestFinished,
    );
    const { epoch } = await seat.acquire(never);
    proxy.cut("both", "refused");
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await seat.beat(epoch);
  });
});

describe.skipIf(noEtcd)("a seat in an etcd that restarts", { concurrent: true }, () => {
  test("keeps its term where the lease survives, and its observers go on", async ({ onTestFinished }) => {
    const server = await startEtcd(QUICK);
    onTestFinished(() => server.end());
    const scope = freshScope();
    const backend = quickEtcd(server.endpoint, { ttlSeconds: 5 });
    const { seat, losses } = seatAt(backend, scope, "leader", onTestFinished);
    const { epoch } = await seat.acquire(never);
    const told: (string | null)[] = [];
    let failures = 0;
    seatAt(backend, scope, "watcher", onTestFinished).seat.watch(
      (leader) => told.push(leader?.identity ?? null),
      () => failures++,
    );
    await waitFor("the first word", () => told.length === 1);
    await server.kill();
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    await waitFor("the observer's complaint", () => failures > 0);
    await server.start();
    await seat.beat(epoch);
    expect((await leaderKey(server.endpoint, scope))?.create_revision).toBe(String(epoch));
    expect(losses).toEqual([]);
    // The watch over the hold came back too: a release is seen, by the observer as well.
    await seat.release(epoch);
    await waitFor("nobody", () => told.length === 2);
    expect(told).toEqual(["leader", null]);
  });

  test("hands out a higher epoch where the lease ended meanwhile", async ({ onTestFinished }) => {
    const server = await startEtcd(QUICK);
    onTestFinished(() => server.end());
    const scope = freshScope();
    const backend = quickEtcd(server.endpoint, { ttlSeconds: 1 });
    const { seat, losses } = seatAt(backend, scope, "leader", onTestFinished);
    const { epoch } = await seat.acquire(never);
    await server.stop();
    await server.start();
    // No beats: etcd gives the lease its whole TTL again when it comes back, then ends it.
    const next = await seatAt(backend, scope, "next", onTestFinished).seat.acquire(never);
    expect(next.epoch).toBeGreaterThan(epoch);
    await waitFor("the loss", () => losses.length > 0);
    await expect(seat.beat(epoch)).rejects.toMatchObject({ code: "STALE_EPOCH" });
  });
});
