// Traps 16–31: mistakes in leadership, transfers, reads, disks, snapshots, bounds and time. One test for each.
// 23 (fsync error) and 24 (torn tail) are the engine's and the WAL's.

import { describe, expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { TERM_JUMP_MAX, ENTRY_OVERHEAD_BYTES } from "../kit/limits.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import { addLearner, app, appResp, bytes, entriesOf, heartbeat, heartbeatResp } from "./test-messages.ts";
import { peersNamed, preVote, remove, textOf, vote } from "./test-messages.ts";
import type { Input, MessageType } from "./types.ts";

const [A, B, C, D] = peersNamed(4) as [PeerKey, PeerKey, PeerKey, PeerKey];
const THREE = [A, B, C];
const LEASE = { election: { enableLease: true } };
const FROM_A_LEADER: readonly MessageType[] = ["MsgApp", "MsgHeartbeat", "MsgSnap"];

function lone(options: Partial<ClusterOptions> = {}): TestCluster {
  return new TestCluster({ voters: THREE, running: [A], ...options });
}

function led(options: Partial<ClusterOptions> = {}): TestCluster {
  const cluster = new TestCluster({ voters: THREE, ...options });
  // With leases, nobody votes for one election timeout after its start.
  cluster.advance(LEASE.election === options.election ? 300 : 0);
  cluster.elect(A);
  return cluster;
}

describe("leaders without a quorum", () => {
  test("trap 16: a leader that is heard but hears nobody falls silent within one election timeout", () => {
    const cluster = led();
    cluster.drop(({ to }) => to === A);
    cluster.advance(300);
    expect(cluster.status(A).role).not.toBe("leader");
    cluster.node(A).sent = [];
    expect(cluster.propose(A, "x")).toMatchObject({ ok: false, code: "NOT_LEADER" });
    cluster.advance(2_000);
    expect(cluster.node(A).sent.filter(({ type }) => FROM_A_LEADER.includes(type))).toEqual([]);
    expect([B, C], "the others elect one that works").toContain(cluster.leader());
  });

  test("trap 16: a minority that goes on answering does not keep a leader in office", () => {
    const cluster = led({ voters: peersNamed(5) });
    cluster.isolate(A, B);
    cluster.advance(400);
    expect(cluster.status(A).role).not.toBe("leader");
  });

  test("trap 22: two leaders of different terms may overlap; the older one commits nothing any more", () => {
    const cluster = led();
    cluster.isolate(A);
    cluster.advance(150);
    cluster.elect(B);
    expect([cluster.status(A).role, cluster.status(B).role]).toEqual(["leader", "leader"]);
    expect([cluster.status(A).term, cluster.status(B).term]).toEqual([2, 3]);
    cluster.propose(A, "lost");
    cluster.propose(B, "kept");
    expect(cluster.status(A).commit).toBe(2);
    expect(cluster.node(C).applied.map(textOf)).toEqual(["", "", "kept"]);
  });

  test("trap 30: a leader whose disk hangs steps down within five election timeouts, and does not come back", () => {
    const cluster = led();
    cluster.node(A).sent = [];
    cluster.holdDisk(A);
    cluster.propose(A, "x");
    cluster.advance(1_499);
    expect(cluster.status(A).role).toBe("leader");
    cluster.advance(1);
    expect(cluster.status(A).role).toBe("follower");
    cluster.advance(3_000);
    expect([B, C]).toContain(cluster.leader());
    expect(cluster.node(A).sentOf("MsgPreVote"), "a node without a disk does not ask").toEqual([]);
    expect(cluster.step(A, { kind: "campaign" })).toMatchObject({ ok: false, code: "NOT_PROMOTABLE" });
    cluster.releaseDisk(A);
    cluster.advance(200);
    expect(cluster.status(A).lastIndex).toBe(cluster.status(B).lastIndex);
  });
});

test("who has been writing for an election timeout campaigns neither by itself nor when it is asked: its vote could not leave", () => {
  const cluster = led();
  cluster.holdDisk(B);
  cluster.propose(A, "x");
  cluster.advance(301);
  expect(cluster.status(B).isDiskStalled).toBe(true);
  cluster.crash(A);
  cluster.node(B).sent = [];
  cluster.advance(1_000);
  expect(cluster.node(B).sentOf("MsgPreVote")).toEqual([]);
  expect(cluster.step(B, { kind: "campaign" })).toMatchObject({ ok: false, code: "NOT_PROMOTABLE" });
});

test("a sole voter whose disk is slow goes on leading: nobody else could", () => {
  const cluster = new TestCluster({ voters: [A] });
  cluster.elect(A);
  cluster.holdDisk(A);
  cluster.propose(A, "x");
  cluster.advance(2_000);
  expect(cluster.status(A)).toMatchObject({ role: "leader", isDiskStalled: true });
  cluster.releaseDisk(A);
  cluster.advance(10);
  expect(cluster.status(A)).toMatchObject({ role: "leader", commit: cluster.status(A).lastIndex });
});

test("a sole voter that was held up for long goes on leading, in the same term: nobody else could have led", () => {
  const cluster = new TestCluster({ voters: [A] });
  cluster.elect(A);
  const { term } = cluster.status(A);
  cluster.nowMs += 10_000;
  cluster.step(A, { kind: "time" });
  expect(cluster.status(A)).toMatchObject({ role: "leader", term });
  cluster.propose(A, "x");
  cluster.advance(10);
  expect(cluster.status(A)).toMatchObject({ role: "leader", term, commit: cluster.status(A).lastIndex });
});

describe("transfers", () => {
  const lag = (cluster: TestCluster): void => {
    cluster.drop(({ type, to }) => type === "MsgApp" && to === C);
    cluster.propose(A, ...new Array<string>(100).fill("x"));
  };

  test.each([
    { way: "no answer in one election timeout", catchingUp: false, end: (c: TestCluster) => c.advance(300) },
    { way: "the target never catches up", catchingUp: true, end: (c: TestCluster) => c.advance(1_000) },
    { way: "the target is removed", catchingUp: true, end: (c: TestCluster) => c.change(A, remove(C)) },
    { way: "the leader is deposed", catchingUp: true, end: (c: TestCluster) => c.receive(appResp([B, A, 3])) },
    { way: "deposed while handing over", catchingUp: false, end: (c: TestCluster) => c.receive(appResp([B, A, 3])) },
  ])("trap 17: a transfer ends in one result and blocks no later write: $way", ({ catchingUp, end }) => {
    const cluster = led({ election: { transferTimeoutMs: 1_000 } });
    cluster.drop(({ type }) => type === "MsgTimeoutNow");
    if (catchingUp) lag(cluster);
    cluster.act(A, { kind: "transfer", target: C, force: false });
    expect(cluster.status(A).transfer).not.toBeNull();
    end(cluster);
    if (cluster.status(A).role !== "leader") {
      cluster.advance(150);
      cluster.elect(A);
    }
    cluster.advance(500);
    expect(cluster.status(A)).toMatchObject({ role: "leader", transfer: null });
    expect(cluster.node(A).eventsOf("transfer")).toMatchObject([{ result: { success: false } }]);
    expect(cluster.propose(A, "after").ok).toBe(true);
  });

  test("trap 17: who lost leadership before the hand-over does not claim to be the new leader", () => {
    const cluster = led();
    lag(cluster);
    cluster.act(A, { kind: "transfer", target: C, force: false });
    cluster.receive(heartbeat([B, A, 3]));
    expect(
      cluster
        .node(A)
        .eventsOf("transfer")
        .map(({ result }) => result.newLeaderId),
    ).toEqual([B]);
  });

  test("trap 18: after TimeoutNow the lease is void, also when the transfer fails", () => {
    const cluster = led(LEASE);
    cluster.advance(50);
    expect(cluster.status(A).leaseUntilMs).toBeGreaterThan(cluster.nowMs);
    cluster.drop(({ type }) => type === "MsgTimeoutNow");
    cluster.act(A, { kind: "transfer", target: C, force: false });
    expect(cluster.status(A).leaseUntilMs).toBe(0);
    cluster.advance(1_000);
    expect(cluster.status(A)).toMatchObject({ role: "leader", transfer: null, leaseUntilMs: 0 });
    const held = cluster.hold(({ type }) => type === "MsgHeartbeatResp");
    cluster.act(A, { kind: "read-index", context: 1 });
    expect(cluster.node(A).reads, "reads need their round again").toEqual([]);
    held.release();
    expect(cluster.node(A).reads).toEqual([{ context: 1, index: 2 }]);
  });

  test("trap 19: writes go on while the target catches up, and stop when it is close", () => {
    const cluster = led();
    const held = cluster.hold(({ type, to }) => (type === "MsgApp" && to === C) || type === "MsgTimeoutNow");
    cluster.propose(A, ...new Array<string>(100).fill("x"));
    cluster.act(A, { kind: "transfer", target: C, force: false });
    expect(cluster.propose(A, "y").ok, "the target is 100 entries behind").toBe(true);
    for (const message of held.messages) if (message.type === "MsgApp") cluster.receive(message);
    cluster.settle();
    expect(cluster.propose(A, "z")).toMatchObject({ ok: false, code: "TRANSFER_IN_PROGRESS" });
    expect(held.messages.filter(({ type }) => type === "MsgTimeoutNow").length).toBe(1);
  });

  test("trap 19: a second transfer is refused while one is under way", () => {
    const cluster = led();
    cluster.drop(({ type }) => type === "MsgTimeoutNow");
    cluster.act(A, { kind: "transfer", target: C, force: false });
    const second = cluster.act(A, { kind: "transfer", target: B, force: false });
    expect(second).toMatchObject({ ok: false, code: "TRANSFER_IN_PROGRESS" });
  });
});

describe("reads and leases", () => {
  test("trap 20: a read before the first commit of the term waits for it, and is answered with that index", () => {
    const cluster = lone({ logs: { [A]: [1, 1] } });
    cluster.electWith(A, B);
    cluster.step(A, { kind: "read-index", context: 1 });
    cluster.receive(heartbeatResp([B, A, 2], { round: 1 }));
    expect(cluster.node(A).reads).toEqual([]);
    cluster.receive(appResp([B, A, 2], { index: 4, round: 1 }));
    expect(cluster.node(A).reads, "and then for a round of its own").toEqual([]);
    cluster.receive(heartbeatResp([B, A, 2], { round: 2 }));
    expect(cluster.node(A).reads).toEqual([{ context: 1, index: 4 }]);
  });

  test("trap 20: answers to a round that was sent before the request confirm nothing", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    cluster.step(A, { kind: "read-index", context: 1 });
    for (const peer of [B, C]) cluster.receive(heartbeatResp([peer, A, 2], { round: 1 }));
    expect(cluster.node(A).reads).toEqual([]);
    cluster.receive(heartbeatResp([C, A, 2], { round: 2 }));
    expect(cluster.node(A).reads).toEqual([{ context: 1, index: 2 }]);
  });

  test("trap 20: each retry has a round of its own, and one answer releases only what was asked before it", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    cluster.step(A, { kind: "read-index", context: 1 });
    cluster.step(A, { kind: "read-index", context: 2 });
    cluster.receive(heartbeatResp([B, A, 2], { round: 2 }));
    expect(cluster.node(A).reads).toEqual([{ context: 1, index: 2 }]);
  });

  test("trap 20: a read of a term that is over is refused, also if the same node leads again", () => {
    const cluster = led();
    const held = cluster.hold(({ type }) => type === "MsgHeartbeatResp");
    cluster.act(A, { kind: "read-index", context: 1 });
    cluster.receive(appResp([B, A, 3]));
    expect(cluster.node(A).reads).toEqual([{ context: 1, index: 0 }]);
    cluster.advance(150);
    cluster.elect(A);
    held.release();
    expect(cluster.node(A).reads.length, "late answers of the old term change nothing").toBe(1);
  });

  test("trap 21: a lease starts when the confirmed round was sent, not when the answers came", () => {
    const cluster = led(LEASE);
    cluster.advance(49);
    const held = cluster.hold(({ type }) => type === "MsgHeartbeatResp");
    cluster.advance(1);
    const sentMs = cluster.nowMs;
    cluster.advance(40);
    held.release();
    expect(cluster.status(A).leaseUntilMs, "150 ms, less 20 % of drift on both sides").toBeCloseTo(sentMs + 100, 6);
  });

  test("trap 21: a lease ends while a majority is silent, and then reads need a round", () => {
    const cluster = led(LEASE);
    cluster.advance(50);
    cluster.isolate(A);
    cluster.act(A, { kind: "read-index", context: 1 });
    expect(cluster.node(A).reads, "inside the lease no round is needed").toEqual([{ context: 1, index: 2 }]);
    cluster.advance(101);
    cluster.act(A, { kind: "read-index", context: 2 });
    expect(cluster.status(A).role).toBe("leader");
    expect(cluster.node(A).reads.length).toBe(1);
  });

  test("trap 21: with leases, a restarted voter keeps the promise that it may have made", () => {
    const cluster = lone(LEASE);
    cluster.advance(299);
    cluster.receive(vote([B, A, 2]));
    cluster.receive(preVote([B, A, 2]));
    expect(cluster.node(A).sent.filter(({ to, type }) => to === B && type.endsWith("Resp"))).toEqual([]);
    cluster.advance(1);
    cluster.receive(vote([B, A, 2]));
    expect(cluster.node(A).sentOf("MsgVoteResp")).toMatchObject([{ to: B, reject: false }]);
  });
});

