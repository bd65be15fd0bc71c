// Nodes without certificates know each other by a secret. Somebody without it who listens where a peer would, who dials a node, or
// who passes the bytes of two nodes on, is neither believed nor heard. A proxy that only passes bytes on is no trouble.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { describe, expect, it } from "vitest";
import { FRAME, frame } from "../../src/drivers/wire/frame.ts";
import { type Ack, encodeAck, encodeRefuse } from "../../src/drivers/wire/handshake/hello.ts";
import { askCluster, probeCluster } from "../../src/drivers/wire/index.ts";
import { waitFor } from "../servers/index.ts";
import { TestAuthority } from "./test-certificates.ts";
import { atTheEnd, collectingLogger, connected, expectHealthy, openNode } from "./test-node.ts";
import { Stranger } from "./test-stranger.ts";

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const secret = text("s".repeat(64));
const REMOVED = frame(FRAME.refuse, encodeRefuse({ reason: "removed", message: "go away" }));
const EVIL: Ack = {
  protocol: 3,
  clusterId: "evil",
  nodeId: "n2",
  incarnation: "1",
  address: "127.0.0.1:9",
  apiUrl: null,
  leaseEnabled: false,
  peers: [],
};

async function at(server: Server, event: string, act: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
  });
  server.on(event, (socket: Socket) => {
    socket.on("error", () => undefined);
    act(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atTheEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Answers whatever comes first. */
function squatter(answer: Uint8Array): Promise<string> {
  return at(createServer(), "connection", (socket) => socket.once("data", () => socket.end(answer)));
}

describe("two nodes that share a secret", () => {
  it("hear each other, also what is large", async () => {
    const a = await openNode("n1", { secret });
    const b = await openNode("n2", { secret, seeds: { n1: `127.0.0.1:${a.tcp.port}` } });
    await expectHealthy(a, b);
    const large = new Uint8Array(3_000_000).fill(7);
    a.wire.sendLarge?.(b.self, text("head"), large);
    await waitFor("the large one", () => b.heard.some(({ bytes }) => bytes.length === large.length + 4));
  });

  it("and one that has another is refused on either side, with what to correct", async () => {
    const a = await openNode("n1", { secret });
    const b = await openNode("n2", { secret: text("t".repeat(64)), seeds: { n1: `127.0.0.1:${a.tcp.port}` } });
    await waitFor("the refusals", () => [a, b].every((node) => node.tcp.stats().refused.secret > 0));
    expect(b.warnings.join("\n")).toContain("peer.secret_file");
    expect([...a.seen, ...b.seen]).toEqual([]);
  });

  it("one whose disk was removed hears so", async () => {
    const a = await openNode("n1", { secret, isRemoved: (peer) => peer === "n2@1" });
    const b = await openNode("n2", { secret, seeds: { n1: `127.0.0.1:${a.tcp.port}` } });
    await waitFor("the word", () => b.removedBy.includes("n1"));
    expect(b.tcp.stats().refusedByPeers.removed).toBeGreaterThan(0);
  });
});

describe("somebody without the secret who listens where a peer would", () => {
  it("says that this node was removed: that is a failed dial, and the node goes on", async () => {
    const node = await openNode("n1", { secret, seeds: { n2: await squatter(REMOVED) } });
    await waitFor("a word", () => node.tcp.stats().refused.secret > 0 || node.removedBy.length > 0);
    expect(node.removedBy).toEqual([]);
    expect(node.tcp.stats().refusedByPeers.removed).toBe(0);
    expect(node.link("n2")).toMatchObject({ isConnected: false, trouble: expect.stringContaining("secret") });
  });

  it("says so with a certificate of its own: it is not believed either", async () => {
    const { cert, key } = await (await TestAuthority.make()).node("n2");
    const server = createTlsServer({ cert, key, minVersion: "TLSv1.3" });
    server.on("tlsClientError", () => undefined);
    const seeds = { n2: await at(server, "secureConnection", (socket) => socket.end(REMOVED)) };
    const node = await openNode("n1", { secret, seeds });
    await waitFor("a word", () => node.tcp.stats().refused.secret > 0 || node.removedBy.length > 0);
    expect(node.removedBy).toEqual([]);
  });

  it("names a cluster: neither who joins nor who founds believes it", async () => {
    const seeds = { n2: await squatter(frame(FRAME.ack, encodeAck(EVIL))) };
    const { logger, lines } = collectingLogger();
    const asking = new AbortController();
    const asked = askCluster({ nodeId: "n1", seeds, tls: null, secret, logger, signal: asking.signal });
    const joined = asked.then(
      ({ clusterId }) => clusterId,
      () => "nothing",
    );
    const isRefused = waitFor("the refusal", () => lines.some(({ fields }) => fields["reason"] === "secret"));
    expect(await Promise.race([joined, isRefused])).toBeUndefined();
    asking.abort();
    expect(await joined).toBe("nothing");
    const probed = probeCluster({ nodeId: "n1", seeds, tls: null, secret, logger, waitMs: 200 });
    await expect(probed).rejects.toMatchObject({ code: "CONFIG_INVALID", message: expect.stringContaining("secret") });
  });
});

it("who asks for the cluster with the secret is answered", async () => {
  const { logger } = collectingLogger();
  const node = await openNode("n2", { secret, clusterId: "c-17" });
  const ask = { nodeId: "n1", seeds: { n2: `127.0.0.1:${node.tcp.port}` }, tls: null, secret, logger };
  expect(await askCluster({ ...ask, signal: AbortSignal.timeout(60_000) })).toEqual({ clusterId: "c-17" });
  expect(await probeCluster({ ...ask, waitMs: 60_000 })).toBe("c-17");
});

it("what a node said to a listener in an earlier life, said again without the secret, raises no alarm of a copied disk", async () => {
  const heard: Buffer[] = [];
  const record = (socket: Socket): void =>
    void socket.once("data", (bytes: Buffer) => (heard.push(bytes), socket.destroy()));
  const n3 = await at(createServer(), "connection", record);
  const watcher = await openNode("n2", { secret });
  const seeds = { n2: `127.0.0.1:${watcher.tcp.port}`, n3 };
  const first = await openNode("n1", { secret, seeds });
  await connected(first, watcher);
  await waitFor("its hello", () => heard.length > 0);
  const hello = heard[0]!;
  await first.tcp.close();
  const second = await openNode("n1", { secret, seeds });
  await connected(second, watcher);
  expect(watcher.tcp.cloned?.()).toEqual([]);
  const stranger = await Stranger.dial(watcher.tcp.port);
  stranger.write(hello);
  await waitFor("the end of it", () => stranger.isClosed, 15_000);
  expect(watcher.tcp.cloned?.()).toEqual([]);
  await expectHealthy(second, watcher);
});

it("a relay between two nodes may pass their bytes on, and what it adds is not heard", async () => {
  const b = await openNode("n2", { secret });
  const ways: Socket[] = [];
  const relay = await at(createServer(), "connection", (from) => {
    const to = connect(b.tcp.port, "127.0.0.1");
    to.on("error", () => undefined);
    atTheEnd(() => void to.destroy());
    from.pipe(to).pipe(from);
    ways.push(to);
  });
  const a = await openNode("n1", { secret, seeds: { n2: relay } });
  await expectHealthy(a, b);
  const forged = "forged by the relay";
  const lost = (): number => b.tcp.stats().lostConnections + a.tcp.stats().lostConnections;
  const before = lost();
  for (const way of ways) way.write(frame(FRAME.message, text(forged)));
  await waitFor("the end of the connection, or the forgery", () => lost() > before || b.texts.includes(forged));
  expect(b.texts).not.toContain(forged);
  await expectHealthy(a, b);
});
