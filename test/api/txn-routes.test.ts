// The routes of transactions over TLS: what reaches the part of this island and whoever decides, in whose name, and how each answer and each refusal is
// told. What the rules are is tested in core/txn and in the controller.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import { type ErrorCode, ERRORS, TenureError } from "../../src/core/kit/errors.ts";
import { TXN_BYTES_MAX, VALUE_BYTES_MAX } from "../../src/core/kit/limits.ts";
import type { TxnOperation, TxnRequest } from "../../src/core/txn/model.ts";
import { answerOf, batchAnswersOf, elsewhereOf, TXN_REFUSALS } from "../../src/core/txn/wire-answers.ts";
import { batchCall, type BatchedRequest, forwardedRun, requestCall } from "../../src/core/txn/wire-calls.ts";
import type { Coordinators } from "../../src/ports/coordinators.ts";
import type { TxnBody } from "../../src/ports/transactions.ts";
import type { TestApi } from "./test-api.ts";
import { type Got, TestIsland } from "./test-coordinators.ts";
import {
  CLIENT,
  HEADER,
  HERE,
  prepared,
  TestDecider,
  TestParticipant,
  THERE,
  TXN,
  txnId,
  viewOf,
} from "./test-transactions.ts";

const FENCE = { clusterId: "c-1", term: 3, recoveredBy: "n2@b2" };
const PUT = { op: "value.put", name: "orders/cursor", value: { b: 2, a: [1, "é"] } };
const BODY = {
  txn_id: TXN,
  require: [{ backend_hash: HERE, scope: "payer", epoch: 4 }],
  participants: [
    { backend_hash: HERE, operations: [PUT, { op: "job.submit", job: { kind: "mail" } }] },
    {
      backend_hash: THERE,
      operations: [{ op: "scope.acquire", scope: "p", session: "s", identity: "i", ttl_ms: 5_000 }],
    },
  ],
};
const STAGE = {
  txn_id: TXN,
  home_backend_hash: HERE,
  target_backend_hash: HERE,
  operations: [PUT],
  expires_in_ms: 9_000,
};
const DECIDE = { txn_id: TXN, state: "commit", participants: [THERE, HERE] };
const REQUESTS = {
  prepareTxn: { kind: "prepare", header: HEADER, operations: null, fence: FENCE },
  commitTxn: {
    kind: "commit",
    header: HEADER,
    operations: null,
    require: [{ scope: "payer", epoch: 4 }],
    fence: FENCE,
  },
  rollbackTxn: {
    kind: "rollback",
    header: HEADER,
    reason: { code: "txn_locked", message: "m", backendHash: THERE },
    fence: FENCE,
  },
  inquireTxn: { kind: "inquire", header: HEADER },
  settledTxns: { kind: "settled", from: THERE, ids: [TXN] },
  recoverTxns: { kind: "recover", fence: FENCE, after: null },
} as const satisfies Partial<Readonly<Record<RouteId, TxnRequest>>>;
type CallId = keyof typeof REQUESTS;
const CALLS = Object.keys(REQUESTS) as CallId[];
const BATCHED = CALLS.filter((id) => id !== "recoverTxns");

let island: TestIsland;
let api: TestApi;
let decider: TestDecider;
let participant: TestParticipant;
beforeAll(async () => {
  island = await TestIsland.make();
});
beforeEach(async () => {
  await api?.[Symbol.asyncDispose]();
  decider = new TestDecider();
  participant = new TestParticipant();
  api = await island.start(undefined, { transactions: participant, txnDecider: decider });
});
afterAll(() => api?.[Symbol.asyncDispose]());

function send(id: RouteId, body: unknown, as = "server/n2", headers: Record<string, string> = {}): Promise<Got> {
  return island.ask(api.port, { as, method: "POST", path: ROUTES[id].path, body, headers });
}

function look(path: string, as = "operator/eve"): Promise<Got> {
  return island.ask(api.port, { as, path });
}

function fits(id: RouteId, { status, json }: Got): void {
  expect([status, json["error"]]).toEqual([200, undefined]);
  expect(shape((ROUTES[id] as Route).answer!).check(json)).toEqual({ ok: true, value: json });
}

