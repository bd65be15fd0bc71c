import { describe, expect, test } from "vitest";
import { peerKey } from "../../core/kit/ids.ts";
import { TERM_JUMP_MAX } from "../../core/kit/limits.ts";
import { digest } from "../../engine/test-storage.ts";
import { TestServers, type TestServersOptions } from "../../sim/controller/test-servers.ts";
import { encodeBeacon } from "./beacon.ts";
import { isConfirmedLeader } from "./cluster-view.ts";

const ALL = ["n1", "n2", "n3"];

async function started(options: Partial<TestServersOptions> & { readonly seed: string }): Promise<TestServers> {
  const servers = new TestServers({ names: ALL, founders: ALL, ...options });
  servers.world.startAll();
  await servers.until(() => servers.leader() !== undefined);
  await servers.world.runFor(1_500);
  return servers;
}

const others = (servers: TestServers): [string, string] =>
  ALL.filter((name) => name !== servers.leader()) as [string, string];

const alerts = (servers: TestServers, name: string): string[] =>
  servers.view(name).alerts.map((alert) => [alert.name, alert.nodeId ?? ""].join(" ").trim());

describe("the view", () => {
  test("has one leader and standbys that name it, with the members and what the leader knows of them", async () => {
    const servers = await started({ seed: "view" });
    const leader = servers.leader()!;
    const [second] = others(servers);
    await servers.write(leader, "a", "b");
    const seen = servers.view(leader);
    expect(seen).toMatchObject({ clusterId: "c", nodeId: leader, incarnation: "a1", role: "LEADER" });
    expect(seen.stalenessMs, "as old as its last confirmed round").toBeLessThan(150);
    expect(seen.members.map(({ nodeId }) => nodeId)).toEqual(ALL);
    await servers.world.runFor(200);
    for (const { nodeId, progress, isConnected } of servers.view(leader).members) {
      expect([nodeId, progress?.lag, progress?.healthy, isConnected]).toEqual([nodeId, 0, true, true]);
      expect(progress?.lastContactMs).toBeLessThanOrEqual(100);
    }
    const standby = servers.view(second);
    expect(standby).toMatchObject({ role: "STANDBY", applied: seen.lastIndex, isReady: true });
    expect(standby.leader).toEqual({ nodeId: leader, address: `${leader}:7000`, url: `http://${leader}` });
    expect(standby.members.every(({ progress }) => progress === null)).toBe(true);
  });

  test("staleness is a heartbeat or two on a follower, and grows without bound once there is no leader", async () => {
    const servers = await started({ seed: "stale" });
    const [second, third] = others(servers);
    expect(servers.view(second).stalenessMs).toBeLessThanOrEqual(60);
    servers.world.network.partition([[second], ALL.filter((name) => name !== second)]);
    await servers.world.runFor(10_000);
    expect(servers.view(second).stalenessMs).toBeGreaterThan(9_900);
    expect(servers.view(third).stalenessMs).toBeLessThanOrEqual(60);
  });

  test("a leader that is cut off is no LEADER any more after an election timeout, and its staleness counts on", async () => {
    const servers = await started({ seed: "cut" });
    const old = servers.leader()!;
    servers.world.network.partition([[old], others(servers)]);
    await servers.world.runFor(301);
    expect(servers.view(old).role).toBe("STANDBY");
    await servers.world.runFor(5_000);
    const { role, stalenessMs } = servers.view(old);
    expect(role).toBe("STANDBY");
    expect(stalenessMs).toBeGreaterThan(4_900);
    // What it knew as leader counts, though it has followed nobody since.
    expect(stalenessMs).toBeLessThan(6_500);
  });

  test("says DRAINING while a node that is told to go still leads, and STANDBY afterwards (design D17)", async () => {
    const servers = await started({ seed: "drain" });
    const leader = servers.leader()!;
    const [second] = others(servers);
    for (const name of [leader, second]) servers.of(name).cluster.setDraining(true);
    expect([servers.view(leader).role, servers.view(second).role]).toEqual(["DRAINING", "STANDBY"]);
    await servers.ask(leader, ({ cluster }) => cluster.transfer(null, false));
    expect(servers.view(leader).role).toBe("STANDBY");
  });

  test("after stop nothing runs any more, and starting and stopping twice is harmless", async () => {
    const servers = await started({ seed: "stop", names: ["n1"], founders: ["n1"] });
    const { cluster } = servers.of("n1");
    cluster.start();
    cluster.stop();
    cluster.stop();
    await servers.ask("n1", ({ engine }) => engine.stop());
    expect(await servers.world.run(() => false, { untilMs: servers.world.nowMs + 60_000 })).toBe("time");
    expect(servers.world.scheduler.pending).toBe(0);
  });
});

