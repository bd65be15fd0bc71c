// Questions between nodes: answered or not, bounded on both sides, next to the messages; and with nodes that know of none.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { peerKey } from "../../src/core/kit/ids.ts";
import { ANSWER_BYTES_MAX, QUERY_BYTES_MAX } from "../../src/core/kit/limits.ts";
import { FRAME, frame } from "../../src/drivers/wire/frame.ts";
import { encodeAck } from "../../src/drivers/wire/handshake/hello.ts";
import { ANSWERING_MAX, QUERIES_PENDING_MAX } from "../../src/drivers/wire/limits.ts";
import { encodeAnswer } from "../../src/drivers/wire/questions.ts";
import { startProxy, waitFor } from "../servers/index.ts";
import { TestAuthority } from "./test-certificates.ts";
import { DeafNode } from "./test-deaf-node.ts";
import { atTheEnd, connected, expectHealthy, openNode, type TestNode } from "./test-node.ts";
import { Stranger } from "./test-stranger.ts";

const NOTHING = new Uint8Array(0);

async function pair(): Promise<[TestNode, TestNode]> {
  const a = await openNode("n1");
  const b = await openNode("n2", { seeds: { n1: a.tcp.address } });
  await connected(a, b);
  return [a, b];
}

describe("queries", () => {
  it("are answered both ways, with what was asked and by whom, up to the largest answer, or with nothing", async () => {
    const [a, b] = await pair();
    const large = randomBytes(ANSWER_BYTES_MAX);
    const asked: (readonly [string, Uint8Array])[] = [];
    b.tcp.onQuery(async (from, query) => {
      asked.push([from, query]);
      return query.length === 0 ? null : query.length === 1 ? NOTHING : large;
    });
    a.tcp.onQuery(async (_from, query) => query);
    expect([a.tcp.askable(), b.tcp.askable()]).toEqual([[b.self], [a.self]]);
    expect(await a.tcp.ask(b.self, NOTHING)).toBeNull();
    expect(await a.tcp.ask(b.self, Uint8Array.of(1))).toEqual(NOTHING);
    const longest = randomBytes(QUERY_BYTES_MAX);
    expect(Buffer.compare((await a.tcp.ask(b.self, longest))!, large)).toBe(0);
    expect(asked.map(([from]) => from)).toEqual([a.self, a.self, a.self]);
    expect(Buffer.compare(asked[2]![1], longest)).toBe(0);
    expect(Buffer.compare((await b.tcp.ask(a.self, longest))!, longest)).toBe(0);
    expect(b.tcp.stats()).toMatchObject({ answeredQueries: 2, askedQueries: 1, unansweredQueries: 0 });
    expect(() => a.tcp.ask(b.self, new Uint8Array(QUERY_BYTES_MAX + 1))).toThrow(/a query is small/);
  });

  it("to one who is not there, does not answer queries, or fails, are answered with nothing", async () => {
    const [a, b] = await pair();
    expect(await a.tcp.ask(peerKey("n7", "1"), NOTHING)).toBeNull();
    expect(await a.tcp.ask(peerKey("n2", "ffff"), NOTHING)).toBeNull();
    expect(await a.tcp.ask(b.self, NOTHING)).toBeNull();
    b.tcp.onQuery(() => Promise.reject(new Error("its disk")));
    expect(await a.tcp.ask(b.self, NOTHING)).toBeNull();
    await expectHealthy(a, b);
    a.wire.stop();
    expect([a.tcp.askable(), await a.tcp.ask(b.self, NOTHING)]).toEqual([[], null]);
  });

  it("are told of when somebody can be asked, again after each loss, and a loss answers what waits", async () => {
    const a = await openNode("n1");
    const proxy = await startProxy({ host: "127.0.0.1", port: a.tcp.port });
    atTheEnd(() => proxy.end());
    const b = await openNode("n2", { seeds: { n1: `127.0.0.1:${proxy.port}` } });
    const told: string[] = [];
    b.tcp.onAskable((peer) => void told.push(peer));
    a.tcp.onQuery(() => new Promise(() => undefined));
    await connected(a, b);
    expect(told).toEqual([a.self]);
    const open = b.tcp.ask(a.self, NOTHING);
    proxy.cut();
    proxy.reset();
    expect(await open).toBeNull();
    expect(b.tcp.stats().unansweredQueries).toBe(1);
    await proxy.heal();
    await connected(a, b);
    expect(told.length).toBeGreaterThan(1);
  });

  it("past the bound are answered with nothing at once, on both sides", async () => {
    const [a, b] = await pair();
    const waiting: (() => void)[] = [];
    b.tcp.onQuery(() => new Promise((resolve) => waiting.push(() => resolve(NOTHING))));
    const open = Array.from({ length: QUERIES_PENDING_MAX }, () => a.tcp.ask(b.self, NOTHING));
    expect(await a.tcp.ask(b.self, NOTHING)).toBeNull();
    await waitFor("them to be asked", () => waiting.length === ANSWERING_MAX);
    // One who keeps to no bound of its own.
    const stranger = await Stranger.dial(b.tcp.port);
    stranger.hello({ protocolMax: 2 });
    expect(await stranger.ack()).toMatchObject({ protocol: 2 });
    for (let n = 0; n < ANSWERING_MAX + 3; n++) stranger.write(frame(FRAME.query, Uint8Array.of(0, 0, 0, n)));
    const answers = (): Uint8Array[] =>
      stranger.frames.filter(({ type }) => type === FRAME.answer).map(({ payload }) => payload);
    await waitFor("the refusals", () => answers().length === 3);
    expect(answers().map((payload) => payload[4])).toEqual([0, 0, 0]);
    for (const resolve of waiting) resolve();
    expect(await Promise.all(open)).toEqual(open.map(() => NOTHING));
    await expectHealthy(a, b);
  });

  it.each(["plain", "TLS"])("for 100 MiB do not hold heartbeats up, in either direction (%s)", async (kind) => {
    const authority = kind === "TLS" ? await TestAuthority.make() : null;
    const tls = async (nodeId: string) => (authority === null ? {} : { tls: await authority.node(nodeId) });
    const a = await openNode("n1", await tls("n1"));
    const b = await openNode("n2", { ...(await tls("n2")), seeds: { n1: a.tcp.address } });
    await connected(a, b);
    const piece = new Uint8Array(ANSWER_BYTES_MAX);
    b.tcp.onQuery(async () => piece);
    let asked = 0;
    const isAsking = (): boolean => asked < 400;
    const ask = async (): Promise<void> => {
      while (isAsking()) {
        asked++;
        expect((await a.tcp.ask(b.self, NOTHING))?.length).toBe(piece.length);
      }
    };
    const asking = Promise.all([ask(), ask(), ask(), ask()]);
    const delays: number[] = [];
    for (let beat = 0; isAsking(); beat++) {
      const sentMs = performance.now();
      a.send(b, `there ${beat}`);
      b.send(a, `back ${beat}`);
      await waitFor("the heartbeats", () => a.heard.length > beat && b.heard.length > beat);
      delays.push(Math.max(a.heard[beat]!.atMs, b.heard[beat]!.atMs) - sentMs);
    }
    await asking;
    const sorted = delays.toSorted((x, y) => x - y);
    expect(sorted.length).toBeGreaterThan(2);
    // Both nodes share this loop and its cores with others; a heartbeat interval is 50 ms.
    expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(25);
  });
});

