// What the routes of transactions refuse before anybody looks at what is held or decided: bodies with something missing, wrong, unknown, too much or too
// deep. Each mistake has its code and names its field, and nothing reaches whoever decides.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Route, type RouteId, ROUTES } from "../../src/contract/index.ts";
import {
  TXN_BATCH_BODY_BYTES_MAX,
  TXN_BODY_BYTES_MAX,
  TXN_CALL_BODY_BYTES_MAX,
  TXN_NOTE_BODY_BYTES_MAX,
} from "../../src/contract/txn/limits.ts";
import { ERRORS, type ErrorCode } from "../../src/core/kit/errors.ts";
import {
  EVENT_DEPTH_MAX,
  JSON_DEPTH_MAX,
  SCOPE_BYTES_MAX,
  TXN_BATCH_MAX,
  TXN_BY_BYTES_MAX,
  TXN_MESSAGE_BYTES_MAX,
  TXN_OPERATIONS_MAX,
  TXN_PARTICIPANTS_MAX,
  TXN_REQUIRES_MAX,
  VALUE_BYTES_MAX,
  VALUE_NAME_BYTES_MAX,
} from "../../src/core/kit/limits.ts";
import type { TestApi } from "./test-api.ts";
import { type Got, TestIsland } from "./test-coordinators.ts";
import { HERE, TestDecider, TestParticipant, THERE, TXN, txnId, viewOf } from "./test-transactions.ts";

const PUT = { op: "value.put", name: "x", value: 1 };
const HEADER = {
  txn_id: TXN,
  home_backend_hash: THERE,
  participants: [HERE, THERE],
  digest: "d".repeat(64),
  timeout_ms: 5_000,
  by: "spiffe://tenure/tc/payments",
};
const FENCE = { tc_term: 3, tc_cluster_id: "c-1", recovered_by: "n2@b2" };
const TARGET = { target_backend_hash: HERE };
const PREPARE = { ...TARGET, ...FENCE, txn: HEADER, operations: [PUT] };

/** Each is fine as it is. */
const BODIES = {
  txn: {
    txn_id: TXN,
    home: HERE,
    timeout_ms: 5_000,
    require: [{ backend_hash: HERE, scope: "p", epoch: 4 }],
    participants: [{ backend_hash: HERE, operations: [PUT] }],
  },
  stageTxn: { txn_id: TXN, home_backend_hash: HERE, ...TARGET, operations: [PUT], expires_in_ms: 9_000 },
  decideTxn: {
    txn_id: TXN,
    home_backend_hash: HERE,
    state: "commit",
    participants: [THERE, HERE],
    expires_at_unix: 1_900_000_000,
  },
  prepareTxn: PREPARE,
  commitTxn: { ...PREPARE, require: [{ scope: "p", epoch: 4 }] },
  rollbackTxn: { ...TARGET, ...FENCE, txn: HEADER, reason: { code: "txn_locked", message: "m", backend_hash: THERE } },
  inquireTxn: { ...TARGET, txn: HEADER },
  settledTxns: { ...TARGET, from_backend_hash: THERE, ids: [TXN, txnId(2)] },
  recoverTxns: { ...TARGET, ...FENCE, after: TXN },
  batchTxns: { ...TARGET, requests: [{ call: "inquire", body: { ...TARGET, txn: HEADER } }] },
  replayTxn: { txn_id: TXN, force: "committed" },
} as const;
type Id = keyof typeof BODIES;
const IDS = Object.keys(BODIES) as Id[];

let island: TestIsland;
let api: TestApi;
const decider = new TestDecider();
const participant = new TestParticipant();
participant.views = [viewOf()];
beforeAll(async () => {
  island = await TestIsland.make();
  api = await island.start(undefined, {
    transactions: participant,
    txnDecider: decider,
    limits: { adminPerWindow: 100_000 },
  });
});
afterAll(() => api?.[Symbol.asyncDispose]());

const asOf = (id: Id): string => (id === "replayTxn" ? "operator/eve" : "server/n2");

function send(id: Id, body: unknown): Promise<Got> {
  return island.ask(api.port, { as: asOf(id), method: "POST", path: ROUTES[id].path, body });
}

