// Clocks of a cluster's nodes that are off, as its operators see it.

import { describe, expect, test } from "vitest";
import { TestServers } from "../../sim/controller/test-servers.ts";

const ALL = ["n1", "n2", "n3"];
const DAY_MS = 86_400_000;
/** As the simulated clocks begin. */
const WALL_START_MS = 1_767_225_600_000;

async function started(seed: string, names = ALL): Promise<TestServers> {
  const servers = new TestServers({ seed, names, founders: names });
  servers.world.startAll();
  await servers.until(() => servers.leader() !== undefined);
  await servers.world.runFor(1_500);
  return servers;
}

const alerts = (servers: TestServers, name: string): string[] =>
  servers.view(name).alerts.map((alert) => [alert.name, alert.nodeId ?? ""].join(" ").trim());

const jump = (servers: TestServers, name: string, byMs: number): void =>
  servers.world.node(name).process.jumpWall(byMs);

/** How far what a node believes is off the world's time: clocks that are right are so within a few seconds. */
function believedOffMs(servers: TestServers, name: string): number | null {
  const believedMs = servers.of(name).cluster.believedMs();
  return believedMs === null ? null : Math.abs(believedMs - WALL_START_MS - servers.world.nowMs);
}

describe("a clock that is off", () => {
  test.each([25 * 3_600_000, -90 * DAY_MS, 120_000])(
    "by %d ms: its node hands leadership over, says why, and is willing again when it is set right",
    async (byMs) => {
      const servers = await started(`skew/${byMs}`);
      const leader = servers.leader()!;
      const right = ALL.find((name) => name !== leader)!;
      jump(servers, leader, byMs);
      expect(believedOffMs(servers, leader)).toBeLessThan(10_000);
      await servers.until(() => servers.leader() !== undefined && servers.leader() !== leader);
      expect(alerts(servers, leader)).toEqual([`clock_skewed ${leader}`]);
      expect(alerts(servers, right)).toEqual([]);
      expect(Math.abs((servers.of(leader).cluster.stats().clockSkewMs ?? 0) - byMs)).toBeLessThan(10_000);
      expect(believedOffMs(servers, leader)).toBeLessThan(10_000);
      // It stays a follower while it is off, whoever else fails.
      const successor = servers.leader()!;
      await servers.ask(successor, ({ cluster }) => cluster.transfer(null, false));
      await servers.until(() => servers.leader() !== undefined);
      expect(servers.leader()).not.toBe(leader);
      jump(servers, leader, -byMs);
      await servers.until(() => alerts(servers, leader).length === 0);
      await servers.ask(servers.leader()!, ({ cluster }) => cluster.transfer(leader, false));
      await servers.until(() => servers.leader() === leader);
    },
  );

  test("of each node by another time: none is believed, all say so, and one leads all the same", async () => {
    const servers = await started("disagree");
    for (const [at, name] of ALL.entries()) jump(servers, name, at * DAY_MS);
    await servers.until(() => ALL.every((name) => alerts(servers, name).includes("clocks_disagree")));
    await servers.world.runFor(20_000);
    const leader = servers.leader()!;
    await servers.write(leader, "written");
    expect(servers.of(leader).cluster.believedMs()).toBeNull();
  });

  test("where the others are gone: a node that is off leads if it is needed", async () => {
    const servers = await started("needed");
    const [off, right, gone] = ALL as [string, string, string];
    jump(servers, off, DAY_MS);
    await servers.until(() => alerts(servers, off).includes(`clock_skewed ${off}`));
    await servers.until(() => servers.leader() !== undefined && servers.leader() !== off);
    servers.crash(gone);
    await servers.until(() => servers.leader() !== undefined);
    await servers.world.runFor(15_000);
    await servers.write(servers.leader()!, "written");
    expect(servers.of(right).cluster.believedMs(), "one clock of three is no majority").toBeNull();
  });

  test("of a cluster of one is not believed for minutes after it jumped", async () => {
    const servers = await started("one", ["n1"]);
    jump(servers, "n1", DAY_MS);
    expect(believedOffMs(servers, "n1")).toBeLessThan(10_000);
    await servers.until(() => alerts(servers, "n1").includes("clock_skewed n1"));
    expect([servers.of("n1").cluster.believedMs(), servers.leader()]).toEqual([null, "n1"]);
    await servers.until(() => alerts(servers, "n1").length === 0, 400_000);
    expect(believedOffMs(servers, "n1")).toBeGreaterThan(DAY_MS - 10_000);
  });
});
