// Every parameter of every query and path, at its bound and one past it. The table is complete: a parameter that is not in it
// fails the test.

import { describe, expect, it } from "vitest";
import {
  API_KEY_NAME_BYTES_MAX,
  EVENT_ENTITY_BYTES_MAX,
  INTEGER_MAX,
  JOB_ID_BYTES_MAX,
  JOB_NAME_BYTES_MAX,
  SCOPE_BYTES_MAX,
  SCOPE_WAIT_MS_MAX,
  VALUE_NAME_BYTES_MAX,
  VALUES_PER_PAGE_MAX,
} from "../core/kit/limits.ts";
import { typedQuery } from "./shape.ts";
import { type RouteId, ROUTES } from "./routes.ts";
import type { Route } from "./route.ts";
import { TXNS_SHOWN_PER_PAGE_MAX } from "./txn/limits.ts";

const DAY_MS = 86_400_000;
const long = (length: number): string => "x".repeat(length);
/** A list of the same, as long as fits; and one that is one longer than what is allowed. */
const listed = (one: string, bytes: number): [string, string] => {
  const at = `${one},`.repeat(Math.floor((bytes + 1) / (one.length + 1))).slice(0, -1);
  return [at, `${at},${one}`];
};

type Bounds = readonly (readonly [at: string, past: string])[];

const NAME: Bounds = [
  [long(JOB_NAME_BYTES_MAX), long(JOB_NAME_BYTES_MAX + 1)],
  ["x", ""],
];
const SCOPE: Bounds = [
  [long(SCOPE_BYTES_MAX), long(SCOPE_BYTES_MAX + 1)],
  ["x", ""],
  ["...", ".."],
];
const WHOLE: Bounds = [
  ["0", "-1"],
  [String(INTEGER_MAX), String(INTEGER_MAX + 1)],
  ["7", "7.5"],
  ["7", "seven"],
];
const COUNT: Bounds = [...WHOLE.slice(1), ["1", "0"]];
const upTo = (max: number): Bounds => [
  [String(max), String(max + 1)],
  ["1", "0"],
];
const BOOLEAN: Bounds = [
  ["true", "yes"],
  ["false", "0"],
];
const ID: Bounds = [
  ["x".repeat(JOB_ID_BYTES_MAX), "x".repeat(JOB_ID_BYTES_MAX + 1)],
  ["a-B_9", "a.b"],
];

const NODE_ID: Bounds = [
  ["n".repeat(63), "n".repeat(64)],
  ["n-1", "-n"],
  ["n1", "N1"],
];

const TXN_ID: Bounds = [
  ["01890000-0000-7000-8000-00000000000f", "01890000-0000-7000-8000-00000000000F"],
  ["01890000-0000-7000-8000-000000000000", "01890000-0000-4000-8000-000000000000"],
  ["01890000-0000-7000-bfff-000000000000", "01890000-0000-7000-cfff-000000000000"],
  ["01890000-0000-7000-8000-000000000000", "01890000000070008000000000000000"],
];

