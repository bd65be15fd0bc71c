// Figure 2 and §5 of the Raft paper, one test for each rule: elections, replication, safety.
// Every log begins after a founding snapshot at index 1, term 1, so the first entry here is index 2.

import { describe, expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import {
  app,
  appResp,
  entriesOf,
  heartbeat,
  peersNamed,
  preVoteResp,
  textOf,
  vote,
  voteResp,
} from "./test-messages.ts";

const [A, B, C, D, E] = peersNamed(5) as [PeerKey, PeerKey, PeerKey, PeerKey, PeerKey];
const THREE = [A, B, C];
const ALL = peersNamed(7);

/** A runs; what the others say is written by hand. */
function lone(options: Partial<ClusterOptions> = {}): TestCluster {
  return new TestCluster({ voters: THREE, running: [A], ...options });
}

function termsOf(cluster: TestCluster, peer: PeerKey): (number | undefined)[] {
  const { firstIndex, lastIndex } = cluster.status(peer);
  return Array.from({ length: lastIndex - firstIndex + 1 }, (_, i) => cluster.node(peer).raft.termAt(firstIndex + i));
}

describe("terms (§5.1)", () => {
  test("§5.1: a server starts as a follower, in the term and with the vote that it stored", () => {
    const cluster = lone({ term: 4 });
    cluster.receive(vote([B, A, 5], { index: 9, logTerm: 3 }));
    cluster.restart(A);
    expect(cluster.status(A)).toMatchObject({ role: "follower", term: 5, vote: B, leader: null });
  });

  test.each(["follower", "candidate", "leader"] as const)(
    "§5.1: a %s that sees a higher term becomes a follower in it, without a vote",
    (role) => {
      const cluster = lone();
      if (role === "leader") cluster.electWith(A, B);
      if (role === "candidate") {
        cluster.step(A, { kind: "campaign" });
        cluster.receive(preVoteResp([B, A, 2]));
      }
      expect(cluster.status(A).role).toBe(role);
      cluster.receive(appResp([B, A, 7]));
      expect(cluster.status(A)).toMatchObject({ role: "follower", term: 7, vote: null, leader: null });
    },
  );

  test("§5.1: a request of a lower term changes nothing, and its sender is told our term", () => {
    const cluster = lone({ term: 5 });
    const before = cluster.status(A);
    cluster.receive(app([B, A, 3], { entries: entriesOf([3]) }));
    cluster.receive(vote([C, A, 4], { index: 9, logTerm: 4 }));
    expect(cluster.status(A)).toEqual(before);
    expect(cluster.node(A).sent).toMatchObject([
      { type: "MsgAppResp", to: B, term: 5 },
      { type: "MsgVoteResp", to: C, term: 5, reject: true },
    ]);
  });

  test("§5.1: an answer of a lower term is ignored", () => {
    const cluster = lone();
    cluster.step(A, { kind: "campaign" });
    cluster.receive(preVoteResp([B, A, 2]));
    cluster.receive(voteResp([B, A, 1]));
    expect(cluster.status(A)).toMatchObject({ role: "candidate", term: 2 });
  });
});

describe("leader election (§5.2)", () => {
  test("§5.2: a follower that hears nobody for an election timeout enters the next term and asks everybody", () => {
    const cluster = lone();
    cluster.advance(149);
    expect(cluster.status(A).role, "before the shortest timeout").toBe("follower");
    cluster.advance(151);
    expect(cluster.status(A).role, "after the longest timeout").toBe("pre-candidate");
    cluster.receive(preVoteResp([C, A, 2]));
    expect(cluster.status(A)).toMatchObject({ role: "candidate", term: 2, vote: A });
    expect(
      cluster
        .node(A)
        .sentOf("MsgVote")
        .map(({ to, term }) => ({ to, term })),
    ).toEqual([
      { to: B, term: 2 },
      { to: C, term: 2 },
    ]);
  });

  test("§5.2: a follower that goes on hearing its leader never campaigns", () => {
    const cluster = lone();
    for (let beat = 1; beat <= 100; beat++) {
      cluster.receive(heartbeat([B, A, 2], { round: beat }));
      cluster.advance(140);
    }
    expect(cluster.status(A)).toMatchObject({ role: "follower", term: 2, leader: B });
    expect(cluster.node(A).eventsOf("election")).toEqual([]);
  });

  test.each([
    [1, 0],
    [2, 1],
    [3, 1],
    [4, 2],
    [5, 2],
    [6, 3],
    [7, 3],
  ])("§5.2: of %i servers a candidate needs its own vote and %i others, and no fewer", (size, needed) => {
    const voters = ALL.slice(0, size);
    const cluster = lone({ voters });
    cluster.step(A, { kind: "campaign" });
    for (const voter of voters.slice(1)) cluster.receive(preVoteResp([voter, A, 2]));
    for (let granted = 0; granted < needed; granted++) {
      expect(cluster.status(A).role, `with ${granted} votes of others`).toBe("candidate");
      cluster.receive(voteResp([voters[granted + 1]!, A, 2]));
    }
    expect(cluster.status(A)).toMatchObject({ role: "leader", term: 2, leader: A });
  });

  test("§5.2: a candidate that a majority refuses is a follower again", () => {
    const cluster = lone({ voters: ALL.slice(0, 5) });
    cluster.step(A, { kind: "campaign" });
    for (const voter of [B, C]) cluster.receive(preVoteResp([voter, A, 2]));
    for (const voter of [B, C]) cluster.receive(voteResp([voter, A, 2], true));
    expect(cluster.status(A).role, "two of five refused").toBe("candidate");
    cluster.receive(voteResp([D, A, 2], true));
    expect(cluster.status(A)).toMatchObject({ role: "follower", term: 2 });
  });

  test("§5.2: a server votes for the first that asks in a term and for nobody else", () => {
    const cluster = lone();
    cluster.receive(vote([B, A, 2]));
    cluster.receive(vote([C, A, 2]));
    expect(
      cluster
        .node(A)
        .sentOf("MsgVoteResp")
        .map(({ to, reject }) => ({ to, reject })),
    ).toEqual([
      { to: B, reject: false },
      { to: C, reject: true },
    ]);
    expect(cluster.status(A).vote).toBe(B);
  });

  test("§5.2: a vote is remembered over a restart", () => {
    const cluster = lone();
    cluster.receive(vote([B, A, 2]));
    cluster.restart(A);
    cluster.receive(vote([C, A, 2]));
    expect(cluster.node(A).sentOf("MsgVoteResp")).toMatchObject([{ to: C, reject: true }]);
  });

  test.each([2, 3])("§5.2: a candidate of term 2 that hears from a leader of term %i follows it", (term) => {
    const cluster = lone();
    cluster.step(A, { kind: "campaign" });
    cluster.receive(preVoteResp([B, A, 2]));
    cluster.receive(app([C, A, term]));
    expect(cluster.status(A)).toMatchObject({ role: "follower", term, leader: C });
  });

  test("§5.2: after a split vote the candidates try again, at a new random time each, until one wins", () => {
    const cluster = new TestCluster({ voters: [A, B, C, D] });
    for (const peer of [A, B, C, D]) cluster.step(peer, { kind: "campaign" });
    cluster.settle();
    expect(cluster.leader(), "all four voted for themselves").toBeNull();
    cluster.advance(5_000);
    const leader = cluster.leader();
    expect(leader).not.toBeNull();
    for (const peer of [A, B, C, D]) expect(cluster.status(peer).leader, peer).toBe(leader);
  });

  test("§5.2: election timeouts are spread over the whole range from shortest to longest", () => {
    const deadlines = Array.from({ length: 200 }, (_, seed) => lone({ seed }).node(A).deadlineMs);
    for (const deadline of deadlines) {
      expect(deadline).toBeGreaterThanOrEqual(150);
      expect(deadline).toBeLessThan(300);
    }
    for (let bucket = 0; bucket < 10; bucket++) {
      const from = 150 + 15 * bucket;
      expect(deadlines.filter((at) => at >= from && at < from + 15).length, `from ${from} ms`).toBeGreaterThan(5);
    }
  });

  test("§5.2: a leader sends heartbeats at once and then every interval, to everybody", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.elect(A);
    const beats = (): number => cluster.node(A).sentOf("MsgHeartbeat").length;
    expect(
      cluster
        .node(A)
        .sentOf("MsgHeartbeat")
        .map(({ to }) => to),
    ).toEqual([B, C]);
    for (let beat = 2; beat <= 5; beat++) {
      cluster.advance(49);
      expect(beats(), "nothing before the interval is over").toBe(2 * (beat - 1));
      cluster.advance(1);
      expect(beats(), `beat ${beat}`).toBe(2 * beat);
    }
  });
});

