// What coordinators refuse before anybody looks at who holds what: bodies with something missing, wrong, unknown, too much or too deep.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Route, type RouteId, ROUTES } from "../../src/contract/index.ts";
import { LEASE_BODY_BYTES_MAX, MEMBER_BODY_BYTES_MAX } from "../../src/contract/tc/limits.ts";
import { ERRORS, type ErrorCode } from "../../src/core/kit/errors.ts";
import { API_URL_LENGTH_MAX, EVENT_DEPTH_MAX, MEMBERS_MAX, REGISTRY_ENTRIES_MAX } from "../../src/core/kit/limits.ts";
import { EMPTY_LEDGER } from "../../src/core/lease/index.ts";
import type { TestApi } from "./test-api.ts";
import { BACKEND, type Got, TestCoordinators, TestIsland } from "./test-coordinators.ts";

const VOTER = { identity: "n2", incarnation: "b2", endpoint: "https://n2:1" };
const ROSTER = { term: 1, version: 1, voters: [VOTER], registry: [] };
const HOLDER = { incarnation: "b2", voter: "n1@a1", tc_cluster_id: "c-1", term: 2 };
const LEASE = { ...HOLDER, ttl_ms: 3_000, roster: ROSTER };

/** Each is fine as it is. */
const BODIES = {
  tcAcquire: { candidate_id: "n2", ...LEASE },
  tcRenew: { leader_id: "n2", ...LEASE, mark: { term: 1, version: 1 } },
  tcRelease: { leader_id: "n2", ...HOLDER },
  tcAnnounce: { self_endpoint: "https://n2:1" },
  tcLeave: {},
  tcRegister: { backend_hash: BACKEND, endpoint: "https://b:1" },
  tcUnregister: { backend_hash: BACKEND, endpoint: "https://b:1" },
} as const;
type Id = keyof typeof BODIES;
const IDS = Object.keys(BODIES) as Id[];

let island: TestIsland;
let api: TestApi;
let coordinators: TestCoordinators;
beforeAll(async () => {
  island = await TestIsland.make();
  coordinators = new TestCoordinators({ seeds: ["https://n1:1", "https://a-seed:1"] });
  api = await island.start(coordinators, { limits: { adminPerWindow: 100_000 } });
});
afterAll(async () => {
  await coordinators.coordinator.stop();
  await api[Symbol.asyncDispose]();
});
beforeEach(() => coordinators.coordinator.members.leave("n2"));

function send(id: Id, body: unknown, as = "server/n2"): Promise<Got> {
  return island.ask(api.port, { as, method: "POST", path: ROUTES[id].path, body });
}

async function refuses(id: Id, body: unknown, code: ErrorCode, field?: string | RegExp): Promise<void> {
  const got = await send(id, body);
  const { json } = got;
  const shown = JSON.stringify([body, json]).slice(0, 2_000);
  expect([got.status, json["error"]], shown).toEqual([ERRORS[code].http, code]);
  expect(json["detail"], shown).toBe(json["message"]);
  if (field instanceof RegExp) expect(json["field"], shown).toMatch(field);
  else if (field !== undefined) expect(json["field"], shown).toBe(field);
  expect([...(ROUTES[id] as Route).errors, "BAD_REQUEST", "PAYLOAD_TOO_LARGE"]).toContain(code);
  // Nothing was done.
  expect(coordinators.coordinator.ledger).toBe(EMPTY_LEDGER);
  expect(coordinators.members().leases.map(({ identity }) => identity)).not.toContain("n2");
}

const MISSING: Readonly<Record<string, ErrorCode>> = {
  candidate_id: "missing_candidate_id",
  leader_id: "missing_leader_id",
  term: "tc_term_required",
  ttl_ms: "invalid_ttl",
  self_endpoint: "missing_self_endpoint",
  backend_hash: "missing_backend_hash",
  endpoint: "missing_endpoint",
};
const INVALID: Readonly<Record<string, ErrorCode>> = {
  candidate_id: "invalid_candidate_id",
  leader_id: "invalid_leader_id",
  term: "invalid_term",
  ttl_ms: "invalid_ttl",
  roster: "invalid_roster",
  self_endpoint: "invalid_self_endpoint",
  backend_hash: "invalid_backend_hash",
  endpoint: "invalid_endpoint",
};

