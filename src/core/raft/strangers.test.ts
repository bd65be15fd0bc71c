import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import {
  INTEGER_MAX,
  REMOVED_MAX,
  STRANGER_REPORT_AFTER_MS,
  TERM_JUMP_MAX,
  TERM_RISE_AT_START,
  TERM_RISE_PER_S_MAX,
  VOUCH_MS,
} from "../kit/limits.ts";
import { applyConfChange, configurationOf } from "./membership/membership.ts";
import { TestCluster } from "./test-cluster.ts";
import * as say from "./test-messages.ts";
import type { Configuration, Message } from "./types.ts";

const [A, B, C, D, E] = say.peersNamed(5) as [PeerKey, PeerKey, PeerKey, PeerKey, PeerKey];
const X = peerKey("n9", "9");
/** What `recover --force-new-cluster` adds to a term. */
const RECOVERY = 2 ** 20;

function introduceAll(cluster: TestCluster): void {
  for (const one of cluster.nodes.keys()) {
    for (const other of cluster.nodes.keys()) cluster.step(one, { kind: "peer-seen", peer: other });
  }
  cluster.settle();
}

/** Every kind of message that a peer may send, in this term. */
function everyKind(from: PeerKey, to: PeerKey, term: number, index: number): Message[] {
  const head = { from, to, term } as const;
  const entries = [{ term, index: index + 1, type: "EntryNormal" as const, data: say.bytes("forged") }];
  const snapshot = { index: index + 5, term, configuration: configurationOf([from, to]) };
  return [
    say.app([from, to, term], { index, logTerm: 1, entries, commit: index + 1 }),
    say.appResp([from, to, term], { index }),
    say.appResp([from, to, term], { index, reject: true }),
    say.heartbeat([from, to, term], { commit: index }),
    say.heartbeatResp([from, to, term]),
    { ...head, type: "MsgSnap", snapshot, round: 1 },
    say.vote([from, to, term], { index: 2 ** 40, logTerm: term, transfer: true }),
    say.preVote([from, to, term], { index: 2 ** 40, logTerm: term, transfer: true }),
    say.voteResp([from, to, term], false),
    say.voteResp([from, to, term], true),
    say.preVoteResp([from, to, term], false),
    say.preVoteResp([from, to, term], true),
    { ...head, type: "MsgTimeoutNow", force: false, attempt: 0 },
    { ...head, type: "MsgTransferRefused", attempt: 0 },
    { ...head, type: "MsgReadIndex", context: 1 },
    { ...head, type: "MsgReadIndexResp", context: 1, index: 9 },
    { ...head, type: "MsgMembers", index: 2 ** 40, committed: true, members: [from, to] },
  ];
}

