// What one caller, or one address, can take of a node: never all of it. Readers that do not read, strangers that hold connections,
// callers with too many of anything, connections that are kept for ever.

import { Agent, get } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/drivers/system/clock.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { startApi, type TestApi } from "./test-api.ts";
import { TestStream } from "./test-stream.ts";

/** More than the kernel holds for a reader that does not read. */
const LARGE = "x".repeat(32 * 1024 * 1024);
const big = {
  method: "GET",
  path: "/big",
  role: "viewer",
  handle: () => Promise.resolve({ body: LARGE }),
} as const;
const held = { session: "s", identity: "i", ttl_ms: 60_000, wait_ms: 60_000 };

/** A clock that can be put forward. */
class AheadClock implements Clock {
  aheadMs = 0;
  monotonicMs = (): number => systemClock.monotonicMs() + this.aheadMs;
  wallMs = (): number => systemClock.wallMs();
  setTimer: Clock["setTimer"] = (atMs, fire) => systemClock.setTimer(atMs - this.aheadMs, fire);
}

class Sockets implements Disposable {
  readonly all: Socket[] = [];

  async open(t: TestApi, text = ""): Promise<Socket> {
    const socket = connect(t.port, "127.0.0.1");
    this.all.push(socket);
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write(text);
    return socket;
  }

  [Symbol.dispose](): void {
    for (const socket of this.all) socket.destroy();
  }
}

