// A scope that a transaction acquires is its session's, also for the one who asked for it while it was locked.

import { describe, expect, it } from "vitest";
import { acquiring, putting, type TestIsland, TestIslands, TestTxn } from "../../sim/controller/test-txn-islands.ts";
import { watch } from "../scopes/test-scopes.ts";

const REQUEST = { scope: "orders", session: "S", identity: "id-S", metadata: {}, ttlMs: 10_000 };

/** It is acquired for the session S by a transaction; S asks for it between prepare and commit, as an instance that campaigns does. */
async function acquired() {
  const islands = await new TestIslands("acquire", [1, 1]).start();
  const [home, other] = islands.all as [TestIsland, TestIsland];
  const { scopes } = other.leader.state;
  const txn = new TestTxn(
    islands,
    [
      [home, [putting("x", "1")]],
      [other, [acquiring("orders", "S")]],
    ],
    { timeoutMs: 60_000 },
  );
  await other.answer(txn.prepare(other));
  const asked = watch(scopes.acquire({ ...REQUEST, waitMs: 30_000 }, new AbortController().signal));
  await islands.clock.advance(10);
  await home.answer(txn.commit(home));
  const committed = await other.answer(txn.commit(other));
  const { epoch } = (committed as { results: readonly { epoch: number }[] }).results[0]!;
  return { clock: islands.clock, scopes, asked, epoch };
}

describe("a scope that is acquired in a transaction", () => {
  it("is given to its session, which asked for it while it was locked, and kept where it is renewed", async () => {
    const { clock, scopes, asked, epoch } = await acquired();
    await clock.advance(1_000);
    expect(asked.value).toMatchObject({ granted: true, epoch });
    await clock.advance(5_000);
    expect(await scopes.renew("orders", "S", epoch)).toMatchObject({ epoch });
  });

  it("is not granted in another epoch to the session that waits for it", async () => {
    const { clock, asked, epoch } = await acquired();
    await clock.advance(15_000);
    expect(asked.value).toMatchObject({ granted: true, epoch });
  });
});
