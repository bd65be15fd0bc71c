// Three islands lose their leader, their majority, their disks and their processes: who leads afterwards, in which term, and who does not.

import { afterAll, beforeAll, expect, it } from "vitest";
import { ISLANDS_START_MS, PATIENT_MS, type TestIsland, TestIslands } from "./test-islands.ts";

/** Of the design: 3.3 s. What is above it is for a machine with others at work. */
const NEXT_LEADER_MS_MAX = 3_300 + 3_000;
const LIMIT_MS = 4 * PATIENT_MS;

let islands: TestIslands;

beforeAll(async () => {
  islands = await TestIslands.start();
}, ISLANDS_START_MS);

afterAll(() => islands?.end(), PATIENT_MS);

/** From the log of whoever leads next, so that no poll counts. */
function sinceMs(fromMs: number, next: TestIsland, term: number): number {
  return next.logged.find(({ msg, epoch }) => msg === "leading" && epoch === term)!.atMs - fromMs;
}

it(
  "multi-island leader failover: after kill -9 the next leader acts in a higher term, within the lease and a little more",
  async () => {
    const { island, term } = await islands.leader();
    const fromMs = Date.now();
    await island.node.kill9();
    const next = await islands.leader(island);
    expect(next.term).toBeGreaterThan(term);
    expect(sinceMs(fromMs, next.island, next.term)).toBeLessThan(NEXT_LEADER_MS_MAX);
    island.start();
    await islands.settled();
    // The one that came back follows.
    expect((await islands.leader()).island).toBe(next.island);
  },
  LIMIT_MS,
);

it(
  "a leader that is stopped leads no more when it goes on, and the next one keeps its term",
  async () => {
    const { island, term } = await islands.leader();
    island.node.stop();
    const others = islands.all.filter((one) => one !== island);
    await islands.until("another leader", PATIENT_MS, async () => {
      const views = await Promise.all(others.map((one) => one.view()));
      return views.some((view) => (view?.acts_in_term ?? 0) > term);
    });
    island.node.cont();
    await islands.settled();
    const after = await islands.leader();
    expect(after.term).toBeGreaterThan(term);
    expect(after.island).not.toBe(island);
  },
  LIMIT_MS,
);

it(
  "graceful leave of the leader: the next one leads long before the lease would have ended",
  async () => {
    const { island, term } = await islands.leader();
    const fromMs = Date.now();
    expect(await island.leave()).toMatchObject({ status: 200 });
    const next = await islands.leader(island);
    expect(next.term).toBeGreaterThan(term);
    // Less than the lease that nobody has to wait for.
    expect(sinceMs(fromMs, next.island, next.term)).toBeLessThan(2_500);
    expect(await island.announce()).toMatchObject({ status: 200 });
    await islands.settled();
  },
  LIMIT_MS,
);

it(
  "a wiped disk comes back as another voter, with its island in the registry once",
  async () => {
    const [island] = await islands.followers();
    const before = (await island!.view())!;
    await island!.node.kill9();
    island!.node.wipe();
    island!.start();
    await islands.settled();
    const after = (await island!.view())!;
    expect(after.self.tc_cluster_id).toBe(before.self.tc_cluster_id);
    expect(after.self.incarnation).not.toBe(before.self.incarnation);
    const hashes = (at: typeof after): readonly string[] =>
      at.registry.filter(({ endpoint }) => endpoint === island!.url).map(({ backend_hash: hash }) => hash);
    expect(hashes(after)).toEqual([after.self.backend_hash]);
    expect(hashes(before)).toEqual([before.self.backend_hash]);
    expect(after.self.backend_hash).not.toBe(before.self.backend_hash);
  },
  LIMIT_MS,
);

it(
  "terms never fall: every process is killed at once, and the next leader has a higher one",
  async () => {
    const { term } = await islands.leader();
    const before = await islands.views();
    await Promise.all(islands.all.map(({ node }) => node.kill9()));
    for (const island of islands.all) island.start();
    let lowest = Infinity;
    await islands.until("islands that agree, after each has answered", ISLANDS_START_MS, async () => {
      const views = await islands.views();
      for (const { self } of views) lowest = Math.min(lowest, self.term);
      return islands.isSettled(views);
    });
    expect(lowest).toBeGreaterThanOrEqual(term);
    const next = await islands.leader();
    expect(next.term).toBeGreaterThan(term);
    const clusterOf = (views: typeof before): readonly unknown[] => views.map(({ self }) => self.tc_cluster_id);
    expect(new Set(clusterOf(await islands.views()))).toEqual(new Set(clusterOf(before)));
  },
  ISLANDS_START_MS + LIMIT_MS,
);

// The last of all: its islands are those that were killed.
it(
  "quorum loss during renew: the lone survivor steps down, and does not lead when the others are out of the list",
  async () => {
    const { island, term } = await islands.leader();
    const others = await islands.followers();
    await Promise.all(others.map(({ node }) => node.kill9()));
    await islands.until("the survivor to step down", PATIENT_MS, async () => {
      const view = await island.view();
      return view !== null && view.acts_in_term === null;
    });
    let ledIn: number | null = null;
    await islands.until("crash and expiry", PATIENT_MS, async () => {
      const view = await island.view();
      ledIn ??= view?.acts_in_term ?? null;
      // Its own lease at its own voter ends a little later than it may act.
      return view?.members.length === 1 && view.leader === null;
    });
    const view = (await island.view())!;
    expect([ledIn, view.acts_in_term, view.leader]).toEqual([null, null, null]);
    // By silence nobody stops being a voter.
    expect([view.voters.length, view.quorum]).toEqual([3, 2]);
    const body = { backend_hash: "a".repeat(64), endpoint: "https://127.0.0.1:1" };
    const refused = await island.call("/v1/tc/rm/register", { body });
    expect(refused.status, JSON.stringify(refused.body)).toBeGreaterThanOrEqual(409);
    expect(["tc_not_leader", "tc_unavailable"]).toContain(refused.body["error"]);
    for (const one of others) one.start();
    await islands.settled();
    expect((await islands.leader()).term).toBeGreaterThan(term);
  },
  LIMIT_MS,
);
