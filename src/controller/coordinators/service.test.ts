// A coordinator's service, over production's loops and files, on a clock that the test moves.

import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { TestDisk } from "../../engine/test-disk.ts";
import { LEDGER_NAME, LEASES_NAME } from "./files.ts";
import { LEAVE_AT_STOP_MS } from "./limits.ts";
import { TestCoordinators } from "./test-coordinators.ts";

const ABC = ["a", "b", "c"] as const;

type Coordinators = TestCoordinators<TestDisk>;

function none(): Coordinators {
  return new TestCoordinators({ digest, newDisk: () => new TestDisk() });
}

async function settled(...names: readonly string[]): Promise<Coordinators> {
  const all = none();
  await all.startAll(...names);
  await all.settle();
  return all;
}

/** Whoever does not lead. */
function follower(all: Coordinators): string {
  return [...all.nodes.keys()].find((name) => !all.leaders.includes(name))!;
}

describe("what a node shows", () => {
  test("who leads, in which term and until when; its own island; and which term it may act in itself", async () => {
    const all = await settled(...ABC);
    const [leader] = all.leaders as [string];
    const { term } = all.service(leader).view();
    for (const [name, { service }] of all.nodes) {
      const view = service.view();
      expect(view).toMatchObject({
        self: service.self,
        clusterId: "cluster-of-a",
        backendHash: `island-${name}`,
        leader: { peer: all.service(leader).self, endpoint: leader, term },
        actsInTerm: name === leader ? term : null,
        waitsFor: [],
        hasLeft: false,
      });
      const leftMs = view.leaderExpiresAtMs! - all.clock.wallMs();
      expect(leftMs).toBeGreaterThan(0);
      expect(leftMs).toBeLessThanOrEqual(3_000);
    }
    expect(all.node(leader).terms).toEqual([term]);
  });

  test("the members and voters: how each answers is the leader's to know", async () => {
    const all = await settled(...ABC);
    const [leader] = all.leaders as [string];
    const states = (name: string) =>
      Object.fromEntries(
        all
          .service(name)
          .members()
          .voters.map(({ endpoint, state }) => [endpoint, state]),
      );
    const other = follower(all);
    expect(all.service(other).members()).toMatchObject({ endpoints: ["a", "b", "c"], quorum: 2 });
    expect(new Set(Object.values(states(other)))).toEqual(new Set(["unknown"]));
    expect(states(leader)).toEqual({ a: "answers", b: "answers", c: "answers", [leader]: "leads" });
    all.cut.add(other);
    expect(await all.until(() => states(leader)[other] === "silent")).toBe(true);
    // Silence removes nobody: three voters, of whom two answer.
    await all.clock.advance(30_000);
    expect(all.service(leader).members()).toMatchObject({
      quorum: 2,
      endpoints: ["a", "b", "c"].filter((one) => one !== other),
    });
  });

  test("while it waits for seeds: for which", async () => {
    const all = none();
    await all.start("a", { seeds: ["a", "b", "c"] });
    await all.start("b", { seeds: ["a", "b", "c"] });
    await all.clock.advance(5_000);
    expect(all.service("a").view()).toMatchObject({ clusterId: null, leader: null, waitsFor: ["c"] });
    expect(all.service("b").view()).toMatchObject({ waitsFor: [] });
    expect(all.service("a").seen()).toMatchObject({ waitsFor: ["c"], leaderlessMs: expect.closeTo(5_000, -2) });
    // Once for b and c, which was not there yet, and once for c.
    expect(all.node("a").logged.filter((event) => event === "tc_waits")).toHaveLength(2);
    await all.start("c", { seeds: ["a", "b", "c"] });
    await all.settle();
    expect(all.service("a").view().waitsFor).toEqual([]);
  });

  test("since when it shows its registry: what is shown anew and is the same is no change", async () => {
    const all = await settled(...ABC);
    const shown = all.service("b").registry();
    expect(shown.entries.map(({ backendHash, endpoint }) => `${backendHash} ${endpoint}`)).toEqual([
      "island-a a",
      "island-b b",
      "island-c c",
    ]);
    const [leader] = all.leaders as [string];
    await all.service(leader).coordinator.resign();
    await all.settle();
    await all.clock.advance(5_000);
    expect(all.service("b").registry()).toEqual(shown);
    const entry = { backendHash: "h", endpoint: "elsewhere" };
    const request = { kind: "registry", change: "register", entry, isForwarded: false } as const;
    expect(await all.service("b").answer("b", request)).toMatchObject({ kind: "done" });
    await all.until(() => all.service("b").registry().entries.length === 4);
    expect(all.service("b").registry().updatedAtMs).toBeGreaterThan(shown.updatedAtMs);
  });
});