describe("disks", () => {
  test("trap 25: a single node commits and applies only after its own sync", () => {
    const cluster = lone({ voters: [A] });
    cluster.elect(A);
    cluster.holdDisk(A);
    cluster.propose(A, "x");
    expect(cluster.status(A)).toMatchObject({ lastIndex: 3, commit: 2, applied: 2 });
    cluster.releaseDisk(A);
    expect(cluster.status(A)).toMatchObject({ commit: 3, applied: 3 });
  });

  test("trap 25: a leader replicates while its own disk writes, and counts itself after its own sync", () => {
    const cluster = lone();
    const node = cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    cluster.holdDisk(A);
    cluster.propose(A, "x");
    expect(node.sentOf("MsgApp").some(({ entries }) => entries.some((entry) => textOf(entry) === "x"))).toBe(true);
    cluster.receive(appResp([B, A, 2], { index: 3 }));
    expect(cluster.status(A).commit, "only B's copy is durable").toBe(2);
    cluster.releaseDisk(A);
    expect(cluster.status(A).commit).toBe(3);
  });

  test("trap 25: of several writes under way the leader counts those that are done", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    cluster.holdDisk(A);
    cluster.propose(A, "x");
    cluster.propose(A, "y");
    cluster.receive(appResp([B, A, 2], { index: 4 }));
    cluster.releaseDisk(A, 1);
    expect(cluster.status(A)).toMatchObject({ lastIndex: 4, commit: 3 });
    cluster.releaseDisk(A);
    expect(cluster.status(A).commit).toBe(4);
  });

  test("trap 26: a write that completes after its entries were replaced confirms none of the new ones", () => {
    const cluster = lone();
    cluster.holdDisk(A);
    cluster.receive(app([B, A, 2], { entries: entriesOf([2, 2]) }));
    cluster.receive(app([C, A, 3], { entries: entriesOf([3, 3]), commit: 3 }));
    cluster.releaseDisk(A, 1);
    expect(cluster.node(A).applied, "durable is what was replaced").toEqual([]);
    cluster.releaseDisk(A);
    expect(cluster.node(A).applied.map(textOf)).toEqual(["2:3", "3:3"]);
  });

  test("trap 26: the same (term, index) replaced twice while writes are pending is durable with the last write only", () => {
    const cluster = lone();
    cluster.holdDisk(A);
    cluster.receive(app([B, A, 2], { entries: entriesOf([2]) }));
    cluster.receive(app([C, A, 3], { entries: entriesOf([3]) }));
    cluster.receive(app([B, A, 4], { entries: entriesOf([2]), commit: 2 }));
    cluster.releaseDisk(A, 1);
    expect(cluster.node(A).durable.entries, "(2, term 2) is on disk now").toMatchObject([{ index: 2, term: 2 }]);
    expect(cluster.node(A).applied, "but the next write takes it away again").toEqual([]);
    cluster.releaseDisk(A, 1);
    expect(cluster.node(A).applied).toEqual([]);
    cluster.releaseDisk(A);
    expect(cluster.node(A).applied.map(textOf)).toEqual(["2:2"]);
  });
});

