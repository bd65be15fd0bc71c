// Trap 63: every bound of the API, at it and one past it; and what comes over a socket that is no request at all.

import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../../src/contract/index.ts";
import {
  SCOPE_BYTES_MAX,
  SCOPE_IDENTITY_BYTES_MAX,
  SCOPE_METADATA_BYTES_MAX,
  SCOPE_METADATA_ENTRIES_MAX,
  SCOPE_TTL_MS_MAX,
  SCOPE_TTL_MS_MIN,
  SCOPE_WAIT_MS_MAX,
} from "../../src/core/kit/limits.ts";
import { startApi, type TestApi } from "./test-api.ts";

const good = { session: "s", identity: "i", ttl_ms: 5_000, wait_ms: 0 };
const acquire = (t: TestApi, change: object, scope = "x") =>
  t.call("POST", `/v1/scopes/${encodeURIComponent(scope)}/acquire`, { ...good, ...change });

/** Everything that comes back until the other side closes. */
function exchange(port: number, send: (write: (text: string | Uint8Array) => void) => void): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => send((one) => socket.write(one)));
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
  });
}

describe("fields", () => {
  const metadata = (bytes: number): Record<string, string> => ({ k: "v".repeat(bytes - '{"k":""}'.length) });
  const entries = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));
  const cases: [string, object, object][] = [
    [
      "identity",
      { identity: "i".repeat(SCOPE_IDENTITY_BYTES_MAX) },
      { identity: "i".repeat(SCOPE_IDENTITY_BYTES_MAX + 1) },
    ],
    [
      "identity",
      { identity: "é".repeat(SCOPE_IDENTITY_BYTES_MAX / 2) },
      { identity: "é".repeat(SCOPE_IDENTITY_BYTES_MAX / 2 + 1) },
    ],
    ["identity", { identity: "i" }, { identity: "" }],
    ["identity", { identity: "i" }, { identity: "a\0b" }],
    ["session", { session: "s".repeat(128) }, { session: "s".repeat(129) }],
    ["ttl_ms", { ttl_ms: SCOPE_TTL_MS_MIN }, { ttl_ms: SCOPE_TTL_MS_MIN - 1 }],
    ["ttl_ms", { ttl_ms: SCOPE_TTL_MS_MAX }, { ttl_ms: SCOPE_TTL_MS_MAX + 1 }],
    ["ttl_ms", { ttl_ms: 5_000 }, { ttl_ms: "5000" }],
    ["ttl_ms", { ttl_ms: 5_000 }, { ttl_ms: 5_000.5 }],
    ["wait_ms", { wait_ms: SCOPE_WAIT_MS_MAX }, { wait_ms: SCOPE_WAIT_MS_MAX + 1 }],
    [
      "metadata",
      { metadata: metadata(SCOPE_METADATA_BYTES_MAX) },
      { metadata: metadata(SCOPE_METADATA_BYTES_MAX + 1) },
    ],
    [
      "metadata",
      { metadata: entries(SCOPE_METADATA_ENTRIES_MAX) },
      { metadata: entries(SCOPE_METADATA_ENTRIES_MAX + 1) },
    ],
    ["metadata.deep", { metadata: {} }, { metadata: { deep: { er: 1 } } }],
  ];

  it.each(cases)("%s is taken at its bound and refused one past it, by name", async (field, at, past) => {
    await using t = await startApi();
    expect((await acquire(t, at)).status).toBe(200);
    const before = t.fingerprint();
    const { status, json } = await acquire(t, past);
    expect([status, json?.["error"], json?.["field"]]).toEqual([400, "BAD_REQUEST", field]);
    expect(json?.["message"]).toContain(field);
    expect(t.fingerprint()).toBe(before);
  });

  it("a scope is bounded in bytes, also when percent-encoded", async () => {
    await using t = await startApi();
    expect((await acquire(t, {}, "x".repeat(SCOPE_BYTES_MAX))).status).toBe(200);
    expect((await acquire(t, {}, "ü".repeat(SCOPE_BYTES_MAX / 2))).status).toBe(200);
    for (const scope of ["x".repeat(SCOPE_BYTES_MAX + 1), "ü".repeat(SCOPE_BYTES_MAX / 2 + 1), "x".repeat(2_000)]) {
      const { status, json } = await acquire(t, {}, scope);
      expect([status, json?.["error"]]).toEqual([400, "BAD_REQUEST"]);
      expect(["scope", "path"]).toContain(json?.["field"]);
    }
    expect((await t.call("GET", "/v1/scopes/%zz")).json).toMatchObject({ error: "BAD_REQUEST", field: "path" });
  });

  it("a misspelt field is refused with a suggestion, a missing one by name, and all at once", async () => {
    await using t = await startApi();
    const { json } = await t.call("POST", "/v1/scopes/x/acquire", { sesion: "s", identity: 5, ttl_ms: 5_000 });
    expect(json?.["message"]).toMatch(/sesion is not known; did you mean session\?/);
    expect(json?.["message"]).toMatch(/session is missing/);
    expect(json?.["message"]).toMatch(/wait_ms is missing/);
    expect(json?.["message"]).toMatch(/identity must be a text/);
  });

  it("queries are strict too, and what is given twice is refused", async () => {
    await using t = await startApi();
    const asked = async (query: string) => (await t.call("GET", `/v1/scopes/x?${query}`)).json?.["field"];
    expect(await asked("wait_ms=60001")).toBe("wait_ms");
    expect(await asked("wait_ms=-1")).toBe("wait_ms");
    expect(await asked("wait_ms=1e3")).toBe("wait_ms");
    expect(await asked("wait_ms=1&wait_ms=2")).toBe("wait_ms");
    expect(await asked("held=maybe")).toBe("held");
    expect(await asked("consistency=strong")).toBe("consistency");
    expect(await asked("max_stale=5")).toBe("max_stale");
    expect(await asked("__proto__=5")).toBe("__proto__");
  });
});

