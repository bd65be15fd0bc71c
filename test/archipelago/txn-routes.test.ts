// Every route of transactions, and every read of the coordinators, on the three servers of a real island: what the contract says is what they answer, on each
// of them, and what only the island's leader does is refused elsewhere with the way to it.

import { randomUUIDv7 } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import type { TxnHeader, TxnRequest } from "../../src/core/txn/model.ts";
import { answerOf, batchAnswersOf, elsewhereOf } from "../../src/core/txn/wire-answers.ts";
import { batchCall, requestCall } from "../../src/core/txn/wire-calls.ts";
import type { TenureAnswer } from "../servers/index.ts";
import { ISLANDS_START_MS, PATIENT_MS, type TestCertificate, type TestIsland, TestIslands } from "./test-islands.ts";
import { put, TestTransactions } from "./test-transactions.ts";

const LIMIT_MS = 4 * PATIENT_MS;
/** An island that there is not: it never answers. */
const GONE = "f".repeat(64);

let islands: TestIslands;
let transactions: TestTransactions;
let operator: TestCertificate;
let own: string;
let leader: TestIsland;
let standbys: readonly TestIsland[];

beforeAll(async () => {
  islands = await TestIslands.start({ islands: 1, nodes: 3 });
  transactions = await TestTransactions.of(islands);
  operator = await islands.issue("operator", "eve");
  own = transactions.hash(islands.all[0]!);
  const roles = await Promise.all(islands.all.map(async (one) => [one, (await one.node.view())?.role] as const));
  leader = roles.find(([, role]) => role === "LEADER")![0];
  standbys = islands.all.filter((one) => one !== leader);
}, ISLANDS_START_MS);

afterAll(() => islands?.end(), PATIENT_MS);

function fits(id: RouteId, { status, body }: TenureAnswer): void {
  expect([status, body["error"]], JSON.stringify(body)).toEqual([200, undefined]);
  expect(shape((ROUTES[id] as Route).answer!).check(body)).toEqual({ ok: true, value: body });
}

/** By a server, as one island calls another. */
function send(at: TestIsland, request: TxnRequest): Promise<TenureAnswer> {
  const { path, body } = requestCall(own, request);
  return at.call(path, { body });
}

const wireOf = ({ status, body }: TenureAnswer) => ({ status, body });

it(
  "what clients ask is done by every server, whichever leads what",
  async () => {
    for (const at of islands.all) {
      const done = await transactions.run(at, { at: { [at.id]: [put(`by-${at.id}`, 1)] } });
      fits("txn", done as TenureAnswer);
      expect(done.body).toMatchObject({ state: "committed", home: own, participants: [{ state: "applied" }] });
      const id = randomUUIDv7();
      const name = `staged-${at.id}`;
      const stage = {
        txn_id: id,
        home_backend_hash: own,
        target_backend_hash: own,
        operations: [put(name, 2)],
        expires_in_ms: 60_000,
      };
      fits("stageTxn", await at.call("/v1/txn/stage", { body: stage }, transactions.certificate));
      const decide = { txn_id: id, state: "commit", participants: [own] };
      const decided = await at.call("/v1/txn/decide", { body: decide }, transactions.certificate);
      fits("decideTxn", decided);
      expect(decided.body["state"]).toBe("commit");
      expect(await transactions.value(leader, name)).toMatchObject({ value: 2 });
    }
  },
  LIMIT_MS,
);

