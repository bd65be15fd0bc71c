import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { REMOVED_WORD_MS, STRANGER_REPORT_AFTER_MS } from "../kit/limits.ts";
import { encodeConfChange } from "./codec.ts";
import { configurationOf } from "./membership/membership.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import * as say from "./test-messages.ts";
import type { ConfChangeOperation, Entry, StepResult } from "./types.ts";

type Six = [PeerKey, PeerKey, PeerKey, PeerKey, PeerKey, PeerKey];
const [A, B, C, D, E, F] = say.peersNamed(6) as Six;

function meet(cluster: TestCluster, ...peers: readonly PeerKey[]): void {
  const alive = peers.filter((peer) => cluster.node(peer).alive);
  for (const one of alive) for (const other of alive) cluster.step(one, { kind: "peer-seen", peer: other });
  cluster.settle();
}

function change(cluster: TestCluster, leader: PeerKey, ...operations: ConfChangeOperation[]): void {
  expect(cluster.change(leader, ...operations)).toMatchObject({ ok: true });
  cluster.advance(300);
}

function confEntry(index: number, term: number, ...operations: ConfChangeOperation[]): Entry {
  return { term, index, type: "EntryConfChange", data: encodeConfChange({ operations }) };
}

describe("a disk that was removed", () => {
  test.each([["a learner", say.addLearner(D)] as const, ["a voter", say.addVoter(D)] as const])(
    "is not added again, as %s: the operator hears that it needs an empty directory",
    (_, operation) => {
      const cluster = new TestCluster({ voters: [A, B, C, D] });
      cluster.elect(A);
      change(cluster, A, say.remove(D));
      expect(cluster.change(A, operation)).toMatchObject({
        ok: false,
        code: "CONF_CHANGE_INVALID",
        message: expect.stringContaining("empty data directory"),
      });
      cluster.start(peerKey("n4", "b"));
      meet(cluster, A, B, C, peerKey("n4", "b"));
      change(cluster, A, say.addVoter(peerKey("n4", "b")));
      expect(cluster.status(C).configuration).toMatchObject({ voters: [A, B, C, "n4@b"], removed: [D] });
    },
  );

  /**
   * As earlier releases could do: D was removed, and added again while C was away. C has only the removal, A, B and D have both,
   * and D leads when C is back.
   */
  function addedAgain(options: Partial<ClusterOptions> = {}): TestCluster {
    const cluster = new TestCluster({ voters: [A, B, C, D], running: [], ...options });
    const founding = { index: 1, term: 1, configuration: configurationOf([A, B, C, D]) };
    const removed = confEntry(2, 1, say.remove(D));
    const back = [confEntry(3, 1, say.addLearner(D)), confEntry(4, 1, say.addVoter(D))];
    for (const peer of [A, B, D]) {
      const hardState = { term: 1, vote: null, commit: 4 };
      cluster.start(peer, { hardState, snapshot: founding, entries: [removed, ...back] });
    }
    cluster.start(C, { hardState: { term: 1, vote: null, commit: 2 }, snapshot: founding, entries: [removed] });
    return cluster;
  }

  test("and was added again by an earlier release is obeyed by a voter that missed that, because a member vouches", () => {
    const cluster = addedAgain();
    const heal = cluster.isolate(C);
    cluster.elect(D);
    heal();
    expect(cluster.node(C).raft.wasRemoved(D)).toBe(true);
    meet(cluster, A, B, C, D);
    cluster.advance(2_000);
    expect(cluster.status(C)).toMatchObject({ leader: D, lastIndex: cluster.status(D).lastIndex });
  });

  test("is let in at the door once a member vouches for it, though it could not speak for itself before", () => {
    const cluster = addedAgain();
    cluster.drop(({ from, to }) => from === D && to === C);
    cluster.elect(D);
    meet(cluster, A, B, C);
    cluster.advance(2_000);
    expect(cluster.node(C).raft.wasRemoved(D)).toBe(false);
  });

  test("is obeyed where the operator trusts it, and not where another disk of that node is a member", () => {
    const cluster = addedAgain({ admits: { trusted: ["n4"] } });
    for (const gone of [A, B]) cluster.crash(gone);
    meet(cluster, C, D);
    expect(cluster.receive(say.heartbeat([D, C, 2])).ok).toBe(true);
    const swapped = new TestCluster({ voters: [A, B, C], admits: { trusted: ["n3"] } });
    swapped.elect(A);
    change(swapped, A, say.remove(C), say.addVoter(peerKey("n3", "b")));
    swapped.advance(1_000);
    swapped.step(B, { kind: "peer-seen", peer: C });
    expect(swapped.receive(say.heartbeat([C, B, swapped.status(B).term + 1])).ok).toBe(false);
  });

  test("is not vouched in by a member whose configuration is not committed: its log may lack the removal", () => {
    const cluster = new TestCluster({ voters: [A, B, C, D] });
    cluster.elect(A);
    change(cluster, A, say.remove(D));
    const { term } = cluster.status(B);
    const word = { type: "MsgMembers", from: C, to: B, term, index: 99, members: [A, B, C, D] } as const;
    cluster.receive({ ...word, committed: false });
    expect(cluster.receive(say.heartbeat([D, B, term + 1])).ok).toBe(false);
    expect(cluster.status(B)).toMatchObject({ term, leader: A });
    cluster.receive({ ...word, committed: true });
    expect(cluster.receive(say.heartbeat([D, B, term + 1])).ok).toBe(true);
  });
});