test("trap 29: who led before it was held up is no leader before it has heard from a quorum again", async () => {
  const servers = await started({ seed: "held-up" });
  const status = servers.of(servers.leader()!).engine.status();
  expect(isConfirmedLeader(status, status.quorumContactMs + 300, 300)).toBe(true);
  expect(isConfirmedLeader(status, status.quorumContactMs + 301, 300)).toBe(false);
  expect(isConfirmedLeader({ ...status, established: false }, status.quorumContactMs, 300)).toBe(false);
  // A sole voter asks nobody.
  const alone = { ...status, configuration: { ...status.configuration, voters: [status.peer] } };
  expect(isConfirmedLeader(alone, status.quorumContactMs + 10_000, 300)).toBe(true);
});

describe("readiness", () => {
  test("trap 47: a follower is ready once it has what was committed, and stays so without a leader", async () => {
    const servers = await started({ seed: "ready" });
    const [second, third] = others(servers);
    for (const name of ALL) expect(servers.view(name)).toMatchObject({ isReady: true, notReadyReason: null });
    servers.crash(servers.leader()!);
    servers.crash(third);
    await servers.world.runFor(40_000);
    expect(servers.view(second)).toMatchObject({ leader: null, isReady: true });
    servers.of(second).cluster.setFailed("its disk failed");
    expect(servers.view(second)).toMatchObject({ isReady: false, notReadyReason: "its disk failed" });
  });

  test("a node that was removed is not ready, follower or leader, and is again when it was added with an empty disk", async () => {
    const servers = await started({ seed: "removed" });
    const [second] = others(servers);
    const leader = servers.leader()!;
    const remove = (nodeId: string): Promise<unknown> =>
      servers.ask(servers.leader()!, ({ cluster }) => cluster.changeMember({ op: "remove", nodeId }));
    await remove(second);
    await servers.until(() => !servers.view(second).isReady);
    expect(servers.view(second).notReadyReason).toContain("was removed from the cluster");
    expect(servers.view(leader)).toMatchObject({ isReady: true, notReadyReason: null });
    await remove(leader);
    await servers.until(() => !servers.view(leader).isReady);
    expect(servers.view(leader).notReadyReason).toContain("was removed from the cluster");
    await servers.world.runFor(5_000);
    for (const name of [second, leader]) {
      expect(servers.logged(name, "removed"), "once, with what to do").toEqual([
        expect.objectContaining({ level: "warn", message: expect.stringMatching(/was removed.*stop it.*member add/) }),
      ]);
    }

    servers.crash(second);
    servers.world.start(second);
    await servers.world.runFor(1_000);
    expect(servers.view(second).notReadyReason, "also after a restart").toContain("or no longer");
    servers.crash(second);
    servers.world.node(second).disk.wipe();
    servers.world.start(second);
    await servers.until(() => servers.leader() !== undefined);
    await servers.world.runFor(1_000);
    await servers.ask(servers.leader()!, ({ cluster }) =>
      cluster.changeMember({ op: "add", nodeId: second, promote: false }),
    );
    await servers.until(() => servers.view(second).isReady);
  });

  test("a node that was away when it was removed is not ready once a member says so, and is where a leader speaks to it", async () => {
    const servers = await started({ seed: "removed-unheard" });
    const [second, third] = others(servers);
    servers.world.network.partition([[second], [servers.leader()!, third]]);
    await servers.until(() => servers.view(second).leader === null);
    expect(servers.view(second)).toMatchObject({ isReady: true });
    servers.refuseAsRemoved(second, third);
    await servers.world.runFor(10);
    expect(servers.view(second)).toMatchObject({ isReady: false });
    expect(servers.view(second).notReadyReason).toContain(`${third} says that this disk was removed from the cluster`);
    servers.world.network.heal();
    await servers.until(() => servers.view(second).isReady);
  });

  test("a node that starts is not ready before it has caught up, and says why", async () => {
    const servers = await started({ seed: "unready" });
    const [second, third] = others(servers);
    servers.crash(second);
    await servers.write(servers.leader()!, ...Array.from({ length: 2_000 }, (_, at) => `entry ${at}`));
    servers.world.network.partition([[second], [servers.leader()!, third]]);
    servers.world.start(second);
    await servers.world.runFor(1_000);
    expect(servers.view(second)).toMatchObject({ isReady: false, stalenessMs: null });
    expect(servers.view(second).notReadyReason).toContain("no leader");
    servers.world.network.heal();
    await servers.until(() => servers.view(second).isReady);
    expect(servers.of(second).inner.applied).toHaveLength(2_000);
  });
});

