// Calls to other coordinators: which servers are asked, what of their answers counts, and how long a call takes.

import { X509Certificate } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type AddressInfo, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseSpiffeId } from "../../src/core/kit/spiffe.ts";
import { issue } from "../../src/drivers/pki/index.ts";
import { TC_ANSWER_BYTES_MAX } from "../../src/drivers/coordinators/limits.ts";
import type { PeerTls } from "../../src/drivers/wire/index.ts";
import { TestAuthority } from "../wire/test-certificates.ts";
import { type Answer, json, TestCalls, TestServer } from "./test-server.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** For calls that must end by their own time. */
const SHORT_MS = 300;

let authority: TestAuthority;
let own: PeerTls;
let n2: PeerTls;
const ends: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  authority = await TestAuthority.make();
  [own, n2] = [await authority.node("n1"), await authority.node("n2")];
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function serve(answer?: Answer, tls: PeerTls | null = n2, options: object = {}): Promise<TestServer> {
  const server = await TestServer.start(tls, answer, options);
  ends.push(() => server[Symbol.asyncDispose]());
  return server;
}

function calling(tls: PeerTls | null = own, options: ConstructorParameters<typeof TestCalls>[1] = {}): TestCalls {
  const calls = new TestCalls(tls, options);
  ends.push(() => calls.http.close());
  return calls;
}