const reached = (): number =>
  participant.asked.length + participant.replayed.length + decider.asked.length + decider.staged.length;

async function refuses(id: Id, body: unknown, code: ErrorCode, field?: string | RegExp): Promise<void> {
  const before = reached();
  const { status, json } = await send(id, body);
  const shown = JSON.stringify([body, json]).slice(0, 2_000);
  expect([status, json["error"]], shown).toEqual([ERRORS[code].http, code]);
  expect(json["detail"], shown).toBe(json["message"]);
  if (field instanceof RegExp) expect(json["field"], shown).toMatch(field);
  else if (field !== undefined) expect(json["field"], shown).toBe(field);
  expect([...(ROUTES[id] as Route).errors, "BAD_REQUEST", "PAYLOAD_TOO_LARGE"]).toContain(code);
  expect(reached(), shown).toBe(before);
}

const CODES: Readonly<Record<string, readonly [missing: ErrorCode, invalid: ErrorCode]>> = {
  txn_id: ["missing_txn_id", "invalid_txn_id"],
  ids: ["missing_txn_id", "invalid_txn_id"],
  home: ["invalid_home", "invalid_home"],
  home_backend_hash: ["invalid_home", "invalid_home"],
  timeout_ms: ["invalid_timeout", "invalid_timeout"],
  expires_in_ms: ["invalid_timeout", "invalid_timeout"],
  expires_at_unix: ["invalid_timeout", "invalid_timeout"],
  require: ["invalid_require", "invalid_require"],
  participants: ["missing_participants", "invalid_participants"],
  operations: ["missing_operations", "invalid_operations"],
  state: ["missing_state", "invalid_state"],
  force: ["invalid_state", "invalid_state"],
  target_backend_hash: ["missing_backend_hash", "invalid_backend_hash"],
  from_backend_hash: ["missing_backend_hash", "invalid_backend_hash"],
  txn: ["missing_header", "invalid_header"],
  tc_term: ["tc_term_required", "invalid_term"],
};
const OTHERS = ["BAD_REQUEST", "BAD_REQUEST"] as const;

const NO_HASH = ["a".repeat(63), "a".repeat(65), "A".repeat(64), "g".repeat(64), `${"a".repeat(64)}\n`, 5, {}];
const NO_ID = [
  `${TXN.slice(0, -1)}A`,
  TXN.replaceAll("-", ""),
  TXN.replace("-7", "-4"),
  TXN.replace("-8", "-c"),
  `${TXN}\n`,
  5,
  {},
  [],
];
const NO_MS = [0, 999, 60_001, 5_000.5, "5000", {}, []];
const many = <T>(count: number, one: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => one(at));
const hashes = (count: number): string[] => many(count, (at) => at.toString(16).padStart(64, "0"));
/** Where null is as good as nothing, it is not among these. */
const WRONG: Readonly<Record<string, readonly unknown[]>> = {
  txn_id: NO_ID,
  home: NO_HASH,
  home_backend_hash: NO_HASH,
  target_backend_hash: NO_HASH,
  from_backend_hash: NO_HASH,
  timeout_ms: NO_MS,
  expires_in_ms: [0, -1, 60_001, 1.5, "9000", {}],
  expires_at_unix: [-1, 1.5, 2 ** 53, "1900000000", {}],
  state: ["committed", "Commit", 5, {}],
  force: ["commit", "rollback", "rolled-back", true, 5],
  tc_term: [0, -1, 1.5, 2 ** 53, "3", {}],
  tc_cluster_id: ["c 1", "c".repeat(129), 5],
  recovered_by: ["n2", "n2@", "@b2", "n2@B2", 5],
  after: NO_ID,
  ids: [5, {}, [], [5], ["x"], [TXN, "x"], many(TXN_BATCH_MAX + 1, (at) => txnId(at))],
  require: [
    5,
    {},
    [5],
    [{}],
    [{ backend_hash: HERE, scope: "", epoch: 4 }],
    [{ backend_hash: HERE, scope: "..", epoch: 4 }],
    [{ backend_hash: HERE, scope: "s".repeat(SCOPE_BYTES_MAX + 1), epoch: 4 }],
    [{ backend_hash: HERE, scope: "p", epoch: 0 }],
    [{ backend_hash: HERE, scope: "p", epoch: 4, more: 1 }],
    many(TXN_REQUIRES_MAX + 1, () => ({ backend_hash: HERE, scope: "p", epoch: 4 })),
  ],
  reason: [
    5,
    [],
    {},
    { code: "txn_locked" },
    { code: "", message: "m" },
    { code: "1", message: "m" },
    { code: "x", message: "m".repeat(TXN_MESSAGE_BYTES_MAX + 1) },
    { code: "x", message: "m", backend_hash: "x" },
    { code: "x", message: "m", more: 1 },
  ],
  requests: [
    5,
    {},
    [],
    [5],
    [{}],
    [{ call: "stage", body: {} }],
    [{ call: "recover", body: {} }],
    [{ call: "inquire" }],
    [{ call: "inquire", body: 5 }],
    [{ call: "inquire", body: [] }],
    [{ call: "inquire", body: {}, more: 1 }],
    many(TXN_BATCH_MAX + 1, () => BODIES.batchTxns.requests[0]),
  ],
};
const WRONG_ISLANDS = [5, {}, [], [5], ["x"], [HERE, HERE], hashes(TXN_PARTICIPANTS_MAX + 1)];

