// Who may call the routes for kinds of certificates (Route.identities): every such route with every kind of identity, and with everybody who has none.
// No API key suffices, whatever its role; a certificate counts where it is verified, of this cluster's own trust domain, and of one of the route's kinds.

import { X509Certificate } from "node:crypto";
import { request } from "node:https";
import { connect as connectPlain } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiOptions } from "../../src/api/index.ts";
import { ROLES, type Route, ROUTES } from "../../src/contract/index.ts";
import { IDENTITY_KINDS, type IdentityKind, parseSpiffeId } from "../../src/core/kit/spiffe.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { createCa, issue, type KeyPair } from "../../src/drivers/pki/index.ts";
import { TestAuthority } from "../wire/test-certificates.ts";
import { startApi, type TestApi } from "./test-api.ts";

const LOOKS = ["tc", "server", "operator"] as const;
const SERVERS = ["server"] as const;
const CLIENTS = ["tc", "server"] as const;
const PEOPLE = ["tc", "operator"] as const;
/** Written down a second time on purpose: a route for certificates that is not here fails the test. */
const KINDS: Readonly<Record<string, readonly IdentityKind[]>> = {
  "GET /v1/tc/leader": LOOKS,
  "POST /v1/tc/lease/acquire": SERVERS,
  "POST /v1/tc/lease/renew": SERVERS,
  "POST /v1/tc/lease/release": SERVERS,
  "POST /v1/tc/cluster/announce": SERVERS,
  "POST /v1/tc/cluster/leave": SERVERS,
  "GET /v1/tc/cluster/list": LOOKS,
  "POST /v1/tc/rm/register": SERVERS,
  "POST /v1/tc/rm/unregister": SERVERS,
  "GET /v1/tc/rm/list": LOOKS,
  "POST /v1/txn": CLIENTS,
  "POST /v1/txn/stage": CLIENTS,
  "POST /v1/txn/decide": CLIENTS,
  "POST /v1/txn/prepare": SERVERS,
  "POST /v1/txn/commit": SERVERS,
  "POST /v1/txn/rollback": SERVERS,
  "POST /v1/txn/inquire": SERVERS,
  "POST /v1/txn/settled": SERVERS,
  "POST /v1/txn/recover": SERVERS,
  "POST /v1/txn/batch": SERVERS,
  "POST /v1/txn/replay": PEOPLE,
  "GET /v1/txn": PEOPLE,
  "GET /v1/txn/:id": PEOPLE,
};
const ROWS = Object.entries(KINDS).map(([route, kinds]) => {
  const [method = "", path = ""] = route.split(" ");
  return { route, method: method as "GET" | "POST", path, kinds };
});

const contract = Object.values(ROUTES as Record<string, Route>);
const nowMs = Date.now();
let ca: KeyPair;
let theirs: KeyPair;
let t: TestApi;
let aheadMs = 0;

const certificate = (uri: string, from: KeyPair = ca) => issue({ ca: from, identity: parseSpiffeId(uri)!, nowMs });

async function start(options: Partial<ApiOptions> = {}): Promise<TestApi> {
  const server = await certificate("spiffe://tenure/server/n1");
  // Its own clients' authority, and another site of the mesh with an authority of its own.
  const authorities = [new X509Certificate(theirs.cert).fingerprint256];
  const peers = [
    { id: "site-b", trustDomain: "b.example", authorities },
    { id: "site-c", trustDomain: "c.example", authorities: null },
  ];
  return startApi({
    tls: { ...server, clientCa: `${ca.cert}\n${theirs.cert}`, peers },
    clock: { ...systemClock, wallMs: () => systemClock.wallMs() + aheadMs },
    limits: { adminPerWindow: 10_000 },
    ...options,
  });
}

beforeAll(async () => {
  ca = await createCa({ trustDomain: "tenure", nowMs });
  theirs = await createCa({ trustDomain: "b.example", nowMs });
  t = await start();
});
afterAll(async () => t[Symbol.asyncDispose]());

interface Said {
  readonly status: number;
  readonly error: unknown;
  readonly message: string;
}

interface Shown {
  readonly pair?: KeyPair;
  readonly key?: string;
  readonly host?: string;
}