describe("log replication (§5.3)", () => {
  test("§5.3: a leader appends a command to its log and sends it to everybody with what precedes it", () => {
    const cluster = lone();
    const node = cluster.electWith(A, B);
    for (const peer of [B, C]) cluster.receive(appResp([peer, A, 2], { index: 2 }));
    node.sent = [];
    expect(cluster.propose(A, "x")).toEqual({ ok: true, index: 3, term: 2 });
    const sent = node.sentOf("MsgApp").filter(({ entries }) => entries.length > 0);
    expect(sent).toMatchObject([
      { to: B, index: 2, logTerm: 2, commit: 2, entries: [{ index: 3, term: 2 }] },
      { to: C, index: 2, logTerm: 2, commit: 2, entries: [{ index: 3, term: 2 }] },
    ]);
  });

  test("§5.3: a new leader starts to probe each follower just behind its own last entry", () => {
    const cluster = lone({ logs: { [A]: [1, 1, 2] } });
    cluster.step(A, { kind: "campaign" });
    cluster.receive(preVoteResp([B, A, 3]));
    cluster.receive(voteResp([B, A, 3]));
    const { raft } = cluster.node(A);
    expect([raft.progressOf(B)?.match, raft.progressOf(B)?.next]).toEqual([0, 5]);
    expect(cluster.node(A).sentOf("MsgApp")).toMatchObject([
      { index: 4, logTerm: 2 },
      { index: 4, logTerm: 2 },
    ]);
  });

  test.each([
    [1, 0],
    [2, 1],
    [3, 1],
    [5, 2],
    [6, 3],
    [7, 3],
  ])("§5.3: of %i servers an entry needs the leader's copy and %i others to be committed", (size, needed) => {
    const voters = ALL.slice(0, size);
    const cluster = lone({ voters });
    cluster.electWith(A, ...voters.slice(1));
    for (let copies = 0; copies < needed; copies++) {
      expect(cluster.status(A).commit, `with ${copies} copies elsewhere`).toBe(1);
      cluster.receive(appResp([voters[copies + 1]!, A, 2], { index: 2 }));
    }
    expect(cluster.status(A)).toMatchObject({ commit: 2, applied: 2 });
  });

  test("§5.3: committing an entry commits all before it, those of earlier leaders too", () => {
    const cluster = lone({ logs: { [A]: [1, 2, 2] } });
    cluster.electWith(A, B);
    cluster.receive(appResp([B, A, 3], { index: 5 }));
    expect(cluster.node(A).applied.map(({ index, term }) => [index, term])).toEqual([
      [2, 1],
      [3, 2],
      [4, 2],
      [5, 3],
    ]);
  });

  test("§5.3: a follower applies entries in log order once it learns that they are committed", () => {
    const cluster = lone();
    cluster.receive(app([B, A, 2], { entries: entriesOf([2, 2, 2]), commit: 1 }));
    expect(cluster.node(A).applied).toEqual([]);
    cluster.receive(app([B, A, 2], { index: 4, logTerm: 2, commit: 3 }));
    expect(cluster.node(A).applied.map(textOf)).toEqual(["2:2", "3:2"]);
  });

  test("§5.3: everybody applies what the leader committed, without another proposal", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.elect(A);
    cluster.propose(A, "x", "y");
    for (const peer of THREE) expect(cluster.node(peer).applied.map(textOf), peer).toEqual(["", "x", "y"]);
  });

  test.each([
    { index: 1, logTerm: 1, accepted: true },
    { index: 2, logTerm: 1, accepted: true },
    { index: 3, logTerm: 2, accepted: true },
    { index: 2, logTerm: 2, accepted: false },
    { index: 3, logTerm: 3, accepted: false },
    { index: 4, logTerm: 2, accepted: false },
  ])(
    "§5.3: an append behind ($index, term $logTerm) is accepted by the log 1 1 2: $accepted",
    ({ accepted, ...prev }) => {
      const cluster = lone({ logs: { [A]: [1, 2] } });
      cluster.receive(app([B, A, 3], prev));
      expect(cluster.node(A).sentOf("MsgAppResp")).toMatchObject([{ to: B, reject: !accepted, index: prev.index }]);
    },
  );

  test.each([
    { at: [3, 2], sent: [3], becomes: [1, 2, 3] },
    { at: [2, 1], sent: [3, 4], becomes: [1, 3, 4] },
    { at: [1, 1], sent: [1], becomes: [1, 2] },
    { at: [1, 1], sent: [3], becomes: [3] },
  ])("§5.3: to the log 1 2 an append of $sent behind (index, term) $at makes $becomes", ({ at, sent, becomes }) => {
    const cluster = lone({ logs: { [A]: [1, 2] } });
    const [index, logTerm] = at as [number, number];
    cluster.receive(app([B, A, 4], { index, logTerm, entries: entriesOf(sent, index + 1) }));
    expect(termsOf(cluster, A)).toEqual(becomes);
  });

  const LEADER_OF_FIGURE_7 = [1, 1, 4, 4, 5, 5, 6, 6, 6];
  test.each([
    { name: "a", log: [1, 1, 4, 4, 5, 5, 6, 6] },
    { name: "b", log: [1, 1, 4] },
    { name: "c", log: [1, 1, 4, 4, 5, 5, 6, 6, 6, 6] },
    { name: "d", log: [1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7] },
    { name: "e", log: [1, 1, 4, 4, 4, 4] },
    { name: "f", log: [1, 1, 2, 2, 2, 3, 3, 3, 3, 3] },
  ])("§5.3: the leader of figure 7 makes follower ($name) agree with its own log", ({ log }) => {
    const cluster = new TestCluster({
      voters: THREE,
      term: 7,
      logs: { [A]: LEADER_OF_FIGURE_7, [B]: log, [C]: LEADER_OF_FIGURE_7 },
    });
    cluster.elect(A);
    expect(termsOf(cluster, B)).toEqual([...LEADER_OF_FIGURE_7, 8]);
    expect(cluster.node(B).applied.map(textOf)).toEqual(cluster.node(A).applied.map(textOf));
  });

  test("§5.3: conflicts are passed over one term at a time, not one entry", () => {
    const long = (term: number): number[] => new Array<number>(100).fill(term);
    const logs = {
      [A]: [...long(1), ...long(4)],
      [B]: [...long(1), ...long(2), ...long(3)],
      [C]: [...long(1), ...long(4)],
    };
    const cluster = new TestCluster({ voters: THREE, logs, term: 4 });
    cluster.elect(A);
    expect(termsOf(cluster, B)).toEqual(termsOf(cluster, A));
    const refusals = cluster
      .node(B)
      .sentOf("MsgAppResp")
      .filter(({ reject }) => reject);
    expect(refusals.length).toBeLessThanOrEqual(3);
  });

  test("§5.3: a leader never overwrites or deletes entries of its own log", () => {
    const cluster = lone({ logs: { [A]: [1, 2] } });
    cluster.electWith(A, B);
    const before = termsOf(cluster, A);
    cluster.receive(app([B, A, 3], { entries: entriesOf([3, 3]) }));
    cluster.receive(app([B, A, 2], { entries: entriesOf([2]) }));
    expect(termsOf(cluster, A)).toEqual(before);
  });

  test("§5.3, §5.5: an append that was lost is sent again until the follower has it", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.elect(A);
    const heal = cluster.drop(({ type, to }) => type === "MsgApp" && to === C);
    cluster.propose(A, "x");
    cluster.advance(200);
    expect(cluster.status(C).lastIndex).toBe(2);
    heal();
    cluster.advance(100);
    expect(cluster.node(C).applied.map(textOf)).toEqual(["", "x"]);
  });

  test("§5.5: a repeated append is accepted again and changes nothing", () => {
    const cluster = lone();
    const message = app([B, A, 2], { entries: entriesOf([2, 2]), commit: 3 });
    cluster.receive(message);
    const before = cluster.status(A);
    cluster.receive(message);
    expect(cluster.status(A)).toEqual(before);
    expect(
      cluster
        .node(A)
        .sentOf("MsgAppResp")
        .map(({ index, reject }) => [index, reject]),
    ).toEqual([
      [3, false],
      [3, false],
    ]);
    expect(cluster.node(A).applied.map(textOf)).toEqual(["2:2", "3:2"]);
  });
});