async function refuses(sent: Promise<Got>, code: ErrorCode, id: RouteId): Promise<Got["json"]> {
  const { status, json } = await sent;
  expect([status, json["error"]], JSON.stringify(json)).toEqual([ERRORS[code].http, code]);
  expect(json["detail"]).toBe(json["message"]);
  expect([...(ROUTES[id] as Route).errors, "BAD_REQUEST", "PAYLOAD_TOO_LARGE", "OVERLOADED"]).toContain(code);
  return json;
}

describe("POST /v1/txn", () => {
  it("is given to whoever decides as it is meant, and its outcome told", async () => {
    const got = await send("txn", BODY, "tc/payments");
    fits("txn", got);
    expect(got.json).toEqual({
      txn_id: TXN,
      state: "committed",
      tc_term: 3,
      home: HERE,
      reason: null,
      participants: [
        { backend_hash: HERE, state: "applied", results: [{ version: 7 }, { version: 7 }] },
        { backend_hash: THERE, state: "applied", results: [{ version: 7 }] },
      ],
    });
    const [[asked, caller]] = decider.asked as [(typeof decider.asked)[number]];
    expect(caller).toEqual({ by: CLIENT, isForwarded: false });
    expect(asked).toMatchObject({
      id: TXN,
      home: null,
      timeoutMs: null,
      require: [{ backendHash: HERE, scope: "payer", epoch: 4 }],
      participants: [
        {
          backendHash: HERE,
          operations: [
            { kind: "value-put", name: "orders/cursor", ifVersion: null },
            { kind: "job-submit", spec: { kind: "mail", queue: "default", attemptsMax: 3, payload: null } },
          ],
        },
        { backendHash: THERE, operations: [{ kind: "scope-acquire", scope: "p", metadata: {}, ttlMs: 5_000 }] },
      ],
    });
    const { participants } = asked as TxnBody;
    const [put] = participants[0]!.operations as [Extract<TxnOperation, { kind: "value-put" }>];
    expect(new TextDecoder().decode(put.data)).toBe('{"a":[1,"é"],"b":2}');
  });

  it("rolled back, with a reason, and committed with islands that are pending, are both 200", async () => {
    const reason = { code: "txn_locked", message: "locked", backendHash: THERE } as const;
    const participants = [{ backendHash: HERE, state: "rolled-back", results: [] }] as const;
    decider.outcome = () => ({ state: "rolled-back", reason, participants });
    const back = await send("txn", BODY);
    fits("txn", back);
    expect(back.json).toMatchObject({
      state: "rolled_back",
      reason: { code: "txn_locked", message: "locked", backend_hash: THERE },
      participants: [{ state: "rolled_back" }],
    });
    decider.outcome = () => ({ participants: [{ backendHash: THERE, state: "pending", results: [] }] });
    const pending = await send("txn", BODY);
    fits("txn", pending);
    expect(pending.json).toMatchObject({ state: "committed", participants: [{ state: "pending" }] });
  });

  it("each refusal of whoever decides has its code, and where the leader is", async () => {
    for (const code of [
      "tc_unavailable",
      "tc_not_leader",
      "tc_rm_unavailable",
      "txn_conflict",
      "txn_expired",
      "txn_pending",
      "txn_fanout_failed",
      "OUTCOME_UNKNOWN",
      "OVERLOADED",
    ] as const) {
      decider.before = () => {
        throw Object.assign(new TenureError(code, "why"), {
          leaderEndpoint: code === "tc_not_leader" ? "https://n9:1" : null,
        });
      };
      const json = await refuses(send("txn", BODY), code, "txn");
      expect(json["leader_endpoint"]).toBe(code === "tc_not_leader" ? "https://n9:1" : undefined);
      await refuses(send("decideTxn", DECIDE), code, "decideTxn");
    }
  });

  it("a fault on the way is no refusal: what came of it is not known", async () => {
    decider.before = () => {
      throw new Error("unforeseen");
    };
    await refuses(send("txn", BODY), "OUTCOME_UNKNOWN", "txn");
    expect(api.faults).toHaveLength(1);
  });

  it("operations of more bytes than one transaction may have are refused before anybody is asked", async () => {
    const value = "x".repeat(VALUE_BYTES_MAX - 2);
    const many = (count: number): object => ({
      ...BODY,
      participants: [HERE, THERE].map((hash) => ({
        backend_hash: hash,
        operations: Array.from({ length: count / 2 }, (_, at) => ({ op: "value.put", name: `v${at}`, value })),
      })),
    });
    const count = TXN_BYTES_MAX / VALUE_BYTES_MAX;
    await refuses(send("txn", many(count)), "PAYLOAD_TOO_LARGE", "txn");
    expect(decider.asked).toEqual([]);
    fits("txn", await send("txn", many(count - 2)));
  });

  it("is for servers too, which say for whom; of a client that is not looked at", async () => {
    const headers = { "X-Tenure-TC-Forwarded": "1", "X-Tenure-On-Behalf-Of": "spiffe://tenure/tc/other" };
    await send("txn", BODY, "server/n2", headers);
    await send("txn", BODY, "server/n2", { "X-Tenure-On-Behalf-Of": "spiffe://tenure/tc/other" });
    await send("txn", BODY, "server/n2");
    await send("txn", BODY, "tc/payments", headers);
    await send("decideTxn", DECIDE, "tc/payments", headers);
    await send("decideTxn", DECIDE, "server/n2", headers);
    expect(decider.asked.map(([, caller]) => caller)).toEqual([
      { by: "spiffe://tenure/tc/other", isForwarded: true },
      { by: "spiffe://tenure/tc/other", isForwarded: false },
      { by: "spiffe://tenure/server/n2", isForwarded: false },
      { by: CLIENT, isForwarded: false },
      { by: CLIENT, isForwarded: false },
      { by: "spiffe://tenure/tc/other", isForwarded: true },
    ]);
    for (const name of ["eve", "spiffe://tenure/nobody/x", "", "x".repeat(600)]) {
      const json = await refuses(
        send("txn", BODY, "server/n2", { "X-Tenure-On-Behalf-Of": name }),
        "BAD_REQUEST",
        "txn",
      );
      expect(json["field"]).toBe("X-Tenure-On-Behalf-Of");
    }
  });

  it("is forwarded by the functions of the wire", async () => {
    await send("txn", BODY, "tc/payments");
    const [[asked]] = decider.asked as [(typeof decider.asked)[number]];
    const { path, body, headers } = forwardedRun(asked as TxnBody, CLIENT);
    expect(path).toBe(ROUTES.txn.path);
    await send("txn", body, "server/n2", { ...headers });
    expect(decider.asked[1]).toEqual([asked, { by: CLIENT, isForwarded: true }]);
  });
});

