import { describe, expect, it, vi } from "vitest";
import { createClient } from "./client.ts";
import { failed, leaderAnswer, Network, type Node, notLeader, type Reply } from "./test-network.ts";
import { virtualTime } from "../../test/virtual-time.ts";

virtualTime();

const N1 = "http://127.0.0.1:1";
const N2 = "http://127.0.0.1:2";
const STRANGER = "http://127.0.0.9:9";
const UNKNOWN: Reply = [503, { error: "OUTCOME_UNKNOWN", message: "it may have been done" }];

/** A cluster of two; `n1` leads. */
function cluster(n1: Node, n2: Node = () => notLeader(N1)): Network {
  const network = new Network();
  const members = { members: [{ url: N1 }, { url: N2 }] };
  for (const [id, url, node] of [
    ["n1", N1, n1],
    ["n2", N2, n2],
  ] as const) {
    network.nodes.set(url, (path, sent) => {
      if (path === "/leader") return leaderAnswer(id, "n1", N1, 4);
      return path === "/v1/cluster" ? [200, members] : node(path, sent);
    });
  }
  return network;
}

function clientOf(network: Network, urls: readonly string[] = [N1, N2], timeoutMs = 2_000) {
  return createClient({ urls, key: "secret", fetch: network.fetch, timeoutMs });
}

/** One reply after the other; the last one again and again. */
function inTurn(...replies: readonly Reply[]): Node {
  let at = 0;
  return () => replies[Math.min(at++, replies.length - 1)] as Reply;
}

function stream(...frames: readonly string[]): Reply {
  return [200, frames.map((frame) => `${frame}\n\n`).join("")];
}

function event(sequence: number): string {
  return `id: ${sequence}\nevent: build:submitted\ndata: ${JSON.stringify({ sequence, entity_id: "j", payload: { fooBar: 1 } })}`;
}

