// Design D6 (fast detection), the record that every election leaves, and bad input: what an unknown, misdirected or
// impossible message may do, which is to be counted.

import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { TERM_JUMP_MAX } from "../kit/limits.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import { app, appResp, heartbeat, heartbeatResp, peersNamed } from "./test-messages.ts";
import { preVote, preVoteResp, vote, voteResp } from "./test-messages.ts";
import type { ElectionRecord, Message, RefusalReason } from "./types.ts";

const [A, B, C, D, E] = peersNamed(5) as [PeerKey, PeerKey, PeerKey, PeerKey, PeerKey];
const THREE = [A, B, C];
const STRANGER = peerKey("n9", "a");
/** B's node with another disk. */
const B2 = peerKey("n2", "b");

function lone(options: Partial<ClusterOptions> = {}): TestCluster {
  return new TestCluster({ voters: THREE, running: [A], ...options });
}

/** When this node asked for pre-votes, to half a millisecond. */
function preVoteTimes(cluster: TestCluster, peer: PeerKey, durationMs: number): number[] {
  const times: number[] = [];
  const startMs = cluster.nowMs;
  const node = cluster.node(peer);
  for (;;) {
    const asked = node.sentOf("MsgPreVote").length / (cluster.options.voters.length - 1);
    while (times.length < asked) times.push(cluster.nowMs - startMs);
    if (cluster.nowMs - startMs >= durationMs) return times;
    cluster.advance(0.5);
  }
}

describe("D6: fast detection", () => {
  /** A follows B, and heard it ten milliseconds ago. */
  function following(options: Partial<ClusterOptions> = {}): TestCluster {
    const cluster = lone(options);
    cluster.receive(heartbeat([B, A, 2]));
    cluster.advance(10);
    return cluster;
  }

  test("D6: who sees that nobody listens at the leader asks every 5 ms, 5 times, then after the normal timeout", () => {
    const cluster = following();
    cluster.step(A, { kind: "peer-gone", peer: B });
    const times = preVoteTimes(cluster, A, 400);
    expect(times.slice(0, 5)).toEqual([0, 5, 10, 15, 20]);
    expect(times[5], "then the shortest timeout at the earliest").toBeGreaterThanOrEqual(20 + 150);
    expect(times[5]).toBeLessThanOrEqual(20 + 301);
    expect(cluster.status(A).term, "nobody answered, so nothing changed").toBe(2);
  });

  test("D6: the second in rank asks between the first one's attempts", () => {
    const cluster = lone({ running: [C] });
    cluster.receive(heartbeat([B, C, 2]));
    cluster.step(C, { kind: "peer-gone", peer: B });
    expect(preVoteTimes(cluster, C, 100)).toEqual([2.5, 7.5, 12.5, 17.5, 22.5]);
  });

  test("D6: two who see the same death do not split the vote, also where the first to ask was too early", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.elect(B);
    cluster.advance(20);
    cluster.crash(B);
    for (const peer of [A, C]) cluster.act(peer, { kind: "peer-gone", peer: B });
    expect(cluster.leader(), "C had not seen it yet when A asked").toBeNull();
    cluster.advance(5);
    expect(cluster.leader()).not.toBeNull();
  });

  test("D6: when both followers see it, there is a new leader at once", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.elect(B);
    cluster.advance(20);
    cluster.crash(B);
    for (const peer of [C, A]) cluster.act(peer, { kind: "peer-gone", peer: B });
    cluster.advance(5);
    expect(cluster.leader()).not.toBeNull();
    expect(cluster.status(cluster.leader()!)).toMatchObject({ term: 3, established: true });
  });

  test("D6: another node's claim waives nothing: who still hears the leader does not help", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.elect(B);
    cluster.advance(20);
    cluster.act(A, { kind: "peer-gone", peer: B });
    cluster.advance(25);
    expect(cluster.node(A).sentOf("MsgPreVote").length).toBeGreaterThan(0);
    expect(cluster.status(B)).toMatchObject({ role: "leader", term: 2 });
    cluster.advance(1_000);
    expect(cluster.status(B), "and A is back with it").toMatchObject({ role: "leader", term: 2 });
    expect(cluster.status(A)).toMatchObject({ role: "follower", leader: B });
  });

  test("D6: who saw it helps others at once, even where it may not campaign itself", () => {
    const cluster = following({ election: { enableAutoFailover: false } });
    cluster.receive(preVote([C, A, 3]));
    expect(cluster.node(A).sentOf("MsgPreVoteResp"), "it still hears B").toEqual([]);
    cluster.step(A, { kind: "peer-gone", peer: B });
    cluster.receive(preVote([C, A, 3]));
    expect(cluster.node(A).sentOf("MsgPreVoteResp")).toMatchObject([{ to: C, term: 3, reject: false }]);
  });

  test("D6: with the lease it is off: neither asks earlier nor helps", () => {
    const cluster = lone({ election: { enableLease: true } });
    cluster.advance(300);
    cluster.receive(heartbeat([B, A, 2]));
    cluster.node(A).sent = [];
    cluster.step(A, { kind: "peer-gone", peer: B });
    expect(preVoteTimes(cluster, A, 100)).toEqual([]);
    cluster.receive(preVote([C, A, 3]));
    expect(cluster.node(A).sentOf("MsgPreVoteResp")).toEqual([]);
  });

  test("D6: the waiver ends when the leader is heard again", () => {
    const cluster = following();
    cluster.step(A, { kind: "peer-gone", peer: B });
    cluster.receive(heartbeat([B, A, 2]));
    cluster.node(A).sent = [];
    expect(preVoteTimes(cluster, A, 100), "no more attempts").toEqual([]);
    cluster.receive(vote([C, A, 3]));
    expect(cluster.status(A), "and stickiness again").toMatchObject({ role: "follower", term: 2, leader: B });
  });

  test("D6: the waiver is for one leader's term, not for the next one's", () => {
    const cluster = following({ election: { enableAutoFailover: false } });
    cluster.step(A, { kind: "peer-gone", peer: B });
    cluster.receive(heartbeat([C, A, 3]));
    cluster.receive(vote([B, A, 4]));
    expect(cluster.status(A)).toMatchObject({ term: 3, leader: C });
  });

  test("D6: that somebody else than the leader is gone is no reason to ask", () => {
    const cluster = following();
    cluster.step(A, { kind: "peer-gone", peer: C });
    expect(preVoteTimes(cluster, A, 100)).toEqual([]);
    cluster.receive(vote([C, A, 3]));
    expect(cluster.status(A).term).toBe(2);
  });

  test("D6: a second report in the same term does not start the five attempts again", () => {
    const cluster = following();
    cluster.step(A, { kind: "peer-gone", peer: B });
    cluster.advance(30);
    cluster.node(A).sent = [];
    cluster.step(A, { kind: "peer-gone", peer: B });
    expect(preVoteTimes(cluster, A, 100)).toEqual([]);
  });
});

