import { expect, test } from "vitest";
import type { PeerKey } from "../../core/kit/ids.ts";
import type { Answering } from "../../ports/peers/queries.ts";
import { emptyWorker, withWorkerAnswers } from "./worker-queries.ts";

test("the question to end a worker is answered when it is done; every other goes on as it came", async () => {
  const done: string[] = [];
  const others: Answering = (_from, query) => {
    done.push(`other ${query.length}`);
    return Promise.resolve(Uint8Array.of(9));
  };
  const clearance = { empty: () => Promise.resolve(done.push("emptied") > 0) };
  const answer = withWorkerAnswers(clearance, others);
  const from = "n1@a" as PeerKey;
  await emptyWorker({ ask: (peer, query) => answer(peer, query) }, from);
  expect(done).toEqual(["emptied"]);
  for (const query of [Uint8Array.of(), Uint8Array.of(1, 2, 3), new Uint8Array(19)]) {
    expect(await answer(from, query)).toEqual(Uint8Array.of(9));
  }
  expect(done).toEqual(["emptied", "other 0", "other 3", "other 19"]);
});