describe("a peer of an earlier release", () => {
  it("that dials agrees on version 1, and a query on that connection is garbage", async () => {
    const [a, b] = await pair();
    const old = await Stranger.dial(a.tcp.port);
    old.hello({ protocolMin: 1, protocolMax: 1 });
    expect(await old.ack()).toMatchObject({ protocol: 1 });
    old.write(frame(FRAME.query, Uint8Array.of(0, 0, 0, 1)));
    expect(await old.refused()).toMatchObject({ reason: "garbage" });
    await expectHealthy(a, b);
  });

  it("that is dialled gets its messages, and is never asked", async () => {
    const old = await DeafNode.listen("n9");
    const a = await openNode("n1", { seeds: { n9: old.address } });
    await waitFor("the connection", () => a.link("n9")?.isConnected === true);
    expect(a.tcp.askable()).toEqual([]);
    expect(await a.tcp.ask(old.self, NOTHING)).toBeNull();
    expect(a.tcp.stats().askedQueries).toBe(0);
    old.hear();
    a.send(old.self, "as ever");
    await waitFor("the message", () => old.messages === 1);
  });
});

describe("garbage", () => {
  it.each([
    ["a query without a number", frame(FRAME.query, Uint8Array.of(1, 2)), "garbage"],
    ["a query that is too long", frame(FRAME.query, new Uint8Array(4 + QUERY_BYTES_MAX + 1)), "oversized-frame"],
    ["an answer that was not asked for", frame(FRAME.answer, encodeAnswer(1, null)), "garbage"],
  ] as const)("from one who dials, %s, is refused without harm", async (_what, bytes, reason) => {
    const [a, b] = await pair();
    const stranger = await Stranger.dial(a.tcp.port);
    stranger.hello({ protocolMax: 2 });
    await stranger.ack();
    stranger.write(bytes);
    expect(await stranger.refused()).toMatchObject({ reason });
    expect(a.tcp.stats().refused[reason]).toBe(1);
    await expectHealthy(a, b);
  });

  it.each([
    ["an answer of an unknown kind", frame(FRAME.answer, Uint8Array.of(0, 0, 0, 0, 9)), "garbage"],
    ["an answer that is too long", frame(FRAME.answer, new Uint8Array(5 + ANSWER_BYTES_MAX + 1)), "oversized-frame"],
  ] as const)(
    "from one who is asked, %s, ends the connection, and the question with nothing",
    async (_w, bytes, reason) => {
      const [a, b] = await pair();
      const liar = await answering(bytes);
      const c = await openNode("n3", { seeds: { n9: liar.address, n1: a.tcp.address } });
      await connected(a, c);
      await waitFor("the liar", () => c.tcp.askable().includes(liar.self));
      expect(await c.tcp.ask(liar.self, NOTHING)).toBeNull();
      await waitFor("the refusal", () => c.tcp.stats().refused[reason] >= 1);
      await expectHealthy(a, c);
      await expectHealthy(a, b);
    },
  );

  it("an answer to a number that nobody asked is dropped, and the right one still counts", async () => {
    const right = encodeAnswer(0, Uint8Array.of(7));
    const both = Buffer.concat([frame(FRAME.answer, encodeAnswer(99, Uint8Array.of(1))), frame(FRAME.answer, right)]);
    const odd = await answering(both);
    const a = await openNode("n1", { seeds: { n9: odd.address } });
    await waitFor("it", () => a.tcp.askable().includes(odd.self));
    expect(await a.tcp.ask(odd.self, NOTHING)).toEqual(Uint8Array.of(7));
    expect(a.tcp.stats()).toMatchObject({ unansweredQueries: 0, lostConnections: 0 });
  });
});

/** One that shakes hands as a node does, and answers every query with these bytes. */
async function answering(bytes: Uint8Array): Promise<{ readonly self: ReturnType<typeof peerKey>; address: string }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => {
      const introduction = { clusterId: "c1", nodeId: "n9", incarnation: "1", address, apiUrl: null };
      const ack = encodeAck({ protocol: 2, ...introduction, leaseEnabled: false, peers: [] });
      socket.write(frame(FRAME.ack, ack));
      socket.on("data", (chunk: Buffer) => void (chunk[4] === FRAME.query && socket.write(bytes)));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  atTheEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { self: peerKey("n9", "1"), address };
}
