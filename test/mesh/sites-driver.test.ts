// The port of other sites over real sockets: what is read is bounded, the next message waits for the last one, and no address is called, and no
// key sent, but where that is allowed (trap 64).

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { httpSites } from "../../src/drivers/sites/index.ts";
import { SITE_LINE_BYTES_MAX } from "../../src/drivers/sites/limits.ts";
import type { LinkMessage, Sites } from "../../src/ports/mesh/sites.ts";
import { waitFor } from "../servers/index.ts";

const never = new AbortController().signal;
const servers: Server[] = [];
const open: Sites[] = [];

afterEach(() => {
  for (const sites of open.splice(0)) sites.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function calling(...urls: readonly string[]): Sites {
  const origins = urls.map((url) => new URL(url).origin);
  const access = { key: "the-secret", tls: {} };
  const sites = httpSites({ access: (url) => (origins.includes(url.origin) ? access : null) });
  open.push(sites);
  return sites;
}

const json = (response: ServerResponse, status: number, body: object, headers = {}): void =>
  void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

describe("an address", () => {
  it("that may not be called is not: nothing is connected, and no key is sent", async () => {
    const seen: string[] = [];
    const other = await serve((request, response) => {
      seen.push(String(request.headers["x-api-key"]));
      json(response, 200, { controllers: [{ id: "x" }] });
    });
    const sites = calling("http://127.0.0.1:1");
    const { port } = new URL(other);
    for (const url of [other, "file:///etc/passwd", "no address"]) {
      await expect(sites.identify(url, never), url).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    }
    const withUser = `http://user:pass@127.0.0.1:${port}`;
    await expect(calling(other).identify(withUser, never)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    expect(seen).toEqual([]);
    expect(await calling(other).identify(other, never)).toEqual({ kind: "answer", body: "x" });
    expect(seen).toEqual(["the-secret"]);
  });

  it("that an answer redirects to is not called", async () => {
    const seen: string[] = [];
    const other = await serve((request, response) => {
      seen.push(request.url ?? "");
      json(response, 200, {});
    });
    const url = await serve((_request, response) => json(response, 307, {}, { location: other }));
    expect(await calling(url, other).heartbeat(url, "a", never)).toMatchObject({ kind: "refused", status: 307 });
    expect(seen).toEqual([]);
  });
});

describe("a refusal", () => {
  it("says where the leader may be, and when to ask again", async () => {
    const urls = ["http://n1:1", "http://n2:1"];
    const body = { error: "NOT_LEADER", message: "ask n2", leader_url: "http://n2:1", urls };
    const url = await serve((_request, response) => json(response, 409, body, { "retry-after": "3" }));
    expect(await calling(url).deliver(url, { controller: "a" }, never)).toEqual({
      kind: "refused",
      status: 409,
      code: "NOT_LEADER",
      message: "ask n2",
      retryAfterMs: 3_000,
      urls: ["http://n2:1", "http://n1:1"],
    });
  });

  it("of something that is no site is an error", async () => {
    const url = await serve((_request, response) => void response.writeHead(404).end("<html>"));
    await expect(calling(url).heartbeat(url, "a", never)).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
    const busy = await serve((_request, response) => void response.writeHead(502).end("bad gateway"));
    await expect(calling(busy).heartbeat(busy, "a", never)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  });

  it("an answer that does not say what became of each page is none", async () => {
    const page = { line: "a.1", after: 0, items: ["{}"], checkpoint: "" };
    for (const pages of [[], [{ line: "a.1" }], [{ line: "a.1", accepted: -1, duplicates: 0 }], "x"]) {
      const url = await serve((_request, response) => json(response, 200, { pages, heads: [] }));
      const sent = calling(url).deliver(url, { controller: "a", pages: [page] }, never);
      await expect(sent, JSON.stringify(pages)).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
    }
  });
});

describe("a stream", () => {
  const opening = { controller: "a", heads: [] };

  it("is read message by message: the next one when the last one was taken", async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      const lines = [
        { heads: ["n"], at: 5 },
        { later: "kind" },
        { graft: { line: "b.1", after: 7 } },
        { prune: { line: "b.1" } },
      ];
      response.end(
        `${lines.map((line) => JSON.stringify(line)).join("\n")}\n${JSON.stringify({ bye: true, urls: ["http://x:1"] })}\n`,
      );
    });
    const got: LinkMessage[] = [];
    let isTaking = false;
    const answer = await calling(url).stream(url, opening, never, async (message) => {
      expect(isTaking, "one at a time").toBe(false);
      isTaking = true;
      await new Promise((resolve) => setTimeout(resolve, 5));
      isTaking = false;
      got.push(message);
    });
    expect(answer).toEqual({ kind: "answer", body: null });
    expect(got).toEqual([
      { kind: "heads", heads: ["n"], atMs: 5 },
      { kind: "other" },
      { kind: "graft", graft: { line: "b.1", after: 7 } },
      { kind: "prune", line: "b.1" },
      { kind: "bye", urls: ["http://x:1"] },
    ]);
  });

  it("with a line that has no end is given up at the bound, whatever it sends", async () => {
    let sent = 0;
    let isClosed = false;
    const url = await serve((_request, response) => {
      response.writeHead(200);
      response.on("close", () => (isClosed = true));
      const chunk = "x".repeat(64 * 1024);
      const go = (error?: Error | null): void => {
        if (isClosed || error instanceof Error || sent > 32 * SITE_LINE_BYTES_MAX) return;
        sent += chunk.length;
        response.write(chunk, go);
      };
      go();
    });
    const streamed = calling(url).stream(url, opening, never, async () => undefined);
    await expect(streamed).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
    await waitFor("the connection to be closed", () => isClosed);
    expect(sent).toBeLessThan(32 * SITE_LINE_BYTES_MAX);
  });

  it("ends with the signal, and leaves no connection", async () => {
    let isClosed = false;
    const url = await serve((_request, response) => {
      response.writeHead(200).write('{"heads":[],"at":1}\n');
      response.on("close", () => (isClosed = true));
    });
    const stop = new AbortController();
    const streamed = calling(url).stream(url, opening, stop.signal, async () => stop.abort());
    await expect(streamed).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await waitFor("the connection to be closed", () => isClosed);
  });
});
