// A word of force, over the calls that a server has: it counts where no node of home answers as home, and nowhere else.

import { describe, expect, it } from "vitest";
import { type ErrorCode, ERRORS } from "../../core/kit/errors.ts";
import { seededRandom } from "../../core/kit/random.ts";
import type { TcAnswer } from "../../drivers/coordinators/index.ts";
import { HttpIslandCalls } from "../../drivers/transactions/index.ts";
import { ISLAND_QUEUE_MAX } from "../../drivers/transactions/limits.ts";
import { putting, type TestIsland, TestIslands, TestTxn } from "../../sim/controller/test-txn-islands.ts";
import { watch } from "../scopes/test-scopes.ts";

interface Said {
  readonly afterMs: number;
  readonly code: ErrorCode;
}

/** Home has committed. `node`: what its nth node answers, and when; null: it is dead. */
async function committedAtHome(nodes: number, node: (n: number) => Said | null, hasRegistry = true) {
  const islands = await new TestIslands("force", [1, 1]).start();
  const [home, other] = islands.all as [TestIsland, TestIsland];
  const txn = new TestTxn(islands, [
    [home, [putting("b", "home")]],
    [other, [putting("b", "other")]],
  ]);
  await other.answer(txn.prepare(other));
  await home.answer(txn.commit(home));
  const { clock } = islands;
  const asked: string[] = [];
  const own = { backendHash: other.hash, endpoint: "https://own:1" };
  const homes = Array.from({ length: nodes }, (_, at) => ({
    backendHash: home.hash,
    endpoint: `https://n${at + 1}:1`,
  }));
  const { transactions } = other.leader.state;
  const calls = new HttpIslandCalls({
    http: {
      exchange: ({ endpoint, path, withinMs }) => {
        asked.push(endpoint);
        const { promise, resolve } = Promise.withResolvers<TcAnswer | null>();
        const said = node(Number(/n(\d)/.exec(endpoint)![1]));
        const isHeard = said !== null && said.afterMs < withinMs;
        const answer =
          said === null ? null : path === "/v1/tc/leader" ? selfOf(said.code, home.hash) : errorOf(said.code);
        clock.setTimer(clock.nowMs + (isHeard ? said.afterMs : withinMs), () => resolve(isHeard ? answer : null));
        return promise;
      },
    },
    registry: () => (hasRegistry ? [own, ...homes] : []),
    own: { backendHash: other.hash, answer: (request) => transactions.answer(request) },
    ownEndpoint: own.endpoint,
    clock,
    random: seededRandom(1),
    nextTurn: (begin) => void clock.setTimer(clock.nowMs, begin),
  });
  transactions.attach({ calls });
  /** What comes of force within this time. */
  const forced = async (withinMs: number): Promise<readonly unknown[]> => {
    const forcing = watch(transactions.replay(txn.id, "rolled-back"));
    await clock.advance(withinMs);
    return [home.phase(txn.id), other.phase(txn.id), forcing.code ?? forcing.value];
  };
  return { home, other, txn, asked, transactions, calls, clock, forced };
}

function errorOf(code: ErrorCode): TcAnswer {
  return { from: "n", status: ERRORS[code].http, body: { error: code, message: "said" } };
}

/** A node that was restored is of another island. */
function selfOf(code: ErrorCode, home: string): TcAnswer {
  const backend_hash = code === "txn_backend_mismatch" ? "e".repeat(64) : home;
  return { from: "n", status: 200, body: { self: { backend_hash } } };
}

const NOT_FORCED = ["committed", "prepared", "txn_pending"];
const FORCED = ["committed", "rolled-back", "rolled-back"];

describe("force does not count", () => {
  it.each<[string, number, (n: number) => Said | null]>([
    ["while home's nodes answer and elect a leader", 3, () => ({ afterMs: 5, code: "ERR_NO_LEADER" })],
    [
      "where home's leader has just died, and the two others say so after TURNOVER_WAIT_MS",
      3,
      (n) => (n === 1 ? null : { afterMs: 1_000, code: "ERR_NO_LEADER" }),
    ],
    [
      "where two of home's five nodes are dead, and no call comes to those that live",
      5,
      (n) => (n <= 2 ? null : { afterMs: 1, code: "ERR_NO_LEADER" }),
    ],
  ])("%s", async (_, nodes, node) => {
    const { forced, asked } = await committedAtHome(nodes, node);
    expect(await forced(5_000)).toEqual(NOT_FORCED);
    expect(new Set(asked).size).toBe(nodes);
  });

  it("where this node's coordinator has no registry yet: nobody is asked", async () => {
    const { forced, asked } = await committedAtHome(3, () => null, false);
    expect(await forced(3_000)).toEqual(NOT_FORCED);
    expect(asked).toEqual([]);
  });

  it("where home's lane is full, and home is not asked what it has decided", async () => {
    const { home, other, txn, calls, clock, forced } = await committedAtHome(1, () => ({
      afterMs: 100,
      code: "ERR_NO_LEADER",
    }));
    const report = { kind: "settled", from: other.hash, ids: [txn.id] } as const;
    for (let n = 0; n < ISLAND_QUEUE_MAX; n++) void calls.call(home.hash, report, 60_000);
    await clock.advance(1_050);
    expect(await forced(5_000)).toEqual(NOT_FORCED);
  });
});

describe("force counts at last where home is gone for good", () => {
  it("and this island has no coordinator any more", async () => {
    const { transactions, forced } = await committedAtHome(3, () => null, false);
    // [tc] was taken out of its configuration.
    transactions.attach({ calls: undefined, isAlone: true });
    expect(await forced(5_000)).toEqual(FORCED);
  });

  it("whoever is at its addresses: two of its nodes were restored as another island, and the registry can't be changed", async () => {
    const { forced } = await committedAtHome(3, (n) => (n > 1 ? { afterMs: 1, code: "txn_backend_mismatch" } : null));
    expect(await forced(5_000)).toEqual(FORCED);
  });
});
