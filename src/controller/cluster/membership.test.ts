import { describe, expect, test } from "vitest";
import { TestServers, type TestServersOptions } from "../../sim/controller/test-servers.ts";
import type { MemberChange } from "../../ports/cluster.ts";
import { MEMBER_CHANGES_MAX } from "./limits.ts";

async function started(options: Partial<TestServersOptions> & { readonly seed: string }): Promise<TestServers> {
  const servers = new TestServers({ names: ["n1", "n2", "n3"], founders: ["n1", "n2", "n3"], ...options });
  servers.world.startAll();
  await servers.until(() => servers.leader() !== undefined);
  return servers;
}

const change = (servers: TestServers, at: string, what: MemberChange): Promise<string> =>
  servers.ask(at, ({ cluster }) => cluster.changeMember(what)).then(({ message }) => message);

const refusal = (servers: TestServers, at: string, what: MemberChange): Promise<unknown> =>
  change(servers, at, what).then(
    (message) => `was done: ${message}`,
    (error: unknown) => error,
  );

const others = (servers: TestServers): string[] =>
  servers.world.network.names.filter((name) => name !== servers.leader());

describe("invited nodes", () => {
  test("join by themselves, become voters one after the other, and are settled", async () => {
    const servers = await started({ seed: "invited", founders: ["n1"], expect: ["n1", "n2", "n3"] });
    await servers.until(() => servers.members("n1").join() === "n1 voter,n2 voter,n3 voter");
    await servers.until(() => servers.of("n3").machine.invited.length === 0);
    expect(servers.of("n3").machine.wasInvited).toBe(true);
    expect(servers.world.nowMs).toBeLessThan(10_000);
    expect(servers.logged("n1", "membership").length).toBeGreaterThanOrEqual(4);
  });

  test("that are not there are waited for, and join when they come, also under another leader", async () => {
    const servers = new TestServers({
      seed: "late",
      names: ["n1", "n2", "n3", "n4"],
      founders: ["n1"],
      expect: ["n1", "n2", "n3", "n4"],
    });
    for (const name of ["n1", "n2", "n3"]) servers.world.start(name);
    await servers.until(() => servers.leader() === "n1" && servers.of("n1").machine.invited.join() === "n4");
    servers.crash("n1");
    await servers.until(() => servers.leader() !== undefined);
    servers.world.start("n4");
    await servers.until(() => servers.members(servers.leader()!).includes("n4 voter"));
    await servers.until(() => servers.of("n4").machine.invited.length === 0);
  });

  test("are invited once: a founder that starts again does not bring back who was removed", async () => {
    const servers = await started({ seed: "once", founders: ["n1"], expect: ["n2", "n3"] });
    await servers.until(() => servers.of("n1").machine.invited.length === 0 && servers.of("n1").machine.wasInvited);
    await change(servers, servers.leader()!, { op: "remove", nodeId: "n3" });
    servers.crash("n1");
    servers.world.start("n1");
    await servers.until(() => servers.leader() !== undefined);
    await servers.world.runFor(5_000);
    expect(servers.members(servers.leader()!)).toEqual(["n1 voter", "n2 voter"]);
  });
});

