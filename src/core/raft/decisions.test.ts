// The design's decisions about members and leaders: D4 (quorum and health), D5 (lost disks), D7 (forced transfer),
// D8 (priority), D9 (when a leader may act).

import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import type { Configuration } from "./types.ts";
import { addLearner, appResp, peersNamed, remove, textOf, vote } from "./test-messages.ts";

const [A, B, C, D, E] = peersNamed(5) as [PeerKey, PeerKey, PeerKey, PeerKey, PeerKey];
const THREE = [A, B, C];
/** The nodes of A, C and D with other disks. */
const A2 = peerKey("n1", "b");
const C2 = peerKey("n3", "b");
const C3 = peerKey("n3", "c");
const D2 = peerKey("n4", "b");

function led(options: Partial<ClusterOptions> = {}): TestCluster {
  const cluster = new TestCluster({ voters: THREE, ...options });
  cluster.elect(A);
  return cluster;
}

/** Another disk starts and meets everybody who runs. */
function appear(cluster: TestCluster, fresh: PeerKey): void {
  cluster.start(fresh);
  for (const [peer, node] of cluster.nodes) {
    if (!node.alive || peer === fresh) continue;
    cluster.step(peer, { kind: "peer-seen", peer: fresh });
    cluster.step(fresh, { kind: "peer-seen", peer });
  }
}

function votersOf(cluster: TestCluster): readonly PeerKey[] {
  return cluster.status(A).configuration.voters;
}

describe("D4: health never changes the quorum", () => {
  test("D4: a follower that does not answer for ten heartbeats is flagged, and again when it is back", () => {
    const cluster = led();
    const heal = cluster.isolate(C);
    cluster.advance(500);
    expect(cluster.node(A).eventsOf("follower-unresponsive")).toEqual([]);
    cluster.advance(100);
    expect(cluster.node(A).eventsOf("follower-unresponsive")).toEqual([{ kind: "follower-unresponsive", peer: C }]);
    heal();
    cluster.advance(100);
    expect(cluster.node(A).eventsOf("follower-recovered")).toEqual([{ kind: "follower-recovered", peer: C }]);
  });

  test("D4: an unhealthy follower is no transfer target, neither by name, nor by force, nor as the best one", () => {
    const cluster = led();
    cluster.isolate(B);
    cluster.advance(600);
    for (const force of [false, true]) {
      const answer = cluster.act(A, { kind: "transfer", target: B, force });
      expect(answer).toMatchObject({ ok: false, code: "TRANSFER_TARGET_INVALID" });
    }
    expect(cluster.status(A)).toMatchObject({ role: "leader", transfer: null });
    cluster.act(A, { kind: "transfer", target: null, force: false });
    expect(cluster.leader()).toBe(C);
  });

  test("D4: flagged voters still count: without a majority of the configured ones nothing is committed", () => {
    const cluster = led({ voters: [A, B, C, D, E] });
    cluster.isolate(D, E);
    cluster.advance(1_000);
    expect(cluster.node(A).eventsOf("follower-unresponsive").length).toBe(2);
    cluster.drop(({ to }) => to === C);
    cluster.propose(A, "x");
    expect(cluster.status(A), "A and B are two of three healthy ones, but of five voters").toMatchObject({
      lastIndex: 3,
      commit: 2,
    });
    cluster.advance(400);
    expect(cluster.status(A).role).not.toBe("leader");
  });
});