const NO_URL = [
  "n2:1",
  "ftp://n2:1",
  "https://n2:1/x",
  "https://u:p@n2:1",
  "https://n2:1?x",
  `https://${"a".repeat(API_URL_LENGTH_MAX)}`,
  5,
];
const NO_ID = ["N2", "-n2", "n".repeat(64), "n2@b2", "n2\n", 5, {}];
const NO_COUNT = [0, -1, 1.5, 2 ** 53, "2", {}, []];
const WRONG: Readonly<Record<string, readonly unknown[]>> = {
  candidate_id: NO_ID,
  candidate_endpoint: NO_URL,
  leader_id: NO_ID,
  incarnation: ["", "B2", "b".repeat(17), 5],
  voter: ["n1", "n1@", "@a1", "n1@a1@a1", "n1@A1", 5],
  tc_cluster_id: ["", "c 1", "c".repeat(129), 5],
  term: NO_COUNT,
  ttl_ms: NO_COUNT,
  mark: [5, [], {}, { term: 1 }, { term: -1, version: 1 }, { term: 1, version: 0 }, { term: 1, version: 1, more: 1 }],
  self_endpoint: NO_URL,
  backend_hash: ["a".repeat(63), "a".repeat(65), "A".repeat(64), "g".repeat(64), 5],
  endpoint: NO_URL,
};
/** Each is a roster but for one thing: what it is named after. */
const WRONG_ROSTERS: readonly (readonly [string, unknown])[] = [
  ["roster", 5],
  ["roster", []],
  ["roster.term", { ...ROSTER, term: -1 }],
  ["roster.term", { ...ROSTER, term: 2 ** 53 }],
  ["roster.term", { ...ROSTER, term: undefined }],
  ["roster.version", { ...ROSTER, version: 0 }],
  ["roster.version", { ...ROSTER, version: 1.5 }],
  ["roster.recovered_by", { ...ROSTER, recovered_by: "n3" }],
  ["roster.recovered_by", { ...ROSTER, recovered_by: null }],
  ["roster.voters", { ...ROSTER, voters: [] }],
  ["roster.voters", { ...ROSTER, voters: {} }],
  ["roster.voters", { ...ROSTER, voters: undefined }],
  ["roster.voters", { ...ROSTER, voters: [VOTER, VOTER] }],
  ["roster.voters", { ...ROSTER, voters: [VOTER, { ...VOTER, incarnation: "b3" }] }],
  [
    "roster.voters",
    { ...ROSTER, voters: Array.from({ length: MEMBERS_MAX + 1 }, (_, at) => ({ ...VOTER, identity: `v${at}` })) },
  ],
  ["roster.voters[0]", { ...ROSTER, voters: ["n2@b2"] }],
  ["roster.voters[0].identity", { ...ROSTER, voters: [{ ...VOTER, identity: "N2" }] }],
  ["roster.voters[0].incarnation", { ...ROSTER, voters: [{ ...VOTER, incarnation: undefined }] }],
  ["roster.voters[0].endpoint", { ...ROSTER, voters: [{ ...VOTER, endpoint: "n2" }] }],
  ["roster.voters[0].weight", { ...ROSTER, voters: [{ ...VOTER, weight: 2 }] }],
  ["roster.registry", { ...ROSTER, registry: undefined }],
  [
    "roster.registry",
    { ...ROSTER, registry: Array.from({ length: REGISTRY_ENTRIES_MAX + 1 }, () => BODIES.tcRegister) },
  ],
  ["roster.registry[0].backend_hash", { ...ROSTER, registry: [{ ...BODIES.tcRegister, backend_hash: "x" }] }],
  ["roster.registry[0].endpoint", { ...ROSTER, registry: [{ backend_hash: BACKEND }] }],
  ["roster.more", { ...ROSTER, more: 1 }],
];