describe("stage and decide", () => {
  it("stages where whoever decides knows the way to, in the client's name", async () => {
    const got = await send("stageTxn", STAGE, "tc/payments");
    fits("stageTxn", got);
    expect(got.json).toMatchObject({ txn_id: TXN, state: "staged" });
    expect(decider.staged).toMatchObject([
      [
        HERE,
        { kind: "stage", id: TXN, home: HERE, by: CLIENT, expiresInMs: 9_000, operations: [{ kind: "value-put" }] },
      ],
    ]);
    expect(participant.asked).toEqual([]);
    decider.stages = { kind: "refused", code: "txn_expired", message: "too old" };
    expect(await refuses(send("stageTxn", STAGE), "txn_expired", "stageTxn")).toMatchObject({ message: "too old" });
  });

  it("a call that was forwarded is for this island, and for no other", async () => {
    const request = { kind: "stage", id: TXN, home: HERE, by: CLIENT, operations: [], expiresInMs: 9_000 } as const;
    const put = { kind: "value-put", name: "x", data: new TextEncoder().encode("1"), ifVersion: 0 } as const;
    const call = requestCall(HERE, { ...request, operations: [put] });
    const got = await send("stageTxn", call.body, "server/n2", { ...call.headers });
    fits("stageTxn", got);
    expect(participant.asked).toEqual([{ ...request, operations: [put] }]);
    expect(decider.staged).toEqual([]);
    const elsewhere = requestCall(THERE, { ...request, operations: [put] });
    const json = await refuses(
      send("stageTxn", elsewhere.body, "server/n2", { ...elsewhere.headers }),
      "txn_backend_mismatch",
      "stageTxn",
    );
    expect(json["message"]).toContain(HERE);
    expect(participant.asked).toHaveLength(1);
  });

  it("decides what was staged; without a home it is the smallest island", async () => {
    for (const state of ["pending", "commit", "rollback"] as const) {
      decider.decided = state;
      const got = await send("decideTxn", { ...DECIDE, state, expires_at_unix: 1_900_000_000 });
      fits("decideTxn", got);
      expect(got.json).toEqual({ txn_id: TXN, state });
    }
    expect(decider.asked[0]).toEqual([
      { id: TXN, home: HERE, state: "pending", participants: [THERE, HERE], expiresAtMs: 1_900_000_000_000 },
      { by: "spiffe://tenure/server/n2", isForwarded: false },
    ]);
    await send("decideTxn", { ...DECIDE, home_backend_hash: THERE });
    expect(decider.asked[3]?.[0]).toMatchObject({ home: THERE, expiresAtMs: null });
  });
});