describe("add", () => {
  test("makes a learner of a node that was seen, and a voter of it where that was asked for", async () => {
    const servers = await started({ seed: "add", names: ["n1", "n2", "n3", "n4", "n5"] });
    const leader = servers.leader()!;
    await servers.write(leader, "a", "b", "c");
    expect(await change(servers, leader, { op: "add", nodeId: "n4", promote: false })).toContain("as a learner");
    expect(servers.members(leader)).toContain("n4 learner");
    expect(await change(servers, leader, { op: "add", nodeId: "n5", promote: true })).toContain("is a voter now");
    expect(servers.members(leader)).toContain("n5 voter");
    await servers.until(() => servers.of("n5").inner.applied.join("") === "abc");
  });

  test("refuses an id in use, and a node that nobody has met, and changes nothing", async () => {
    const servers = await started({ seed: "add-refused" });
    const leader = servers.leader()!;
    const before = servers.view(leader).lastIndex;
    for (const nodeId of [leader, ...others(servers)]) {
      const told = await refusal(servers, leader, { op: "add", nodeId, promote: false });
      expect(told).toMatchObject({ code: "MEMBER_EXISTS", message: expect.stringContaining("in use") });
    }
    const told = await refusal(servers, leader, { op: "add", nodeId: "n9", promote: true });
    expect(told).toMatchObject({ code: "MEMBER_UNKNOWN", message: expect.stringMatching(/start it first.*`peers`/) });
    expect(servers.view(leader).lastIndex).toBe(before);
    expect(servers.logged(leader, "member-change").map(({ about }) => about)).toEqual([
      leader,
      ...others(servers),
      "n9",
    ]);
  });

  test("says where a node stands that could not catch up in time, and leaves it a learner", async () => {
    const servers = await started({ seed: "add-slow", names: ["n1", "n2", "n3", "n4"] });
    const leader = servers.leader()!;
    await servers.world.runFor(500);
    servers.world.network.partition([["n1", "n2", "n3"], ["n4"]]);
    const told = await refusal(servers, leader, { op: "add", nodeId: "n4", promote: true });
    expect(told).toMatchObject({
      code: "NOT_CAUGHT_UP",
      message: expect.stringMatching(/added as a learner, but is no voter yet: it lacks \d+ entries after 30 s/),
    });
    expect(servers.members(leader)).toContain("n4 learner");
    servers.world.network.heal();
    expect(await change(servers, leader, { op: "add", nodeId: "n4", promote: true }), "asked again").toContain(
      "voter now",
    );
    expect(await refusal(servers, leader, { op: "add", nodeId: "n4", promote: true })).toMatchObject({
      code: "MEMBER_EXISTS",
    });
  });
});

describe("promote", () => {
  test("is for learners that have caught up, and for nobody else", async () => {
    const servers = await started({ seed: "promote", names: ["n1", "n2", "n3", "n4"] });
    const leader = servers.leader()!;
    const promote = (nodeId: string): Promise<unknown> => refusal(servers, leader, { op: "promote", nodeId });
    expect(await promote("n9")).toMatchObject({ code: "MEMBER_UNKNOWN" });
    expect(await promote(leader)).toMatchObject({ code: "CONF_CHANGE_INVALID" });
    await change(servers, leader, { op: "add", nodeId: "n4", promote: false });
    await servers.until(() => servers.of("n4").engine.status().applied > 0);
    servers.world.network.partition([["n1", "n2", "n3"], ["n4"]]);
    await servers.write(leader, ...Array.from({ length: 300 }, (_, i) => String(i)));
    expect(await promote("n4")).toMatchObject({ code: "NOT_CAUGHT_UP", message: expect.stringContaining("entries") });
    await servers.world.runFor(2_000);
    expect(await promote("n4")).toMatchObject({ code: "NOT_CAUGHT_UP", message: expect.stringContaining("answer") });
    expect(servers.members(leader)).toContain("n4 learner");
    servers.world.network.heal();
    await servers.until(() => servers.view(leader).members.every(({ progress }) => progress?.lag === 0));
    expect(await promote("n4")).toBe("was done: n4 is a voter now");
  });
});

describe("replace", () => {
  test("swaps a wiped disk that is seen, and says so where there is none", async () => {
    const servers = await started({ seed: "replace" });
    const leader = servers.leader()!;
    const lost = others(servers)[0]!;
    const replace = (nodeId: string): Promise<unknown> => refusal(servers, leader, { op: "replace", nodeId });
    expect(await replace("n9")).toMatchObject({ code: "MEMBER_UNKNOWN" });
    const none = { code: "CONF_CHANGE_INVALID", message: expect.stringContaining("no new disk") };
    expect(await replace(lost)).toMatchObject(none);
    servers.crash(lost);
    servers.world.node(lost).disk.wipe();
    servers.world.start(lost);
    await servers.until(() =>
      servers
        .of(leader)
        .cluster.view()
        .members.some(({ nodeId }) => nodeId === lost),
    );
    await servers.world.runFor(100);
    expect(await replace(lost)).toMatch(/^was done: the new disk n\d@b\d/);
    const disks = (): string[] =>
      servers.view(leader).members.map(({ nodeId, incarnation, kind }) => `${nodeId}@${incarnation} ${kind}`);
    await servers.until(() => disks().includes(`${lost}@b2 voter`) && !servers.view(leader).isJoint);
    expect(disks()).toHaveLength(3);
  });
});