describe("a node registers itself", () => {
  test("until the registry shows it, and then sends nothing more", async () => {
    const all = await settled(...ABC);
    const { version } = all.service("a").view().roster!;
    await all.clock.advance(60_000);
    expect(all.service("a").view().roster!.version).toBe(version);
  });

  test("with the island's present hash: its endpoint moves from the former one", async () => {
    const all = await settled(...ABC);
    const disk = all.kill("b");
    await all.start("b", { disk, seeds: ABC, backendHash: "island-restored" });
    await all.settle();
    const isMoved = (): boolean =>
      all
        .service("a")
        .registry()
        .entries.some(({ backendHash, endpoint }) => `${backendHash} ${endpoint}` === "island-restored b");
    expect(await all.until(isMoved)).toBe(true);
    expect(all.service("a").registry().entries).toHaveLength(3);
  });

  test("again, where somebody has taken it out", async () => {
    const all = await settled(...ABC);
    const entry = { backendHash: "island-c", endpoint: "c" };
    const request = { kind: "registry", change: "unregister", entry, isForwarded: false } as const;
    expect(await all.service("a").answer("a", request)).toMatchObject({ kind: "done" });
    await all.settle();
  });
});

test("an announcement is sent once more to whoever did not answer, and not only 3 s later: all were started together", async () => {
  const all = none();
  await all.start("a", { seeds: ["a", "b"] });
  await all.clock.advance(100);
  await all.start("b");
  expect(await all.until(() => all.service("b").members().endpoints.includes("a"), 1_000)).toBe(true);
});

describe("leave", () => {
  test("removes the voter, its registration and its leases everywhere; until it comes back it answers, votes and registers no more", async () => {
    const all = await settled(...ABC);
    const left = all.service("c").leave();
    const isOver = await all.until(() => all.service("c").view().hasLeft);
    expect([isOver, await left]).toEqual([true, { kind: "left" }]);
    await all.clock.advance(30_000);
    const [leader] = all.leaders as [string];
    expect(all.service(leader).members()).toMatchObject({ endpoints: ["a", "b"], quorum: 2 });
    expect(
      all
        .service(leader)
        .registry()
        .entries.map(({ endpoint }) => endpoint),
    ).toEqual(["a", "b"]);
    expect(all.service("c").seen().leaderlessMs).toBeNull();
    await all.service("c").rejoin();
    await all.settle();
    expect(all.node("c").logged).toEqual(expect.arrayContaining(["tc_left", "tc_rejoined"]));
  });

  test("that is asked for again is done: it does not bring the node back, although nobody that it knows leads any more", async () => {
    const all = await settled(...ABC);
    const name = follower(all);
    const left = all.service(name).leave();
    await all.until(() => all.service(name).view().hasLeft);
    await left;
    await all.clock.advance(10_000);
    expect(await all.service(name).leave()).toEqual({ kind: "left" });
    await all.clock.advance(10_000);
    expect(all.service(name).view().hasLeft).toBe(true);
    expect(all.service(all.leaders[0]!).members().voters).toHaveLength(2);
  });

  test("of the leader: another leads first", async () => {
    const all = await settled(...ABC);
    const [leader] = all.leaders as [string];
    const left = all.service(leader).leave();
    await all.until(() => all.service(leader).view().hasLeft);
    expect(await left).toEqual({ kind: "left" });
    expect(all.node(leader).terms).toEqual([]);
    await all.until(() => all.leaders.length === 1);
    expect(all.leaders).not.toContain(leader);
  });

  test("is refused where a member does not answer, says which, and changes nothing", async () => {
    const all = await settled(...ABC);
    all.cut.add("c");
    const refused = await all.service("b").leave();
    expect(refused).toMatchObject({
      kind: "refused",
      message: expect.stringMatching(/^c did not answer.*member as before/),
    });
    all.cut.clear();
    await all.settle();
  });

  test("is refused where nobody leads: nothing can be taken out of the registry", async () => {
    const all = await settled("a", "b");
    for (const name of ["a", "b"]) all.want(name, false);
    await all.until(() => all.leaders.length === 0);
    const refused = await all.service("a").leave();
    expect(refused).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("registry could not be changed (not-leader)"),
    });
    for (const name of ["a", "b"]) all.want(name, true);
    await all.settle();
  });

  test("of a sole voter is a stop", async () => {
    const all = await settled("a");
    expect(await all.service("a").leave()).toEqual({ kind: "sole-voter" });
  });
});