describe("what islands ask of each other", () => {
  it.each(CALLS)("%s reaches this island's part as it was sent, and its answer is read as it was given", async (id) => {
    const request = REQUESTS[id];
    const { path, body } = requestCall(HERE, request);
    expect(path).toBe(ROUTES[id].path);
    const got = await send(id, body);
    fits(id, got);
    expect(participant.asked).toEqual([request]);
    expect(answerOf(request, { status: got.status, body: got.json })).toEqual(prepared(request));
  });

  it.each(CALLS)("%s for another island is refused, and reaches nobody", async (id) => {
    const { body } = requestCall(THERE, REQUESTS[id]);
    const json = await refuses(send(id, body), "txn_backend_mismatch", id);
    expect(json["message"]).toMatch(new RegExp(`${THERE}.*${HERE}`));
    expect(participant.asked).toEqual([]);
  });

  it.each(CALLS)("%s: each definite refusal is read as one", async (id) => {
    const request = REQUESTS[id];
    for (const code of TXN_REFUSALS) {
      participant.says = () => ({ kind: "refused", code, message: "why" });
      const { status, json } = await send(id, requestCall(HERE, request).body);
      expect(answerOf(request, { status, body: json })).toEqual({ kind: "refused", code, message: "why" });
    }
  });

  it("the refusals that a route documents are among those that are definite", () => {
    const known = new Set<string>(TXN_REFUSALS);
    const others = CALLS.flatMap((id) => ROUTES[id].errors as readonly string[]).filter((code) => !known.has(code));
    // Of the node, of the caller, or about what may have been done.
    expect([...new Set(others)].toSorted()).toEqual([
      "ERR_NO_LEADER",
      "NOT_LEADER",
      "OUTCOME_UNKNOWN",
      "TRANSFER_IN_PROGRESS",
      "tc_cluster_identity_missing",
      "tc_forbidden",
      "tc_server_required",
      "tc_unavailable",
    ]);
  });

  it.each(CALLS)("%s at a node that does not lead says who does, as every write", async (id) => {
    await using other = await island.start();
    await using t = await island.start(undefined, {
      cluster: other.cluster,
      transactions: new TestParticipant(other.cluster),
      txnDecider: decider,
    });
    const ask = (): Promise<Got> =>
      island.ask(t.port, {
        as: "server/n2",
        method: "POST",
        path: ROUTES[id].path,
        body: requestCall(HERE, REQUESTS[id]).body,
      });
    other.cluster.follow("n2");
    const got = await ask();
    expect([got.status, got.json["error"], got.json["leader_id"]]).toEqual([409, "NOT_LEADER", "n2"]);
    const wire = { status: got.status, body: got.json };
    expect(elsewhereOf(wire)).toEqual({ leaderUrl: got.json["leader_url"] });
    expect(answerOf(REQUESTS[id], wire)).toBe(null);
    other.cluster.follow(null);
    const lost = await ask();
    expect(lost.json["error"]).toBe("ERR_NO_LEADER");
    expect(elsewhereOf({ status: lost.status, body: lost.json })).toEqual({ leaderUrl: null });
  });

  it("what may have been done is no answer", async () => {
    participant.says = () => {
      throw new TenureError("OUTCOME_UNKNOWN", "the leader was lost");
    };
    for (const id of CALLS) {
      const { status, json } = await send(id, requestCall(HERE, REQUESTS[id]).body);
      expect([status, json["error"]]).toEqual([503, "OUTCOME_UNKNOWN"]);
      expect(answerOf(REQUESTS[id], { status, body: json })).toBe(null);
      expect(elsewhereOf({ status, body: json })).toBe(null);
    }
  });

  it("operations that are too large are refused here too, and nobody is asked", async () => {
    const data = new TextEncoder().encode(`"${"x".repeat(VALUE_BYTES_MAX - 2)}"`);
    const operations = Array.from({ length: TXN_BYTES_MAX / VALUE_BYTES_MAX }, (_, at) => ({
      kind: "value-put" as const,
      name: `v${at}`,
      data,
      ifVersion: null,
    }));
    for (const id of ["prepareTxn", "commitTxn"] as const) {
      const request = { ...REQUESTS[id], operations };
      const { status, json } = await send(id, requestCall(HERE, request).body);
      expect(answerOf(request, { status, body: json })).toMatchObject({ kind: "refused", code: "PAYLOAD_TOO_LARGE" });
    }
    expect(participant.asked).toEqual([]);
  });
});