describe("election records", () => {
  const FIVE = [A, B, C, D, E];
  const recordsOf = (cluster: TestCluster): ElectionRecord[] =>
    cluster
      .node(A)
      .eventsOf("election")
      .map(({ record }) => record);

  test("a won election: term, candidates, who voted for whom, duration, result, for both stages", () => {
    const cluster = lone({ voters: FIVE });
    cluster.advance(7);
    cluster.step(A, { kind: "campaign" });
    cluster.advance(3);
    for (const peer of [C, B]) cluster.receive(preVoteResp([peer, A, 2]));
    cluster.receive(vote([E, A, 2]));
    cluster.advance(4);
    cluster.receive(voteResp([D, A, 2], true));
    for (const peer of [C, B]) cluster.receive(voteResp([peer, A, 2]));
    const common = { term: 2, candidate: A, reason: "requested", result: "won" };
    expect(recordsOf(cluster)).toEqual([
      { ...common, stage: "pre-vote", candidates: [A], startedAtMs: 7, durationMs: 3, votes: granted(A, B, C) },
      {
        ...common,
        stage: "vote",
        candidates: [A, E],
        startedAtMs: 10,
        durationMs: 4,
        votes: [...granted(A, B, C), { voter: D, granted: false }],
      },
    ]);
  });

  test("a lost one names who refused", () => {
    const cluster = lone();
    cluster.step(A, { kind: "campaign" });
    for (const peer of [B, C]) cluster.receive(preVoteResp([peer, A, 1], true));
    expect(recordsOf(cluster)).toMatchObject([
      {
        result: "lost",
        stage: "pre-vote",
        votes: [...granted(A), { voter: B, granted: false }, { voter: C, granted: false }],
      },
    ]);
  });

  test("one that nobody answers is timed out; one that another leader ends is superseded", () => {
    const cluster = lone();
    cluster.step(A, { kind: "campaign" });
    cluster.advance(300);
    cluster.receive(heartbeat([B, A, 2]));
    expect(recordsOf(cluster).slice(0, 2)).toMatchObject([
      { result: "timed-out", reason: "requested", votes: granted(A) },
      { result: "superseded", reason: "timeout" },
    ]);
  });

  test("its reason is told: a timeout, a leader that is gone, a transfer", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.advance(400);
    const first = cluster.leader()!;
    const [second, third] = THREE.filter((peer) => peer !== first) as [PeerKey, PeerKey];
    cluster.act(first, { kind: "transfer", target: second, force: false });
    cluster.crash(second);
    for (const peer of [first, third]) cluster.act(peer, { kind: "peer-gone", peer: second });
    cluster.advance(10);
    const won = [...cluster.nodes.values()].flatMap((node) => node.eventsOf("election").map(({ record }) => record));
    const reasons = won.filter(({ stage, result }) => stage === "vote" && result === "won").map(({ reason }) => reason);
    expect(reasons.sort()).toEqual(["leader-gone", "timeout", "transfer"]);
  });

  function granted(...voters: PeerKey[]): { voter: PeerKey; granted: boolean }[] {
    return voters.map((voter) => ({ voter, granted: true }));
  }
});

