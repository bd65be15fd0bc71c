// The gate of signing at a site of three real nodes: which of them opens it and when, with leaders that die in the middle, and new lines that are asked
// for with an open gate. The steps of one world build on each other.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CALM_ELECTION, OPERATOR_KEY, type TenureNode, waitFor } from "../servers/index.ts";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

interface Shown {
  readonly status: string;
  readonly gate: { readonly state: string; readonly missing: readonly string[] };
  readonly own: { readonly line: string; readonly generation: number } | null;
  readonly sites: readonly { readonly id: string; readonly status: string; readonly line: string | null }[];
}

let site: TestSite;
let peer: TestSite;

beforeAll(async () => {
  peer = await TestSite.start({ id: "b", children: ["a"] });
  site = await TestSite.start({ id: "a", parents: [peer.url], nodes: 3, election: CALM_ELECTION });
  await site.submit(5);
  await haveTheSame([site, peer]);
}, SITES_START_MS);

afterAll(() => Promise.all([site?.end(), peer?.end()]), 60_000);

async function shown(node: TenureNode): Promise<Shown | null> {
  return site.get<Shown>("/v1/mesh/sites", node).catch(() => null);
}

async function gates(): Promise<(string | undefined)[]> {
  return Promise.all(site.cluster.nodes.map(async (node) => (await shown(node))?.gate.state));
}

const areOpen = async (): Promise<boolean> => (await gates()).every((state) => state === "open");

async function restartAll(): Promise<void> {
  await Promise.all(site.cluster.nodes.map((node) => node.kill9()));
  for (const node of site.cluster.nodes) node.start();
  await site.cluster.steady(SPREAD_MS);
}

/** How often the peer has these events of the site's line. */
async function counted(type: string): Promise<number> {
  const items = await peer.items(await site.ownLine());
  return items.filter((item) => item.includes(`"eventType":"controller:${type}"`)).length;
}

async function resume(): Promise<number> {
  const leader = await site.leader();
  return (await leader.call("/v1/mesh/resume", { body: { new_line: true }, key: OPERATOR_KEY })).status;
}

async function hasGeneration(generation: number): Promise<void> {
  await waitFor(
    `generation ${generation} at the peer`,
    async () => {
      const leader = await site.leader();
      const own = (await shown(leader))?.own;
      if (own === null || own === undefined || own.generation !== generation) return false;
      const [mine, theirs] = await Promise.all([site.heads(leader), peer.heads()]);
      return mine.has(own.line) && JSON.stringify(mine.get(own.line)) === JSON.stringify(theirs.get(own.line));
    },
    SPREAD_MS,
  );
  const { sites } = await peer.get<Shown>("/v1/mesh/sites");
  expect(sites.find(({ id }) => id === "a")?.status).toBe("registered");
  expect(await peer.get("/v1/mesh/evidence")).toEqual({ forks: [] });
}

describe("a site of three nodes", () => {
  it(
    "after a start of all: its leader compares, the others follow, and one place is written",
    async () => {
      await restartAll();
      await waitFor("every node to sign", areOpen, SPREAD_MS);
      await site.submit(2);
      await haveTheSame([site, peer]);
      expect([await counted("gated"), await counted("resumed")]).toEqual([1, 1]);
    },
    2 * SPREAD_MS,
  );

  it(
    "without its peer nobody opens it, whoever leads; with it, the leader of that time does",
    async () => {
      await peer.node.term();
      await restartAll();
      const first = await site.leader();
      await waitFor("the leader to compare", async () => (await shown(first))?.gate.state === "comparing", SPREAD_MS);
      await site.submit(3);
      await first.kill9();
      await site.cluster.waitForLeader(first.id, SPREAD_MS);
      first.start();
      await site.cluster.steady(SPREAD_MS);
      await site.submit(3);
      expect(await gates()).toEqual(["comparing", "comparing", "comparing"]);
      expect((await shown(await site.leader()))?.gate.missing).toEqual(["b"]);
      peer.node.start();
      await waitFor("every node to sign", areOpen, SPREAD_MS);
      await haveTheSame([site, peer]);
      expect([await counted("gated"), await counted("resumed")]).toEqual([2, 2]);
    },
    4 * SPREAD_MS,
  );

  it(
    "a new line that is asked for twice at once is one, and its peer follows",
    async () => {
      expect(await Promise.all([resume(), resume()])).toEqual([200, 200]);
      await hasGeneration(2);
    },
    2 * SPREAD_MS,
  );

  it(
    "a new line that is asked for when the leader dies is begun once, whether it was written or not",
    async () => {
      const leader = await site.leader();
      const asked = leader
        .call("/v1/mesh/resume", { body: { new_line: true }, key: OPERATOR_KEY })
        .then(({ status }) => status)
        .catch(() => null);
      await leader.kill9();
      await asked;
      await site.cluster.waitForLeader(leader.id, SPREAD_MS);
      leader.start();
      await site.cluster.steady(SPREAD_MS);
      await waitFor("every node to sign", areOpen, SPREAD_MS);
      await waitFor(
        "a line with a ring",
        async () => (await shown(await site.leader()))?.status === "signing",
        SPREAD_MS,
      );
      const own = (await shown(await site.leader()))!.own!;
      expect([2, 3]).toContain(own.generation);
      await site.submit(2);
      await hasGeneration(own.generation);
      expect(await resume()).toBe(200);
      await hasGeneration(own.generation + 1);
    },
    4 * SPREAD_MS,
  );
});