describe("a transfer", () => {
  test("goes to the voter that is named, or to the best one, and is no failover for anybody", async () => {
    const servers = await started({ seed: "transfer" });
    const first = servers.leader()!;
    const [second] = others(servers);
    const done = await servers.ask(first, ({ cluster }) => cluster.transfer(second, false));
    expect(done).toMatchObject({ success: true, oldLeaderId: first, newLeaderId: second });
    expect(servers.logged(first, "transfer")).toMatchObject([{ level: "info", success: true }]);
    await servers.until(() => servers.leader() === second);
    const next = await servers.ask(second, ({ cluster }) => cluster.transfer(null, false));
    expect(next.newLeaderId).not.toBe(second);
    await servers.world.runFor(10_000);
    for (const name of ALL) expect([name, servers.of(name).cluster.stats().failovers]).toEqual([name, 0]);
    expect(servers.of(first).cluster.stats().transfers).toEqual({ succeeded: 1, failed: 0 });
  });

  test("to itself, to a learner, to a stranger or by a node that does not lead is refused, and nothing changes", async () => {
    const servers = await started({ seed: "transfer-refused", names: [...ALL, "n4"] });
    const leader = servers.leader()!;
    const [standby] = others(servers);
    await servers.ask(leader, ({ cluster }) => cluster.changeMember({ op: "add", nodeId: "n4", promote: false }));
    const { term } = servers.view(leader);
    for (const [target, words] of [
      [leader, "leads already"],
      ["n4", "is a learner"],
      ["n9", "is no member"],
    ] as const) {
      const told = servers.ask(leader, ({ cluster }) => cluster.transfer(target, true));
      await expect(told).rejects.toMatchObject({
        code: "TRANSFER_TARGET_INVALID",
        message: expect.stringContaining(words),
      });
    }
    const elsewhere = servers.ask(standby, ({ cluster }) => cluster.transfer(leader, false));
    await expect(elsewhere).rejects.toMatchObject({ code: "NOT_LEADER" });
    await servers.world.runFor(2_000);
    expect(servers.view(leader)).toMatchObject({ role: "LEADER", term });
    expect(servers.logged(leader, "transfer")).toHaveLength(3);
  });

  test("to a voter that does not answer fails with the reason, and the leader leads on", async () => {
    const servers = await started({ seed: "transfer-failed" });
    const leader = servers.leader()!;
    const [dead] = others(servers);
    servers.crash(dead);
    await servers.until(() => alerts(servers, leader).length > 0);
    const told = servers.ask(leader, ({ cluster }) => cluster.transfer(dead, false));
    await expect(told).rejects.toMatchObject({
      code: "ERR_LEADER_TRANSFER_FAILED",
      message: expect.stringContaining(dead),
    });
    expect(servers.logged(leader, "transfer")).toMatchObject([{ code: 4003, success: false }]);
    expect(servers.view(leader).role).toBe("LEADER");
  });

  test("in a cluster of one is refused: there is nobody else", async () => {
    const servers = await started({ seed: "alone", names: ["n1"], founders: ["n1"] });
    const told = servers.ask("n1", ({ cluster }) => cluster.transfer(null, false));
    await expect(told).rejects.toMatchObject({ code: "TRANSFER_TARGET_INVALID" });
    expect(servers.view("n1")).toMatchObject({ role: "LEADER", stalenessMs: 0, isReady: true });
  });
});