describe("a voter that was away while the members changed", () => {
  test("reports that a candidate which it does not know waits for its vote: nobody else is left to lead", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    cluster.elect(A);
    const heal = cluster.isolate(C);
    cluster.start(D);
    meet(cluster, A, B, D);
    change(cluster, A, say.addVoter(D));
    change(cluster, A, say.remove(B));
    for (const gone of [A, B]) cluster.crash(gone);
    heal();
    meet(cluster, C, D);
    cluster.advance(STRANGER_REPORT_AFTER_MS / 2);
    expect(cluster.node(C).eventsOf("stranger-leads")).toEqual([]);
    cluster.advance(3 * STRANGER_REPORT_AFTER_MS);
    expect(cluster.leader()).toBeNull();
    expect(cluster.node(C).eventsOf("stranger-leads")).toMatchObject([{ peer: D }]);
  });

  test("follows the leader that a member names, whatever a removed one with a long tail says", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    cluster.elect(B);
    const healB = cluster.isolate(B);
    for (let at = 0; at < 20; at++) cluster.propose(B, `tail ${at}`);
    cluster.change(B, say.addLearner(E));
    cluster.advance(3_000);
    if (cluster.leader() !== C) cluster.elect(C);
    cluster.start(D);
    meet(cluster, A, C, D);
    change(cluster, C, say.addVoter(D));
    const healA = cluster.isolate(A);
    change(cluster, C, say.remove(B));
    cluster.start(F);
    meet(cluster, C, D, F);
    change(cluster, C, say.addVoter(F));
    cluster.act(C, { kind: "transfer", target: F, force: false });
    cluster.advance(300);
    expect(cluster.leader()).toBe(F);
    healA();
    healB();
    // The doors of the others refuse B; A does not know yet.
    cluster.drop(({ from, to }) => (from === B && to !== A) || (to === B && from !== A));
    for (const other of [B, C, D, F]) {
      cluster.step(A, { kind: "peer-seen", peer: other });
      cluster.step(other, { kind: "peer-seen", peer: A });
    }
    cluster.advance(30_000);
    expect(cluster.status(A)).toMatchObject({ leader: F, configuration: { voters: [A, C, D, F] } });
  });
});

describe("a fresh node that has only the beginning of the log, with a founder who is gone", () => {
  const J = peerKey("n9", "a");

  function begun(): TestCluster {
    const cluster = new TestCluster({ voters: [A], admits: { sponsors: ["n2", "n3"] } });
    cluster.start(J);
    for (const peer of [B, C, D]) cluster.step(J, { kind: "peer-seen", peer });
    cluster.receive(
      say.app([B, J, 9], { index: 0, logTerm: 0, entries: [confEntry(1, 1, say.addVoter(A))], commit: 1 }),
    );
    return cluster;
  }

  const next = (cluster: TestCluster, leader: PeerKey, term: number): StepResult =>
    cluster.receive(
      say.app([leader, J, term], { index: 1, logTerm: 1, entries: [confEntry(2, 1, say.addLearner(J))], commit: 2 }),
    );

  test("goes on with another leader that its operator listed", () => {
    const cluster = begun();
    expect(next(cluster, C, 10).ok).toBe(true);
  });

  test("goes on after a restart, and follows nobody whom its operator did not list", () => {
    const cluster = begun();
    cluster.restart(J);
    for (const peer of [B, C, D]) cluster.step(J, { kind: "peer-seen", peer });
    expect(next(cluster, D, 11).ok).toBe(false);
    expect(next(cluster, B, 9).ok).toBe(true);
    expect(next(cluster, C, 12).ok, "it is a member now, and its log says who leads").toBe(false);
  });
});

test("a node that was called removed campaigns again when nobody has repeated it for a while", () => {
  const cluster = new TestCluster({ voters: [A, B, C] });
  cluster.isolate(C);
  for (let at = 0; at < 3; at++) {
    cluster.act(C, { kind: "removed", by: "n1" });
    cluster.node(C).sent = [];
    cluster.advance(REMOVED_WORD_MS - 1);
    expect(cluster.node(C).sentOf("MsgPreVote")).toEqual([]);
  }
  expect(cluster.node(C).eventsOf("removed"), "reported once").toHaveLength(1);
  cluster.advance(3_000);
  expect(cluster.node(C).sentOf("MsgPreVote").length).toBeGreaterThan(0);
});
