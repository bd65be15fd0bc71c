// What operators see and ask for, in a real etcd.

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { ScopeAdmin } from "../../src/ports/backends/scope-admin.ts";
import { type EtcdServer, startEtcd, waitFor } from "../servers/index.ts";
import { api, freshScope, never, noEtcd, QUICK, quickEtcd, seatAt } from "./test-seat.ts";

describe.skipIf(noEtcd)("the operator's view of etcd", () => {
  let server: EtcdServer;
  beforeAll(async () => {
    server = await startEtcd(QUICK);
  });
  afterAll(() => server.end());

  function openAdmin(): ScopeAdmin {
    const admin = quickEtcd(server.endpoint).admin();
    onTestFinished(() => admin.close());
    return admin;
  }

  test("lists who leads, and scopes that nobody leads with their last epoch", async () => {
    const led = freshScope();
    const vacant = freshScope();
    const backend = quickEtcd(server.endpoint);
    const startedMs = Date.now();
    const { epoch } = await seatAt(backend, led, "leader").seat.acquire(never);
    const gone = seatAt(backend, vacant, "gone");
    const last = await gone.seat.acquire(never);
    await gone.seat.release(last.epoch);
    const admin = openAdmin();
    expect(await admin.find(led)).toMatchObject({ scope: led, epoch, identity: "leader" });
    expect(await admin.find(vacant)).toMatchObject({ scope: vacant, epoch: last.epoch, identity: null });
    expect(await admin.find(led.slice(0, -1)), "a part of its name is another name").toBeNull();
    const records = await admin.list();
    const [first] = records.filter((record) => record.scope === led);
    expect(first).toMatchObject({ epoch, identity: "leader", metadata: { zone: "a" } });
    expect(first?.acquiredAtMs).toBeGreaterThanOrEqual(startedMs);
    // The lease's age comes in whole seconds.
    expect(first?.heartbeatAtMs).toBeGreaterThan(startedMs - 2_000);
    expect(records.filter((record) => record.scope === vacant)).toMatchObject([
      { epoch: last.epoch, identity: null, acquiredAtMs: null, heartbeatAtMs: null },
    ]);
  });

  test("lists what is beyond the first thousand keys", async () => {
    const crowded = freshScope();
    const after = `${crowded}-after`;
    for (let batch = 0; batch < 11; batch++) {
      const success = Array.from({ length: 100 }, (_, index) => ({
        request_put: { key: btoa(`tenure/${crowded}/history/${batch}-${index}-acquired`), value: "" },
      }));
      await api(server.endpoint, "kv/txn", { success });
    }
    const { epoch } = await seatAt(quickEtcd(server.endpoint), after).seat.acquire(never);
    const records = (await openAdmin().list()).filter(({ scope }) => scope.startsWith(crowded));
    expect(records).toMatchObject([
      { scope: crowded, epoch: epoch - 1, identity: null },
      { scope: after, epoch },
    ]);
  });

  test("tells the history newest first, written in the same step as the change", async () => {
    const scope = freshScope();
    const backend = quickEtcd(server.endpoint);
    const first = seatAt(backend, scope, "first");
    const one = await first.seat.acquire(never);
    await first.seat.release(one.epoch);
    const two = await seatAt(backend, scope, "second").seat.acquire(never);
    expect(await openAdmin().history(scope)).toMatchObject([
      { epoch: two.epoch, identity: "second", reason: "acquired", heldMs: null },
      { epoch: one.epoch, identity: "first", reason: "resigned" },
      { epoch: one.epoch, identity: "first", reason: "acquired", heldMs: null },
    ]);
    expect(await openAdmin().history(freshScope())).toEqual([]);
  });

  test("the winner trims the history to the last 100", async () => {
    const scope = freshScope();
    for (let index = 0; index < 130; index++) {
      const value = btoa(JSON.stringify({ at_ms: index, epoch: index + 1, identity: "old", reason: "resigned" }));
      await api(server.endpoint, "kv/put", { key: btoa(`tenure/${scope}/history/${index}-resigned`), value });
    }
    await seatAt(quickEtcd(server.endpoint), scope, "winner").seat.acquire(never);
    const range = {
      key: btoa(`tenure/${scope}/history/`),
      range_end: btoa(`tenure/${scope}/history0`),
      count_only: true,
    };
    await waitFor("the trimming", async () => (await api(server.endpoint, "kv/range", range)).count === "100");
    const history = await openAdmin().history(scope);
    expect(history[0]).toMatchObject({ identity: "winner", reason: "acquired" });
    expect(history.at(-1)).toMatchObject({ identity: "old", atMs: 31 });
  });

  test("a wish to resign reaches the leader with its next beat, and nobody else later", async () => {
    const scope = freshScope();
    const { seat } = seatAt(quickEtcd(server.endpoint), scope);
    const admin = openAdmin();
    expect(await admin.askResign(scope, false)).toBeNull();
    const { epoch } = await seat.acquire(never);
    expect(await seat.beat(epoch)).toMatchObject({ resignRequested: false });
    expect(await admin.askResign(scope, false)).toEqual({ epoch });
    expect(await seat.beat(epoch)).toMatchObject({ resignRequested: true });
    await seat.release(epoch);
    const next = await seat.acquire(never);
    expect(await seat.beat(next.epoch)).toMatchObject({ resignRequested: false });
    expect((await admin.history(scope)).map(({ reason }) => reason)).toEqual(["acquired", "asked", "acquired"]);
  });

  test("by force, the scope is free at once and the old leader hears of it", async () => {
    const scope = freshScope();
    const backend = quickEtcd(server.endpoint);
    const { seat, losses } = seatAt(backend, scope, "stubborn");
    const { epoch } = await seat.acquire(never);
    const next = seatAt(backend, scope, "next").seat.acquire(never);
    expect(await openAdmin().askResign(scope, true)).toEqual({ epoch });
    expect((await next).epoch).toBeGreaterThan(epoch);
    await waitFor("the loss", () => losses.length > 0);
    expect(losses[0]?.epoch).toBe(epoch);
    expect(await openAdmin().history(scope)).toMatchObject([
      { reason: "acquired", identity: "next" },
      { reason: "forced", identity: "stubborn", epoch },
      { reason: "acquired", identity: "stubborn" },
    ]);
  });
});
