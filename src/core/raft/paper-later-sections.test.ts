// §6 (membership), §7 (compaction) and §8 (clients) of the Raft paper, and what the thesis adds: stickiness
// (thesis §4.2.3), leadership transfer (thesis §3.10), linearizable reads (thesis §6.4), pre-vote (thesis §9.6).
// One test for each rule.

import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import { addLearner, addVoter, appResp, heartbeat, heartbeatResp } from "./test-messages.ts";
import { peersNamed, preVote, preVoteResp, remove, textOf, vote, voteResp } from "./test-messages.ts";
import type { Message } from "./types.ts";

const [A, B, C, D, E] = peersNamed(5) as [PeerKey, PeerKey, PeerKey, PeerKey, PeerKey];
const THREE = [A, B, C];

function lone(options: Partial<ClusterOptions> = {}): TestCluster {
  return new TestCluster({ voters: THREE, running: [A], ...options });
}

function led(options: Partial<ClusterOptions> = {}): TestCluster {
  const cluster = new TestCluster({ voters: THREE, ...options });
  cluster.elect(A);
  return cluster;
}

/** A new node starts and is introduced to everybody by the wire. */
function introduce(cluster: TestCluster, fresh: PeerKey): void {
  cluster.start(fresh);
  for (const [peer, node] of cluster.nodes) {
    if (!node.alive || peer === fresh) continue;
    cluster.step(peer, { kind: "peer-seen", peer: fresh });
    cluster.step(fresh, { kind: "peer-seen", peer });
  }
}

