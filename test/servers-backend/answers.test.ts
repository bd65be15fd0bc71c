// Servers that answer wrongly: nonsense, too much, too slowly, errors, redirects. Nothing is believed, everything is bounded.

import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { waitFor } from "../servers/index.ts";
import { electorAt, freshScope, never, quickServers, seatAt, testCluster } from "./test-electors.ts";
import type { Intercept } from "./test-scope-server.ts";

const MEGABYTE = "x".repeat(1024 * 1024);

const WRONG: Record<string, (response: ServerResponse) => void> = {
  "text where JSON should be": (response) => response.end("<html>hello</html>"),
  "a list where an object should be": (response) => response.end("[]"),
  "an empty answer": (response) => response.end(),
  "an object with nothing in it": (response) => response.end("{}"),
  "an answer that never ends": (response) => {
    const more = (): void => {
      if (!response.destroyed) response.write(MEGABYTE, () => setImmediate(more));
    };
    more();
  },
  "half an answer": (response) => {
    response.writeHead(200, { "content-length": "1000" }).write("{");
    setTimeout(() => response.destroy(), 20);
  },
  "HTTP 500": (response) => response.writeHead(500).end("oops"),
  "HTTP 502 of a proxy": (response) => response.writeHead(502).end("<html>bad gateway</html>"),
  "bytes that are not HTTP": (response) => response.socket?.end("SSH-2.0-OpenSSH_9.9\r\n"),
  "a redirect": (response) => response.writeHead(307, { location: "http://127.0.0.1:1/" }).end(),
};

function everywhere(answer: (response: ServerResponse) => void): Intercept {
  return (_request, response) => {
    answer(response);
    return true;
  };
}

describe("one node of three that answers", () => {
  test.each(Object.keys(WRONG))("%s is passed over, also as the one that led before", async (what) => {
    const cluster = await testCluster();
    const { elector, transitions } = electorAt(quickServers(cluster.urls), freshScope(), "a");
    const { epoch } = await elector.acquire();
    cluster.node(0).intercept = everywhere(WRONG[what] ?? (() => undefined));
    cluster.elect(1);
    await waitFor("a beat at n2", () => cluster.node(1).asked.some(({ path }) => path.endsWith("/renew")));
    expect(elector.gate.requireLeader()).toBe(epoch);
    expect(transitions.map(({ kind }) => kind)).toEqual(["campaigning", "leading"]);
  });
});

describe("a cluster of which every node answers", () => {
  test.each([
    ["text where JSON should be", "BACKEND_UNSUPPORTED"],
    ["a list where an object should be", "BACKEND_UNSUPPORTED"],
    ["an object with nothing in it", "BACKEND_UNSUPPORTED"],
    ["an answer that never ends", "BACKEND_UNSUPPORTED"],
    ["bytes that are not HTTP", "BACKEND_UNSUPPORTED"],
    ["a redirect", "BACKEND_UNSUPPORTED"],
    ["HTTP 500", "BACKEND_UNAVAILABLE"],
    ["HTTP 502 of a proxy", "BACKEND_UNAVAILABLE"],
    ["half an answer", "BACKEND_UNAVAILABLE"],
  ])("%s is refused with %s", async (what, code) => {
    const cluster = await testCluster();
    for (const node of cluster.nodes) node.intercept = everywhere(WRONG[what] ?? (() => undefined));
    const { seat } = seatAt(quickServers(cluster.urls), freshScope());
    await expect(seat.acquire(never)).rejects.toMatchObject({ code });
  });
});

test("a node that trickles its answer is given up in time, and another is asked", async () => {
  const cluster = await testCluster();
  const { seat } = seatAt(quickServers(cluster.urls), freshScope());
  const { epoch } = await seat.acquire(never);
  cluster.node(0).intercept = (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 50);
    response.on("close", () => clearInterval(timer));
    return true;
  };
  cluster.elect(1);
  const startedMs = performance.now();
  await seat.beat(epoch);
  // One try of 750 ms, and the search: while the hold is still trusted.
  expect(performance.now() - startedMs).toBeLessThan(3_000);
});

