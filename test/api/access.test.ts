// Who may call what: every route with every kind of caller, and what is written down about it. Routes for certificates: tc-access.test.ts.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allows, type ApiKey, type Role, type Route, ROUTES } from "../../src/contract/index.ts";
import { TenureError } from "../../src/core/kit/errors.ts";
import { KEYS, startApi, type TestApi } from "./test-api.ts";
import { leasing } from "./test-job-calls.ts";

/** The least role that each route needs, written down a second time on purpose: a route that is not here fails the test. */
const NEEDED: Readonly<Record<string, Role | "public">> = {
  "GET /livez": "public",
  "GET /readyz": "public",
  "GET /healthz": "viewer",
  "GET /metrics": "viewer",
  "GET /leader": "viewer",
  "GET /role": "viewer",
  "GET /v1/cluster": "viewer",
  "GET /v1/scopes": "viewer",
  "GET /v1/scopes/:scope": "viewer",
  "GET /v1/scopes/:scope/history": "viewer",
  "POST /v1/scopes/:scope/acquire": "client",
  "POST /v1/scopes/:scope/renew": "client",
  "POST /v1/scopes/:scope/resign": "client",
  "POST /v1/admin/transfer": "operator",
  "POST /v1/admin/nodes/:node_id/drain": "operator",
  "POST /v1/admin/resume": "operator",
  "POST /v1/admin/members": "operator",
  "POST /v1/admin/snapshot": "backup",
  "GET /v1/admin/snapshot": "backup",
  "POST /v1/admin/snapshot/stored": "backup",
  "GET /v1/admin/diagnostics": "operator",
  "GET /v1/admin/audit": "operator",
  "POST /v1/admin/scopes/:scope/resign": "operator",
  "GET /v1/values": "viewer",
  "GET /v1/values/:name": "viewer",
  "PUT /v1/values/:name": "client",
  "DELETE /v1/values/:name": "client",
  "GET /v1/watch/values": "viewer",
  "GET /openapi.json": "viewer",
  "GET /v1/jobs": "viewer",
  "GET /v1/jobs/:id": "viewer",
  "GET /v1/jobs/:id/logs": "viewer",
  "GET /v1/agents": "viewer",
  "GET /v1/queues": "viewer",
  "GET /v1/schedules": "viewer",
  "GET /v1/stats": "viewer",
  "GET /v1/events": "viewer",
  "GET /v1/events/proof": "viewer",
  "GET /api/events/since/:sequence": "viewer",
  "GET /api/events/verify": "viewer",
  "GET /api/controllers": "viewer",
  "POST /api/controllers/register": "controller",
  "POST /api/controllers/:id/heartbeat": "controller",
  "GET /v1/mesh/checkpoint": "viewer",
  "GET /v1/mesh/heads": "viewer",
  "GET /v1/mesh/pages": "viewer",
  "GET /v1/mesh/consistency": "viewer",
  "GET /v1/mesh/sites": "viewer",
  "POST /v1/mesh/stream": "controller",
  "POST /api/events/broadcast": "controller",
  "POST /v1/mesh/sites/:id/approve": "operator",
  "POST /v1/mesh/resume": "operator",
  "POST /v1/mesh/leave": "operator",
  "POST /v1/mesh/join": "operator",
  "GET /v1/mesh/evidence": "viewer",
  "POST /v1/mesh/sites/:id/evict": "operator",
  "GET /v1/mesh/jobs": "viewer",
  "GET /v1/mesh/agents": "viewer",
  "GET /v1/mesh/state": "viewer",
  "POST /v1/mesh/replay": "operator",
  "GET /v1/mesh/events": "viewer",
  "POST /v1/jobs": "submitter",
  "POST /v1/jobs/:id/cancel": "submitter",
  "POST /v1/jobs/:id/retry": "submitter",
  "PUT /v1/schedules/:name": "submitter",
  "DELETE /v1/schedules/:name": "submitter",
  "POST /v1/leases": "agent",
  "POST /v1/results": "agent",
  "DELETE /v1/agents/:name": "operator",
  "POST /v1/queues/:queue/pause": "operator",
  "POST /v1/queues/:queue/resume": "operator",
  "POST /v1/agents/:name/drain": "operator",
  "POST /v1/admin/drain": "operator",
  "POST /v1/keys": "operator",
  "GET /v1/keys": "operator",
  "DELETE /v1/keys/:name": "operator",
  "POST /v1/certificates/revoked": "operator",
  "GET /v1/certificates/revoked": "operator",
  "GET /v1/islands": "viewer",
};

