// The log of events over HTTP: trap 67, a subscriber sees each event once, in order, without gaps, and can resume anywhere.

import { describe, expect, it } from "vitest";
import { bytesOfHash, verifyConsistency, verifyInclusion } from "../../src/core/events/index.ts";
import { TenureError } from "../../src/core/kit/errors.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { sha256, startApi, type TestApi } from "./test-api.ts";
import { openStream } from "./test-stream.ts";

function record(t: TestApi, count: number, text = ""): void {
  for (let i = 0; i < count; i++) {
    const eventType = i % 5 === 4 ? "build:completed" : "build:submitted";
    t.events.append({ eventType, entityId: `job-${i % 3}`, entityType: "build", payload: { someText: text, at: i } });
  }
}

const upTo = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe("GET /v1/events", () => {
  it("sends each event as id, type and data in snake_case, its payload untouched", async () => {
    await using t = await startApi();
    record(t, 1);
    using stream = await openStream(t, "/v1/events?since=0");
    expect(stream.status).toBe(200);
    expect(stream.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(stream.headers["cache-control"]).toBe("no-store");
    expect([stream.headers["x-tenure-node"], stream.headers["x-tenure-leader-epoch"]]).toEqual(["n1", "7"]);
    expect(stream.headers["x-tenure-cluster"]).toBe("c-test");
    await expect.poll(() => stream.shown).toHaveLength(1);
    expect(stream.shown[0]).toMatchObject({ id: "1", event: "build:submitted" });
    expect(JSON.parse(stream.shown[0]?.data ?? "")).toEqual({
      id: "00000000-0000-4000-8000-000000000001",
      sequence: 1,
      timestamp: 1_700_000_000_000,
      event_type: "build:submitted",
      entity_id: "job-0",
      entity_type: "build",
      payload: { someText: "", at: 0 },
      source_controller_id: "c-1.0",
      previous_hash: null,
      event_hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      leader_epoch: 7,
    });
  });

  it("begins now where nothing is said, and tells what comes at once", async () => {
    await using t = await startApi();
    record(t, 3);
    using stream = await openStream(t, "/v1/events");
    await expect.poll(() => t.events.waiting).toBe(1);
    record(t, 2);
    await expect.poll(() => stream.ids).toEqual([4, 5]);
  });

  it("trap 67: whoever is cut again and again sees every event once, in order, on whichever node", async () => {
    await using a = await startApi();
    await using b = await startApi();
    record(a, 1_200);
    record(b, 1_200);
    b.events.appliedMax = 700;
    // It hears of nobody who could tell it what there is.
    b.cluster.isCutOff = true;
    const seen: number[] = [];
    let last = "0";
    for (let round = 0; seen.length < 900; round++) {
      expect(round).toBeLessThan(100);
      const node = round % 2 === 0 ? a : b;
      using stream = await openStream(node, "/v1/events?since=5", { "last-event-id": last });
      const before = seen.length;
      // The second node may be behind: it tells nothing that it has not, and goes on when it has it.
      if (node === b && Number(last) >= 700) b.events.appliedMax = 1_200;
      b.events.wake();
      await expect.poll(() => stream.shown.length).toBeGreaterThan(0);
      seen.push(...stream.ids.slice(0, 97));
      last = String(seen.at(-1));
      expect(seen.length).toBeGreaterThan(before);
    }
    expect(seen).toEqual(upTo(1, seen.length));
  });

  it.each([
    ["since", "/v1/events?since=4", {}],
    ["Last-Event-ID", "/v1/events", { "last-event-id": "4" }],
  ])(
    "%s that no event has had yet is refused by name, but not by a node that can't know",
    async (field, path, more) => {
      await using t = await startApi();
      record(t, 3);
      const headers = { "x-api-key": "viewer-key", ...more };
      const refused = await fetch(`${t.url}${path}`, { headers });
      expect([refused.status, await refused.json()]).toMatchObject([400, { error: "BAD_REQUEST", field }]);
      t.cluster.isCutOff = true;
      const gone = new AbortController();
      expect((await fetch(`${t.url}${path}`, { headers, signal: gone.signal })).status).toBe(200);
      gone.abort();
      const known = path.replace("4", "3");
      const last = await fetch(`${t.url}${known}`, {
        headers: { "x-api-key": "viewer-key" },
        signal: AbortSignal.timeout(5_000),
      });
      expect(last.status).toBe(200);
      await last.body?.cancel();
    },
  );

  it("filters by type and entity, and moves the point of resuming over what it left out", async () => {
    await using t = await startApi({ limits: { heartbeatMs: 50 } });
    record(t, 1_003);
    using types = await openStream(t, "/v1/events?since=0&type=build:completed");
    await expect.poll(() => types.ids).toEqual(upTo(1, 200).map((at) => at * 5));
    await expect.poll(() => types.lastId).toBe("1003");
    using group = await openStream(t, "/v1/events?since=990&type=worker:*,build:*&entity=job-1&entity_type=build");
    await expect.poll(() => group.ids).toEqual([992, 995, 998, 1_001]);
    using none = await openStream(t, "/v1/events?since=0&entity_type=worker");
    await expect.poll(() => none.lastId).toBe("1003");
    expect(none.shown).toEqual([]);
  });

  it("says that it lives where nothing happens", async () => {
    await using t = await startApi({ limits: { heartbeatMs: 20 } });
    using stream = await openStream(t, "/v1/events");
    await expect.poll(() => stream.frames.filter(({ comment }) => comment === "heartbeat").length).toBeGreaterThan(2);
    expect(stream.shown).toEqual([]);
  });

  it("a reader that does not read costs a bounded memory, delays nobody, is cut, and can resume", async () => {
    await using t = await startApi({ limits: { streamStallMs: 1_000 } });
    const count = 4_000;
    record(t, count, "x".repeat(4_000));
    using slow = await openStream(t, "/v1/events?since=0");
    slow.pause();
    using quick = await openStream(t, "/v1/events?since=0");
    await expect.poll(() => quick.ids.length, { timeout: 20_000 }).toBe(count);
    // What was read for the slow one is what its socket takes and one page, not the log.
    const readsForSlow = t.events.reads - count / 64;
    expect(readsForSlow).toBeLessThan(count / 64);
    await expect.poll(() => t.api.stats().inFlight, { timeout: 20_000 }).toBe(1);
    slow.resume();
    await expect.poll(() => slow.ended).toBe("cut");
    expect(slow.ids.length).toBeLessThan(count);
    using again = await openStream(t, "/v1/events", { "last-event-id": slow.lastId ?? "" });
    await expect.poll(() => slow.ids.length + again.ids.length, { timeout: 20_000 }).toBe(count);
    expect([...slow.ids, ...again.ids]).toEqual(upTo(1, count));
    expect(t.faults).toEqual([]);
  }, 90_000);

  it("what retention has cut off is 410, before anything is streamed", async () => {
    await using t = await startApi();
    record(t, 10);
    t.events.first = 5;
    const { status, json } = await t.call("GET", "/v1/events?since=2");
    expect([status, json?.["error"]]).toEqual([410, "LOG_COMPACTED"]);
    using stream = await openStream(t, "/v1/events?since=4");
    await expect.poll(() => stream.ids).toEqual(upTo(5, 10));
  });

  it("a place to resume from that is none is 400 with its name", async () => {
    await using t = await startApi();
    for (const id of ["x", "-1", "1.5", "1".repeat(16), ""]) {
      const { status, json } = await t.call("GET", "/v1/events", undefined, "viewer-key", { "last-event-id": id });
      expect([id, status, json?.["field"]]).toEqual([id, 400, "Last-Event-ID"]);
    }
    for (const query of ["type=nonsense", "type=build:*,", "entity_type=node", "since=-1", "entity="]) {
      expect((await t.call("GET", `/v1/events?${query}`)).json?.["field"]).toBe(query.split("=")[0]);
    }
  });

  it("as many streams as are allowed, one more is 503, and the next when one has gone", async () => {
    await using t = await startApi({ limits: { streamsMax: 2 } });
    using first = await openStream(t, "/v1/events");
    using second = await openStream(t, "/v1/events");
    expect((await t.call("GET", "/v1/events")).json?.["error"]).toBe("OVERLOADED");
    expect([first.status, second.status]).toEqual([200, 200]);
    first[Symbol.dispose]();
    await expect
      .poll(async () => {
        using third = await openStream(t, "/v1/events");
        return third.status;
      })
      .toBe(200);
  });

  it("HEAD answers with the headers and opens no stream", async () => {
    await using t = await startApi({ limits: { streamsMax: 1 } });
    for (let i = 0; i < 3; i++) {
      const { status, text, headers } = await t.call("HEAD", "/v1/events");
      expect([status, text, headers.get("content-type")]).toEqual([200, "", "text/event-stream; charset=utf-8"]);
    }
    expect(t.api.stats().inFlight).toBe(0);
  });

  it("ends whole when the server stops", async () => {
    const t = await startApi();
    record(t, 3);
    using stream = await openStream(t, "/v1/events?since=0");
    await expect.poll(() => stream.ids).toEqual([1, 2, 3]);
    await t.api.stop(5_000);
    await expect.poll(() => stream.ended).toBe("end");
    expect(t.faults).toEqual([]);
  });

  it("a key that is revoked ends the streams that it opened", async () => {
    await using t = await startApi({ limits: { heartbeatMs: 30 } });
    await t.call("POST", "/v1/keys", { name: "tmp", role: "viewer", sha256: sha256("temporary") });
    using stream = await openStream(t, "/v1/events", { "x-api-key": "temporary" });
    await expect.poll(() => stream.frames.length).toBeGreaterThan(1);
    expect(stream.ended).toBeNull();
    await t.call("DELETE", "/v1/keys/tmp");
    await expect.poll(() => stream.ended).toBe("end");
    expect((await t.call("GET", "/v1/jobs", undefined, "temporary")).status).toBe(401);
  });

  it("D1: also the busy ones, which are never silent for a heartbeat", async () => {
    await using t = await startApi();
    await t.call("POST", "/v1/keys", { name: "tmp", role: "viewer", sha256: sha256("temporary") });
    using stream = await openStream(t, "/v1/events", { "x-api-key": "temporary" });
    let count = 0;
    const busy = setInterval(() => record(t, 1, String(++count)), 20);
    try {
      await expect.poll(() => stream.ids.length).toBeGreaterThan(3);
      expect(stream.ended).toBeNull();
      await t.call("DELETE", "/v1/keys/tmp");
      await expect.poll(() => stream.ended, { timeout: 8_000 }).toBe("end");
    } finally {
      clearInterval(busy);
    }
  });
});

describe("GET /api/events/since/:sequence", () => {
  it("has the specification's names, and the very bytes that are hashed", async () => {
    await using t = await startApi();
    record(t, 5);
    const { status, json, text } = await t.call("GET", "/api/events/since/2");
    expect(status).toBe(200);
    const events = json?.["events"] as Record<string, unknown>[];
    expect(events.map(({ sequence }) => sequence)).toEqual([3, 4, 5]);
    expect(Object.keys(events[0] ?? {}).toSorted()).toEqual([
      "entityId",
      "entityType",
      "eventHash",
      "eventType",
      "id",
      "leaderEpoch",
      "payload",
      "previousHash",
      "sequence",
      "sourceControllerId",
      "timestamp",
    ]);
    const list = text.slice('{"events":['.length, text.lastIndexOf("]"));
    const texts = list.split(/,(?=\{"eventHash")/);
    for (const [at, one] of texts.entries()) {
      const bytes = `{${one.slice(`{"eventHash":"${"0".repeat(64)}",`.length)}`;
      const hash = sha256(`tenure:event:v1\n${bytes}`);
      expect(hash).toBe(events[at]?.["eventHash"]);
      if (at > 0) expect(events[at]?.["previousHash"]).toBe(events[at - 1]?.["eventHash"]);
    }
    expect(json?.["throughSequence"]).toBe(5);
  });

  it("goes page by page", async () => {
    await using t = await startApi();
    record(t, 25);
    const seen: number[] = [];
    for (let after = 0, page = -1; page !== 0;) {
      const { json } = await t.call("GET", `/api/events/since/${after}?limit=10`);
      const events = json?.["events"] as { sequence: number }[];
      seen.push(...events.map(({ sequence }) => sequence));
      page = events.length;
      after = json?.["throughSequence"] as number;
    }
    expect(seen).toEqual(upTo(1, 25));
  });
});

describe("GET /api/events/verify", () => {
  it("says that all is well, and how far", async () => {
    await using t = await startApi();
    expect((await t.call("GET", "/api/events/verify")).json).toMatchObject({ valid: true, throughSequence: 0 });
    record(t, 50);
    const { json } = await t.call("GET", "/api/events/verify");
    const since = await t.call("GET", "/api/events/since/49");
    const head = (since.json as { events: { eventHash: string }[] }).events[0]?.eventHash;
    expect(json).toMatchObject({ valid: true, firstSequence: 1, throughSequence: 50, headHash: head });
  });

  it.each([1, 20, 50])("names the first event that was changed: %i", async (sequence) => {
    await using t = await startApi();
    record(t, 50);
    t.events.flip(sequence);
    const { status, json } = await t.call("GET", "/api/events/verify");
    expect([status, json]).toEqual([
      200,
      { valid: false, firstSequence: 1, firstBrokenSequence: sequence, reason: expect.any(String) as string },
    ]);
  });

  it("that can't go on says so with an error of its own, before the first byte by the status and later by its JSON", async () => {
    await using t = await startApi({ limits: { heartbeatMs: 20 } });
    record(t, 3);
    const down = new TenureError("BACKEND_UNAVAILABLE", "no connection to Postgres");
    t.events.gate = Promise.reject(down);
    t.events.gate.catch(() => undefined);
    const soon = await t.call("GET", "/api/events/verify");
    expect([soon.status, soon.json]).toEqual([503, { error: "BACKEND_UNAVAILABLE", message: down.message }]);
    const { promise, reject } = Promise.withResolvers<void>();
    t.events.gate = promise;
    const begun = await fetch(`${t.url}/api/events/verify`, { headers: { "x-api-key": "viewer-key" } });
    reject(down);
    const text = await begun.text();
    expect([begun.status, text.startsWith(" ")]).toEqual([200, true]);
    expect(JSON.parse(text)).toEqual({ error: "BACKEND_UNAVAILABLE", message: down.message });
    t.events.gate = Promise.resolve();
    expect((await t.call("GET", "/api/events/verify")).json, "and the next may begin").toMatchObject({ valid: true });
  });

  it("takes its time without losing the connection, one at a time, and is given up with its caller", async () => {
    await using t = await startApi({ limits: { heartbeatMs: 20 } });
    record(t, 3);
    let open: () => void = () => undefined;
    t.events.gate = new Promise((resolve) => (open = resolve));
    const answer = await fetch(`${t.url}/api/events/verify`, { headers: { "x-api-key": "viewer-key" } });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await t.call("GET", "/api/events/verify")).json?.["error"]).toBe("OVERLOADED");
    let text = (await reader.read()).value ?? "";
    expect(text).toMatch(/^ +$/);
    open();
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
    expect(JSON.parse(text)).toMatchObject({ valid: true });
    t.events.gate = new Promise(() => undefined);
    const gone = new AbortController();
    const given = fetch(`${t.url}/api/events/verify`, { headers: { "x-api-key": "viewer-key" }, signal: gone.signal });
    await expect.poll(() => t.api.stats().inFlight).toBe(1);
    gone.abort();
    await expect(given.then((answer) => answer.text())).rejects.toThrow();
    t.events.gate = Promise.resolve();
    await expect.poll(async () => (await t.call("GET", "/api/events/verify")).status).toBe(200);
    expect((await t.call("HEAD", "/api/events/verify")).status).toBe(200);
    expect((await t.call("GET", "/api/events/verify")).status).toBe(200);
  });
});

describe("GET /v1/events/proof", () => {
  const hashes = (path: unknown): Uint8Array[] => (path as string[]).map((hash) => bytesOfHash(hash));
  const hash = (one: unknown): Uint8Array => bytesOfHash(one as string);

  it("proves that an event is in the log, to whoever checks", async () => {
    await using t = await startApi();
    record(t, 13);
    const { json } = await t.call("GET", "/v1/events/proof?sequence=6");
    expect(json).toMatchObject({ kind: "inclusion", sequence: 6, tree_size: 13 });
    const claim = { leafHash: hash(json?.["leaf_hash"]), index: 5, size: 13, root: hash(json?.["root"]) };
    expect(verifyInclusion({ ...claim, proof: hashes(json?.["path"]) }, systemDigest)).toBe(true);
    expect(verifyInclusion({ ...claim, index: 6, proof: hashes(json?.["path"]) }, systemDigest)).toBe(false);
  });

  it("proves that the log only grew", async () => {
    await using t = await startApi();
    record(t, 13);
    const { json } = await t.call("GET", "/v1/events/proof?from_size=5&tree_size=12");
    expect(json).toMatchObject({ kind: "consistency", from_size: 5, tree_size: 12 });
    const [first, second] = [hash(json?.["from_root"]), hash(json?.["root"])];
    const proof = hashes(json?.["path"]);
    const claim = { first: 5, second: 12, firstRoot: first, secondRoot: second, proof };
    expect(verifyConsistency(claim, systemDigest)).toBe(true);
    expect(verifyConsistency({ ...claim, firstRoot: second }, systemDigest)).toBe(false);
  });

  it.each([
    ["", "sequence"],
    ["?sequence=1&from_size=1", "from_size"],
    ["?sequence=14", "sequence"],
    ["?sequence=5&tree_size=4", "sequence"],
    ["?from_size=5&tree_size=4", "from_size"],
    ["?sequence=5&tree_size=14", "tree_size"],
    ["?sequence=0", "sequence"],
  ])("%s is refused by name", async (query, field) => {
    await using t = await startApi();
    record(t, 13);
    const { status, json } = await t.call("GET", `/v1/events/proof${query}`);
    expect([status, json?.["field"]]).toEqual([400, field]);
  });
});