describe("stop", () => {
  async function stopped(all: Coordinators, name: string): Promise<number> {
    const fromMs = all.clock.nowMs;
    let isStopped = false;
    void all
      .service(name)
      .stop()
      .then(() => (isStopped = true));
    expect(await all.until(() => isStopped)).toBe(true);
    return all.clock.nowMs - fromMs;
  }

  test("in order leaves: the others need not wait for it, and it is another's turn to lead", async () => {
    const all = await settled("a", "b");
    const [leader] = all.leaders as [string];
    const other = follower(all);
    expect(await stopped(all, leader)).toBeLessThan(LEAVE_AT_STOP_MS);
    const disk = all.node(leader).disk;
    all.nodes.delete(leader);
    await all.clock.advance(1_000);
    expect(all.leaders).toEqual([other]);
    expect(all.service(other).members()).toMatchObject({ endpoints: [other], quorum: 1 });
    // Its endpoint stays registered: most that stop come back.
    expect(all.service(other).registry().entries).toHaveLength(2);
    await all.start(leader, { disk, seeds: ["a", "b"] });
    await all.settle();
  });

  test("of a follower or of the leader is known at once, at any moment between two rounds of renewals", async () => {
    for (const isLeader of [false, true])
      for (const afterMs of [50, 350, 650, 950]) {
        const all = await settled(...ABC);
        await all.clock.advance(afterMs);
        const name = isLeader ? all.leaders[0]! : follower(all);
        expect(await stopped(all, name)).toBeLessThanOrEqual(200);
        expect(all.node(name).logged.slice(-1)).toEqual(["tc_left"]);
        const { disk } = all.node(name);
        all.nodes.delete(name);
        await all.until(() => all.leaders.length === 1);
        expect(all.service(all.leaders[0]!).members()).toMatchObject({ quorum: 2, voters: { length: 2 } });
        await all.start(name, { disk, seeds: ABC });
        await all.settle();
      }
  });

  test("ends in time where nobody answers, with its work ended and nothing written any more", async () => {
    const all = await settled(...ABC);
    const [leader] = all.leaders as [string];
    for (const name of ABC) all.cut.add(name);
    expect(await stopped(all, leader)).toBeLessThanOrEqual(LEAVE_AT_STOP_MS + 100);
    expect(all.node(leader).terms).toEqual([]);
    const { calls } = all.node(leader).disk;
    const before = calls.length;
    await all.clock.advance(60_000);
    expect(calls.length).toBe(before);
    expect(all.service(leader).view().hasLeft).toBe(true);
    expect(all.errors).toEqual([]);
  });

  test("during a leave that fails is the end: it does not become a member again", async () => {
    const all = await settled(...ABC);
    const name = follower(all);
    const leave = all.service(name).leave();
    // All others have answered that it may leave, and then nobody does.
    await all.until(() => all.service(name).view().isLeaving);
    for (const one of ABC) if (one !== name) all.cut.add(one);
    await stopped(all, name);
    await all.clock.advance(30_000);
    expect(await leave).toMatchObject({ kind: "refused" });
    expect(all.service(name).view()).toMatchObject({ isLeaving: true, hasLeft: true });
  });

  test("is the end of its ledger: a request that comes later is not decided", async () => {
    const all = await settled(...ABC);
    const name = follower(all);
    await stopped(all, name);
    const { service, disk } = all.node(name);
    const { clusterId, term } = service.view();
    const [leader] = all.leaders as [string];
    const holder = all.service(leader).self;
    const later = { clusterId: clusterId!, holder, voter: service.self, term: term + 1, ttlMs: 3_000 };
    const { roster } = service.coordinator.ledger;
    const before = disk.calls.length;
    let isAnswered = false;
    void service.answer(leader, { kind: "acquire", ...later, roster }).then(() => (isAnswered = true));
    await all.clock.advance(10_000);
    expect([isAnswered, disk.calls.length]).toEqual([false, before]);
  });
});

