// A node that is taken out, on whole servers in a simulated world.

import { describe, expect, test } from "vitest";
import { TestServers } from "../sim/controller/test-servers.ts";
import { Willingness } from "./node-drain.ts";

const ALL = ["n1", "n2", "n3"];

async function started(seed: string, names = ALL): Promise<TestServers> {
  const servers = new TestServers({ names, founders: names, seed });
  servers.world.startAll();
  await servers.until(() => servers.leader() !== undefined);
  await servers.world.runFor(1_500);
  return servers;
}

const drain = (servers: TestServers, name: string, force = false): Promise<void> =>
  servers.ask(name, ({ cluster }) => cluster.drain(true, force));

describe("a node that is taken out", () => {
  test("hands over, and does not lead again while others can; another time changes nothing", async () => {
    const servers = await started("drain-leader");
    const first = servers.leader()!;
    await drain(servers, first);
    expect(servers.view(first)).toMatchObject({ isDraining: true, role: "STANDBY" });
    await servers.until(() => servers.leader() !== undefined);
    const second = servers.leader()!;
    expect(servers.view(first).leader?.nodeId).toBe(second);
    const { term } = servers.view(first);
    await drain(servers, first);
    expect(servers.view(first).term).toBe(term);
    // Whoever is asked to hand over to nobody in particular leaves it out.
    await servers.ask(second, ({ cluster }) => cluster.transfer(null, false));
    expect(servers.leader()).not.toBe(first);
    await servers.ask(first, ({ cluster }) => cluster.drain(false, false));
    expect(servers.view(first).isDraining).toBe(false);
  });

  test("that does not lead is only made unwilling", async () => {
    const servers = await started("drain-follower");
    const leader = servers.leader()!;
    const follower = ALL.find((name) => name !== leader)!;
    const { term } = servers.view(leader);
    await drain(servers, follower);
    expect(servers.view(follower).isDraining).toBe(true);
    expect([servers.leader(), servers.view(leader).term]).toEqual([leader, term]);
  });

  test("is not, where nobody else could lead: nothing has changed; by force it is, and leads on until somebody can", async () => {
    const servers = await started("drain-last");
    const leader = servers.leader()!;
    const followers = ALL.filter((name) => name !== leader);
    for (const name of followers) await drain(servers, name);
    await servers.world.runFor(200);
    await expect(drain(servers, leader)).rejects.toMatchObject({ code: "ERR_LEADER_TRANSFER_FAILED" });
    expect(servers.view(leader)).toMatchObject({ isDraining: false, role: "LEADER" });
    await drain(servers, leader, true);
    await servers.world.runFor(5_000);
    expect(servers.view(leader)).toMatchObject({ isDraining: true, role: "LEADER" });
    await servers.ask(followers[0]!, ({ cluster }) => cluster.drain(false, false));
    await servers.until(() => servers.leader() === followers[0]);
  });

  test("the only voter can't be", async () => {
    const servers = await started("drain-only", ["n1"]);
    await expect(drain(servers, "n1")).rejects.toMatchObject({
      code: "TRANSFER_TARGET_INVALID",
      message: expect.stringMatching(/only voter.*with force/) as string,
    });
  });

  test("where nobody leads it waits to be told again", async () => {
    const servers = await started("drain-nobody");
    const leader = servers.leader()!;
    const follower = ALL.find((name) => name !== leader)!;
    servers.world.network.partition([[follower], ALL.filter((name) => name !== follower)]);
    await servers.world.runFor(2_000);
    await expect(drain(servers, follower)).rejects.toMatchObject({ code: "ERR_NO_LEADER" });
    expect(servers.view(follower).isDraining).toBe(false);
  });
});

test("a node wants to lead when nothing speaks against it any more", () => {
  const told: boolean[] = [];
  const willingness = new Willingness({ setWilling: (willing) => void told.push(willing) });
  willingness.set("disk", true);
  willingness.set("drained", true);
  willingness.set("disk", false);
  expect([told.at(-1), willingness.has("drained"), willingness.has("disk")]).toEqual([false, true, false]);
  willingness.set("drained", false);
  expect(told.at(-1)).toBe(true);
});
