// Client certificates say who calls, by their SPIFFE id; keys still work next to them.

import { X509Certificate } from "node:crypto";
import { Agent, request } from "node:https";
import { connect as connectTcp } from "node:net";
import { connect, type ConnectionOptions } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseSpiffeId } from "../../src/core/kit/spiffe.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { createCa, issue, type KeyPair } from "../../src/drivers/pki/index.ts";
import { startApi, type TestApi } from "./test-api.ts";
import { leasing } from "./test-job-calls.ts";

const TRUST = "tenure";
const nowMs = Date.now();
let ca: KeyPair;
let stranger: KeyPair;
let t: TestApi;

const certificate = (from: KeyPair, uri: string, address = "127.0.0.1") =>
  issue({ ca: from, identity: parseSpiffeId(uri)!, hosts: [address], nowMs });

beforeAll(async () => {
  ca = await createCa({ trustDomain: TRUST, nowMs });
  stranger = await createCa({ trustDomain: TRUST, nowMs });
  const server = await certificate(ca, "spiffe://tenure/server/n1");
  t = await startApi({ tls: { ...server, clientCa: ca.cert } });
});
afterAll(async () => t[Symbol.asyncDispose]());

function ask(
  path: string,
  pair?: KeyPair,
  key?: string,
  body?: object,
): Promise<{ status: number | undefined; text: string }> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        port: t.port,
        host: "127.0.0.1",
        path,
        ca: ca.cert,
        agent: false,
        ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
        method: text === undefined ? "GET" : "POST",
        headers: {
          ...(key === undefined ? {} : { "x-api-key": key }),
          ...(text === undefined ? {} : { "content-type": "application/json" }),
        },
      },
      (answer) => {
        let said = "";
        answer.on("data", (chunk: Buffer) => (said += chunk.toString()));
        answer.on("end", () => resolve({ status: answer.statusCode, text: said }));
      },
    );
    sent.on("error", reject).end(text);
  });
}