describe("remove", () => {
  test("takes a voter out, and the leader itself, who hands over", async () => {
    const servers = await started({ seed: "remove" });
    const first = servers.leader()!;
    expect(await refusal(servers, first, { op: "remove", nodeId: "n9" })).toMatchObject({ code: "MEMBER_UNKNOWN" });
    expect(await change(servers, first, { op: "remove", nodeId: first })).toContain("hands leadership over");
    await servers.until(() => servers.leader() !== undefined && servers.leader() !== first);
    const second = servers.leader()!;
    expect(servers.members(second)).toHaveLength(2);
    const third = servers
      .members(second)
      .find((member) => !member.startsWith(second))!
      .slice(0, 2);
    expect(await change(servers, second, { op: "remove", nodeId: third })).toBe(`${third} was removed`);
    expect(await refusal(servers, second, { op: "remove", nodeId: second })).toMatchObject({
      code: "CONF_CHANGE_INVALID",
      message: expect.stringContaining("last voter"),
    });
    expect(servers.members(second)).toEqual([`${second} voter`]);
  });

  test("of a leader whose disk is behind the others' is told as done: it is committed before that disk has it", async () => {
    const servers = await started({
      seed: "remove-slow",
      names: ["n1", "n2", "n3", "n4"],
      founders: ["n1", "n2", "n3", "n4"],
    });
    const first = servers.leader()!;
    const { engine } = servers.of(first);
    const submit = engine.changeMembership.bind(engine);
    const outcomes: string[] = [];
    engine.changeMembership = async (what) => {
      const told = await submit(what);
      outcomes.push(told.outcome);
      return told;
    };
    servers.world.node(first).disk.faults.setSlow(20);
    expect(await change(servers, first, { op: "remove", nodeId: first })).toContain("was removed");
    expect(outcomes, "the engine could not know").toEqual(["unknown"]);
  });

  test("design D4: refuses what would leave a majority of voters that do not answer", async () => {
    const servers = await started({ seed: "remove-healthy" });
    const leader = servers.leader()!;
    const [silent, healthy] = others(servers) as [string, string];
    servers.crash(silent);
    await servers.until(() => servers.view(leader).alerts.some(({ nodeId }) => nodeId === silent));
    const before = servers.view(leader).lastIndex;
    for (const nodeId of [healthy, leader]) {
      const told = await refusal(servers, leader, { op: "remove", nodeId });
      expect(told).toMatchObject({ code: "CONF_CHANGE_INVALID", message: expect.stringContaining(silent) });
    }
    expect(servers.view(leader).lastIndex).toBe(before);
    // The dead one may go, and then the alert about it goes too.
    expect(await change(servers, leader, { op: "remove", nodeId: silent })).toBe(`${silent} was removed`);
    expect(servers.view(leader).alerts).toEqual([]);
  });

  test("of an invited learner settles it first, so that no leader adds it again", async () => {
    const servers = await started({ seed: "remove-invited", founders: ["n1"], expect: ["n2", "n3"] });
    await servers.until(() => servers.members("n1").includes("n3 learner"));
    expect(servers.of("n1").machine.invited).toContain("n3");
    expect(await change(servers, "n1", { op: "remove", nodeId: "n3" })).toBe("n3 was removed");
    await servers.world.runFor(5_000);
    expect(servers.of("n1").machine.invited).toEqual([]);
    expect(servers.members("n1").some((member) => member.startsWith("n3"))).toBe(false);
  });
});

