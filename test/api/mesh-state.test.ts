// The jobs and agents of all sites over HTTP, from a real mesh.sqlite.

import { expect, test } from "vitest";
import { JOB_ROUTES as ROUTES } from "../../src/contract/jobs/routes.ts";
import { MESH_STATE_ROUTES } from "../../src/contract/mesh/state-routes.ts";
import { shape } from "../../src/contract/index.ts";
import { arrivals, newMeshPath, openMesh, says } from "../sqlite/test-mesh.ts";
import type { Arrivals } from "../../src/ports/mesh/arrivals.ts";
import { startApi, type TestApi } from "./test-api.ts";

const HASH = "ab".repeat(32);
/** Its payload and its author try to pass for a sequence. */
const EVENT = `{"entityId":"j1","entityType":"build","eventType":"build:submitted","id":"e","leaderEpoch":1,"payload":{"a":",\\"sequence\\":9","b":1,"sequence":8,"z":2},"previousHash":"${HASH}","sequence":3,"sourceControllerId":"b,\\"sequence\\":7","timestamp":5.5}`;
const LABELS = JSON.parse('{"__proto__":"x","isLost":"y"}') as Record<string, string>;

/** An own event that was forwarded, and one that is withheld. */
const ARRIVALS: Arrivals = {
  last: 7,
  logId: () => "a.1",
  read: async (after) => ({
    through: 7,
    events: [
      { arrival: after + 1, line: "b.1", lineSequence: 3, eventHash: HASH, bytes: new TextEncoder().encode(EVENT) },
      { arrival: after + 2, line: "b.1", lineSequence: 4, eventHash: HASH, bytes: null },
    ],
  }),
  verify: async () => ({
    valid: false,
    first: 1,
    firstBrokenSequence: 6,
    line: "b.1",
    lineSequence: 3,
    reason: "receipt 2, with which it came: its checksum is wrong",
  }),
};

async function meshApi(): Promise<TestApi> {
  const views = await openMesh(await newMeshPath());
  const spec = { kind: "compile", queue: "linux", platform: null, labels: LABELS };
  await views.put(
    arrivals([
      says("a.1", 1, "build:submitted", "j1", { spec, by: "ann" }),
      says("b.1", 1, "build:submitted", "j2", { spec: { kind: 7 } }),
      says("b.1", 2, "worker:registered", "w1", { platform: "linux", capacity: 4, kinds: ["test"], draining: true }),
      says("b.1", 3, "worker:registered", "w2", { platform: [], capacity: "many" }),
      says("b.1", 4, "worker:offline", "w2"),
      says("a.1", 2, "build:failed", "j1", { error: { message: "no such file" } }),
    ]),
  );
  await views.mark("b.1", "forked");
  const heardMs = (line: string): number | null => (line === "a.1" ? Date.now() : null);
  const last = { atMs: 1, outcome: "equal" as const, events: 6, reason: null };
  const replay = { last: () => last, run: async () => last };
  return await startApi({ meshState: { views, heardMs, replay, arrivals: ARRIVALS }, arrivals: () => ARRIVALS });
}

test("jobs of all sites are listed with their site and the age of what is shown", async () => {
  await using t = await meshApi();
  const { status, json } = await t.call("GET", "/v1/mesh/jobs", undefined, "viewer-key");
  expect(status).toBe(200);
  expect(shape(MESH_STATE_ROUTES.meshJobs.answer).check(json)).toEqual({ ok: true, value: json });
  expect(json).toMatchObject({
    next: null,
    through: 6,
    jobs: [
      { id: "j2", site: "b", line: "b.1", line_state: "forked", state: "pending", kind: null, heard_at_ms: 5_005 },
      {
        id: "j1",
        site: "a",
        line_state: "sound",
        state: "failed",
        kind: "compile",
        submitted_by: "ann",
        error_message: "no such file",
        claims: 1,
        is_lost: false,
      },
    ],
  });
  const [forked, sound] = json!["jobs"] as { age_ms: number; labels: object }[];
  expect(forked!.age_ms).toBeGreaterThan(1e12);
  expect(sound!.age_ms).toBeLessThan(60_000);
  expect(Object.entries(sound!.labels)).toEqual(Object.entries(LABELS));
});

test("by site, state and words, page by page; a wrong cursor is 400", async () => {
  await using t = await meshApi();
  const ids = async (query: string): Promise<unknown> =>
    ((await t.call("GET", `/v1/mesh/jobs?${query}`)).json!["jobs"] as { id: string }[]).map(({ id }) => id);
  expect(await ids("site=b")).toEqual(["j2"]);
  expect(await ids("state=failed,completed")).toEqual(["j1"]);
  expect(await ids("search=Compile%20file")).toEqual(["j1"]);
  const { json } = await t.call("GET", "/v1/mesh/jobs?limit=1");
  expect(await ids(`cursor=${encodeURIComponent(json!["next"] as string)}`)).toEqual(["j1"]);
  for (const path of ["/v1/mesh/jobs", "/v1/mesh/agents"]) {
    const wrong = await t.call("GET", `${path}?cursor=nonsense`);
    expect([wrong.status, wrong.json]).toMatchObject([400, { error: "BAD_REQUEST", field: "cursor" }]);
  }
});