describe("a node that moves", () => {
  test("is found by voters that were started again without any membership lease", async () => {
    const all = await settled(...ABC);
    for (const name of ABC) {
      const disk = all.kill(name);
      await all.start(name, { disk, endpoint: `${name}.new`, seeds: ABC });
      await all.settle();
    }
    const disks = ABC.map((name) => [name, all.kill(name)] as const);
    await all.clock.advance(30_000);
    for (const [name, disk] of disks) {
      if (disk.names().includes(LEASES_NAME)) disk.drop(LEASES_NAME);
      // None of the seeds is right any more.
      await all.start(name, { disk, endpoint: `${name}.new`, seeds: ABC });
    }
    await all.settle();
    const [leader] = all.leaders as [string];
    expect(all.service(leader).view().leader!.endpoint).toBe(`${leader}.new`);
  });

  test("takes its former endpoint out of the registry, unless somebody else is there", async () => {
    const all = await settled(...ABC);
    const endpoints = () =>
      all
        .service("a")
        .registry()
        .entries.map(({ endpoint }) => endpoint);
    const disk = all.kill("c");
    await all.start("c", { disk, endpoint: "c.new", seeds: ABC });
    await all.settle();
    expect(await all.until(() => !endpoints().includes("c"))).toBe(true);
    expect(endpoints()).toEqual(["a", "b", "c.new"]);
    // Stopped in order, it is no voter any more, and its registration is kept.
    const stopped = all.node("c");
    await Promise.all([stopped.service.stop(), all.clock.advance(3_000)]);
    all.nodes.delete("c");
    expect(endpoints()).toEqual(["a", "b", "c.new"]);
    await all.start("c", { disk: stopped.disk, endpoint: "c.newer", seeds: ABC });
    await all.settle();
    expect(await all.until(() => !endpoints().includes("c.new"))).toBe(true);
    expect(endpoints()).toEqual(["a", "b", "c.newer"]);
    const [ofB, ofC] = [all.kill("b"), all.kill("c")];
    await all.start("b", { disk: ofB, endpoint: "c.new", seeds: ABC, backendHash: "one" });
    await all.start("c", { disk: ofC, endpoint: "b", seeds: ABC, backendHash: "one" });
    await all.settle();
    await all.clock.advance(10_000);
    const { roster } = all.service("a").view();
    await all.clock.advance(30_000);
    expect([all.disagreement(), all.service("a").view().roster]).toEqual([null, roster]);
  });
});

describe("a node that is started again", () => {
  test("lists at once whose lease is in force", async () => {
    const all = await settled(...ABC);
    await all.clock.advance(10_000);
    const disk = all.kill("c");
    all.cut.add("c");
    await all.start("c", { disk, seeds: ABC });
    expect(all.service("c").members().endpoints).toEqual(["a", "b", "c"]);
  });

  test("knows from its file whom to ask, though no seed is right, and all leases have ended", async () => {
    const all = await settled(...ABC);
    const disk = all.kill("c");
    await all.clock.advance(60_000);
    // Another voter by now, without any roster, at an address that nobody knows.
    disk.drop(LEDGER_NAME);
    await all.start("c", { disk, endpoint: "c.new", seeds: ["nowhere"] });
    expect(all.service("c").members().endpoints).toEqual(["c.new"]);
    await all.settle();
  });

  test("with an older copy of its ledger beside another log is another voter, and says why", async () => {
    const all = await settled(...ABC);
    const before = all.service("c").self;
    const disk = all.kill("c");
    await all.start("c", { disk, seeds: ABC, log: "e2" });
    await all.settle();
    expect(all.service("c").self).not.toBe(before);
    expect(all.node("c").logged).toContain("tc_ledger_set_aside");
  });
});

describe("willingness", () => {
  test("nobody leads, or campaigns, whom nobody wants to lead; others do, and all vote", async () => {
    const all = await settled(...ABC);
    for (const name of ABC) all.want(name, false);
    await all.clock.advance(20_000);
    expect(all.leaders).toEqual([]);
    all.want("b", true);
    expect(await all.until(() => all.leaders.length > 0, 5_000)).toBe(true);
    expect(all.leaders).toEqual(["b"]);
  });

  test("a listener hears of each leadership, and of its end", async () => {
    const all = none();
    await all.start("a");
    const { coordinator } = all.service("a");
    const seen: (string | null)[] = [];
    const stop = coordinator.onChange(() => {
      const { leadership } = coordinator;
      const now = leadership === null ? null : (leadership.over ?? (coordinator.leads === null ? "elected" : "acts"));
      if (now !== seen.at(-1)) seen.push(now);
    });
    await all.settle();
    await coordinator.resign();
    await all.clock.advance(500);
    expect(seen).toEqual([null, "elected", "acts", "released", null]);
    stop();
    await all.settle();
    expect(seen).toHaveLength(5);
  });
});

