// Requests that wait end when what they wait for comes, when their client goes, and when the server stops.

import { request } from "node:http";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { TenureError } from "../../src/core/kit/errors.ts";
import { startApi } from "./test-api.ts";

const good = { session: "s", identity: "i", ttl_ms: 5_000, wait_ms: 60_000 };

it("a campaign that waits is granted at once when the scope is free", async () => {
  await using t = await startApi();
  const first = await t.call("POST", "/v1/scopes/x/acquire", good);
  const second = t.call("POST", "/v1/scopes/x/acquire", { ...good, session: "s2" });
  await expect.poll(() => t.scopes.waiting).toBe(1);
  await t.call("POST", "/v1/scopes/x/resign", { session: "s", epoch: first.json?.["epoch"] });
  expect((await second).json).toMatchObject({ granted: true });
});

it("a campaign whose client goes away is given up: the scope is not granted to nobody", async () => {
  await using t = await startApi();
  const first = await t.call("POST", "/v1/scopes/x/acquire", good);
  const gone = new AbortController();
  const headers = { "x-api-key": "client-key", "content-type": "application/json" };
  const second = fetch(`${t.url}/v1/scopes/x/acquire`, {
    method: "POST",
    headers,
    body: JSON.stringify({ ...good, session: "s2" }),
    signal: gone.signal,
  });
  await expect.poll(() => t.scopes.waiting).toBe(1);
  gone.abort();
  await expect(second).rejects.toThrow();
  await expect.poll(() => t.scopes.waiting).toBe(0);
  await t.call("POST", "/v1/scopes/x/resign", { session: "s", epoch: first.json?.["epoch"] });
  expect(t.scopes.get("x")?.holder).toBeNull();
  expect(t.faults).toEqual([]);
});

it("a watch ends after its time with what is known", async () => {
  await using t = await startApi();
  const { json } = await t.call("POST", "/v1/scopes/x/acquire", good);
  const epoch = String(json?.["epoch"]);
  const watched = await t.call("GET", `/v1/scopes/x?wait_ms=30&epoch=${epoch}&held=true`);
  expect([watched.status, watched.json?.["epoch"]]).toEqual([200, json?.["epoch"]]);
  expect(t.scopes.waiting).toBe(0);
});

it("a watch on a node that falls behind meanwhile is TOO_STALE", async () => {
  await using t = await startApi();
  t.cluster.follow("n2");
  const watched = t.call("GET", "/v1/scopes/x?wait_ms=200&max_stale_ms=1000");
  await expect.poll(() => t.scopes.waiting).toBe(1);
  t.cluster.stalenessMs = 1_001;
  expect((await watched).json?.["error"]).toBe("TOO_STALE");
});

it("stopping answers everybody who waits, takes nobody new, and is bounded in time", async () => {
  const t = await startApi();
  await t.call("POST", "/v1/scopes/x/acquire", good);
  const waiting = [
    t.call("POST", "/v1/scopes/x/acquire", { ...good, session: "s2" }),
    t.call("GET", "/v1/scopes/never?wait_ms=60000"),
  ];
  await expect.poll(() => t.scopes.waiting).toBe(2);
  const stopped = t.api.stop(5_000);
  expect(t.api.stop()).toBe(stopped);
  for (const { status, json, headers } of await Promise.all(waiting)) {
    expect([status, json?.["error"], headers.get("retry-after")]).toEqual([503, "BACKEND_UNAVAILABLE", "1"]);
    expect(headers.get("connection")).toBe("close");
  }
  await stopped;
  await expect(t.call("GET", "/livez")).rejects.toThrow();
  expect(t.api.stats().inFlight).toBe(0);
});

it("a request that is under way when the server stops is still answered", async () => {
  let finish: (value: { index: number; term: number; bytes: number }) => void = () => {};
  const t = await startApi();
  Object.assign(t.cluster, { saveSnapshot: () => new Promise((resolve) => (finish = resolve)) });
  const saving = t.call("POST", "/v1/admin/snapshot");
  await expect.poll(() => t.api.stats().inFlight).toBe(1);
  const stopped = t.api.stop(5_000);
  finish({ index: 1, term: 1, bytes: 1 });
  expect((await saving).json).toMatchObject({ index: 1, term: 1, bytes: 1 });
  await stopped;
});

it("a client that never reads, and one that never finishes its request, do not hold the stop up", async () => {
  const t = await startApi();
  const idle = connect(t.port, "127.0.0.1");
  idle.on("error", () => {});
  const headers = { "x-api-key": "client-key", "content-type": "application/json", "content-length": 9 };
  const half = request({ port: t.port, method: "POST", path: "/v1/scopes/x/resign", headers });
  half.on("error", () => {});
  half.write("{");
  await expect.poll(() => t.api.stats().inFlight).toBe(1);
  const startedMs = performance.now();
  await t.api.stop(100);
  expect(performance.now() - startedMs).toBeLessThan(3_000);
  idle.destroy();
});

it("new requests on a connection that is still open while the server stops get 503", async () => {
  const t = await startApi();
  let finish: (value: unknown) => void = () => {};
  Object.assign(t.cluster, { saveSnapshot: () => new Promise((resolve) => (finish = resolve)) });
  const saving = t.call("POST", "/v1/admin/snapshot");
  await expect.poll(() => t.api.stats().inFlight).toBe(1);
  let text = "";
  const socket = connect(t.port, "127.0.0.1");
  socket.on("data", (chunk) => (text += chunk.toString()));
  const closed = new Promise((resolve) => socket.once("close", resolve));
  // The first half arrives before the stop, so that the connection is not idle; the rest after it.
  socket.write("GET /v1/cluster HTTP/1.1\r\nHost: localhost\r\nX-API-Key: viewer-key\r\n");
  await expect.poll(() => socket.bytesWritten).toBeGreaterThan(0);
  await t.call("GET", "/livez");
  const stopped = t.api.stop(5_000);
  socket.write("\r\n");
  await closed;
  expect(text).toMatch(/^HTTP\/1\.1 503 [\s\S]*BACKEND_UNAVAILABLE/);
  finish({ index: 1, term: 1, bytes: 1 });
  await saving;
  await stopped;
});

it("a snapshot is read by one caller at a time, and by the next when that one has gone", async () => {
  await using t = await startApi();
  const readers: ((value: null) => void)[] = [];
  Object.assign(t.cluster, { readSnapshot: () => new Promise((resolve) => readers.push(resolve)) });
  const first = t.call("GET", "/v1/admin/snapshot");
  await expect.poll(() => readers).toHaveLength(1);
  const second = await t.call("GET", "/v1/admin/snapshot");
  expect([second.status, second.json?.["error"]]).toEqual([503, "OVERLOADED"]);
  readers[0]?.(null);
  expect((await first).status).toBe(404);
  const third = t.call("GET", "/v1/admin/snapshot");
  await expect.poll(() => readers).toHaveLength(2);
  readers[1]?.(null);
  expect((await third).status).toBe(404);
});

it("trap 66: stopping while a grant is being written says that it may be in force, not that it was refused", async () => {
  const t = await startApi();
  const acquire = (_request: unknown, signal: AbortSignal): Promise<never> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new TenureError("OUTCOME_UNKNOWN", "it may be in force")));
    });
  Object.assign(t.scopes, { acquire });
  const campaign = t.call("POST", "/v1/scopes/x/acquire", good);
  await expect.poll(() => t.api.stats().inFlight).toBe(1);
  await t.api.stop(5_000);
  expect(await campaign).toMatchObject({ status: 503, json: { error: "OUTCOME_UNKNOWN" } });
});
