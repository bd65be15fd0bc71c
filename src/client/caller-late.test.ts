// A server that answers late: its definite refusal is what the client reports, with its limits as they are by default (trap 84).
// On timers of the test's own: a busy machine makes no difference.

import { expect, it, vi } from "vitest";
import { KEY_WAIT_MS, TURNOVER_WAIT_MS, VIEWS_WAIT_MS } from "../core/kit/timeouts.ts";
import { createClient } from "./client.ts";
import { leaderAnswer, Network, notLeader, type Reply } from "./test-network.ts";
import { virtualTime } from "../../test/virtual-time.ts";

const N1 = "http://127.0.0.1:1";
const OVERLOADED: Reply = [503, { error: "OVERLOADED", message: "the views lag; nothing was done" }];

virtualTime({ isManual: true });

function late(afterMs: number): Network {
  const network = new Network();
  network.nodes.set(N1, async (path) => {
    if (path === "/leader") return leaderAnswer("n1", "n1", N1, 4);
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    return OVERLOADED;
  });
  return network;
}

async function errorOf(call: Promise<unknown>): Promise<unknown> {
  const error = call.catch((thrown: unknown) => thrown);
  await vi.advanceTimersByTimeAsync(60_000);
  return await error;
}

it("OVERLOADED after the longest that a server waits is reported as that, not as OUTCOME_UNKNOWN", async () => {
  const network = late(KEY_WAIT_MS + TURNOVER_WAIT_MS + VIEWS_WAIT_MS);
  const client = createClient({ urls: [N1], fetch: network.fetch });
  expect(await errorOf(client.retry("j"))).toMatchObject({ code: "OVERLOADED" });
  expect(network.to("/v1/jobs/j/retry"), "and none that could not be answered in time").toHaveLength(3);
});

it("a call that is refused until its end is reported as refused", async () => {
  const network = late(300);
  const client = createClient({ urls: [N1], fetch: network.fetch, timeoutMs: 1_100 });
  expect(await errorOf(client.cancel("j"))).toMatchObject({ code: "OVERLOADED" });
  expect(network.to("/v1/jobs/j/cancel").length).toBeGreaterThan(1);
});

it("a leader that hands over late names the next one: the call goes there, though most of its time is gone", async () => {
  const network = new Network();
  const n2 = "http://127.0.0.1:2";
  network.nodes.set(N1, async (path) => {
    if (path === "/leader") return leaderAnswer("n1", "n1", N1, 4);
    await new Promise((resolve) => setTimeout(resolve, 700));
    return notLeader(n2);
  });
  network.nodes.set(n2, (path) => (path === "/leader" ? "never" : [200, { id: "j" }]));
  const client = createClient({ urls: [N1, n2], fetch: network.fetch, timeoutMs: 1_000 });
  expect(await errorOf(client.cancel("j"))).toMatchObject({ id: "j" });
});
