// Whoever does not belong is refused with a reason, counted, and changes nothing; those who do go on (trap 63).

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FRAME, frame, writeHeader } from "../../src/drivers/wire/frame.ts";
import { BULK_ABOVE_BYTES, MESSAGE_FRAME_BYTES_MAX } from "../../src/drivers/wire/limits.ts";
import type { RefusalReason } from "../../src/drivers/wire/index.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { DeafNode } from "./test-deaf-node.ts";
import { connected, expectHealthy, openNode, type TestNode } from "./test-node.ts";
import { Stranger } from "./test-stranger.ts";

let a: TestNode;
let b: TestNode;

beforeEach(async () => {
  a = await openNode("n1");
  b = await openNode("n2", { seeds: { n1: a.tcp.address } });
  await connected(a, b);
});

/** Each test ends with this: counted, told in the log once, and the healthy ones go on. */
async function expectRefused(reason: RefusalReason, said: string, times = 1): Promise<void> {
  await waitFor(`${times} × ${reason}`, () => a.tcp.stats().refused[reason] >= times);
  const { refused } = a.tcp.stats();
  expect(Object.entries(refused).filter(([, count]) => count > 0)).toEqual([[reason, times]]);
  expect(a.warnings.filter((line) => line.includes(said))).toHaveLength(1);
  expect(a.tcp.list().map(({ nodeId }) => nodeId)).toEqual(["n2"]);
  expect(a.seen.every((peer) => peer === b.self)).toBe(true);
  expect(a.gone).toEqual([]);
  await expectHealthy(a, b);
}

describe("a hello is refused", () => {
  it("of another cluster, and both are named", async () => {
    const stranger = await Stranger.dial(a.tcp.port);
    stranger.hello({ clusterId: "c2" });
    expect(await stranger.refused()).toMatchObject({
      reason: "other-cluster",
      message: expect.stringMatching(/c2.*c1/),
    });
    await expectRefused("other-cluster", "of cluster c2");
  });

  it("under this node's own id", async () => {
    const stranger = await Stranger.dial(a.tcp.port);
    stranger.hello({ nodeId: "n1" });
    expect(await stranger.refused()).toMatchObject({ reason: "own-node-id" });
    await expectRefused("own-node-id", "two nodes share one id");
  });

  it("of a version with nothing in common, and both are told which", async () => {
    const stranger = await Stranger.dial(a.tcp.port);
    stranger.hello({ protocolMin: 8, protocolMax: 9 });
    expect(await stranger.refused()).toMatchObject({ reason: "protocol", message: expect.stringContaining("8 to 9") });
    await expectRefused("protocol", "version 8 to 9");
  });

  it("with another setting of the leader lease: all voters or none", async () => {
    const stranger = await Stranger.dial(a.tcp.port);
    stranger.hello({ leaseEnabled: true });
    const { reason, message } = await stranger.refused();
    expect([reason, message]).toEqual(["lease-mismatch", expect.stringContaining("all voters or none")]);
    await expectRefused("lease-mismatch", "enabled on n9 and disabled on n1");
  });

  it.each([
    ["node id", { nodeId: "N 9" }],
    ["incarnation", { incarnation: "not hex" }],
    ["address", { address: "nowhere" }],
    ["URL", { apiUrl: "javascript:alert(1)" }],
  ])("whose %s is none", async (_what, change) => {
    const stranger = await Stranger.dial(a.tcp.port);
    stranger.hello(change);
    expect(await stranger.refused()).toMatchObject({ reason: "garbage" });
    await expectRefused("garbage", "the handshake can't be read");
  });

  it("that never comes, within 3 s; slow letters do not help", async () => {
    const stranger = await Stranger.dial(a.tcp.port);
    const drip = setInterval(() => stranger.write(new Uint8Array(1)), 500);
    const startedMs = performance.now();
    // A length of zero bytes and type 0 would be garbage: three letters stay a beginning.
    setTimeout(() => clearInterval(drip), 1_800);
    expect(await stranger.refused()).toMatchObject({ reason: "handshake-timeout" });
    expect(performance.now() - startedMs).toBeGreaterThan(2_500);
    clearInterval(drip);
    await expectRefused("handshake-timeout", "no handshake came");
  });

  it("of more than 4 KiB, before it is read", async () => {
    const stranger = await Stranger.dial(a.tcp.port);
    const header = new Uint8Array(5);
    writeHeader(header, 0, FRAME.hello, 4 * 1024 + 1);
    stranger.write(header);
    expect(await stranger.refused()).toMatchObject({ reason: "oversized-frame" });
    await expectRefused("oversized-frame", "4097 bytes");
  });

  it.each([
    ["an HTTP request", "GET / HTTP/1.1\r\nHost: n1\r\n\r\n"],
    ["zeroes", new Uint8Array(64)],
    ["a TLS hello", Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3)],
    ["a message before the hello", frame(FRAME.message, new Uint8Array(10))],
    ["a hello with another magic", frame(FRAME.hello, new Uint8Array(64))],
  ])("that is %s", async (_what, bytes) => {
    const stranger = await Stranger.dial(a.tcp.port);
    stranger.write(bytes);
    expect(await stranger.refused()).toMatchObject({ reason: "garbage" });
    await expectRefused("garbage", "refused 127.0.0.1");
  });

  it("a hundred times, and the log has one line of it", async () => {
    const strangers = await Promise.all(Array.from({ length: 100 }, () => Stranger.dial(a.tcp.port)));
    for (const stranger of strangers) stranger.hello({ clusterId: "c2" });
    await Promise.all(strangers.map((stranger) => stranger.refused()));
    await expectRefused("other-cluster", "of cluster c2", 100);
  });
});