describe("what happens is counted and logged", () => {
  test("a leader that dies is one failover for each survivor, and one election with its votes in the log", async () => {
    const servers = await started({ seed: "failover" });
    const old = servers.leader()!;
    const survivors = others(servers);
    servers.crash(old);
    await servers.until(() => survivors.some((name) => servers.view(name).role === "LEADER"));
    const next = survivors.find((name) => servers.view(name).role === "LEADER")!;
    await servers.world.runFor(6_000);
    for (const name of survivors) {
      expect([name, servers.of(name).cluster.stats().failovers]).toEqual([name, 1]);
      expect(servers.logged(name, "failover")).toMatchObject([{ from: `${old}@a1`, to: `${next}@a1` }]);
    }
    const stats = servers.of(next).cluster.stats();
    expect(stats).toMatchObject({ electionsStarted: 1, electionsWon: 1, electionSuccessRate: 1, splitBrains: 0 });
    expect(stats.electionDurationMs.count).toBe(1);
    const line = servers.logged(next, "election").find(({ stage }) => stage === "vote");
    expect(line).toMatchObject({ result: "won", granted: survivors.map((name) => `${name}@a1`).join(), denied: "" });
    expect(servers.view(next).elections[0]).toMatchObject({ stage: "vote", result: "won", repeated: 1 });
    expect(alerts(servers, next)).toEqual([`follower_unresponsive ${old}`]);
  });

  test("a node that is cut off alerts after 30 s, keeps one record of its many pre-votes, and says when it is over", async () => {
    const servers = await started({ seed: "cut-off" });
    const [lone] = others(servers);
    servers.world.network.partition([[lone], ALL.filter((name) => name !== lone)]);
    await servers.world.runFor(29_000);
    expect(alerts(servers, lone)).not.toContain("leader_unavailable");
    await servers.world.runFor(4_000);
    expect(servers.view(lone).alerts[0]).toMatchObject({ name: "leader_unavailable", severity: "critical" });
    const rows = servers.view(lone).elections.filter(({ stage }) => stage === "pre-vote");
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ result: "timed-out" });
    expect((rows[0] as { repeated?: number }).repeated).toBeGreaterThan(20);
    expect(servers.logged(lone, "election").length).toBeLessThan(12);
    servers.world.network.heal();
    await servers.until(() => servers.view(lone).leader !== null);
    await servers.world.runFor(1_100);
    expect(alerts(servers, lone)).toEqual([]);
    const told = (event: string): string[] => servers.logged(lone, event).map(({ alert }) => String(alert));
    expect(told("alert-raised")).toEqual(["leader_suspect", "leader_unavailable"]);
    expect(new Set(told("alert-cleared"))).toEqual(new Set(told("alert-raised")));
  });

  test("a state that differs is found by the others within a few seconds, and stays an alert", async () => {
    const servers = await started({ seed: "diverged" });
    const leader = servers.leader()!;
    const [sick, sound] = others(servers);
    await servers.write(leader, "a");
    await servers.world.runFor(3_000);
    for (const name of ALL) expect([name, alerts(servers, name)]).toEqual([name, []]);
    // A bit flips in the memory of one node between the log and the machine.
    const { machine } = servers.of(sick);
    const apply = machine.apply.bind(machine);
    machine.apply = (entry) => apply({ ...entry, data: entry.data.with(1, entry.data[1]! ^ 1) });
    await servers.write(leader, "b");
    await servers.until(() => servers.of(sick).inner.applied.length === 2);
    machine.apply = apply;
    await servers.write(leader, "c");
    await servers.world.runFor(3_000);
    for (const name of [leader, sound]) {
      expect([name, alerts(servers, name)]).toEqual([name, [`state_diverged ${sick}`]]);
      expect(servers.of(name).cluster.stats().splitBrains).toBe(1);
      const line = servers.logged(name, "alert-raised").at(-1);
      expect(line).toMatchObject({ level: "error", about: sick, error: "ERR_SPLIT_BRAIN", code: 4004 });
    }
  });

  test("trap 22: a leader that hears of a leader of a higher term steps down; nobody is alarmed", async () => {
    const servers = await started({ seed: "lower" });
    const leader = servers.leader()!;
    const [second] = others(servers);
    const { term } = servers.view(leader);
    const peer = peerKey(second, "a1");
    const told = { role: "leader", term: term + 1, leader: peer, established: true, handedTerm: 0 } as const;
    servers.whisper(leader, peer, encodeBeacon({ ...told, applied: 1, chain: [], wallMs: 0 }, digest));
    await servers.until(() => servers.view(leader).role !== "LEADER");
    expect(servers.logged(leader, "step-down")).toMatchObject([{ code: 4005, term, currentTerm: term + 1 }]);
    expect(alerts(servers, leader)).toEqual([]);
    await servers.until(() => servers.leader() !== undefined);
  });

  test("trap 31: what a peer says that is no member, or of a wild term, deposes nobody", async () => {
    const servers = await started({ seed: "strangers" });
    const leader = servers.leader()!;
    const [second] = others(servers);
    const { term } = servers.view(leader);
    const told = { role: "leader", established: true, handedTerm: 0, applied: 1, chain: [], wallMs: 0 } as const;
    const [stranger, wiped, member] = [peerKey("n9", "a1"), peerKey(second, "b2"), peerKey(second, "a1")];
    for (const from of [stranger, wiped]) {
      servers.whisper(leader, from, encodeBeacon({ ...told, term: term + 1, leader: from }, digest));
    }
    const wild = term + TERM_JUMP_MAX + 1;
    servers.whisper(leader, member, encodeBeacon({ ...told, term: wild, leader: member }, digest));
    await servers.world.runFor(3_000);
    expect(servers.view(leader)).toMatchObject({ role: "LEADER", term, alerts: [] });
    expect(servers.logged(leader, "step-down")).toEqual([]);
  });

  test("a full disk is an alert while it is full", async () => {
    const servers = await started({ seed: "disk" });
    servers.disks.set("n1", "full");
    await servers.world.runFor(1_100);
    expect(servers.view("n1").alerts).toMatchObject([{ name: "disk_full", severity: "critical" }]);
    expect(servers.view("n1").disk).toEqual({ state: "full", freeBytes: 1_000_000 });
    servers.disks.set("n1", "ok");
    await servers.world.runFor(1_100);
    expect(servers.view("n1").alerts).toEqual([]);
  });
});

test("catching up resolves when everything committed is applied, and is false without a leader", async () => {
  const servers = await started({ seed: "catch-up" });
  const [second, third] = others(servers);
  const leader = servers.leader()!;
  await servers.write(leader, "a");
  expect(await servers.ask(second, ({ cluster }) => cluster.catchUp(1_000))).toBe(true);
  expect(servers.of(second).inner.applied).toEqual(["a"]);
  servers.crash(leader);
  servers.crash(third);
  await servers.world.runFor(1_000);
  expect(await servers.ask(second, ({ cluster }) => cluster.catchUp(500))).toBe(false);
});
