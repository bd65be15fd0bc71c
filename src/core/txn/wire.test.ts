// What is written on one side is read on the other: every request, every answer; and what is none is read as none.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { specOf } from "../../contract/jobs/wire.ts";
import type { Route } from "../../contract/route.ts";
import { shape } from "../../contract/shape.ts";
import { TXN_BATCH_BODY_BYTES_MAX, TXN_CALL_BODY_BYTES_MAX } from "../../contract/txn/limits.ts";
import { TXN_ROUTES } from "../../contract/txn/routes.ts";
import type { TxnBody, TxnDecide, TxnOutcome } from "../../ports/transactions.ts";
import { canonicalJson } from "../events/index.ts";
import { type ErrorCode, ERRORS } from "../kit/errors.ts";
import type { Json } from "../kit/json.ts";
import {
  INTEGER_MAX,
  JOB_PAYLOAD_BYTES_MAX,
  TXN_BATCH_BYTES_MAX,
  TXN_BATCH_MAX,
  TXN_BYTES_MAX,
  TXN_MESSAGE_BYTES_MAX,
  TXN_OPERATIONS_MAX,
  TXN_PARTICIPANTS_MAX,
  TXN_REQUIRES_MAX,
  TXNS_PER_PAGE_MAX,
  VALUE_BYTES_MAX,
} from "../kit/limits.ts";
import type { TxnAnswer, TxnHeader, TxnOperation, TxnPhase, TxnReason, TxnRequest, TxnResult } from "./model.ts";
import {
  answerBody,
  answerOf,
  batchAnswersOf,
  decidedBody,
  decidedOf,
  elsewhereOf,
  errorOf,
  outcomeBody,
  outcomeOf,
  TXN_REFUSALS,
  type TxnWireAnswer,
} from "./wire-answers.ts";
import {
  batchCall,
  type BatchedBody,
  batchedOf,
  type BatchedRequest,
  forwardedDecide,
  forwardedRun,
  ON_BEHALF_OF_HEADER,
  recoverOf,
  requestBytes,
  requestCall,
  stageOf,
  TXN_FORWARDED_HEADER,
  txnBodyOf,
  txnDecideOf,
  type TxnWireCall,
} from "./wire-calls.ts";
import { type OperationReaders, operationsBytes } from "./wire-operations.ts";

type Job = Parameters<typeof specOf>[0];

const encoder = new TextEncoder();
const data = (value: Json): Uint8Array => encoder.encode(canonicalJson(value, INTEGER_MAX));
const READERS: OperationReaders<Job> = { data, spec: specOf };
const HERE = "a".repeat(64);
const ID = "01890000-0000-7000-8000-000000000001";
const ROUTE_OF = {
  "/v1/txn/prepare": TXN_ROUTES.prepareTxn,
  "/v1/txn/commit": TXN_ROUTES.commitTxn,
  "/v1/txn/rollback": TXN_ROUTES.rollbackTxn,
  "/v1/txn/inquire": TXN_ROUTES.inquireTxn,
  "/v1/txn/settled": TXN_ROUTES.settledTxns,
  "/v1/txn/stage": TXN_ROUTES.stageTxn,
  "/v1/txn/recover": TXN_ROUTES.recoverTxns,
} as const satisfies Readonly<Record<string, Route>>;

function sent<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** As the route of this call takes it. */
function taken(route: Route, body: unknown): never {
  const arrived = sent(body);
  const checked = route.body?.check(arrived);
  expect(checked, JSON.stringify(arrived).slice(0, 2_000)).toEqual({ ok: true, value: arrived });
  return arrived as never;
}

function received({ method, path, body, headers }: TxnWireCall): readonly [target: string, request: TxnRequest] {
  const route = ROUTE_OF[path as keyof typeof ROUTE_OF];
  expect([method, path]).toEqual([route.method, route.path]);
  const arrived = taken(route, body);
  const { target_backend_hash: target } = arrived as { target_backend_hash: string };
  const kind = path.slice("/v1/txn/".length);
  if (kind === "stage") {
    expect(headers[TXN_FORWARDED_HEADER]).toBe("1");
    return [target, stageOf(arrived, headers[ON_BEHALF_OF_HEADER]!, READERS)];
  }
  if (kind === "recover") return [target, recoverOf(arrived)];
  return [target, batchedOf({ call: kind, body: arrived } as BatchedBody<Job>, READERS)];
}

