// Every route is sent what its schemas allow, nearly allow and do not allow at all. It must answer in its own words: no 5xx but
// those it lists, no fault, and whatever is refused has changed nothing.

import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { COMMON_ERRORS, type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import { ERRORS } from "../../src/core/kit/errors.ts";
import { startApi, type TestApi } from "./test-api.ts";

const REQUESTS = 2_000;

interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly maxProperties?: number;
}

const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    "",
    "\0",
    "\ud800",
    -1,
    0,
    1.5,
    2 ** 53,
    1e308,
    null,
    [],
    {},
    "__proto__",
    "x".repeat(5_000),
  ),
);

/** Now and then a name that a pattern of one line does not see, with a value that may be no text. */
const dictionary = fc.oneof(
  { weight: 3, arbitrary: fc.dictionary(fc.string(), fc.string(), { maxKeys: 17 }) },
  {
    weight: 1,
    arbitrary: fc.dictionary(fc.constantFrom("a\nb", "\r", "\u2028", "\u2029"), junk, { minKeys: 1, maxKeys: 2 }),
  },
);

/** Mostly fits, and is at its bounds often. */
function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  const { minimum = 0, maximum = 2 ** 53 - 1 } = schema;
  switch (schema.type) {
    case "integer":
      return fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(minimum, maximum) },
        { weight: 1, arbitrary: fc.constantFrom(minimum - 1, maximum + 1) },
        { weight: 4, arbitrary: fc.integer({ min: minimum, max: Math.min(maximum, 2 ** 31) }) },
      );
    case "boolean":
      return fc.boolean();
    case "string":
      if (schema.pattern !== undefined) return fc.constantFrom("n1", "n2", "n3", "n4", "n9", "N1", "-", "n".repeat(64));
      return fc.oneof(
        fc.constantFrom("s-1", "s-1", "s-1", "s-2"),
        fc.string({ unit: "grapheme", maxLength: (schema.maxLength ?? 20) + 1 }),
      );
    case "object":
      if (schema.properties === undefined) return dictionary;
      return objectOf(schema);
    default:
      return schema.enum === undefined ? junk : fc.constantFrom(...schema.enum, "other");
  }
}

function objectOf({ properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      // A long poll would make the run long; that it ends is tested elsewhere.
      name === "wait_ms"
        ? fc.constantFrom(0, 0, 0, 0, 1, 1, -1, 60_001)
        : fc.oneof({ weight: 24, arbitrary: valueOf(schema) }, { weight: 1, arbitrary: junk }),
    ]),
  );
  const mostly = fc.record(fields, { requiredKeys: [...required] });
  const broken = fc.record({ ...fields, extra: junk }, { requiredKeys: [] });
  return fc.oneof({ weight: 6, arbitrary: mostly }, { weight: 1, arbitrary: broken }, { weight: 1, arbitrary: junk });
}

const wild = fc.record({
  key: fc.constantFrom<string | null>(
    "operator-key",
    "operator-key",
    "operator-key",
    "client-key",
    "viewer-key",
    "wrong",
    null,
  ),
  /** The scope is held, and its epoch stands in place of a drawn one: hardly any draw would hit it. */
  isHeld: fc.boolean(),
  role: fc.constantFrom("lead", "lead", "lead", "follow", "alone"),
});

const requests = fc.oneof(
  ...(Object.keys(ROUTES) as RouteId[]).map((id) => {
    const route: Route = ROUTES[id];
    return fc.record({
      id: fc.constant(id),
      scope: fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom("a", "b") },
        { weight: 1, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 100 }) },
      ),
      query: fc.oneof(
        { weight: 3, arbitrary: fc.constant({}) },
        { weight: 2, arbitrary: objectOf(route.query.schema as Schema) },
      ),
      body: route.body === null ? fc.constant(undefined) : objectOf(route.body.schema as Schema),
      wild,
    });
  }),
);

let t: TestApi;
beforeAll(async () => {
  t = await startApi({ limits: { adminPerWindow: 1_000_000 } });
});
afterAll(async () => t[Symbol.asyncDispose]());

function pathOf(route: Route, scope: string, query: unknown): string {
  const search = new URLSearchParams();
  if (typeof query === "object" && query !== null) {
    for (const [name, value] of Object.entries(query)) search.append(wellFormed(name), wellFormed(String(value)));
  }
  return `${route.path.replace(":scope", encodeURIComponent(wellFormed(scope)))}?${search.toString()}`;
}

async function hold(scope: string): Promise<number> {
  const { role, leaderId } = t.cluster;
  t.cluster.lead();
  const request = { scope, session: "s-1", identity: "i", metadata: {}, ttlMs: 5_000, waitMs: 0 };
  await t.scopes.acquire(request, new AbortController().signal);
  if (role !== "LEADER") t.cluster.follow(leaderId);
  return t.scopes.get(scope)?.epoch ?? 0;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function wellFormed(text: string): string {
  return text.toWellFormed();
}

it(`${REQUESTS} requests, each answered as the contract says`, async () => {
  const seen = new Map<string, number>();
  const answers = new Map(
    Object.entries(ROUTES as Record<string, Route>).map(([id, { answer }]) => [id, answer && shape(answer)]),
  );
  await fc.assert(
    fc.asyncProperty(requests, async ({ id, scope, query, body, wild: { key, role, isHeld } }) => {
      const route: Route = ROUTES[id];
      t.cluster.lead();
      if (role !== "lead") t.cluster.follow(role === "follow" ? "n2" : null);
      if (isHeld && isRecord(body) && "epoch" in body) body["epoch"] = await hold(scope);
      const before = t.fingerprint();
      const { status, json, text, headers } = await t.call(route.method, pathOf(route, scope, query), body, key);
      const code = json?.["error"] as keyof typeof ERRORS | undefined;
      const count = `${id} ${status}`;
      seen.set(count, (seen.get(count) ?? 0) + 1);
      if (code === undefined) {
        expect(status).toBe(200);
        const answer = answers.get(id);
        if (answer) expect(answer.check(json), text).toMatchObject({ ok: true });
        return;
      }
      expect(ERRORS[code].http, text).toBe(status);
      expect([...COMMON_ERRORS, ...route.errors], text).toContain(code);
      expect(["INTERNAL", "OUTCOME_UNKNOWN"], text).not.toContain(code);
      expect(json?.["code"]).toBe(ERRORS[code].number ?? undefined);
      if (status === 503) expect(headers.get("retry-after")).toBe("1");
      if (code === "BAD_REQUEST") expect(json?.["field"], text).toEqual(expect.any(String));
      expect(t.fingerprint()).toBe(before);
    }),
    { numRuns: REQUESTS, seed: 20_260_104, endOnFailure: true },
  );
  expect(t.faults).toEqual([]);
  expect(t.lines).toEqual([]);
  // A run in which nothing got through proves nothing (trap 33).
  for (const id of Object.keys(ROUTES)) {
    expect(
      seen.get(`${id} 200`) ?? 0,
      `${id} was never answered with 200: ${JSON.stringify([...seen])}`,
    ).toBeGreaterThan(0);
  }
  for (const count of ["acquire 400", "acquire 409", "acquire 503", "transfer 403", "members 401", "renew 401"]) {
    expect(seen.get(count) ?? 0, `${count}: ${JSON.stringify([...seen])}`).toBeGreaterThan(0);
  }
});