describe("membership (§6)", () => {
  test("§6: in a joint configuration an entry needs a majority of the old and a majority of the new voters", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    cluster.change(A, remove(B), remove(C), addVoter(D), addVoter(E));
    expect(cluster.status(A).configuration).toMatchObject({ voters: [A, D, E], votersOutgoing: THREE });
    for (const peer of [D, E]) cluster.receive(appResp([peer, A, 2], { index: 3 }));
    expect(cluster.status(A).commit, "all of the new, but only A of the old").toBe(2);
    cluster.receive(appResp([B, A, 2], { index: 3 }));
    expect(cluster.status(A)).toMatchObject({ commit: 3, lastIndex: 4 });
    expect(cluster.status(A).configuration, "the leader leaves it by itself").toMatchObject({ votersOutgoing: [] });
    cluster.receive(appResp([D, A, 2], { index: 4 }));
    expect(cluster.status(A), "the new voters alone decide on that").toMatchObject({ commit: 4 });
  });

  test("§6: a server uses the latest configuration in its log, committed or not", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    cluster.change(A, addVoter(D));
    expect(cluster.status(A)).toMatchObject({
      configuration: { voters: [A, B, C, D] },
      committedConfiguration: { voters: THREE },
    });
    cluster.receive(appResp([B, A, 2], { index: 3 }));
    expect(cluster.status(A).commit, "two of four are no majority").toBe(2);
    cluster.receive(appResp([D, A, 2], { index: 3 }));
    expect(cluster.status(A)).toMatchObject({ commit: 3, committedConfiguration: { voters: [A, B, C, D] } });
  });

  test("§6: in a joint configuration a candidate needs a majority of both", () => {
    const joint = { voters: [A, D, E], votersOutgoing: THREE, learners: [], learnersNext: [], autoLeave: true };
    const cluster = lone();
    const snapshot = { index: 5, term: 2, configuration: joint };
    cluster.start(A, { hardState: { term: 2, vote: null, commit: 5 }, snapshot, entries: [] });
    cluster.step(A, { kind: "campaign" });
    for (const peer of [B, C]) cluster.receive(preVoteResp([peer, A, 3]));
    expect(cluster.status(A).role, "the old majority alone").toBe("pre-candidate");
    cluster.receive(preVoteResp([D, A, 3]));
    for (const peer of [D, E]) cluster.receive(voteResp([peer, A, 3]));
    expect(cluster.status(A).role, "the new majority alone").toBe("candidate");
    cluster.receive(voteResp([B, A, 3]));
    expect(cluster.status(A).role).toBe("leader");
  });

  test("§6: a new server catches up as a learner, without a vote, before it is promoted", () => {
    const cluster = led();
    cluster.propose(A, "before it came");
    introduce(cluster, D);
    expect(cluster.change(A, addLearner(D)).ok).toBe(true);
    cluster.advance(100);
    expect(cluster.status(D)).toMatchObject({ commit: 4, leader: A, configuration: { learners: [D] } });
    const heal = cluster.isolate(B, C);
    cluster.propose(A, "only the learner gets this");
    expect(cluster.status(A).commit, "its copy does not count").toBe(4);
    heal();
    cluster.advance(200);
    expect(cluster.change(A, addVoter(D)).ok).toBe(true);
    expect(cluster.status(D).configuration.voters).toEqual([A, B, C, D]);
  });

  test("§6: a leader that is not in the new configuration steps down once that is committed", () => {
    const cluster = led();
    expect(cluster.change(A, remove(A)).ok).toBe(true);
    expect(cluster.status(A)).toMatchObject({ role: "follower", leader: null });
    cluster.advance(1_000);
    expect([B, C]).toContain(cluster.leader());
    expect(cluster.status(cluster.leader()!).configuration.voters).toEqual([B, C]);
  });

  test("§6: it asks one that has its whole log to campaign, so nobody waits for a timeout", () => {
    const cluster = led({ voters: [A, B, C, D] });
    cluster.drop(({ type, to }) => type === "MsgApp" && to === B);
    const startedMs = cluster.nowMs;
    expect(cluster.change(A, remove(A)).ok).toBe(true);
    expect(cluster.node(A).sentOf("MsgTimeoutNow")).toMatchObject([{ to: C, force: false }]);
    expect(cluster.leader()).toBe(C);
    expect(cluster.nowMs).toBe(startedMs);
    expect(cluster.node(C).raft.refusals["unknown-peer"], "C obeys, although A is no member any more").toBe(0);
  });

  test("§6: where nobody has its whole log it asks nobody, and a timeout decides", () => {
    const cluster = led();
    cluster.drop((message) => message.type === "MsgApp" && message.entries.some(({ index }) => index > 3));
    cluster.step(A, { kind: "conf-change", change: { operations: [remove(A)] } });
    cluster.propose(A, "behind");
    expect(cluster.status(A)).toMatchObject({ role: "follower", commit: 3, lastIndex: 4 });
    expect(cluster.node(A).sentOf("MsgTimeoutNow")).toEqual([]);
    expect(cluster.leader()).toBe(null);
    cluster.advance(1_000);
    expect([B, C]).toContain(cluster.leader());
  });

  test("§6: a removed server, which hears no more heartbeats, does not disrupt the cluster", () => {
    const cluster = led();
    const heal = cluster.isolate(C);
    cluster.change(A, remove(C));
    heal();
    cluster.advance(3_000);
    expect(cluster.status(A)).toMatchObject({ role: "leader", term: 2 });
    expect(cluster.node(A).raft.refusals.removed, "it did try").toBeGreaterThan(0);
  });

  test("§6: a leader of an unfinished joint configuration crashes; its successor finishes the change", () => {
    const cluster = led({ voters: [A, B, C, D, E] });
    const held = cluster.hold(({ type, from }) => type === "MsgApp" && from === A);
    cluster.step(A, { kind: "conf-change", change: { operations: [remove(D), remove(E)] } });
    for (const message of held.messages) if (message.to === B) cluster.receive(message);
    cluster.crash(A);
    cluster.advance(150);
    cluster.elect(B);
    expect(cluster.status(B).configuration).toMatchObject({ voters: THREE, votersOutgoing: [] });
    expect(cluster.node(B).eventsOf("configuration").length, "it went through the joint one").toBe(2);
  });
});