it(
  "what an island has promised is locked and shown on every server; only the island's leader takes calls of islands, and the others name it",
  async () => {
    const { body: seen } = await leader.call<{ self: { tc_cluster_id: string; term: number } }>("/v1/tc/leader");
    const fence = { clusterId: seen.self.tc_cluster_id, term: (await islands.leader()).term, recoveredBy: null };
    const header: TxnHeader = {
      id: randomUUIDv7(),
      home: GONE,
      participants: [own],
      digest: "d".repeat(64),
      timeoutMs: 1_000,
      by: "spiffe://tenure/tc/test",
    };
    const operations = [
      { kind: "value-put", name: "held", data: new TextEncoder().encode("1"), ifVersion: null },
    ] as const;
    const prepare = { kind: "prepare", header, operations, fence } as const;
    const inquire = { kind: "inquire", header: { ...header, home: own, id: randomUUIDv7() } } as const;
    for (const one of standbys) {
      for (const request of [prepare, inquire, { kind: "recover", fence, after: null }] as const) {
        const answer = await send(one, request);
        expect([answer.status, answer.body["error"]]).toEqual([409, "NOT_LEADER"]);
        expect(elsewhereOf(wireOf(answer))).toEqual({ leaderUrl: leader.url });
      }
      const { path, body } = batchCall(own, [prepare, inquire]);
      const all = batchAnswersOf(2, wireOf(await one.call(path, { body })))!;
      expect(all.map((answer) => elsewhereOf(answer))).toEqual([{ leaderUrl: leader.url }, { leaderUrl: leader.url }]);
    }
    const prepared = await send(leader, prepare);
    fits("prepareTxn", prepared);
    expect(answerOf(prepare, wireOf(prepared))).toMatchObject({ kind: "txn", phase: "prepared" });
    const free = await transactions.run(leader, { at: { [leader.id]: [put("free", 1)] } });
    expect(free.body.state).toBe("committed");
    for (const one of islands.all) {
      const get = (path: string, as = operator): Promise<TenureAnswer> =>
        one.call(`${path}${path.includes("?") ? "&" : "?"}consistency=linearizable`, {}, as);
      const value = await get("/v1/values/free");
      fits("value", value);
      expect(value.body).not.toHaveProperty("pending_txn");
      const doubt = await get("/v1/txn?in_doubt=true");
      fits("txns", doubt);
      expect(doubt.body).toMatchObject({
        transactions: [{ txn_id: header.id, state: "prepared", locks: ["value held"], in_doubt: true }],
        next: null,
      });
      const shown = await get(`/v1/txn/${header.id}`, transactions.certificate);
      fits("txnById", shown);
      expect(shown.headers).toMatchObject({ "x-tenure-node": one.id });
      const unknown = await get(`/v1/txn/${randomUUIDv7()}`);
      expect([unknown.status, unknown.body["error"]]).toEqual([404, "txn_not_found"]);
    }
    const write = await leader.call("/v1/values/held", { method: "PUT", body: { value: 2 } }, operator);
    expect([write.status, write.body["error"]]).toEqual([409, "txn_locked"]);
    expect(write.body["message"]).toContain(`tenure txn show ${header.id}`);
    const refused = await transactions.run(leader, { at: { [leader.id]: [put("held", 3)] } });
    expect(refused.body).toMatchObject({ state: "rolled_back", reason: { code: "txn_locked" } });
    // Nobody is asked to death: it stays as it is until a person says what is to come of it.
    const replay = { txn_id: header.id };
    const asked = await leader.call("/v1/txn/replay", { body: replay }, transactions.certificate);
    fits("replayTxn", asked);
    expect(asked.body["state"]).toBe("prepared");
    const force = { ...replay, force: "committed" };
    const elsewhere = await standbys[0]!.call("/v1/txn/replay", { body: force }, operator);
    expect([elsewhere.status, elsewhere.body["leader_url"]]).toEqual([409, leader.url]);
    const forced = await leader.call("/v1/txn/replay", { body: force }, operator);
    fits("replayTxn", forced);
    expect(forced.body["state"]).toBe("committed");
    expect(await transactions.value(leader, "held")).toMatchObject({ value: 1 });
  },
  LIMIT_MS,
);

it(
  "every read of coordinators and of transactions fits the contract, on every server",
  async () => {
    const done = await transactions.run(leader, { at: { [leader.id]: [put("read", 1)] } });
    const reads = (Object.entries(ROUTES) as [RouteId, Route][]).filter(
      ([, { method, errors }]) => method === "GET" && errors.includes("tc_unavailable"),
    );
    expect(reads.map(([id]) => id).toSorted()).toEqual(
      ["islands", "tcBackends", "tcLeader", "tcMembers", "txnById", "txns"].toSorted(),
    );
    for (const [id, { path }] of reads) {
      for (const one of islands.all) {
        const filled = path.replace(":id", done.body.txn_id!);
        await islands.until(`${one.id} to have it`, PATIENT_MS, async () => {
          return (await one.call(filled, {}, operator)).status === 200;
        });
        fits(id, await one.call(filled, {}, operator));
      }
    }
  },
  LIMIT_MS,
);