/** Reads that another site may do too. */
const FOR_SITES = [
  "GET /api/controllers",
  "GET /v1/mesh/checkpoint",
  "GET /v1/mesh/heads",
  "GET /v1/mesh/pages",
  "GET /v1/mesh/consistency",
  "GET /v1/mesh/sites",
  "GET /v1/mesh/evidence",
];

const CALLERS: readonly { name: string; key: string | null; role: Role | null }[] = [
  { name: "nobody", key: null, role: null },
  { name: "a wrong key", key: "no such key", role: null },
  { name: "an empty key", key: "", role: null },
  { name: "a viewer", key: "viewer-key", role: "viewer" },
  { name: "a submitter", key: "submitter-key", role: "submitter" },
  { name: "an agent", key: "agent-key", role: "agent" },
  { name: "a client", key: "client-key", role: "client" },
  { name: "a backup", key: "backup-key", role: "backup" },
  { name: "another site", key: "controller-key", role: "controller" },
  { name: "an operator", key: "operator-key", role: "operator" },
];

let t: TestApi;
beforeAll(async () => {
  t = await startApi({ limits: { adminPerWindow: 10_000, keyRoundEveryMs: 0 } });
});
afterAll(async () => t[Symbol.asyncDispose]());

it("the router has exactly the routes of the table, each with its role, and HEAD where there is GET", () => {
  const known = t.api
    .routes()
    .filter(({ identities }) => identities === null)
    .map(({ method, path, role }) => [`${method} ${path}`, role]);
  const heads = Object.entries(NEEDED)
    .filter(([route]) => route.startsWith("GET "))
    .map(([route, role]) => [route.replace("GET", "HEAD"), role]);
  expect(new Set(known.map(String))).toEqual(new Set([...Object.entries(NEEDED), ...heads].map(String)));
  expect(known).toHaveLength(Object.keys(NEEDED).length + heads.length);
});

describe.each(Object.entries(NEEDED))("%s", (route, needed) => {
  const [method = "", path = ""] = route.split(" ");
  it.each(CALLERS)("$name", async ({ key, role }) => {
    const before = t.fingerprint();
    // The body is wrong on purpose: whoever is let in is refused for it, and nothing changes.
    const isWrite = method !== "GET";
    const body = isWrite && method !== "DELETE" ? { nonsense: 1 } : undefined;
    // A stream that is let in would not end by itself: its wrong query ends it.
    const query = method === "DELETE" || ["/v1/events", "/v1/watch/values"].includes(path) ? "?nonsense=1" : "";
    const { status, json } = await t.call(method, path.replace(/:\w+/, "1") + query, body, key);
    const isForSites = FOR_SITES.includes(route) && role === "controller";
    const isIn = needed === "public" || (role !== null && (isForSites || allows(role, needed)));
    if (isIn) expect([401, 403]).not.toContain(status);
    else
      expect([status, json?.["error"]]).toEqual(role === null ? [401, "UNAUTHENTICATED"] : [403, "PERMISSION_DENIED"]);
    if (isIn && isWrite) expect([status, json?.["field"]]).toEqual([400, "nonsense"]);
    expect(t.fingerprint()).toBe(before);
  });
});

