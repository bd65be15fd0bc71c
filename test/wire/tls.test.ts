// TLS between peers: who is let in, who is not and is told so, and new certificates without a restart.

import { connect as connectTls } from "node:tls";
import { beforeAll, describe, expect, it } from "vitest";
import type { PeerTls, RefusalReason } from "../../src/drivers/wire/index.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { TestAuthority } from "./test-certificates.ts";
import { connected, expectHealthy, openNode, type TestNode } from "./test-node.ts";
import { startProcess } from "./test-process.ts";
import { Stranger } from "./test-stranger.ts";

let authority: TestAuthority;
let stranger: TestAuthority;
let n1: PeerTls;
let n2: PeerTls;

beforeAll(async () => {
  authority = await TestAuthority.make();
  stranger = await TestAuthority.make();
  n1 = await authority.node("n1");
  n2 = await authority.node("n2");
});

async function pair(): Promise<[TestNode, TestNode]> {
  const a = await openNode("n1", { tls: n1 });
  const b = await openNode("n2", { tls: n2, seeds: { n1: a.tcp.address } });
  await connected(a, b);
  return [a, b];
}

async function expectRefused(a: TestNode, b: TestNode, reason: RefusalReason, said: RegExp): Promise<void> {
  await waitFor(reason, () => a.tcp.stats().refused[reason] === 1);
  expect(a.warnings.filter((line) => said.test(line))).toHaveLength(1);
  expect(a.tcp.list().map(({ nodeId }) => nodeId)).toEqual(["n2"]);
  await expectHealthy(a, b);
}

it("nodes of one authority talk, and a killed one is told as gone over TLS too", async () => {
  const [a, b] = await pair();
  await expectHealthy(a, b);
  const port = await freePort();
  const tls = await authority.node("n3");
  const child = await startProcess("n3", { port, tls, seeds: { n1: a.tcp.address, n2: b.tcp.address } });
  await waitFor("n3", () => [a, b].every((node) => node.link("n3")?.isConnected === true));
  const killedAtMs = performance.now();
  child.signal("SIGKILL");
  await waitFor("both to be told", () => a.gone.length === 1 && b.gone.length === 1);
  console.log(
    `kill -9 to peerGone over TLS, ms: ${[a, b].map((node) => (node.gone[0]!.atMs - killedAtMs).toFixed(2)).join(" ")}`,
  );
  await expectHealthy(a, b);
});