describe("a peer that passed the handshake and is no member", () => {
  test.each([0, 1, 1_000, RECOVERY, TERM_JUMP_MAX, 2 ** 32])(
    "changes nothing at a leader and at a follower, whatever it sends %i terms ahead",
    (ahead) => {
      const cluster = new TestCluster({ voters: [A, B, C] });
      cluster.elect(A);
      cluster.propose(A, "kept");
      for (const to of [A, B]) {
        cluster.step(to, { kind: "peer-seen", peer: X });
        const before = cluster.status(to);
        for (const message of everyKind(X, to, before.term + ahead, before.lastIndex)) {
          expect(cluster.receive(message), message.type).toMatchObject({ code: "MESSAGE_REFUSED" });
        }
        expect(cluster.status(to)).toEqual(before);
      }
      cluster.advance(1_000);
      expect(cluster.leader()).toBe(A);
      expect(cluster.status(A).term).toBe(2);
    },
  );

  test("does not lead the only voter of a cluster", () => {
    const cluster = new TestCluster({ voters: [A] });
    cluster.elect(A);
    cluster.step(A, { kind: "peer-seen", peer: X });
    const { term, lastIndex } = cluster.status(A);
    const entries = [{ term: term + 1, index: lastIndex + 1, type: "EntryNormal" as const, data: say.bytes("forged") }];
    cluster.receive(say.app([X, A, term + 1], { index: lastIndex, logTerm: term, entries, commit: lastIndex + 1 }));
    cluster.settle();
    expect(cluster.status(A)).toMatchObject({ role: "leader", term, lastIndex });
    expect(cluster.node(A).applied.map(say.textOf)).not.toContain("forged");
  });

  test("is not vouched for by one that was removed, nor by a stranger", () => {
    const cluster = new TestCluster({ voters: [A, B, C, D] });
    cluster.elect(A);
    cluster.change(A, say.remove(D));
    const { term } = cluster.status(B);
    cluster.advance(1_000);
    for (const from of [D, X]) {
      cluster.step(B, { kind: "peer-seen", peer: from });
      cluster.receive({ type: "MsgMembers", from, to: B, term, index: 2 ** 40, committed: true, members: [X] });
      cluster.receive(say.heartbeat([X, B, term + 1]));
      expect(cluster.status(B)).toMatchObject({ term, leader: A });
    }
  });

  test("is not vouched for by a member that knows less than we do", () => {
    const cluster = new TestCluster({ voters: [A, B, C, D] });
    cluster.elect(A);
    cluster.change(A, say.remove(D));
    cluster.advance(100);
    const { term } = cluster.status(B);
    cluster.step(B, { kind: "peer-seen", peer: D });
    cluster.receive({ type: "MsgMembers", from: C, to: B, term, index: 1, committed: true, members: [A, B, C, D] });
    cluster.receive(say.heartbeat([D, B, term + 1]));
    expect(cluster.status(B)).toMatchObject({ term, leader: A });
  });

  test("hears who the members are, and raises no term by asking", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    cluster.elect(A);
    cluster.step(B, { kind: "peer-seen", peer: X });
    const { term } = cluster.status(B);
    cluster.node(B).sent = [];
    cluster.receive({ type: "MsgAskMembers", from: X, to: B, term: term + 9 });
    expect(cluster.node(B).sentOf("MsgMembers")).toMatchObject([{ to: X, members: [A, B, C], index: 1 }]);
    expect(cluster.status(B).term).toBe(term);
  });
});