describe("mutations", () => {
  it("that can't be written as JSON are refused at once, and nothing is sent", async () => {
    let asked = 0;
    const client = clientOf(cluster(() => (asked++, UNKNOWN)));
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    for (const payload of [1n, circle]) {
      await expect(client.submit({ kind: "build", payload: payload as never })).rejects.toMatchObject({
        code: "BAD_REQUEST",
      });
    }
    expect(asked).toBe(0);
  });

  it("B6: that the epoch is over says nothing about what may have been done while it was not", async () => {
    const stale: Reply = [409, { error: "STALE_EPOCH", message: "epoch 4 is over", leader_epoch: 5 }];
    const submit = (...replies: readonly Reply[]) =>
      clientOf(cluster(inTurn(...replies))).submit({ kind: "a" }, { leaderEpoch: 4 });
    await expect(submit(failed("ECONNRESET"), stale)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    await expect(submit(stale)).rejects.toMatchObject({ code: "STALE_EPOCH" });
  });

  it("C9: revoking a key goes out again, and finding it gone then is what was asked for", async () => {
    const gone: Reply = [404, { error: "NOT_FOUND", message: "there is no such key" }];
    const again = cluster(inTurn(failed("ECONNRESET"), gone));
    await clientOf(again).keys.revoke("ci");
    expect(again.to("/v1/keys/ci")).toHaveLength(2);
    // Nobody but the caller could have done it before: a wrong name is reported.
    await expect(clientOf(cluster(inTurn(gone))).keys.revoke("cii")).rejects.toMatchObject({ code: "NOT_FOUND" });
    const refused: Reply = [403, { error: "PERMISSION_DENIED", message: "no" }];
    const unclear = clientOf(cluster(inTurn(failed("ECONNRESET"), refused)));
    await expect(unclear.keys.revoke("ci")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });

  it.each<[string, Reply]>([
    ["the server itself calls unknown", UNKNOWN],
    ["was cut off", failed("ECONNRESET")],
    ["was refused for load", [503, { error: "OVERLOADED", message: "too much" }]],
  ])("trap 65: what %s goes out again under the same key, in the same words", async (_name, reply) => {
    const network = cluster(inTurn(reply, reply, [200, { id: "j1" }]));
    expect(await clientOf(network).submit({ kind: "a", notBeforeMs: 5, labels: { fooBar: "x" } })).toBe("j1");
    const sent = network.to("/v1/jobs");
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    expect(sent[0]?.idempotencyKey).toMatch(/^[0-9a-f-]{36}$/);
    for (const { body } of sent) expect(body).toEqual({ kind: "a", not_before_ms: 5, labels: { fooBar: "x" } });
  });

  it.each<[string, Reply]>([
    ["the server itself calls unknown", UNKNOWN],
    ["was cut off", failed("ECONNRESET")],
  ])("trap 66: without a key, what %s is never repeated, and is no failure", async (_name, reply) => {
    const network = cluster(inTurn(reply, [200, { id: "j1" }]));
    const submitted = clientOf(network).submit({ kind: "a" }, { idempotencyKey: null });
    await expect(submitted).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(network.to("/v1/jobs")).toHaveLength(1);
  });

  it("what never gets an answer ends as unknown, not as failed", async () => {
    const network = cluster(inTurn(UNKNOWN));
    await expect(clientOf(network, [N1, N2], 200).submit({ kind: "a" })).rejects.toMatchObject({
      code: "OUTCOME_UNKNOWN",
    });
  });

  it("each call has a key of its own, and a refusal is told as it is", async () => {
    const network = cluster(inTurn([409, { error: "JOB_FINISHED", message: "it is finished" }]));
    const client = clientOf(network);
    for (let call = 0; call < 2; call++)
      await expect(client.cancel("j")).rejects.toMatchObject({ code: "JOB_FINISHED" });
    const sent = network.to("/v1/jobs/j/cancel");
    expect(new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2);
  });

  it("trap 64: a stranger that a node names as leader is sent nothing", async () => {
    const network = cluster(() => notLeader(STRANGER));
    network.nodes.set(STRANGER, () => [200, { id: "stolen" }]);
    await expect(clientOf(network, [N1, N2], 200).submit({ kind: "a" })).rejects.toThrow();
    expect(network.sent.some(({ url }) => url === STRANGER)).toBe(false);
  });
});

describe("reads", () => {
  it("a job that one node does not know yet is asked for once more, where it is certain", async () => {
    const missing: Reply = [404, { error: "NOT_FOUND", message: "unknown" }];
    const network = cluster((path) => (path.includes("linearizable") ? [200, { id: "j" }] : missing));
    expect(await clientOf(network, [N1]).job("j")).toMatchObject({ id: "j" });
    const none = cluster(() => missing);
    await expect(clientOf(none, [N1]).job("j")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  it("lists come page by page, and end where a server does not move on", async () => {
    const pages = cluster((path) =>
      path.includes("cursor=2")
        ? [200, { jobs: [{ id: "c" }], next: null, position: 1 }]
        : [200, { jobs: [{ id: "a" }, { id: "b" }], next: "2", position: 1 }],
    );
    const ids: string[] = [];
    for await (const { id } of clientOf(pages, [N1]).jobs({ states: ["pending", "failed"] })) ids.push(id);
    expect(ids).toEqual(["a", "b", "c"]);
    expect(pages.sent[0]?.path).toBe("/v1/jobs?state=pending%2Cfailed");
    const endless = cluster(() => [200, { jobs: [], next: "2", position: 1 }]);
    await expect(clientOf(endless, [N1]).jobs().next()).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
  });
});

describe("trap 67: events", () => {
  it("go on at another node from the last one, each once and in order", async () => {
    const network = cluster(
      inTurn(stream("retry: 1000\nid: 2", event(3), event(4)), failed("ECONNREFUSED")),
      // Behind, and then as far.
      inTurn(stream("id: 4", event(3), event(4), event(5), ": heartbeat", event(6))),
    );
    const seen: number[] = [];
    for await (const { sequence, payload } of clientOf(network).events({ after: 2 })) {
      expect(payload).toEqual({ fooBar: 1 });
      seen.push(sequence);
      if (sequence === 6) break;
    }
    expect(seen).toEqual([3, 4, 5, 6]);
    const opened = network.to("/v1/events").map(({ url, lastEventId }) => [url, lastEventId]);
    expect(opened).toEqual([
      [N1, "2"],
      [N2, "4"],
    ]);
  });

  it("a node that leaves one out is left, and what it left out comes from another", async () => {
    const network = cluster(inTurn(stream("id: 0", event(1), event(3))), inTurn(stream("id: 1", event(2), event(3))));
    const seen: number[] = [];
    for await (const { sequence } of clientOf(network).events({ after: 0 })) {
      seen.push(sequence);
      if (sequence === 3) break;
    }
    expect(seen).toEqual([1, 2, 3]);
  });

  it("where they begin now, what comes while the stream is broken is not missed", async () => {
    const network = cluster(inTurn(stream("id: 7")), inTurn(stream("id: 7", event(8))));
    for await (const { sequence } of clientOf(network).events()) {
      expect(sequence).toBe(8);
      break;
    }
    expect(network.to("/v1/events").map(({ lastEventId }) => lastEventId)).toEqual([undefined, "7"]);
  });

  it.each([
    ["greets and breaks", stream("retry: 1000\nid: 5")],
    ["says again what is known, and breaks", stream("id: 5", event(4), event(5), ": heartbeat")],
  ])("end with an error where every node %s, and few openings are made until then", async (_what, reply) => {
    const network = cluster(inTurn(reply), inTurn(reply));
    const events = clientOf(network).events({ after: 5, outageMs: 300 });
    await expect(events.next()).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    // The pauses grow.
    expect(network.to("/v1/events").length).toBeLessThan(15);
  });

  it("go on for a reader that takes longer over one than an outage may last", async () => {
    const network = cluster(inTurn(stream("id: 0", event(1))), inTurn(stream("id: 1", event(2))));
    const events = clientOf(network).events({ after: 0, outageMs: 500 });
    expect((await events.next()).value).toMatchObject({ sequence: 1 });
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect((await events.next()).value).toMatchObject({ sequence: 2 });
  });

  it("end with what every node refuses, and with the signal", async () => {
    const compacted: Reply = [410, { error: "LOG_COMPACTED", message: "gone" }];
    const network = cluster(inTurn(compacted), inTurn(compacted));
    await expect(clientOf(network).events({ after: 1 }).next()).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    expect(network.to("/v1/events")).toHaveLength(2);
    const stop = new AbortController();
    const silent = clientOf(cluster(inTurn("never"))).events({ signal: stop.signal });
    const next = silent.next();
    stop.abort(new Error("enough"));
    await expect(next).rejects.toThrow("enough");
  });
});

it("a page that came over plain http, where crypto.randomUUID does not exist, submits with a key of its own", async () => {
  const whole = crypto;
  vi.stubGlobal("crypto", { getRandomValues: (into: Uint8Array<ArrayBuffer>) => whole.getRandomValues(into) });
  try {
    const network = cluster(inTurn([200, { id: "j1" }]));
    await clientOf(network).submit({ kind: "a" });
    await clientOf(network).submit({ kind: "a" });
    const keys = network.sent.flatMap(({ idempotencyKey }) => idempotencyKey ?? []);
    expect(keys.every((key) => /^[0-9a-f]{36}$/.test(key))).toBe(true);
    expect(new Set(keys).size).toBe(2);
  } finally {
    vi.unstubAllGlobals();
  }
});
