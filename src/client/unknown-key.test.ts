// A key that a node does not know: it may not have heard of it yet, so that is no word of the cluster's.

import { describe, expect, it } from "vitest";
import { createClient } from "./client.ts";
import { leaderAnswer, Network, type Node, type Reply } from "./test-network.ts";
import { virtualTime } from "../../test/virtual-time.ts";

virtualTime();

const N1 = "http://127.0.0.1:1";
const N2 = "http://127.0.0.1:2";
const N3 = "http://127.0.0.1:3";
const ALL = [N1, N2, N3];

const LEADING: Reply = leaderAnswer("n2", "n2", N2, 4);
const FOLLOWING: Reply = leaderAnswer("n3", "n2", N2, 4);
const NOBODY: Reply = [503, { error: "ERR_NO_LEADER", message: "nobody leads" }];
const UNCONFIRMED: Reply = [503, { error: "CALLER_UNCONFIRMED", message: "it has not caught up" }];
const CALLED: Reply = [200, { id: "j", state: "pending" }];

const refused = (role?: string): Reply => [401, { error: "UNAUTHENTICATED", message: "no such key", role }];
const event = (sequence: number): Reply => [
  200,
  `id: ${sequence}\nevent: job:created\ndata: ${JSON.stringify({ sequence, payload: {} })}\n\n`,
];

function clientOf(nodes: Readonly<Record<string, Node>>, timeoutMs = 20_000) {
  const net = new Network();
  for (const [url, node] of Object.entries(nodes)) net.nodes.set(url, node);
  return { net, client: createClient({ urls: ALL, key: "secret", fetch: net.fetch, timeoutMs }) };
}

/** A node by its answer to `/leader` and to everything else. */
const node =
  (leader: Reply, other: Reply): Node =>
  (path) =>
    path === "/leader" ? leader : other;

describe.each([
  ["wiped, of an older version: 401", refused()],
  ["wiped, or joining: 401 as a standby", refused("STANDBY")],
  ["not sure yet: 503", UNCONFIRMED],
])("with a node first in its list that is %s", (_name, says) => {
  const nodes = { [N1]: () => says, [N2]: node(LEADING, CALLED), [N3]: node(FOLLOWING, CALLED) };

  it("a read goes to the next one", async () => {
    expect(await clientOf(nodes).client.job("j")).toMatchObject({ id: "j" });
  });

  it("a submission goes to the leader", async () => {
    const { net, client } = clientOf(nodes);
    expect(await client.submit({ kind: "a" })).toBe("j");
    expect(net.to("/v1/jobs").map(({ url }) => url)).toEqual([N2]);
  });

  it("a submission during an election waits for its end", async () => {
    let asked = 0;
    const elected: Node = (path) => (path === "/leader" ? (++asked < 4 ? NOBODY : LEADING) : CALLED);
    const { client } = clientOf({ [N1]: () => says, [N2]: elected, [N3]: node(NOBODY, CALLED) });
    expect(await client.submit({ kind: "a" })).toBe("j");
    expect(asked).toBe(4);
  });

  it("events go on at the next one", async () => {
    const serving: Node = (path) => (path.startsWith("/v1/events") ? event(7) : LEADING);
    const { client } = clientOf({ [N1]: () => says, [N2]: serving, [N3]: serving });
    const { value } = await client.events({ after: 6 }).next();
    expect(value).toMatchObject({ sequence: 7 });
  });
});

describe("a leader of the past", () => {
  it("that does not know the key is not believed: the call goes to the leader of now", async () => {
    let isDeposed = false;
    const { client } = clientOf({
      [N1]: (path) => (isDeposed ? refused("STANDBY") : path === "/leader" ? leaderAnswer("n1", "n1", N1, 3) : CALLED),
      [N2]: (path) => (path === "/leader" ? (isDeposed ? LEADING : leaderAnswer("n2", "n1", N1, 3)) : CALLED),
      [N3]: node(NOBODY, CALLED),
    });
    await client.submit({ kind: "a" });
    isDeposed = true;
    expect(await client.submit({ kind: "a" })).toBe("j");
  });
});

describe("a key that is wrong", () => {
  const wrong = { [N1]: () => refused("STANDBY"), [N2]: () => refused("LEADER"), [N3]: () => "never" as const };

  it("is refused by the leader, without waiting for those that say nothing", async () => {
    const startedMs = performance.now();
    const { client } = clientOf(wrong, 3_600_000);
    const refusal = { code: "UNAUTHENTICATED", message: expect.stringContaining("no such key") as string };
    await expect(client.job("j")).rejects.toMatchObject(refusal);
    await expect(client.submit({ kind: "a" })).rejects.toMatchObject(refusal);
    await expect(client.leader()).rejects.toMatchObject(refusal);
    await expect(client.events().next()).rejects.toMatchObject(refusal);
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });

  it("is refused where all that answer say so", async () => {
    const { client } = clientOf({ [N1]: () => refused(), [N3]: () => refused() }, 3_600_000);
    const refusal = { code: "UNAUTHENTICATED" };
    await expect(client.job("j")).rejects.toMatchObject(refusal);
    await expect(client.submit({ kind: "a" })).rejects.toMatchObject(refusal);
    await expect(client.events().next()).rejects.toMatchObject(refusal);
  });
});

describe("where no node can say who calls", () => {
  it("a read is tried again, until one can or its time is over", async () => {
    let asked = 0;
    const late: Node = () => (++asked < 3 ? UNCONFIRMED : CALLED);
    expect(await clientOf({ [N1]: late }).client.job("j")).toMatchObject({ id: "j" });
    const { client } = clientOf({ [N1]: () => UNCONFIRMED, [N2]: () => refused("STANDBY") }, 100);
    await expect(client.job("j")).rejects.toMatchObject({ code: "CALLER_UNCONFIRMED", retryable: true });
    await expect(client.submit({ kind: "a" })).rejects.toMatchObject({ code: "ERR_NO_LEADER", retryable: true });
  });
});