describe("log compaction (§7)", () => {
  test("§7: a follower that needs compacted entries gets the snapshot, then the log behind it", () => {
    const cluster = led();
    const heal = cluster.isolate(C);
    cluster.propose(A, "1", "2", "3");
    cluster.compact(A, 5);
    cluster.propose(A, "4");
    heal();
    cluster.advance(100);
    expect(cluster.node(A).sentOf("MsgSnap")).toMatchObject([{ to: C, snapshot: { index: 5, term: 2 } }]);
    expect(cluster.status(C)).toMatchObject({ commit: 6, applied: 6, firstIndex: 6 });
    expect(cluster.node(C).applied.map(textOf), "what the snapshot covers is not applied again").toEqual(["", "4"]);
  });

  test("§7: of the entries that are kept below a snapshot only so many stay as their bytes leave room for", () => {
    const large = "x".repeat(1_000);
    for (const [compactionKeptBytesMax, kept] of [
      [0, 0],
      [2_500, 2],
      [1_000_000, 4],
    ] as const) {
      const cluster = lone({ voters: [A], limits: { compactionKeptBytesMax } });
      cluster.elect(A);
      cluster.propose(A, large, large, large, large);
      const { applied } = cluster.status(A);
      cluster.step(A, { kind: "compact", index: applied, keepEntries: 4 });
      expect(cluster.status(A).firstIndex).toBe(applied - kept + 1);
    }
  });

  test("§7: a follower that holds the snapshot's last entry keeps its log and what follows", () => {
    const cluster = lone({ logs: { [A]: [1, 2, 2] } });
    const { configuration } = cluster.status(A);
    cluster.receive({
      type: "MsgSnap",
      from: B,
      to: A,
      term: 3,
      round: 1,
      snapshot: { index: 3, term: 2, configuration },
    });
    expect(cluster.status(A)).toMatchObject({ firstIndex: 2, lastIndex: 4, commit: 3 });
  });

  test("§7: a follower whose log conflicts with the snapshot drops all of it", () => {
    const cluster = lone({ logs: { [A]: [1, 1, 1] } });
    const { configuration } = cluster.status(A);
    cluster.receive({
      type: "MsgSnap",
      from: B,
      to: A,
      term: 3,
      round: 1,
      snapshot: { index: 3, term: 2, configuration },
    });
    expect(cluster.status(A)).toMatchObject({ firstIndex: 4, lastIndex: 3, lastTerm: 2, commit: 3 });
    expect(cluster.node(A).sentOf("MsgAppResp")).toMatchObject([{ to: B, index: 3, reject: false }]);
  });

  test("§7: a node starts again from its snapshot and the entries behind it", () => {
    const cluster = led();
    cluster.propose(A, "1", "2", "3");
    cluster.compact(B, 4);
    cluster.restart(B);
    expect(cluster.status(B)).toMatchObject({ firstIndex: 5, lastIndex: 5, configuration: { voters: THREE } });
    cluster.advance(100);
    expect(cluster.node(B).applied.map(textOf)).toEqual(["3"]);
  });
});