describe("honest peers that a node does not know yet", () => {
  test("a fresh node learns everything from the leader that adds it", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    cluster.elect(A);
    cluster.propose(A, "before");
    cluster.start(D);
    introduceAll(cluster);
    expect(cluster.change(A, say.addVoter(D)).ok).toBe(true);
    cluster.advance(500);
    expect(cluster.status(D)).toMatchObject({ leader: A, configuration: { voters: [A, B, C, D] } });
  });

  test("a fresh node follows those that its operator listed, and nobody else", () => {
    const cluster = new TestCluster({ voters: [A, B], admits: { sponsors: ["n1"] } });
    cluster.start(C);
    for (const peer of [A, B, X]) cluster.step(C, { kind: "peer-seen", peer });
    expect(cluster.receive(say.heartbeat([X, C, 5])).ok).toBe(false);
    expect(cluster.receive(say.heartbeat([B, C, 5])).ok, "it is not listed").toBe(false);
    expect(cluster.receive(say.heartbeat([A, C, 5])).ok).toBe(true);
    cluster.receive({ type: "MsgMembers", from: A, to: C, term: 5, index: 1, committed: true, members: [A, B] });
    expect(cluster.receive(say.heartbeat([B, C, 6])).ok, "one that is listed vouches for it").toBe(true);
    expect(cluster.status(C).leader).toBe(B);
  });

  test("a leader that removes itself is heard to the end, and can't come back with a higher term", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    cluster.elect(A);
    introduceAll(cluster);
    cluster.change(A, say.remove(A));
    cluster.advance(1_000);
    expect([B, C]).toContain(cluster.leader());
    expect(cluster.status(B).committedConfiguration).toMatchObject({ voters: [B, C], removed: [A] });
    const { term } = cluster.status(B);
    cluster.receive(say.heartbeat([A, B, term + 1]));
    expect(cluster.status(B).term).toBe(term);
    expect(cluster.node(B).raft.refusals.removed).toBeGreaterThan(0);
  });

  /** n3 is away while one member after the other is replaced. Returns the members then. */
  function changedWithout(cluster: TestCluster, away: PeerKey): void {
    cluster.elect(A);
    cluster.crash(away);
    for (const fresh of [D, E]) {
      cluster.start(fresh);
      introduceAlive(cluster);
      expect(cluster.change(A, say.addVoter(fresh)).ok).toBe(true);
      cluster.advance(300);
    }
    cluster.act(A, { kind: "transfer", target: D, force: false });
    cluster.advance(300);
    expect(cluster.leader()).toBe(D);
  }

  function introduceAlive(cluster: TestCluster): void {
    const alive = [...cluster.nodes].filter(([, node]) => node.alive).map(([peer]) => peer);
    for (const one of alive) for (const other of alive) cluster.step(one, { kind: "peer-seen", peer: other });
    cluster.settle();
  }

  test("a voter that was away follows a leader that it does not know, because a member vouches for it", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    changedWithout(cluster, C);
    cluster.change(D, say.remove(A));
    cluster.advance(300);
    cluster.crash(A);
    cluster.restart(C);
    introduceAlive(cluster);
    cluster.advance(1_000);
    expect(cluster.status(C)).toMatchObject({ leader: D, configuration: { voters: [B, C, D, E] } });
    expect(cluster.node(C).sentOf("MsgAskMembers").length).toBeGreaterThan(0);
  });

  test("a voter that was away votes for a candidate that it does not know, because a member vouches for it", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    cluster.elect(A);
    cluster.crash(C);
    cluster.start(D);
    introduceAlive(cluster);
    cluster.change(A, say.addVoter(D));
    cluster.advance(300);
    // D alone has the last entry of A, which dies: only D can be elected, and it needs the vote of C.
    const heal = cluster.isolate(B);
    cluster.propose(A, "last");
    cluster.crash(A);
    heal();
    cluster.restart(C);
    introduceAlive(cluster);
    cluster.advance(3_000);
    expect(cluster.leader()).toBe(D);
    expect(cluster.status(C).leader).toBe(D);
  });

  test("where nobody is left to vouch it says so, and follows once an operator names the leader", () => {
    const trusted: string[] = [];
    const cluster = new TestCluster({ voters: [A, B, C], admits: { trusted } });
    changedWithout(cluster, C);
    cluster.change(D, say.remove(A));
    cluster.advance(300);
    cluster.change(D, say.remove(B));
    cluster.advance(300);
    for (const gone of [A, B]) cluster.crash(gone);
    cluster.restart(C);
    introduceAlive(cluster);
    cluster.advance(2 * STRANGER_REPORT_AFTER_MS);
    expect(cluster.status(C).leader).toBeNull();
    expect(cluster.node(C).eventsOf("stranger-leads")).toMatchObject([{ peer: D }]);
    expect(cluster.leader()).toBe(D);
    trusted.push("n4");
    cluster.restart(C);
    introduceAlive(cluster);
    cluster.advance(1_000);
    expect(cluster.status(C)).toMatchObject({ leader: D, configuration: { voters: [C, D, E] } });
  });

  test("a word for somebody counts for a while only", () => {
    const cluster = new TestCluster({ voters: [A, B, C], running: [A] });
    const { term } = cluster.status(A);
    cluster.step(A, { kind: "peer-seen", peer: D });
    cluster.receive({ type: "MsgMembers", from: B, to: A, term, index: 9, committed: true, members: [A, B, D] });
    cluster.nowMs += VOUCH_MS;
    expect(cluster.receive(say.heartbeat([D, A, term + 1])).ok).toBe(false);
    cluster.receive({ type: "MsgMembers", from: B, to: A, term, index: 9, committed: true, members: [A, B, D] });
    expect(cluster.receive(say.heartbeat([D, A, term + 1])).ok).toBe(true);
  });
});