describe("bad input changes nothing and is counted", () => {
  const configuration = lone().status(A).configuration;
  /** One of each kind, as a member would send it in term 9. */
  const KINDS: readonly Message[] = [
    app([B, A, 9]),
    appResp([B, A, 9]),
    heartbeat([B, A, 9]),
    heartbeatResp([B, A, 9]),
    { type: "MsgSnap", from: B, to: A, term: 9, snapshot: { index: 9, term: 9, configuration }, round: 1 },
    vote([B, A, 9], { index: 9, logTerm: 9 }),
    voteResp([B, A, 9]),
    preVote([B, A, 9], { index: 9, logTerm: 9 }),
    preVoteResp([B, A, 9], true),
    { type: "MsgTimeoutNow", from: B, to: A, term: 9, force: false, attempt: 0 },
    { type: "MsgTransferRefused", from: B, to: A, term: 9, attempt: 0 },
    { type: "MsgReadIndex", from: B, to: A, term: 9, context: 1 },
    { type: "MsgReadIndexResp", from: B, to: A, term: 9, context: 1, index: 1 },
  ];
  const DEFECTS: readonly { defect: string; change: Partial<Message>; reason: RefusalReason }[] = [
    { defect: "from an unknown node", change: { from: STRANGER }, reason: "unknown-peer" },
    { defect: "from an unknown incarnation of a member", change: { from: B2 }, reason: "unknown-peer" },
    { defect: "for somebody else", change: { to: C }, reason: "not-for-us" },
    { defect: "for our node with another disk", change: { to: peerKey("n1", "b") }, reason: "not-for-us" },
    { defect: "in our own name", change: { from: A }, reason: "impossible" },
    { defect: "with a wild term", change: { term: 3 + TERM_JUMP_MAX }, reason: "wild-term" },
    { defect: "with the largest term", change: { term: Number.MAX_SAFE_INTEGER }, reason: "wild-term" },
  ];

  test.each(DEFECTS)(
    "a message $defect, of every kind, to a follower, a candidate and a leader",
    ({ change, reason }) => {
      for (const role of ["follower", "candidate", "leader"] as const) {
        const cluster = lone();
        if (role === "candidate") {
          cluster.step(A, { kind: "campaign" });
          cluster.receive(preVoteResp([B, A, 2]));
        } else if (role === "leader") cluster.electWith(A, B);
        expect(cluster.status(A).role).toBe(role);
        expectUnchanged(
          cluster,
          reason,
          KINDS.map((message) => ({ ...message, ...change }) as Message),
        );
      }
    },
  );

  test("a second leader in one term is impossible, and refused", () => {
    const following = lone();
    following.receive(heartbeat([B, A, 2]));
    const claims = [app([C, A, 2]), heartbeat([C, A, 2], { round: 2 })];
    expectUnchanged(following, "impossible", claims);
    const leading = lone();
    leading.electWith(A, B);
    expectUnchanged(leading, "impossible", claims);
  });

  test("that the wire has introduced a peer does not make it a leader", () => {
    const cluster = lone();
    cluster.step(A, { kind: "peer-seen", peer: STRANGER });
    const before = cluster.status(A);
    expect(cluster.receive(heartbeat([STRANGER, A, 2]))).toMatchObject({ code: "MESSAGE_REFUSED" });
    expect(cluster.status(A)).toEqual(before);
    expect(cluster.node(A).raft.refusals["not-a-member"]).toBe(1);
  });

  /** A member stays heard also after another disk was seen under its node id. */
  test("a wiped disk that is introduced does not silence the voter it claims to be", () => {
    const cluster = lone();
    cluster.step(A, { kind: "peer-seen", peer: B2 });
    expect(cluster.receive(heartbeat([B, A, 2])).ok).toBe(true);
    expect(cluster.status(A).leader).toBe(B);
  });

  function expectUnchanged(cluster: TestCluster, reason: RefusalReason, messages: readonly Message[]): void {
    const node = cluster.node(A);
    const before = structuredClone([
      cluster.status(A),
      node.durable,
      node.deadlineMs,
      node.sent.length,
      node.events.length,
    ]);
    const counted = node.raft.refusals[reason];
    for (const message of messages) {
      // As an engine would hand it over, whoever it is addressed to.
      const answer = cluster.step(A, { kind: "message", message });
      expect(answer, `${message.type} ${reason}`).toMatchObject({ ok: false, code: "MESSAGE_REFUSED" });
    }
    expect([cluster.status(A), node.durable, node.deadlineMs, node.sent.length, node.events.length]).toEqual(before);
    expect(node.raft.refusals[reason]).toBe(counted + messages.length);
  }
});
