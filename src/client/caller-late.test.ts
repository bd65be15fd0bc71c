// A server that answers late: its definite refusal is what the client reports, with its limits as they are by default (trap 84).

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { KEY_WAIT_MS, TURNOVER_WAIT_MS, VIEWS_WAIT_MS } from "../core/kit/timeouts.ts";
import { createClient } from "./client.ts";
import { leaderAnswer, Network, type Reply } from "./test-network.ts";

const N1 = "http://127.0.0.1:1";
const OVERLOADED: Reply = [503, { error: "OVERLOADED", message: "the views lag; nothing was done" }];

function late(afterMs: number): Network {
  const network = new Network();
  network.nodes.set(N1, async (path) => {
    if (path === "/leader") return leaderAnswer("n1", "n1", N1, 4);
    await sleep(afterMs);
    return OVERLOADED;
  });
  return network;
}

it("OVERLOADED after the longest that a server waits is reported as that, not as OUTCOME_UNKNOWN", async () => {
  const network = late(KEY_WAIT_MS + TURNOVER_WAIT_MS + VIEWS_WAIT_MS);
  const client = createClient({ urls: [N1], fetch: network.fetch, timeoutMs: 4_000 });
  await expect(client.retry("j")).rejects.toMatchObject({ code: "OVERLOADED" });
  expect(network.to("/v1/jobs/j/retry"), "no second one, which could not be answered in time").toHaveLength(1);
});

it("a call that is refused until its end is reported as refused", async () => {
  const network = late(300);
  const client = createClient({ urls: [N1], fetch: network.fetch, timeoutMs: 1_100 });
  await expect(client.cancel("j")).rejects.toMatchObject({ code: "OVERLOADED" });
  expect(network.to("/v1/jobs/j/cancel").length).toBeGreaterThan(1);
});