describe("POST /v1/txn/batch", () => {
  const requests: readonly BatchedRequest[] = BATCHED.map((id) => REQUESTS[id]);

  it("answers each call as it would be answered alone, and begins them in their order", async () => {
    const got = await send("batchTxns", batchCall(HERE, requests).body);
    fits("batchTxns", got);
    expect(participant.asked).toEqual(requests);
    const answers = batchAnswersOf(requests.length, { status: got.status, body: got.json })!;
    expect(answers.map((one, at) => answerOf(requests[at]!, one))).toEqual(requests.map((one) => prepared(one)));
  });

  it("what is wrong with one, refused or unknown, is that one's answer alone", async () => {
    participant.says = (request) => {
      if (request.kind === "commit") throw new TenureError("OUTCOME_UNKNOWN", "the leader was lost");
      if (request.kind === "rollback") return { kind: "refused", code: "tc_term_stale", message: "why" };
      return prepared(request);
    };
    const { body } = batchCall(HERE, requests) as { body: { requests: { call: string; body: object }[] } };
    const elsewhere = requestCall(THERE, requests[0]!).body;
    const sent = [
      ...body.requests,
      { call: "prepare", body: { ...body.requests[0]!.body, tc_term: 0 } },
      { call: "prepare", body: {} },
      { call: "prepare", body: elsewhere },
      { call: "inquire", body: body.requests[0]!.body },
    ];
    const got = await send("batchTxns", { ...body, requests: sent });
    fits("batchTxns", got);
    const { answers } = got.json as { answers: { status: number; body: Record<string, unknown> }[] };
    expect(answers.map(({ status, body: one }) => [status, one["error"]])).toEqual([
      [200, undefined],
      [503, "OUTCOME_UNKNOWN"],
      [409, "tc_term_stale"],
      [200, undefined],
      [200, undefined],
      [400, "invalid_term"],
      [400, "missing_backend_hash"],
      [409, "txn_backend_mismatch"],
      [400, "BAD_REQUEST"],
    ]);
    for (const { status, body: one } of answers) if (status !== 200) expect(one["detail"]).toBe(one["message"]);
  });

  it("at a node that does not lead each says so", async () => {
    await using other = await island.start();
    await using t = await island.start(undefined, {
      cluster: other.cluster,
      transactions: new TestParticipant(other.cluster),
    });
    other.cluster.follow("n2");
    const path = ROUTES.batchTxns.path;
    const got = await island.ask(t.port, {
      as: "server/n2",
      method: "POST",
      path,
      body: batchCall(HERE, requests).body,
    });
    const answers = batchAnswersOf(requests.length, { status: got.status, body: got.json })!;
    expect(answers.map((one) => elsewhereOf(one))).toEqual(answers.map(() => ({ leaderUrl: expect.anything() })));
  });

  it("for another island it is refused as a whole", async () => {
    await refuses(send("batchTxns", batchCall(THERE, requests).body), "txn_backend_mismatch", "batchTxns");
  });

  it("a fault in one is that one's answer, as alone, and is written down once; the others are answered", async () => {
    participant.says = (request) => {
      if (request.kind === "commit") throw new Error("unforeseen");
      return prepared(request);
    };
    const got = await send("batchTxns", batchCall(HERE, requests).body);
    fits("batchTxns", got);
    const { answers } = got.json as { answers: { status: number; body: Record<string, unknown> }[] };
    const codes = answers.map(({ status, body: one }) => [status, one["error"]]);
    const fault = [503, "OUTCOME_UNKNOWN"];
    expect(codes).toEqual(requests.map(({ kind }) => (kind === "commit" ? fault : [200, undefined])));
    expect(api.faults).toHaveLength(1);
  });
});