describe("what the alerts rest on", () => {
  test("nobody has led since the last lease ended", async () => {
    const all = await settled(...ABC);
    expect(all.service("a").seen().leaderlessMs).toBeNull();
    for (const name of ["b", "c"]) all.kill(name);
    await all.clock.advance(20_000);
    expect(all.service("a").seen().leaderlessMs).toBeGreaterThan(15_000);
    expect(all.service("a").seen().leaderlessMs).toBeLessThan(20_000);
  });

  test("a voter is silent, and for how long; at the leader alone", async () => {
    const all = await settled(...ABC);
    const [leader] = all.leaders as [string];
    const [gone, other] = ABC.filter((name) => name !== leader) as [string, string];
    const { self } = all.service(gone);
    all.kill(gone);
    await all.clock.advance(40_000);
    expect(all.service(leader).seen().silent).toEqual([
      { peer: self, endpoint: gone, silentMs: expect.closeTo(40_000, -4) },
    ]);
    expect(all.service(other).seen().silent).toEqual([]);
  });

  test("two that founded alone never merge: each names the other, once in its log", async () => {
    const all = none();
    await all.start("a");
    await all.start("b");
    await all.clock.advance(5_000);
    const seeds = ["a", "b"];
    for (const name of seeds) await all.start(name, { disk: all.kill(name), seeds });
    await all.clock.advance(30_000);
    expect(all.service("a").seen().mismatched).toEqual([{ peer: all.service("b").self, clusterId: "cluster-of-b" }]);
    expect(all.service("b").seen().mismatched).toEqual([{ peer: all.service("a").self, clusterId: "cluster-of-a" }]);
    expect(all.node("a").logged.filter((event) => event === "tc_cluster_mismatch")).toHaveLength(1);
  });

  test("one identity answers from two places, each with a disk of its own", async () => {
    const all = await settled(...ABC);
    expect(all.service("a").seen().shared).toEqual([]);
    const { service: twin, disk } = all.node("c");
    // The same certificate on another machine. The first one goes on.
    await all.start("c", { endpoint: "c.twin", seeds: ABC });
    const second = all.node("c");
    all.nodes.delete("c");
    all.nodes.set("c-first", { service: twin, disk, endpoint: "c", terms: [], logged: [] });
    all.nodes.set("c-second", second);
    expect(await all.until(() => ["a", "b"].every((name) => all.service(name).seen().shared.includes("c")))).toBe(true);
  });
});

describe("what is counted", () => {
  test("who leads, with how many voters of which state, and until when; nothing is left of it where nobody leads", async () => {
    const all = await settled(...ABC);
    const [leader] = all.leaders as [string];
    const [gone, other] = ABC.filter((name) => name !== leader) as [string, string];
    const { term } = all.service(leader).view();
    const ofAll = { term, quorum: 2, members: 3, registry: 3, mismatched: 0, shared: 0 };
    const none = { leads: 0, answers: 0, silent: 0, leaving: 0, unknown: 0 };
    const voters = { ...none, leads: 1, answers: 2 };
    expect(all.service(leader).stats()).toMatchObject({ ...ofAll, leads: true, voters, electionsWon: 1 });
    expect(all.service(other).stats()).toMatchObject({ ...ofAll, leads: false, voters: { ...none, unknown: 3 } });
    expect(all.service(other).stats().leaseRemainingMs).toBeGreaterThan(0);
    all.kill(gone);
    await all.clock.advance(5_000);
    expect(all.service(leader).stats().voters).toEqual({ ...none, leads: 1, answers: 1, silent: 1 });
    all.kill(other);
    await all.clock.advance(20_000);
    const alone = all.service(leader).stats();
    expect(alone).toMatchObject({ leads: false, leaseRemainingMs: 0, over: { expired: 1 } });
  });

  test("each request for a lease that this node's voter refuses, by why", async () => {
    const all = await settled(...ABC);
    const [leader] = all.leaders as [string];
    const { self } = all.service(leader);
    const request = { kind: "release", holder: self, voter: self, clusterId: "another", term: 1 } as const;
    await all.service(leader).answer(leader, request);
    expect(all.service(leader).stats().refused).toEqual({ "cluster-mismatch": 1 });
  });
});
