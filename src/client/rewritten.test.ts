// Readers that outlive a rewritten history (trap 82): each gets all events of one history, or HISTORY_REWRITTEN with the place
// from which to start again.

import { describe, expect, it } from "vitest";
import { createClient } from "./client.ts";
import { HistoryRewrittenError, Trail } from "./rewritten.ts";
import { leaderAnswer, Network, type Node, type Reply, type Sent } from "./test-network.ts";
import { virtualTime } from "../../test/virtual-time.ts";

virtualTime();

const N1 = "http://127.0.0.1:1";
const N2 = "http://127.0.0.1:2";

interface Seen {
  readonly sequence: number;
  readonly previous_hash: string | null;
  readonly event_hash: string;
  readonly payload: string;
}

/** `fork`: from there on it is another one than "a". */
class History {
  readonly events: Seen[] = [];

  constructor(branch: string, last: number, fork = Infinity) {
    for (let sequence = 1; sequence <= last; sequence++) this.append(sequence > fork ? branch : "a");
  }

  append(branch: string): void {
    const sequence = this.events.length + 1;
    const previous_hash = this.hashAt(sequence - 1);
    const event_hash = `${sequence.toString(16).padStart(8, "0")}${branch}`.padEnd(64, "0");
    this.events.push({ sequence, previous_hash, event_hash, payload: branch });
  }

  hashAt(sequence: number): string | null {
    return this.events[sequence - 1]?.event_hash ?? null;
  }

  /** `/api/events/since/N`. */
  since(path: string): Reply {
    const after = Number(/since\/(\d+)/.exec(path)![1]);
    const events = this.events.slice(after, after + 1).map((one) => ({ eventHash: one.event_hash }));
    return [200, { events, throughSequence: after + events.length }];
  }

  stream(after: number, last = Infinity): Reply {
    const frames = this.events
      .filter(({ sequence }) => sequence > after && sequence <= last)
      .map((one) => `id: ${one.sequence}\nevent: build:submitted\ndata: ${JSON.stringify(one)}\n\n`);
    return [200, `retry: 1000\nid: ${after}\npoint: ${after}:${this.hashAt(after)}\n\n${frames.join("")}`];
  }
}

const REFUSED: Reply = [409, { error: "HISTORY_REWRITTEN", message: "no such event" }];

/** A server that checks what a reader brings, as ours do. */
function checking(history: History): Node {
  return (path, { lastEventId, eventPoint }) => {
    if (path.startsWith("/api/")) return history.since(path);
    const [sequence, hash] = eventPoint?.split(":") ?? [];
    if (hash !== undefined && history.hashAt(Number(sequence)) !== hash) return REFUSED;
    return history.stream(Number(lastEventId ?? history.events.length));
  };
}

/** One that knows nothing of points: a release before them. */
function older(history: History): Node {
  return (path, { lastEventId }) =>
    path.startsWith("/api/") ? history.since(path) : history.stream(Number(lastEventId));
}

function networkOf(nodes: Readonly<Record<string, Node>>): Network {
  const network = new Network();
  const members = Object.keys(nodes).map((url) => ({ url }));
  for (const [url, node] of Object.entries(nodes)) {
    network.nodes.set(url, (path, sent) => {
      if (path === "/leader") return leaderAnswer("n1", "n1", N1, 4);
      return path === "/v1/cluster" ? [200, { members }] : node(path, sent);
    });
  }
  return network;
}

/** The first opening is served by the one, all others by the other: the nodes have the promoted log by then. */
function then(first: Node, others: Node): Node {
  let isFirst = true;
  return (path, sent: Sent) => {
    if (!path.startsWith("/v1/events") || !isFirst) return others(path, sent);
    isFirst = false;
    return first(path, sent);
  };
}

async function read(network: Network, options: object, count: number): Promise<Seen[]> {
  const seen: Seen[] = [];
  const urls = [...network.nodes.keys()];
  const client = createClient({ urls, fetch: network.fetch, timeoutMs: 2_000 });
  for await (const event of client.events({ outageMs: 2_000, ...options })) {
    seen.push(event as unknown as Seen);
    if (seen.length === count) break;
  }
  return seen;
}