const JOB = { op: "job.submit", job: { kind: "mail" } };
const ACQUIRE = { op: "scope.acquire", scope: "p", session: "s", identity: "i", ttl_ms: 5_000 };
const RELEASE = { op: "scope.release", scope: "p", epoch: 3 };
const CHECK = { op: "value.check", name: "x", if_version: 0 };
const DELETE = { op: "value.delete", name: "x" };
const deep = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
const GOOD_OPERATIONS: readonly (readonly object[])[] = [
  [PUT],
  [{ ...PUT, value: null, if_version: 0 }],
  [{ ...PUT, value: deep(JSON_DEPTH_MAX) }],
  [{ ...PUT, value: "x".repeat(VALUE_BYTES_MAX - 2) }],
  [{ ...PUT, name: "n".repeat(VALUE_NAME_BYTES_MAX) }],
  [DELETE, { ...CHECK, name: "y" }],
  [RELEASE, { ...ACQUIRE, scope: "q", metadata: { a: "b" } }],
  // A value and a scope of one name; jobs that are the same.
  [{ ...PUT, name: "p" }, RELEASE, JOB, JOB],
  many(TXN_OPERATIONS_MAX, (at) => ({ ...DELETE, name: `v${at}` })),
];
/** Each is a list of operations but for one thing: what the field is called after the list. */
const WRONG_OPERATIONS: readonly (readonly [string, unknown])[] = [
  ["", 5],
  ["", {}],
  ["", []],
  ["", many(TXN_OPERATIONS_MAX + 1, (at) => ({ ...DELETE, name: `v${at}` }))],
  ["", [PUT, DELETE]],
  ["", [CHECK, PUT]],
  ["", [RELEASE, ACQUIRE]],
  ["[0]", [5]],
  ["[0]", [null]],
  ["[0].op", [{}]],
  ["[0].op", [{ ...PUT, op: "value.take" }]],
  ["[0].op", [{ ...PUT, op: "constructor" }]],
  ["[0].op", [{ ...PUT, op: 5 }]],
  ["[1]", [PUT, { ...RELEASE, epoch: 0 }]],
  ...[
    { ...PUT, value: undefined },
    { ...PUT, name: "" },
    { ...PUT, name: ".." },
    { ...PUT, name: "\0" },
    { ...PUT, name: "n".repeat(VALUE_NAME_BYTES_MAX + 1) },
    { ...PUT, name: undefined },
    { ...PUT, value: "x".repeat(VALUE_BYTES_MAX - 1) },
    { ...PUT, value: deep(JSON_DEPTH_MAX + 1) },
    { ...PUT, value: 2 ** 53 },
    { ...PUT, value: "\ud800" },
    { ...PUT, if_version: -1 },
    { ...PUT, if_version: null },
    { ...PUT, epoch: 4 },
    { ...DELETE, value: 1 },
    { ...DELETE, scope: "p" },
    { ...CHECK, if_version: undefined },
    { ...CHECK, if_version: 1.5 },
    { ...RELEASE, epoch: undefined },
    { ...RELEASE, scope: "." },
    { ...RELEASE, session: "s" },
    { ...ACQUIRE, session: undefined },
    { ...ACQUIRE, identity: "" },
    { ...ACQUIRE, ttl_ms: 999 },
    { ...ACQUIRE, ttl_ms: 600_001 },
    { ...ACQUIRE, wait_ms: 0 },
    { ...ACQUIRE, metadata: { a: 1 } },
    { op: "job.submit" },
    { ...JOB, job: {} },
    { ...JOB, job: { kind: "" } },
    { ...JOB, job: { kind: "mail", leader_epoch: 1 } },
    { ...JOB, job: { kind: "mail", attempts_max: 0 } },
    { ...JOB, job: { kind: "mail", backoff: { base_ms: 2, max_ms: 1 } } },
    { ...JOB, kind: "mail" },
  ].map((one) => ["[0]", [one]] as const),
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
      const [code] = CODES[name] ?? OTHERS;
      await refuses(id, rest, code, name);
      await refuses(id, { ...body, [name]: null }, code, name);
    }
    const [first = ""] = required;
    await refuses(id, {}, (CODES[first] ?? OTHERS)[0], first);
  });

  it("refuses each field that is wrong, with its code and its name", async () => {
    const own = new Set(["participants", "operations", "txn"]);
    for (const name of Object.keys(properties).filter((one) => !own.has(one))) {
      expect(WRONG[name], name).toBeDefined();
      const [missing, invalid] = CODES[name] ?? OTHERS;
      for (const wrong of [...WRONG[name]!, ""]) {
        await refuses(id, { ...body, [name]: wrong }, wrong === "" ? missing : invalid, new RegExp(`^${name}`));
      }
    }
  });

  it("refuses what it does not know, by name", async () => {
    for (const name of ["more", "Txn_id", "tc_terms", "self", "constructor", "toString"])
      await refuses(id, { ...body, [name]: 1 }, "BAD_REQUEST", name);
  });

  it("refuses what is no JSON object, and names that would poison one", async () => {
    const [first = ""] = required;
    for (const text of ["", "5", "null", "[]", '"x"', "true"])
      await refuses(id, text, text === "" ? (CODES[first] ?? OTHERS)[0] : "BAD_REQUEST");
    const good = JSON.stringify(body).slice(0, -1);
    for (const text of [
      "{",
      good,
      `${good},"__proto__":{"polluted":1}}`,
      `${good},"__pro\\u0074o__":{"polluted":1}}`,
      `${good},"constructor":{"prototype":{"polluted":1}}}`,
      `${good},"a":1,"a":1}`,
      "\ufeff{}",
    ])
      await refuses(id, text, "BAD_REQUEST", "body");
    expect(({} as Record<string, unknown>)["polluted"]).toBe(undefined);
  });

  it("refuses JSON of any depth, wherever it is", async () => {
    const [first = ""] = required;
    for (const depth of [EVENT_DEPTH_MAX - 2, EVENT_DEPTH_MAX + 2, 300]) {
      const text = JSON.stringify({ ...body, [first]: "@" }).replace('"@"', `${"[".repeat(depth)}${"]".repeat(depth)}`);
      const { status, json } = await send(id, text);
      expect([status, json["error"]], String(depth)).toEqual([400, expect.stringMatching(/^(BAD_REQUEST|invalid_)/)]);
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
    const { path } = ROUTES[id];
    const got = await island.ask(api.port, { as: asOf(id), method: "POST", path: `${path}?txn_id=${TXN}`, body });
    expect([got.status, got.json["error"], got.json["field"]]).toEqual([400, "BAD_REQUEST", "txn_id"]);
  });

  it("its good body is good, and so it is without what may be left out, or with null there", async () => {
    const optional = Object.keys(properties).filter((name) => !required.includes(name));
    const least = Object.fromEntries(required.map((name) => [name, body[name]]));
    for (const one of [body, least]) expect((await send(id, one)).status, JSON.stringify(one)).toBe(200);
    for (const name of optional.filter((one) => !["operations", "require", "recovered_by", "force"].includes(one)))
      expect((await send(id, { ...body, [name]: null })).status, name).toBe(200);
  });
});

