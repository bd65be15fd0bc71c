// Who finds whom: seeds, peers that handshakes tell of, restarts, and the question which cluster this is.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { FRAME, frame } from "../../src/drivers/wire/frame.ts";
import { encodeAck, encodeRefuse, PROTOCOL_MAX } from "../../src/drivers/wire/handshake/hello.ts";
import { askCluster, probeCluster } from "../../src/drivers/wire/index.ts";
import { freePort, startProxy, waitFor } from "../servers/index.ts";
import { TestAuthority } from "./test-certificates.ts";
import { atTheEnd, collectingLogger, connected, expectHealthy, openNode } from "./test-node.ts";
import { startProcess } from "./test-process.ts";

const ACK = {
  protocol: 1,
  clusterId: "c1",
  incarnation: "1",
  address: "127.0.0.1:1",
  apiUrl: null,
  leaseEnabled: false,
  peers: [],
} as const;

describe("peers", () => {
  it("one seed is enough: whoever is dialled dials back, and tells of the others", async () => {
    const a = await openNode("n1", { apiUrl: "http://127.0.0.1:8001" });
    const b = await openNode("n2", { seeds: { n1: a.tcp.address } });
    await connected(a, b);
    const c = await openNode("n3", { seeds: { n1: a.tcp.address } });
    await connected(a, b, c);
    expect(b.tcp.list()).toEqual([
      {
        nodeId: "n1",
        peer: a.self,
        address: a.tcp.address,
        apiUrl: "http://127.0.0.1:8001",
        isConnected: true,
        protocol: PROTOCOL_MAX,
        refusal: null,
        trouble: null,
      },
      {
        nodeId: "n3",
        peer: c.self,
        address: c.tcp.address,
        apiUrl: null,
        isConnected: true,
        protocol: PROTOCOL_MAX,
        refusal: null,
        trouble: null,
      },
    ]);
    await expectHealthy(b, c);
  });

  it("a node that is named in the configuration is dialled there and nowhere else", async () => {
    const a = await openNode("n1");
    const proxy = await startProxy({ host: "127.0.0.1", port: a.tcp.port });
    atTheEnd(() => proxy.end());
    const b = await openNode("n2", { seeds: { n1: `127.0.0.1:${proxy.port}` } });
    await connected(a, b);
    proxy.cut();
    await waitFor("the silence to be noticed", () => b.link("n1")?.isConnected === false);
    // It still tells its own address on its own connections; the configuration is preferred.
    expect(b.tcp.list().map(({ address }) => address)).toEqual([`127.0.0.1:${proxy.port}`]);
    const { droppedUnconnected } = b.tcp.stats();
    b.send(a, "lost");
    expect(b.tcp.stats().droppedUnconnected).toBe(droppedUnconnected + 1);
    await proxy.heal();
    await expectHealthy(a, b);
  });

  it("a node that moved is dialled where it says it is now, also while its old connection stands", async () => {
    const a = await openNode("n1");
    const old = await openNode("n2", { seeds: { n1: a.tcp.address } });
    await connected(a, old);
    const moved = await openNode("n2", { seeds: { n1: a.tcp.address } });
    await waitFor(
      "the new address",
      () => a.link("n2")?.address === moved.tcp.address && a.link("n2")?.isConnected === true,
    );
    await expectHealthy(a, moved);
    expect(a.tcp.list()).toHaveLength(1);
  });

  it("two disks under one node id are both sent what is for them: the engine decides", async () => {
    const a = await openNode("n1");
    const one = await openNode("n2", { incarnation: "a1", seeds: { n1: a.tcp.address } });
    await connected(a, one);
    const two = await openNode("n2", { incarnation: "b2", seeds: { n1: a.tcp.address } });
    await waitFor("both", () => a.tcp.stats().connected === 2);
    a.send(one, "one");
    a.send(two, "two");
    await waitFor("both messages", () => one.heard.length === 1 && two.heard.length === 1);
    expect([one.texts, two.texts]).toEqual([["one"], ["two"]]);
    expect(a.gone).toEqual([]);
  });

  it("a peer that shakes hands and then closes is not dialled in a storm", async () => {
    const port = await freePort();
    const fickle = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        const introduction = {
          clusterId: "c1",
          nodeId: "n9",
          incarnation: "1",
          address: `127.0.0.1:${port}`,
          apiUrl: null,
        };
        socket.end(frame(FRAME.ack, encodeAck({ protocol: 1, ...introduction, leaseEnabled: false, peers: [] })));
      });
    }).listen(port, "127.0.0.1");
    atTheEnd(() => void fickle.close());
    const a = await openNode("n1", { seeds: { n9: `127.0.0.1:${port}` } });
    await waitFor("a few losses", () => a.tcp.stats().lostConnections >= 3);
    const { dials } = a.tcp.stats();
    await sleep(1_000);
    expect(a.tcp.stats().dials - dials).toBeLessThan(20);
    expect(a.gone).toEqual([]);
  });

  it("trap 60: a partition heals by itself, soon, also after a long one", async () => {
    const a = await openNode("n1");
    const proxy = await startProxy({ host: "127.0.0.1", port: a.tcp.port });
    atTheEnd(() => proxy.end());
    const b = await openNode("n2", { seeds: { n1: `127.0.0.1:${proxy.port}` } });
    await connected(a, b);
    proxy.cut();
    const dials = b.tcp.stats().dials;
    await waitFor("a few vain dials", () => b.tcp.stats().dials >= dials + 2);
    const healedAtMs = performance.now();
    await proxy.heal();
    await waitFor("the connection", () => b.isConnectedTo(a));
    expect(performance.now() - healedAtMs).toBeLessThan(5_000);
  });

  it("a restarted node is connected again within moments", async () => {
    const a = await openNode("n1");
    const port = await freePort();
    const first = await startProcess("n2", { port, seeds: { n1: a.tcp.address } });
    await waitFor("n2", () => a.link("n2")?.isConnected === true);
    await first.kill();
    await waitFor("the loss", () => a.gone.length === 1);
    await startProcess("n2", { port, seeds: { n1: a.tcp.address } });
    const readyAtMs = performance.now();
    await waitFor("n2 again", () => a.link("n2")?.isConnected === true);
    expect(performance.now() - readyAtMs).toBeLessThan(3_000);
    expect(a.seen.filter((peer) => peer === "n2@1").length).toBeGreaterThanOrEqual(3);
  });

  it("closes with nothing left open, at any moment, and twice", async () => {
    const a = await openNode("n1");
    const b = await openNode("n2", { seeds: { n1: a.tcp.address, n7: `127.0.0.1:${await freePort()}` } });
    await connected(a, b);
    b.wire.send(a.self, new Uint8Array(8 * 1024 * 1024));
    const c = await openNode("n3", { seeds: { n1: a.tcp.address, n2: b.tcp.address } });
    await Promise.all([c.tcp.close(), b.tcp.close(), b.tcp.close(), a.tcp.close()]);
    await waitFor("no socket to be open", () => {
      const open = process
        .getActiveResourcesInfo()
        .filter((name) => /^(TCPSocketWrap|TCPServerWrap|TLSWrap)$/.test(name));
      return open.length === 0;
    });
    b.send(a, "after the end");
    expect(b.tcp.list()).toEqual([]);
  });
});

