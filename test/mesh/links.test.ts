// Sites that exchange their lines, as real servers: what is written at one is known at all, byte for byte, whoever is killed or cut off
// meanwhile. The steps of one world build on each other.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CALM_ELECTION, OPERATOR_KEY, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import { ownOf, ringOf } from "./test-site.ts";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

describe("a hub and two children", () => {
  let hub: TestSite;
  let left: TestSite;
  let right: TestSite;
  let proxy: TcpProxy;
  const sites = (): readonly TestSite[] => [hub, left, right];

  beforeAll(async () => {
    hub = await TestSite.start({ id: "hub", children: ["left", "right"] });
    const { hostname, port } = new URL(hub.url);
    proxy = await startProxy({ host: hostname, port: Number(port) });
    left = await TestSite.start({ id: "left", parents: [hub.url] });
    right = await TestSite.start({ id: "right", parents: [`http://127.0.0.1:${proxy.port}`] });
  }, SITES_START_MS);

  afterAll(async () => {
    await Promise.all(sites().map((site) => site?.end()));
    await proxy?.end();
  }, 60_000);

  it(
    "jobs that are submitted at each are known at all, in the same bytes",
    async () => {
      await Promise.all(sites().map((site) => site.submit(20)));
      await haveTheSame(sites());
      for (const author of sites()) {
        const line = await author.ownLine();
        const own = await author.items(line);
        expect(own.filter((item) => item.includes(`"from":"${author.id}"`))).toHaveLength(20);
        for (const site of sites()) expect(await site.items(line), `${line} at ${site.id}`).toEqual(own);
      }
    },
    SPREAD_MS,
  );

  it(
    "a site that is cut off goes on, and catches up when the link heals",
    async () => {
      proxy.cut();
      await Promise.all(sites().map((site) => site.submit(20)));
      await haveTheSame([hub, left]);
      await waitFor("the site to notice", async () => !(await right.isLinked()), SPREAD_MS);
      expect((await right.heads()).get(await hub.ownLine())).not.toEqual((await hub.heads()).get(await hub.ownLine()));
      await proxy.heal();
      await haveTheSame(sites());
    },
    2 * SPREAD_MS,
  );

  it(
    "a hub that is killed and started again is dialled again, and passes on what was written meanwhile",
    async () => {
      await hub.node.kill9();
      await Promise.all([left.submit(20), right.submit(20)]);
      hub.node.start();
      await haveTheSame(sites());
    },
    2 * SPREAD_MS,
  );

  it(
    "each link is shown: who is there, how long a round trip takes, what is missing",
    async () => {
      const { links } = await left.get<{ links: readonly Record<string, unknown>[] }>("/v1/mesh/sites");
      expect(links).toMatchObject([
        { controller: "hub", direction: "dialled", url: hub.url, connected: true, lag_events: 0, missing_events: 0 },
      ]);
      expect(links[0]!["round_trip_ms"]).toBeGreaterThan(0);
      const served = await hub.get<{ links: readonly Record<string, unknown>[] }>("/v1/mesh/sites");
      const controllers = served.links.map(({ controller, direction }) => `${String(controller)} ${String(direction)}`);
      expect(controllers.toSorted()).toEqual(["left served", "right served"]);
    },
    SPREAD_MS,
  );

  it("nobody is blamed", async () => {
    for (const site of sites()) {
      const { links } = await site.get<{ links: readonly { blamed: object }[] }>("/v1/mesh/sites");
      expect(links.map(({ blamed }) => blamed)).toEqual(links.map(() => ({})));
    }
  });
});

/** A node that does not lead loses its key, so that the ring changes, and then leads: whoever meets the site for the first time does not know its new key. */
async function isLedWithLaterKey(site: TestSite): Promise<void> {
  const before = await site.leader();
  await ringOf(before, 3);
  const node = site.cluster.nodes.find(({ id }) => id !== before.id)!;
  const { key } = (await ownOf(before))!.ring.keys.find((one) => one.node === node.id)!;
  // The ring may have changed before, too: where a member was late.
  const isRenewed = async (): Promise<boolean> => {
    const own = await ownOf(await site.leader());
    const [line] = own?.lines ?? [];
    const keys = own?.ring.keys.map((one) => one.key) ?? [];
    return line?.ring_changes !== undefined && line.ring_changes > 0 && keys.length === 3 && !keys.includes(key);
  };
  await node.kill9();
  rmSync(join(node.home, "data", "mesh.key"));
  node.start();
  await site.cluster.steady(SPREAD_MS);
  await waitFor("a ring with the new key", () => isRenewed().catch(() => false), SPREAD_MS);
  const leader = await site.leader();
  if (leader.id === node.id) return;
  const { status } = await leader.call("/v1/admin/transfer", { body: { target: node.id }, key: OPERATOR_KEY });
  expect(status).toBe(200);
  await site.cluster.waitForLeader(leader.id, SPREAD_MS);
  expect((await site.leader()).id).toBe(node.id);
}

describe("a parent of three nodes", () => {
  let parent: TestSite;
  let child: TestSite;

  beforeAll(async () => {
    parent = await TestSite.start({ id: "parent", children: ["child"], nodes: 3, election: CALM_ELECTION });
    await isLedWithLaterKey(parent);
    child = await TestSite.start({ id: "child", parents: parent.cluster.urls });
  }, SITES_START_MS);

  afterAll(async () => {
    await Promise.all([parent?.end(), child?.end()]);
  }, 60_000);

  it("is met, although its leader has a key that is not in its first ring", { timeout: SPREAD_MS }, async () => {
    await haveTheSame([parent, child]);
  });

  it(
    "is followed to its next leader when the leader is killed, and every node has the same",
    async () => {
      await parent.submit(10);
      await child.submit(10);
      await haveTheSame([parent, child]);
      const leader = await parent.cluster.leader();
      await parent.cluster.kill(leader);
      await parent.cluster.waitForLeader(leader);
      await parent.submit(10);
      await child.submit(10);
      const rest = parent.cluster.nodes.filter(({ id }) => id !== leader);
      await haveTheSame([child, ...rest.map((node) => parent.at(node))]);
      parent.cluster.start(leader);
      await haveTheSame([child, ...parent.cluster.nodes.map((node) => parent.at(node))]);
    },
    3 * SPREAD_MS,
  );
});
