// A word of force, and the nodes of home: it counts where none of them answers as home, and nowhere else.

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
async function committedAtHome(nodes: number, node: (n: number) => Said | null) {
  const islands = await new TestIslands("review3", [1, 1]).start();
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
        asked.push(`${endpoint} ${withinMs}`);
        const { promise, resolve } = Promise.withResolvers<TcAnswer | null>();
        const said = node(Number(/n(\d)/.exec(endpoint)![1]));
        const isHeard = said !== null && said.afterMs < withinMs;
        const answer =
          said === null ? null : path === "/v1/tc/leader" ? selfOf(said.code, home.hash) : errorOf(said.code);
        clock.setTimer(clock.nowMs + (isHeard ? said.afterMs : withinMs), () => resolve(isHeard ? answer : null));
        return promise;
      },
    },
    registry: () => [own, ...homes],
    own: { backendHash: other.hash, answer: (request) => transactions.answer(request) },
    ownEndpoint: own.endpoint,
    clock,
    random: seededRandom(1),
    nextTurn: (begin) => void clock.setTimer(clock.nowMs, begin),
  });
  transactions.attach({ calls });
  return { islands, home, other, txn, asked, transactions, calls };
}

function errorOf(code: ErrorCode): TcAnswer {
  return { from: "n", status: ERRORS[code].http, body: { error: code, message: "said" } };
}

/** A node that was restored is of another island. */
function selfOf(code: ErrorCode, home: string): TcAnswer {
  const backend_hash = code === "txn_backend_mismatch" ? "e".repeat(64) : home;
  return { from: "n", status: 200, body: { self: { backend_hash } } };
}

describe("force does not count though nobody of home leads", () => {
  it("its leader has just died; the two others elect one, and say so after TURNOVER_WAIT_MS", async () => {
    const { islands, home, other, txn, asked, transactions } = await committedAtHome(3, (n) =>
      n === 1 ? null : { afterMs: 1_000, code: "ERR_NO_LEADER" },
    );
    const forcing = watch(transactions.replay(txn.id, "rolled-back"));
    await islands.clock.advance(5_000);
    expect([home.phase(txn.id), other.phase(txn.id), forcing.code, asked]).toEqual([
      "committed",
      "prepared",
      "txn_pending",
      expect.anything(),
    ]);
  });

  it("two of its five nodes are dead: the three that live are never asked", async () => {
    const { islands, home, other, txn, asked, transactions } = await committedAtHome(5, (n) =>
      n <= 2 ? null : { afterMs: 1, code: "ERR_NO_LEADER" },
    );
    const forcing = watch(transactions.replay(txn.id, "rolled-back"));
    await islands.clock.advance(5_000);
    expect([home.phase(txn.id), other.phase(txn.id), forcing.code, asked]).toEqual([
      "committed",
      "prepared",
      "txn_pending",
      expect.anything(),
    ]);
  });

  it("its lane is full: home is not asked at all", async () => {
    const { islands, home, other, txn, transactions, calls } = await committedAtHome(1, () => ({
      afterMs: 100,
      code: "ERR_NO_LEADER",
    }));
    const report = { kind: "settled", from: other.hash, ids: [txn.id] } as const;
    for (let n = 0; n < ISLAND_QUEUE_MAX; n++) void calls.call(home.hash, report, 60_000);
    await islands.clock.advance(1_050);
    const forcing = watch(transactions.replay(txn.id, "rolled-back"));
    await islands.clock.advance(5_000);
    expect([home.phase(txn.id), other.phase(txn.id), forcing.code]).toEqual(["committed", "prepared", "txn_pending"]);
  });
});

describe("force counts where home is gone for good, whoever is at its addresses", () => {
  it("two of its nodes were restored as another island, the third is gone, and the registry can't be changed", async () => {
    const { islands, other, txn, transactions } = await committedAtHome(3, (n) =>
      n > 1 ? { afterMs: 1, code: "txn_backend_mismatch" } : null,
    );
    let said = "";
    for (let minute = 0; minute < 60 && said !== "rolled-back"; minute++) {
      const forcing = watch(transactions.replay(txn.id, "rolled-back"));
      await islands.clock.advance(60_000);
      said = String(forcing.code ?? forcing.value);
    }
    expect([said, other.phase(txn.id)]).toEqual(["rolled-back", "rolled-back"]);
  });
});