/** A server that is no HTTP server of Node's: what it does with each connection. */
async function serveRaw(talk: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    talk(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("an answer", () => {
  it("comes with the node id in its server's certificate; no name of that certificate is the host's", async () => {
    const asked: unknown[] = [];
    const server = await serve((request, response) => {
      const { method, url, headers } = request;
      request.on("data", (chunk: Buffer) => asked.push(JSON.parse(String(chunk))));
      request.on("end", () => {
        asked.push([method, url, headers["content-type"], headers["x-tenure-tc-leave-fanout"]]);
        json(response, { error: "tc_lease_active" }, 409);
      });
    });
    const calls = calling();
    const answer = await calls.http.exchange({
      endpoint: server.url,
      method: "POST",
      path: "/v1/tc/lease/acquire",
      headers: { "x-tenure-tc-leave-fanout": "1" },
      body: { term: 5 },
      withinMs: 60_000,
    });
    expect(answer).toEqual({ from: "n2", status: 409, body: { error: "tc_lease_active" } });
    expect(asked).toEqual([{ term: 5 }, ["POST", "/v1/tc/lease/acquire", "application/json", "1"]]);
    expect(server.shown).toEqual([new X509Certificate(own.cert).fingerprint256]);
    expect(calls.warnings).toEqual([]);
  });

  it("counts also where its connection ends with it", async () => {
    const bytes = 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{"a":1}';
    const server = await serve((_, response) => void response.socket!.end(bytes, () => response.socket?.destroy()));
    const calls = calling();
    for (let n = 0; n < 200; n++) {
      expect(await calls.get(server.url)).toEqual({ from: "n2", status: 200, body: { a: 1 } });
    }
  });

  it("comes from below a path too, where an endpoint has one", async () => {
    const server = await serve((request, response) => json(response, { at: request.url }));
    expect((await calling().get(`${server.url}/tenure/`))?.body).toEqual({ at: "/tenure/v1/tc/leader" });
  });
});

describe("hole 7: who a server is, its SPIFFE id says, and it is checked before anything is sent", () => {
  const forged = (...uris: string[]) => authority.forged(uris);
  const aged = (agedDays: number) => authority.node("n2", { agedDays });
  const one = async (uri: string): Promise<PeerTls> => {
    const pair = await issue({ ca: authority.ca, identity: parseSpiffeId(uri)!, nowMs: Date.now() });
    return { ca: authority.ca.cert, ...pair };
  };
  const cases: readonly [string, () => Promise<PeerTls>, RegExp][] = [
    ["of another trust domain", () => forged("spiffe://other/server/n2"), /of another trust domain than tenure/],
    ["of a program that leads", () => forged("spiffe://tenure/sdk/n2"), /names spiffe:\/\/tenure\/sdk\/n2, not/],
    ["of an operator", () => forged("spiffe://tenure/operator/n2"), /names spiffe:\/\/tenure\/operator\/n2, not/],
    ["of a transaction's client", () => forged("spiffe://tenure/tc/n2"), /names spiffe:\/\/tenure\/tc\/n2, not/],
    ["of a client, as it is issued", () => one("spiffe://tenure/tc/n2"), /is not trusted \(INVALID_PURPOSE\)/],
    ["without a name", () => forged(), /no URI name/],
    ["of another authority", async () => (await TestAuthority.make()).node("n2"), /is not trusted/],
    ["that has expired", () => aged(30), /CERT_HAS_EXPIRED/],
    ["that is not valid yet", () => aged(-30), /CERT_NOT_YET_VALID/],
  ];
  it.each(cases)("a server with a certificate %s is not asked", async (_what, made, said) => {
    const server = await serve(undefined, await made());
    const calls = calling();
    expect(await calls.get(server.url)).toBeNull();
    expect(await calls.post(server.url, { secret: 1 })).toBeNull();
    expect(server.requests).toBe(0);
    // Once: it is asked every second.
    expect(calls.warnings).toEqual([expect.stringMatching(said)]);
  });

  const FIRST = "spiffe://tenure/server/n2";
  it.each([
    [FIRST, "spiffe://tenure/server/n3"],
    [FIRST, "spiffe://other/server/n2"],
    [FIRST, "https://example.org"],
    [FIRST, FIRST],
  ])("hole 6: a server with two URI names, %s and %s, is nobody, and not the first of them", async (...uris) => {
    const server = await serve(undefined, await forged(...uris));
    const calls = calling();
    expect(await calls.get(server.url)).toBeNull();
    expect(server.requests).toBe(0);
    expect(calls.warnings).toEqual([expect.stringContaining("2 URI names; it must have exactly one")]);
  });

  it("a server whose certificate was revoked is not asked, on a connection that was kept either", async () => {
    const server = await serve();
    const calls = calling();
    expect((await calls.get(server.url))?.from).toBe("n2");
    calls.revoked.add(new X509Certificate(n2.cert).fingerprint256.replaceAll(":", "").toLowerCase());
    expect(await calls.get(server.url)).toBeNull();
    expect(await calls.get(server.url)).toBeNull();
    expect(server.requests).toBe(1);
    expect(calls.warnings).toEqual([expect.stringContaining("the certificate of node n2 was revoked")]);
  });

  it("and with a session that was resumed neither, as none is: a handshake without a certificate proves nothing", async () => {
    const resumed: boolean[] = [];
    const server = await serve((request, response) => {
      resumed.push((request.socket as TLSSocket).isSessionReused());
      response.setHeader("connection", "close");
      json(response, {});
    });
    const calls = calling();
    for (let n = 0; n < 3; n++) expect((await calls.get(server.url))?.from).toBe("n2");
    expect([resumed, server.accepted]).toEqual([[false, false, false], 3]);
    calls.revoked.add(new X509Certificate(n2.cert).fingerprint256.replaceAll(":", "").toLowerCase());
    expect(await calls.get(server.url)).toBeNull();
    expect(server.requests).toBe(3);
  });

  it("a certificate that expires while its connection is kept ends that, and the next one is shown on another", async () => {
    const server = await serve(undefined, await authority.node("n2", { agedDays: 5 }));
    const calls = calling();
    expect((await calls.get(server.url))?.from).toBe("n2");
    calls.aheadMs = 6 * DAY_MS;
    expect(await calls.get(server.url)).toBeNull();
    expect(server.requests).toBe(1);
    expect(calls.warnings).toEqual([expect.stringContaining("has expired")]);
    (server.server as unknown as { setSecureContext(tls: PeerTls): void }).setSecureContext(n2);
    expect((await calls.get(server.url))?.from).toBe("n2");
  });

  it("a kept connection whose certificate has expired costs no call where the server has another one by now", async () => {
    const server = await serve(undefined, await authority.node("n2", { agedDays: 5 }));
    const calls = calling();
    expect((await calls.get(server.url))?.from).toBe("n2");
    (server.server as unknown as { setSecureContext(tls: PeerTls): void }).setSecureContext(n2);
    calls.aheadMs = 6 * DAY_MS;
    expect((await calls.get(server.url))?.from).toBe("n2");
    expect([server.requests, server.accepted]).toEqual([2, 2]);
  });

  it("is checked although the environment says that no certificate is", async () => {
    const server = await serve(undefined, await (await TestAuthority.make()).node("n2"));
    const other = await serve(undefined, await forged("spiffe://other/server/n2"));
    const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      expect(await calling().get(server.url)).toBeNull();
      expect(await calling().get(other.url)).toBeNull();
    } finally {
      if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
    }
    expect([server.requests, other.requests]).toEqual([0, 0]);
  });

  it("a server without TLS gets nothing, in clear text or otherwise, and one with TLS 1.2 alone neither", async () => {
    const plain = await serve(undefined, null);
    const calls = calling();
    expect(await calls.get(plain.url)).toBeNull();
    expect(await calls.get(plain.url.replace("http:", "https:"))).toBeNull();
    expect([plain.requests, plain.accepted]).toEqual([0, 1]);
    const old = await serve(undefined, n2, { maxVersion: "TLSv1.2" });
    expect(await calls.get(old.url)).toBeNull();
    expect(old.requests).toBe(0);
  });
});

describe("what is no answer of a coordinator is none", () => {
  const text = (body: string, more: string[] = []): string =>
    ["HTTP/1.1 200 OK", `Content-Length: ${body.length}`, ...more, "", body].join("\r\n");
  const raw = (bytes: string) => (_: IncomingMessage, response: ServerResponse) => void response.socket!.end(bytes);
  it.each([
    ["text", raw(text("hello"))],
    ["a list", raw(text("[]"))],
    ["a number", raw(text("7"))],
    ["null", raw(text("null"))],
    ["nothing", raw(text(""))],
    ["half of an object", raw(text('{"a":'))],
    ["less than it says", raw('HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"a":1}')],
    ["no HTTP", raw("SSH-2.0-OpenSSH_9.9\r\n")],
    ["a change of protocols", raw("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")],
    ["headers without end", raw(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(100_000)}\r\n\r\n{}`)],
    ["a reset", (_: IncomingMessage, response: ServerResponse) => void response.socket!.destroy()],
  ])("%s", async (_what, answer) => {
    const server = await serve(answer);
    expect(await calling().get(server.url)).toBeNull();
    expect(server.requests).toBe(1);
  });

  it("more than is read: the answer ends there; exactly as much is taken", async () => {
    const sized = (bytes: number): string => JSON.stringify({ a: "x".repeat(bytes - '{"a":""}'.length) });
    let bytes = TC_ANSWER_BYTES_MAX;
    const server = await serve((_, response) => void response.end(sized(bytes)));
    const calls = calling();
    expect((await calls.get(server.url))?.status).toBe(200);
    bytes++;
    expect(await calls.get(server.url)).toBeNull();
    expect(calls.warnings).toEqual([expect.stringContaining(`more than ${TC_ANSWER_BYTES_MAX} bytes`)]);
    await expect.poll(() => server.open.size).toBe(0);
  });

  it("a redirect: nobody else is asked", async () => {
    const elsewhere = await serve();
    for (const status of [301, 302, 303, 307, 308]) {
      const server = await serve((_, response) =>
        response.writeHead(status, { location: `${elsewhere.url}/v1/tc/leader` }).end('{"a":1}'),
      );
      expect(await calling().get(server.url)).toBeNull();
      expect(await calling().post(server.url, {})).toBeNull();
    }
    expect(elsewhere.accepted).toBe(0);
  });

  it("an endpoint that may not be called: nothing is sent", async () => {
    const server = await serve();
    const { port } = new URL(server.url);
    const calls = calling();
    for (const endpoint of [
      "",
      "n2:7401",
      `127.0.0.1:${port}`,
      `http://127.0.0.1:${port}`,
      `ftp://127.0.0.1:${port}`,
      `https://me:secret@127.0.0.1:${port}`,
      `https://me@127.0.0.1:${port}`,
      // A path that reads as a host, of somebody who listens.
      `https://127.0.0.1:1//127.0.0.1:${port}`,
    ]) {
      expect(await calls.get(endpoint), endpoint).toBeNull();
    }
    expect(server.accepted).toBe(0);
  });
});

