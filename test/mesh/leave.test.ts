// A site that leaves its mesh and comes back, as real servers: the others know, nobody waits for it, every number stays. The steps build on each other.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calculateEventHash, type HashedEvent } from "../../src/client/index.ts";
import { OPERATOR_KEY, waitFor } from "../servers/index.ts";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

interface Shown {
  readonly left_at: number | null;
  readonly gate: { readonly state: string };
  readonly sites: readonly { readonly id: string; readonly status: string }[];
  readonly links: readonly { readonly connected: boolean; readonly problem: string | null }[];
}

interface Departed {
  readonly left_at: number | null;
  readonly confirmed: readonly string[];
  readonly unconfirmed: readonly string[];
}

interface Since {
  readonly events: readonly (HashedEvent & { readonly eventHash: string })[];
  readonly throughSequence: number;
}

async function operate(site: TestSite, verb: "leave" | "join"): Promise<Departed> {
  const node = await site.leader();
  const { status, body } = await node.call<Departed>(`/v1/mesh/${verb}`, {
    method: "POST",
    key: OPERATOR_KEY,
    body: {},
  });
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

async function statusOf(at: TestSite, of: TestSite): Promise<string | undefined> {
  const { sites } = await at.get<Shown>("/v1/mesh/sites");
  return sites.find(({ id }) => id === of.id)?.status;
}

/** Parents mean nothing to a standalone site, and are refused in its configuration. */
const IN_MESH = new WeakMap<TestSite, TestSite["node"]["config"]["mesh"]>();

async function mode(site: TestSite, name: "standalone" | "distributed"): Promise<void> {
  await site.node.term();
  if (!IN_MESH.has(site)) IN_MESH.set(site, site.node.config.mesh);
  site.node.configure({ mesh: name === "distributed" ? IN_MESH.get(site)! : { controller_id: site.id } });
  site.node.start();
  await waitFor("the site to lead again", async () => (await site.cluster.leader()) !== "", SPREAD_MS);
}

/** All that `since` and `verify` say. */
async function numbers(site: TestSite): Promise<Since> {
  const verified = await site.get<{ valid: boolean }>("/api/events/verify");
  expect(verified.valid).toBe(true);
  const since = await site.get<Since>("/api/events/since/0");
  // The specification's function, as anybody outside uses it; of events whose text stayed at their site only the hash is known.
  const whole = since.events.filter((event) => "payload" in event);
  expect(whole.length).toBeGreaterThan(3);
  for (const event of whole) expect(calculateEventHash(event), JSON.stringify(event)).toBe(event.eventHash);
  return since;
}

async function alertsOf(site: TestSite): Promise<readonly string[]> {
  const { alerts } = await site.get<{ alerts: readonly { name: string }[] }>("/v1/cluster");
  return alerts.map(({ name }) => name);
}

describe("a hub with two children, of which one leaves", () => {
  let hub: TestSite;
  let paris: TestSite;
  let oslo: TestSite;
  let before: Since;

  beforeAll(async () => {
    hub = await TestSite.start({ id: "hub", children: ["paris", "oslo"] });
    paris = await TestSite.start({ id: "paris", parents: [hub.url] });
    oslo = await TestSite.start({ id: "oslo", parents: [hub.url] });
    await Promise.all([hub, paris, oslo].map((site) => site.submit(3)));
    await haveTheSame([hub, paris, oslo]);
  }, SITES_START_MS);

  afterAll(() => Promise.all([hub, paris, oslo].map((site) => site?.end())), 60_000);

  it(
    "the others hear of it, also over a relay, and every link of it ends; a second time changes nothing",
    async () => {
      const departed = await operate(paris, "leave");
      expect(departed).toMatchObject({ confirmed: ["hub"], unconfirmed: [] });
      expect(departed.left_at).toBeGreaterThan(0);
      for (const other of [hub, oslo]) {
        await waitFor(`${other.id} to know`, async () => (await statusOf(other, paris)) === "left", SPREAD_MS);
      }
      expect((await paris.get<Shown>("/v1/mesh/sites")).links.map(({ connected }) => connected)).toEqual([false]);
      expect((await operate(paris, "leave")).left_at).toBe(departed.left_at);
    },
    SPREAD_MS,
  );

  it(
    "what is written elsewhere does not reach it any more, and its own jobs go on",
    async () => {
      await Promise.all([hub.submit(3), paris.submit(3)]);
      const line = await hub.ownLine();
      const size = (await hub.heads()).get(line)!.size;
      await waitFor("oslo to have it", async () => (await oslo.heads()).get(line)?.size === size, SPREAD_MS);
      expect((await paris.heads()).get(line)!.size).toBeLessThan(size);
    },
    2 * SPREAD_MS,
  );

  it(
    "a peer that is restarted does not wait for it",
    async () => {
      await hub.node.kill9();
      hub.node.start();
      await waitFor(
        "the hub to sign again",
        async () => (await hub.get<Shown>("/v1/mesh/sites").catch(() => null))?.gate.state === "open",
        SPREAD_MS,
      );
    },
    2 * SPREAD_MS,
  );

  it(
    "a restart in the same mode does not bring it back",
    async () => {
      await mode(paris, "distributed");
      await waitFor(
        "the site to answer",
        async () => ((await paris.get<Shown>("/v1/mesh/sites").catch(() => null))?.left_at ?? null) !== null,
        SPREAD_MS,
      );
      expect(await statusOf(hub, paris)).toBe("left");
    },
    2 * SPREAD_MS,
  );

  it(
    "as a standalone site it keeps the numbers of all that has arrived, and counts on",
    async () => {
      before = await numbers(paris);
      expect(before.throughSequence).toBeGreaterThan(10);
      await mode(paris, "standalone");
      const alone = await numbers(paris);
      expect(alone.events.slice(0, before.events.length)).toEqual(before.events);
      await paris.submit(2);
      const later = await numbers(paris);
      expect(later.throughSequence).toBeGreaterThanOrEqual(alone.throughSequence + 2);
      expect(later.events.slice(0, before.events.length)).toEqual(before.events);
      before = later;
    },
    2 * SPREAD_MS,
  );

  it(
    "comes back with the same line, is compared first, and gets what it missed",
    async () => {
      await mode(paris, "distributed");
      await waitFor("the site to answer", async () => (await paris.ownLine().catch(() => "")) !== "", SPREAD_MS);
      const line = await paris.ownLine();
      expect((await operate(paris, "join")).left_at).toBeNull();
      await haveTheSame([hub, paris, oslo]);
      expect(await paris.ownLine()).toBe(line);
      for (const other of [hub, oslo]) {
        await waitFor(`${other.id} to see it`, async () => (await statusOf(other, paris)) === "registered", SPREAD_MS);
      }
      const after = await numbers(paris);
      expect(after.events.slice(0, before.events.length)).toEqual(before.events);
    },
    3 * SPREAD_MS,
  );

  it(
    "a parent that is out of reach for a minute raises an alert, which ends when it is back",
    async () => {
      await hub.node.kill9();
      const isUp = async (): Promise<boolean> => (await alertsOf(oslo)).includes("mesh_peer_unreachable");
      await waitFor("the alert", isUp, 2 * SPREAD_MS);
      hub.node.start();
      await waitFor("its end", async () => !(await isUp()), 2 * SPREAD_MS);
    },
    5 * SPREAD_MS,
  );
});