describe("roles by certificate", () => {
  it.each([
    ["spiffe://tenure/operator/ada", { look: 200, submit: 200, lease: 200, acquire: 200, steer: 200 }],
    ["spiffe://tenure/submitter/ci", { look: 200, submit: 200, lease: 403, acquire: 403, steer: 403 }],
    ["spiffe://tenure/agent/w1", { look: 200, submit: 403, lease: 200, acquire: 403, steer: 403 }],
    ["spiffe://tenure/sdk/payer", { look: 200, submit: 403, lease: 403, acquire: 200, steer: 403 }],
    ["spiffe://tenure/viewer/eve", { look: 200, submit: 403, lease: 403, acquire: 403, steer: 403 }],
    ["spiffe://tenure/tc/orders", { look: 200, submit: 403, lease: 403, acquire: 403, steer: 403 }],
    ["spiffe://tenure/server/n2", { look: 200, submit: 403, lease: 403, acquire: 403, steer: 403 }],
  ])("%s", async (uri, may) => {
    const pair = await certificate(ca, uri);
    const status = async (path: string, body?: object) => (await ask(path, pair, undefined, body)).status;
    const session = { session: uri, identity: "me", ttl_ms: 5_000, wait_ms: 0 };
    expect({
      look: await status("/v1/cluster"),
      submit: await status("/v1/jobs", { kind: "build" }),
      lease: await status("/v1/leases", leasing),
      acquire: await status("/v1/scopes/of-certificates/acquire", session),
      steer: await status("/v1/admin/audit"),
    }).toEqual(may);
  });

  it("an operator's certificate is named in the audit", async () => {
    const { text } = await ask("/v1/admin/audit", await certificate(ca, "spiffe://tenure/operator/ada"));
    expect(JSON.parse(text)).toMatchObject({
      records: expect.arrayContaining([
        expect.objectContaining({ who: "spiffe://tenure/operator/ada", how: "certificate" }),
      ]),
    });
  });

  it("one that the client CA did not sign is nobody, whatever it says", async () => {
    const { status, text } = await ask("/v1/cluster", await certificate(stranger, "spiffe://tenure/operator/mallory"));
    expect([status, JSON.parse(text)]).toEqual([
      401,
      expect.objectContaining({ error: "UNAUTHENTICATED", message: expect.stringContaining("not signed") }),
    ]);
  });

  it("an operator of another trust domain is nobody here, though the same authority signed it", async () => {
    const { status, text } = await ask("/v1/cluster", await certificate(ca, "spiffe://staging/operator/ada"));
    expect([status, JSON.parse(text)]).toEqual([
      401,
      expect.objectContaining({
        error: "UNAUTHENTICATED",
        message: expect.stringMatching(/spiffe:\/\/tenure\/server\|operator\|.*\|tc\/<name>/),
      }),
    ]);
  });

  it("without a certificate a key is needed: a client CA ends anonymous access, on loopback too", async () => {
    expect((await ask("/v1/cluster")).status).toBe(401);
    expect((await ask("/livez")).status).toBe(200);
    expect((await ask("/v1/cluster", undefined, "viewer-key")).status).toBe(200);
    expect((await ask("/v1/admin/audit", undefined, "operator-key")).status).toBe(200);
  });

  it("a certificate that expires while its connection stays open is nobody's from then on", async () => {
    let aheadMs = 0;
    const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + aheadMs };
    const server = await certificate(ca, "spiffe://tenure/server/n1");
    await using later = await startApi({ tls: { ...server, clientCa: ca.cert }, clock });
    const pair = await certificate(ca, "spiffe://tenure/operator/ada");
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: ca.cert, cert: pair.cert, key: pair.key });
    const sockets = new Set<unknown>();
    const look = (): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const sent = request({ port: later.port, host: "127.0.0.1", path: "/v1/admin/audit", agent }, (answer) => {
          sockets.add(answer.socket);
          answer.resume().on("end", () => resolve(answer.statusCode));
        });
        sent.on("error", reject).end();
      });
    try {
      const notAfterMs = new X509Certificate(pair.cert).validToDate.getTime();
      aheadMs = notAfterMs - systemClock.wallMs() - 60_000;
      expect(await look()).toBe(200);
      aheadMs += 61_000;
      expect(await look()).toBe(401);
      expect(sockets.size).toBe(1);
    } finally {
      agent.destroy();
    }
  });

  it("that expires ends the calls that wait with it, at once and not when their time is over", async () => {
    let aheadMs = 0;
    const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + aheadMs };
    const server = await certificate(ca, "spiffe://tenure/server/n1");
    await using later = await startApi({ tls: { ...server, clientCa: ca.cert }, clock });
    later.cluster.lead();
    const pair = await certificate(ca, "spiffe://tenure/operator/ada");
    const post = (path: string, body: object): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const headers = { "content-type": "application/json" };
        const tls = { ca: ca.cert, cert: pair.cert, key: pair.key, agent: false as const };
        const sent = request({ port: later.port, host: "127.0.0.1", path, method: "POST", headers, ...tls }, (answer) =>
          answer.resume().on("end", () => resolve(answer.statusCode)),
        );
        sent.on("error", reject).end(JSON.stringify(body));
      });
    const campaign = { session: "s", identity: "i", ttl_ms: 60_000, wait_ms: 0 };
    expect(await post("/v1/scopes/x/acquire", campaign)).toBe(200);
    aheadMs = new X509Certificate(pair.cert).validToDate.getTime() - systemClock.wallMs() - 2_000;
    const waits = [
      post("/v1/scopes/x/acquire", { ...campaign, session: "w", wait_ms: 60_000 }),
      post("/v1/leases", { ...leasing, wait_ms: 20_000 }),
    ];
    expect(await Promise.all(waits)).toEqual([401, 401]);
    expect(later.scopes.waiting).toBe(0);
  });

  it("whose authority is taken away by a reload is out after one more answer, on the connection that it kept open too", async () => {
    const server = await certificate(ca, "spiffe://tenure/server/n1");
    await using reloaded = await startApi({ tls: { ...server, clientCa: ca.cert } });
    const pair = await certificate(ca, "spiffe://tenure/operator/ada");
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: ca.cert, cert: pair.cert, key: pair.key });
    const look = (): Promise<[number | undefined, string | undefined]> =>
      new Promise((resolve, reject) => {
        const sent = request({ port: reloaded.port, host: "127.0.0.1", path: "/v1/admin/audit", agent }, (answer) => {
          answer.resume().on("end", () => resolve([answer.statusCode, answer.headers.connection]));
        });
        sent.on("error", reject).end();
      });
    try {
      expect(await look()).toEqual([200, "keep-alive"]);
      reloaded.api.reload({ ...server, clientCa: stranger.cert });
      expect(await look()).toEqual([200, "close"]);
      expect((await look())[0]).toBe(401);
    } finally {
      agent.destroy();
    }
  });

  it("a new certificate is shown to new connections after a reload", async () => {
    const seen = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const sent = request(
          { port: t.port, host: "127.0.0.1", path: "/livez", ca: ca.cert, agent: false },
          (answer) => {
            answer.resume();
            const { socket } = answer as unknown as { socket: { getPeerCertificate(): { serialNumber: string } } };
            resolve(socket.getPeerCertificate().serialNumber);
          },
        );
        sent.on("error", reject).end();
      });
    const before = await seen();
    t.api.reload({ ...(await certificate(ca, "spiffe://tenure/server/n1")), clientCa: ca.cert });
    expect(await seen()).not.toBe(before);
    expect((await ask("/v1/cluster", await certificate(ca, "spiffe://tenure/sdk/a"))).status).toBe(200);
  });
});

