// The same requests as fuzz.test.ts, at a real server with its real log: it answers each in its own words, goes on, and what
// it refused is in no event. (fuzz.test.ts looks at the API alone, with four times as many, and can play other roles.)

import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { COMMON_ERRORS, type Route, type RouteId, ROUTES } from "../../src/contract/index.ts";
import { type ErrorCode, ERRORS } from "../../src/core/kit/errors.ts";
import {
  CLIENT_KEY,
  OPERATOR_KEY,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  VIEWER_KEY,
} from "../servers/index.ts";
import { EPOCH, isRecord, pathOf, requestsWith } from "./test-requests.ts";

const REQUESTS = 5_000;
const SEED = 20_260_201;
const LIMIT_MS = 300_000;

let cluster: TenureCluster;
let node: TenureNode;
let epoch: number;

beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1 });
  node = cluster.node("n1");
  epoch = (await node.call<{ leader_epoch: number }>("/role", { key: VIEWER_KEY })).body.leader_epoch;
}, LIMIT_MS);

afterAll(() => cluster?.end());

interface WireEvent {
  readonly eventType: string;
  readonly payload: { readonly cause?: string; readonly schedule?: string };
}

/** What they must have answered at least once: a run in which nothing got through, or nothing was refused, proves nothing (trap 33). */
const WANTED = {
  submit: [200, 400, 401, 403, 422],
  lease: [200, 400],
  cancelJob: [200, 409],
  results: [404],
  drainNode: [200],
} satisfies Partial<Record<RouteId, readonly number[]>>;

const KEYS = [OPERATOR_KEY, OPERATOR_KEY, OPERATOR_KEY, CLIENT_KEY, VIEWER_KEY, "wrong", null];
const requests = requestsWith(
  fc.record({
    key: fc.constantFrom(...KEYS),
    idempotencyKey: fc.constantFrom(null, null, "k-1", "k-2", "a b"),
    isPrepared: fc.boolean(),
  }),
  Object.keys(WANTED) as RouteId[],
);

async function look<T>(path: string): Promise<T> {
  return (await node.call<T>(path, { key: OPERATOR_KEY })).body;
}

const lastSequence = async (): Promise<number> =>
  (await look<{ last_sequence: number }>("/v1/stats?consistency=linearizable")).last_sequence;

/** What nobody asks for: leases, timeouts and retentions that end, agents that fall silent, schedules that fire. */
function isByItself({ eventType, payload }: WireEvent): boolean {
  if (["worker:offline", "schedule:fired", "build:forgotten"].includes(eventType)) return true;
  if (eventType === "build:submitted") return payload.schedule !== undefined;
  return ["build:retried", "build:failed", "build:cancelled"].includes(eventType)
    ? ["lost", "timed-out"].includes(payload.cause ?? "")
    : false;
}

async function send(id: RouteId, path: string, body: unknown, headers: Record<string, string>) {
  const over = new AbortController();
  const response = await fetch(`${node.url}${path}`, {
    method: ROUTES[id].method,
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: over.signal,
  });
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/event-stream")) {
    over.abort();
    return { status: response.status, code: undefined, text: "" };
  }
  const text = await response.text();
  const json = type.startsWith("application/json") && text !== "" ? (JSON.parse(text) as { error?: ErrorCode }) : {};
  return { status: response.status, code: response.status < 400 ? undefined : json.error, text };
}

const seen = new Map<string, number>();

it(
  `${REQUESTS} requests: specified answers only, and no event of what was refused`,
  async () => {
    let jobId = "none";
    await fc.assert(
      fc.asyncProperty(requests, async ({ id, scope, query, body, wild }) => {
        const route: Route = ROUTES[id];
        if (isRecord(body) && body["leader_epoch"] === EPOCH) body["leader_epoch"] = epoch;
        const known: Record<string, string> = {
          id: jobId,
          sequence: "0",
          node_id: node.id,
          ...(route.path.startsWith("/v1/values/") ? { name: "cursor" } : {}),
        };
        const [, name = ""] = /:(\w+)/.exec(route.path) ?? [];
        // Another request may have deleted it.
        if (wild.isPrepared && id === "value") {
          await node.call("/v1/values/cursor", { method: "PUT", body: { value: 1 }, key: CLIENT_KEY });
        }
        const param = wild.isPrepared ? (known[name] ?? scope) : scope;
        const asked = wild.isPrepared && id === "eventsProof" ? { sequence: 1 } : query;
        const before = await lastSequence();
        const { status, code, text } = await send(id, pathOf(route, param, asked), body, {
          ...(wild.key === null ? {} : { "x-api-key": wild.key }),
          ...(wild.idempotencyKey === null ? {} : { "idempotency-key": wild.idempotencyKey }),
        });
        seen.set(`${id} ${status}`, (seen.get(`${id} ${status}`) ?? 0) + 1);
        if (code === undefined) {
          // /healthz says 503 in its own form; nothing is critical here.
          expect([id, status, text]).toEqual([id, 200, text]);
          if (id === "submit") jobId = (JSON.parse(text) as { id?: string }).id ?? jobId;
          return;
        }
        expect([...COMMON_ERRORS, ...route.errors], `${id}: ${text}`).toContain(code);
        expect(ERRORS[code].http, text).toBe(status);
        expect(["INTERNAL", "OUTCOME_UNKNOWN"], `${id}: ${text}`).not.toContain(code);
        const after = await lastSequence();
        if (after === before) return;
        const { events } = await look<{ events: WireEvent[] }>(`/api/events/since/${before}`);
        expect(
          events.filter((event) => !isByItself(event)),
          `${id} was refused with ${text}`,
        ).toEqual([]);
      }),
      { numRuns: REQUESTS, seed: SEED, endOnFailure: true },
    );
    expect(node.pid).toBeDefined();
    expect(node.log()).not.toContain("a request failed unforeseen");
    expect(await look("/api/events/verify")).toMatchObject({ valid: true });
    for (const [id, { kind, errors, identities }] of Object.entries(ROUTES) as [string, Route][]) {
      const got = [...seen.keys()].filter((key) => key.startsWith(`${id} `));
      expect(got, `${id} was never asked for`).not.toEqual([]);
      // The site is standalone: what belongs to the mesh says so. It has no coordinator, and nobody has a certificate.
      const through =
        identities !== undefined ? 403 : id === "islands" ? 503 : errors.includes("MESH_DISABLED") ? 501 : 200;
      if (kind !== "write") expect(got, `${id} never got through`).toContain(`${id} ${through}`);
    }
    for (const want of Object.entries(WANTED).flatMap(([id, all]) => all.map((status) => `${id} ${status}`))) {
      expect(seen.get(want) ?? 0, `${want}: ${JSON.stringify([...seen])}`).toBeGreaterThan(0);
    }
  },
  LIMIT_MS,
);