test("everything is refused with NOT_LEADER on a node that does not lead, and names who does", async () => {
  const servers = await started({ seed: "not-leader" });
  const leader = servers.leader()!;
  const standby = others(servers)[0]!;
  await servers.until(() => servers.view(standby).leader !== null);
  const changes: MemberChange[] = [
    { op: "add", nodeId: "n4", promote: true },
    { op: "promote", nodeId: leader },
    { op: "replace", nodeId: leader },
    { op: "remove", nodeId: leader },
  ];
  for (const what of changes) {
    const told = await refusal(servers, standby, what);
    expect(told).toMatchObject({ code: "NOT_LEADER", message: expect.stringContaining(`${leader} leads`) });
  }
});

test("two operators at once: one change waits for the other", async () => {
  const servers = await started({ seed: "two", names: ["n1", "n2", "n3", "n4", "n5"] });
  const leader = servers.leader()!;
  const done = await servers.ask(leader, ({ cluster }) =>
    Promise.all(["n4", "n5"].map((nodeId) => cluster.changeMember({ op: "add", nodeId, promote: true }))),
  );
  expect(done.map(({ message }) => message)).toEqual([
    "n4 was added, has caught up and is a voter now",
    "n5 was added, has caught up and is a voter now",
  ]);
});

test("two operators at once: what the first has removed counts when the second is judged", async () => {
  const names = ["n1", "n2", "n3", "n4"];
  const servers = await started({ seed: "two-removals", names, founders: names });
  const leader = servers.leader()!;
  const [silent, ...healthy] = others(servers) as [string, string, string];
  servers.crash(silent);
  await servers.until(() => servers.view(leader).alerts.some(({ nodeId }) => nodeId === silent));
  const done = await servers.ask(leader, ({ cluster }) =>
    Promise.allSettled(healthy.map((nodeId) => cluster.changeMember({ op: "remove", nodeId }))),
  );
  expect(done).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: "CONF_CHANGE_INVALID" } },
  ]);
  expect(servers.members(leader)).toHaveLength(3);
});

test("whoever waits for a node to catch up is answered as soon as the service stops", async () => {
  const servers = await started({ seed: "stop-waiting", names: ["n1", "n2", "n3", "n4"] });
  const leader = servers.leader()!;
  await servers.world.runFor(500);
  servers.world.network.partition([["n1", "n2", "n3"], ["n4"]]);
  const answers: string[] = [];
  const { cluster } = servers.of(leader);
  servers.world.call(leader, () => {
    cluster.changeMember({ op: "add", nodeId: "n4", promote: true }).catch((error: unknown) => {
      answers.push(String(error));
    });
  });
  await servers.world.runFor(2_000);
  expect(answers).toEqual([]);
  cluster.stop();
  await servers.world.runFor(0);
  expect(answers).toEqual([expect.stringContaining("stopping")]);
});

test("a promotion of which nobody knows whether it was written is told as such, not as done and not as failed", async () => {
  const servers = await started({ seed: "unknown", names: ["n1", "n2", "n3", "n4"] });
  const leader = servers.leader()!;
  const { engine } = servers.of(leader);
  const submit = engine.changeMembership.bind(engine);
  engine.changeMembership = (what) =>
    what.operations[0]?.op === "add-voter" ? Promise.resolve({ outcome: "unknown" }) : submit(what);
  const told = await refusal(servers, leader, { op: "add", nodeId: "n4", promote: true });
  expect(told).toMatchObject({ code: "OUTCOME_UNKNOWN", message: expect.stringContaining("added as a learner") });
  engine.changeMembership = submit;
  expect(await change(servers, leader, { op: "add", nodeId: "n4", promote: true }), "asked again").toContain(
    "voter now",
  );
});

