// Every route is sent what its schemas allow, nearly allow and do not allow at all. It must answer in its own words: no 5xx but
// those it lists, no fault, and whatever is refused has changed nothing.

import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import { COMMON_ERRORS, type Route, type RouteId, ROUTES, shape, specOf } from "../../src/contract/index.ts";
import { ERRORS } from "../../src/core/kit/errors.ts";
import { type Reply, startApi, type TestApi } from "./test-api.ts";
import { isRecord, pathOf, requestsWith } from "./test-requests.ts";

/** Four times so many: each round has a fresh server, for its state grows. */
const REQUESTS = 5_000;
const SEEDS = [20_260_104, 20_260_105, 20_260_106, 20_260_107];
const ROUND_LIMIT_MS = 300_000;

const wild = fc.record({
  key: fc.constantFrom<string | null>(
    "operator-key",
    "operator-key",
    "operator-key",
    "operator-key",
    "operator-key",
    "submitter-key",
    "agent-key",
    "client-key",
    "viewer-key",
    "wrong",
    null,
  ),
  /** The scope is held, and its epoch is in place of a drawn one: hardly any draw would hit it. */
  isHeld: fc.boolean(),
  /** What the call is about is made first, so that it is there. */
  isPrepared: fc.boolean(),
  idempotencyKey: fc.constantFrom<string | null>(null, null, null, "k-1", "k-2", "a b", "k".repeat(201)),
  role: fc.constantFrom("lead", "lead", "lead", "follow", "alone"),
});

const requests = requestsWith(wild);

let t: TestApi;
beforeEach(async () => {
  t = await startApi({ limits: { adminPerWindow: 1_000_000 } });
});
afterEach(async () => t[Symbol.asyncDispose]());

/** Streams are left as soon as they have begun. */
async function ask(path: string, init: RequestInit): Promise<Reply> {
  const over = new AbortController();
  const response = await fetch(`${t.url}${path}`, { ...init, signal: over.signal });
  const type = response.headers.get("content-type") ?? "";
  const isStream = type.startsWith("text/event-stream");
  const text = isStream ? "" : await response.text();
  if (isStream) over.abort();
  const json = type.startsWith("application/json") && text !== "" ? (JSON.parse(text) as Reply["json"]) : undefined;
  return { status: response.status, headers: response.headers, text, json };
}

const REQUEST = { caller: "fuzz", idempotencyKey: null, bodyHash: "" };

/** Makes what the call is about, and answers how it is called in the path. */
async function prepare(id: RouteId, param: string, body: unknown): Promise<string> {
  const spec = specOf({ kind: "build" });
  switch (id) {
    case "job":
    case "jobLogs":
    case "cancelJob":
    case "retryJob": {
      const [jobId = ""] = await t.jobs.submit(REQUEST, [spec]);
      if (id === "retryJob") await t.jobs.cancel(REQUEST, jobId);
      return jobId;
    }
    case "deleteSchedule": {
      const schedule = { name: "nightly", cron: "0 3 * * *", timeZone: "UTC", spec, overlap: "skip", catchUp: "last" };
      await t.jobs.putSchedule(REQUEST, { ...schedule, paused: false } as Parameters<typeof t.jobs.putSchedule>[1]);
      return "nightly";
    }
    case "removeAgent":
    case "drainAgent":
      await leased();
      return "a-1";
    case "drainNode":
      return "n1";
    case "revokeKey":
      await t.keys.create(REQUEST, { name: "ci", role: "viewer", sha256: "c".repeat(64) });
      return "ci";
    case "revokeCertificate":
      if (isRecord(body)) Object.assign(body, { sha256: "d".repeat(64), id: "spiffe://tenure/agent/ci" });
      return param;
    case "results": {
      const [lease] = await leased();
      if (isRecord(body) && !("results" in body)) {
        const { jobId, jobEpoch, leaseId } = lease!;
        Object.assign(body, { session: "s-1", job_id: jobId, job_epoch: jobEpoch, lease_id: leaseId, leader_epoch: 7 });
      }
      return param;
    }
    case "controllerHeartbeat":
      await t.controllers.register({ id: "far", url: "http://far:1", name: "far", metadata: {} });
      return "far";
    case "value":
    case "deleteValue":
      await t.values.put({ name: "cursor", value: { at: 1 }, ifVersion: null, fence: null });
      return "cursor";
    case "eventsSince":
      return "0";
    case "pauseQueue":
    case "resumeQueue":
      return "default";
    case "putSchedule":
      if (isRecord(body)) Object.assign(body, { cron: "0 3 * * *", spec: { kind: "build" } });
      return "nightly";
    default:
      return param;
  }
}