describe("one that dials is refused", () => {
  it("without a certificate", async () => {
    const [a, b] = await pair();
    const one = await Stranger.dial(a.tcp.port, {});
    expect(await one.refused()).toMatchObject({
      reason: "certificate",
      message: expect.stringContaining("no certificate"),
    });
    await expectRefused(a, b, "certificate", /it showed no certificate/);
  });

  it("of another authority", async () => {
    const [a, b] = await pair();
    const one = await Stranger.dial(a.tcp.port, await stranger.node("n3"));
    expect(await one.refused()).toMatchObject({ reason: "certificate" });
    await expectRefused(a, b, "certificate", /not issued by this cluster's authority/);
  });

  it("with an expired certificate", async () => {
    const [a, b] = await pair();
    const one = await Stranger.dial(a.tcp.port, await authority.node("n3", { agedDays: 30 }));
    expect(await one.refused()).toMatchObject({ reason: "certificate", message: expect.stringContaining("expired") });
    await expectRefused(a, b, "certificate", /it has expired/);
  });

  it("with a certificate that is not valid yet", async () => {
    const [a, b] = await pair();
    const one = await Stranger.dial(a.tcp.port, await authority.node("n3", { agedDays: -30 }));
    expect(await one.refused()).toMatchObject({
      reason: "certificate",
      message: expect.stringContaining("not valid yet"),
    });
    await expectRefused(a, b, "certificate", /is a clock wrong/);
  });

  it.each([
    [
      "two URI names",
      ["spiffe://tenure/server/n3", "spiffe://tenure/server/n2"],
      /2 URI names; it must have exactly one/,
    ],
    ["the same URI name twice", ["spiffe://tenure/server/n3", "spiffe://tenure/server/n3"], /2 URI names/],
    ["no URI name", [], /no URI name/],
    ["an operator's name", ["spiffe://tenure/operator/n3"], /names spiffe:\/\/tenure\/operator\/n3, not/],
    ["a name of another trust domain", ["spiffe://other/server/n3"], /another trust domain than tenure/],
    ["a name with a path behind it", ["spiffe://tenure/server/n3/n2"], /not spiffe:\/\/tenure\/server/],
    ["a name that holds a second one", ["spiffe://tenure/server/n3, URI:spiffe://tenure/server/n2"], /not spiffe/],
    ["a name of another scheme", ["https://tenure/server/n3"], /not spiffe/],
  ])("with %s in its certificate", async (_what, uris, said) => {
    const [a, b] = await pair();
    const one = await Stranger.dial(a.tcp.port, await authority.forged(uris));
    expect(await one.refused()).toMatchObject({ reason: "certificate-identity", message: expect.stringMatching(said) });
    await expectRefused(a, b, "certificate-identity", said);
  });

  it("under another id than its certificate's", async () => {
    const [a, b] = await pair();
    const one = await Stranger.dial(a.tcp.port, await authority.node("n3"));
    one.hello({ nodeId: "n2", incarnation: "1" });
    expect(await one.refused()).toMatchObject({ reason: "id-of-another" });
    await expectRefused(a, b, "id-of-another", /says that it is n2, and its certificate is that of n3/);
  });

  it("without TLS, and with TLS 1.2", async () => {
    const [a, b] = await pair();
    const plain = await Stranger.dial(a.tcp.port);
    plain.hello();
    await waitFor("the end", () => plain.isClosed);
    await expectRefused(a, b, "garbage", /does not speak TLS/);
    const old = connectTls({
      host: "127.0.0.1",
      port: a.tcp.port,
      ...n2,
      maxVersion: "TLSv1.2",
      rejectUnauthorized: false,
    });
    const code = await new Promise((resolve) => old.on("error", (error: NodeJS.ErrnoException) => resolve(error.code)));
    expect(code).toContain("PROTOCOL_VERSION");
    await waitFor("the count", () => a.tcp.stats().refused.tls === 1);
    await expectHealthy(a, b);
  });

  it("when it says nothing, within 3 s", async () => {
    const [a, b] = await pair();
    const silent = await Stranger.dial(a.tcp.port);
    await waitFor("the end", () => silent.isClosed);
    await expectRefused(a, b, "handshake-timeout", /no TLS handshake came/);
  });
});

describe("one that is dialled is refused", () => {
  it.each([
    ["of another authority", async () => stranger.node("n9"), "certificate", /not issued by this cluster's authority/],
    [
      "with an expired certificate",
      async () => authority.node("n9", { agedDays: 30 }),
      "certificate",
      /it has expired/,
    ],
  ] as const)("%s", async (_what, make, reason, said) => {
    const [a, b] = await pair();
    const other = await openNode("n9", { tls: await make() });
    const c = await openNode("n3", {
      tls: await authority.node("n3"),
      seeds: { n9: other.tcp.address, n1: a.tcp.address },
    });
    await waitFor("the refusal", () => c.tcp.stats().refused[reason] > 0);
    expect(c.link("n9")).toMatchObject({ isConnected: false, trouble: expect.stringMatching(said) });
    expect(other.seen).toEqual([]);
    await expectHealthy(a, b);
    await expectHealthy(a, c);
  });

  it("when it is another node than was meant", async () => {
    const [a, b] = await pair();
    const c = await openNode("n3", {
      tls: await authority.node("n3"),
      seeds: { n1: a.tcp.address, n9: b.tcp.address },
    });
    await waitFor("the refusal", () => c.tcp.stats().refused["id-of-another"] > 0);
    expect(c.link("n9")?.trouble).toContain("the certificate there is that of n2, not of n9");
    await expectHealthy(a, c);
  });
});

describe("a node's own certificate", () => {
  it.each([
    ["of another node", async () => authority.node("n9"), /that of node n9, and this is node n1/],
    ["of an operator", async () => authority.operator("n1"), /not spiffe:\/\/tenure\/server/],
    ["with another's key", async () => ({ ...n1, key: n2.key }), /belong together/],
    ["that is none", async () => ({ ...n1, cert: "nothing" }), /can't be used/],
    [
      "of another authority than the one that it trusts",
      async () => ({ ...n1, ca: stranger.ca.cert }),
      /not issued by this cluster's authority.*tenure cert issue/,
    ],
  ])("%s is refused at the start", async (_what, make, said) => {
    await expect(openNode("n1", { tls: await make() })).rejects.toMatchObject({
      code: "CERTIFICATE_INVALID",
      message: expect.stringMatching(said),
    });
  });
});

describe("reload", () => {
  it("new connections show the new certificate, and those that stand go on", async () => {
    const [a, b] = await pair();
    const { handshakes } = a.tcp.stats();
    const before = a.tcp.stats().certificateNotAfterMs;
    const fresh = await authority.node("n1", { agedDays: -1 + 0.999 });
    a.tcp.reload(fresh);
    expect(a.tcp.stats().certificateNotAfterMs).not.toBe(before);
    await expectHealthy(a, b);
    expect(a.tcp.stats()).toMatchObject({ handshakes, lostConnections: 0 });
    const shown = await new Promise<string>((resolve) => {
      const socket = connectTls({ host: "127.0.0.1", port: a.tcp.port, ...n2, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate()!.toString());
        socket.destroy();
      });
    });
    expect(shown.trim()).toBe(fresh.cert.trim());
  });

  it("of a whole authority, in two steps: both trusted, then the new one", async () => {
    const [a, b] = await pair();
    const both = `${authority.ca.cert}${stranger.ca.cert}`;
    a.tcp.reload({ ...n1, ca: both });
    b.tcp.reload({ ...(await stranger.node("n2")), ca: both });
    const c = await openNode("n3", {
      tls: { ...(await stranger.node("n3")), ca: both },
      seeds: { n1: a.tcp.address, n2: b.tcp.address },
    });
    await connected(a, b, c);
    expect(a.tcp.stats().lostConnections).toBe(0);
  });

  it("of one that can't be used changes nothing", async () => {
    const [a, b] = await pair();
    const before = a.tcp.stats().certificateNotAfterMs;
    expect(() => a.tcp.reload({ ...n1, key: n2.key })).toThrowError(/belong together/);
    expect(() => a.tcp.reload(n2)).toThrowError(/this is node n1/);
    expect(() => a.tcp.reload({ ...n1, ca: stranger.ca.cert })).toThrowError(/not issued by this cluster's authority/);
    const elsewhere = await TestAuthority.make("elsewhere");
    expect(() => a.tcp.reload({ ca: elsewhere.ca.cert, cert: n1.cert, key: n2.key })).toThrow();
    await expect(elsewhere.node("n1").then((tls) => a.tcp.reload(tls))).rejects.toMatchObject({
      code: "CERTIFICATE_INVALID",
    });
    expect(a.tcp.stats().certificateNotAfterMs).toBe(before);
    const c = await openNode("n3", { tls: await authority.node("n3"), seeds: { n1: a.tcp.address } });
    await expectHealthy(a, c);
    await expectHealthy(a, b);
  });
});