describe("while a voter is away", () => {
  /** n4 has joined, and one of the founders has not heard of it. */
  async function joinedWithout(seed: string): Promise<{ servers: TestServers; leader: string; rest: string[] }> {
    const servers = await started({ seed, names: ["n1", "n2", "n3", "n4"] });
    const leader = servers.leader()!;
    const rest = others(servers).filter((name) => name !== "n4");
    servers.crash(rest[0]!);
    expect(await change(servers, leader, { op: "add", nodeId: "n4", promote: true })).toContain("voter now");
    return { servers, leader, rest };
  }

  test("a founder is not replaced: with the next failure nobody could be elected, for the one that is away knows too few", async () => {
    const { servers, leader, rest } = await joinedWithout("cut-off");
    const [away, present] = rest as [string, string];
    for (const nodeId of [present, leader]) {
      expect(await refusal(servers, leader, { op: "remove", nodeId })).toMatchObject({
        code: "CONF_CHANGE_INVALID",
        message: expect.stringMatching(new RegExp(`${away} has not heard yet that n4 joined.*Bring ${away} back`)),
      });
    }
    servers.world.start(away);
    await servers.until(() => servers.view(leader).members.every(({ progress }) => (progress?.lag ?? 0) === 0));
    await servers.world.runFor(500);
    expect(await change(servers, leader, { op: "remove", nodeId: present })).toBe(`${present} was removed`);
    servers.crash(leader);
    await servers.until(() => [away, "n4"].includes(servers.leader() ?? ""));
  });

  test("it may be removed itself, and then the founder", async () => {
    const { servers, leader, rest } = await joinedWithout("away-goes");
    for (const nodeId of rest) {
      expect(await change(servers, leader, { op: "remove", nodeId })).toBe(`${nodeId} was removed`);
    }
    expect(servers.members(leader)).toEqual([`${leader} voter`, "n4 voter"]);
  });
});

test("a removed disk is not added again; with an empty directory the node is", async () => {
  const servers = await started({ seed: "removed-again" });
  const leader = servers.leader()!;
  const nodeId = others(servers)[0]!;
  await change(servers, leader, { op: "remove", nodeId });
  expect(await refusal(servers, leader, { op: "add", nodeId, promote: false })).toMatchObject({
    message: expect.stringContaining("empty data directory"),
  });
  servers.crash(nodeId);
  servers.world.node(nodeId).disk.wipe();
  servers.world.start(nodeId);
  await servers.world.runFor(500);
  expect(await change(servers, leader, { op: "add", nodeId, promote: true })).toContain("voter now");
});

test("a removal is judged again when its turn has come: who answered when it was asked may be silent by now", async () => {
  const servers = await started({ seed: "judged-again" });
  const leader = servers.leader()!;
  const [silent, healthy] = others(servers) as [string, string];
  const { engine } = servers.of(leader);
  const submit = engine.changeMembership.bind(engine);
  let tries = 0;
  // An earlier change is under way, for as long as it takes to notice that a node is gone.
  engine.changeMembership = (what) => {
    tries++;
    const isGone = servers.view(leader).alerts.some(({ nodeId }) => nodeId === silent);
    if (isGone) return submit(what);
    return Promise.resolve({ outcome: "refused", code: "CONF_CHANGE_PENDING", message: "an earlier change" });
  };
  servers.crash(silent);
  const told = await refusal(servers, leader, { op: "remove", nodeId: healthy });
  expect(tries).toBeGreaterThan(1);
  expect(told).toMatchObject({ code: "CONF_CHANGE_INVALID", message: expect.stringContaining(silent) });
  expect(servers.members(leader)).toContain(`${healthy} voter`);
});

test("of more changes at once than can wait the last is told to come back, and later ones are taken again", async () => {
  const servers = await started({ seed: "many" });
  const leader = servers.leader()!;
  const told = await servers.ask(leader, ({ cluster }) =>
    Promise.allSettled(
      Array.from({ length: MEMBER_CHANGES_MAX + 1 }, () => cluster.changeMember({ op: "promote", nodeId: "n9" })),
    ),
  );
  const codes = told.map((one) => one.status === "rejected" && (one.reason as { code: string }).code);
  expect(codes).toEqual([...Array<string>(MEMBER_CHANGES_MAX).fill("MEMBER_UNKNOWN"), "OVERLOADED"]);
  expect(await refusal(servers, leader, { op: "promote", nodeId: "n9" })).toMatchObject({ code: "MEMBER_UNKNOWN" });
});
