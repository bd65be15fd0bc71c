// Traps 1–15: mistakes that trusted systems made in votes, appends, membership and pre-votes. One test for each.
// Trap 9 is a property of membership/quorum.test.ts; 16–31 are in traps-later.test.ts; 23 and 24 are the WAL's.

import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import { addLearner, addVoter, app, appResp, entriesOf, heartbeat, heartbeatResp } from "./test-messages.ts";
import { peersNamed, preVote, preVoteResp, remove, vote, voteResp } from "./test-messages.ts";
import { encodeConfChange } from "./codec.ts";
import type { Entry } from "./types.ts";

const [A, B, C, D, E] = peersNamed(5) as [PeerKey, PeerKey, PeerKey, PeerKey, PeerKey];
const THREE = [A, B, C];
const FIVE = [A, B, C, D, E];
/** The node of C with a wiped disk. */
const C2 = peerKey("n3", "b");

function lone(options: Partial<ClusterOptions> = {}): TestCluster {
  return new TestCluster({ voters: THREE, running: [A], ...options });
}

function led(options: Partial<ClusterOptions> = {}): TestCluster {
  const cluster = new TestCluster({ voters: THREE, ...options });
  cluster.elect(A);
  return cluster;
}

describe("durability", () => {
  test("trap 1: a new leader appends a no-op at once, and commits older entries only together with it", () => {
    const cluster = lone({ logs: { [A]: [1, 1] } });
    cluster.electWith(A, B);
    expect(cluster.status(A).lastIndex).toBe(4);
    for (const peer of [B, C]) cluster.receive(appResp([peer, A, 2], { index: 3 }));
    expect(cluster.status(A).commit).toBe(1);
    cluster.receive(appResp([B, A, 2], { index: 4 }));
    expect(cluster.status(A).commit).toBe(4);
  });

  test("trap 2: a vote is told after term and vote are durable; lost in a crash, it was never given", () => {
    const cluster = lone();
    cluster.holdDisk(A);
    cluster.receive(vote([B, A, 2]));
    expect(cluster.node(A).sent, "the disk is still writing").toEqual([]);
    cluster.restart(A);
    expect(cluster.status(A)).toMatchObject({ term: 1, vote: null });
    cluster.receive(vote([C, A, 2]));
    expect(cluster.node(A).sentOf("MsgVoteResp"), "so another may have it").toMatchObject([{ to: C, reject: false }]);
  });

  test("trap 2: a candidate asks for votes after its own term and vote are durable", () => {
    const cluster = lone();
    cluster.holdDisk(A);
    cluster.step(A, { kind: "campaign" });
    cluster.receive(preVoteResp([B, A, 2]));
    expect(cluster.status(A)).toMatchObject({ role: "candidate", term: 2 });
    expect(cluster.node(A).sentOf("MsgVote")).toEqual([]);
    cluster.releaseDisk(A);
    expect(
      cluster
        .node(A)
        .sentOf("MsgVote")
        .map(({ to }) => to),
    ).toEqual([B, C]);
  });

  test("trap 2: the term is written with, and in front of, the first entry of that term", () => {
    const cluster = lone();
    cluster.holdDisk(A);
    cluster.receive(app([B, A, 4], { entries: entriesOf([4]) }));
    const [write] = cluster.node(A).writes;
    expect(write).toMatchObject({ hardState: { term: 4 }, entries: [{ term: 4 }], mustSync: true });
    expect(cluster.node(A).sentOf("MsgAppResp"), "no acknowledgement before the sync").toEqual([]);
    cluster.releaseDisk(A);
    expect(cluster.node(A).sentOf("MsgAppResp")).toMatchObject([{ to: B, index: 2, reject: false }]);
  });

  test("trap 2: an acknowledgement without new entries waits for the writes that it speaks of", () => {
    const cluster = lone();
    cluster.holdDisk(A);
    const message = app([B, A, 2], { entries: entriesOf([2]) });
    cluster.receive(message);
    cluster.receive(message);
    expect(cluster.node(A).sentOf("MsgAppResp"), "the repetition is no short cut").toEqual([]);
    cluster.releaseDisk(A);
    expect(cluster.node(A).sentOf("MsgAppResp").length).toBe(2);
  });

  test("trap 3: a repeated request by the same candidate is granted again, but not before the first is durable", () => {
    const cluster = lone();
    cluster.holdDisk(A);
    cluster.receive(vote([B, A, 2]));
    cluster.receive(vote([B, A, 2]));
    expect(cluster.node(A).sent).toEqual([]);
    cluster.releaseDisk(A);
    cluster.receive(vote([B, A, 2]));
    expect(
      cluster
        .node(A)
        .sentOf("MsgVoteResp")
        .map(({ to, reject }) => [to, reject]),
    ).toEqual([
      [B, false],
      [B, false],
      [B, false],
    ]);
  });
});

