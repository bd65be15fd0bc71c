// The Maelstrom node under our own router: real processes, a partition, clients that talk to any node, and the checker over
// everything they were answered. With lost and late messages and kill -9: linearizable.test.ts.

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { type Body, ERROR } from "./protocol.ts";
import { expectLinearizable, Load, startRouter } from "./test-load.ts";

describe("the Maelstrom node", () => {
  test("speaks lin-kv: init, write, read, cas, and errors with Maelstrom's codes, on every node alike", async () => {
    const router = await startRouter({ nodes: 3, random: seededRandom(1), delayMsMax: 0, loss: 0 });
    const ask = async (node: string, body: Body): Promise<Body | null> => {
      for (;;) {
        const answer = await router.ask("c1", node, body, 5_000);
        if (answer?.["code"] !== ERROR.temporarilyUnavailable) return answer;
        await sleep(20);
      }
    };
    for (const [at, node] of router.nodeIds.entries()) {
      const key = ["a key that is not text", at];
      expect(await ask(node, { type: "read", key })).toMatchObject({ type: "error", code: ERROR.keyDoesNotExist });
      expect(await ask(node, { type: "cas", key, from: 1, to: 2 })).toMatchObject({ code: ERROR.keyDoesNotExist });
      expect(await ask(node, { type: "write", key, value: { n: 1 } })).toMatchObject({ type: "write_ok" });
      expect(await ask(node, { type: "cas", key, from: 7, to: 2 })).toMatchObject({ code: ERROR.preconditionFailed });
      expect(await ask(node, { type: "cas", key, from: { n: 1 }, to: 2 })).toMatchObject({ type: "cas_ok" });
      for (const other of router.nodeIds) {
        expect(await ask(other, { type: "read", key })).toMatchObject({ type: "read_ok", value: 2 });
      }
      expect(await ask(node, { type: "sing" })).toMatchObject({ type: "error", code: ERROR.notSupported });
    }
  });

  test("trap 66: a node that is cut off from its leader answers with an indefinite error, or a definite one that is true", async () => {
    const router = await startRouter({ nodes: 3, random: seededRandom(2), delayMsMax: 0, loss: 0 });
    const load = new Load(router, seededRandom(3), 4, 3);
    await sleep(800);
    const [first, ...others] = router.nodeIds;
    router.partition([first!], others);
    await sleep(1_500);
    router.heal();
    await sleep(600);
    await load.stop();
    expect(load.counts.unknown + load.counts.refused).toBeGreaterThan(0);
    expectLinearizable(load);
  });
});