test("agents of all sites are listed by name", async () => {
  await using t = await meshApi();
  const { json } = await t.call("GET", "/v1/mesh/agents?limit=1", undefined, "viewer-key");
  expect(shape(MESH_STATE_ROUTES.meshAgents.answer).check(json)).toEqual({ ok: true, value: json });
  expect(json!["agents"]).toMatchObject([
    { name: "w1", site: "b", line_state: "forked", state: "draining", capacity: 4, kinds: ["test"], platform: "linux" },
  ]);
  const more = await t.call("GET", `/v1/mesh/agents?cursor=${String(json!["next"])}`);
  expect(more.json).toMatchObject({
    agents: [{ name: "w2", state: "offline", platform: null, capacity: 0 }],
    next: null,
  });
});

test("events of all sites come in the order of their arrival, by site, type and entity", async () => {
  await using t = await meshApi();
  const { status, json } = await t.call("GET", "/v1/mesh/events?after_arrival=0&limit=4", undefined, "viewer-key");
  expect(status).toBe(200);
  expect(shape(MESH_STATE_ROUTES.meshEvents.answer).check(json)).toEqual({ ok: true, value: json });
  expect(json).toMatchObject({ next: 4, through: 6, dropped_through: 0 });
  const [first] = json!["events"] as object[];
  expect(first).toMatchObject({ arrival: 1, site: "a", line: "a.1", line_sequence: 1, payload: { by: "ann" } });
  const of = async (query: string): Promise<number[]> =>
    ((await t.call("GET", `/v1/mesh/events?${query}`)).json!["events"] as { arrival: number }[]).map(
      (one) => one.arrival,
    );
  expect(await of("limit=2")).toEqual([5, 6]);
  expect(await of("after_arrival=4")).toEqual([5, 6]);
  expect(await of("site=a")).toEqual([1, 6]);
  expect(await of("type=build:submitted&site=b")).toEqual([2]);
  expect(await of("entity=w2")).toEqual([4, 5]);
});

test("a standalone site answers 501, and says how to join", async () => {
  await using t = await startApi();
  for (const path of ["/v1/mesh/jobs", "/v1/mesh/agents", "/v1/mesh/events"]) {
    const { status, json } = await t.call("GET", path, undefined, "viewer-key");
    expect([status, json]).toMatchObject([
      501,
      {
        error: "MESH_DISABLED",
        message: 'This site is standalone. Set mode = "distributed" in [mesh] to join sites; see docs/mesh.md.',
      },
    ]);
  }
});

test("what arrived is shown by arrival number, with its line; withheld events are stubs, and counted", async () => {
  await using t = await meshApi();
  const { json } = await t.call("GET", "/api/events/since/5", undefined, "viewer-key");
  const { sequence: _, ...event } = JSON.parse(EVENT) as Record<string, unknown>;
  expect(json).toEqual({
    events: [
      { ...event, eventHash: HASH, line: "b.1", lineSequence: 3, sequence: 6 },
      { eventHash: HASH, line: "b.1", lineSequence: 4, sequence: 7, withheld: true },
    ],
    throughSequence: 7,
    withheld: 1,
    logId: "a.1",
  });
  expect(shape(ROUTES.eventsSince.answer).check(json)).toEqual({ ok: true, value: json });
  const own = await t.call("GET", "/api/events/since/5?line=own", undefined, "viewer-key");
  expect(Object.keys(own.json!)).toEqual(["events", "throughSequence"]);
});

test("a broken archive is named by arrival, line and place in it; with line=own the own archive alone is asked", async () => {
  await using t = await meshApi();
  const { json } = await t.call("GET", "/api/events/verify", undefined, "viewer-key");
  expect(json).toMatchObject({ valid: false, firstBrokenSequence: 6, line: "b.1", lineSequence: 3, firstSequence: 1 });
  expect(shape(ROUTES.eventsVerify.answer).check(json)).toEqual({ ok: true, value: json });
  const own = await t.call("GET", "/api/events/verify?line=own", undefined, "viewer-key");
  expect(own.json).toMatchObject({ valid: true });
});

test("the merged state shows its hash and its last replay; only operators replay", async () => {
  await using t = await meshApi();
  const { json } = await t.call("GET", "/v1/mesh/state", undefined, "viewer-key");
  expect(shape(MESH_STATE_ROUTES.meshState.answer).check(json)).toEqual({ ok: true, value: json });
  expect(json).toMatchObject({
    arrival: 7,
    through: 6,
    missing: 0,
    saved_through: null,
    replay: { at_ms: 1, outcome: "equal", events: 6 },
  });
  expect((await t.call("POST", "/v1/mesh/replay", {}, "viewer-key")).status).toBe(403);
});