describe("snapshots and bounds", () => {
  const snap = (cluster: TestCluster, index: number, term: number) => {
    const { configuration } = cluster.status(A);
    return cluster.receive({
      type: "MsgSnap",
      from: B,
      to: A,
      term: 3,
      round: 1,
      snapshot: { index, term, configuration },
    });
  };

  test("trap 27: a snapshot that is older than the commit index changes nothing, and the leader is told how far we are", () => {
    const cluster = lone({ logs: { [A]: [1, 2, 2] }, commit: 4 });
    cluster.receive(heartbeat([B, A, 3]));
    const before = cluster.status(A);
    snap(cluster, 3, 2);
    expect(cluster.status(A)).toEqual(before);
    expect(cluster.node(A).sentOf("MsgAppResp")).toMatchObject([{ index: 4, reject: false }]);
  });

  test("trap 27: so does one that is older than what we have compacted ourselves", () => {
    const cluster = lone({ logs: { [A]: [1, 2, 2] }, commit: 4 });
    cluster.compact(A, 4);
    snap(cluster, 3, 2);
    expect(cluster.status(A)).toMatchObject({ firstIndex: 5, lastIndex: 4, commit: 4 });
    expect(cluster.node(A).sentOf("MsgAppResp")).toMatchObject([{ index: 4, reject: false }]);
  });

  test("trap 27: the configuration travels in the snapshot", () => {
    const cluster = led();
    cluster.change(A, addLearner(D));
    cluster.compact(A, 3);
    cluster.start(D);
    for (const peer of THREE) cluster.step(D, { kind: "peer-seen", peer });
    cluster.advance(1_200);
    expect(cluster.status(D)).toMatchObject({ commit: 3, configuration: { voters: THREE, learners: [D] } });
  });

  test("trap 27: a snapshot of an earlier index says who the members were then", () => {
    const cluster = led();
    cluster.propose(A, "x");
    cluster.change(A, addLearner(D));
    expect(cluster.node(A).raft.snapshotMetaAt(3).configuration.learners).toEqual([]);
    expect(cluster.node(A).raft.snapshotMetaAt(4).configuration.learners).toEqual([D]);
  });

  test("trap 28: proposals past the bound of uncommitted bytes are refused, and taken again when some are committed", () => {
    // The no-op, eight bytes and three bytes, each with what an entry costs next to its data: one byte too many.
    const cluster = lone({ limits: { uncommittedBytesMax: 3 * ENTRY_OVERHEAD_BYTES + 10 } });
    cluster.electWith(A, B);
    expect(cluster.propose(A, "12345678").ok).toBe(true);
    expect(cluster.propose(A, "123")).toMatchObject({ ok: false, code: "UNCOMMITTED_LIMIT" });
    cluster.receive(appResp([B, A, 2], { index: 3 }));
    expect(cluster.propose(A, "123").ok).toBe(true);
  });

  test("trap 28: entries without data are bounded too", () => {
    const cluster = lone({ limits: { uncommittedBytesMax: 4 * ENTRY_OVERHEAD_BYTES } });
    cluster.electWith(A, B);
    expect(cluster.propose(A, "", "", "").ok).toBe(true);
    expect(cluster.propose(A, "")).toMatchObject({ ok: false, code: "UNCOMMITTED_LIMIT" });
  });

  test("trap 28: what a leader inherits uncommitted counts against its bound", () => {
    const cluster = lone({ limits: { uncommittedBytesMax: 10 }, logs: { [A]: [1, 1, 1] } });
    cluster.electWith(A, B);
    expect(cluster.propose(A, "12")).toMatchObject({ ok: false, code: "UNCOMMITTED_LIMIT" });
  });

  test("trap 28: appends in flight to one follower are bounded by count and by bytes", () => {
    const cluster = lone({ limits: { inflightMessagesMax: 3, appendBytesMax: 2 } });
    const node = cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    node.sent = [];
    cluster.propose(A, ...new Array<string>(20).fill("x"));
    const sent = node.sentOf("MsgApp").filter(({ to }) => to === B);
    expect(sent.length).toBe(3);
    for (const { entries } of sent) expect(entries.length).toBe(2);
  });

  test("trap 28: what is given out to be applied is bounded by bytes until it is applied", () => {
    const cluster = lone({ voters: [A], limits: { applyBytesMax: 4 } });
    cluster.elect(A);
    const node = cluster.node(A);
    node.applyHeld = true;
    cluster.propose(A, "aaa", "bbb", "ccc");
    expect(node.toApply.map(textOf)).toEqual(["aaa"]);
    cluster.releaseApply(A);
    expect(node.applied.map(textOf)).toEqual(["", "aaa", "bbb", "ccc"]);
  });
});