describe("another site by certificate", () => {
  const heartbeat = async (api: TestApi, pair: KeyPair, id: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const tls = { ca: ca.cert, cert: pair.cert, key: pair.key, agent: false as const };
      const headers = { "content-type": "application/json" };
      const path = `/api/controllers/${id}/heartbeat`;
      const sent = request({ port: api.port, host: "127.0.0.1", path, method: "POST", headers, ...tls }, (answer) =>
        answer.resume().on("end", () => resolve(answer.statusCode)),
      );
      sent.on("error", reject).end("{}");
    });
  const look = async (api: TestApi, pair: KeyPair, path: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const tls = { ca: ca.cert, cert: pair.cert, key: pair.key, agent: false as const };
      const sent = request({ port: api.port, host: "127.0.0.1", path, ...tls }, (answer) =>
        answer.resume().on("end", () => resolve(answer.statusCode)),
      );
      sent.on("error", reject).end();
    });

  it("acts for its own id, and reads nothing but the list of sites", async () => {
    const pair = await certificate(ca, "spiffe://tenure/controller/site-b");
    // 404: it is let in, and not registered.
    expect([await heartbeat(t, pair, "site-b"), await heartbeat(t, pair, "site-c")]).toEqual([404, 403]);
    const paths = ["/api/controllers", "/v1/cluster", "/v1/jobs", "/api/events/since/0", "/metrics"];
    expect(await Promise.all(paths.map((path) => look(t, pair, path)))).toEqual([200, 403, 403, 403, 403]);
  });

  it("with an authority of its own is that site, and never anybody of this cluster", async () => {
    const theirs = await createCa({ trustDomain: "b.example", nowMs });
    const server = await certificate(ca, "spiffe://tenure/server/n1");
    const authorities = [new X509Certificate(theirs.cert).fingerprint256];
    const peers = [{ id: "site-b", trustDomain: "b.example", authorities }];
    await using api = await startApi({ tls: { ...server, clientCa: `${ca.cert}\n${theirs.cert}`, peers } });
    const by = async (from: KeyPair, uri: string, id = "site-b") => heartbeat(api, await certificate(from, uri), id);
    expect(await by(theirs, "spiffe://b.example/controller/site-b")).toBe(404);
    expect(await by(theirs, "spiffe://b.example/controller/site-b", "site-c")).toBe(403);
    for (const uri of ["spiffe://b.example/controller/site-c", "spiffe://tenure/controller/site-b"]) {
      expect(await by(theirs, uri, parseSpiffeId(uri)!.name)).toBe(401);
    }
    const forged = await certificate(theirs, "spiffe://tenure/operator/mallory");
    expect(await look(api, forged, "/v1/admin/audit")).toBe(401);
    const own = await certificate(ca, "spiffe://tenure/operator/ada");
    expect(await look(api, own, "/v1/admin/audit")).toBe(200);
  });
});

it("a stranger that never finishes TLS's handshake, or says nothing after it, is closed in time", async () => {
  const tls = { ...(await certificate(ca, "spiffe://tenure/server/n1")), clientCa: null };
  await using quick = await startApi({ tls, limits: { handshakeTimeoutMs: 200, headersTimeoutMs: 200 } });
  const closed = (socket: { on(event: "close" | "error", listener: () => void): unknown }): Promise<true> =>
    new Promise((resolve) => {
      socket.on("error", () => {});
      socket.on("close", () => resolve(true));
    });
  const silent = connectTcp(quick.port, "127.0.0.1");
  const half = connectTcp(quick.port, "127.0.0.1");
  half.write(Buffer.from([0x16, 0x03, 0x01]));
  const mute = connect({ port: quick.port, host: "127.0.0.1", ca: ca.cert }).resume();
  expect(await Promise.all([silent.resume(), half.resume(), mute].map(closed))).toEqual([true, true, true]);
  await expect.poll(() => quick.api.stats().connections).toBe(0);
}, 30_000);

describe("the protocol's version", () => {
  /** What was agreed on, or why nothing was. */
  const agreed = (port: number, options: ConnectionOptions): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: "127.0.0.1", ca: ca.cert, ...options }, () => {
        resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
        socket.destroy();
      });
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(`refused: ${error.code}`));
    });

  it("is TLS 1.3, and a client that speaks only 1.2 is refused", async () => {
    expect(await agreed(t.port, {})).toMatch(/^TLSv1\.3 /);
    expect(await agreed(t.port, { maxVersion: "TLSv1.2" })).toMatch(/^refused: /);
  });

  it("may be 1.2 where that is asked for, with AEAD suites and no others; a reload changes nothing of it", async () => {
    const tls = { ...(await certificate(ca, "spiffe://tenure/server/n1")), clientCa: null, minVersion: "1.2" } as const;
    await using old = await startApi({ tls });
    for (const isReloaded of [false, true]) {
      if (isReloaded) old.api.reload(tls);
      expect(await agreed(old.port, {})).toMatch(/^TLSv1\.3 /);
      expect(await agreed(old.port, { maxVersion: "TLSv1.2" })).toMatch(/^TLSv1\.2 ECDHE-ECDSA-.*(GCM|POLY1305)/);
      for (const ciphers of ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA256"]) {
        expect(await agreed(old.port, { maxVersion: "TLSv1.2", ciphers })).toMatch(/^refused: /);
      }
    }
  });
});
