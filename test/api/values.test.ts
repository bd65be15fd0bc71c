// Values over HTTP: what is read and written under which conditions, what is refused and how, and the stream of changes.

import { request } from "node:https";
import { describe, expect, it } from "vitest";
import { type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import { VALUE_BODY_BYTES_MAX } from "../../src/contract/limits.ts";
import {
  JSON_DEPTH_MAX,
  VALUE_BYTES_MAX,
  VALUE_NAME_BYTES_MAX,
  VALUES_PER_PAGE_MAX,
} from "../../src/core/kit/limits.ts";
import { IDENTITY_KINDS, parseSpiffeId } from "../../src/core/kit/spiffe.ts";
import { createCa, issue } from "../../src/drivers/pki/index.ts";
import { noValues } from "../../src/controller/values/site-values.ts";
import type { Json } from "../../src/core/kit/json.ts";
import { sha256, startApi, type TestApi } from "./test-api.ts";
import { openStream } from "./test-stream.ts";

function fits(id: RouteId, json: unknown): void {
  const { answer } = ROUTES[id] as Route;
  expect(shape(answer!).check(json), `${id}: ${JSON.stringify(json)}`).toEqual({ ok: true, value: json });
}

const put = (t: TestApi, name: string, value: Json = { at: 1 }) =>
  t.values.put({ name, value, ifVersion: null, fence: null });

async function held(t: TestApi, scope: string): Promise<number> {
  const campaign = { scope, session: "s-1", identity: "i", metadata: {}, ttlMs: 5_000, waitMs: 0 };
  const answer = await t.scopes.acquire(campaign, new AbortController().signal);
  return answer.granted ? answer.epoch : 0;
}

const pathOf = (name: string): string => `/v1/values/${encodeURIComponent(name)}`;

describe("PUT and GET", () => {
  it("a value is shown as it was written, with its version and when, its names untouched", async () => {
    await using t = await startApi();
    const value = { camelCase: 1, snake_case: [true, null, "é", -0.5], nested: { someName: {} }, "": 0 };
    const written = await t.call("PUT", "/v1/values/cursor", { value }, "client-key");
    fits("putValue", written.json);
    expect([written.status, written.json]).toEqual([200, { version: 101 }]);
    const { status, json, headers } = await t.call("GET", "/v1/values/cursor", undefined, "viewer-key");
    fits("value", json);
    expect([status, json]).toEqual([200, { name: "cursor", value, version: 101, updated_at_ms: 1_101 }]);
    expect(headers.get("x-tenure-applied")).toMatch(/^\d+$/);
  });

  it("a value may be any JSON, null too; one that is not there is 404 with its name", async () => {
    await using t = await startApi();
    for (const value of [null, 0, false, "", [], {}, "text", 2 ** 53 - 1]) {
      expect((await t.call("PUT", "/v1/values/x", { value })).status).toBe(200);
      expect((await t.call("GET", "/v1/values/x")).json).toMatchObject({ value });
    }
    const { status, json } = await t.call("GET", "/v1/values/y");
    expect([status, json]).toEqual([404, expect.objectContaining({ error: "NOT_FOUND", name: "y" })]);
  });

  it("any text is a name, percent-encoded, also that of another route", async () => {
    await using t = await startApi();
    const names = ["watch", "values", "a/b", "a b", "ü€😀", "...", "%2F", "a?b#c", "__proto__", "constructor"];
    for (const name of [...names, "n".repeat(VALUE_NAME_BYTES_MAX), "é".repeat(VALUE_NAME_BYTES_MAX / 2)]) {
      expect((await t.call("PUT", pathOf(name), { value: name })).status, name).toBe(200);
      expect((await t.call("GET", pathOf(name))).json).toMatchObject({ name, value: name });
      expect((await t.call("DELETE", pathOf(name))).json, name).toMatchObject({ deleted: true });
    }
    for (const name of ["n".repeat(VALUE_NAME_BYTES_MAX + 1), "é".repeat(VALUE_NAME_BYTES_MAX / 2 + 1), "a\0b"]) {
      const { status, json } = await t.call("PUT", pathOf(name), { value: 1 });
      expect([status, json?.["error"], json?.["field"]], name).toEqual([400, "BAD_REQUEST", "name"]);
    }
    for (const path of ["/v1/values/%ff", "/v1/values/%ed%a0%80"]) {
      expect((await t.call("PUT", path, { value: 1 })).status, path).toBe(400);
    }
  });

  it("if_version: only on that version; 0 where there is none; the refusal says what there is", async () => {
    await using t = await startApi();
    const conflict = { error: "VERSION_CONFLICT", name: "x" };
    const asked = async (ifVersion: number) => {
      const { status, json } = await t.call("PUT", "/v1/values/x", { value: 1, if_version: ifVersion });
      return [status, json];
    };
    expect(await asked(7)).toEqual([409, expect.objectContaining({ ...conflict, version: null })]);
    expect(await asked(0)).toEqual([200, { version: 101 }]);
    expect(await asked(0)).toEqual([409, expect.objectContaining({ ...conflict, version: 101 })]);
    expect(await asked(101)).toEqual([200, { version: 102 }]);
    const late = await t.call("DELETE", "/v1/values/x?if_version=101");
    expect([late.status, late.json]).toEqual([409, expect.objectContaining({ ...conflict, version: 102 })]);
    expect((await t.call("DELETE", "/v1/values/x?if_version=102")).json).toEqual({ deleted: true, version: 103 });
  });

  it("scope and epoch: only while that epoch is in force, and the value names them", async () => {
    await using t = await startApi();
    const epoch = await held(t, "payer/1");
    const fenced = { value: 1, scope: "payer/1", epoch };
    expect((await t.call("PUT", "/v1/values/x", fenced, "client-key")).status).toBe(200);
    const { json } = await t.call("GET", "/v1/values/x");
    fits("value", json);
    expect(json).toMatchObject({ scope: "payer/1", epoch });
    const before = t.fingerprint();
    for (const stale of [{ epoch: epoch + 1 }, { scope: "payer" }]) {
      const late = await t.call("PUT", "/v1/values/x", { ...fenced, ...stale });
      expect([late.status, late.json?.["error"]]).toEqual([409, "STALE_EPOCH"]);
    }
    const query = (one: number): string => `scope=${encodeURIComponent("payer/1")}&epoch=${one}`;
    expect((await t.call("DELETE", `/v1/values/x?${query(epoch + 1)}`)).status).toBe(409);
    expect(t.fingerprint()).toBe(before);
    expect((await t.call("DELETE", `/v1/values/x?${query(epoch)}`)).json).toMatchObject({ deleted: true });
  });

  it("half of a fence is refused by the field that is missing", async () => {
    await using t = await startApi();
    for (const [given, missing] of [
      [{ scope: "s" }, "epoch"],
      [{ epoch: 3 }, "scope"],
    ] as const) {
      const write = await t.call("PUT", "/v1/values/x", { value: 1, ...given });
      expect([write.status, write.json?.["field"]]).toEqual([400, missing]);
      const query = new URLSearchParams(Object.entries(given).map(([name, one]) => [name, String(one)]));
      const removal = await t.call("DELETE", `/v1/values/x?${query.toString()}`);
      expect([removal.status, removal.json?.["field"]]).toEqual([400, missing]);
    }
    expect(t.values.version).toBe(100);
  });

  it("what is no value, or is not well-formed, is refused, by its field", async () => {
    await using t = await startApi();
    const deep = (levels: number): string => `{"value":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    const cases: readonly [body: string, field: string][] = [
      ["{}", "value"],
      ['{"value":1,"if_version":-1}', "if_version"],
      ['{"value":1,"if_version":1.5}', "if_version"],
      ['{"value":1,"scope":"..","epoch":1}', "scope"],
      ['{"value":1,"scope":"s","epoch":0}', "epoch"],
      ['{"value":1,"nonsense":2}', "nonsense"],
      ['{"value":1,"value":2}', "body"],
      ['{"value":{"a":1,"a":2}}', "body"],
      ['{"value":{"__proto__":1}}', "body"],
      ['{"value":9007199254740992}', "value"],
      ['{"value":"\\ud800"}', "value"],
      [deep(JSON_DEPTH_MAX + 1), "value"],
      [`{"value":"${"x".repeat(VALUE_BYTES_MAX - 1)}"}`, "value"],
    ];
    for (const [body, field] of cases) {
      const { status, json } = await t.call("PUT", "/v1/values/x", body);
      expect([status, json?.["error"], json?.["field"]], body.slice(0, 80)).toEqual([400, "BAD_REQUEST", field]);
    }
    expect(t.values.version).toBe(100);
    expect((await t.call("PUT", "/v1/values/x", deep(JSON_DEPTH_MAX))).status).toBe(200);
  });

  it("as large as allowed, however it is written; one byte more is refused; a body beyond that is 413", async () => {
    await using t = await startApi();
    const escaped = `{"value":"${"\\u0041".repeat(VALUE_BYTES_MAX - 2)}"}`;
    expect((await t.call("PUT", "/v1/values/x", escaped)).status).toBe(200);
    expect(t.values.get("x")?.value).toBe("A".repeat(VALUE_BYTES_MAX - 2));
    expect((await t.call("PUT", "/v1/values/x", `{"value":"${"é".repeat(VALUE_BYTES_MAX / 2)}"}`)).status).toBe(400);
    const padded = `{"value":1${" ".repeat(VALUE_BODY_BYTES_MAX)}}`;
    expect((await t.call("PUT", "/v1/values/x", padded)).json?.["error"]).toBe("PAYLOAD_TOO_LARGE");
  });

  it("a value that a transaction has locked says by which, and is not written; another has no such field", async () => {
    await using t = await startApi();
    await put(t, "free");
    await put(t, "x");
    const id = "01890000-0000-7000-8000-000000000001";
    t.values.lockedBy.set("x", id);
    const one = await t.call("GET", "/v1/values/x");
    fits("value", one.json);
    expect(one.json).toMatchObject({ name: "x", value: { at: 1 }, pending_txn: id });
    const list = await t.call("GET", "/v1/values");
    fits("values", list.json);
    const [free, x] = (list.json as { values: [object, object] }).values;
    expect(x).toEqual(one.json);
    expect(Object.keys(free)).toEqual(["name", "value", "version", "updated_at_ms"]);
    const before = t.fingerprint();
    for (const write of [
      await t.call("PUT", "/v1/values/x", { value: 2 }, "client-key"),
      await t.call("DELETE", "/v1/values/x", undefined, "client-key"),
    ])
      expect([write.status, write.json?.["error"]]).toEqual([409, "txn_locked"]);
    expect(t.fingerprint()).toBe(before);
    // What is written by the transaction is a change as every other.
    t.values.lockedBy.clear();
    expect((await t.call("PUT", "/v1/values/x", { value: 2 }, "client-key")).status).toBe(200);
    expect((await t.call("GET", "/v1/values/x")).json).not.toHaveProperty("pending_txn");
  });

  it("deleting what is not there is no error, and says so", async () => {
    await using t = await startApi();
    const { status, json } = await t.call("DELETE", "/v1/values/x", undefined, "client-key");
    fits("deleteValue", json);
    expect([status, json]).toEqual([200, { deleted: false, version: null }]);
  });

  it("nodes on Postgres keep none, and say what to use", async () => {
    await using t = await startApi({ values: noValues() });
    for (const [method, path, body] of [
      ["GET", "/v1/values", undefined],
      ["GET", "/v1/values/x", undefined],
      ["GET", "/v1/watch/values", undefined],
      ["PUT", "/v1/values/x", { value: 1 }],
      ["DELETE", "/v1/values/x", undefined],
    ] as const) {
      const { status, json } = await t.call(method, path, body);
      expect([status, json?.["error"]], `${method} ${path}`).toEqual([501, "NOT_SUPPORTED"]);
    }
    expect(t.api.stats()).toMatchObject({ streams: 0 });
  });
});

describe("GET /v1/values", () => {
  it("lists by name, in pages, of one prefix; each page says as of which version", async () => {
    await using t = await startApi();
    const names = Array.from({ length: VALUES_PER_PAGE_MAX + 4 }, (_, at) => `job/${String(at).padStart(3, "0")}`);
    for (const name of [...names, "other"]) await put(t, name);
    const first = await t.call("GET", "/v1/values?prefix=job%2F");
    fits("values", first.json);
    expect(first.json?.["values"]).toHaveLength(VALUES_PER_PAGE_MAX);
    expect(first.json).toMatchObject({ next: names[VALUES_PER_PAGE_MAX - 1], as_of: t.values.version });
    const after = encodeURIComponent(String(first.json?.["next"]));
    const last = await t.call("GET", `/v1/values?prefix=job/&after=${after}&consistency=linearizable`);
    const shown = ((last.json?.["values"] ?? []) as { name: string }[]).map(({ name }) => name);
    expect([shown, last.json?.["next"]]).toEqual([names.slice(VALUES_PER_PAGE_MAX), null]);
    const small = await t.call("GET", "/v1/values?limit=1&prefix=");
    expect(small.json).toMatchObject({ values: [{ name: names[0] }], next: names[0] });
  });

  it("a node that is cut off says so where it is asked for what is confirmed", async () => {
    await using t = await startApi();
    Object.assign(t.cluster, { isCutOff: true });
    t.cluster.follow(null);
    for (const path of ["/v1/values", "/v1/values/x"]) {
      expect((await t.call("GET", `${path}?consistency=linearizable`)).json?.["error"]).toBe("ERR_NO_LEADER");
      expect((await t.call("GET", `${path}?max_stale_ms=10`)).json?.["error"]).toBe("TOO_STALE");
    }
    expect((await t.call("GET", "/v1/values")).status).toBe(200);
  });
});

describe("GET /v1/watch/values", () => {
  it("sends each change once, in order: its version as id, what it is as data", async () => {
    await using t = await startApi();
    await put(t, "before");
    using stream = await openStream(t, "/v1/watch/values");
    expect(stream.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(stream.headers["cache-control"]).toBe("no-store");
    await expect.poll(() => stream.frames.length).toBe(1);
    expect(stream.lastId).toBe("101");
    const epoch = await held(t, "s");
    await t.values.put({ name: "a", value: { someName: 1 }, ifVersion: null, fence: { scope: "s", epoch } });
    await t.values.delete({ name: "a", ifVersion: null, fence: null });
    await expect.poll(() => stream.ids).toEqual([102, 103]);
    expect(stream.shown.map(({ event }) => event)).toEqual([undefined, undefined]);
    expect(stream.shown.map(({ data }) => JSON.parse(data ?? "") as unknown)).toEqual([
      { kind: "put", name: "a", value: { someName: 1 }, version: 102, updated_at_ms: 1_102, scope: "s", epoch },
      { kind: "deleted", name: "a", version: 103, updated_at_ms: 1_103 },
    ]);
  });

  it("trap 67: whoever is cut again and again sees every change of its prefix once, in order", async () => {
    await using t = await startApi();
    for (let at = 0; at < 500; at++) await put(t, at % 3 === 0 ? `other/${at}` : `mine/${at % 7}`, at);
    const ids: number[] = [];
    let last = "100";
    for (let round = 0; round < 20 && last !== "600"; round++) {
      using stream = await openStream(t, "/v1/watch/values?prefix=mine/&after=1", { "last-event-id": last });
      const wanted = Math.min(20, 333 - ids.length);
      await expect.poll(() => stream.ids.length).toBeGreaterThanOrEqual(wanted);
      const some = stream.shown.slice(0, 20);
      ids.push(...some.map(({ id }) => Number(id)));
      last = some.at(-1)?.id ?? "600";
    }
    const expected = Array.from({ length: 500 }, (_, at) => at).flatMap((at) => (at % 3 === 0 ? [] : [at + 101]));
    expect(ids).toEqual(expected);
  });

  it("changes that were made together have one version, and only the last of them has the id: whoever is cut between goes on before the first", async () => {
    await using t = await startApi();
    using stream = await openStream(t, "/v1/watch/values?after=100");
    t.values.putTogether({ a: 1, b: 2, c: 3 });
    await put(t, "d");
    await expect.poll(() => stream.shown.length).toBe(4);
    const data = stream.shown.map((frame) => JSON.parse(frame.data ?? "") as { name: string; version: number });
    expect(data.map(({ name, version }) => [name, version])).toEqual([
      ["a", 101],
      ["b", 101],
      ["c", 101],
      ["d", 102],
    ]);
    expect(stream.shown.map(({ id }) => id)).toEqual([undefined, undefined, "101", "102"]);
  });

  it("where the changes are not kept any more: reset, without an id, and the end", async () => {
    await using t = await startApi();
    await put(t, "a");
    t.values.forgetChanges();
    await put(t, "b");
    using stream = await openStream(t, "/v1/watch/values?after=100");
    await expect.poll(() => stream.ended).toBe("end");
    expect(stream.shown).toMatchObject([{ event: "reset", data: '{"as_of":102}', id: undefined }]);
    using open = await openStream(t, "/v1/watch/values?after=101");
    await expect.poll(() => open.ids).toEqual([102]);
    await put(t, "c");
    await expect.poll(() => open.ids).toEqual([102, 103]);
    t.values.forgetChanges();
    await put(t, "d");
    // What it has seen is kept; only what is after it counts.
    await expect.poll(() => open.ids).toEqual([102, 103, 104]);
  });

  it("a version that nobody was given is none to go on from; a node that lags asks the leader before it says so", async () => {
    await using t = await startApi();
    using stream = await openStream(t, "/v1/watch/values?after=999");
    await expect.poll(() => stream.ended).toBe("end");
    expect(stream.shown).toMatchObject([{ event: "reset", data: '{"as_of":100}' }]);
    Object.assign(t.cluster, { isCutOff: true });
    t.cluster.follow(null);
    expect((await t.call("GET", "/v1/watch/values?after=999")).json?.["error"]).toBe("ERR_NO_LEADER");
  });

  it("says that it lives, and moves the id over what its prefix passes over", async () => {
    await using t = await startApi({ limits: { heartbeatMs: 30 } });
    using stream = await openStream(t, "/v1/watch/values?prefix=mine");
    await expect.poll(() => stream.frames.filter(({ comment }) => comment === "heartbeat").length).toBeGreaterThan(1);
    for (let at = 0; at < 5; at++) await put(t, "other");
    await expect.poll(() => stream.lastId).toBe("105");
    expect(stream.shown).toEqual([]);
  });

  it("an id of 16 digits is one: a cluster that is restored in 2033 gives such", async () => {
    await using t = await startApi();
    using stream = await openStream(t, "/v1/watch/values", { "last-event-id": "1000000000000001" });
    await expect.poll(() => stream.frames.at(-1)?.event).toBe("reset");
  });

  it("a wrong id is refused by its name", async () => {
    await using t = await startApi();
    for (const id of ["x", "-1", "1.5", "1:ab", "9".repeat(16)]) {
      const { status, json } = await t.call("GET", "/v1/watch/values", undefined, "viewer-key", {
        "last-event-id": id,
      });
      expect([id, status, json?.["field"]]).toEqual([id, 400, "Last-Event-ID"]);
    }
    expect((await t.call("GET", "/v1/watch/values?after=-1")).json?.["field"]).toBe("after");
    expect(t.api.stats()).toMatchObject({ streams: 0 });
  });

  it("takes a place, and gives it back however it ends; HEAD opens none", async () => {
    await using t = await startApi({ limits: { streamsMax: 1 } });
    for (let i = 0; i < 3; i++) expect((await t.call("HEAD", "/v1/watch/values")).status).toBe(200);
    using first = await openStream(t, "/v1/watch/values");
    expect(first.status).toBe(200);
    expect((await t.call("GET", "/v1/watch/values")).json?.["error"]).toBe("OVERLOADED");
    first[Symbol.dispose]();
    await expect
      .poll(async () => {
        using next = await openStream(t, "/v1/watch/values");
        return next.status;
      })
      .toBe(200);
    await expect.poll(() => t.values.watching).toBe(0);
  });

  it("trap 63: a reader that takes nothing is cut, and holds up nobody", async () => {
    await using t = await startApi({ limits: { streamStallMs: 300, heartbeatMs: 50 } });
    using slow = await openStream(t, "/v1/watch/values");
    using quick = await openStream(t, "/v1/watch/values");
    slow.pause();
    const text = "x".repeat(VALUE_BYTES_MAX - 2);
    for (let at = 0; at < 400; at++) await put(t, `v${at % 3}`, text);
    await expect.poll(() => quick.ids.length, { timeout: 20_000 }).toBe(400);
    await expect.poll(() => t.api.stats(), { timeout: 20_000 }).toMatchObject({ streams: 1 });
    slow.resume();
    await expect.poll(() => slow.ended).toBe("cut");
    expect(t.faults).toEqual([]);
  });

  it("ends whole when the server stops, and when its key is revoked", async () => {
    const t = await startApi({ limits: { heartbeatMs: 30 } });
    await t.call("POST", "/v1/keys", { name: "tmp", role: "viewer", sha256: sha256("temporary") });
    using stream = await openStream(t, "/v1/watch/values");
    using guest = await openStream(t, "/v1/watch/values", { "x-api-key": "temporary" });
    await expect.poll(() => guest.frames.length).toBeGreaterThan(1);
    await t.call("DELETE", "/v1/keys/tmp");
    await expect.poll(() => guest.ended).toBe("end");
    expect(stream.ended).toBeNull();
    await t.api.stop(5_000);
    await expect.poll(() => stream.ended).toBe("end");
    expect(t.faults).toEqual([]);
  });

  it("a write that concerns five hundred readers of a large value reaches all", async () => {
    await using t = await startApi();
    const readers = await Promise.all(Array.from({ length: 500 }, () => openStream(t, "/v1/watch/values")));
    try {
      await expect.poll(() => t.values.watching).toBe(500);
      await put(t, "large", "x".repeat(16_000));
      await expect.poll(() => readers.every(({ ids }) => ids.length === 1), { timeout: 20_000 }).toBe(true);
    } finally {
      for (const one of readers) one[Symbol.dispose]();
    }
  });
});

describe("who may write, by certificate", () => {
  it.each(IDENTITY_KINDS)("%s", async (kind) => {
    const nowMs = Date.now();
    const ca = await createCa({ trustDomain: "tenure", nowMs });
    const server = await issue({ ca, identity: parseSpiffeId("spiffe://tenure/server/n1")!, nowMs });
    const pair = await issue({ ca, identity: parseSpiffeId(`spiffe://tenure/${kind}/n7`)!, nowMs });
    await using t = await startApi({ tls: { ...server, clientCa: ca.cert } });
    const ask = (method: string, path: string, body?: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const headers = body === undefined ? {} : { "content-type": "application/json" };
        const options = { ...pair, ca: ca.cert, rejectUnauthorized: false, headers, agent: false as const };
        const sent = request({ port: t.port, host: "127.0.0.1", method, path, ...options }, (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        });
        sent.on("error", reject).end(body);
      });
    const mayWrite = ["sdk", "tc", "operator"].includes(kind);
    const mayRead = !["backup", "controller"].includes(kind);
    expect(await ask("PUT", "/v1/values/x", '{"value":1}')).toBe(mayWrite ? 200 : 403);
    expect(await ask("GET", "/v1/values/x")).toBe(mayRead ? (mayWrite ? 200 : 404) : 403);
    expect(await ask("GET", "/v1/values")).toBe(mayRead ? 200 : 403);
    expect(await ask("DELETE", "/v1/values/x")).toBe(mayWrite ? 200 : 403);
    // Whoever decides transactions leads no scopes for that.
    const leads = ["sdk", "operator"].includes(kind);
    expect(await ask("POST", "/v1/scopes/x/resign", '{"session":"s","epoch":1}')).toBe(leads ? 200 : 403);
  });
});