describe("after a good handshake", () => {
  let stranger: Stranger;
  beforeEach(async () => {
    stranger = await Stranger.dial(a.tcp.port);
  });
  afterEach(async () => {
    await expectHealthy(a, b);
    expect(a.heard.every(({ from }) => from === b.self)).toBe(true);
  });

  it.each([
    ["an oversized message", "oversized-frame", FRAME.message, MESSAGE_FRAME_BYTES_MAX + 1],
    ["an oversized beacon", "oversized-frame", FRAME.beacon, 4 * 1024 + 1],
    ["four forged gigabytes", "oversized-frame", FRAME.message, 2 ** 32 - 1],
    ["a second hello", "garbage", FRAME.hello, 10],
    ["a type that does not exist", "garbage", 99 as typeof FRAME.ping, 0],
    ["a bulk on the connection for messages", "garbage", FRAME.bulkBegin, 8],
  ] as const)("%s ends the connection, counted and told", async (_what, reason, type, lengthBytes) => {
    stranger.hello();
    await stranger.ack();
    const header = new Uint8Array(5);
    writeHeader(header, 0, type, lengthBytes);
    stranger.write(header);
    expect(await stranger.refused()).toMatchObject({ reason });
    expect(a.tcp.stats().refused[reason]).toBe(1);
  });

  it.each([
    ["past the largest snapshot", 2n ** 40n, "oversized-frame"],
    ["of more bytes than it announced", 10n, "oversized-frame"],
    ["that ends too early", 100_000n, "garbage"],
  ])("a bulk %s is dropped as a whole", async (_what, size, reason) => {
    stranger.hello({ purpose: "bulk" });
    await stranger.ack();
    const begin = new Uint8Array(8);
    new DataView(begin.buffer).setBigUint64(0, size);
    stranger.write(frame(FRAME.bulkBegin, begin));
    stranger.write(frame(FRAME.bulkData, new Uint8Array(50_000)));
    stranger.write(frame(FRAME.bulkEnd, new Uint8Array(0)));
    expect(await stranger.refused()).toMatchObject({ reason });
    expect(a.tcp.stats()).toMatchObject({ receivedBulks: 0, failedBulks: 1 });
  });

  it("a second bulk of one peer is refused while the first is under way", async () => {
    stranger.hello({ purpose: "bulk" });
    await stranger.ack();
    const second = await Stranger.dial(a.tcp.port);
    second.hello({ purpose: "bulk" });
    expect(await second.refused()).toMatchObject({ reason: "too-many" });
    expect(stranger.isClosed).toBe(false);
  });

  it("a disk of the same node id with another incarnation is let in beside the first", async () => {
    stranger.hello({ incarnation: "1" });
    await stranger.ack();
    const second = await Stranger.dial(a.tcp.port);
    second.hello({ incarnation: "2" });
    await second.ack();
    await waitFor("both to be seen", () => a.seen.includes("n9@1" as never) && a.seen.includes("n9@2" as never));
    expect(stranger.isClosed).toBe(false);
    // Dialled again by the same disk, the older connection is over.
    const third = await Stranger.dial(a.tcp.port);
    third.hello({ incarnation: "1" });
    await third.ack();
    await waitFor("the older connection to end", () => stranger.isClosed);
    expect(second.isClosed).toBe(false);
  });
});