describe("what people see", () => {
  const stuck = viewOf({ waitsFor: [THERE] });
  const done = viewOf({
    header: { ...HEADER, id: txnId(2) },
    phase: "committed",
    locks: [],
    results: [
      { version: 5, epoch: null, jobId: null },
      { version: null, epoch: 3, jobId: null },
      { version: null, epoch: null, jobId: "j-1" },
      { version: null, epoch: null, jobId: null },
    ],
    reason: { code: "txn_locked", message: "m", backendHash: null },
    undelivered: 1,
    isSettled: true,
    isInDoubt: false,
  });

  it("lists them, those in doubt alone where that is asked", async () => {
    participant.views = [stuck, done];
    const all = await look("/v1/txn");
    fits("txns", all);
    expect(all.json["next"]).toBe(null);
    expect(all.json["transactions"]).toEqual([
      {
        txn_id: TXN,
        home: THERE,
        participants: [HERE, THERE],
        timeout_ms: 5_000,
        by: CLIENT,
        state: "prepared",
        at_ms: 1_700_000_000_000,
        locks: ["value orders/cursor"],
        results: [],
        reason: null,
        undelivered: 0,
        waits_for: [THERE],
        settled: false,
        in_doubt: true,
      },
      expect.objectContaining({
        txn_id: txnId(2),
        state: "committed",
        results: [{ version: 5 }, { epoch: 3 }, { job_id: "j-1" }, {}],
        reason: { code: "txn_locked", message: "m", backend_hash: null },
        undelivered: 1,
        settled: true,
      }),
    ]);
    const ids = ({ json }: Got): unknown[] => (json["transactions"] as { txn_id: string }[]).map((one) => one.txn_id);
    expect(ids(await look("/v1/txn?in_doubt=true"))).toEqual([TXN]);
    expect(ids(await look("/v1/txn?in_doubt=false", "tc/payments"))).toEqual([TXN, txnId(2)]);
    const first = await look("/v1/txn?limit=1");
    expect([ids(first), first.json["next"]]).toEqual([[TXN], TXN]);
    expect(ids(await look(`/v1/txn?limit=1&after=${TXN}`))).toEqual([txnId(2)]);
  });

  it("a page ends before it is too large, and the next one goes on behind it", async () => {
    const locks = Array.from({ length: 64 }, (_, at) => `value ${"x".repeat(250)}${at}`);
    participant.views = Array.from({ length: 200 }, (_, at) => viewOf({ header: { ...HEADER, id: txnId(at) }, locks }));
    const seen: string[] = [];
    let after = "";
    for (let page = 0; page < 10; page++) {
      const { json } = await look(`/v1/txn${after}`);
      const rows = json["transactions"] as { txn_id: string }[];
      expect(JSON.stringify(json).length).toBeLessThan(1024 * 1024 + 32 * 1024);
      seen.push(...rows.map((one) => one.txn_id));
      if (json["next"] === null) break;
      expect(json["next"]).toBe(rows.at(-1)!.txn_id);
      after = `?after=${rows.at(-1)!.txn_id}`;
    }
    expect(seen).toEqual(participant.views.map(({ header }) => header.id));
  });

  it("one by its id, or none", async () => {
    participant.views = [done];
    const got = await look(`/v1/txn/${txnId(2)}`);
    fits("txnById", got);
    expect(got.json["txn_id"]).toBe(txnId(2));
    await refuses(look(`/v1/txn/${TXN}`), "txn_not_found", "txnById");
    await refuses(look("/v1/txn/stage"), "BAD_REQUEST", "txnById");
  });

  it("asks home about one; by force it is an operator's alone, and written down before it is done", async () => {
    participant.views = [stuck];
    const asked = await send("replayTxn", { txn_id: TXN }, "tc/payments");
    fits("replayTxn", asked);
    expect(asked.json).toEqual({ txn_id: TXN, state: "prepared" });
    await refuses(send("replayTxn", { txn_id: TXN, force: "committed" }, "tc/payments"), "tc_forbidden", "replayTxn");
    expect(participant.replayed).toEqual([[TXN, null]]);
    api.audited.length = 0;
    const forced = await send("replayTxn", { txn_id: TXN, force: "rolled_back" }, "operator/eve");
    expect(forced.json).toEqual({ txn_id: TXN, state: "rolled_back" });
    expect(participant.replayed[1]).toEqual([TXN, "rolled-back"]);
    const who = { who: "spiffe://tenure/operator/eve", operation: "replayTxn", target: TXN, forced: true };
    expect(api.audited).toMatchObject([
      { phase: "begun", ...who },
      { phase: "ended", outcome: "OK", ...who },
    ]);
    await refuses(
      send("replayTxn", { txn_id: txnId(9), force: "committed" }, "operator/eve"),
      "txn_not_found",
      "replayTxn",
    );
    api.audited.length = 0;
    await send("replayTxn", { txn_id: TXN }, "operator/eve");
    expect(api.audited).toMatchObject([{ forced: false }, { forced: false }]);
  });
});