describe("trap 82: a history that was rewritten under its reader", () => {
  const old = new History("a", 8);
  /** Promoted without the last three, and grown past them. */
  const promoted = new History("b", 12, 5);

  it.each([
    ["a server that compares the point", checking],
    ["a server of an older release: the reader compares previousHash itself", older],
  ])("a reader that saw what is lost gets the named error, and no event after the gap: %s", async (_what, server) => {
    const network = networkOf({ [N1]: then(checking(old), server(promoted)) });
    const seen: number[] = [];
    const client = createClient({ urls: [N1], fetch: network.fetch });
    const reading = (async () => {
      for await (const { sequence } of client.events({ after: 0, outageMs: 2_000 })) seen.push(sequence);
    })();
    const error = await reading.catch((thrown: unknown) => thrown);
    expect(HistoryRewrittenError.is(error) && error).toMatchObject({
      code: "HISTORY_REWRITTEN",
      seen: { sequence: 8, hash: old.hashAt(8) },
      common: { sequence: 5, hash: old.hashAt(5) },
    });
    expect((error as Error).message).toContain("Start again after 5.");
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it("started again from the common point, the reader gets all of the new history", async () => {
    const network = networkOf({ [N1]: checking(promoted) });
    const seen = await read(network, { after: 5, afterHash: old.hashAt(5)! }, 7);
    expect(seen.map(({ sequence, payload }) => `${sequence}${payload}`)).toEqual(
      [6, 7, 8, 9, 10, 11, 12].map((sequence) => `${sequence}b`),
    );
    await expect(read(network, { after: 7, afterHash: old.hashAt(7)! }, 1)).rejects.toMatchObject({
      code: "HISTORY_REWRITTEN",
      common: null,
    });
  });

  it("a filtered reader brings the hash of what its filter left out", async () => {
    const greeting: Node = () => [200, `id: 8\npoint: 8:${old.hashAt(8)}\n\n`];
    const network = networkOf({ [N1]: then(greeting, checking(promoted)) });
    await expect(read(network, { after: 4, types: ["build:failed"] }, 1)).rejects.toMatchObject({
      code: "HISTORY_REWRITTEN",
      seen: { sequence: 8 },
    });
    const points = network.to("/v1/events?type=build%3Afailed").map(({ eventPoint }) => eventPoint);
    expect(points).toEqual([undefined, `8:${old.hashAt(8)}`]);
  });

  it("trap 73: a node that has not noticed yet that its history was left does not decide; another one goes on", async () => {
    const stale = new History("a", 14);
    const more = new History("b", 14, 5);
    const network = networkOf({ [N1]: then(checking(promoted), checking(more)), [N2]: older(stale) });
    const seen = await read(network, { after: 0 }, 14);
    expect(seen.map(({ payload }) => payload).join("")).toBe(`${"a".repeat(5)}${"b".repeat(9)}`);
  });

  it("trap 73: a node that lags refuses for now, and the reader goes on elsewhere", async () => {
    const lagging: Reply = [503, { error: "ERR_NO_LEADER", message: "not yet" }];
    const network = networkOf({ [N1]: then(checking(old), () => lagging), [N2]: checking(new History("a", 10)) });
    expect((await read(network, { after: 0 }, 10)).map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 10 }, (_, at) => at + 1),
    );
  });

  it("wait() looks at the job as the new history has it", async () => {
    const greeting: Node = () => [200, `id: 8\npoint: 8:${old.hashAt(8)}\n\n`];
    let looks = 0;
    const jobs: Node = (path, sent) => {
      if (!path.startsWith("/v1/jobs/")) return checking(promoted)(path, sent);
      return [200, { id: "j", state: ++looks === 1 ? "pending" : "completed" }];
    };
    const network = networkOf({ [N1]: then(greeting, jobs) });
    const client = createClient({ urls: [N1], fetch: network.fetch, timeoutMs: 2_000 });
    expect(await client.wait("j", { signal: AbortSignal.timeout(9_000) })).toMatchObject({ state: "completed" });
  });

  it("a log that is followed brings the point back, and is refused by name", async () => {
    const data = JSON.stringify({ text: "x", offset: 0, next_offset: 1 });
    const network = networkOf({
      [N1]: (_path, { eventPoint }) =>
        eventPoint === undefined ? [200, `id: 1:1\npoint: 8:${old.hashAt(8)}\nevent: log\ndata: ${data}\n\n`] : REFUSED,
    });
    const pieces = createClient({ urls: [N1], fetch: network.fetch }).logs("j", { follow: true });
    expect((await pieces.next()).value).toMatchObject({ text: "x" });
    await expect(pieces.next()).rejects.toMatchObject({ code: "HISTORY_REWRITTEN" });
  });

  it("a log that is quiet for long brings back the point of the last heartbeat", async () => {
    const data = JSON.stringify({ text: "x", offset: 0, next_offset: 1 });
    const piece = `id: 1:1\npoint: 2:${old.hashAt(2)}\nevent: log\ndata: ${data}\n\n`;
    const network = networkOf({
      [N1]: (_path, { eventPoint }) =>
        eventPoint === undefined ? [200, `${piece}: heartbeat\npoint: 8:${old.hashAt(8)}\n\n`] : REFUSED,
    });
    const pieces = createClient({ urls: [N1], fetch: network.fetch }).logs("j", { follow: true });
    await pieces.next();
    await pieces.next().catch(() => undefined);
    expect(network.sent.at(-1)?.eventPoint).toBe(`8:${old.hashAt(8)}`);
  });

  it("what a reader remembers is bounded, dense at its end, and reaches back to its beginning", () => {
    const trail = new Trail();
    for (let sequence = 1; sequence <= 100_000; sequence++) trail.add(sequence, "x");
    const sequences = trail.points.map(({ sequence }) => sequence);
    expect(sequences.length).toBeLessThan(256);
    expect(sequences[0]).toBe(1);
    expect(sequences.slice(-64)).toEqual(Array.from({ length: 64 }, (_, at) => 100_000 - 63 + at));
  });
});
