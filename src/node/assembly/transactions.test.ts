// In which term a node may decide transactions, and where it sends those that it may not.

import { expect, it } from "vitest";
import { Coordinator } from "../../controller/coordinators/coordinator.ts";
import { Bench } from "../../controller/coordinators/test-bench.ts";
import type { TxnAttached } from "../../controller/transactions/transactions.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { LEASE_TTL_MS } from "../../core/lease/limits.ts";
import type { TxnRequest } from "../../core/txn/model.ts";
import type { TxnBody } from "../../ports/transactions.ts";
import { assembleCoordination } from "./coordinators.ts";
import { assembleDecider } from "./transactions.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const ISLAND = "a".repeat(64);
const BODY: TxnBody = {
  id: "019aa000-0000-7000-8000-000000000001",
  home: ISLAND,
  timeoutMs: null,
  require: [],
  participants: [{ backendHash: ISLAND, operations: [{ kind: "value-check", name: "v", ifVersion: 0 }] }],
};

function rigged() {
  const bench = new Bench();
  const coordination = assembleCoordination({
    self: bench.self,
    endpoint: "a",
    make: (hooks) => ({ coordinator: new Coordinator(bench.options(hooks)), endpoint: "a" }),
    clock: bench.clock,
    random: seededRandom(1),
    logger: SILENT,
  });
  const { coordinator } = coordination.service;
  const sent: TxnRequest[] = [];
  const forwarded: string[] = [];
  let attached: TxnAttached = {};
  const decider = assembleDecider({
    coordination,
    transactions: { backendHash: ISLAND, get: () => null, attach: (parts) => void (attached = parts) },
    calls: {
      islands: () => [ISLAND],
      isHeard: () => Promise.resolve(true),
      call: async (_target, request) => {
        sent.push(request);
        if (request.kind === "recover") return { kind: "recovered", open: [], next: null };
        return { kind: "txn", phase: "committed", results: [], reason: null };
      },
    },
    forward: {
      run: async (endpoint) => {
        forwarded.push(endpoint);
        return null;
      },
      decide: async () => null,
    },
    clock: bench.clock,
    random: seededRandom(2),
    digest: { sha256Hex: () => "d".repeat(64) },
    logger: SILENT,
  });
  coordinator.start();
  const codeOf = async (): Promise<string> =>
    decider.run(BODY, { by: "payer", isForwarded: false }).then(
      ({ state }) => state,
      (error: { code: string }) => error.code,
    );
  return { bench, coordination, decider, sent, forwarded, attached: () => attached, codeOf };
}

it("decides in the coordinator's own term while its gate is open, and tells the island which that is", async () => {
  const { bench, coordination, decider, sent, attached, codeOf } = rigged();
  expect([await codeOf(), attached().observed?.()]).toEqual(["tc_unavailable", null]);
  void coordination.lead((term) => decider.lead(term.signal));
  await bench.clock.advance(100);
  expect(await codeOf()).toBe("committed");
  const { clusterId, roster } = coordination.service.coordinator.ledger;
  const fence = { clusterId, term: 1, recoveredBy: roster!.recoveredBy };
  expect(sent).toEqual([{ kind: "recover", fence, after: null }, expect.objectContaining({ kind: "commit", fence })]);
  expect(attached().observed?.()).toEqual(fence);
});

it("closes with the gate, and forwards to nobody while this node itself is still taken for the leader", async () => {
  const { bench, coordination, decider, forwarded, codeOf } = rigged();
  void coordination.lead((term) => decider.lead(term.signal));
  await bench.clock.advance(100);
  bench.isLost = () => true;
  await bench.clock.advance(LEASE_TTL_MS - 200);
  expect(coordination.elector.gate.isLeader).toBe(false);
  expect(["tc_not_leader", "tc_unavailable"]).toContain(await codeOf());
  expect(forwarded).toEqual([]);
});

it("forwards to the leader that this node's own voter knows", async () => {
  const { bench, coordination, forwarded, codeOf } = rigged();
  const [other] = bench.others.values();
  await bench.clock.advance(10);
  const { ledger } = coordination.service.coordinator;
  const roster = { ...ledger.roster!, term: 5, version: 1 };
  const holder = other!.self;
  const request = { clusterId: ledger.clusterId!, holder, voter: bench.self, term: 5, ttlMs: LEASE_TTL_MS, roster };
  await coordination.service.coordinator.answer("b", { kind: "acquire", ...request });
  expect(await codeOf()).toBe("tc_not_leader");
  expect(forwarded).toEqual([roster.voters.find(({ peer }) => peer === holder)!.endpoint]);
});
