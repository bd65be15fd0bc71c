// Each route does what the contract says, and its answers fit the contract's schemas.

import { request } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import { startApi, type TestApi } from "./test-api.ts";

let t: TestApi;
beforeAll(async () => {
  t = await startApi();
});
afterAll(async () => t[Symbol.asyncDispose]());
beforeEach(() => {
  t.cluster.lead();
  Object.assign(t.cluster, {
    term: 7,
    isReady: true,
    notReadyReason: null,
    alerts: [],
    disk: { state: "ok", freeBytes: 5 },
  });
});

const answerShapes = new Map(
  Object.entries(ROUTES as Record<string, Route>).map(([id, { answer }]) => [
    id,
    answer === null ? null : shape(answer),
  ]),
);

function fits(id: RouteId, json: unknown): void {
  expect(answerShapes.get(id)?.check(json), `${id}: ${JSON.stringify(json)}`).toEqual({ ok: true, value: json });
}

const session = "s-1";
const campaign = { session, identity: "payer-1", metadata: { Zone_A: "eu" }, ttl_ms: 5_000, wait_ms: 0 };

describe("reads", () => {
  it("GET /leader names the leader, where it is, and who says so", async () => {
    const { status, json, headers } = await t.call("GET", "/leader");
    expect(status).toBe(200);
    fits("leader", json);
    expect(json).toEqual({
      leader_id: "n1",
      leader_address: "n1:7400",
      leader_url: "https://n1:7401",
      term: 7,
      node_id: "n1",
    });
    expect(headers.get("x-tenure-cluster")).toBe("c-test");
    expect(headers.get("x-tenure-node")).toBe("n1");
    expect(headers.get("x-tenure-role")).toBe("LEADER");
    expect(headers.get("x-tenure-leader-id")).toBe("n1");
    expect(headers.get("x-tenure-leader-epoch")).toBe("7");
    expect(headers.get("x-tenure-applied")).toMatch(/^\d+$/);
    expect(headers.get("x-tenure-staleness-ms")).toBe("0");
  });

  it("GET /leader without a leader is 503 with 4002 and a time to retry", async () => {
    t.cluster.follow(null);
    const { status, json, headers } = await t.call("GET", "/leader");
    expect([status, json?.["error"], json?.["code"]]).toEqual([503, "ERR_NO_LEADER", 4002]);
    expect(headers.get("retry-after")).toBe("1");
    expect(json).toMatchObject({ node_id: "n1", term: 7 });
  });

  it("GET /role says STANDBY on a standby, with nulls where nobody leads", async () => {
    t.cluster.follow(null);
    const { json } = await t.call("GET", "/role");
    fits("role", json);
    expect(json).toEqual({ node_id: "n1", role: "STANDBY", leader_id: null, leader_url: null, leader_epoch: null });
  });

  it("GET /v1/cluster is the whole view in snake_case", async () => {
    const { status, json } = await t.call("GET", "/v1/cluster");
    expect(status).toBe(200);
    fits("cluster", json);
    expect(json).toMatchObject({ is_joint: false, first_index: 1, elections: [{ started_at_ms: 12.5 }] });
  });

  it("max_stale_ms refuses what is older, and what has no known age", async () => {
    t.cluster.follow("n2");
    expect((await t.call("GET", "/v1/cluster?max_stale_ms=12")).status).toBe(200);
    const { status, json, headers } = await t.call("GET", "/v1/cluster?max_stale_ms=11");
    expect([status, json?.["error"], json?.["staleness_ms"]]).toEqual([503, "TOO_STALE", 12]);
    expect(headers.get("retry-after")).toBe("1");
    expect(headers.get("x-tenure-leader-id")).toBe("n2");
    t.cluster.stalenessMs = null;
    expect((await t.call("GET", "/v1/scopes?max_stale_ms=86400000")).json?.["error"]).toBe("TOO_STALE");
    expect((await t.call("GET", "/v1/scopes")).status).toBe(200);
  });

  it("a linearizable read needs a leader that confirms it", async () => {
    t.cluster.follow("n2");
    expect((await t.call("GET", "/v1/scopes?consistency=linearizable")).status).toBe(200);
    t.cluster.isCutOff = true;
    const { status, json } = await t.call("GET", "/v1/scopes?consistency=linearizable");
    expect([status, json?.["error"], json?.["code"]]).toEqual([503, "ERR_NO_LEADER", 4002]);
    expect((await t.call("GET", "/v1/scopes?consistency=local")).status).toBe(200);
  });

  it("a follower without a leader still serves reads", async () => {
    t.cluster.follow(null);
    const { status, headers } = await t.call("GET", "/v1/scopes");
    expect(status).toBe(200);
    expect(headers.get("x-tenure-leader-id")).toBeNull();
    expect(headers.get("x-tenure-staleness-ms")).toBe("5000");
  });
});