describe.each(["stageTxn", "prepareTxn", "commitTxn", "txn"] as const)("the operations of %s", (id) => {
  const isNested = id === "txn";
  const within = (operations: unknown): object =>
    isNested ? { ...BODIES.txn, participants: [{ backend_hash: HERE, operations }] } : { ...BODIES[id], operations };
  const at = isNested ? "participants[0].operations" : "operations";
  const code = isNested ? "invalid_participants" : "invalid_operations";

  it("each that may be asked is taken", async () => {
    for (const operations of GOOD_OPERATIONS) {
      const { status, json } = await send(id, within(operations));
      expect([status, json["message"]], JSON.stringify(operations).slice(0, 200)).toEqual([200, undefined]);
    }
  });

  it("each that is wrong is refused by its place, with what is wrong", async () => {
    // Home may have none.
    const wrong = WRONG_OPERATIONS.filter(([, all]) => id !== "commitTxn" || !Array.isArray(all) || all.length > 0);
    for (const [field, operations] of wrong) await refuses(id, within(operations), code, `${at}${field}`);
  });
});

it("what is wrong with an operation is told of the kind that is meant alone", async () => {
  const operations = [{ ...ACQUIRE, ttl_ms: 5, mode: "x" }];
  for (const { json } of [
    await send("stageTxn", { ...BODIES.stageTxn, operations }),
    await send("prepareTxn", { ...PREPARE, operations }),
  ])
    expect(json["message"]).toBe("operations[0] is no scope.acquire: mode is not known; ttl_ms must be at least 1000.");
});