// ---- any request, any answer ------------------------------------------------------------------------------

const MAX = Number.MAX_SAFE_INTEGER;
const bounds = (min: number) => fc.oneof(fc.constantFrom(min, min + 1, MAX), fc.integer({ min, max: MAX }));
const hash = fc.stringMatching(/^[0-9a-f]{64}$/);
const id = fc
  .stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  .filter((text) => text.length === ID.length);
const name = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
  .filter((text) => text.isWellFormed() && !text.includes("\0") && text !== "." && text !== "..");
/** As a client may have sent it: −0 is 0 by then. */
const json = fc
  .jsonValue({ maxDepth: 3 })
  .map((value) => sent(value) as Json)
  .filter((value) => {
    const text = JSON.stringify(value);
    return text.isWellFormed() && !/\de[+-]?\d|"__proto__"|\d{16}|\\ud/i.test(text);
  });
const jobName = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,20}$/);
const ifVersion = fc.option(bounds(0));

const spec = fc.record({
  kind: jobName,
  payload: json,
  queue: jobName,
  labels: fc.dictionary(name, name, { maxKeys: 3 }).map((all) => sent(all)),
  platform: fc.option(jobName),
  priority: fc.integer({ min: -1_000_000, max: 1_000_000 }),
  notBeforeMs: fc.option(fc.integer({ min: 0, max: 2 ** 42 })),
  attemptsMax: fc.integer({ min: 1, max: 1_000 }),
  lossesMax: fc.integer({ min: 1, max: 1_000 }),
  backoff: fc.record({ baseMs: fc.integer({ min: 0, max: 10 }), maxMs: fc.integer({ min: 10, max: 86_400_000 }) }),
  timeoutMs: fc.option(fc.integer({ min: 1, max: 1_000 })),
  retentionMs: fc.integer({ min: 0, max: 1_000 }),
  concurrency: fc.option(fc.record({ key: jobName, limit: fc.integer({ min: 1, max: 100_000 }) })),
});
const ofScope = { scope: name };
const operation: fc.Arbitrary<TxnOperation> = fc.oneof(
  fc.record({ kind: fc.constant("value-put" as const), name, data: json.map((value) => data(value)), ifVersion }),
  fc.record({ kind: fc.constant("value-delete" as const), name, ifVersion }),
  fc.record({ kind: fc.constant("value-check" as const), name, ifVersion: bounds(0) }),
  fc.record({ kind: fc.constant("scope-release" as const), ...ofScope, epoch: bounds(1) }),
  fc.record({
    kind: fc.constant("scope-acquire" as const),
    ...ofScope,
    session: name,
    identity: name,
    metadata: fc.dictionary(name, name, { maxKeys: 3 }).map((all) => sent(all)),
    ttlMs: fc.integer({ min: 1_000, max: 600_000 }),
  }),
  fc.record({ kind: fc.constant("job-submit" as const), spec }),
);
/** Each value and each scope once. */
const operations = fc.uniqueArray(operation, {
  minLength: 1,
  maxLength: 6,
  selector: (one) => ("name" in one ? one.name : "scope" in one ? `\0${one.scope}` : one),
});
const islands = fc.uniqueArray(hash, { minLength: 1, maxLength: TXN_PARTICIPANTS_MAX }).map((all) => all.toSorted());
const by = fc.constantFrom("spiffe://tenure/tc/payments", "spiffe://tenure/server/n1");
const header: fc.Arbitrary<TxnHeader> = fc.record({
  id,
  home: hash,
  participants: islands,
  digest: hash,
  timeoutMs: fc.integer({ min: 1_000, max: 60_000 }),
  by,
});
const fence = fc.record({
  clusterId: fc.stringMatching(/^[A-Za-z0-9._:@-]{1,128}$/),
  term: bounds(1),
  recoveredBy: fc.option(fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}@[0-9a-f]{1,16}$/)),
});
const code = fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[]));
const reason: fc.Arbitrary<TxnReason> = fc.record({
  code,
  message: fc.string({ unit: "grapheme", maxLength: 40 }).filter((text) => text.isWellFormed()),
  backendHash: fc.option(hash),
});
const kindOf = <const Kind extends TxnRequest["kind"]>(kind: Kind) => ({ kind: fc.constant(kind) });
const orStaged = fc.option(operations);
const batched: fc.Arbitrary<BatchedRequest> = fc.oneof(
  fc.record({ ...kindOf("prepare"), header, operations: orStaged, fence }),
  fc.record({
    ...kindOf("commit"),
    header,
    // None: home has no part in it but the decision.
    operations: fc.oneof({ weight: 3, arbitrary: orStaged }, { weight: 1, arbitrary: fc.constant([]) }),
    require: fc.array(fc.record({ scope: name, epoch: bounds(1) }), { maxLength: 3 }),
    fence,
  }),
  fc.record({ ...kindOf("rollback"), header, reason, fence }),
  fc.record({ ...kindOf("inquire"), header }),
  fc.record({ ...kindOf("settled"), from: hash, ids: fc.uniqueArray(id, { minLength: 1, maxLength: 5 }) }),
);
const anyRequest: fc.Arbitrary<TxnRequest> = fc.oneof(
  { weight: 5, arbitrary: batched },
  {
    weight: 1,
    arbitrary: fc.record({
      ...kindOf("stage"),
      id,
      home: hash,
      by,
      operations,
      expiresInMs: fc.integer({ min: 1, max: 60_000 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ ...kindOf("recover"), fence, after: fc.option(id) }) },
);

const result: fc.Arbitrary<TxnResult> = fc.record({
  version: fc.option(bounds(0)),
  epoch: fc.option(bounds(1)),
  jobId: fc.option(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/)),
});
const results = fc.array(result, { maxLength: 5 });
const phase = fc.constantFrom<TxnPhase>("staged", "prepared", "committed", "rolled-back");

const anyNext: fc.Arbitrary<string | null> = fc.option(id);
const anyPhase: fc.Arbitrary<TxnPhase | null> = fc.option(phase);
const anyReason: fc.Arbitrary<TxnReason | null> = fc.option(reason);

type Said = Exclude<TxnAnswer, { readonly kind: "refused" }>;

function saidTo(request: TxnRequest): fc.Arbitrary<Said> {
  switch (request.kind) {
    case "settled":
      return fc.subarray([...request.ids]).map((ids) => ({ kind: "settled" as const, ids }));
    case "recover": {
      const open = fc.record({
        header,
        phase: fc.constantFrom("prepared" as const, "committed" as const),
        waitsFor: fc.array(hash, { maxLength: 3 }),
      });
      return fc.record({
        kind: fc.constant("recovered" as const),
        open: fc.array(open, { maxLength: 3 }),
        next: anyNext,
      });
    }
    default:
      return fc.record({
        kind: fc.constant("txn" as const),
        phase: anyPhase,
        results,
        reason: anyReason,
      });
  }
}

function idOf(request: TxnRequest): string | null {
  return request.kind === "stage" ? request.id : "header" in request ? request.header.id : null;
}

function answered(request: TxnRequest, said: Said): TxnWireAnswer {
  return { status: 200, body: sent(answerBody(idOf(request), said)) };
}

const body: fc.Arbitrary<TxnBody> = fc
  .record({
    id,
    home: fc.option(hash),
    timeoutMs: fc.option(fc.integer({ min: 1_000, max: 60_000 })),
    require: fc.array(fc.record({ backendHash: hash, scope: name, epoch: bounds(1) }), { maxLength: 3 }),
    islands: fc.uniqueArray(hash, { minLength: 1, maxLength: 3 }),
    each: fc.array(operations, { minLength: 3, maxLength: 3 }),
  })
  .map(({ islands: all, each, ...rest }) => ({
    ...rest,
    participants: all.map((backendHash, at) => ({ backendHash, operations: each[at]! })),
  }));
const outcome: fc.Arbitrary<TxnOutcome> = fc.record({
  id,
  state: fc.constantFrom("committed" as const, "rolled-back" as const),
  term: bounds(0),
  home: hash,
  reason: fc.option(reason),
  participants: fc.array(
    fc.record({
      backendHash: hash,
      state: fc.constantFrom("applied" as const, "pending" as const, "rolled-back" as const),
      results,
    }),
    { maxLength: 3 },
  ),
});
const WHOLE: TxnHeader = { id: ID, home: HERE, participants: [HERE], digest: HERE, timeoutMs: 5_000, by: "b" };

// ---- the tests --------------------------------------------------------------------------------------------

describe("requests of islands", () => {
  it("are read by their routes as they were written, whatever they are", () => {
    fc.assert(
      fc.property(hash, anyRequest, (target, request) => {
        expect(received(requestCall(target, request))).toEqual([target, request]);
      }),
    );
  });

  it("are the same together, in their order", () => {
    fc.assert(
      fc.property(hash, fc.array(batched, { minLength: 1, maxLength: 4 }), (target, requests) => {
        const { path, body: whole } = batchCall(target, requests);
        expect(path).toBe(TXN_ROUTES.batchTxns.path);
        const arrived: { target_backend_hash: string; requests: { call: string; body: object }[] } = taken(
          TXN_ROUTES.batchTxns,
          whole,
        );
        expect(arrived.target_backend_hash).toBe(target);
        const each = arrived.requests.map(({ call, body: one }) =>
          received({ method: "POST", path: `/v1/txn/${call}`, headers: {}, body: one }),
        );
        expect(each).toEqual(requests.map((request) => [target, request]));
      }),
    );
  });

  it("have no more bytes than is said before they are written", () => {
    fc.assert(
      fc.property(hash, batched, (target, request) => {
        const { body: one } = requestCall(target, request);
        expect(encoder.encode(JSON.stringify(one)).length).toBeLessThanOrEqual(requestBytes(request));
      }),
    );
  });

  it("the largest that there may be fit into their routes' bodies, and one always into a batch", () => {
    const requests = largest();
    for (const request of requests) {
      const { body: one } = requestCall(HERE, request);
      const bytes = encoder.encode(JSON.stringify(one)).length;
      expect(bytes).toBeLessThanOrEqual(TXN_CALL_BODY_BYTES_MAX);
      expect(bytes).toBeLessThanOrEqual(requestBytes(request));
      expect(requestBytes(request)).toBeLessThanOrEqual(TXN_BATCH_BYTES_MAX);
      received(requestCall(HERE, request));
    }
    const small: BatchedRequest = { kind: "inquire", header: { ...WHOLE, by: "b".repeat(512) } };
    const many = Array.from({ length: TXN_BATCH_MAX }, () => small);
    expect(many.reduce((bytes, one) => bytes + requestBytes(one), 0)).toBeLessThanOrEqual(TXN_BATCH_BYTES_MAX);
    for (const all of [many, [requests[1]!]])
      expect(JSON.stringify(batchCall(HERE, all).body).length).toBeLessThanOrEqual(TXN_BATCH_BODY_BYTES_MAX);
  });

  it("a job is whole: what the other side takes for granted is not asked", () => {
    const bare = specOf({ kind: "a" });
    const call = requestCall(HERE, {
      kind: "prepare",
      header: WHOLE,
      operations: [{ kind: "job-submit", spec: bare }],
      fence: { clusterId: "c", term: 1, recoveredBy: null },
    });
    const [{ job }] = (call.body as { operations: [{ job: object }] }).operations;
    expect(Object.keys(job)).toHaveLength(Object.keys(bare).length);
    expect(Object.values(job)).not.toContain(undefined);
  });

  it("a reason is cut to what a record takes, and stays text", () => {
    for (const letter of ["x", "é", "€", "😀"]) {
      const long: TxnReason = { code: "BAD_REQUEST", message: letter.repeat(2_000), backendHash: null };
      const term = { clusterId: "c", term: 1, recoveredBy: null };
      const [, request] = received(requestCall(HERE, { kind: "rollback", header: WHOLE, reason: long, fence: term }));
      const { message } = (request as Extract<TxnRequest, { kind: "rollback" }>).reason;
      expect(encoder.encode(message).length).toBeLessThanOrEqual(TXN_MESSAGE_BYTES_MAX);
      expect(message.endsWith("…")).toBe(true);
      expect(message.isWellFormed()).toBe(true);
    }
  });
});

describe("answers of islands", () => {
  it("are rebuilt whole, and are what their routes answer", () => {
    const asked = anyRequest.chain((request) => fc.tuple(fc.constant(request), saidTo(request)));
    fc.assert(
      fc.property(asked, ([request, said]) => {
        const wire = answered(request, said);
        const route = ROUTE_OF[requestCall(HERE, request).path as keyof typeof ROUTE_OF];
        expect(shape(route.answer).check(wire.body)).toEqual({ ok: true, value: wire.body });
        expect(answerOf(request, wire)).toEqual(said);
        expect(elsewhereOf(wire)).toBe(null);
        expect(errorOf(wire)).toBe(null);
      }),
    );
  });

  it.each(TXN_REFUSALS)("%s is definite: nothing was changed", (refused) => {
    const wire = { status: ERRORS[refused].http, body: { error: refused, message: "m", detail: "m" } };
    const request = { kind: "inquire", header: WHOLE } as const;
    expect(answerOf(request, wire)).toEqual({ kind: "refused", code: refused, message: "m" });
    expect(answerOf(request, { ...wire, status: 500 })).toBe(null);
    expect(elsewhereOf(wire)).toBe(null);
  });

  it("OUTCOME_UNKNOWN, a fault and who may not call say nothing", () => {
    for (const one of ["OUTCOME_UNKNOWN", "INTERNAL", "UNAUTHENTICATED", "tc_forbidden", "RATE_LIMITED"] as const) {
      const wire = { status: ERRORS[one].http, body: { error: one, message: "m" } };
      expect([answerOf({ kind: "inquire", header: WHOLE }, wire), elsewhereOf(wire)]).toEqual([null, null]);
    }
  });

  it("who does not lead says who does, as far as it knows", () => {
    const of = (error: ErrorCode, more: object = {}): TxnWireAnswer => ({
      status: ERRORS[error].http,
      body: { error, message: "m", ...more },
    });
    expect(elsewhereOf(of("NOT_LEADER", { leader_url: "https://n2:1" }))).toEqual({ leaderUrl: "https://n2:1" });
    expect(elsewhereOf(of("NOT_LEADER", { leader_url: null }))).toEqual({ leaderUrl: null });
    for (const url of ["n2", "ftp://n2:1", "https://u:p@n2:1", "https://n2:1/x", 5, `https://${"a".repeat(512)}`])
      expect(elsewhereOf(of("NOT_LEADER", { leader_url: url }))).toEqual({ leaderUrl: null });
    for (const one of ["ERR_NO_LEADER", "TRANSFER_IN_PROGRESS", "BACKEND_UNAVAILABLE", "tc_unavailable"] as const) {
      expect(elsewhereOf(of(one))).toEqual({ leaderUrl: null });
      expect(answerOf({ kind: "inquire", header: WHOLE }, of(one))).toBe(null);
      expect(elsewhereOf({ ...of(one), status: 200 })).toBe(null);
    }
  });

  it("are none where they are garbage, whatever the status is", () => {
    const status = fc.constantFrom(200, 200, 200, 400, 403, 404, 409, 502, 503, 204, 500);
    const garbage = fc.oneof(fc.anything(), fc.jsonValue(), fc.constantFrom(null, undefined, "", [], {}, { ids: 5 }));
    fc.assert(
      fc.property(anyRequest, status, garbage, (request, is, what) => {
        const wire = { status: is, body: what };
        expect([answerOf(request, wire), elsewhereOf(wire), errorOf(wire)]).toEqual([null, null, null]);
        expect([batchAnswersOf(1, wire), outcomeOf(ID, wire), decidedOf(ID, wire)]).toEqual([null, null, null]);
      }),
    );
  });

  it("about another transaction, or ids that were not asked about, are none", () => {
    const request = { kind: "inquire", header: WHOLE } as const;
    const good = answered(request, { kind: "txn", phase: "prepared", results: [], reason: null });
    expect(answerOf(request, good)).not.toBe(null);
    expect(answerOf({ kind: "inquire", header: { ...WHOLE, id: ID.replace("1", "2") } }, good)).toBe(null);
    const settled = { kind: "settled", from: HERE, ids: [ID] } as const;
    expect(answerOf(settled, { status: 200, body: { ids: [ID] } })).toEqual({ kind: "settled", ids: [ID] });
    for (const ids of [[ID.replace("1", "2")], [5], {}, null, Array.from({ length: TXN_BATCH_MAX + 1 }, () => ID)])
      expect(answerOf(settled, { status: 200, body: { ids } }), JSON.stringify(ids)).toBe(null);
  });

  it.each([
    ["state", [undefined, null, "", "done", "rolled-back", "constructor", 5]],
    [
      "results",
      [
        undefined,
        null,
        {},
        [5],
        [null],
        [{ version: -1 }],
        [{ epoch: "1" }],
        [{ job_id: "" }],
        tooMany(TXN_OPERATIONS_MAX),
      ],
    ],
    [
      "reason",
      [
        undefined,
        5,
        [],
        {},
        { code: "BAD_REQUEST" },
        { code: 5, message: "m" },
        { code: "x", message: "m", backend_hash: "x" },
      ],
    ],
  ] as const)("with %s missing or wrong are none", (field, values) => {
    const request = { kind: "inquire", header: WHOLE } as const;
    const good = { txn_id: ID, state: "unknown", results: [], reason: null, more: 1 };
    expect(answerOf(request, { status: 200, body: good })).toEqual({
      kind: "txn",
      phase: null,
      results: [],
      reason: null,
    });
    for (const wrong of values)
      expect(answerOf(request, { status: 200, body: { ...good, [field]: wrong } }), JSON.stringify(wrong)).toBe(null);
  });

  it("of what is open, with a header or a state that is none, are none", () => {
    const request = { kind: "recover", fence: { clusterId: "c", term: 1, recoveredBy: null }, after: null } as const;
    const one = { header: WHOLE, phase: "prepared", waitsFor: [HERE] } as const;
    const good = sent(answerBody(null, { kind: "recovered", open: [one], next: ID })) as { open: [{ txn: object }] };
    const read = (over: object, whole: object = {}): TxnAnswer | null =>
      answerOf(request, { status: 200, body: { ...good, open: [{ ...good.open[0], ...over }], ...whole } });
    expect(read({})).toEqual({ kind: "recovered", open: [one], next: ID });
    const why = { code: "DISK_FULL", message: "no room" } as const;
    const full = sent(answerBody(null, { kind: "recovered", open: [], next: null, refusesNew: why }));
    expect(full).toEqual({ open: [], next: null, refuses_new: why });
    expect(answerOf(request, { status: 200, body: full })).toEqual({
      kind: "recovered",
      open: [],
      next: null,
      refusesNew: why,
    });
    for (const wrong of [null, "full", {}, { code: "DISK_FULL" }]) expect(read({}, { refuses_new: wrong })).toBe(null);
    // Of a later release.
    expect(read({}, { refuses_new: { ...why, code: "LATER" } })).toMatchObject({ refusesNew: { code: "INTERNAL" } });
    const { txn } = good.open[0];
    for (const over of [
      { state: "staged" },
      { state: "rolled_back" },
      { state: "unknown" },
      { waits_for: ["x"] },
      { waits_for: tooMany(TXN_PARTICIPANTS_MAX, HERE) },
      { txn: null },
      { txn: { ...txn, txn_id: "x" } },
      { txn: { ...txn, home_backend_hash: "A".repeat(64) } },
      { txn: { ...txn, participants: [5] } },
      { txn: { ...txn, digest: "" } },
      { txn: { ...txn, timeout_ms: 60_001 } },
      { txn: { ...txn, by: "" } },
      { txn: { ...txn, by: "b".repeat(513) } },
    ])
      expect(read(over), JSON.stringify(over)).toBe(null);
    for (const whole of [
      { next: "x" },
      { next: undefined },
      { open: {} },
      { open: tooMany(TXNS_PER_PAGE_MAX, good.open[0]) },
    ])
      expect(read({}, whole), JSON.stringify(whole).slice(0, 80)).toBe(null);
  });

  it("of a batch are one for each call, or none", () => {
    const each = [
      { status: 200, body: { a: 1 } },
      { status: 409, body: { error: "txn_locked", message: "m" } },
    ];
    const wire = { status: 200, body: { answers: each } };
    expect(batchAnswersOf(2, wire)).toEqual(each);
    expect(batchAnswersOf(1, wire)).toBe(null);
    expect(batchAnswersOf(2, { ...wire, status: 503 })).toBe(null);
    for (const answers of [[5, 5], [null, {}], [each[0], { body: {} }], {}, null])
      expect(batchAnswersOf(2, { status: 200, body: { answers } }), JSON.stringify(answers)).toBe(null);
  });

  it("a reason with a code of a later release is read", () => {
    const later = { code: "txn_tired", message: "m", backend_hash: null };
    const wire = { status: 200, body: { txn_id: ID, state: "rolled_back", results: [], reason: later } };
    expect(answerOf({ kind: "inquire", header: WHOLE }, wire)).toMatchObject({
      reason: { code: "INTERNAL", message: "m", backendHash: null },
    });
  });
});

describe("what clients ask", () => {
  it("is forwarded as it was meant", () => {
    fc.assert(
      fc.property(body, by, (asked, who) => {
        const call = forwardedRun(asked, who);
        expect(call.headers).toEqual({ [TXN_FORWARDED_HEADER]: "1", [ON_BEHALF_OF_HEADER]: who });
        expect([call.method, call.path]).toEqual([TXN_ROUTES.txn.method, TXN_ROUTES.txn.path]);
        expect(txnBodyOf(taken(TXN_ROUTES.txn, call.body), READERS)).toEqual(asked);
      }),
    );
  });

  it("a decision too; without a home it is the smallest island", () => {
    const decision: fc.Arbitrary<TxnDecide> = fc.record({
      id,
      home: hash,
      state: fc.constantFrom("pending" as const, "commit" as const, "rollback" as const),
      participants: islands,
      expiresAtMs: fc.option(fc.integer({ min: 0, max: 2 ** 31 }).map((seconds) => seconds * 1_000)),
    });
    fc.assert(
      fc.property(decision, by, (asked, who) => {
        const call = forwardedDecide(asked, who);
        expect(call.path).toBe(TXN_ROUTES.decideTxn.path);
        const arrived = taken(TXN_ROUTES.decideTxn, call.body);
        expect(txnDecideOf(arrived)).toEqual(asked);
        const { home_backend_hash: _, ...without } = arrived as { home_backend_hash: string };
        expect(txnDecideOf(without as never).home).toBe(asked.participants[0]);
        const { id: of, state } = asked;
        const wire = { status: 200, body: sent(decidedBody({ id: of, state })) };
        expect(decidedOf(of, wire)).toEqual({ id: of, state });
        expect(decidedOf(HERE, wire)).toBe(null);
        expect(decidedOf(of, { ...wire, body: { ...wire.body, state: "prepared" } })).toBe(null);
      }),
    );
  });

  it("outcomes are rebuilt whole, and are what the route answers", () => {
    const answer = shape(TXN_ROUTES.txn.answer);
    fc.assert(
      fc.property(outcome, (one) => {
        const wire = { status: 200, body: sent(outcomeBody(one)) };
        expect(answer.check(wire.body)).toEqual({ ok: true, value: wire.body });
        expect(outcomeOf(one.id, wire)).toEqual(one);
        expect(outcomeOf(HERE, wire)).toBe(null);
        expect(outcomeOf(one.id, { ...wire, status: 202 })).toBe(null);
      }),
    );
  });

  it.each([
    ["state", [undefined, "prepared", "unknown", "rolled-back"]],
    ["tc_term", [undefined, -1, "1"]],
    ["home", [undefined, "x", null]],
    ["reason", [undefined, {}]],
    [
      "participants",
      [
        undefined,
        {},
        [5],
        [{ backend_hash: HERE, state: "prepared", results: [] }],
        [{ backend_hash: "x", state: "applied", results: [] }],
        [{ backend_hash: HERE, state: "applied" }],
        tooMany(TXN_PARTICIPANTS_MAX, { backend_hash: HERE, state: "applied", results: [] }),
      ],
    ],
  ] as const)("an outcome with %s missing or wrong is none", (field, values) => {
    const good = { txn_id: ID, state: "committed", tc_term: 1, home: HERE, reason: null, participants: [] };
    expect(outcomeOf(ID, { status: 200, body: good })).not.toBe(null);
    for (const wrong of values)
      expect(outcomeOf(ID, { status: 200, body: { ...good, [field]: wrong } }), JSON.stringify(wrong)).toBe(null);
  });

  it("an error is told on, with where the leader is", () => {
    const of = (more: object, status = 409): TxnWireAnswer => ({
      status,
      body: { error: "tc_not_leader", message: "m", ...more },
    });
    expect(errorOf(of({ leader_endpoint: "https://n2:1" }))).toMatchObject({
      code: "tc_not_leader",
      message: "m",
      leaderEndpoint: "https://n2:1",
    });
    expect(errorOf(of({ leader_endpoint: "n2" }))).toMatchObject({ leaderEndpoint: null });
    for (const wire of [of({}, 503), of({ error: "constructor" }), of({ message: 5 })])
      expect(errorOf(wire)).toBe(null);
  });
});

describe("bytes of operations", () => {
  it("are at least what they have as JSON", () => {
    fc.assert(
      fc.property(operations, (all) => {
        const call = requestCall(HERE, { kind: "stage", id: ID, home: HERE, by: "b", operations: all, expiresInMs: 1 });
        const written = JSON.stringify((call.body as { operations: unknown }).operations);
        expect(encoder.encode(written).length).toBeLessThanOrEqual(operationsBytes(all) + 1);
      }),
    );
  });
});

function tooMany(max: number, one: unknown = {}): unknown[] {
  return Array.from({ length: max + 1 }, () => one);
}

/** With operations of as many bytes as there may be, of values and of jobs, and with every scope required that there may be. */
function largest(): BatchedRequest[] {
  const ofValues: TxnOperation[] = [];
  for (let at = 0; ; at++) {
    const room = TXN_BYTES_MAX - operationsBytes(ofValues) - 256;
    if (room < 2) break;
    const value = data("x".repeat(Math.min(room, VALUE_BYTES_MAX) - 2));
    ofValues.push({ kind: "value-put", name: `v${at}`, data: value, ifVersion: MAX });
  }
  const payload = "x".repeat(JOB_PAYLOAD_BYTES_MAX - 1_024);
  const ofJobs: TxnOperation[] = [0, 1].map(() => ({ kind: "job-submit", spec: specOf({ kind: "k", payload }) }));
  expect(operationsBytes(ofValues)).toBeGreaterThan(TXN_BYTES_MAX - 512);
  expect(operationsBytes(ofJobs)).toBeLessThanOrEqual(TXN_BYTES_MAX);
  const all = Array.from({ length: TXN_PARTICIPANTS_MAX }, (_, at) => at.toString(16).padStart(64, "f"));
  const header: TxnHeader = { ...WHOLE, participants: all, by: "b".repeat(512) };
  const fence = { clusterId: "c".repeat(128), term: MAX, recoveredBy: `${"n".repeat(63)}@${"f".repeat(16)}` };
  const require = Array.from({ length: TXN_REQUIRES_MAX }, () => ({ scope: "\u0001".repeat(256), epoch: MAX }));
  return [
    { kind: "prepare", header, operations: ofValues, fence },
    { kind: "commit", header, operations: ofJobs, require, fence },
    { kind: "commit", header, operations: ofValues, require, fence },
  ];
}