describe.each(IDS)("%s", (id) => {
  const body: Readonly<Record<string, unknown>> = BODIES[id];
  const { properties, required = [] } = ROUTES[id].body.schema as unknown as {
    properties: object;
    required?: readonly string[];
  };

  it("refuses a body without any of its fields, and one in which it is empty, with the code of that field", async () => {
    for (const name of required) {
      const { [name]: _, ...rest } = body;
      const code = MISSING[name] ?? "BAD_REQUEST";
      await refuses(id, rest, code, name);
      await refuses(id, { ...body, [name]: null }, code, name);
    }
    if (required.length > 0) await refuses(id, {}, MISSING[required[0]!]!, required[0]);
  });

  it("refuses each field that is wrong, with its code and its name", async () => {
    const names = Object.keys(properties).filter((name) => name !== "roster");
    expect(names.filter((name) => WRONG[name] === undefined)).toEqual([]);
    for (const name of names) {
      for (const wrong of WRONG[name]!) {
        const code = wrong === "" ? (MISSING[name] ?? "BAD_REQUEST") : (INVALID[name] ?? "BAD_REQUEST");
        await refuses(id, { ...body, [name]: wrong }, code, new RegExp(`^${name}`));
      }
    }
  });

  it("refuses what it does not know, by name", async () => {
    for (const name of ["more", "Term", "ttl_MS", "self", "constructor", "toString"])
      await refuses(id, { ...body, [name]: 1 }, "BAD_REQUEST", name);
  });

  it("refuses what is no JSON object, and names that would poison one", async () => {
    for (const text of ["", "5", "null", "[]", '"x"', "true"]) {
      if (id === "tcLeave" && text === "") continue;
      const code = text === "" && required.length > 0 ? MISSING[required[0]!]! : "BAD_REQUEST";
      await refuses(id, text, code);
    }
    const good = JSON.stringify(body).slice(0, -1);
    const more = good === "{" ? "" : ",";
    for (const text of [
      "{",
      good,
      `${good}${more}"__proto__":{"polluted":1}}`,
      `${good}${more}"__pro\\u0074o__":{"polluted":1}}`,
      `${good}${more}"constructor":{"prototype":{"polluted":1}}}`,
      `${good}${more}"a":1,"a":1}`,
      "\ufeff{}",
    ])
      await refuses(id, text, "BAD_REQUEST", "body");
    expect(({} as Record<string, unknown>)["polluted"]).toBe(undefined);
  });

  it("refuses JSON of any depth, wherever it is", async () => {
    const field = required[0] ?? "more";
    for (const depth of [EVENT_DEPTH_MAX - 2, EVENT_DEPTH_MAX + 2, 300]) {
      const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const text = JSON.stringify({ ...body, [field]: "@" }).replace('"@"', deep);
      const got = await send(id, text);
      expect([got.status, got.json["error"]], String(depth)).toEqual([
        400,
        expect.stringMatching(/^(BAD_REQUEST|invalid_)/),
      ]);
    }
  });

  it("takes a body as large as its bound, and refuses one that is a byte larger before it is parsed", async () => {
    const bytesMax = ROUTES[id].bodyBytesMax;
    const padded = (bytes: number): string => {
      const text = JSON.stringify({ ...body, more: "" });
      return text.replace('"more":""', `"more":"${"x".repeat(bytes - text.length)}"`);
    };
    await refuses(id, padded(bytesMax), "BAD_REQUEST", "more");
    await refuses(id, padded(bytesMax + 1), "PAYLOAD_TOO_LARGE");
  });

  it("takes no query", async () => {
    const got = await island.ask(api.port, {
      as: "server/n2",
      method: "POST",
      path: `${ROUTES[id].path}?term=1`,
      body,
    });
    expect([got.status, got.json["error"], got.json["field"]]).toEqual([400, "BAD_REQUEST", "term"]);
  });

  it("its good body is good", async () => {
    const { json } = await send(id, body);
    expect(["BAD_REQUEST", ...Object.values(MISSING), ...Object.values(INVALID)]).not.toContain(json["error"]);
    // What it did is undone: a voter that granted nothing, as before.
    if (id !== "tcAcquire") return;
    expect(json["granted"]).toBe(true);
    await send("tcRelease", BODIES.tcRelease);
    await restart();
  });
});

describe.each(["tcAcquire", "tcRenew"] as const)("the roster of %s", (id) => {
  it.each(WRONG_ROSTERS)("with a wrong %s is invalid_roster", async (field, roster) => {
    await refuses(id, { ...BODIES[id], roster }, "invalid_roster", field);
  });
});

it("an island without TLS is registered on loopback only; what is there can be taken out", async () => {
  const of = (endpoint: string): object => ({ backend_hash: BACKEND, endpoint });
  for (const endpoint of ["http://n2:1", "http://10.0.0.1:1", "http://[::2]:1"])
    await refuses("tcRegister", of(endpoint), "invalid_endpoint", "endpoint");
  for (const endpoint of ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1"])
    expect((await send("tcRegister", of(endpoint))).json["error"]).not.toBe("invalid_endpoint");
  expect((await send("tcUnregister", of("http://n2:1"))).json["error"]).not.toBe("invalid_endpoint");
});

it("bodies of leases are bounded by the largest roster, and the others by one address", () => {
  const bounds = Object.fromEntries(IDS.map((id) => [id, ROUTES[id].bodyBytesMax]));
  expect(bounds).toEqual({
    tcAcquire: LEASE_BODY_BYTES_MAX,
    tcRenew: LEASE_BODY_BYTES_MAX,
    tcRelease: MEMBER_BODY_BYTES_MAX,
    tcAnnounce: MEMBER_BODY_BYTES_MAX,
    tcLeave: MEMBER_BODY_BYTES_MAX,
    tcRegister: MEMBER_BODY_BYTES_MAX,
    tcUnregister: MEMBER_BODY_BYTES_MAX,
  });
});

describe("reads take no body and no query", () => {
  it.each(["tcLeader", "tcMembers", "tcBackends", "islands"] as RouteId[])("%s", async (id) => {
    const { path } = ROUTES[id];
    const as = id === "islands" ? "viewer/eve" : "server/n2";
    for (const asked of [
      { as, path: `${path}?term=1` },
      { as, path, body: { term: 1 } },
    ]) {
      const got = await island.ask(api.port, asked);
      expect([got.status, got.json["error"]]).toEqual([400, "BAD_REQUEST"]);
    }
  });
});

/** A voter that has granted something is no longer as the others of this file want it. */
async function restart(): Promise<void> {
  await coordinators.coordinator.stop();
  await api[Symbol.asyncDispose]();
  coordinators = new TestCoordinators({ seeds: ["https://n1:1", "https://a-seed:1"] });
  api = await island.start(coordinators, { limits: { adminPerWindow: 100_000 } });
}
