// Connections do not live for ever: they are made anew when they are old, nobody notices, and whoever would not be let in
// today is out.

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { freePort, startProxy, waitFor } from "../servers/index.ts";
import { TestAuthority } from "./test-certificates.ts";
import { atTheEnd, connected, expectHealthy, openNode, type TestNode } from "./test-node.ts";

const AGE = { connectionAgeMs: 1_000 };

function renewed(node: TestNode): number {
  return node.tcp.stats().renewedConnections;
}

describe("an old connection", () => {
  it.each(["plain", "TLS"])("is made anew, and nobody is lost, gone or unheard for long (%s)", async (kind) => {
    const authority = kind === "TLS" ? await TestAuthority.make() : null;
    const tls = async (nodeId: string) => (authority === null ? {} : { tls: await authority.node(nodeId) });
    const a = await openNode("n1", { ...AGE, ...(await tls("n1")) });
    const b = await openNode("n2", { ...AGE, ...(await tls("n2")), seeds: { n1: a.tcp.address } });
    await connected(a, b);
    let sent = 0;
    while (renewed(a) < 2 || renewed(b) < 2) {
      a.send(b, `${sent}`);
      b.send(a, `${sent++}`);
      await sleep(5);
    }
    for (const node of [a, b]) {
      const { lostConnections, peersGone, connected: stands } = node.tcp.stats();
      expect({ lostConnections, peersGone, stands }).toEqual({ lostConnections: 0, peersGone: 0, stands: 1 });
      expect(node.gone).toEqual([]);
      expect(node.warnings).toEqual([]);
      const heard = node.texts.map(Number);
      expect(heard, "in order, and none twice").toEqual([...new Set(heard)].toSorted((x, y) => x - y));
      // What was under way while the new one took over, of hundreds.
      expect(sent - heard.length).toBeLessThan(20);
    }
    await expectHealthy(a, b);
  });

  it("ends where the other is no longer vouched for, and says why", async () => {
    const [ours, theirs] = [await TestAuthority.make(), await TestAuthority.make()];
    const a = await openNode("n1", { ...AGE, tls: await ours.node("n1") });
    const b = await openNode("n2", { ...AGE, tls: await ours.node("n2"), seeds: { n1: a.tcp.address } });
    await connected(a, b);
    b.tcp.reload(await theirs.node("n2"));
    await waitFor("both to part", () => [a, b].every((node) => node.tcp.stats().connected === 0));
    expect(a.link("n2")?.trouble).toMatch(/not issued by this cluster's authority/);
    expect([...a.gone, ...b.gone]).toEqual([]);
  });

  it("goes on where no other can be had", async () => {
    const b = await openNode("n2");
    const proxy = await startProxy({ host: "127.0.0.1", port: b.tcp.port });
    atTheEnd(() => proxy.end());
    const a = await openNode("n1", { ...AGE, seeds: { n2: `127.0.0.1:${proxy.port}` } });
    await waitFor("the connection", () => a.tcp.stats().connected === 1);
    proxy.swap({ host: "127.0.0.1", port: await freePort() });
    await waitFor("the dial to fail", () => a.tcp.stats().failedDials > 0);
    expect(a.tcp.stats()).toMatchObject({ connected: 1, lostConnections: 0, renewedConnections: 0 });
    a.send(b, "still");
    await waitFor("a message", () => b.texts.includes("still"));
  });
});
