// How a site comes back whose line can't go on: one that has forked, and one that has lost its keys. Both begin the next generation, whose ring an operator
// approves at each peer; from then on its rows are everywhere again, with the same hash. Real servers; the steps build on each other.

import { createPrivateKey } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { signCheckpoint, withheldHash } from "../../src/core/mesh/proof/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { signerOf } from "../../src/drivers/system/signatures.ts";
import { OPERATOR_KEY, waitFor } from "../servers/index.ts";
import { haveTheSame, keyOf, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

interface Shown {
  readonly status: string;
  readonly why: string | null;
  readonly own: { readonly line: string; readonly generation: number; readonly ring_hash: string } | null;
  readonly sites: readonly { readonly id: string; readonly status: string; readonly line: string | null }[];
  readonly links: readonly { readonly connected: boolean; readonly problem?: string | null }[];
}

interface State {
  readonly arrival: number;
  readonly through: number;
  readonly hash: string;
  readonly rows: number;
}

let hub: TestSite;
let watcher: TestSite;
let site: TestSite;

beforeAll(async () => {
  hub = await TestSite.start({ id: "hub", children: ["site", "watcher"] });
  watcher = await TestSite.start({ id: "watcher", parents: [hub.url] });
  site = await TestSite.start({ id: "site", parents: [hub.url] });
  await Promise.all([hub.submit(2), watcher.submit(2), site.submit(7)]);
  await haveTheSame([hub, watcher, site]);
}, SITES_START_MS);

afterAll(() => Promise.all([hub?.end(), watcher?.end(), site?.end()]), 60_000);

const shown = (at: TestSite): Promise<Shown> => at.get<Shown>("/v1/mesh/sites");

async function statusAt(at: TestSite): Promise<string | undefined> {
  return (await shown(at)).sites.find(({ id }) => id === "site")?.status;
}

async function post(at: TestSite, path: string, body: object): Promise<number> {
  return (await at.node.call(path, { body, key: OPERATOR_KEY })).status;
}

/** Both peers show everything that they have, and the same. */
async function agreed(): Promise<State> {
  let states: readonly State[] = [];
  const isAgreed = async (): Promise<boolean> => {
    states = await Promise.all([hub, watcher].map((at) => at.get<State>("/v1/mesh/state")));
    return states.every(({ arrival, through, hash }) => arrival === through && hash === states[0]!.hash);
  };
  await waitFor("both peers to show the same", isAgreed, SPREAD_MS);
  return states[0]!;
}

async function jobsOfSite(at: TestSite): Promise<readonly string[]> {
  const { jobs } = await at.get<{ jobs: readonly { id: string; site: string }[] }>("/v1/mesh/jobs?limit=200");
  return jobs.filter((job) => job.site === "site").map(({ id }) => id);
}

/** The line of the site's newest generation is at both peers, as the site has it. */
async function follows(generation: number): Promise<void> {
  await waitFor(
    `generation ${generation} at both peers`,
    async () => {
      const own = (await shown(site).catch(() => null))?.own;
      if (own?.generation !== generation) return false;
      const heads = await Promise.all([site, hub, watcher].map(async (at) => (await at.heads()).get(own.line)));
      return heads[0] !== undefined && heads.every((head) => head?.root === heads[0]!.root);
    },
    SPREAD_MS,
  ).catch(async (error: unknown) => {
    const all = await Promise.all([site, hub, watcher].map((at) => shown(at).catch(String)));
    throw new Error(`${(error as Error).message}\n${JSON.stringify(all, null, 1)}`);
  });
}

describe("a site that has forked", () => {
  it(
    "is frozen everywhere, and its rows leave the hash",
    async () => {
      const before = await agreed();
      const { line } = (await shown(site)).own!;
      const { size } = (await hub.heads()).get(line)!;
      // Whoever has the site's key signs another history of the same size.
      const pem = readFileSync(join(site.node.dataDir, "mesh.key"), "utf8");
      const key = { node: site.node.id, signer: signerOf(createPrivateKey(pem)) };
      const withheld = { after: size, hash: withheldHash([], systemDigest) };
      const note = signCheckpoint(
        { line, size, root: systemDigest.sha256Hex(new Uint8Array(1)), withheld },
        key,
        systemDigest,
      );
      const body = { controller: "site", heads: [note] };
      expect(await hub.node.call("/api/events/broadcast", { body, key: keyOf("site") })).toMatchObject({ status: 200 });
      for (const at of [hub, watcher]) {
        await waitFor(`${at.id} to freeze it`, async () => (await statusAt(at)) === "forked", SPREAD_MS);
      }
      const after = await agreed();
      expect(after.hash).not.toBe(before.hash);
      expect(await jobsOfSite(watcher), "its rows are still shown").toHaveLength(7);
    },
    2 * SPREAD_MS,
  );

  it(
    "is not taken back by its own word: an operator approves the ring of the next generation, at each peer",
    async () => {
      const before = await agreed();
      expect(await post(site, "/v1/mesh/resume", { new_line: true })).toBe(200);
      await waitFor("the next ring", async () => (await shown(site)).own?.generation === 2, SPREAD_MS);
      await site.submit(3);
      await waitFor(
        "the hub to refuse it",
        async () => (await shown(site)).links.some(({ problem }) => problem?.includes("--ring") === true),
        SPREAD_MS,
      );
      expect([await statusAt(hub), (await agreed()).hash]).toEqual(["forked", before.hash]);
      const { ring_hash: ring } = (await shown(site)).own!;
      for (const at of [hub, watcher]) expect(await post(at, "/v1/mesh/sites/site/approve", { ring })).toBe(200);
      await follows(2);
      const after = await agreed();
      expect(after.hash).not.toBe(before.hash);
      for (const at of [hub, watcher]) {
        expect(await statusAt(at)).toBe("approved");
        expect((await jobsOfSite(at)).length, at.id).toBe(10);
      }
    },
    3 * SPREAD_MS,
  );
});

describe("a site that has lost its key", () => {
  it(
    "takes jobs and says why it signs nothing; what it has signed is still at its peers",
    async () => {
      const { line } = (await shown(site)).own!;
      const had = await watcher.items(line);
      await site.node.term();
      rmSync(join(site.node.dataDir, "mesh.key"));
      site.node.start();
      await waitFor(
        "it to say so",
        async () => {
          // Before it knows that it leads and that nobody else is there, it says that the other nodes sign.
          const why = (await shown(site).catch(() => null))?.why ?? "";
          return /not in the ring of keys.*`tenure mesh resume --new-line`/s.test(why);
        },
        SPREAD_MS,
      );
      expect((await shown(site)).status).toBe("not-signing");
      await site.submit(2);
      expect(await watcher.items(line)).toEqual(had);
      const { status } = await site.node.call(`/v1/mesh/pages?line=${line}&after=0`, { key: OPERATOR_KEY });
      expect(status, "it can't sign the old pages again").toBe(503);
    },
    2 * SPREAD_MS,
  );

  it(
    "goes on in a new line, with everything that it has, once the new ring is approved",
    async () => {
      expect(await post(site, "/v1/mesh/resume", { new_line: true })).toBe(200);
      await waitFor("the next ring", async () => (await shown(site)).own?.generation === 3, SPREAD_MS);
      const { ring_hash: ring } = (await shown(site)).own!;
      await waitFor(
        "the hub to refuse it",
        async () => (await shown(site)).links.some(({ problem }) => problem?.includes(ring) === true),
        SPREAD_MS,
      );
      for (const at of [hub, watcher]) expect(await post(at, "/v1/mesh/sites/site/approve", { ring })).toBe(200);
      await follows(3);
      await agreed();
      for (const at of [hub, watcher]) expect((await jobsOfSite(at)).length, at.id).toBe(12);
      expect(await hub.get("/v1/mesh/evidence")).toMatchObject({ forks: [{}] });
    },
    3 * SPREAD_MS,
  );
});