describe("probes", () => {
  it("trap 47: /readyz does not depend on who leads, or on anybody leading", async () => {
    for (const leader of ["n2", null]) {
      t.cluster.follow(leader);
      const { status, json } = await t.call("GET", "/readyz", undefined, null);
      expect([status, json]).toEqual([200, { status: "ok", reason: null }]);
      fits("readyz", json);
    }
  });

  it("/readyz fails before the node is ready, and when its disk stands still, with the reason", async () => {
    Object.assign(t.cluster, { isReady: false, notReadyReason: "recovering: 3 of 9 segments" });
    const early = await t.call("GET", "/readyz", undefined, null);
    expect([early.status, early.json?.["reason"]]).toEqual([503, "recovering: 3 of 9 segments"]);
    fits("readyz", early.json);
    Object.assign(t.cluster, { isReady: true, notReadyReason: null, disk: { state: "stalled", freeBytes: 5 } });
    expect((await t.call("GET", "/readyz", undefined, null)).json?.["reason"]).toMatch(/disk/);
    t.cluster.disk = { state: "full", freeBytes: 0 };
    expect((await t.call("GET", "/readyz", undefined, null)).status).toBe(200);
  });

  it("/healthz is degraded for a warning, and 503 only for something critical", async () => {
    const health = async () => {
      const { status, json } = await t.call("GET", "/healthz", undefined, "viewer-key");
      fits("healthz", json);
      return [status, json?.["status"]];
    };
    expect(await health()).toEqual([200, "ok"]);
    const alert = { message: "n3 is silent", sinceWallMs: 5, nodeId: "n3" };
    t.cluster.alerts = [{ ...alert, name: "follower_unresponsive", severity: "warning" }];
    expect(await health()).toEqual([200, "degraded"]);
    t.cluster.alerts.push({ ...alert, name: "multiple_leaders", severity: "critical" });
    expect(await health()).toEqual([503, "critical"]);
    expect((await t.call("GET", "/livez", undefined, null)).json).toEqual({ status: "ok" });
  });

  it("/metrics passes on what the registry shows", async () => {
    const { headers, text } = await t.call("GET", "/metrics");
    expect([headers.get("content-type"), text]).toEqual(["text/plain; version=0.0.4; charset=utf-8", "up 1\n"]);
  });
});

