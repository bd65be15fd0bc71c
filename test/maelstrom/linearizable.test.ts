// Five Maelstrom nodes under our own router: real processes, lost and late messages, partitions and kill -9 (npm run test:long).

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { waitFor } from "../servers/index.ts";
import { expectLinearizable, Load, startRouter } from "./test-load.ts";

test("stays linearizable on five nodes with lost and late messages, partitions and kill -9", async () => {
  const random = seededRandom(7);
  const router = await startRouter({ nodes: 5, random, delayMsMax: 4, loss: 0.01 });
  const load = new Load(router, random.fork("load"), 8, 6);
  await sleep(800);
  for (let round = 0; round < 3; round++) {
    const shuffled = router.nodeIds.toSorted(() => random.next() - 0.5);
    router.partition(shuffled.slice(0, 2), shuffled.slice(2));
    await sleep(700);
    router.heal();
    const victim = random.pick(router.nodeIds);
    await router.killNode(victim);
    await sleep(500);
    await router.startNode(victim);
    await sleep(400);
  }
  await waitFor("enough calls", () => load.counts.done > 300);
  await load.stop();
  expect(router.errors).toEqual([]);
  expect(router.counts).toMatchObject({ kills: 3 });
  expect(router.counts.cut).toBeGreaterThan(0);
  expect(router.counts.lost).toBeGreaterThan(0);
  expectLinearizable(load);
});