describe("anonymous callers", () => {
  const open = async (keys: readonly ApiKey[], isLoopback = true, headers: Record<string, string> = {}) => {
    await using api = await startApi({ keys, isLoopback });
    const results: Record<string, number> = {};
    for (const path of ["/livez", "/v1/cluster", "/v1/admin/audit"])
      results[path] = (await api.fetch(path, { headers })).status;
    const { status } = await api.fetch("/v1/scopes/x/resign", {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ session: "s", epoch: 1 }),
    });
    return { ...results, resign: status };
  };
  const keysOf = (...roles: Role[]) => KEYS.filter(({ role }) => roles.includes(role));

  it("may view and lead on loopback where no key says otherwise, and never steer", async () => {
    expect(await open([])).toEqual({ "/livez": 200, "/v1/cluster": 200, "/v1/admin/audit": 401, resign: 200 });
    expect(await open(keysOf("operator"))).toEqual({
      "/livez": 200,
      "/v1/cluster": 200,
      "/v1/admin/audit": 401,
      resign: 200,
    });
  });

  it("need a key for a role once somebody has one for it, or for a weaker one", async () => {
    expect(await open(keysOf("client"))).toMatchObject({ "/v1/cluster": 200, resign: 401 });
    expect(await open(keysOf("viewer"))).toMatchObject({ "/v1/cluster": 401, resign: 401 });
  });

  it("pass for another site only where there is no key at all", async () => {
    const heartbeat = async (keys: readonly ApiKey[]): Promise<number> => {
      await using api = await startApi({ keys });
      return (await api.call("POST", "/api/controllers/b/heartbeat", {}, null)).status;
    };
    expect(await heartbeat([])).toBe(404);
    for (const role of ["operator", "viewer", "controller"] as const) expect(await heartbeat(keysOf(role))).toBe(401);
  });

  it("have no business beyond loopback, but for the probes", async () => {
    expect(await open([], false)).toEqual({ "/livez": 200, "/v1/cluster": 401, "/v1/admin/audit": 401, resign: 401 });
  });

  it("are refused when the Host header shows that a name was pointed at 127.0.0.1", async () => {
    await using api = await startApi({ keys: [] });
    const { request } = await import("node:http");
    const ask = (host: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const sent = request({ port: api.port, path: "/v1/cluster", headers: { host } }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on("error", reject).end();
      });
    expect(await Promise.all([`127.0.0.1:${api.port}`, "localhost", "[::1]:80"].map(ask))).toEqual([200, 200, 200]);
    expect(await Promise.all(["evil.example", "evil.example:80", "127.0.0.1.evil.example"].map(ask))).toEqual([
      401, 401, 401,
    ]);
  });

  it("a wrong key is refused even where none is needed", async () => {
    await using api = await startApi({ keys: [] });
    expect((await api.call("GET", "/v1/cluster", undefined, "typo")).status).toBe(401);
  });
});