it("600 connections that say nothing lock no node out: the oldest of them go, and members stay", async () => {
  const idle = await Promise.all(Array.from({ length: 600 }, () => Stranger.dial(a.tcp.port).catch(() => null)));
  const member = await Stranger.dial(a.tcp.port);
  member.hello();
  await member.ack();
  expect(member.isClosed).toBe(false);
  await waitFor("most of the idle ones to be closed", () => idle.filter((one) => one?.isClosed === false).length <= 64);
  expect(a.tcp.stats().refused["too-many"]).toBeGreaterThanOrEqual(600 - 64);
  await expectHealthy(a, b);
});

it("the dialler shows what it was refused for, and dials less often; a hello from there resets that", async () => {
  const c = await openNode("n3", { clusterId: "c2", seeds: { n1: a.tcp.address } });
  await waitFor("the breaker", () => c.link("n1")?.trouble?.includes("less often") === true);
  expect(c.link("n1")).toMatchObject({
    isConnected: false,
    trouble: expect.stringContaining("it refused this node: n3 is of cluster c2"),
  });
  expect(c.tcp.stats().refusedByPeers["other-cluster"]).toBeGreaterThanOrEqual(5);
  expect(c.warnings.filter((line) => line.includes("refused this node"))).toHaveLength(1);
  const { dials } = c.tcp.stats();
  const stranger = await Stranger.dial(c.tcp.port);
  stranger.hello({ clusterId: "c2", nodeId: "n1" });
  await stranger.ack();
  await waitFor("a new dial", () => c.tcp.stats().dials > dials, 500);
  await expectHealthy(a, b);
});

it("what a peer refuses on a connection that stands is told by both, and is no death", async () => {
  const c = await openNode("n3", { seeds: { n1: a.tcp.address } });
  await connected(a, c);
  // No message of an engine is so large, and no snapshot so small.
  const tooLarge = new Uint8Array(BULK_ABOVE_BYTES);
  const limit = await DeafNode.listen("n8", "refuses");
  const d = await openNode("n4", { seeds: { n8: limit.address } });
  await waitFor("the connection", () => d.link("n8")?.isConnected === true);
  d.wire.send(limit.self, tooLarge);
  limit.hear();
  await waitFor("the refusal", () => d.tcp.stats().refusedByPeers["oversized-frame"] >= 1);
  expect(d.warnings).toContain("n8 refused this node: too large for me");
  expect(d.gone).toEqual([]);
  await expectHealthy(a, c);
});

it("an address that leads back to the node itself, or to another node, is told as such", async () => {
  const port = b.tcp.port;
  const c = await openNode("n3", { seeds: { n9: `127.0.0.1:${port}` } });
  await waitFor("the trouble", () => c.tcp.stats().refused["id-of-another"] > 0);
  expect(c.link("n9")?.trouble).toContain("the node there is n2, not n9");
});

it("says that it is starting until its engine is there, and counts nothing as broken", async () => {
  const c = await openNode("n3", { started: false });
  const d = await openNode("n4", { seeds: { n3: c.tcp.address } });
  await waitFor("a few refused dials", () => d.tcp.stats().refusedByPeers.starting >= 3);
  expect(d.link("n3")?.isConnected).toBe(false);
  expect(d.warnings).toEqual([]);
  c.start();
  await expectHealthy(c, d);
});

it("is dialled ever less often while it is starting, and at once when it has started", async () => {
  const port = await freePort();
  const d = await openNode("n4", { seeds: { n3: `127.0.0.1:${port}` } });
  const c = await openNode("n3", { port, started: false, seeds: { n4: d.tcp.address } });
  const refused = (): number => d.tcp.stats().refusedByPeers.starting;
  // 20, 40, 80 … 640 ms, each ±25 %, make seven of them 0.95 s at the least; one in 20 ms would be there in 0.2 s.
  await waitFor("the first of them", () => refused() >= 1);
  const startedMs = performance.now();
  await waitFor("seven of them", () => refused() >= 7);
  expect(performance.now() - startedMs).toBeGreaterThan(900);
  const { dials } = d.tcp.stats();
  c.start();
  await waitFor("the hello of n3 to end the pause", () => d.link("n3")?.isConnected === true);
  expect(d.tcp.stats().dials).toBe(dials + 1);
});