describe("D5: a lost disk is replaced", () => {
  test("D5: by itself when the old disk is silent: first a learner, then swapped by one joint change", () => {
    const cluster = led();
    cluster.propose(A, "x");
    cluster.crash(C);
    appear(cluster, C2);
    cluster.advance(1_900);
    expect(cluster.status(A).configuration, "not before the old one was silent for two seconds").toMatchObject({
      voters: THREE,
      learners: [],
    });
    cluster.advance(1_000);
    expect(votersOf(cluster)).toEqual([A, B, C2]);
    const steps = cluster
      .node(A)
      .eventsOf("configuration")
      .map(({ configuration }) => configuration);
    expect(steps).toMatchObject([
      { voters: THREE, learners: [C2] },
      { voters: [A, B, C2], votersOutgoing: THREE, learners: [] },
      { voters: [A, B, C2], votersOutgoing: [], learners: [] },
    ]);
    expect(cluster.node(C2).applied.map(textOf)).toContain("");
    cluster.crash(B);
    expect(cluster.propose(A, "with the new disk's vote").ok).toBe(true);
    expect(cluster.status(A).commit).toBe(cluster.status(A).lastIndex);
  });

  test("D5: a new disk that does not catch up stays a learner", () => {
    const cluster = led();
    cluster.crash(C);
    appear(cluster, C2);
    cluster.drop(({ type, to }) => to === C2 && (type === "MsgApp" || type === "MsgSnap"));
    cluster.advance(10_000);
    expect(cluster.status(A).configuration).toMatchObject({ voters: THREE, learners: [C2] });
  });

  test("D5: where that needs clearance, only a disk that was cleared with these members, by this leader, is swapped", () => {
    const cluster = led({ voters: [A, B, C, D, E], admits: { swapsNeedClearance: true } });
    const now = (): Configuration => cluster.status(A).configuration;
    const clear = (...peers: PeerKey[]): unknown =>
      cluster.act(A, { kind: "clear-disks", cleared: { peers, configuration: now() } });
    clear(C, D);
    [C, D].forEach((lost) => cluster.crash(lost));
    [C2, D2].forEach((fresh) => appear(cluster, fresh));
    cluster.advance(10_000);
    expect(now(), "what was cleared before they learn").toMatchObject({ voters: [A, B, C, D, E], learners: [C2, D2] });
    clear(C, D);
    cluster.advance(5_000);
    expect(votersOf(cluster), "one may have been cleared because of the other").toEqual([A, B, C2, D, E]);
    clear(D);
    cluster.act(A, { kind: "reelect" });
    cluster.advance(5_000);
    expect(votersOf(cluster), "another term").toEqual([A, B, C2, D, E]);
    clear(D);
    cluster.advance(5_000);
    expect(votersOf(cluster)).toEqual([A, B, C2, D2, E]);
  });

  test("D5: two living disks under one node id are an operator's matter", () => {
    const cluster = led();
    appear(cluster, C2);
    cluster.advance(10_000);
    expect(cluster.status(A).configuration).toMatchObject({ voters: THREE, learners: [] });
  });

  test("D5: on request the new disk replaces one that still answers, for good", () => {
    const cluster = led();
    appear(cluster, C2);
    expect(cluster.act(A, { kind: "replace", nodeId: "n3" }).ok).toBe(true);
    cluster.step(A, { kind: "peer-seen", peer: C });
    cluster.advance(1_000);
    expect(votersOf(cluster)).toEqual([A, B, C2]);
    cluster.step(A, { kind: "peer-seen", peer: C });
    cluster.advance(1_000);
    expect(votersOf(cluster), "the old disk goes on dialling, and is not swapped back").toEqual([A, B, C2]);
  });

  test("D5: one request is for one disk: a third one needs its own", () => {
    const cluster = led();
    appear(cluster, C2);
    cluster.act(A, { kind: "replace", nodeId: "n3" });
    cluster.advance(1_000);
    cluster.crash(C);
    appear(cluster, C3);
    cluster.advance(1_900);
    expect(votersOf(cluster)).toEqual([A, B, C2]);
    cluster.crash(C2);
    cluster.advance(3_000);
    expect(votersOf(cluster), "silence still replaces by itself").toEqual([A, B, C3]);
  });

  test("D5: a leader does not take itself for a silent disk when a clone of its node appears", () => {
    const cluster = led();
    appear(cluster, A2);
    cluster.advance(10_000);
    expect(cluster.status(A)).toMatchObject({ role: "leader", configuration: { voters: THREE, learners: [] } });
  });

  test("D5: a request without a new disk is refused", () => {
    const cluster = led();
    for (const nodeId of ["n3", "n9"]) {
      expect(cluster.act(A, { kind: "replace", nodeId })).toMatchObject({ ok: false, code: "CONF_CHANGE_INVALID" });
    }
    expect(cluster.act(B, { kind: "replace", nodeId: "n3" })).toMatchObject({ ok: false, code: "NOT_LEADER" });
    appear(cluster, A2);
    const own = cluster.act(A, { kind: "replace", nodeId: "n1" });
    expect(own).toMatchObject({ ok: false, message: expect.stringContaining("transfer leadership first") });
  });

  test("D5: a learner's lost disk is swapped for its new one in one change, without a promotion", () => {
    const cluster = led({ learners: [D] });
    cluster.crash(D);
    appear(cluster, D2);
    cluster.advance(5_000);
    expect(
      cluster
        .node(A)
        .eventsOf("configuration")
        .map(({ configuration }) => configuration.learners),
    ).toEqual([[D2]]);
    expect(votersOf(cluster)).toEqual(THREE);
    expect(cluster.status(D2)).toMatchObject({ leader: A, lastIndex: cluster.status(A).lastIndex });
  });
});