describe("clients (§8, thesis §6.4)", () => {
  test("§8: a new leader appends a no-op at once, and knows what is committed when that is", () => {
    const cluster = lone({ logs: { [A]: [1, 1] } });
    cluster.electWith(A, B);
    expect(cluster.node(A).raft.entryAt(4)).toMatchObject({ term: 2, type: "EntryNormal", data: new Uint8Array(0) });
    cluster.receive(appResp([B, A, 2], { index: 4 }));
    expect(cluster.status(A).commit).toBe(4);
  });

  test("§8: only the leader takes a command, and a follower says who that is", () => {
    const cluster = led();
    expect(cluster.propose(B, "x")).toMatchObject({ ok: false, code: "NOT_LEADER", message: `the leader is ${A}` });
  });

  test("thesis §6.4: a leader answers a read after a majority has answered a heartbeat", () => {
    const cluster = led();
    const held = cluster.hold(({ type }) => type === "MsgHeartbeatResp");
    cluster.act(A, { kind: "read-index", context: 7 });
    expect(cluster.node(A).reads, "nobody has answered yet").toEqual([]);
    held.release((messages) => messages.slice(0, 1));
    expect(cluster.node(A).reads).toEqual([{ context: 7, index: 2 }]);
  });

  test("thesis §6.4: a deposed leader that knows nothing of it answers no read", () => {
    const cluster = led();
    cluster.isolate(A);
    cluster.advance(149);
    cluster.act(A, { kind: "read-index", context: 7 });
    cluster.advance(2_000);
    expect(cluster.node(A).reads, "refused: ask again").toEqual([{ context: 7, index: 0 }]);
  });

  test("thesis §6.4: a follower's read gets the leader's commit index", () => {
    const cluster = led();
    const held = cluster.hold(({ type, to }) => type === "MsgApp" && to === C);
    cluster.propose(A, "x");
    cluster.act(C, { kind: "read-index", context: 3 });
    expect(cluster.node(C).reads).toEqual([{ context: 3, index: 3 }]);
    expect(cluster.status(C).applied, "it must wait until it has applied that much").toBe(2);
    held.release();
    expect(cluster.status(C).applied).toBe(3);
  });

  test("thesis §6.4: a read without a known leader is refused", () => {
    expect(lone().step(A, { kind: "read-index", context: 1 })).toMatchObject({ ok: false, code: "ERR_NO_LEADER" });
  });
});

describe("stickiness (thesis §4.2.3) and pre-vote (thesis §9.6)", () => {
  test.each(["MsgVote", "MsgPreVote"])("thesis §4.2.3: while it hears a leader, a server ignores %s", (type) => {
    const cluster = lone();
    cluster.receive(heartbeat([B, A, 2]));
    const before = cluster.status(A);
    const ask = type === "MsgVote" ? vote : preVote;
    cluster.advance(149);
    cluster.receive(ask([C, A, 9], { index: 9, logTerm: 8 }));
    expect(cluster.status(A)).toEqual(before);
    cluster.advance(1);
    cluster.receive(ask([C, A, 9], { index: 9, logTerm: 8 }));
    const answers = cluster.node(A).sent.filter((one) => one.to === C);
    expect(answers, "only after the shortest timeout it answers").toMatchObject([
      { type: `${type}Resp`, reject: false },
    ]);
  });

  test("thesis §4.2.3: a leader with a quorum is not deposed by a request for votes", () => {
    const cluster = led();
    cluster.receive(vote([C, A, 9], { index: 9, logTerm: 8 }));
    expect(cluster.status(A)).toMatchObject({ role: "leader", term: 2 });
  });

  test("thesis §9.6: a server that was cut off comes back without disturbing the leader", () => {
    const cluster = led();
    const heal = cluster.isolate(C);
    cluster.advance(5_000);
    expect(cluster.status(C).term, "it asked, but never entered a term that it could not win").toBe(2);
    heal();
    cluster.advance(500);
    expect(cluster.status(A)).toMatchObject({ role: "leader", term: 2 });
    expect(cluster.status(C)).toMatchObject({ role: "follower", leader: A });
  });

  test("thesis §9.6: a pre-vote changes neither the term nor the vote of anybody", () => {
    const cluster = lone();
    cluster.receive(preVote([B, A, 2]));
    cluster.receive(preVote([C, A, 2]));
    expect(cluster.status(A)).toMatchObject({ term: 1, vote: null });
    expect(
      cluster
        .node(A)
        .sentOf("MsgPreVoteResp")
        .map(({ reject }) => reject),
      "both may be told yes",
    ).toEqual([false, false]);
  });

  test("thesis §9.6: a pre-vote is refused to a candidate whose log is older", () => {
    const cluster = lone({ logs: { [A]: [1, 2] } });
    cluster.receive(preVote([B, A, 3], { index: 9, logTerm: 1 }));
    expect(cluster.node(A).sentOf("MsgPreVoteResp")).toMatchObject([{ reject: true, term: 2 }]);
  });
});

