// A site whose disk went back to an earlier state: it must never sign another history than the one that its peers have (trap 59). Real servers;
// the steps of one world build on each other.

import { cpSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPERATOR_KEY, waitFor } from "../servers/index.ts";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

interface Shown {
  readonly status: string;
  readonly why: string | null;
  readonly gate: { readonly state: string; readonly missing: readonly string[]; readonly why: string | null };
  readonly own: { readonly line: string; readonly generation: number; readonly size: number } | null;
  readonly sites: readonly { readonly id: string; readonly status: string }[];
}

const shownBy = (site: TestSite): Promise<Shown> => site.get<Shown>("/v1/mesh/sites");

/** Null while it starts. */
const shownNow = (site: TestSite): Promise<Shown | null> => shownBy(site).catch(() => null);

async function isSigning(site: TestSite): Promise<boolean> {
  const shown = await shownNow(site);
  return shown?.status === "signing" && shown.gate.state === "open";
}

async function alertsOf({ node }: TestSite): Promise<readonly string[]> {
  return ((await node.view())?.alerts ?? []).map(({ name }) => name);
}

async function resume(site: TestSite, body: object): Promise<{ status: number; body: unknown }> {
  return site.node.call("/v1/mesh/resume", { method: "POST", key: OPERATOR_KEY, body });
}

/** What a peer holds against the site: nothing. */
async function expectTrusted(peer: TestSite, id: string): Promise<void> {
  const { sites } = await shownBy(peer);
  expect(sites.find((one) => one.id === id)?.status).toBe("registered");
  expect(await peer.get("/v1/mesh/evidence")).toEqual({ forks: [] });
}

describe.each([
  ["that dials its peer", "a", "b"],
  ["that its peer dials", "b", "a"],
] as const)("a site %s", (_title, child, parent) => {
  let sites: Readonly<Record<string, TestSite>> = {};
  const restored = (): TestSite => sites["a"]!;
  const peer = (): TestSite => sites["b"]!;
  /** As the peer knows it. */
  const restoredLine = async (): Promise<string> =>
    [...(await peer().heads()).keys()].find((line) => line.startsWith("a."))!;

  beforeAll(async () => {
    const top = await TestSite.start({ id: parent, children: [child] });
    sites = { [parent]: top, [child]: await TestSite.start({ id: child, parents: [top.url] }) };
    await Promise.all([restored().submit(5), peer().submit(5)]);
    await haveTheSame([restored(), peer()]);
  }, SITES_START_MS);

  afterAll(async () => {
    await Promise.all(Object.values(sites).map((site) => site.end()));
  }, 60_000);

  it(
    "signs again by itself after a restart, when its peer is compared, and not before",
    async () => {
      await peer().node.kill9();
      await restored().node.kill9();
      restored().node.start();
      await waitFor(
        "the gate to be shown",
        async () => ((await shownNow(restored()))?.own ?? null) !== null,
        SPREAD_MS,
      );
      await waitFor("a leader", async () => (await restored().cluster.leader()) !== "", SPREAD_MS);
      const shown = await shownBy(restored());
      expect([shown.gate.state, shown.gate.missing]).toEqual(["comparing", ["b"]]);
      const line = shown.own!.line;
      const asked = await restored().node.call(`/v1/mesh/pages?line=${line}&after=0`, { key: OPERATOR_KEY });
      expect(asked.status).toBe(503);
      await restored().submit(3);
      peer().node.start();
      await waitFor("it to sign", () => isSigning(restored()), SPREAD_MS);
      await haveTheSame([restored(), peer()]);
      expect((await shownBy(restored())).own!.generation).toBe(1);
      await expectTrusted(peer(), "a");
    },
    2 * SPREAD_MS,
  );

  it(
    "gives out nothing of its line from an older disk, and says why",
    async () => {
      await restored().node.term();
      const { dataDir } = restored().node;
      const copy = `${dataDir}.copy`;
      cpSync(dataDir, copy, { recursive: true });
      restored().node.start();
      await waitFor("it to sign", () => isSigning(restored()), SPREAD_MS);
      await restored().submit(10);
      await haveTheSame([restored(), peer()]);
      await restored().node.term();
      rmSync(dataDir, { recursive: true });
      cpSync(copy, dataDir, { recursive: true });
      const line = await restoredLine();
      const before = (await peer().heads()).get(line);
      restored().node.start();
      await waitFor("it to notice", async () => (await shownNow(restored()))?.gate.state === "behind", SPREAD_MS);
      // It takes jobs all the same.
      await restored().submit(7);
      await peer().submit(2);
      const shown = await shownBy(restored());
      expect([shown.status, shown.own!.generation]).toEqual(["gated", 1]);
      expect(shown.gate.why).toMatch(/^b has (another history|\d+ events) of a\./);
      expect([before?.size, (await peer().heads()).get(line)]).toEqual([expect.any(Number), before]);
      await expectTrusted(peer(), "a");
      await waitFor("the alert", async () => (await alertsOf(restored())).includes("mesh_signing_held"), SPREAD_MS);
      const refused = await resume(restored(), {});
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining("--new-line")]);
    },
    3 * SPREAD_MS,
  );

  it(
    "goes on in a new line when an operator says so: its peer follows, and has lost nothing",
    async () => {
      const old = (await shownBy(restored())).own!.line;
      const had = await peer().items(old);
      const own = await peer().items(await peer().ownLine());
      expect((await resume(restored(), { new_line: true })).status).toBe(200);
      await waitFor("the next ring", async () => (await shownBy(restored())).own!.generation === 2, SPREAD_MS);
      const line = await restored().ownLine();
      expect(line).not.toBe(old);
      await waitFor(
        "the alert to end",
        async () => !(await alertsOf(restored())).includes("mesh_signing_held"),
        SPREAD_MS,
      );
      await restored().submit(4);
      await waitFor(
        "the peer to have the new line",
        async () => {
          const [mine, theirs] = await Promise.all([restored().heads(), peer().heads()]);
          return mine.get(line) !== undefined && JSON.stringify(mine.get(line)) === JSON.stringify(theirs.get(line));
        },
        SPREAD_MS,
      );
      expect(await peer().items(old)).toEqual(had);
      expect(await peer().items(await peer().ownLine())).toEqual(expect.arrayContaining([...own]));
      await expectTrusted(peer(), "a");
      // What was written while nothing was given out is in the new line.
      const { page } = await peer().get<{ page: { items: readonly unknown[] } }>(`/v1/mesh/pages?line=${line}&after=0`);
      expect(page.items.filter((item) => String(item).includes('"from":"a"'))).not.toHaveLength(0);
    },
    3 * SPREAD_MS,
  );

  it(
    "signs the new line after a restart too",
    async () => {
      await restored().node.kill9();
      restored().node.start();
      await waitFor("it to sign", () => isSigning(restored()), SPREAD_MS);
      await restored().submit(2);
      const line = await restored().ownLine();
      await waitFor(
        "the peer to have it",
        async () => {
          const [mine, theirs] = await Promise.all([restored().heads(), peer().heads()]);
          return mine.get(line) !== undefined && mine.get(line)?.root === theirs.get(line)?.root;
        },
        SPREAD_MS,
      );
      await expectTrusted(peer(), "a");
    },
    2 * SPREAD_MS,
  );
});