it("home may have no part in a transaction but the decision; to prepare nothing is nothing that is asked", async () => {
  expect((await send("commitTxn", { ...BODIES.commitTxn, operations: [] })).status).toBe(200);
  expect(participant.asked.at(-1)).toMatchObject({ kind: "commit", operations: [] });
  await refuses("prepareTxn", { ...BODIES.prepareTxn, operations: [] }, "invalid_operations", "operations");
});

it("epochs that a decision requires are bounded", async () => {
  const require = many(TXN_REQUIRES_MAX + 1, () => ({ scope: "p", epoch: 4 }));
  await refuses("commitTxn", { ...BODIES.commitTxn, require }, "invalid_require", "require");
  expect((await send("commitTxn", { ...BODIES.commitTxn, require: require.slice(1) })).status).toBe(200);
});

describe("the participants", () => {
  it("of a transaction: each island once, with operations, and not too many", async () => {
    const one = { backend_hash: HERE, operations: [PUT] };
    const too = hashes(TXN_PARTICIPANTS_MAX + 1).map((hash) => ({ ...one, backend_hash: hash }));
    for (const [participants, field] of [
      [5, "participants"],
      [[], "participants"],
      [[one, one], "participants"],
      [too, "participants"],
      [[5], "participants[0]"],
      [[{ operations: [PUT] }], "participants[0].backend_hash"],
      [[{ ...one, backend_hash: "x" }], "participants[0].backend_hash"],
      [[{ backend_hash: HERE }], "participants[0].operations"],
      [[{ ...one, more: 1 }], "participants[0].more"],
    ] as const)
      await refuses("txn", { ...BODIES.txn, participants }, "invalid_participants", field);
    expect((await send("txn", { ...BODIES.txn, participants: too.slice(1) })).status).toBe(200);
  });

  it("of a decision: each island once, in any order", async () => {
    for (const participants of WRONG_ISLANDS)
      await refuses("decideTxn", { ...BODIES.decideTxn, participants }, "invalid_participants", /^participants/);
    const all = hashes(TXN_PARTICIPANTS_MAX).toReversed();
    expect((await send("decideTxn", { ...BODIES.decideTxn, participants: all })).status).toBe(200);
  });
});

