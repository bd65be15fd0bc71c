// Requests that the contract of transactions allows, nearly allows and does not allow, from those who may call: each is answered as the contract says, and
// what reaches this island's part or whoever decides is whole: it can be written and read again.

import { Agent, request } from "node:https";
import fc from "fast-check";
import { expect, it } from "vitest";
import { COMMON_ERRORS, type Route, type RouteId, ROUTES, shape } from "../../src/contract/index.ts";
import { ERRORS, type ErrorCode, TenureError } from "../../src/core/kit/errors.ts";
import { TXN_BYTES_MAX } from "../../src/core/kit/limits.ts";
import { TXN_REFUSALS } from "../../src/core/txn/wire-answers.ts";
import { headerBody, requestCall } from "../../src/core/txn/wire-calls.ts";
import { operationsBytes } from "../../src/core/txn/wire-operations.ts";
import { TestIsland } from "./test-coordinators.ts";
import { isRecord, pathOf, requestsWith } from "./test-requests.ts";
import { HEADER, HERE, prepared, TestDecider, TestParticipant, TXN, viewOf } from "./test-transactions.ts";

const REQUESTS = 5_000;
const SEED = 20_261_119;
const LIMIT_MS = 300_000;

const IDS = (Object.keys(ROUTES) as RouteId[]).filter((id) => ROUTES[id].path.startsWith("/v1/txn"));
const UNDECIDED = ["tc_unavailable", "tc_not_leader", "txn_conflict", "txn_fanout_failed", "OUTCOME_UNKNOWN"] as const;
/** With these a body is for this island, and about a transaction: hardly any draw would be. */
const MEANT = { target_backend_hash: HERE, txn: headerBody(HEADER), tc_cluster_id: "c-1", recovered_by: "n2@b2" };
const wild = fc.record({
  as: fc.constantFrom("server/n2", "server/n2", "tc/payments", "operator/eve"),
  isMeant: fc.integer({ min: 0, max: 9 }).map((one) => one < 8),
  headers: fc.constantFrom({}, { "x-tenure-tc-forwarded": "1" }, { "x-tenure-on-behalf-of": "spiffe://tenure/tc/x" }),
  refusal: fc.option(fc.constantFrom(...TXN_REFUSALS), { freq: 6 }),
  undecided: fc.option(fc.constantFrom<ErrorCode>(...UNDECIDED), { freq: 6 }),
});

interface Said {
  readonly status: number;
  readonly json: Record<string, unknown>;
}

it(
  `${REQUESTS} requests, each answered as the contract says`,
  async () => {
    const island = await TestIsland.make();
    const participant = new TestParticipant();
    const decider = new TestDecider();
    participant.views = [viewOf()];
    await using api = await island.start(undefined, {
      transactions: participant,
      txnDecider: decider,
      limits: { adminPerWindow: 1_000_000 },
    });
    const agents = new Map<string, Agent>();
    const agentOf = async (as: string): Promise<Agent> => {
      const { cert, key } = await island.pair(as);
      const agent = agents.get(as) ?? new Agent({ keepAlive: true, maxSockets: 1, ca: island.ca.cert, cert, key });
      agents.set(as, agent);
      return agent;
    };
    const ask = async (as: string, method: string, path: string, body: unknown, more: object): Promise<Said> => {
      const agent = await agentOf(as);
      const type = body === undefined ? {} : { "content-type": "application/json" };
      const headers = { ...type, ...more };
      return new Promise((resolve, reject) => {
        const sent = request({ port: api.port, host: "127.0.0.1", method, path, agent, headers }, (answer) => {
          let text = "";
          answer.on("data", (chunk: Buffer) => (text += chunk.toString()));
          answer.on("end", () => resolve({ status: answer.statusCode ?? 0, json: JSON.parse(text) as never }));
        });
        sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
      });
    };
    const seen = new Map<string, number>();
    const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);
    try {
      await fc.assert(
        fc.asyncProperty(
          requestsWith(wild, [], IDS),
          async ({ id, scope, query, body, wild: { as, isMeant, headers, refusal, undecided } }) => {
            const route: Route = ROUTES[id];
            participant.says = (asked) =>
              refusal === null ? prepared(asked) : { kind: "refused", code: refusal, message: "why" };
            decider.before = () => {
              if (undecided !== null) throw new TenureError(undecided, "why");
            };
            if (isMeant && isRecord(body)) {
              for (const [name, value] of Object.entries(MEANT)) if (name in body) body[name] = value;
            }
            const asked = participant.asked.length;
            const decided = decider.asked.length + decider.staged.length;
            const path = pathOf(route, isMeant ? TXN : scope, query);
            const { status, json } = await ask(as, route.method, path, body, headers);
            const text = `${id} as ${as} ${JSON.stringify(body)} ${JSON.stringify(json)}`;
            count(`${id} ${status}`);
            for (const one of participant.asked.slice(asked)) {
              expect(participant.backendHash, text).toBe(HERE);
              if ("operations" in one) expect(operationsBytes(one.operations ?? [])).toBeLessThanOrEqual(TXN_BYTES_MAX);
              const again = requestCall(HERE, one);
              const target = Object.values(ROUTES as Record<string, Route>).find((to) => to.path === again.path);
              expect(target!.body!.check(JSON.parse(JSON.stringify(again.body))), text).toMatchObject({ ok: true });
            }
            const kind = as.split("/")[0] as "server";
            if (!route.identities!.includes(kind)) {
              expect([status, json["error"]], text).toEqual([403, "tc_forbidden"]);
              return;
            }
            if (status === 200) {
              expect(shape(route.answer!).check(json), text).toMatchObject({ ok: true });
              return;
            }
            const code = json["error"] as ErrorCode;
            expect(ERRORS[code].http, text).toBe(status);
            expect(code, text).not.toBe("INTERNAL");
            expect(json["detail"], text).toBe(json["message"]);
            const isTold = code === refusal || code === undecided;
            if (isTold) return;
            expect([...COMMON_ERRORS, ...route.errors], text).toContain(code);
            if (status === 400) expect(json["field"], text).toEqual(expect.any(String));
            // Nobody was asked.
            expect(participant.asked.length, text).toBe(asked);
            expect(decider.asked.length + decider.staged.length, text).toBe(decided);
          },
        ),
        { numRuns: REQUESTS, seed: SEED, endOnFailure: true },
      );
    } finally {
      for (const agent of agents.values()) agent.destroy();
    }
    expect([api.faults, api.lines]).toEqual([[], []]);
    const shown = JSON.stringify([...seen]);
    for (const id of IDS)
      for (const status of [200, 403])
        expect(seen.get(`${id} ${status}`) ?? 0, `${id} ${status}: ${shown}`).toBeGreaterThan(0);
    for (const id of IDS.filter((one) => ROUTES[one].method === "POST"))
      expect(seen.get(`${id} 400`) ?? 0, `${id}: ${shown}`).toBeGreaterThan(0);
    for (const what of ["prepareTxn 409", "commitTxn 409", "recoverTxns 409", "txn 502", "txn 503", "stageTxn 409"])
      expect(seen.get(what) ?? 0, `${what}: ${shown}`).toBeGreaterThan(0);
  },
  LIMIT_MS,
);