describe("D7: a forced transfer", () => {
  /** C lacks an entry that A and B have committed. */
  function withLaggard(options: Partial<ClusterOptions> = {}): TestCluster {
    const cluster = led(options);
    cluster.drop(({ type, to }) => type === "MsgApp" && to === C);
    cluster.propose(A, "C does not have this");
    return cluster;
  }

  test("D7: refused by the others it changes nothing, and the leader resumes at once", () => {
    const cluster = withLaggard();
    const before = THREE.map((peer) => cluster.status(peer));
    cluster.act(A, { kind: "transfer", target: C, force: true });
    expect(cluster.node(C).sentOf("MsgPreVote"), "C asked first").toMatchObject([
      { transfer: true },
      { transfer: true },
    ]);
    expect(THREE.map((peer) => cluster.status(peer))).toEqual(before);
    expect(cluster.node(A).eventsOf("transfer")).toMatchObject([
      {
        result: { success: false, oldLeaderId: A, newLeaderId: A, message: expect.stringContaining("nothing changed") },
      },
    ]);
    expect(cluster.propose(A, "goes on").ok).toBe(true);
    expect(cluster.node(B).applied.map(textOf)).toContain("goes on");
  });

  test("D7: it does not wait for the target's log where that is good enough", () => {
    const cluster = led();
    const held = cluster.hold(({ type }) => type === "MsgAppResp");
    cluster.propose(A, "acknowledged by nobody yet");
    cluster.act(A, { kind: "transfer", target: C, force: true });
    expect(cluster.status(C)).toMatchObject({ role: "leader", term: 3 });
    held.release();
    expect(cluster.node(B).applied.map(textOf), "and loses nothing").toContain("acknowledged by nobody yet");
  });

  test("D7: the target goes on following its leader while it asks", () => {
    const cluster = led();
    cluster.drop(({ type }) => type === "MsgPreVoteResp");
    cluster.act(A, { kind: "transfer", target: C, force: true });
    expect(cluster.status(C)).toMatchObject({ role: "pre-candidate", leader: A, term: 2 });
    cluster.advance(300);
    cluster.propose(A, "y");
    expect(cluster.status(C)).toMatchObject({ role: "follower", leader: A, term: 2 });
    expect(cluster.node(C).applied.map(textOf)).toEqual(["", "y"]);
  });

  test("D7: a refusal that comes late, or twice, does not end a later transfer to the same target", () => {
    const cluster = withLaggard();
    const late = cluster.hold(({ type }) => type === "MsgTransferRefused");
    cluster.act(A, { kind: "transfer", target: C, force: true });
    cluster.advance(300);
    expect(cluster.node(A).eventsOf("transfer"), "given up").toMatchObject([{ result: { isUnknown: true } }]);
    const [refusal] = late.messages;
    late.release(() => []);

    const asking = cluster.hold(({ type }) => type === "MsgPreVoteResp");
    cluster.act(A, { kind: "transfer", target: C, force: true });
    cluster.receive(refusal!);
    expect(cluster.status(A).transfer, "C is still asking").toBe("handing-over");
    expect(cluster.node(A).eventsOf("transfer")).toHaveLength(1);
    asking.release();
    expect(cluster.node(A).eventsOf("transfer")[1], "its own refusal ends it").toMatchObject({
      result: { success: false, isUnknown: false, message: expect.stringContaining("nothing changed") },
    });
    cluster.act(A, { kind: "transfer", target: B, force: false });
    expect(cluster.leader(), "and the next one is as good as any").toBe(B);
  });

  test("D7: a refusal that answers nothing is no answer", () => {
    const cluster = led();
    cluster.drop(({ type, to }) => type === "MsgApp" && to === C);
    cluster.propose(A, ...new Array<string>(100).fill("x"));
    cluster.act(A, { kind: "transfer", target: C, force: false });
    cluster.receive({ type: "MsgTransferRefused", from: C, to: A, term: 2, attempt: 0 });
    expect(cluster.status(A).transfer).toBe("catching-up");
  });

  test("D7: a target that was just demoted says no instead of staying silent", () => {
    const cluster = led({ voters: [A, B, C, D] });
    const held = cluster.hold(({ type }) => type === "MsgTimeoutNow");
    cluster.act(A, { kind: "transfer", target: D, force: false });
    cluster.receive(appResp([B, A, 2], { index: 2 }));
    const { configuration } = cluster.status(D);
    const demoted = { ...configuration, voters: THREE, learners: [D] };
    cluster.start(D, {
      hardState: { term: 2, vote: null, commit: 9 },
      snapshot: { index: 9, term: 2, configuration: demoted },
      entries: [],
    });
    cluster.advance(60);
    held.release();
    expect(cluster.node(A).eventsOf("transfer")).toMatchObject([{ result: { success: false } }]);
    expect(cluster.propose(A, "x").ok).toBe(true);
  });
});