describe("scopes", () => {
  it("are acquired, renewed and resigned, and every answer fits", async () => {
    const got = await t.call("POST", "/v1/scopes/pay%2Fer/acquire", campaign, "client-key");
    fits("acquire", got.json);
    expect(got.json).toMatchObject({ granted: true, ttl_ms: 5_000 });
    const epoch = got.json?.["epoch"];
    const other = await t.call("POST", "/v1/scopes/pay%2Fer/acquire", { ...campaign, session: "s-2" }, "client-key");
    fits("acquire", other.json);
    expect(other.json).toEqual({ granted: false, holder: { epoch, identity: "payer-1", metadata: { Zone_A: "eu" } } });
    const renewed = await t.call("POST", "/v1/scopes/pay%2Fer/renew", { session, epoch }, "client-key");
    fits("renew", renewed.json);
    const shown = await t.call("GET", "/v1/scopes/pay%2Fer", undefined, "viewer-key");
    fits("scope", shown.json);
    expect(shown.json).toMatchObject({ scope: "pay/er", epoch, holder: { metadata: { Zone_A: "eu" } } });
    fits("scopes", (await t.call("GET", "/v1/scopes")).json);
    expect((await t.call("POST", "/v1/scopes/pay%2Fer/resign", { session, epoch }, "client-key")).json).toEqual({});
    const history = await t.call("GET", "/v1/scopes/pay%2Fer/history");
    fits("history", history.json);
    expect(history.json).toMatchObject({
      transitions: [{ reason: "resigned", held_ms: 1_000 }, { reason: "acquired" }],
    });
  });

  it("are listed page by page, by name, and the last page says that it is the last", async () => {
    await using many = await startApi();
    const names = Array.from({ length: 600 }, (_, at) => `s&${at}`).toSorted();
    for (const scope of names) {
      const request = { scope, session, identity: "i", metadata: {}, ttlMs: 5_000, waitMs: 0 };
      await many.scopes.acquire(request, new AbortController().signal);
    }
    const found: string[][] = [];
    for (let query = ""; found.length < 9;) {
      const { json } = await many.call("GET", `/v1/scopes${query}`, undefined, "viewer-key");
      fits("scopes", json);
      const { scopes, next } = json as { scopes: { scope: string }[]; next: string | null };
      found.push(scopes.map(({ scope }) => scope));
      if (next === null) break;
      query = `?after=${encodeURIComponent(next)}`;
    }
    expect(found.map(({ length }) => length)).toEqual([256, 256, 88]);
    expect(found.flat()).toEqual(names);
    const two = await many.call("GET", `/v1/scopes?limit=2&after=${encodeURIComponent(names[597]!)}`);
    expect(two.json).toMatchObject({ scopes: [{ scope: names[598] }, { scope: names[599] }], next: null });
    for (const wrong of ["limit=0", "limit=257", "limit=x", "after="])
      expect((await many.call("GET", `/v1/scopes?${wrong}`)).json?.["error"], wrong).toBe("BAD_REQUEST");
  });

  it("are never called . or .., which no client can put into a path", async () => {
    for (const name of ["%2e", "%2E%2e"]) {
      const path = `/v1/scopes/${name}/acquire`;
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const headers = { "x-api-key": "client-key", "content-type": "application/json" };
        const sent = request({ port: t.port, host: "127.0.0.1", method: "POST", path, headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on("error", reject).end(JSON.stringify(campaign));
      });
      expect(status, name).toBe(400);
    }
  });

  it("a renewal of a hold that is over is 409 STALE_EPOCH", async () => {
    const { status, json } = await t.call("POST", "/v1/scopes/x/renew", { session, epoch: 3 });
    expect([status, json?.["error"]]).toEqual([409, "STALE_EPOCH"]);
  });

  it("nobody ever led: 404", async () => {
    for (const path of ["/v1/scopes/never", "/v1/scopes/never/history", "/v1/scopes/never?wait_ms=1"]) {
      const { status, json } = await t.call("GET", path);
      expect([status, json?.["error"]]).toEqual([404, "NOT_FOUND"]);
    }
  });

  it("a watch waits until the scope differs, then answers at once", async () => {
    const watch = t.call("GET", "/v1/scopes/watched?wait_ms=60000&epoch=0&held=false");
    await expect.poll(() => t.scopes.waiting).toBe(1);
    const { json } = await t.call("POST", "/v1/scopes/watched/acquire", campaign);
    expect((await watch).json).toMatchObject({ epoch: json?.["epoch"], holder: { identity: "payer-1" } });
    expect(t.scopes.waiting).toBe(0);
    const later = await t.call("GET", `/v1/scopes/watched?wait_ms=1&epoch=${String(json?.["epoch"])}&held=true`);
    expect(later.json).toMatchObject({ epoch: json?.["epoch"] });
  });

  it("an operator asks a holder to go, or takes the scope away", async () => {
    const { json } = await t.call("POST", "/v1/scopes/led/acquire", campaign);
    const epoch = json?.["epoch"];
    const asked = await t.call("POST", "/v1/admin/scopes/led/resign", {});
    fits("askResign", asked.json);
    expect(asked.json).toEqual({ epoch });
    expect((await t.call("POST", "/v1/scopes/led/renew", { session, epoch })).json).toMatchObject({
      resign_requested: true,
    });
    await t.call("POST", "/v1/admin/scopes/led/resign", { force: true });
    expect((await t.call("POST", "/v1/scopes/led/renew", { session, epoch })).json?.["error"]).toBe("STALE_EPOCH");
    expect((await t.call("POST", "/v1/admin/scopes/led/resign")).json).toEqual({ epoch: null });
  });
});

