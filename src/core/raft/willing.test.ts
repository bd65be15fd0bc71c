// Nodes that may not lead, elections that fail again and again, and how stale a follower knows itself to be.

import { describe, expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import { peersNamed } from "./test-messages.ts";

const [A, B, C] = peersNamed(3) as [PeerKey, PeerKey, PeerKey];

function led(options: Partial<ClusterOptions> = {}): TestCluster {
  const cluster = new TestCluster({ voters: [A, B, C], ...options });
  cluster.elect(A);
  cluster.advance(100);
  return cluster;
}

describe("a node that is not willing to lead", () => {
  test("hands over at once while it leads, to one that is", () => {
    const cluster = led();
    cluster.act(A, { kind: "willing", willing: false });
    cluster.advance(20);
    expect([B, C]).toContain(cluster.leader());
    expect(cluster.node(A).eventsOf("transfer").at(-1)?.result.success).toBe(true);
  });

  test("leaves elections to the others, and votes", () => {
    const cluster = led();
    cluster.act(B, { kind: "willing", willing: false });
    cluster.isolate(A);
    cluster.advance(2_000);
    expect(cluster.node(B).sentOf("MsgPreVote"), "B may not lead").toEqual([]);
    expect(cluster.status(C), "and C leads with its vote").toMatchObject({ role: "leader" });
  });

  test("is no target of a transfer that names none, and obeys one that names it", () => {
    const cluster = led();
    cluster.act(B, { kind: "willing", willing: false });
    cluster.advance(100);
    cluster.act(A, { kind: "transfer", target: null, force: false });
    cluster.advance(20);
    expect(cluster.leader()).toBe(C);
    cluster.act(C, { kind: "transfer", target: B, force: false });
    cluster.advance(20);
    const hasLed = cluster
      .node(B)
      .eventsOf("role")
      .some(({ role }) => role === "leader");
    expect(hasLed, "though it hands on at once").toBe(true);
  });

  test("leads on while nobody else is willing, and hands over when somebody is", () => {
    const cluster = led();
    for (const peer of [B, C]) cluster.act(peer, { kind: "willing", willing: false });
    cluster.advance(100);
    cluster.act(A, { kind: "willing", willing: false });
    cluster.advance(2_000);
    expect(cluster.status(A)).toMatchObject({ role: "leader", transfer: null });
    cluster.act(C, { kind: "willing", willing: true });
    cluster.advance(500);
    expect(cluster.leader()).toBe(C);
  });

  test("leads for a while where those who are willing lack entries that it has", () => {
    const cluster = led();
    cluster.act(C, { kind: "willing", willing: false });
    const heal = cluster.isolate(B);
    cluster.propose(A, "what B never hears of");
    cluster.advance(100);
    cluster.crash(A);
    heal();
    cluster.advance(3_000);
    expect(
      cluster
        .node(C)
        .eventsOf("role")
        .some(({ role }) => role === "leader"),
      "C led",
    ).toBe(true);
    expect(cluster.leader(), "until B had it all").toBe(B);
  });

  test("leads again when it is willing again", () => {
    const cluster = led();
    cluster.act(B, { kind: "willing", willing: false });
    cluster.advance(100);
    cluster.act(B, { kind: "willing", willing: true });
    cluster.isolate(A);
    cluster.isolate(C);
    cluster.advance(400);
    expect(cluster.node(B).sentOf("MsgPreVote").length).toBeGreaterThan(0);
  });
});

describe("elections that fail again and again", () => {
  test("are tried less and less often, at most four times as slowly, until somebody is heard", () => {
    const cluster = led();
    const heal = cluster.isolate(B);
    const tries = (ms: number): number => {
      const before = cluster.node(B).eventsOf("election").length;
      cluster.advance(ms);
      return cluster.node(B).eventsOf("election").length - before;
    };
    const first = tries(3_000);
    const later = tries(6_000) / 2;
    expect(later, `${first} in the first three seconds`).toBeLessThan(first);
    expect(later, "but it never gives up").toBeGreaterThanOrEqual(2);
    heal();
    cluster.advance(200);
    expect(cluster.status(B).leader).toBe(A);
    cluster.isolate(B);
    expect(tries(1_500), "the past is forgotten").toBeGreaterThanOrEqual(3);
  });
});

describe("how fresh a follower is", () => {
  test("it has everything that was committed when a heartbeat came that it has caught up with", () => {
    const cluster = led();
    cluster.propose(A, "x");
    cluster.advance(200);
    expect(cluster.nowMs - cluster.status(B).freshAsOfMs).toBeLessThanOrEqual(100);
    expect(cluster.nowMs - cluster.status(A).freshAsOfMs, "a leader, by its quorum").toBeLessThanOrEqual(100);
  });

  test("it grows stale without its leader, and while it lags behind what is announced", () => {
    const cluster = led();
    const heal = cluster.isolate(B);
    const atMs = cluster.status(B).freshAsOfMs;
    cluster.propose(A, "x");
    cluster.advance(1_000);
    expect(cluster.status(B).freshAsOfMs).toBe(atMs);
    const held = cluster.hold(({ type, to }) => type === "MsgApp" && to === B);
    heal();
    cluster.advance(300);
    expect(cluster.status(B).leader, "heartbeats come through").toBe(A);
    expect(cluster.status(B).freshAsOfMs, "the entry does not").toBe(atMs);
    held.release();
    cluster.advance(200);
    expect(cluster.nowMs - cluster.status(B).freshAsOfMs).toBeLessThanOrEqual(100);
  });
});

describe("what a follower must not believe", () => {
  test("a new leader that has committed nothing in its term does not make anybody fresh", () => {
    const cluster = led();
    const held = cluster.hold(({ type, to }) => (type === "MsgApp" && to === C) || (type === "MsgAppResp" && to === B));
    cluster.propose(A, "acknowledged, and nobody else knows that it is committed");
    cluster.advance(1);
    const freshMs = cluster.status(C).freshAsOfMs;
    cluster.crash(A);
    cluster.node(C).diskHeld = true;
    cluster.advance(1_000);
    expect(cluster.status(B).established, "C's disk hangs, so nothing is committed").toBe(false);
    expect(cluster.status(C).freshAsOfMs).toBe(freshMs);
    held.release(() => []);
  });

  test("trap 44: a heartbeat that lay in a socket says only what was so when its round began", () => {
    const cluster = led();
    const held = cluster.hold(({ type, to }) => type === "MsgHeartbeat" && to === B);
    cluster.advance(60);
    const drop = cluster.drop(({ to, from }) => to === B || from === B);
    const lateMs = cluster.nowMs;
    cluster.propose(A, "B does not hear of it");
    cluster.advance(30_000);
    drop();
    held.release((messages) => messages.slice(0, 1));
    expect(cluster.status(B).freshAsOfMs).toBeLessThanOrEqual(lateMs);
  });

  test("who can't campaign stops naming a leader that it does not hear any more", () => {
    const cluster = led({ election: { enableAutoFailover: false } });
    cluster.crash(A);
    cluster.advance(1_000);
    expect(cluster.status(B)).toMatchObject({ role: "follower", leader: null });
  });
});

describe("a quorum that can't write", () => {
  test("trap 30: a leader whose followers' disks all hang steps down, and has flagged them before", () => {
    const cluster = led();
    for (const peer of [B, C]) cluster.node(peer).diskHeld = true;
    cluster.propose(A, "never durable on a majority");
    cluster.advance(1_000);
    expect(
      cluster
        .node(A)
        .eventsOf("follower-unresponsive")
        .map(({ peer }) => peer),
    ).toEqual([B, C]);
    expect(cluster.status(A).role).toBe("leader");
    cluster.advance(3_000);
    expect(cluster.status(A).role).not.toBe("leader");
  });
});

describe("an election that the first to ask can't win", () => {
  test("is held at once by the one whose log is longer, without waiting for its own timeout", () => {
    const cluster = led();
    const held = cluster.hold(({ type, to }) => type === "MsgApp" && to === B);
    cluster.propose(A, "what B has not got");
    cluster.advance(1);
    cluster.crash(A);
    held.release(() => []);
    // C sees it first and asks until it gives up; B sees it later, and its log is behind.
    cluster.step(C, { kind: "peer-gone", peer: A });
    cluster.advance(40);
    expect(cluster.leader(), "B still hears the leader, as far as it knows").toBe(null);
    cluster.step(B, { kind: "peer-gone", peer: A });
    cluster.advance(10);
    expect(cluster.leader()).toBe(C);
  });
});
