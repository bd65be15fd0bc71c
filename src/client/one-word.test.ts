// What one node says of its own copy of the history, while the others can't be reached: it is not the cluster's word, however often
// it is said.

import { describe, expect, it } from "vitest";
import { createClient } from "./client.ts";
import { failed, Network, type Node, type Reply } from "./test-network.ts";
import { virtualTime } from "../../test/virtual-time.ts";

virtualTime();

const URLS = [1, 2, 3].map((at) => `http://127.0.0.1:${at}`);
const hash = (sequence: number, branch = "a"): string => `${sequence}`.padStart(63, "0") + branch;

function stream(branch: string): Reply {
  const event = { sequence: 11, previous_hash: hash(10, branch), event_hash: hash(11, branch) };
  return [200, `id: 10\n\nid: 11\ndata: ${JSON.stringify(event)}\n\n`];
}

const WORDS: Readonly<Record<string, Reply>> = {
  LOG_COMPACTED: [410, { error: "LOG_COMPACTED", message: "mine are cut" }],
  EVENTS_LOST: [410, { error: "EVENTS_LOST", message: "mine are lost" }],
  HISTORY_REWRITTEN: stream("b"),
};

/** The first says its word; the others are there once it has said it `words` times. */
function cluster(word: Reply, words: number): { network: Network; asked: () => number } {
  let asked = 0;
  const since: Node = (path) => [200, { events: [{ eventHash: hash(Number(/since\/(\d+)/.exec(path)![1]) + 1) }] }];
  const network = new Network();
  URLS.forEach((url, at) =>
    network.nodes.set(url, (path, sent) => {
      if (path === "/v1/cluster") return [200, { members: [] }];
      if (at > 0 && asked < words) return failed("ECONNREFUSED");
      if (path.startsWith("/api/")) return at === 0 ? failed("ECONNREFUSED") : since(path, sent);
      if (at > 0) return stream("a");
      asked++;
      return word;
    }),
  );
  return { network, asked: () => asked };
}

describe.each(Object.entries(WORDS))("%s of one node", (code, word) => {
  it("that says so again and again while the others are away: the reader goes on when they are back", async () => {
    const { network, asked } = cluster(word, 4);
    const client = createClient({ urls: URLS, fetch: network.fetch, timeoutMs: 2_000 });
    for await (const { sequence } of client.events({ after: 10, afterHash: hash(10) })) {
      expect(sequence).toBe(11);
      break;
    }
    expect(asked()).toBeGreaterThanOrEqual(4);
  });

  it("is what is reported where the others stay away for all of the outage that the reader allows", async () => {
    const { network, asked } = cluster(word, Infinity);
    const client = createClient({ urls: URLS, fetch: network.fetch, timeoutMs: 500 });
    const next = client.events({ after: 10, afterHash: hash(10), outageMs: 300 }).next();
    await expect(next).rejects.toMatchObject({ code });
    expect(asked()).toBeGreaterThan(1);
  });
});

it("a moment without a leader does not end the search for the last common event", async () => {
  let probes = 0;
  const network = new Network();
  const event = { sequence: 11, previous_hash: hash(10, "b"), event_hash: hash(11, "b") };
  network.nodes.set(URLS[0]!, (path) => {
    if (path === "/v1/cluster") return [200, { members: [] }];
    if (!path.startsWith("/api/")) return [200, `id: 10\n\nid: 11\ndata: ${JSON.stringify(event)}\n\n`];
    if (++probes === 1) return [503, { error: "ERR_NO_LEADER", message: "an election" }];
    return [200, { events: [{ eventHash: hash(10) }] }];
  });
  const client = createClient({ urls: URLS[0]!, fetch: network.fetch, timeoutMs: 2_000 });
  await expect(client.events({ after: 10, afterHash: hash(10) }).next()).rejects.toMatchObject({
    code: "HISTORY_REWRITTEN",
    common: { sequence: 10 },
  });
});