describe("a call ends in its time", () => {
  it.each<[string, Answer]>([
    ["no answer", () => undefined],
    ["a head alone", (_, response) => response.writeHead(200, { "content-length": 9 }).flushHeaders()],
    [
      "an answer that never ends",
      (_, response) => {
        const timer = setInterval(() => response.write(" "), 20);
        response.on("close", () => clearInterval(timer));
      },
    ],
  ])("%s", async (_what, answer) => {
    const server = await serve(answer);
    expect(await calling().get(server.url, SHORT_MS)).toBeNull();
    await expect.poll(() => server.open.size).toBe(0);
  });

  it("no handshake: a host that accepts and says nothing", async () => {
    let opened = 0;
    const at = await serveRaw((socket) => {
      opened++;
      socket.on("close", () => opened--).resume();
    });
    expect(await calling().get(`https://${at}`, SHORT_MS)).toBeNull();
    await expect.poll(() => opened).toBe(0);
  });

  it("nobody listens: at once", async () => {
    const at = await serveRaw(() => undefined);
    await ends.pop()!();
    const calls = calling();
    expect(await calls.get(`https://${at}`)).toBeNull();
    // It may be back at any moment: the list of members shows it, not the log.
    expect(calls.warnings).toEqual([]);
  });

  it("close: what is under way is answered with null, and so is what comes later", async () => {
    const server = await serve(() => undefined);
    const calls = calling();
    const waiting = calls.get(server.url);
    await expect.poll(() => server.requests).toBe(1);
    calls.http.close();
    expect(await waiting).toBeNull();
    expect(await calls.get(server.url)).toBeNull();
    await expect.poll(() => server.open.size).toBe(0);
    expect([server.requests, calls.warnings]).toEqual([1, []]);
  });
});