describe("logs", () => {
  test("trap 4: a shorter log with a later last term is newer than a longer one", () => {
    const cluster = new TestCluster({ voters: THREE, running: [A, B], logs: { [A]: [1, 1, 1, 1], [B]: [2] }, term: 2 });
    cluster.act(A, { kind: "campaign" });
    expect(cluster.status(A).role, "the longer log must not win").not.toBe("leader");
    cluster.elect(B);
    expect(cluster.status(A)).toMatchObject({ lastIndex: 3, lastTerm: 3 });
  });

  test("trap 5: a late append of the first entries does not erase acknowledged ones behind them", () => {
    const cluster = lone();
    cluster.receive(app([B, A, 2], { entries: entriesOf([2, 2, 2, 2]) }));
    cluster.receive(app([B, A, 2], { entries: entriesOf([2, 2]) }));
    cluster.receive(app([B, A, 2]));
    expect(cluster.status(A).lastIndex).toBe(5);
  });

  test("trap 5: only what conflicts, and what follows it, is deleted", () => {
    const cluster = lone({ logs: { [A]: [1, 1, 2, 2] } });
    cluster.receive(app([B, A, 3], { entries: entriesOf([1, 1, 3]) }));
    expect([2, 3, 4, 5].map((index) => cluster.node(A).raft.termAt(index))).toEqual([1, 1, 3, undefined]);
  });

  test("trap 6: a follower commits up to what this very message verified, not up to its last index", () => {
    const cluster = lone({ logs: { [A]: [1, 1, 1] } });
    cluster.receive(app([B, A, 3], { index: 2, logTerm: 1, commit: 4 }));
    expect(cluster.status(A).commit, "3 and 4 may be other entries at the leader").toBe(2);
  });

  test("trap 6: a heartbeat never names more than the follower is known to hold", () => {
    const cluster = led();
    const stop = cluster.drop(({ type, to }) => type === "MsgApp" && to === C);
    cluster.propose(A, "x");
    cluster.advance(60);
    const last = cluster
      .node(A)
      .sentOf("MsgHeartbeat")
      .findLast(({ to }) => to === C);
    expect(cluster.status(A).commit).toBe(3);
    expect(last?.commit).toBe(2);
    stop();
  });

  test("trap 7: a refusal that arrives after a success is stale: the match index never falls within a term", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    cluster.propose(A, "x", "y");
    cluster.receive(appResp([B, A, 2], { index: 4 }));
    cluster.receive(appResp([B, A, 2], { index: 3, reject: true, rejectHint: 1, logTerm: 1 }));
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    const progress = cluster.node(A).raft.progressOf(B);
    expect([progress?.state, progress?.match, progress?.next]).toEqual(["replicate", 4, 5]);
    expect(cluster.status(A).commit).toBe(4);
  });
});