describe.each(["prepareTxn", "commitTxn", "rollbackTxn", "inquireTxn"] as const)("the header of %s", (id) => {
  it("is whole, and right", async () => {
    const wrong: Readonly<Record<string, readonly unknown[]>> = {
      txn_id: NO_ID,
      home_backend_hash: NO_HASH,
      participants: [...WRONG_ISLANDS, [THERE, HERE]],
      digest: NO_HASH,
      timeout_ms: NO_MS,
      by: ["", "b".repeat(TXN_BY_BYTES_MAX + 1), "\0", 5],
    };
    expect(Object.keys(wrong).toSorted()).toEqual(Object.keys(HEADER).toSorted());
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of [...values, undefined, null])
        await refuses(
          id,
          { ...BODIES[id], txn: { ...HEADER, [name]: value } },
          "invalid_header",
          new RegExp(`^txn.${name}`),
        );
    }
    for (const txn of [5, [], {}]) await refuses(id, { ...BODIES[id], txn }, "invalid_header", /^txn/);
    await refuses(id, { ...BODIES[id], txn: { ...HEADER, more: 1 } }, "invalid_header", "txn.more");
  });
});

it("bodies are bounded by the operations of one transaction, by several calls together, and by ids", () => {
  const bounds = Object.fromEntries(IDS.map((id) => [id, ROUTES[id].bodyBytesMax]));
  expect(bounds).toEqual({
    txn: TXN_BODY_BYTES_MAX,
    stageTxn: TXN_BODY_BYTES_MAX,
    decideTxn: TXN_NOTE_BODY_BYTES_MAX,
    prepareTxn: TXN_CALL_BODY_BYTES_MAX,
    commitTxn: TXN_CALL_BODY_BYTES_MAX,
    rollbackTxn: TXN_NOTE_BODY_BYTES_MAX,
    inquireTxn: TXN_NOTE_BODY_BYTES_MAX,
    settledTxns: TXN_NOTE_BODY_BYTES_MAX,
    recoverTxns: TXN_NOTE_BODY_BYTES_MAX,
    batchTxns: TXN_BATCH_BODY_BYTES_MAX,
    replayTxn: TXN_NOTE_BODY_BYTES_MAX,
  });
});

it("the largest bodies without operations fit", async () => {
  const all = hashes(TXN_PARTICIPANTS_MAX);
  const txn = { ...HEADER, participants: all, by: "b".repeat(TXN_BY_BYTES_MAX) };
  const fence = {
    tc_term: Number.MAX_SAFE_INTEGER,
    tc_cluster_id: "c".repeat(128),
    recovered_by: `${"n".repeat(63)}@${"f".repeat(16)}`,
  };
  // As JSON escapes it: six characters for each.
  const reason = { code: "x".repeat(64), message: "\u0001".repeat(TXN_MESSAGE_BYTES_MAX / 2), backend_hash: HERE };
  for (const [id, body] of [
    ["rollbackTxn", { ...TARGET, ...fence, txn, reason }],
    ["inquireTxn", { ...TARGET, txn }],
    ["settledTxns", { ...TARGET, from_backend_hash: THERE, ids: many(TXN_BATCH_MAX, (at) => txnId(at)) }],
    ["decideTxn", { ...BODIES.decideTxn, participants: all }],
    ["recoverTxns", { ...TARGET, ...fence, after: TXN }],
  ] as const)
    expect((await send(id, body)).status, id).toBe(200);
});

describe("reads take no body, and no query but theirs", () => {
  it.each(["txns", "txnById"] as RouteId[])("%s", async (id) => {
    const path = ROUTES[id].path.replace(":id", TXN);
    for (const asked of [
      { as: "operator/eve", path: `${path}?term=1` },
      { as: "operator/eve", path, body: { term: 1 } },
      { as: "operator/eve", path: `${path}?consistency=strong` },
    ]) {
      const got = await island.ask(api.port, asked);
      expect([got.status, got.json["error"]]).toEqual([400, "BAD_REQUEST"]);
    }
  });
});