async function leased() {
  await t.jobs.submit(REQUEST, [specOf({ kind: "fuzz", queue: "never-paused" })]);
  const agent = { name: "a-1", session: "s-1", kinds: ["fuzz"], labels: {}, platform: "linux", capacity: 1 };
  const call = { agent, renew: [], progress: [], logs: [], max: 1, waitMs: 0, ttlMs: 5_000 };
  t.jobs.isQuiet = false;
  return (await t.jobs.lease(call, new AbortController().signal)).leases;
}

async function hold(scope: string): Promise<number> {
  const { role, leaderId } = t.cluster;
  t.cluster.lead();
  const request = { scope, session: "s-1", identity: "i", metadata: {}, ttlMs: 5_000, waitMs: 0 };
  await t.scopes.acquire(request, new AbortController().signal);
  if (role !== "LEADER") t.cluster.follow(leaderId);
  return t.scopes.get(scope)?.epoch ?? 0;
}

/** By route and status, over all rounds. */
const seen = new Map<string, number>();

it.each(SEEDS)(
  `${REQUESTS} requests, each answered as the contract says: seed %i`,
  async (seed) => {
    const answers = new Map(
      Object.entries(ROUTES as Record<string, Route>).map(([id, { answer }]) => [id, answer && shape(answer)]),
    );
    await fc.assert(
      fc.asyncProperty(requests, async ({ id, scope, query, body, wild: { key, role, ...more } }) => {
        const route: Route = ROUTES[id];
        Object.assign(t.cluster, { term: 7 });
        t.cluster.lead();
        const param = more.isPrepared ? await prepare(id, scope, body) : scope;
        if (role !== "lead") t.cluster.follow(role === "follow" ? "n2" : null);
        if (more.isHeld && isRecord(body) && "epoch" in body) body["epoch"] = await hold(scope);
        const before = t.fingerprint();
        const sent = {
          ...(key === null ? {} : { "x-api-key": key }),
          ...(more.idempotencyKey === null ? {} : { "idempotency-key": more.idempotencyKey }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        };
        const init = {
          method: route.method,
          headers: sent,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        };
        const asked = id === "eventsProof" && more.isPrepared ? { sequence: 1 } : query;
        const { status, json, text, headers } = await ask(pathOf(route, param, asked), init);
        const code = status < 400 ? undefined : (json?.["error"] as keyof typeof ERRORS);
        const count = `${id} ${status}`;
        seen.set(count, (seen.get(count) ?? 0) + 1);
        if (code === undefined) {
          expect(status).toBe(200);
          const answer = answers.get(id);
          if (answer && json !== undefined) expect(answer.check(json), text).toMatchObject({ ok: true });
          return;
        }
        expect(ERRORS[code].http, text).toBe(status);
        expect([...COMMON_ERRORS, ...route.errors], text).toContain(code);
        expect(["INTERNAL", "OUTCOME_UNKNOWN"], text).not.toContain(code);
        expect(json?.["code"]).toBe(ERRORS[code].number ?? undefined);
        if (status === 503 || status === 507) expect(headers.get("retry-after")).toBe("1");
        if (code === "BAD_REQUEST") expect(json?.["field"], text).toEqual(expect.any(String));
        expect(t.fingerprint()).toBe(before);
      }),
      { numRuns: REQUESTS, seed, endOnFailure: true },
    );
    expect(t.faults).toEqual([]);
    expect(t.lines).toEqual([]);
  },
  ROUND_LIMIT_MS,
);

it("the rounds together have got through to every route, and were refused in every way", () => {
  // A run in which nothing got through proves nothing (trap 33).
  for (const [id, { errors, identities }] of Object.entries(ROUTES as Record<string, Route>)) {
    // The site is standalone: what belongs to the mesh says so (links-hostile.test.ts sends wrong requests to one that is not).
    // Nobody has a certificate, and no coordinator runs (tc-fuzz.test.ts).
    const standalone = errors.includes("MESH_DISABLED") ? ["200", "501"] : ["200"];
    const through = identities === undefined ? [...standalone, ...(id === "islands" ? ["503"] : [])] : ["403"];
    expect(
      through.reduce((sum, status) => sum + (seen.get(`${id} ${status}`) ?? 0), 0),
      `${id} was never answered with ${through.join(" or ")}: ${JSON.stringify([...seen])}`,
    ).toBeGreaterThan(0);
  }
  for (const count of ["submit 409", "submit 422", "cancelJob 409", "results 409", "lease 403", "createKey 409"]) {
    expect(seen.get(count) ?? 0, `${count}: ${JSON.stringify([...seen])}`).toBeGreaterThan(0);
  }
  for (const count of ["acquire 400", "acquire 409", "acquire 503", "transfer 403", "members 401", "renew 401"]) {
    expect(seen.get(count) ?? 0, `${count}: ${JSON.stringify([...seen])}`).toBeGreaterThan(0);
  }
});
