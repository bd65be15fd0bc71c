// The founder's question, whether there is a cluster already, through TCP proxies that accept for nodes that are not up:
// sidecars and userland proxies do. A proxy's silence ends, a node's does not.

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { FRAME, frame } from "../../src/drivers/wire/frame.ts";
import { encodeRefuse } from "../../src/drivers/wire/handshake/hello.ts";
import { probeCluster } from "../../src/drivers/wire/index.ts";
import { freePort, startProxy, type TcpProxy } from "../servers/index.ts";
import { TestAuthority } from "./test-certificates.ts";
import { atTheEnd, collectingLogger, openNode } from "./test-node.ts";

/** Longer than a few dials take, on any machine. */
const SILENT_MS = 1_500;
const WAIT_MS = 200;

async function proxyTo(port: number): Promise<TcpProxy> {
  const proxy = await startProxy({ host: "127.0.0.1", port });
  atTheEnd(() => proxy.end());
  return proxy;
}

/** A listener that does this with every connection. */
async function listener(act: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
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

it("a first node founds its cluster although proxies accept connections for peers that are not up", async () => {
  const { logger, lines } = collectingLogger();
  const broken = await proxyTo(await freePort());
  const holding = await proxyTo(await freePort());
  holding.cut();
  const closing = await listener((socket) => socket.end());
  const resetting = await listener((socket) => socket.once("data", () => socket.resetAndDestroy()));
  const seeds = {
    n2: `127.0.0.1:${broken.port}`,
    n3: `127.0.0.1:${holding.port}`,
    n4: closing,
    n5: resetting,
    n6: `127.0.0.1:${await freePort()}`,
  };
  const probed = probeCluster({ nodeId: "n1", seeds, tls: null, waitMs: WAIT_MS, silentMs: SILENT_MS, logger });
  expect(await probed).toBeNull();
  expect(broken.accepted).toBeGreaterThan(0);
  expect(holding.accepted).toBeGreaterThan(0);
  // The log says whom it waited for, and that it went on without them.
  expect(lines.map(({ fields }) => fields["event"])).toEqual(
    expect.arrayContaining(["founding-delayed", "silent-peers-absent"]),
  );
});

it("with TLS too, where a proxy closes before a word of TLS was said", async () => {
  const authority = await TestAuthority.make();
  const { logger } = collectingLogger();
  const closing = await listener((socket) => socket.end());
  const broken = await proxyTo(await freePort());
  const seeds = { n2: closing, n3: `127.0.0.1:${broken.port}` };
  const tls = await authority.node("n1");
  expect(await probeCluster({ nodeId: "n1", seeds, tls, waitMs: WAIT_MS, silentMs: SILENT_MS, logger })).toBeNull();
});

it("a node that comes up later, with a cluster, is joined through its proxy instead of founding a second one", async () => {
  const { logger, lines } = collectingLogger();
  const port = await freePort();
  const [late, never] = [await proxyTo(port), await proxyTo(await freePort())];
  const seeds = { n2: `127.0.0.1:${late.port}`, n3: `127.0.0.1:${never.port}` };
  const probed = probeCluster({ nodeId: "n1", seeds, tls: null, waitMs: WAIT_MS, silentMs: 600_000, logger });
  await expect.poll(() => lines.some(({ fields }) => fields["event"] === "founding-delayed")).toBe(true);
  await openNode("n2", { clusterId: "c-17", port });
  expect(await probed).toBe("c-17");
});

it("no second cluster is founded while a peer that has said a word is silent, however long that takes", async () => {
  const { logger, lines } = collectingLogger();
  let isFirst = true;
  const starting = frame(FRAME.refuse, encodeRefuse({ reason: "starting", message: "its engine is not there yet" }));
  let silentDials = 0;
  const address = await listener((socket) => {
    if (isFirst) socket.end(starting);
    else socket.once("data", () => void (silentDials++, socket.end()));
    isFirst = false;
  });
  const stop = new AbortController();
  const seeds = { n2: address };
  const probed = probeCluster({
    nodeId: "n1",
    seeds,
    tls: null,
    waitMs: WAIT_MS,
    silentMs: 1,
    signal: stop.signal,
    logger,
  });
  const outcome = probed.then(String, (error: unknown) => (error as Error).message);
  await expect.poll(() => silentDials).toBeGreaterThan(4);
  stop.abort(new Error("no longer"));
  expect(await outcome).toMatch(/no longer|aborted/);
  expect(lines.map(({ fields }) => fields["event"])).toContain("founding-delayed");
});
