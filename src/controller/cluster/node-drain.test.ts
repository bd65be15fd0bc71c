// A node that is taken out, on whole servers in a simulated world.

import { describe, expect, test } from "vitest";
import { HandClock, settled } from "../../electors/test-seat.ts";
import type { TransferView } from "../../ports/cluster.ts";
import type { RaftStatus } from "../../core/raft/index.ts";
import { TestServers } from "../../sim/controller/test-servers.ts";
import { drainNode, Drains, Willingness } from "./node-drain.ts";

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

/** A leader whose transfers end when a test says so. */
class HandNode {
  readonly clock = new HandClock();
  readonly told: boolean[] = [];
  readonly drains = new Drains((isDrained) => void this.told.push(isDrained));
  leads = true;
  #transfers: PromiseWithResolvers<TransferView>[] = [];

  drain(force = false): Promise<string> {
    const { drains, clock } = this;
    const leadership = { epoch: () => (this.leads ? 1 : null) };
    const options = { consensus: this, leadership, drains, clock, transfer: () => this.#transfer() };
    return drainNode(options, force).then(
      () => "drained",
      (error: Error) => error.message,
    );
  }

  /** All that are under way. */
  async transferred(isTakenOver: boolean): Promise<void> {
    if (isTakenOver) this.leads = false;
    const view = { success: true, message: "", oldLeaderId: "n1", newLeaderId: "n2" };
    for (const { resolve } of this.#transfers.splice(0)) resolve(view);
    await settled();
  }

  status(): RaftStatus {
    const role = this.leads ? "leader" : "follower";
    const transfer = this.#transfers.length > 0 ? "n2@a1" : null;
    return { role, established: this.leads, leader: this.leads ? "n1@a1" : "n2@a1", transfer } as RaftStatus;
  }

  #transfer(): Promise<TransferView> {
    const transfer = Promise.withResolvers<TransferView>();
    this.#transfers.push(transfer);
    return transfer.promise;
  }
}

describe("a request that comes while an earlier one waits", () => {
  test("an undo is the last word: the drain that waited for its transfer says so, and the node stays in", async () => {
    const node = new HandNode();
    const drained = node.drain();
    node.drains.undo();
    await node.transferred(true);
    expect(await drained).toContain("undone by a later request");
    expect([node.drains.isDrained, node.told]).toEqual([false, []]);
  });

  test("an undo ends the wait for another leader too", async () => {
    const node = new HandNode();
    const drained = node.drain();
    await node.transferred(false);
    expect(node.drains.isDrained).toBe(true);
    node.drains.undo();
    await node.clock.advance(10);
    expect(await drained).toContain("undone by a later request");
    expect(node.told).toEqual([true, false]);
  });

  test("a drain behind an undo stands, whatever becomes of the one before", async () => {
    const node = new HandNode();
    const first = node.drain();
    node.drains.undo();
    const second = node.drain();
    await node.transferred(true);
    await node.clock.advance(10);
    expect([await first, await second]).toEqual([expect.stringContaining("undone"), "drained"]);
    expect(node.drains.isDrained).toBe(true);
  });

  test("one that fails leaves a node drained that was drained by force before", async () => {
    const node = new HandNode();
    const forced = node.drain(true);
    await node.transferred(false);
    await node.clock.advance(10);
    expect(await forced).toBe("drained");
    const plain = node.drain();
    await node.transferred(false);
    await node.clock.advance(3_100);
    expect(await plain).toContain("nobody else took over");
    expect([node.drains.isDrained, node.told]).toEqual([true, [true]]);
  });

  test("one that fails leaves a node drained that is drained by force meanwhile", async () => {
    const node = new HandNode();
    const plain = node.drain();
    const forced = node.drain(true);
    await node.clock.advance(10);
    expect(await forced).toBe("drained");
    await node.transferred(false);
    await node.clock.advance(3_100);
    expect(await plain).toContain("nobody else took over");
    expect(node.drains.isDrained).toBe(true);
  });

  test("two that both fail have changed nothing", async () => {
    const node = new HandNode();
    const both = [node.drain(), node.drain()];
    await node.clock.advance(1_000);
    await node.transferred(false);
    await node.clock.advance(3_100);
    for (const said of await Promise.all(both)) expect(said).toContain("nobody else took over");
    expect(node.drains.isDrained).toBe(false);
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