const asking = (path: string, key = "viewer-key"): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${key}\r\n\r\n`;

/** Three events that are in memory no more; reads of them wait until what is returned is called. */
function holdOldPoints(t: TestApi): () => void {
  for (let i = 0; i < 3; i++)
    t.events.append({ eventType: "queue:paused", entityId: "q", entityType: "queue", payload: { paused: true } });
  t.events.recentMax = 1;
  const { promise, resolve } = Promise.withResolvers<void>();
  t.events.pointGate = promise;
  return resolve;
}

describe("a reader of an ordinary answer", () => {
  it("that takes nothing of it, or a drop now and then, is cut in time; others are served meanwhile and after", async () => {
    const limits = { answerStallMs: 500, answerBytesPerS: 32 * 1024 * 1024, answerBytesPerCaller: 8 * LARGE.length };
    await using t = await startApi({ extraRoutes: [big], limits });
    using sockets = new Sockets();
    for (let i = 0; i < 3; i++) (await sockets.open(t, asking("/big"))).pause();
    const dripping = await sockets.open(t, asking("/big"));
    dripping.pause();
    const drops = setInterval(() => dripping.read(1_024), 50);
    expect((await t.call("GET", "/v1/cluster")).status).toBe(200);
    await expect.poll(() => t.api.stats().cutConnections["slow-reader"]).toBe(4);
    await expect.poll(() => t.api.stats().inFlight).toBe(0);
    clearInterval(drops);
    expect((await t.call("GET", "/v1/cluster")).status).toBe(200);
    expect(t.faults).toEqual([]);
  });

  it("that reads gets all of it, however large; who waits for an answer, or follows events, is no slow reader", async () => {
    const limits = { answerStallMs: 1_000, answerBytesPerS: 1024 * 1024, heartbeatMs: 10_000 };
    await using t = await startApi({ extraRoutes: [big], limits });
    using stream = await new TestStream().open(t, "/v1/events");
    await t.call("POST", "/v1/scopes/x/acquire", { ...held, wait_ms: 0 });
    const waiting = t.call("POST", "/v1/scopes/x/acquire", { ...held, session: "w" });
    expect((await t.call("GET", "/big")).text.length).toBe(LARGE.length + 2);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(stream.ended).toBeNull();
    await t.scopes.askResign("x", true);
    expect((await waiting).status).toBe(200);
    expect(t.api.stats().cutConnections["slow-reader"]).toBe(0);
  });

  it("that asks for more while much of what it asked for is unread gets 503, and others do not", async () => {
    await using t = await startApi({ extraRoutes: [big], limits: { answerBytesPerCaller: 48 * 1024 * 1024 } });
    using sockets = new Sockets();
    for (let i = 0; i < 2; i++) (await sockets.open(t, asking("/big"))).pause();
    await expect.poll(async () => (await t.call("GET", "/v1/cluster", undefined, "viewer-key")).status).toBe(503);
    const refused = await t.call("GET", "/v1/cluster", undefined, "viewer-key");
    expect([refused.json?.["error"], refused.json?.["message"]]).toEqual([
      "OVERLOADED",
      expect.stringMatching(/bytes of answers wait to be read here for key the viewer.*share of one caller/),
    ]);
    expect((await t.call("GET", "/v1/cluster", undefined, "client-key")).status).toBe(200);
    for (const socket of sockets.all) socket.destroy();
    await expect.poll(async () => (await t.call("GET", "/v1/cluster", undefined, "viewer-key")).status).toBe(200);
  });
});

it("300 pages of events that are asked for at once are made two at a time, and others are answered meanwhile", async () => {
  await using t = await startApi();
  using sockets = new Sockets();
  const gate = Promise.withResolvers<void>();
  const read = t.events.read.bind(t.events);
  let asked = 0;
  t.events.read = async (...wanted) => {
    asked++;
    await gate.promise;
    return read(...wanted);
  };
  for (let i = 0; i < 300; i++) (await sockets.open(t, asking("/api/events/since/0"))).resume();
  await expect.poll(() => t.api.stats().inFlight).toBe(300);
  expect((await t.call("GET", "/v1/cluster", undefined, "viewer-key")).status).toBe(200);
  expect(asked).toBe(2);
  gate.resolve();
  await expect.poll(() => t.api.stats().inFlight).toBe(0);
  expect(asked).toBe(300);
});

describe("a stranger", () => {
  it("that holds connections locks nobody out: for the next one its oldest is closed, and never one that is known", async () => {
    await using t = await startApi({ limits: { connectionsMax: 20, unauthenticatedPerAddress: 10 } });
    using sockets = new Sockets();
    const known = await sockets.open(t, asking("/v1/cluster"));
    await new Promise((resolve) => known.once("data", resolve));
    for (let i = 0; i < 30; i++) await sockets.open(t, i % 2 === 0 ? "" : asking("/v1/cluster", "wrong"));
    expect((await t.call("GET", "/v1/cluster")).status).toBe(200);
    await expect.poll(() => t.api.stats().cutConnections.newcomer).toBeGreaterThanOrEqual(20);
    await expect.poll(() => t.api.stats().connections).toBeLessThanOrEqual(12);
    const again = new Promise((resolve) => known.once("data", (chunk) => resolve(chunk.toString().slice(0, 15))));
    known.write(asking("/v1/cluster"));
    expect(await again).toBe("HTTP/1.1 200 OK");
    for (const socket of sockets.all) socket.destroy();
    await expect.poll(() => t.api.stats().connections).toBeLessThanOrEqual(1);
  });
});

describe("a client that does not wait for its answers", () => {
  const limits = { requestsMax: 40, requestsPerCaller: 30 };

  it("is cut, with the stream that it has there: nobody else hears of it", async () => {
    await using t = await startApi({ limits });
    using sockets = new Sockets();
    for (let i = 0; i < 3; i++) {
      const socket = (await sockets.open(t, asking("/v1/events"))).resume();
      await expect.poll(() => t.api.stats().streams).toBe(1);
      socket.write(asking("/leader").repeat(60));
      await expect.poll(() => t.api.stats().cutConnections.pipelined).toBe(i + 1);
      await expect.poll(() => t.api.stats().inFlight).toBe(0);
      expect((await t.call("GET", "/v1/cluster")).status).toBe(200);
    }
    await expect.poll(() => t.api.stats().streams).toBe(0);
    expect(t.faults).toEqual([]);
  });

  it("nor reads them: neither as a stranger nor with paths that nobody can decode", async () => {
    await using t = await startApi({ limits });
    using sockets = new Sockets();
    for (const path of ["/v1/cluster", "/%zz"]) (await sockets.open(t, asking(path, "wrong").repeat(2_000))).pause();
    await expect.poll(() => t.api.stats().cutConnections.pipelined).toBe(2);
    await expect.poll(() => t.api.stats().inFlight).toBe(0);
    expect((await t.call("GET", "/v1/cluster")).status).toBe(200);
  });

  it("can't hide large answers from its share of unread bytes", async () => {
    await using t = await startApi({ extraRoutes: [big], limits: { answerBytesPerCaller: 96 * 1024 * 1024 } });
    using sockets = new Sockets();
    for (let i = 0; i < 3; i++) {
      const socket = await sockets.open(t, asking("/big"));
      socket.pause();
      await expect.poll(() => t.api.stats().inFlight).toBe(i + 1);
    }
    await expect.poll(async () => (await t.call("GET", "/leader", undefined, "viewer-key")).status).toBe(503);
    for (const socket of sockets.all) socket.write(asking("/big").repeat(3));
    await expect.poll(() => t.api.stats().cutConnections.pipelined).toBe(3);
    await expect.poll(() => t.api.stats().inFlight).toBe(0);
  });
});

it("a node with all the requests that it takes still says that it lives and is ready", async () => {
  await using t = await startApi({ limits: { requestsMax: 2 } });
  await t.call("POST", "/v1/scopes/x/acquire", { ...held, wait_ms: 0 });
  const over = new AbortController();
  for (const session of ["a", "b"]) {
    const headers = { "x-api-key": "operator-key", "content-type": "application/json" };
    const body = JSON.stringify({ ...held, session });
    t.fetch("/v1/scopes/x/acquire", { method: "POST", headers, body, signal: over.signal }).catch(() => {});
  }
  await expect.poll(() => t.scopes.waiting).toBe(2);
  expect((await t.call("GET", "/v1/cluster")).status).toBe(503);
  expect((await t.call("GET", "/livez", undefined, null)).status).toBe(200);
  expect((await t.call("GET", "/readyz", undefined, null)).status).toBe(200);
  over.abort();
});

describe("one caller", () => {
  it("has its share of requests: what is past it is 503, and others are served", async () => {
    await using t = await startApi({ limits: { requestsPerCaller: 2 } });
    await t.call("POST", "/v1/scopes/x/acquire", { ...held, wait_ms: 0 }, "client-key");
    const over = new AbortController();
    for (const session of ["a", "b"]) {
      const body = JSON.stringify({ ...held, session });
      const headers = { "x-api-key": "operator-key", "content-type": "application/json" };
      t.fetch("/v1/scopes/x/acquire", { method: "POST", headers, body, signal: over.signal }).catch(() => {});
    }
    await expect.poll(() => t.scopes.waiting).toBe(2);
    const { status, json, headers } = await t.call("GET", "/v1/cluster");
    expect([status, json?.["error"], headers.get("retry-after")]).toEqual([503, "OVERLOADED", "1"]);
    expect(json?.["message"]).toContain("2 requests are being answered here for key the operator");
    expect((await t.call("GET", "/v1/cluster", undefined, "client-key")).status).toBe(200);
    over.abort();
    await expect.poll(async () => (await t.call("GET", "/v1/cluster")).status).toBe(200);
  });

  it("has its share of streams", async () => {
    await using t = await startApi({ limits: { streamsPerCaller: 2 } });
    using one = await new TestStream().open(t, "/v1/events");
    using two = await new TestStream().open(t, "/v1/events");
    const refused = await t.call("GET", "/v1/events", undefined, "viewer-key");
    expect([refused.status, refused.json?.["error"]]).toEqual([503, "OVERLOADED"]);
    expect(refused.json?.["message"]).toContain("2 streams of events and logs are open here for key the viewer");
    expect(t.api.stats().streams).toBe(2);
    using other = await new TestStream().open(t, "/v1/events", { "x-api-key": "client-key" });
    one[Symbol.dispose]();
    await expect.poll(() => t.api.stats().streams).toBe(2);
    using again = await new TestStream().open(t, "/v1/events");
    expect([two.status, other.status, again.status]).toEqual([200, 200, 200]);
  });

  it("that opens streams at old points takes its share while they are being opened: others can follow events meanwhile", async () => {
    await using t = await startApi({ limits: { streamsPerCaller: 2, streamsMax: 3 } });
    const release = holdOldPoints(t);
    using sockets = new Sockets();
    for (let i = 0; i < 2; i++) await sockets.open(t, asking("/v1/events?since=1"));
    await expect.poll(() => t.api.stats().streams).toBe(2);
    const refused = await t.call("GET", "/v1/events?since=1", undefined, "viewer-key");
    expect([refused.status, refused.json?.["error"]]).toEqual([503, "OVERLOADED"]);
    expect(refused.json?.["message"]).toContain("2 streams of events and logs are open here for key the viewer");
    using other = await new TestStream().open(t, "/v1/events", { "x-api-key": "client-key" });
    expect(other.status).toBe(200);
    release();
  });

  it("that opens many streams at old points has two points read at a time, and none for those that have gone", async () => {
    await using t = await startApi();
    const release = holdOldPoints(t);
    using sockets = new Sockets();
    for (let i = 0; i < 20; i++) await sockets.open(t, asking("/v1/events?since=1"));
    const refused = (): number => t.api.stats().requests.find(({ status }) => status === 503)?.count ?? 0;
    await expect.poll(refused, { message: "all but two, when they have waited", timeout: 30_000 }).toBe(18);
    expect([t.events.pointReads, t.api.stats().streams]).toEqual([2, 2]);
    using fresh = await new TestStream().open(t, "/v1/events");
    expect(fresh.status, "what is in memory needs no turn").toBe(200);
    // The next six wait for a turn, and do not stay for it.
    using leaving = new Sockets();
    for (let i = 0; i < 6; i++) await leaving.open(t, asking("/v1/events?since=1"));
    const connections = (): number => t.api.stats().connections;
    await expect.poll(connections).toBe(20 + 1 + 6);
    leaving[Symbol.dispose]();
    await expect.poll(connections).toBe(20 + 1);
    release();
    await expect.poll(async () => (await new TestStream().open(t, "/v1/events?since=1")).status).toBe(200);
    expect(t.events.pointReads, "the two and the last").toBe(3);
  });

  it("has its share of connections", async () => {
    await using t = await startApi({ limits: { connectionsPerCaller: 2 } });
    using sockets = new Sockets();
    const said = async (key: string): Promise<string> => {
      const socket = await sockets.open(t, asking("/v1/cluster", key));
      return new Promise((resolve) => socket.once("data", (chunk) => resolve(chunk.toString())));
    };
    for (let i = 0; i < 2; i++) expect(await said("viewer-key")).toMatch(/^HTTP\/1\.1 200 /);
    expect(await said("viewer-key")).toMatch(/^HTTP\/1\.1 503 [\s\S]*2 connections are open here for key the viewer/);
    expect(await said("client-key")).toMatch(/^HTTP\/1\.1 200 /);
    sockets.all[0]?.destroy();
    await expect.poll(() => said("viewer-key")).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("a connection", () => {
  it("is used for an hour: the next answer closes it, and its streams end where they can be resumed", async () => {
    const clock = new AheadClock();
    await using t = await startApi({ clock, limits: { heartbeatMs: 50 } });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const look = (): Promise<[number | undefined, string | undefined]> =>
      new Promise((resolve, reject) => {
        const headers = { "x-api-key": "viewer-key" };
        get({ port: t.port, host: "127.0.0.1", path: "/v1/cluster", agent, headers }, (answer) => {
          answer.resume().on("end", () => resolve([answer.statusCode, answer.headers.connection]));
        }).on("error", reject);
      });
    using stream = await new TestStream().open(t, "/v1/events");
    expect([await look(), await look()]).toEqual([
      [200, "keep-alive"],
      [200, "keep-alive"],
    ]);
    clock.aheadMs += 3_599_000;
    expect(await look()).toEqual([200, "keep-alive"]);
    expect(stream.ended).toBeNull();
    clock.aheadMs += 2_000;
    expect(await look()).toEqual([200, "close"]);
    expect(await look()).toEqual([200, "keep-alive"]);
    await expect.poll(() => stream.ended).toBe("end");
    agent.destroy();
    await expect.poll(() => t.api.stats().connections).toBe(0);
  });

  it("that goes on past its time is cut, whatever it does", async () => {
    const clock = new AheadClock();
    await using t = await startApi({ clock, limits: { connectionAgeMs: 1_000 } });
    await t.call("POST", "/v1/scopes/x/acquire", { ...held, wait_ms: 0 });
    const waiting = t.call("POST", "/v1/scopes/x/acquire", { ...held, session: "w" }).catch(() => "cut");
    await expect.poll(() => t.scopes.waiting).toBe(1);
    clock.aheadMs += 122_000;
    expect(await waiting).toBe("cut");
    expect(t.api.stats().cutConnections.age).toBeGreaterThanOrEqual(1);
  });
});