describe("counting and membership", () => {
  test("trap 8: a voter is counted once, however often it answers", () => {
    const cluster = lone({ voters: FIVE });
    cluster.step(A, { kind: "campaign" });
    for (let i = 0; i < 5; i++) cluster.receive(preVoteResp([B, A, 2]));
    expect(cluster.status(A).role).toBe("pre-candidate");
    cluster.receive(preVoteResp([C, A, 2]));
    for (let i = 0; i < 5; i++) cluster.receive(voteResp([B, A, 2]));
    expect(cluster.status(A).role).toBe("candidate");
    cluster.receive(voteResp([C, A, 2]));
    for (let i = 0; i < 5; i++) cluster.receive(appResp([B, A, 2], { index: 2 }));
    expect(cluster.status(A)).toMatchObject({ role: "leader", commit: 1 });
  });

  test("trap 8: the first answer of a voter counts, whatever it seems to say later", () => {
    const cluster = lone({ voters: FIVE });
    cluster.step(A, { kind: "campaign" });
    for (const peer of [B, C]) cluster.receive(preVoteResp([peer, A, 2]));
    cluster.receive(voteResp([B, A, 2], true));
    cluster.receive(voteResp([B, A, 2]));
    cluster.receive(voteResp([C, A, 2]));
    expect(cluster.status(A).role, "A and C are two of five").toBe("candidate");
  });

  test("trap 8: learners neither elect nor commit, and never campaign", () => {
    const cluster = lone({ learners: [D, E] });
    cluster.step(A, { kind: "campaign" });
    for (const learner of [D, E]) cluster.receive(preVoteResp([learner, A, 2]));
    expect(cluster.status(A).role).toBe("pre-candidate");
    cluster.electWith(A, B);
    for (const learner of [D, E]) cluster.receive(appResp([learner, A, 2], { index: 2 }));
    expect(cluster.status(A).commit).toBe(1);
    const learning = lone({ running: [D], learners: [D] });
    learning.advance(2_000);
    expect(learning.status(D)).toMatchObject({ role: "follower", term: 1 });
    expect(learning.step(D, { kind: "campaign" })).toMatchObject({ ok: false, code: "NOT_PROMOTABLE" });
  });

  test("trap 8: heartbeat answers of learners do not keep a leader without a quorum in office", () => {
    const cluster = led({ learners: [D] });
    cluster.isolate(A, D);
    cluster.advance(400);
    expect(cluster.status(A).role).not.toBe("leader");
  });

  test("trap 10: no change before an entry of the leader's own term is committed, nor while another is pending", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    expect(cluster.change(A, addLearner(D))).toMatchObject({ ok: false, code: "CONF_CHANGE_PENDING" });
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    expect(cluster.change(A, addLearner(D)).ok).toBe(true);
    expect(cluster.change(A, addLearner(E))).toMatchObject({ ok: false, code: "CONF_CHANGE_PENDING" });
    cluster.receive(appResp([B, A, 2], { index: 3 }));
    expect(cluster.change(A, addLearner(E)).ok).toBe(true);
  });

  test("trap 10: a leader that inherits an uncommitted change proposes no other before that is committed", () => {
    const change = { operations: [addLearner(D)] };
    const inherited: Entry = { term: 2, index: 2, type: "EntryConfChange", data: encodeConfChange(change) };
    const cluster = lone();
    const { snapshot } = cluster.node(A).durable;
    cluster.start(A, { hardState: { term: 2, vote: null, commit: 1 }, snapshot, entries: [inherited] });
    cluster.electWith(A, B);
    expect(cluster.change(A, addLearner(E))).toMatchObject({ ok: false, code: "CONF_CHANGE_PENDING" });
    cluster.receive(appResp([B, A, 3], { index: 3 }));
    expect(cluster.status(A).configuration.learners).toEqual([D]);
    expect(cluster.change(A, addLearner(E)).ok).toBe(true);
  });

  test("trap 11: a change takes effect when it is appended, and truncation takes it back", () => {
    const cluster = led();
    const before = cluster.status(A).configuration;
    cluster.isolate(A);
    cluster.change(A, addVoter(D));
    expect(cluster.status(A).configuration.voters).toEqual([A, B, C, D]);
    expect(cluster.status(A).committedConfiguration).toEqual(before);
    cluster.receive(app([B, A, 3], { index: 2, logTerm: 2, entries: entriesOf([3], 3), commit: 3 }));
    expect(cluster.status(A)).toMatchObject({ lastTerm: 3, commit: 3 });
    expect(cluster.status(A).configuration).toEqual(before);
    expect(cluster.node(A).eventsOf("configuration"), "nobody was told of what was never committed").toEqual([]);
  });

  test("trap 11: a restart finds the same effective and committed configurations in the log", () => {
    const cluster = led();
    const cut = cluster.isolate(A);
    cluster.change(A, addVoter(D));
    const before = cluster.status(A);
    cluster.restart(A);
    cut();
    expect(cluster.status(A).configuration).toEqual(before.configuration);
    expect(cluster.status(A).committedConfiguration).toEqual(before.committedConfiguration);
  });

  test("trap 12: a leader that is leaving leads on until that is committed, and does not count for the new half", () => {
    const cluster = lone();
    cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    cluster.change(A, remove(A), addVoter(D));
    cluster.receive(appResp([B, A, 2], { index: 3 }));
    expect(cluster.status(A).commit, "A and B are two of the old three, but only B is of the new").toBe(2);
    cluster.receive(appResp([D, A, 2], { index: 3 }));
    expect(cluster.status(A)).toMatchObject({ role: "leader", commit: 3, configuration: { voters: [B, C, D] } });
    cluster.receive(appResp([B, A, 2], { index: 4 }));
    expect(cluster.status(A), "it leads on, uncounted").toMatchObject({ role: "leader", commit: 3 });
    cluster.receive(appResp([D, A, 2], { index: 4 }));
    expect(cluster.status(A)).toMatchObject({ role: "follower", commit: 4 });
  });

  test("trap 12: the last to know of a leader's departure still learn that it is committed", () => {
    const cluster = led();
    cluster.change(A, remove(A));
    for (const peer of [B, C]) expect(cluster.status(peer).configuration.voters, peer).toEqual([B, C]);
  });

  test("trap 12: a removed node with the newest log does not block the election of the others", () => {
    const cluster = led({ voters: FIVE });
    cluster.change(A, remove(A));
    const drop = cluster.drop(({ from }) => from === A);
    cluster.advance(1_000);
    drop();
    const leader = cluster.leader();
    expect([B, C, D, E]).toContain(leader);
    cluster.advance(2_000);
    expect(cluster.leader(), "and does not depose them later").toBe(leader);
  });

  test("trap 13: a wiped disk under an old node id is another peer: its vote and its copies do not count", () => {
    const cluster = lone();
    cluster.step(A, { kind: "peer-seen", peer: C2 });
    cluster.step(A, { kind: "campaign" });
    cluster.receive(preVoteResp([C2, A, 2]));
    expect(cluster.status(A).role).toBe("pre-candidate");
    cluster.receive(preVoteResp([B, A, 2]));
    cluster.receive(voteResp([C2, A, 2]));
    expect(cluster.status(A).role).toBe("candidate");
    cluster.receive(voteResp([B, A, 2]));
    cluster.receive(appResp([C2, A, 2], { index: 2 }));
    cluster.receive(heartbeatResp([C2, A, 2]));
    expect(cluster.status(A)).toMatchObject({ role: "leader", commit: 1 });
    expect(cluster.node(A).raft.refusals["not-a-member"]).toBe(4);
  });

  test("trap 13: a node that voted, lost its disk and came back votes for nobody in its old place", () => {
    const cluster = new TestCluster({ voters: THREE, running: [B, C] });
    cluster.receive(vote([A, C, 2]));
    expect(cluster.status(C).vote).toBe(A);
    cluster.crash(C);
    cluster.start(C2);
    for (const [one, other] of [
      [B, C2],
      [C2, B],
    ] as const)
      cluster.step(one, { kind: "peer-seen", peer: other });
    cluster.advance(3_000);
    expect(cluster.status(B), "B's own vote and the wiped one would have been a majority").toMatchObject({
      role: "pre-candidate",
      term: 1,
    });
    expect(cluster.status(C2)).toMatchObject({ role: "follower", term: 0 });
  });
});