/** A POST has a body that is wrong on purpose: whoever is let in changes nothing. */
function ask(api: TestApi, method: string, path: string, { pair, key, host }: Shown): Promise<Said> {
  const body = method === "POST" ? '{"nonsense":1}' : undefined;
  const headers = {
    ...(key === undefined ? {} : { "x-api-key": key }),
    ...(host === undefined ? {} : { host }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const tls = { ca: ca.cert, rejectUnauthorized: false, ...pair, agent: false as const };
  return new Promise((resolve, reject) => {
    const sent = request({ port: api.port, host: "127.0.0.1", method, path, headers, ...tls }, (answer) => {
      let text = "";
      answer.on("data", (chunk: Buffer) => (text += String(chunk)));
      answer.on("end", () => {
        const json = (text === "" ? {} : JSON.parse(text)) as { error?: unknown; message?: string };
        resolve({ status: answer.statusCode!, error: json.error, message: json.message ?? "" });
      });
    });
    sent.on("error", reject).end(body);
  });
}

function isIn({ status }: Said): boolean {
  return status !== 401 && status !== 403;
}

it("every route for certificates is in the table, with its kinds, and none of the table's is open to roles", () => {
  const named = contract.filter(({ identities }) => identities !== undefined);
  for (const { method, path, identities } of named) {
    expect(KINDS[`${method} ${path}`]?.toSorted(), `${method} ${path}`).toEqual([...identities!].toSorted());
  }
  expect(named).toHaveLength(ROWS.length);
  const registered = t.api.routes().filter(({ identities }) => identities !== null);
  const expected = ROWS.flatMap(({ method, path, kinds }) =>
    (method === "GET" ? ["GET", "HEAD"] : [method]).map((one) => `${one} ${path} ${kinds.toSorted().join()}`),
  );
  const found = registered.map(({ method, path, identities }) => `${method} ${path} ${identities!.toSorted().join()}`);
  expect(new Set(found)).toEqual(new Set(expected));
  expect(found).toHaveLength(expected.length);
});

describe.each(ROWS)("$route", ({ method, path, kinds }) => {
  const isForClients = kinds.includes("tc");
  const call = (shown: Shown): Promise<Said> => ask(t, method, path, shown);
  const refusal = async (shown: Shown): Promise<unknown[]> => {
    const before = t.fingerprint();
    const { status, error } = await call(shown);
    expect(t.fingerprint()).toBe(before);
    return [status, error];
  };

  it.each(IDENTITY_KINDS)("with a certificate of the kind %s", async (kind) => {
    const pair = await certificate(`spiffe://tenure/${kind}/n7`);
    if (kinds.includes(kind)) expect(isIn(await call({ pair }))).toBe(true);
    else expect(await refusal({ pair })).toEqual([403, "tc_forbidden"]);
    // An API key next to it changes nothing.
    const both = await call({ pair, key: "operator-key" });
    expect(isIn(both)).toBe(kinds.includes(kind));
  });

  it("without any: nobody is a client, and nobody has an identity", async () => {
    const code = isForClients ? "tc_client_required" : "tc_cluster_identity_missing";
    expect(await refusal({})).toEqual([403, code]);
    const { message } = await call({});
    for (const kind of kinds) expect(message).toContain(`spiffe://tenure/${kind}/<`);
    expect(message).toContain("came without a client certificate");
    expect(message).toContain(`tenure cert issue ${isForClients ? "--tc NAME" : "--node-id ID"}`);
  });

  it("with an API key, of each role, a wrong and an empty one", async () => {
    const code = isForClients ? "tc_client_required" : "tc_server_required";
    for (const key of [...ROLES.map((role) => `${role}-key`), "no such key", ""]) {
      expect(await refusal({ key }), key).toEqual([403, code]);
    }
  });

  it("with a certificate of another trust domain, or of another authority: nobody, whatever it says", async () => {
    const stranger = await createCa({ trustDomain: "tenure", nowMs });
    for (const kind of IDENTITY_KINDS) {
      for (const pair of [
        await certificate(`spiffe://staging/${kind}/n7`),
        await certificate(`spiffe://tenure/${kind}/n7`, stranger),
      ]) {
        expect(await refusal({ pair }), kind).toEqual([401, "UNAUTHENTICATED"]);
        expect(await refusal({ pair, key: "operator-key" }), kind).toEqual([401, "UNAUTHENTICATED"]);
      }
    }
  });

  it("with a certificate that another site's authority has signed: that site at most, and no member of anything", async () => {
    for (const kind of IDENTITY_KINDS) {
      for (const domain of ["tenure", "b.example"]) {
        const pair = await certificate(`spiffe://${domain}/${kind}/site-b`, theirs);
        const isSite = domain === "b.example" && kind === "controller";
        const expected = isSite ? [403, "tc_forbidden"] : [401, "UNAUTHENTICATED"];
        expect(await refusal({ pair }), `${domain} ${kind}`).toEqual(expected);
      }
      // A site that this cluster's own authority signs for.
      const pair = await certificate(`spiffe://c.example/${kind}/site-c`);
      const expected = kind === "controller" ? [403, "tc_forbidden"] : [401, "UNAUTHENTICATED"];
      expect(await refusal({ pair }), `c.example ${kind}`).toEqual(expected);
    }
  });

  it("hole 6: with a certificate of two URI names, of which the first is right: nobody", async () => {
    const authority = TestAuthority.of(ca);
    for (const kind of kinds) {
      const right = `spiffe://tenure/${kind}/n7`;
      for (const other of ["spiffe://tenure/server/n8", "spiffe://staging/tc/x", "https://example.org", right]) {
        for (const uris of [
          [right, other],
          [other, right],
        ]) {
          expect(await refusal({ pair: await authority.forged(uris) }), uris.join()).toEqual([401, "UNAUTHENTICATED"]);
        }
      }
    }
  });

  it("with one that was revoked: nobody, at once", async () => {
    const pair = await certificate(`spiffe://tenure/${kinds[0]!}/n7`);
    expect(isIn(await call({ pair }))).toBe(true);
    t.cluster.lead();
    const { fingerprint256, validToDate } = new X509Certificate(pair.cert);
    const sha256 = fingerprint256.replaceAll(":", "").toLowerCase();
    const one = { sha256, id: "spiffe://tenure/x/n7", notAfterMs: validToDate.getTime() };
    await t.certificates.revoke({ caller: "me", idempotencyKey: null, bodyHash: "", leaderEpoch: undefined }, one);
    expect(await refusal({ pair })).toEqual([401, "UNAUTHENTICATED"]);
  });

  it("with one that has expired: nobody, on a connection that stays open too", async () => {
    const pair = await certificate(`spiffe://tenure/${kinds[0]!}/n7`);
    const socket = connect({ port: t.port, host: "127.0.0.1", ca: ca.cert, rejectUnauthorized: false, ...pair });
    try {
      expect(isIn({ status: await statusOn(socket, method, path), error: null, message: "" })).toBe(true);
      aheadMs = new X509Certificate(pair.cert).validToDate.getTime() - systemClock.wallMs() + 1_000;
      expect(await statusOn(socket, method, path)).toBe(401);
    } finally {
      aheadMs = 0;
      socket.destroy();
    }
  });

  it("is refused before its body is read, and HEAD as GET", async () => {
    if (method === "GET") {
      expect((await ask(t, "HEAD", path, {})).status).toBe(403);
      expect((await ask(t, "HEAD", path, { pair: await certificate("spiffe://tenure/sdk/a") })).status).toBe(403);
      return;
    }
    const pair = await certificate("spiffe://tenure/sdk/a");
    const socket = connect({ port: t.port, host: "127.0.0.1", ca: ca.cert, rejectUnauthorized: false, ...pair });
    try {
      const head = [
        `POST ${path} HTTP/1.1`,
        "Host: localhost",
        "Content-Type: application/json",
        "Content-Length: 900",
      ];
      socket.write(`${head.join("\r\n")}\r\n\r\n`);
      expect(await statusLine(socket)).toContain(" 403 ");
    } finally {
      socket.destroy();
    }
  });
});

function statusOn(socket: TLSSocket, method: string, path: string): Promise<number> {
  const body = method === "POST" ? "{}" : "";
  const type = method === "POST" ? `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n` : "";
  socket.write(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${type}\r\n${body}`);
  return statusLine(socket).then((line) => Number(line.split(" ")[1]));
}

/** One answer at a time: it comes in one piece, as small as it is. */
function statusLine(socket: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("data", (chunk: Buffer) => resolve(String(chunk).split("\r\n", 1)[0]!));
  });
}

describe("with tc.disable_auth", () => {
  const reads = ROWS.filter(({ method }) => method === "GET");
  const calls = ROWS.filter(({ method }) => method !== "GET");
  const plain = (options: Partial<ApiOptions> = {}) => startApi({ tcAuthDisabled: true, ...options });

  it("reads are open on loopback, to everybody; what changes something still needs an identity", async () => {
    await using api = await plain();
    for (const key of [null, "viewer-key", "no such key"]) {
      for (const { path } of reads) {
        expect([401, 403], `${path} ${key}`).not.toContain((await api.call("GET", path, undefined, key)).status);
      }
      for (const { path, kinds } of calls) {
        const { status, json } = await api.call("POST", path, { nonsense: 1 }, key);
        const ofServers = key === null ? "tc_cluster_identity_missing" : "tc_server_required";
        const code = kinds.includes("tc") ? "tc_client_required" : ofServers;
        expect([status, json?.["error"]], path).toEqual([403, code]);
      }
    }
  });

  it("no read is open where the node does not listen on loopback, nor to a page that has pointed its name at 127.0.0.1", async () => {
    await using beyond = await plain({ isLoopback: false });
    await using api = await plain();
    for (const { path } of reads) {
      expect((await beyond.call("GET", path, undefined, null)).status).toBe(403);
      for (const [host, status] of [
        ["evil.example", 403],
        [`evil.example:${api.port}`, 403],
      ] as const) {
        const socket = connectPlain(api.port, "127.0.0.1");
        socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
        expect(await statusLine(socket)).toContain(` ${status} `);
        socket.destroy();
      }
    }
  });

  it("with TLS a certificate of any kind may read, and only those of a call's kinds may make it", async () => {
    await using api = await start({ tcAuthDisabled: true });
    for (const kind of IDENTITY_KINDS) {
      const pair = await certificate(`spiffe://tenure/${kind}/n7`);
      for (const { method, path, kinds } of ROWS) {
        const isOpen = method === "GET" || kinds.includes(kind);
        expect(isIn(await ask(api, method, path, { pair })), `${method} ${path} ${kind}`).toBe(isOpen);
      }
    }
  });

  it("everything else is closed as before", async () => {
    await using api = await plain();
    expect((await api.call("GET", "/v1/cluster", undefined, null)).status).toBe(401);
    expect((await api.call("GET", "/v1/admin/audit", undefined, null)).status).toBe(401);
  });
});