describe("admin", () => {
  it("transfers, and names who led and who leads", async () => {
    const { json } = await t.call("POST", "/v1/admin/transfer", { target: "n3", force: true });
    fits("transfer", json);
    expect(json).toMatchObject({ success: true, old_leader_id: "n1", new_leader_id: "n3" });
  });

  it("refuses a transfer to itself, to a learner and to a stranger", async () => {
    for (const target of ["n1", "n4", "nobody"]) {
      const { status, json } = await t.call("POST", "/v1/admin/transfer", { target });
      expect([status, json?.["error"]]).toEqual([400, "TRANSFER_TARGET_INVALID"]);
    }
  });

  it("a transfer that came to nothing is 409 with 4003, and keeps its fields", async () => {
    const result = { success: false, message: "n2 did not answer", oldLeaderId: "n1", newLeaderId: null };
    await using other = await startApi({ cluster: Object.assign(t.cluster, { transfer: async () => result }) });
    const { status, json } = await other.call("POST", "/v1/admin/transfer", {});
    expect(status).toBe(409);
    expect(json).toEqual({
      error: "ERR_LEADER_TRANSFER_FAILED",
      code: 4003,
      message: "n2 did not answer",
      success: false,
      old_leader_id: "n1",
      new_leader_id: null,
    });
    delete (t.cluster as { transfer?: unknown }).transfer;
  });

  it("changes members", async () => {
    const { json } = await t.call("POST", "/v1/admin/members", { op: "add", node_id: "n9", promote: false });
    fits("members", json);
    expect((await t.call("POST", "/v1/admin/members", { op: "add", node_id: "n9" })).json?.["error"]).toBe(
      "MEMBER_EXISTS",
    );
    expect((await t.call("POST", "/v1/admin/members", { op: "remove", node_id: "n9" })).status).toBe(200);
    const gone = await t.call("POST", "/v1/admin/members", { op: "remove", node_id: "n9" });
    expect([gone.status, gone.json?.["error"]]).toEqual([404, "MEMBER_UNKNOWN"]);
    const odd = await t.call("POST", "/v1/admin/members", { op: "remove", node_id: "n3", promote: true });
    expect([odd.status, odd.json?.["field"]]).toEqual([400, "promote"]);
  });

  it("resumes a cluster that was restored paused, as often as it is asked", async () => {
    t.cluster.isPaused = true;
    t.cluster.ancestors = ["c-2", "c-1"];
    const shown = await t.call("GET", "/v1/cluster");
    expect(shown.json).toMatchObject({ is_paused: true, ancestors: ["c-2", "c-1"] });
    expect([shown.headers.get("x-tenure-ancestors"), shown.headers.get("x-tenure-paused")]).toEqual([
      "c-2,c-1",
      "true",
    ]);
    for (let time = 0; time < 2; time++) {
      const { json } = await t.call("POST", "/v1/admin/resume", {});
      fits("resume", json);
      expect(json).toMatchObject({ is_paused: false });
    }
  });

  it("saves a snapshot and hands it out", async () => {
    expect((await t.call("GET", "/v1/admin/snapshot")).status).toBe(404);
    const saved = await t.call("POST", "/v1/admin/snapshot");
    fits("saveSnapshot", saved.json);
    const file = await t.call("GET", "/v1/admin/snapshot");
    expect([file.status, file.text]).toEqual([200, "\u0001\u0002\u0003"]);
    expect(file.headers.get("content-type")).toBe("application/octet-stream");
    expect(file.headers.get("x-tenure-snapshot-index")).toBe(String(saved.json?.["index"]));
    expect((await t.call("GET", "/v1/admin/snapshot")).status).toBe(200);
  });
});