test("OUTCOME_UNKNOWN of an acquire is asked again with the same session, and what it did is found", async () => {
  const cluster = await testCluster();
  const scope = freshScope();
  const sessions: unknown[] = [];
  let doubts = 2;
  cluster.node(0).intercept = (request, response, path) => {
    if (!path.endsWith("/acquire") || doubts-- <= 0) return false;
    void new Response(request as never).text().then(async (text) => {
      const body = JSON.parse(text) as Record<string, unknown>;
      sessions.push(body["session"]);
      const query = new URLSearchParams();
      // It is done, and nobody hears so.
      await cluster.answer(cluster.node(0), { method: "POST", path, query, body, gone: never });
      response.writeHead(503).end(JSON.stringify({ error: "OUTCOME_UNKNOWN", message: "who knows" }));
    });
    return true;
  };
  const { seat } = seatAt(quickServers(cluster.urls), scope);
  const { epoch } = await seat.acquire(never);
  expect(cluster.holderOf(scope)).toMatchObject({ epoch, session: sessions[0] });
  expect(new Set(sessions).size).toBe(1);
});

test("an acquire whose grant was never heard of and that is abandoned leaves no hold", async () => {
  const cluster = await testCluster();
  const scope = freshScope();
  cluster.node(0).intercept = (request, _response, path) => {
    if (!path.endsWith("/acquire")) return false;
    void new Response(request as never).text().then(async (text) => {
      const body = JSON.parse(text) as Record<string, unknown>;
      await cluster.answer(cluster.node(0), { method: "POST", path, query: new URLSearchParams(), body, gone: never });
    });
    return true;
  };
  const { seat } = seatAt(quickServers(cluster.urls, { ttlMs: 60_000, heartbeatMs: 1_000 }), scope);
  const campaign = seat.acquire(never).catch(() => undefined);
  await waitFor("the silent grant", () => cluster.holderOf(scope) !== null);
  seat.abandon();
  await campaign;
  await waitFor("the hold to be resigned", () => cluster.holderOf(scope) === null, 5_000);
});

test("every scope is listed, however many pages that takes; a page that is too long is refused, and by nobody asked again", async () => {
  const cluster = await testCluster();
  const { signal } = new AbortController();
  const names = Array.from({ length: 600 }, (_, at) => `s-${at}`);
  for (const name of names) {
    const body = { session: "x", identity: "i", metadata: {}, ttl_ms: 60_000, wait_ms: 0 };
    const path = `/v1/scopes/${name}/acquire`;
    await cluster.answer(cluster.node(0), { method: "POST", path, query: new URLSearchParams(), body, gone: signal });
  }
  // Pages are counted: one that is slow must not be asked for twice.
  const admin = quickServers(cluster.urls, { ttlMs: 120_000, heartbeatMs: 10_000 }).admin();
  expect((await admin.list()).map(({ scope }) => scope)).toEqual(names.toSorted());
  const pages = (): number =>
    cluster.nodes.flatMap(({ asked }) => asked).filter(({ path }) => path === "/v1/scopes").length;
  expect(pages()).toBe(3);
  expect(await admin.find("s-77"), "one is asked for by its name").toMatchObject({ scope: "s-77", identity: "i" });
  expect(await admin.find("s-600")).toBeNull();
  expect(pages()).toBe(3);
  for (const node of cluster.nodes) {
    node.intercept = (_request, response, path) => {
      if (path !== "/v1/scopes") return false;
      response.end(`{"scopes":["${"x".repeat(9 * 1024 * 1024)}"],"next":null}`);
      return true;
    };
  }
  await expect(admin.list()).rejects.toMatchObject({
    code: "BACKEND_UNSUPPORTED",
    message: expect.stringContaining("answered with more than 8388608 bytes"),
  });
  expect(pages()).toBe(4);
  await admin.close();
});