describe("a node that takes no part", () => {
  it("says so to everybody who may ask", async () => {
    await using t = await island.start();
    const asked: (readonly [RouteId, unknown])[] = [
      ["txn", BODY],
      ["stageTxn", STAGE],
      ["decideTxn", DECIDE],
      ...CALLS.map((id) => [id, requestCall(HERE, REQUESTS[id]).body] as const),
      ["batchTxns", batchCall(HERE, [REQUESTS.inquireTxn]).body],
    ];
    for (const [id, body] of asked) {
      const path = ROUTES[id].path;
      const got = island.ask(t.port, { as: "server/n2", method: "POST", path, body });
      expect((await refuses(got, "tc_unavailable", id))["message"]).toContain("n1");
    }
    const replay = { as: "operator/eve", method: "POST", path: "/v1/txn/replay", body: { txn_id: TXN } } as const;
    await refuses(island.ask(t.port, replay), "tc_unavailable", "replayTxn");
    for (const path of ["/v1/txn", `/v1/txn/${TXN}`])
      await refuses(island.ask(t.port, { as: "operator/eve", path }), "tc_unavailable", "txns");
  });
});

describe("rates", () => {
  it("calls of islands and of clients have none: one that is refused for it would leave values locked", async () => {
    await using t = await island.start(undefined, {
      transactions: participant,
      txnDecider: decider,
      limits: { adminPerWindow: 2, acquirePerWindow: 2 },
    });
    participant.views = [viewOf()];
    const ask = (as: string, path: string, body: unknown): Promise<Got> =>
      island.ask(t.port, { as, method: "POST", path, body });
    for (let time = 0; time < 6; time++) {
      expect((await ask("server/n2", ROUTES.txn.path, BODY)).status).toBe(200);
      for (const id of CALLS)
        expect((await ask("server/n2", ROUTES[id].path, requestCall(HERE, REQUESTS[id]).body)).status).toBe(200);
      const { body } = batchCall(HERE, [REQUESTS.inquireTxn]);
      expect((await ask("server/n2", ROUTES.batchTxns.path, body)).status).toBe(200);
    }
    const statuses = [];
    for (let time = 0; time < 3; time++)
      statuses.push((await ask("operator/eve", ROUTES.replayTxn.path, { txn_id: TXN })).status);
    expect(statuses).toEqual([200, 200, 429]);
  });
});

it("a report for an island is not taken from a server of another one, alone and in a batch; its other calls are", async () => {
  await api[Symbol.asyncDispose]();
  const endpoint = "https://n2:1";
  const coordinators = {
    members: () => ({ voters: [], leases: [{ identity: "n2", endpoint }] }),
    registry: () => ({ entries: [{ backendHash: HERE, endpoint }], updatedAtMs: 1 }),
  } as unknown as Coordinators;
  api = await island.start(coordinators, { transactions: participant, txnDecider: decider });
  await refuses(send("settledTxns", requestCall(HERE, REQUESTS.settledTxns).body), "tc_forbidden", "settledTxns");
  const { json } = await send("batchTxns", batchCall(HERE, [REQUESTS.settledTxns, REQUESTS.inquireTxn]).body);
  expect(json).toMatchObject({ answers: [{ status: 403, body: { error: "tc_forbidden" } }, { status: 200 }] });
  expect(participant.asked.map(({ kind }) => kind)).toEqual(["inquire"]);
});