describe("connections that are kept", () => {
  it("are used again", async () => {
    const server = await serve();
    const calls = calling();
    for (let n = 0; n < 10; n++) expect((await calls.get(server.url))?.from).toBe("n2");
    expect([server.requests, server.accepted]).toEqual([10, 1]);
  });

  it("fail no call where the server has closed them at that moment: it is sent once more", async () => {
    const used = new Set<unknown>();
    const server = await serve((request, response) => {
      if (used.has(request.socket)) request.socket.destroy();
      else json(response, {});
      used.add(request.socket);
    });
    const calls = calling();
    for (let n = 0; n < 5; n++) expect((await calls.post(server.url, { n }))?.from).toBe("n2");
    expect([server.requests, server.accepted]).toEqual([9, 5]);
  });

  it("fail no call where the server ends each after its answer without a word, whatever has arrived of that by the next call", async () => {
    const server = await serve((request, response) => {
      response.on("finish", () => request.socket.destroy());
      json(response, {});
    });
    const calls = calling();
    for (let n = 0; n < 200; n++) expect((await calls.post(server.url, { n }))?.from).toBe("n2");
  });

  it("but a call on a new one is sent once", async () => {
    const server = await serve((request) => void request.socket.destroy());
    expect(await calling().get(server.url)).toBeNull();
    expect(server.requests).toBe(1);
  });

  it("of a host that went silent cost one call its time, and no later one; those to others stay", async () => {
    const together = 5;
    let waiting: ServerResponse[] = [];
    const server = await serve((_, response) => {
      // All of the first are under way at once, so that each has a connection of its own.
      if (waiting.push(response) < together && server.accepted <= together) return;
      for (const one of waiting) json(one, {});
      waiting = [];
    });
    const other = await serve(undefined, await authority.node("n3"));
    const calls = calling();
    expect((await calls.get(other.url))?.from).toBe("n3");
    await Promise.all(Array.from({ length: together }, () => calls.get(server.url)));
    expect(server.accepted).toBe(together);
    server.mute();
    expect(await calls.get(server.url, SHORT_MS)).toBeNull();
    for (let n = 0; n < together; n++) expect((await calls.get(server.url))?.from).toBe("n2");
    expect(server.accepted).toBe(together + 1);
    expect((await calls.get(other.url))?.from).toBe("n3");
    expect(other.accepted).toBe(1);
  });
});

describe("without TLS", () => {
  const answer: Answer = (_, response) => json(response, { self: { identity: "n1" } });

  it("only loopback is called, and only by a node that listens there", async () => {
    const server = await serve(answer, null);
    const { port } = new URL(server.url);
    expect(await calling(null).get(server.url)).toEqual({
      from: "n1",
      status: 200,
      body: { self: { identity: "n1" } },
    });
    expect((await calling(null).get(`http://localhost:${port}`))?.from).toBe("n1");
    expect(await calling(null, { isLoopback: false }).get(server.url)).toBeNull();
    expect(await calling(null).get(server.url.replace("http:", "https:"))).toBeNull();
    for (const host of ["10.0.0.1", "127.0.0.1.example.org", "[::ffff:10.0.0.1]", "localhost.example.org", "0.0.0.0"]) {
      expect(await calling(null).get(`http://${host}:${port}`, SHORT_MS), host).toBeNull();
    }
    expect(server.requests).toBe(2);
  });

  it("a server that does not say who it is does not count", async () => {
    const server = await serve((_, response) => json(response, { self: {} }), null);
    expect(await calling(null).get(server.url)).toBeNull();
  });
});