describe("mutations where nobody may take them", () => {
  const writes = [
    ["/v1/scopes/x/acquire", campaign],
    ["/v1/scopes/x/renew", { session, epoch: 1 }],
    ["/v1/scopes/x/resign", { session, epoch: 1 }],
    ["/v1/admin/transfer", {}],
    ["/v1/admin/resume", {}],
    ["/v1/admin/members", { op: "remove", node_id: "n3" }],
    ["/v1/admin/scopes/x/resign", {}],
    ["/api/controllers/register", { id: "x", url: "http://x:1", name: "x" }],
    ["/api/controllers/x/heartbeat", {}],
    ["/v1/mesh/stream", { controller: "x", heads: [] }],
    ["/api/events/broadcast", { controller: "x", heads: [] }],
    ["/v1/mesh/sites/x/approve", {}],
    ["/v1/mesh/sites/x/evict", {}],
    ["/v1/mesh/resume", {}],
    ["/v1/mesh/leave", {}],
    ["/v1/mesh/join", {}],
    ["/v1/values/x", { value: 1 }, "PUT"],
    ["/v1/values/x", undefined, "DELETE"],
  ] as const;

  it("the list above is every write of the contract, but for those of jobs and of transactions, which job-leadership.test.ts and txn-routes.test.ts have", () => {
    const paths = Object.values(ROUTES as Record<string, Route>).filter(
      ({ kind, isFenced, identities }) => kind === "write" && isFenced !== true && identities === undefined,
    );
    expect(writes.map(([path]) => path).sort()).toEqual(
      paths.map(({ path }) => path.replace(/:scope|:id|:name/, "x")).sort(),
    );
  });

  it.each(writes)(
    "%s on a follower is 409 with exactly the specified fields",
    async (path, body, method: string = "POST") => {
      t.cluster.follow("n2");
      const { status, json } = await t.call(method, path, body);
      expect(status).toBe(409);
      expect(json).toEqual({
        error: "NOT_LEADER",
        message: expect.stringContaining("n2"),
        leader_id: "n2",
        leader_url: "https://n2:7401",
        leader_epoch: 7,
        node_id: "n1",
        role: "STANDBY",
      });
    },
  );

  it.each(writes)(
    "%s without a leader is 503 ERR_NO_LEADER with Retry-After",
    async (path, body, method: string = "POST") => {
      t.cluster.follow(null);
      const { status, json, headers } = await t.call(method, path, body);
      expect([status, json?.["error"], json?.["code"]]).toEqual([503, "ERR_NO_LEADER", 4002]);
      expect(headers.get("retry-after")).toBe("1");
    },
  );

  it("D17: a leader that hands over is DRAINING, and names nobody", async () => {
    t.cluster.role = "DRAINING";
    const { status, json, headers } = await t.call("POST", "/v1/scopes/x/acquire", campaign);
    expect(status).toBe(409);
    expect(json).toMatchObject({
      error: "NOT_LEADER",
      role: "DRAINING",
      leader_id: null,
      leader_url: null,
      leader_epoch: null,
    });
    expect(headers.get("retry-after")).toBe("1");
  });
});

describe("trap 66: what nobody foresaw", () => {
  it("is OUTCOME_UNKNOWN for a write and INTERNAL for a read, without a word of the cause", async () => {
    const boom = (): never => {
      throw new Error("secret detail");
    };
    await using other = await startApi();
    Object.assign(other.scopes, { renew: boom, list: boom });
    const write = await other.call("POST", "/v1/scopes/x/renew", { session, epoch: 1 });
    expect([write.status, write.json?.["error"]]).toEqual([503, "OUTCOME_UNKNOWN"]);
    const read = await other.call("GET", "/v1/scopes");
    expect([read.status, read.json?.["error"]]).toEqual([500, "INTERNAL"]);
    expect(write.text + read.text).not.toMatch(/secret|Error:|\.ts/);
    expect(other.faults).toHaveLength(2);
    expect(other.lines.map(({ fields }) => fields["stack"])).toEqual([
      expect.stringContaining("secret detail"),
      expect.stringContaining("secret detail"),
    ]);
  });
});