describe("pre-votes", () => {
  test("trap 14: a granted pre-vote carries the requested term and changes nothing; a refusal carries our own", () => {
    const cluster = lone({ logs: { [A]: [4] } });
    const before = cluster.status(A);
    cluster.receive(preVote([B, A, 7], { index: 2, logTerm: 4 }));
    cluster.receive(preVote([C, A, 8], { index: 9, logTerm: 3 }));
    expect(cluster.status(A)).toEqual(before);
    expect(cluster.node(A).writes).toEqual([]);
    expect(cluster.node(A).sentOf("MsgPreVoteResp")).toMatchObject([
      { to: B, term: 7, reject: false },
      { to: C, term: 4, reject: true },
    ]);
  });

  test("trap 14: a pre-candidate that lags behind catches up with the term of whoever refuses it", () => {
    const cluster = new TestCluster({ voters: THREE, running: [A, B], logs: { [B]: [5] } });
    cluster.act(A, { kind: "campaign" });
    expect(cluster.status(A)).toMatchObject({ role: "follower", term: 5, vote: null });
  });

  test("trap 15: a pre-vote is only granted by those who miss the leader themselves", () => {
    const cluster = led();
    const cut = cluster.drop(({ from, to }) => from === A && to === C);
    cluster.advance(3_000);
    expect(cluster.node(C).sentOf("MsgPreVote").length, "C asks").toBeGreaterThan(0);
    expect(cluster.status(A), "B still hears A, so nobody helps C").toMatchObject({ role: "leader", term: 2 });
    cut();
  });

  test("trap 15: a candidate whose vote is over goes back to asking first, without entering another term", () => {
    const cluster = lone();
    cluster.step(A, { kind: "campaign" });
    cluster.receive(preVoteResp([B, A, 2]));
    expect(cluster.status(A)).toMatchObject({ role: "candidate", term: 2 });
    cluster.advance(300);
    expect(cluster.status(A), "timed out").toMatchObject({ role: "pre-candidate", term: 2 });
    cluster.receive(preVoteResp([B, A, 3]));
    for (const peer of [B, C]) cluster.receive(voteResp([peer, A, 3], true));
    expect(cluster.status(A), "refused").toMatchObject({ role: "follower", term: 3 });
    cluster.advance(300);
    expect(cluster.status(A)).toMatchObject({ role: "pre-candidate", term: 3 });
  });

  test("trap 15: a pre-vote of an earlier campaign does not count for this one", () => {
    const cluster = lone();
    cluster.step(A, { kind: "campaign" });
    cluster.receive(heartbeat([C, A, 3]));
    cluster.advance(300);
    expect(cluster.status(A)).toMatchObject({ role: "pre-candidate", term: 3 });
    cluster.receive(preVoteResp([B, A, 2]));
    cluster.receive(preVoteResp([B, A, 5]));
    expect(cluster.status(A)).toMatchObject({ role: "pre-candidate", term: 3 });
  });
});
