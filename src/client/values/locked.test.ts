// Writes of a value that a transaction over islands locks until it is decided.

import { expect, it } from "vitest";
import { virtualTime } from "../../../test/virtual-time.ts";
import { createClient } from "../client.ts";
import { leaderAnswer, Network, type Reply } from "../test-network.ts";

virtualTime();

const N1 = "http://127.0.0.1:1";
const LOCKED: Reply = [409, { error: "txn_locked", message: "v is locked", detail: null }];

function stage(answer: (write: number) => Reply) {
  const network = new Network();
  let writes = 0;
  network.nodes.set(N1, (path) => (path === "/leader" ? leaderAnswer("n1", "n1", N1, 1) : answer(++writes)));
  return { network, client: createClient({ urls: N1, fetch: network.fetch, timeoutMs: 5_000 }), writes: () => writes };
}

it("are sent again until it is decided, to the same leader, because they were not done", async () => {
  const { client, network, writes } = stage((write) => (write < 6 ? LOCKED : [200, { version: 9 }]));
  expect(await client.values.put("v", 1)).toEqual({ version: 9 });
  expect(writes()).toBe(6);
  expect(network.to("/leader")).toHaveLength(1);
  const other = stage((write) => (write < 3 ? LOCKED : [200, { deleted: true, version: 10 }]));
  expect(await other.client.values.delete("v")).toEqual({ deleted: true, version: 10 });
});

it("are refused when their time is over: definitely not done", async () => {
  const { client, writes } = stage(() => LOCKED);
  const startedMs = performance.now();
  await expect(client.values.put("v", 1)).rejects.toMatchObject({ code: "txn_locked", retryable: true });
  expect(performance.now() - startedMs).toBeLessThanOrEqual(5_100);
  expect(writes()).toBeGreaterThan(10);
  expect(writes()).toBeLessThan(100);
});

it("are not sent again by calls that can't wait, such as a change of members", async () => {
  const { client, writes } = stage(() => LOCKED);
  const refused = client.changeMember({ op: "remove", nodeId: "n2" } as never);
  await expect(refused).rejects.toMatchObject({ code: "txn_locked" });
  expect(writes()).toBe(1);
});