describe("which cluster is this", () => {
  const { logger } = collectingLogger();
  const never = (): AbortSignal => new AbortController().signal;

  it("is answered by any peer, before its engine is there, and changes nothing", async () => {
    const a = await openNode("n1", { clusterId: "c-17", started: false });
    const seeds = { n1: a.tcp.address, n2: "127.0.0.1:1", n9: `127.0.0.1:${await freePort()}` };
    expect(await askCluster({ nodeId: "n2", seeds, tls: null, signal: never(), logger })).toEqual({
      clusterId: "c-17",
    });
    expect(await probeCluster({ nodeId: "n2", seeds, tls: null, waitMs: 5_000, logger })).toBe("c-17");
    expect(a.tcp.list()).toEqual([]);
    expect(a.tcp.stats().handshakes).toBe(0);
  });

  it("is asked until somebody answers, or the signal aborts", async () => {
    const port = await freePort();
    const stop = new AbortController();
    const seeds = { n1: `127.0.0.1:${port}` };
    const asked = askCluster({ nodeId: "n2", seeds, tls: null, signal: never(), logger });
    const stopped = askCluster({
      nodeId: "n2",
      seeds: { n1: `127.0.0.1:${await freePort()}` },
      tls: null,
      signal: stop.signal,
      logger,
    });
    stop.abort(new Error("no longer"));
    await expect(stopped).rejects.toThrow("no longer");
    await openNode("n1", { port });
    expect(await asked).toEqual({ clusterId: "c1" });
  });

  it("is not known where nobody answers in time, or nobody is named", async () => {
    const seeds = { n1: `127.0.0.1:${await freePort()}` };
    expect(await probeCluster({ nodeId: "n2", seeds, tls: null, waitMs: 200, logger })).toBeNull();
    expect(await probeCluster({ nodeId: "n2", seeds: {}, tls: null, waitMs: 200, logger })).toBeNull();
    await expect(
      askCluster({ nodeId: "n2", seeds: { n2: "127.0.0.1:1" }, tls: null, signal: never(), logger }),
    ).rejects.toMatchObject({
      code: "CONFIG_INVALID",
    });
  });

  it("two answers are a mismatch that names both", async () => {
    const a = await openNode("n1", { clusterId: "c-one" });
    const b = await openNode("n2", { clusterId: "c-two" });
    const seeds = { n1: a.tcp.address, n2: b.tcp.address };
    for (const asked of [
      askCluster({ nodeId: "n3", seeds, tls: null, signal: never(), logger }),
      probeCluster({ nodeId: "n3", seeds, tls: null, waitMs: 5_000, logger }),
    ]) {
      await expect(asked).rejects.toMatchObject({
        code: "CLUSTER_MISMATCH",
        message: expect.stringMatching(/n1 to c-one.*n2 to c-two|n2 to c-two.*n1 to c-one/),
      });
    }
  });

  it("is asked over TLS by nodes of the authority alone", async () => {
    const [ours, theirs] = [await TestAuthority.make(), await TestAuthority.make()];
    const a = await openNode("n1", { tls: await ours.node("n1") });
    const seeds = { n1: a.tcp.address };
    expect(await probeCluster({ nodeId: "n2", seeds, tls: await ours.node("n2"), waitMs: 5_000, logger })).toBe("c1");
    const log = collectingLogger();
    const tls = { ...(await theirs.node("n2")), ca: `${ours.ca.cert}${theirs.ca.cert}` };
    await expect(probeCluster({ nodeId: "n2", seeds, tls, waitMs: 500, logger: log.logger })).rejects.toMatchObject({
      code: "CERTIFICATE_INVALID",
      message: expect.stringMatching(/^peer n1 answers.*not issued by this cluster's authority/),
    });
    expect(log.lines.map((line) => line.message).join()).toContain("not issued by this cluster's authority");
  });

  it.each([
    [
      "refuses our version",
      { refuse: { reason: "protocol", message: "one side speaks version 2" } },
      /speaks version 2/,
    ],
    ["refuses for a reason of a later release", { refuse: { reason: "other", message: "wax" } }, /wax/],
    ["is another node than it was taken for", { ack: "n7" }, /the node there is n7, not n1/],
    ["is no node at all", { text: "HTTP/1.1 400 Bad Request\r\n\r\n" }, /does not answer as a node does/],
  ] as const)("no second cluster is founded beside one that answers and %s", async (_what, says, why) => {
    const answer =
      "refuse" in says
        ? frame(FRAME.refuse, encodeRefuse(says.refuse))
        : "ack" in says
          ? frame(FRAME.ack, encodeAck({ ...ACK, nodeId: says.ack }))
          : says.text;
    const asked = { count: 0 };
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        asked.count++;
        socket.end(answer);
        // Gone after its first answer: it has been there all the same.
        server.close();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    atTheEnd(() => void server.close());
    const seeds = { n1: `127.0.0.1:${(server.address() as AddressInfo).port}`, n9: `127.0.0.1:${await freePort()}` };
    const probed = probeCluster({ nodeId: "n2", seeds, tls: null, waitMs: 700, logger });
    await expect(probed).rejects.toMatchObject({ code: "CONFIG_INVALID", message: expect.stringMatching(why) });
    expect(asked.count).toBe(1);
    const patient = new AbortController();
    const joining = askCluster({ nodeId: "n2", seeds, tls: null, signal: patient.signal, logger });
    setTimeout(() => patient.abort(new Error("no longer")), 500);
    await expect(joining).rejects.toThrow("no longer");
  });

  it("one that refuses does not stand in the way of one that answers", async () => {
    const a = await openNode("n1", { clusterId: "c-17" });
    const seeds = { n1: a.tcp.address, n3: a.tcp.address };
    expect(await probeCluster({ nodeId: "n2", seeds, tls: null, waitMs: 200, logger })).toBe("c-17");
  });
});
