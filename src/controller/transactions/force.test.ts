// A word of force, over the calls that a server has: it counts where home can't be heard, and nowhere else.

import { describe, expect, it } from "vitest";
import { ERRORS } from "../../core/kit/errors.ts";
import { seededRandom } from "../../core/kit/random.ts";
import type { TcAnswer } from "../../drivers/coordinators/index.ts";
import { HttpIslandCalls } from "../../drivers/transactions/index.ts";
import { putting, type TestIsland, TestIslands, TestTxn } from "../../sim/controller/test-txn-islands.ts";
import { watch } from "../scopes/test-scopes.ts";

async function committedAtHome(registered: boolean, answer: (nowMs: number) => TcAnswer | null) {
  const islands = await new TestIslands("review2", [1, 1]).start();
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
  const homes = [1, 2, 3].map((n) => ({ backendHash: home.hash, endpoint: `https://n${n}:1` }));
  const { transactions } = other.leader.state;
  const calls = new HttpIslandCalls({
    http: {
      exchange: ({ endpoint, withinMs }) => {
        asked.push(endpoint);
        const { promise, resolve } = Promise.withResolvers<TcAnswer | null>();
        const said = answer(clock.nowMs);
        clock.setTimer(clock.nowMs + (said === null ? withinMs : 5), () => resolve(said));
        return promise;
      },
    },
    registry: () => (registered ? [own, ...homes] : []),
    own: { backendHash: other.hash, answer: (request) => transactions.answer(request) },
    ownEndpoint: own.endpoint,
    clock,
    random: seededRandom(1),
    nextTurn: (begin) => void clock.setTimer(clock.nowMs, begin),
  });
  transactions.attach({ calls });
  return { islands, home, other, txn, asked, transactions };
}

const error = (code: "ERR_NO_LEADER"): TcAnswer => ({
  from: "n1",
  status: ERRORS[code].http,
  body: { error: code, message: "nobody leads at this moment" },
});

describe("a word of force", () => {
  it("does not count while home's nodes answer and elect a leader: it has committed it", async () => {
    const { islands, home, other, txn, asked, transactions } = await committedAtHome(true, () =>
      error("ERR_NO_LEADER"),
    );
    const forcing = watch(transactions.replay(txn.id, "rolled-back"));
    await islands.clock.advance(3_000);
    expect(asked.length).toBeGreaterThan(3);
    expect([home.phase(txn.id), other.phase(txn.id), forcing.code]).toEqual(["committed", "prepared", "txn_pending"]);
  });

  it("does not count where this node's coordinator has no registry yet: nobody is asked", async () => {
    const { islands, home, other, txn, asked, transactions } = await committedAtHome(false, () => null);
    const forcing = watch(transactions.replay(txn.id, "rolled-back"));
    await islands.clock.advance(3_000);
    expect(asked).toEqual([]);
    expect([home.phase(txn.id), other.phase(txn.id), forcing.code]).toEqual(["committed", "prepared", "txn_pending"]);
  });

  it("counts at last where this island has no coordinator any more, and home is gone for good", async () => {
    const { islands, other, txn, transactions } = await committedAtHome(false, () => null);
    // [tc] was taken out of its configuration.
    transactions.attach({ calls: undefined, isAlone: true });
    let said = "";
    for (let hour = 0; hour < 24 && said !== "rolled-back"; hour++) {
      const forcing = watch(transactions.replay(txn.id, "rolled-back"));
      await islands.clock.advance(3_600_000);
      said = String(forcing.code ?? forcing.value);
    }
    expect([said, other.phase(txn.id)]).toEqual(["rolled-back", "rolled-back"]);
  });
});