describe("time and forged numbers", () => {
  test("trap 29: missed beats are merged into one", () => {
    const cluster = led();
    cluster.node(A).sent = [];
    cluster.nowMs += 270;
    cluster.step(A, { kind: "time" });
    expect(cluster.node(A).sentOf("MsgHeartbeat").length).toBe(2);
    expect(cluster.node(A).deadlineMs, "the next one is due an interval from now").toBe(cluster.nowMs + 30);
  });

  test("trap 29: a leader that stalled for longer than an election timeout leads no more when it wakes", () => {
    const cluster = led(LEASE);
    cluster.advance(50);
    cluster.nowMs += 10_000;
    expect(cluster.status(A).leaseUntilMs, "the lease is an instant on the clock, not a flag").toBeLessThan(
      cluster.nowMs,
    );
    cluster.step(A, { kind: "time" });
    expect(cluster.status(A).role).toBe("follower");
  });

  test.each<Input>([
    { kind: "time" },
    { kind: "propose", data: [bytes("late")] },
    { kind: "conf-change", change: { operations: [remove(C)] } },
    { kind: "replace", nodeId: "n3" },
    { kind: "read-index", context: 7 },
    { kind: "transfer", target: B, force: true },
    { kind: "message", message: appResp([B, A, 2], { index: 2, round: 1 }) },
    { kind: "message", message: heartbeatResp([B, A, 2], { round: 1 }) },
    { kind: "peer-seen", peer: B },
    { kind: "unreachable", peer: B },
    { kind: "applied", index: 2 },
    { kind: "compact", index: 1, keepEntries: 0 },
  ])(
    "trap 29: a process that was stopped for longer than an election timeout sends nothing as leader: $kind",
    (input) => {
      const cluster = led(LEASE);
      const { commit, lastIndex } = cluster.status(A);
      const node = cluster.node(A);
      node.sent = [];
      cluster.nowMs += 300;
      cluster.step(A, input);
      expect(cluster.status(A)).toMatchObject({ role: "follower", term: 2, leader: null, commit, lastIndex });
      expect(node.sent).toEqual([]);
      expect(node.reads, "no read is served").toEqual([]);
    },
  );

  test("trap 29: a follower that stalled reads what waits for it before it campaigns", () => {
    const cluster = lone();
    cluster.receive(heartbeat([B, A, 2]));
    cluster.nowMs += 10_000;
    cluster.step(A, { kind: "time" });
    expect(cluster.status(A).role, "the leader's heartbeats may be in the queue").toBe("follower");
    cluster.advance(49);
    expect(cluster.status(A).role).toBe("follower");
    cluster.advance(1);
    expect(cluster.status(A).role, "there were none").toBe("pre-candidate");
  });

  test("trap 31: a term beyond every honest one is refused, and nothing changes", () => {
    const cluster = led();
    const before = cluster.status(A);
    for (const term of [2 + TERM_JUMP_MAX + 1, Number.MAX_SAFE_INTEGER]) {
      expect(cluster.receive(appResp([B, A, term]))).toMatchObject({ ok: false, code: "MESSAGE_REFUSED" });
    }
    expect(cluster.status(A)).toEqual(before);
    expect(cluster.node(A).raft.refusals["wild-term"]).toBe(2);
  });

  test.each([2, 3])("trap 31: a heartbeat of term %i that commits what we do not have ends no process", (term) => {
    const cluster = lone();
    cluster.receive(app([B, A, 2], { entries: entriesOf([2]) }));
    const before = cluster.status(A);
    expect(cluster.receive(heartbeat([B, A, term], { commit: 99 }))).toMatchObject({
      ok: false,
      code: "MESSAGE_REFUSED",
    });
    expect(cluster.status(A)).toEqual(before);
    expect(cluster.node(A).raft.refusals.impossible).toBe(1);
  });

  test("trap 31: an acknowledgement of what was never sent is refused", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    expect(cluster.receive(appResp([B, A, 2], { index: 99 })).ok).toBe(false);
    expect(cluster.receive(appResp([B, A, 2], { index: 2, round: 99 })).ok, "an unknown round confirms nothing").toBe(
      true,
    );
    expect(cluster.status(A)).toMatchObject({ role: "leader", commit: 2 });
  });
});