/** By parameter; where it means something else on one route, by route and parameter. */
const TABLE: Readonly<Record<string, Bounds>> = {
  consistency: [["linearizable", "strong"]],
  max_stale_ms: [
    ["0", "-1"],
    [String(DAY_MS), String(DAY_MS + 1)],
  ],
  wait_ms: [
    ["0", "-1"],
    [String(SCOPE_WAIT_MS_MAX), String(SCOPE_WAIT_MS_MAX + 1)],
  ],
  epoch: WHOLE,
  held: BOOLEAN,
  leader_epoch: COUNT,
  state: [listed("pending", 128), ["pending", "pending,"], ["pending", "waiting"]],
  kind: NAME,
  queue: NAME,
  agent: NAME,
  name: NAME,
  node_id: NODE_ID,
  after: NAME,
  entity: [[long(JOB_NAME_BYTES_MAX), long(JOB_NAME_BYTES_MAX + 1)]],
  search: [
    [long(256), long(257)],
    ["x", ""],
  ],
  cursor: [[long(512), long(513)]],
  attempt: COUNT,
  offset: WHOLE,
  follow: BOOLEAN,
  since: WHOLE,
  since_hash: [
    ["0f".repeat(32), "0f".repeat(32) + "0"],
    ["0f".repeat(32), "0F".repeat(32)],
    ["0f".repeat(32), ""],
  ],
  ids: [["chained", "both"]],
  type: [listed("build:completed", 512), ["build:*", "build"], ["build:*", "*"]],
  entity_type: [["build", "job"]],
  sequence: COUNT,
  from_size: COUNT,
  tree_size: COUNT,
  from: COUNT,
  to: COUNT,
  line: [
    [`${"s".repeat(63)}.${"0f".repeat(16)}`, `${"s".repeat(64)}.${"0f".repeat(16)}`],
    [`s.${"0f".repeat(16)}`, `s.${"0F".repeat(16)}`],
    [`s.${"0f".repeat(16)}`, "s"],
  ],
  "meshPages.after": WHOLE,
  "eventsSince.line": [["own", "other"]],
  "eventsVerify.line": [["own", "other"]],
  id: ID,
  "controllerHeartbeat.id": NODE_ID,
  "approveSite.id": NODE_ID,
  "evictSite.id": NODE_ID,
  all: BOOLEAN,
  scope: SCOPE,
  "scopes.after": [[long(SCOPE_BYTES_MAX), long(SCOPE_BYTES_MAX + 1)]],
  "scopes.limit": upTo(256),
  site: [
    ["s".repeat(63), "s".repeat(64)],
    ["s-1", "-s"],
    ["s1", "S1"],
  ],
  "jobs.limit": upTo(200),
  "meshJobs.limit": upTo(200),
  "meshAgents.limit": upTo(200),
  "meshEvents.limit": upTo(200),
  "meshEvents.type": [
    [`b${"a".repeat(31)}:s${"a".repeat(31)}`, `b${"a".repeat(32)}:submitted`],
    ["withheld", "build"],
  ],
  "meshEvents.entity": [[long(EVENT_ENTITY_BYTES_MAX), long(EVENT_ENTITY_BYTES_MAX + 1)]],
  after_arrival: WHOLE,
  "agents.limit": upTo(500),
  "queues.limit": upTo(500),
  "schedules.limit": upTo(500),
  "eventsSince.limit": upTo(1_000),
  "eventsSince.sequence": [
    ["0", "-1"],
    ["9".repeat(15), "9".repeat(16)],
  ],
  prefix: [
    [long(VALUE_NAME_BYTES_MAX), long(VALUE_NAME_BYTES_MAX + 1)],
    ["", "\ud800"],
  ],
  "values.after": [[long(VALUE_NAME_BYTES_MAX), long(VALUE_NAME_BYTES_MAX + 1)]],
  "values.limit": upTo(VALUES_PER_PAGE_MAX),
  "value.name": SCOPE,
  "putValue.name": SCOPE,
  "deleteValue.name": SCOPE,
  "deleteValue.epoch": COUNT,
  if_version: WHOLE,
  "watchValues.after": WHOLE,
  in_doubt: BOOLEAN,
  "txns.after": TXN_ID,
  "txns.limit": upTo(TXNS_SHOWN_PER_PAGE_MAX),
  "txnById.id": TXN_ID,
  "revokeKey.name": [
    ["x".repeat(API_KEY_NAME_BYTES_MAX), "x".repeat(API_KEY_NAME_BYTES_MAX + 1)],
    ["a.b_c-D", "a b"],
    ["anonymous2", "anonymous"],
  ],
};

const propertiesOf = (schema: unknown): string[] => Object.keys((schema as { properties?: object }).properties ?? {});
const cases = (Object.entries(ROUTES) as [RouteId, Route][]).flatMap(([id, { query, params }]) => [
  ...propertiesOf(query.schema).map((name) => ({ id, place: "query" as const, name })),
  ...(params === null ? [] : propertiesOf(params.schema).map((name) => ({ id, place: "params" as const, name }))),
]);

/** The fields that are wrong, but for those that the route needs too and that are not given here. */
function mistakes({ id, place, name }: (typeof cases)[number], value: string): string[] {
  const route: Route = ROUTES[id];
  const shape = place === "query" ? route.query : route.params!;
  const given = place === "query" ? typedQuery(shape, { [name]: value }) : { [name]: value };
  const result = shape.check(given);
  const required = (shape.schema as { required?: readonly string[] }).required ?? [];
  return result.ok
    ? []
    : result.mistakes.map(({ field }) => field).filter((field) => field === name || !required.includes(field));
}

describe("parameters", () => {
  it("are all in the table", () => {
    expect(cases.length).toBeGreaterThan(80);
    const missing = cases.filter(({ id, name }) => (TABLE[`${id}.${name}`] ?? TABLE[name]) === undefined);
    expect(missing).toEqual([]);
  });

  it.each(cases)("$id: $name is taken at its bound and refused one past it, by name", (one) => {
    for (const [at, past] of TABLE[`${one.id}.${one.name}`] ?? TABLE[one.name] ?? []) {
      expect([one.name, at, mistakes(one, at)]).toEqual([one.name, at, []]);
      expect([one.name, past, mistakes(one, past)]).toEqual([one.name, past, [one.name]]);
    }
  });
});