describe("safety (§5.4)", () => {
  test("§5.4.1: a request for votes names the candidate's last index and term", () => {
    const cluster = lone({ logs: { [A]: [1, 2, 4] } });
    cluster.step(A, { kind: "campaign" });
    cluster.receive(preVoteResp([B, A, 5]));
    expect(cluster.node(A).sentOf("MsgVote")).toMatchObject([
      { to: B, term: 5, index: 4, logTerm: 4 },
      { to: C, term: 5, index: 4, logTerm: 4 },
    ]);
  });

  test.each([
    { mine: [2], logTerm: 2, index: 2, granted: true },
    { mine: [2], logTerm: 2, index: 3, granted: true },
    { mine: [2, 2], logTerm: 2, index: 2, granted: false },
    { mine: [2], logTerm: 3, index: 2, granted: true },
    { mine: [2, 2], logTerm: 3, index: 1, granted: true },
    { mine: [3], logTerm: 2, index: 9, granted: false },
  ])("§5.4.1: with log $mine, a candidate whose log ends at ($index, term $logTerm) gets a vote: $granted", (one) => {
    const cluster = lone({ logs: { [A]: one.mine } });
    cluster.receive(vote([B, A, 4], { index: one.index, logTerm: one.logTerm }));
    expect(cluster.node(A).sentOf("MsgVoteResp")).toMatchObject([{ to: B, term: 4, reject: !one.granted }]);
  });

  test("§5.4.1: a server that lacks a committed entry can't be elected, whoever asks first", () => {
    const cluster = new TestCluster({ voters: THREE });
    cluster.elect(A);
    const heal = cluster.isolate(C);
    cluster.propose(A, "committed");
    heal();
    cluster.crash(A);
    cluster.act(C, { kind: "campaign" });
    expect(cluster.status(C).role).not.toBe("leader");
    cluster.advance(1_000);
    expect(cluster.leader()).toBe(B);
  });

  test("§5.4.2: a leader does not commit entries of earlier terms by counting copies (figure 8)", () => {
    const cluster = lone({ voters: ALL.slice(0, 5), logs: { [A]: [2] }, term: 3 });
    cluster.electWith(A, B, C);
    for (const peer of [B, C, D, E]) cluster.receive(appResp([peer, A, 4], { index: 2 }));
    expect(cluster.status(A).commit, "the entry of term 2 is everywhere, and still not committed").toBe(1);
    for (const peer of [B, C]) cluster.receive(appResp([peer, A, 4], { index: 3 }));
    expect(cluster.status(A).commit, "it commits below an entry of term 4").toBe(3);
  });

  test("§5.4.2: figure 8 (d): an entry of an old term on a majority may still be overwritten", () => {
    const logs = { [B]: [2], [C]: [2], [E]: [3] };
    const cluster = new TestCluster({ voters: [A, B, C, D, E], running: [B, C, D, E], logs, term: 4 });
    cluster.elect(E);
    for (const peer of [B, C, D, E]) expect(termsOf(cluster, peer), peer).toEqual([3, 5]);
  });

  test("§5.4.2: figure 8 (e): below an entry of the leader's term on a majority nothing is overwritten any more", () => {
    const logs = { [B]: [2, 4], [C]: [2, 4], [E]: [3] };
    const cluster = new TestCluster({ voters: [A, B, C, D, E], running: [B, C, D, E], logs, term: 4 });
    cluster.act(E, { kind: "campaign" });
    cluster.advance(2_000);
    expect([B, C]).toContain(cluster.leader());
    for (const peer of [B, C, D, E]) expect(termsOf(cluster, peer).slice(0, 2), peer).toEqual([2, 4]);
  });
});