describe("leadership transfer (thesis §3.10)", () => {
  const isApp = ({ type, to }: Message): boolean => type === "MsgApp" && to === C;

  test("thesis §3.10: the target is brought up to date, campaigns at once, and leads", () => {
    const cluster = led();
    const held = cluster.hold(isApp);
    cluster.propose(A, "x");
    cluster.act(A, { kind: "transfer", target: C, force: false });
    expect(cluster.node(A).sentOf("MsgTimeoutNow"), "not before it has everything").toEqual([]);
    held.release();
    expect(cluster.status(C)).toMatchObject({ role: "leader", term: 3 });
    expect(cluster.node(A).eventsOf("transfer")).toMatchObject([
      { result: { success: true, oldLeaderId: A, newLeaderId: C } },
    ]);
  });

  test("thesis §3.10: the old leader takes no commands while it hands over", () => {
    const cluster = led();
    cluster.drop(({ type }) => type === "MsgTimeoutNow");
    cluster.act(A, { kind: "transfer", target: C, force: false });
    expect(cluster.propose(A, "x")).toMatchObject({ ok: false, code: "TRANSFER_IN_PROGRESS" });
    expect(cluster.change(A, remove(B))).toMatchObject({ ok: false, code: "TRANSFER_IN_PROGRESS" });
  });

  test("thesis §3.10: a transfer that is not over after an election timeout is given up, and the leader resumes", () => {
    const cluster = led();
    cluster.drop(({ type }) => type === "MsgTimeoutNow");
    cluster.act(A, { kind: "transfer", target: C, force: false });
    cluster.advance(299);
    expect(cluster.status(A).transfer).not.toBeNull();
    cluster.advance(1);
    expect(cluster.node(A).eventsOf("transfer")).toMatchObject([{ result: { success: false, newLeaderId: A } }]);
    expect(cluster.propose(A, "x").ok).toBe(true);
  });

  test("thesis §3.10: votes for a campaign that the leader asked for are given although it is still heard", () => {
    const cluster = lone();
    cluster.receive(heartbeat([B, A, 2]));
    cluster.receive(vote([C, A, 3], { transfer: true }));
    expect(cluster.node(A).sentOf("MsgVoteResp")).toMatchObject([{ to: C, term: 3, reject: false }]);
  });

  test("thesis §3.10: only the leader's own word makes a follower campaign", () => {
    const cluster = lone();
    cluster.receive(heartbeat([B, A, 2]));
    cluster.receive({ type: "MsgTimeoutNow", from: C, to: A, term: 2, force: false, attempt: 0 });
    expect(cluster.status(A).role).toBe("follower");
    cluster.receive({ type: "MsgTimeoutNow", from: B, to: A, term: 2, force: false, attempt: 0 });
    expect(cluster.status(A)).toMatchObject({ role: "candidate", term: 3 });
  });

  test("thesis §3.10: without a named target the one that is furthest is chosen", () => {
    const cluster = lone();
    const node = cluster.electWith(A, B);
    for (const peer of [B, C]) cluster.receive(heartbeatResp([peer, A, 2]));
    cluster.receive(appResp([C, A, 2], { index: 2 }));
    cluster.step(A, { kind: "transfer", target: null, force: false });
    expect(node.sentOf("MsgTimeoutNow")).toMatchObject([{ to: C, term: 2 }]);
  });

  test.each([
    { name: "itself", target: A },
    { name: "a stranger", target: peerKey("n9", "a") },
    { name: "a learner", target: D },
  ])("thesis §3.10: leadership is not handed to $name", ({ target }) => {
    const cluster = led({ learners: [D] });
    const before = cluster.status(A);
    const answer = cluster.act(A, { kind: "transfer", target, force: false });
    expect(answer).toMatchObject({ ok: false, code: "TRANSFER_TARGET_INVALID" });
    expect(cluster.status(A)).toEqual(before);
  });

  test("thesis §3.10: what the old leader committed is applied by the new one", () => {
    const cluster = led();
    cluster.propose(A, "x", "y");
    cluster.act(A, { kind: "transfer", target: B, force: false });
    expect(cluster.status(B).role).toBe("leader");
    expect(cluster.node(B).applied.map(textOf)).toEqual(["", "x", "y", ""]);
  });
});