describe("D8: priority", () => {
  const preferC = (peer: PeerKey) => ({ enablePriority: true, nodePriority: peer === C ? 10 : 0 });

  test("D8: leadership goes to a preferred node once it was healthy and caught up for 30 s", () => {
    const cluster = led({ election: preferC });
    cluster.advance(29_900);
    expect(cluster.leader()).toBe(A);
    cluster.advance(300);
    expect(cluster.leader()).toBe(C);
    cluster.advance(600_000);
    expect(cluster.leader(), "and stays there").toBe(C);
  });

  test("D8: a preferred node that lags or flaps starts its 30 s again", () => {
    const cluster = led({ election: preferC });
    cluster.advance(20_000);
    const heal = cluster.isolate(C);
    cluster.advance(1_000);
    heal();
    cluster.advance(29_000);
    expect(cluster.leader()).toBe(A);
    cluster.advance(1_500);
    expect(cluster.leader()).toBe(C);
  });

  test("D8: at most once in five minutes, also when the first attempt failed", () => {
    const cluster = led({ election: preferC });
    cluster.drop(({ type }) => type === "MsgTimeoutNow");
    cluster.advance(300_000);
    expect(cluster.node(A).sentOf("MsgTimeoutNow").length).toBe(1);
    cluster.advance(60_000);
    expect(cluster.node(A).sentOf("MsgTimeoutNow").length).toBe(2);
  });

  test("D8: at most once in five minutes, also over terms: a preferred node that can't hold leadership is left alone", () => {
    const cluster = led({ election: preferC });
    cluster.advance(31_000);
    expect(cluster.leader()).toBe(C);
    cluster.act(C, { kind: "transfer", target: A, force: false });
    expect(cluster.leader()).toBe(A);
    cluster.advance(200_000);
    expect(cluster.leader(), "31 s later it would bounce").toBe(A);
    cluster.advance(101_000);
    expect(cluster.leader()).toBe(C);
  });

  test("D8: a node of higher priority grants its vote to one of lower", () => {
    const cluster = new TestCluster({ voters: THREE, running: [C], election: preferC });
    cluster.receive(vote([A, C, 2]));
    expect(cluster.node(C).sentOf("MsgVoteResp")).toMatchObject([{ to: A, reject: false }]);
  });
});

describe("D9: when a leader may act", () => {
  test("D9: a leader is established once its own no-op is applied, not when it is elected or commits", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.node(A).applyHeld = true;
    cluster.elect(A);
    expect(cluster.status(A)).toMatchObject({ role: "leader", commit: 2, applied: 1, established: false });
    cluster.releaseApply(A);
    expect(cluster.status(A).established).toBe(true);
    expect(cluster.node(A).eventsOf("established")).toEqual([{ kind: "established", term: 2, index: 2 }]);
  });

  test("D9: what it inherited and applies first does not establish it", () => {
    const cluster = new TestCluster({ voters: [A], limits: { applyBytesMax: 1 }, logs: { [A]: [1, 1] } });
    cluster.node(A).applyHeld = true;
    cluster.elect(A);
    cluster.step(A, { kind: "applied", index: 2 });
    expect(cluster.status(A)).toMatchObject({ commit: 4, applied: 2, established: false });
    cluster.releaseApply(A);
    expect(cluster.status(A)).toMatchObject({ applied: 4, established: true });
  });

  test("D9: a leader that is deposed before that is never established", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.node(A).applyHeld = true;
    cluster.elect(A);
    cluster.receive(appResp([B, A, 3]));
    cluster.releaseApply(A);
    expect(cluster.status(A).established).toBe(false);
    expect(cluster.node(A).eventsOf("established")).toEqual([]);
  });

  test("D9: a leader that hands over, or is removed, is established no more", () => {
    for (const end of [
      (cluster: TestCluster) => cluster.act(A, { kind: "transfer", target: B, force: false }),
      (cluster: TestCluster) => cluster.change(A, remove(A)),
      (cluster: TestCluster) => cluster.change(A, remove(A), addLearner(D)),
    ]) {
      const cluster = led();
      expect(cluster.status(A).established).toBe(true);
      end(cluster);
      expect(cluster.status(A)).toMatchObject({ role: "follower", established: false });
    }
  });
});