describe("a node that was removed", () => {
  test("campaigns no more once a member has told it, and does again when it is served", () => {
    const cluster = new TestCluster({ voters: [A, B, C] });
    cluster.isolate(C);
    cluster.advance(1_000);
    expect(cluster.node(C).sentOf("MsgPreVote").length).toBeGreaterThan(0);
    cluster.act(C, { kind: "removed", by: "n9" });
    expect(cluster.node(C).eventsOf("removed"), "a stranger is not believed").toEqual([]);
    for (let at = 0; at < 3; at++) cluster.act(C, { kind: "removed", by: "n1" });
    expect(cluster.node(C).eventsOf("removed")).toEqual([{ kind: "removed", by: "n1" }]);
    cluster.node(C).sent = [];
    cluster.advance(3_000);
    expect(cluster.node(C).sentOf("MsgPreVote")).toEqual([]);
    cluster.receive(say.heartbeat([A, C, cluster.status(C).term + 1]));
    cluster.advance(1_000);
    expect(cluster.node(C).sentOf("MsgPreVote").length).toBeGreaterThan(0);
  });

  test("is not swapped in again by itself for the disk that took its place", () => {
    const cluster = new TestCluster({ voters: [A, B], learners: [C] });
    const C2 = peerKey("n3", "b");
    cluster.elect(A);
    cluster.change(A, say.remove(C), say.addLearner(C2));
    cluster.advance(3_000);
    cluster.act(A, { kind: "peer-seen", peer: C });
    cluster.advance(5_000);
    expect(cluster.status(A).configuration).toMatchObject({ learners: [C2], removed: [C] });
  });

  test("is remembered among the latest so many, and not once it is back", () => {
    let configuration: Configuration = configurationOf([A, B]);
    const change = (...operations: Parameters<typeof say.remove>): Configuration => {
      const added = applyConfChange(configuration, { operations: [say.addLearner(operations[0])] });
      if (!added.ok) throw new Error(added.reason);
      const removed = applyConfChange(added.configuration, { operations: [say.remove(operations[0])] });
      if (!removed.ok) throw new Error(removed.reason);
      return removed.configuration;
    };
    const disks = Array.from({ length: REMOVED_MAX + 1 }, (_, at) => peerKey("n7", (at + 1).toString(16)));
    for (const disk of disks) configuration = change(disk);
    expect(configuration.removed).toEqual(disks.slice(1));
    const back = applyConfChange(configuration, { operations: [say.addLearner(disks[5]!)] });
    expect(back.ok && back.configuration.removed).toEqual(disks.slice(1).filter((disk) => disk !== disks[5]));
  });
});

describe("terms", () => {
  test("a voter that is further off than that comes back after a while", () => {
    const cluster = new TestCluster({ voters: [A, B, C], running: [A] });
    const far = cluster.status(A).term + TERM_RISE_AT_START + 100 * TERM_RISE_PER_S_MAX;
    expect(cluster.receive(say.heartbeat([B, A, far])).ok).toBe(false);
    cluster.nowMs += 100_000;
    expect(cluster.receive(say.heartbeat([B, A, far])).ok).toBe(true);
  });

  test("a voter that missed several recoveries comes back in one step", () => {
    const cluster = new TestCluster({ voters: [A, B, C], running: [A] });
    const { term } = cluster.status(A);
    expect(cluster.receive(say.heartbeat([B, A, term + 8 * RECOVERY])).ok).toBe(true);
    expect(cluster.status(A)).toMatchObject({ term: term + 8 * RECOVERY, leader: B });
  });

  test("a member gone mad raises them by so much at once, and then by so much a second", () => {
    const cluster = new TestCluster({ voters: [A, B, C], running: [A] });
    const { term } = cluster.status(A);
    const push = (): number => {
      let pushed = 0;
      for (let ahead = TERM_JUMP_MAX; ahead >= 1; ahead /= 2) {
        while (cluster.receive(say.heartbeatResp([B, A, cluster.status(A).term + ahead])).ok) pushed++;
      }
      return pushed;
    };
    expect(push()).toBeGreaterThan(0);
    expect(cluster.status(A).term).toBe(term + TERM_RISE_AT_START);
    for (const [seconds, most] of [
      [1, TERM_RISE_PER_S_MAX],
      [60, 60 * TERM_RISE_PER_S_MAX],
      [10 * 86_400, TERM_JUMP_MAX],
    ] as const) {
      const before = cluster.status(A).term;
      cluster.nowMs += seconds * 1_000;
      push();
      expect(cluster.status(A).term - before).toBe(most);
    }
  });

  test("the last one of all ends no process: the node follows and votes, and does not campaign", () => {
    const cluster = new TestCluster({ voters: [A, B, C], running: [A], term: INTEGER_MAX - 1 });
    cluster.receive(say.heartbeat([B, A, INTEGER_MAX]));
    cluster.advance(5_000);
    expect(cluster.status(A)).toMatchObject({ term: INTEGER_MAX, role: "follower" });
    expect(cluster.act(A, { kind: "campaign" })).toMatchObject({ code: "NOT_PROMOTABLE" });
    const alone = new TestCluster({ voters: [A], term: INTEGER_MAX - 1 });
    alone.elect(A);
    alone.act(A, { kind: "reelect" });
    alone.advance(1_000);
    expect(alone.status(A)).toMatchObject({ term: INTEGER_MAX, role: "follower" });
  });
});