describe("the audit", () => {
  it("holds every admin call, allowed or refused: who, what, outcome, how long", async () => {
    await using api = await startApi();
    await api.call("POST", "/v1/admin/transfer", { target: "n2", force: true });
    api.cluster.lead();
    await api.call("POST", "/v1/admin/members", { op: "remove", node_id: "nope" });
    await api.call("POST", "/v1/admin/scopes/a%20b/resign", { force: true }, "client-key");
    await api.call("POST", "/v1/admin/snapshot", undefined, null);
    await api.call("POST", "/v1/admin/transfer", "{nonsense", "operator-key");
    const { json } = await api.call("GET", "/v1/admin/audit");
    const records = json?.["records"] as Record<string, unknown>[];
    expect(
      records.map((one) => [one["who"], one["operation"], one["target"], one["forced"], one["outcome"], one["status"]]),
    ).toEqual([
      ["the operator", "transfer", null, false, "BAD_REQUEST", 400],
      ["anonymous", "saveSnapshot", null, false, "UNAUTHENTICATED", 401],
      ["the client", "askResign", null, false, "PERMISSION_DENIED", 403],
      ["the operator", "members", "remove nope", false, "MEMBER_UNKNOWN", 404],
      ["the operator", "transfer", "n2", true, "OK", 200],
    ]);
    expect(records[0]).toMatchObject({ address: "127.0.0.1", node_id: "n1", how: "key", role: "operator" });
    for (const one of records) expect(one["duration_ms"]).toBeGreaterThanOrEqual(0);
    expect(api.audited.map((line) => `${String(line["operation"])} ${String(line["phase"])}`)).toEqual([
      "transfer begun",
      "transfer ended",
      "members begun",
      "members ended",
      "askResign ended",
      "saveSnapshot ended",
      "transfer ended",
      "audit ended",
    ]);
    expect(api.audited.every((line) => line["audit"] === true)).toBe(true);
    expect(JSON.stringify(api.audited)).not.toContain("-key");
  });

  it("says that a change has begun before it is done, and where its caller was, also when that has hung up", async () => {
    await using api = await startApi();
    let finish: (value: unknown) => void = () => undefined;
    Object.assign(api.cluster, { changeMember: () => new Promise((resolve) => (finish = resolve)) });
    const gone = new AbortController();
    const body = JSON.stringify({ op: "remove", node_id: "n2" });
    const headers = { "x-api-key": "operator-key", "content-type": "application/json" };
    const { signal } = gone;
    const sent = fetch(`${api.url}/v1/admin/members`, { method: "POST", headers, body, signal });
    await expect.poll(() => api.audited).toHaveLength(1);
    const known = { audit: true, who: "the operator", operation: "members", target: "remove n2", address: "127.0.0.1" };
    expect(api.audited[0]).toMatchObject({ phase: "begun", ...known });
    gone.abort();
    await expect(sent).rejects.toThrow();
    await expect.poll(() => api.api.stats().inFlight).toBe(0);
    finish({ op: "remove", nodeId: "n2", message: "done", members: [] });
    await expect.poll(() => api.audited).toHaveLength(2);
    expect(api.audited[1]).toMatchObject({ phase: "ended", outcome: "OK", ...known });
  });

  it("keeps the last 256 in memory", async () => {
    await using api = await startApi({ limits: { adminPerWindow: 1_000 } });
    for (let i = 0; i < 260; i++) await api.call("GET", "/v1/admin/audit");
    const { json } = await api.call("GET", "/v1/admin/audit");
    expect(json?.["records"]).toHaveLength(256);
    expect(api.audited).toHaveLength(261);
  });

  it("is not filled by an agent that tries the names of others without end: so many lines, and a count of the rest", async () => {
    await using api = await startApi({ limits: { auditRefusalsPerCaller: 20 } });
    api.cluster.lead();
    Object.assign(api.jobs, {
      lease: () => Promise.reject(new TenureError("PERMISSION_DENIED", "the name belongs to key:builders")),
    });
    const names = Array.from({ length: 220 }, (_, at) => `agent-${at}`);
    const take = async (name: string): Promise<number> => {
      const body = { ...leasing, agent: { ...leasing.agent, name } };
      return (await api.call("POST", "/v1/leases", body, "agent-key")).status;
    };
    for (let at = 0; at < names.length; at += 50) {
      const statuses = await Promise.all(names.slice(at, at + 50).map(take));
      expect(new Set(statuses)).toEqual(new Set([403]));
    }
    await api.call("GET", "/v1/admin/audit");
    expect(api.audited.map(({ operation }) => operation)).toEqual([
      ...Array.from({ length: 20 }, () => "takeOverAgent"),
      "audit",
    ]);
    await api.api.stop(0);
    expect(api.audited.at(-1)).toMatchObject({ phase: "suppressed", who: "key the agent", suppressed: 200 });
  });

  it("is not filled by strangers whose calls are refused for their rate", async () => {
    await using api = await startApi({ limits: { adminPerWindow: 3 } });
    for (let tried = 0; tried < 40; tried++) await api.call("POST", "/v1/admin/snapshot", undefined, null);
    expect(api.audited.map(({ outcome }) => outcome)).toEqual(["UNAUTHENTICATED", "RATE_LIMITED"]);
    await api.api.stop(0);
    expect(api.audited.at(-1)).toMatchObject({ phase: "suppressed", who: "address 127.0.0.1", suppressed: 38 });
  });

  it("says nothing of calls that steer nothing", async () => {
    await using api = await startApi();
    await api.call("GET", "/v1/cluster");
    expect(api.audited).toEqual([]);
  });
});

it("every route of the contract is in the table above", () => {
  const routes = Object.values(ROUTES as Record<string, Route>)
    .filter(({ identities }) => identities === undefined)
    .map(({ method, path }) => `${method} ${path}`);
  expect(Object.keys(NEEDED).sort()).toEqual(routes.sort());
});
