// A key that is revoked is out at once, also where its call had begun to arrive, or waits; and so is a connection that was made
// before certificates were loaded anew.

import { connect } from "node:net";
import { expect, it } from "vitest";
import { sha256, startApi, type TestApi } from "./test-api.ts";
import { TestStream } from "./test-stream.ts";

const campaign = { session: "s", identity: "i", ttl_ms: 60_000, wait_ms: 0 };

it("an operator's key that is revoked before the rest of its body has come makes no new key", async () => {
  await using t = await startApi();
  t.keys.apply("stolen", "operator", sha256("stolen-secret"));
  const body = JSON.stringify({ name: "back-door", role: "operator", sha256: sha256("back-door-secret") });
  const head = `Host: localhost\r\nX-API-Key: stolen-secret\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  const socket = connect(t.port, "127.0.0.1");
  try {
    const answer = new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(chunk.toString())));
    socket.write(`POST /v1/keys HTTP/1.1\r\n${head}\r\n\r\n${body.slice(0, 10)}`);
    await expect.poll(() => t.api.stats().inFlight).toBe(1);
    expect((await t.call("DELETE", "/v1/keys/stolen")).status).toBe(200);
    socket.write(body.slice(10));
    expect(await answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(t.keys.list()).toEqual([]);
  } finally {
    socket.destroy();
  }
});

it("a campaign that waits with a key that is revoked is refused, and never leads", async () => {
  await using t = await startApi();
  t.keys.apply("leaders", "client", sha256("leaders-secret"));
  const first = await t.call("POST", "/v1/scopes/x/acquire", campaign);
  const waits = { ...campaign, session: "w", wait_ms: 60_000 };
  const revoked = t.call("POST", "/v1/scopes/x/acquire", waits, "leaders-secret");
  const other = t.call("POST", "/v1/scopes/x/acquire", { ...waits, session: "o" }, "client-key");
  await expect.poll(() => t.scopes.waiting).toBe(2);
  await t.call("DELETE", "/v1/keys/leaders");
  expect(await revoked).toMatchObject({ status: 401, json: { error: "UNAUTHENTICATED" } });
  expect(t.scopes.waiting).toBe(1);
  await t.call("POST", "/v1/scopes/x/resign", { session: "s", epoch: first.json?.["epoch"] });
  expect((await other).json).toMatchObject({ granted: true });
});

it("an agent's poll, a watch and a stream that wait with a key that is revoked end", async () => {
  await using t = await startApi();
  t.keys.apply("all", "operator", sha256("all-secret"));
  const { json } = await t.call("POST", "/v1/scopes/x/acquire", campaign);
  const agent = { name: "a1", session: "s".repeat(32), kinds: ["deploy"], labels: {}, platform: "linux", capacity: 1 };
  const asked = { agent, max: 1, wait_ms: 20_000, ttl_ms: 30_000, renew: [], progress: [], logs: [] };
  const lease = t.call("POST", "/v1/leases", asked, "all-secret");
  const watch = t.call(
    "GET",
    `/v1/scopes/x?wait_ms=60000&epoch=${String(json?.["epoch"])}&held=true`,
    undefined,
    "all-secret",
  );
  using stream = await new TestStream().open(t, "/v1/events", { "x-api-key": "all-secret" });
  await expect.poll(() => t.api.stats().inFlight).toBe(3);
  await t.call("DELETE", "/v1/keys/all");
  expect([(await lease).status, (await watch).status]).toEqual([401, 401]);
  await expect.poll(() => stream.ended).toBe("end");
  expect((await submitted(t)).status).toBe(200);
  expect(t.faults).toEqual([]);
});

function submitted(t: TestApi) {
  return t.call("POST", "/v1/jobs", { kind: "deploy", payload: {} });
}

it("a connection from before a reload of certificates is used for one answer, also where it had not spoken before", async () => {
  await using t = await startApi({ limits: { heartbeatMs: 50 } });
  const socket = connect(t.port, "127.0.0.1");
  try {
    await expect.poll(() => t.api.stats().connections).toBe(1);
    t.api.reload({ cert: "", key: "", clientCa: null });
    let text = "";
    socket.on("data", (chunk) => (text += chunk.toString()));
    const ended = new Promise((resolve) => socket.once("end", resolve));
    socket.write("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX-API-Key: viewer-key\r\n\r\n");
    await ended;
    expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: close/i);
  } finally {
    socket.destroy();
  }
});

it("a page of events does not wait for linearizable ones of others that no leader answers", async () => {
  await using t = await startApi({ limits: { catchUpTimeoutMs: 60_000 } });
  const answer = Promise.withResolvers<boolean>();
  t.cluster.catchUp = () => answer.promise;
  const path = "/api/events/since/0";
  const others = [1, 2, 3, 4].map(() => t.call("GET", `${path}?consistency=linearizable`, undefined, "viewer-key"));
  await expect.poll(() => t.api.stats().inFlight).toBe(4);
  expect((await t.call("GET", path)).status).toBe(200);
  answer.resolve(false);
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual([503, 503, 503, 503]);
});