describe("bodies", () => {
  const max = 64 * 1024;
  const bodyOf = (bytes: number): string => {
    const empty = JSON.stringify({ session: "s", epoch: 1 });
    return `${empty.slice(0, -1)}${" ".repeat(bytes - empty.length)}}`;
  };

  it("of exactly the limit are taken, one byte more is 413", async () => {
    await using t = await startApi();
    expect((await t.call("POST", "/v1/scopes/x/resign", bodyOf(max))).status).toBe(200);
    const { status, json } = await t.call("POST", "/v1/scopes/x/resign", bodyOf(max + 1));
    expect([status, json?.["error"]]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
  });

  it("sent in chunks without a length are bounded as well", async () => {
    await using t = await startApi();
    const head = `POST /v1/scopes/x/resign HTTP/1.1\r\nHost: localhost\r\nX-API-Key: client-key\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const chunk = `4000\r\n${" ".repeat(0x40_00)}\r\n`;
    const text = await exchange(t.port, (write) => {
      write(head);
      for (let i = 0; i < 5; i++) write(chunk);
    });
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(text).toContain('"PAYLOAD_TOO_LARGE"');
  });

  it.each([
    ["{", "it ends too early"],
    ['{"session": }', "a value was expected, at byte 12"],
    ['{"session": "s", epoch: 1}', "a key was expected, at byte 17"],
    ['{"__proto__": {"role": "operator"}}', "__proto__"],
    ['{"constructor": {"prototype": {}}}', "constructor.prototype"],
    ["[".repeat(30_000), "nesting deeper than 48, at byte 48"],
  ])("that are no JSON of ours are 400: %#", async (body, why) => {
    await using t = await startApi();
    const { status, json } = await t.call("POST", "/v1/scopes/x/resign", body);
    expect([status, json?.["error"], json?.["field"]]).toEqual([400, "BAD_REQUEST", "body"]);
    expect(json?.["message"]).toContain(why);
  });

  it.each([
    "[]",
    "5",
    "null",
    '"text"',
    `${"[".repeat(30_000)}${"]".repeat(30_000)}`,
    `{"session":${'{"a":'.repeat(9_000)}1${"}".repeat(9_000)}}`,
  ])("that are JSON and no such object, however deep, are 400: %#", async (body) => {
    await using t = await startApi();
    const { status, json } = await t.call("POST", "/v1/scopes/x/resign", body);
    expect([status, json?.["error"]]).toEqual([400, "BAD_REQUEST"]);
  });

  it.each([
    ['{"kind":"build","payload":1,"payload":2}', 28],
    [String.raw`{"kind":"build","queue":"a","\u0071ueue":"b"}`, 28],
    ['{"kind":"build","payload":[{"x":{"y":1,"y":1}}]}', 39],
    [Buffer.from('{"kind":"build","payload":"\xff"}', "latin1"), 27],
    [Buffer.from('{"kind":"build","payload":"\xc0\xaf"}', "latin1"), 27],
    [Buffer.from('{"kind":"build","payload":"\xed\xa0\x80"}', "latin1"), 27],
    ['\ufeff{"kind":"build"}', 0],
  ])("that two readers could understand differently are 400 with the place, and no job: %#", async (body, byte) => {
    await using t = await startApi();
    const headers = { "x-api-key": "submitter-key", "content-type": "application/json" };
    const { status, json } = await t.fetch("/v1/jobs", { method: "POST", headers, body });
    expect([status, json?.["error"], json?.["field"]]).toEqual([400, "BAD_REQUEST", "body"]);
    expect(json?.["message"]).toContain(`at byte ${byte}.`);
    expect((await t.call("GET", "/v1/stats")).json?.["submitted"]).toBe(0);
  });

  it("of another type are refused, and it says which is wanted", async () => {
    await using t = await startApi();
    const headers = { "x-api-key": "client-key", "content-type": "text/plain" };
    const { status, json } = await t.fetch("/v1/scopes/x/resign", { method: "POST", headers, body: "{}" });
    expect([status, json?.["field"]]).toEqual([400, "content-type"]);
    expect(json?.["message"]).toContain("application/json");
  });
});

describe("paths and methods", () => {
  it("an unknown path is 404, a wrong method 405 with Allow, OPTIONS 204", async () => {
    await using t = await startApi();
    for (const path of ["/", "/v1", "/v1/scopes/a/b/c", "/leader/", "/../etc/passwd", "//leader"]) {
      const { status, json } = await t.call("GET", path);
      expect([path, status, json?.["error"]]).toEqual([path, 404, "NOT_FOUND"]);
    }
    const wrong = await t.call("DELETE", "/v1/scopes/x/acquire");
    expect([wrong.status, wrong.json?.["error"], wrong.headers.get("allow")]).toEqual([
      405,
      "METHOD_NOT_ALLOWED",
      "POST, OPTIONS",
    ]);
    const options = await t.call("OPTIONS", "/v1/admin/snapshot");
    expect([options.status, options.text, options.headers.get("allow")]).toEqual([204, "", "POST, GET, HEAD, OPTIONS"]);
    expect(options.headers.get("access-control-allow-origin")).toBeNull();
  });

  it("HEAD is GET without a body", async () => {
    await using t = await startApi();
    const { status, text, headers } = await t.call("HEAD", "/v1/cluster");
    expect([status, text, headers.get("x-tenure-node")]).toEqual([200, "", "n1"]);
  });
});

describe("rates", () => {
  it("admin calls and campaigns are bounded for each caller, renewals are not", async () => {
    await using t = await startApi({ limits: { adminPerWindow: 3, acquirePerWindow: 2, rateWindowMs: 60_000 } });
    const statuses = async (count: number, one: () => Promise<{ status: number }>) => {
      const seen: number[] = [];
      for (let i = 0; i < count; i++) seen.push((await one()).status);
      return seen;
    };
    expect(await statuses(4, () => t.call("GET", "/v1/admin/audit"))).toEqual([200, 200, 200, 429]);
    const refused = await t.call("POST", "/v1/admin/transfer", {});
    expect([refused.status, refused.json?.["error"]]).toEqual([429, "RATE_LIMITED"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(1);
    expect(t.cluster.role).toBe("LEADER");
    expect(await statuses(4, () => t.call("POST", "/v1/admin/transfer", {}, null))).toEqual([401, 401, 401, 429]);
    expect(await statuses(3, () => acquire(t, {}))).toEqual([200, 200, 429]);
    const other = t.call("POST", "/v1/scopes/x/acquire", good, "client-key");
    expect((await other).status).toBe(200);
    expect(new Set(await statuses(9, () => t.call("POST", "/v1/scopes/x/renew", { session: "s", epoch: 1 })))).toEqual(
      new Set([409]),
    );
    expect(ROUTES.renew.limited).toBeNull();
  });
});

describe("sockets", () => {
  it("garbage bytes get an answer in our form, or none, and the server goes on", async () => {
    await using t = await startApi({ limits: { headersTimeoutMs: 200, requestTimeoutMs: 200 } });
    const garbage: (string | Uint8Array)[] = [
      "\r\n\r\n\r\n",
      "GET\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
      new Uint8Array(4_096).fill(255),
      "POST /leader HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
      "POST /leader HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
      "GET /leader HTTP/9.9\r\n\r\n",
    ];
    for (const one of garbage) {
      const text = await exchange(t.port, (write) => {
        write(one);
        write("\r\n\r\n");
      });
      // Bytes that are not even the beginning of a request are waited for until their time is over.
      const wanted = /^HTTP\/1\.1 (?:400 [\s\S]*\{"error":"BAD_REQUEST"|408 [\s\S]*\{"error":"REQUEST_TIMEOUT")/;
      if (text !== "") expect(text).toMatch(wanted);
    }
    expect(t.api.stats().badConnections).toBeGreaterThan(3);
    expect((await t.call("GET", "/livez")).status).toBe(200);
    expect(t.faults).toEqual([]);
  });

  it("a client that goes away in the middle of its body is no fault of ours", async () => {
    await using t = await startApi();
    const head =
      "POST /v1/scopes/x/resign HTTP/1.1\r\nHost: localhost\r\nX-API-Key: client-key\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{";
    for (const end of ["destroy", "resetAndDestroy"] as const) {
      const socket = connect(t.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write(head);
      await expect.poll(() => t.api.stats().inFlight).toBe(1);
      socket[end]();
      await expect.poll(() => t.api.stats().inFlight).toBe(0);
    }
    expect([t.faults, t.lines]).toEqual([[], []]);
  });

  it("headers beyond 16 KiB are refused; just below they are not", async () => {
    await using t = await startApi();
    const get = (bytes: number) =>
      exchange(t.port, (write) =>
        write(`GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: ${"x".repeat(bytes)}\r\n\r\n`),
      );
    expect(await get(16_000)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await get(16_500)).toMatch(/^HTTP\/1\.1 413 [\s\S]*PAYLOAD_TOO_LARGE/);
    const longUrl = await exchange(t.port, (write) =>
      write(`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`),
    );
    expect(longUrl).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("100 headers are heard, all of them; one more is refused, for what is behind it would not be", async () => {
    await using t = await startApi();
    const get = (headers: number) => {
      const more = Array.from({ length: headers - 3 }, (_, at) => `X-${at}: y\r\n`).join("");
      const head = `GET /v1/cluster HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${more}`;
      return exchange(t.port, (write) => write(`${head}X-API-Key: viewer-key\r\n\r\n`));
    };
    expect(await get(100)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await get(101)).toMatch(/^HTTP\/1\.1 413 [\s\S]*More than 100 headers/);
    expect(await get(300)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("a client that sends its request drop by drop, or none at all, is cut off in time", async () => {
    await using t = await startApi({ limits: { headersTimeoutMs: 300, requestTimeoutMs: 300 } });
    const headers = exchange(t.port, (write) => write("GET /livez HTTP/1.1\r\nHost: loc"));
    const body = exchange(t.port, (write) =>
      write(
        "POST /v1/scopes/x/resign HTTP/1.1\r\nHost: localhost\r\nX-API-Key: client-key\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
      ),
    );
    const nothing = exchange(t.port, () => undefined);
    for (const text of await Promise.all([headers, body, nothing]))
      expect(text).toMatch(/^HTTP\/1\.1 408 [\s\S]*REQUEST_TIMEOUT[\s\S]*in time/);
  });

  it("connections past the limit are closed unheard, and counted", async () => {
    await using t = await startApi({ limits: { connectionsMax: 2 } });
    const held = [connect(t.port, "127.0.0.1"), connect(t.port, "127.0.0.1")];
    await Promise.all(held.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
    expect(await exchange(t.port, (write) => write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"))).toBe("");
    await expect.poll(() => t.api.stats().droppedConnections).toBe(1);
    for (const socket of held) socket.destroy();
    await expect.poll(async () => (await t.call("GET", "/livez").catch(() => null))?.status).toBe(200);
  });

  it("requests past the limit are 503 with Retry-After, and those before it go on", async () => {
    await using t = await startApi({ limits: { requestsMax: 2 } });
    await acquire(t, {});
    const waiting = [1, 2].map((i) => acquire(t, { session: `w${i}`, wait_ms: 60_000 }));
    await expect.poll(() => t.scopes.waiting).toBe(2);
    const { status, json, headers } = await t.call("GET", "/v1/cluster");
    expect([status, json?.["error"], headers.get("retry-after")]).toEqual([503, "OVERLOADED", "1"]);
    await t.scopes.askResign("x", true);
    await t.scopes.askResign("x", true);
    await expect(Promise.any(waiting)).resolves.toMatchObject({ status: 200 });
  });
});
