// Every field of the specification's ElectionConfig: its default, what it changes, and what is refused.

import { describe, expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { TenureError } from "../kit/errors.ts";
import { ELECTION_DEFAULTS, electionConfig, type ElectionConfig } from "./config.ts";
import { TestCluster, type ClusterOptions } from "./test-cluster.ts";
import { heartbeat, peersNamed, vote } from "./test-messages.ts";

const [A, B, C] = peersNamed(3) as [PeerKey, PeerKey, PeerKey];

function lone(election: Partial<ElectionConfig>, options: Partial<ClusterOptions> = {}): TestCluster {
  return new TestCluster({ voters: [A, B, C], running: [A], election, ...options });
}

function led(election: Partial<ElectionConfig>): TestCluster {
  const cluster = new TestCluster({ voters: [A, B, C], election });
  cluster.advance(election.enableLease === true ? 300 : 0);
  cluster.elect(A);
  return cluster;
}

function firstDeadlines(election: Partial<ElectionConfig>): number[] {
  return Array.from({ length: 100 }, (_, seed) => lone(election, { seed }).node(A).deadlineMs);
}

function mistakesIn(given: Partial<ElectionConfig>): string {
  try {
    electionConfig(given);
  } catch (error) {
    if (TenureError.is(error)) return `${error.code} ${error.message}`;
    throw error;
  }
  return "accepted";
}

test("every field of the specification exists with its default", () => {
  const specified: ElectionConfig = {
    electionTimeoutMinMs: 150,
    electionTimeoutMaxMs: 300,
    heartbeatIntervalMs: 50,
    enableAutoFailover: true,
    failoverDetectionTimeoutMs: 300,
    transferTimeoutMs: 30_000,
    transferLogSync: true,
    enableLease: false,
    leaseRenewalIntervalMs: 50,
    enablePriority: false,
    nodePriority: 0,
  };
  expect(ELECTION_DEFAULTS).toEqual(specified);
  expect(electionConfig()).toEqual(specified);
});

describe("each field changes behaviour", () => {
  test("electionTimeoutMinMs and electionTimeoutMaxMs bound the random timeout", () => {
    const deadlines = firstDeadlines({ electionTimeoutMinMs: 1_000, electionTimeoutMaxMs: 1_100 });
    expect(Math.min(...deadlines)).toBeGreaterThanOrEqual(1_000);
    expect(Math.max(...deadlines)).toBeLessThan(1_100);
    expect(Math.max(...deadlines) - Math.min(...deadlines)).toBeGreaterThan(80);
  });

  test("electionTimeoutMinMs is how long a follower refuses to help depose a leader it has heard", () => {
    const cluster = lone({ electionTimeoutMinMs: 250 });
    cluster.receive(heartbeat([B, A, 2]));
    cluster.advance(249);
    cluster.receive(vote([C, A, 3]));
    expect(cluster.status(A).term).toBe(2);
    cluster.advance(1);
    cluster.receive(vote([C, A, 3]));
    expect(cluster.status(A)).toMatchObject({ term: 3, vote: C });
  });

  test("electionTimeoutMaxMs is how long a leader leads without a quorum", () => {
    const cluster = lone({ electionTimeoutMaxMs: 700 });
    cluster.electWith(A, B);
    cluster.advance(699);
    expect(cluster.status(A).role).toBe("leader");
    cluster.advance(1);
    expect(cluster.status(A).role).toBe("follower");
  });

  test("heartbeatIntervalMs is the leader's pace", () => {
    const cluster = led({ heartbeatIntervalMs: 20 });
    cluster.node(A).sent = [];
    cluster.advance(100);
    expect(cluster.node(A).sentOf("MsgHeartbeat").length).toBe(2 * 5);
  });

  test("enableAutoFailover=false: never campaigns by itself, whatever happens to the leader", () => {
    const cluster = lone({ enableAutoFailover: false });
    cluster.receive(heartbeat([B, A, 2]));
    cluster.step(A, { kind: "peer-gone", peer: B });
    cluster.advance(60_000);
    expect(cluster.status(A)).toMatchObject({ role: "follower", term: 2 });
    expect(cluster.node(A).sentOf("MsgPreVote")).toEqual([]);
  });

  test("enableAutoFailover=false: still votes", () => {
    const cluster = lone({ enableAutoFailover: false });
    cluster.receive(vote([C, A, 2]));
    expect(cluster.node(A).sentOf("MsgVoteResp")).toMatchObject([{ to: C, reject: false }]);
  });

  test.each([false, true])("enableAutoFailover=false: still obeys a transfer (forced: %s)", (force) => {
    const cluster = led({ enableAutoFailover: false });
    cluster.act(A, { kind: "transfer", target: B, force });
    expect(cluster.status(B)).toMatchObject({ role: "leader", term: 3 });
  });

  test("enableAutoFailover=false: a forced transfer that nobody answers is given up, and the next one obeyed", () => {
    const cluster = lone({ enableAutoFailover: false });
    const timeoutNow = { type: "MsgTimeoutNow", from: B, to: A, term: 2, force: true, attempt: 0 } as const;
    cluster.receive(heartbeat([B, A, 2]));
    cluster.receive(timeoutNow);
    expect(cluster.status(A).role).toBe("pre-candidate");
    cluster.advance(300);
    expect(cluster.status(A), "it follows again").toMatchObject({ role: "follower", leader: B, term: 2 });
    expect(cluster.node(A).sentOf("MsgTransferRefused")).toMatchObject([{ to: B }]);
    cluster.receive(timeoutNow);
    expect(cluster.status(A).role).toBe("pre-candidate");
  });

  test("enableAutoFailover=false: a campaign on request that nobody answers ends and is not repeated", () => {
    const cluster = lone({ enableAutoFailover: false });
    cluster.step(A, { kind: "campaign" });
    cluster.advance(5_000);
    expect(cluster.status(A)).toMatchObject({ role: "follower", term: 1 });
    expect(cluster.node(A).sentOf("MsgPreVote").length, "one request to each of the two others").toBe(2);
    expect(cluster.node(A).eventsOf("election")).toMatchObject([{ record: { result: "timed-out" } }]);
  });

  test("failoverDetectionTimeoutMs: a silent leader is reported then, once, and again after it was heard", () => {
    const cluster = lone({ failoverDetectionTimeoutMs: 100 });
    const suspects = () => cluster.node(A).eventsOf("leader-suspect");
    cluster.receive(heartbeat([B, A, 2]));
    cluster.advance(99);
    expect(suspects()).toEqual([]);
    cluster.advance(30);
    expect(suspects()).toEqual([{ kind: "leader-suspect", leader: B, silentMs: 100 }]);
    cluster.receive(heartbeat([B, A, 2]));
    cluster.advance(100);
    expect(suspects().length).toBe(2);
  });

  test("failoverDetectionTimeoutMs: by default a silent leader is reported after 300 ms, although a campaign began before", () => {
    const cluster = lone({});
    const suspects = () => cluster.node(A).eventsOf("leader-suspect");
    cluster.receive(heartbeat([B, A, 2]));
    cluster.advance(299);
    expect(cluster.status(A)).toMatchObject({ role: "pre-candidate", leader: null });
    expect(suspects()).toEqual([]);
    cluster.advance(1);
    expect(suspects()).toEqual([{ kind: "leader-suspect", leader: B, silentMs: 300 }]);
    cluster.advance(3_000);
    expect(suspects().length, "one silence is reported once").toBe(1);
  });

  test("transferTimeoutMs: how long the target may take to catch up", () => {
    const cluster = led({ transferTimeoutMs: 2_000 });
    cluster.drop(({ type, to }) => type === "MsgApp" && to === C);
    cluster.propose(A, ...new Array<string>(100).fill("x"));
    cluster.act(A, { kind: "transfer", target: C, force: false });
    cluster.advance(1_999);
    expect(cluster.status(A).transfer).not.toBeNull();
    cluster.advance(1);
    expect(cluster.status(A)).toMatchObject({ role: "leader", transfer: null });
    const [ended] = cluster.node(A).eventsOf("transfer");
    expect(ended?.result).toMatchObject({ success: false, message: expect.stringContaining("did not catch up") });
  });

  test("transferLogSync=false: the target is told at once, and asks before it acts", () => {
    const cluster = lone({ transferLogSync: false });
    const node = cluster.electWith(A, B);
    cluster.step(A, { kind: "transfer", target: C, force: false });
    expect(node.raft.progressOf(C)?.match, "nothing is known of its log").toBe(0);
    expect(node.sentOf("MsgTimeoutNow")).toMatchObject([{ to: C, force: true }]);
  });

  test("enableLease: reads are answered without a round", () => {
    for (const enableLease of [true, false]) {
      const cluster = led({ enableLease });
      cluster.drop(({ type }) => type === "MsgHeartbeatResp");
      cluster.act(A, { kind: "read-index", context: 1 });
      expect(cluster.node(A).reads.length, `enableLease ${enableLease}`).toBe(enableLease ? 1 : 0);
    }
  });

  test("leaseRenewalIntervalMs: with the lease, the leader beats at this pace if it is the faster one", () => {
    const cluster = led({ enableLease: true, leaseRenewalIntervalMs: 25 });
    cluster.node(A).sent = [];
    cluster.advance(100);
    expect(cluster.node(A).sentOf("MsgHeartbeat").length).toBe(2 * 4);
    const without = led({ enableLease: false, leaseRenewalIntervalMs: 25 });
    without.node(A).sent = [];
    without.advance(100);
    expect(without.node(A).sentOf("MsgHeartbeat").length).toBe(2 * 2);
  });

  test("enablePriority and nodePriority: the preferred node times out earlier, but never before the minimum", () => {
    const preferred = firstDeadlines({ enablePriority: true, nodePriority: 255 });
    expect(Math.min(...preferred)).toBeGreaterThanOrEqual(150);
    expect(Math.max(...preferred)).toBeLessThan(150 + 150 / 4);
    const half = firstDeadlines({ enablePriority: true, nodePriority: 127 });
    expect(Math.max(...half)).toBeGreaterThan(Math.max(...preferred));
    expect(firstDeadlines({ enablePriority: true, nodePriority: 0 })).toEqual(firstDeadlines({}));
    expect(firstDeadlines({ enablePriority: false, nodePriority: 255 }), "off means off").toEqual(firstDeadlines({}));
  });

  test("nodePriority is told to the leader", () => {
    const cluster = lone({ nodePriority: 9 });
    cluster.receive(heartbeat([B, A, 2]));
    expect(cluster.node(A).sentOf("MsgHeartbeatResp")).toMatchObject([{ to: B, priority: 9 }]);
  });
});

describe("what is refused", () => {
  test.each([
    [{ electionTimeoutMaxMs: 150 }, "electionTimeoutMaxMs must be above electionTimeoutMinMs"],
    [{ heartbeatIntervalMs: 76 }, "heartbeatIntervalMs must be at most half of electionTimeoutMinMs"],
    [{ enableLease: true, leaseRenewalIntervalMs: 100 }, "leaseRenewalIntervalMs must be below the lease of 100 ms"],
    [{ nodePriority: 256 }, "nodePriority must be an integer from 0 to 255, not 256"],
    [{ nodePriority: -1 }, "nodePriority must be an integer"],
    [{ nodePriority: 0.5 }, "nodePriority must be an integer"],
    [{ transferTimeoutMs: 0 }, "transferTimeoutMs must be a positive number of milliseconds, not 0"],
    [{ failoverDetectionTimeoutMs: Infinity }, "failoverDetectionTimeoutMs must be a positive number"],
    [{ heartbeatIntervalMs: Number.NaN }, "heartbeatIntervalMs must be a positive number of milliseconds, not NaN"],
    [{ electionTimeoutMinMs: -5 }, "electionTimeoutMinMs must be a positive number"],
  ] as const)("%o", (given, reason) => {
    expect(mistakesIn(given)).toContain("CONFIG_INVALID");
    expect(mistakesIn(given)).toContain(reason);
  });

  test.each([
    { electionTimeoutMaxMs: 151 },
    { heartbeatIntervalMs: 75 },
    { enableLease: false, leaseRenewalIntervalMs: 100 },
    { enableLease: true, leaseRenewalIntervalMs: 99 },
    { nodePriority: 255 },
  ])("just inside the bounds: %o is accepted", (given) => {
    expect(mistakesIn(given)).toBe("accepted");
  });

  test("all mistakes are named at once", () => {
    const mistakes = mistakesIn({
      electionTimeoutMaxMs: 10,
      heartbeatIntervalMs: 500,
      nodePriority: 999,
      transferTimeoutMs: -1,
    });
    for (const name of ["electionTimeoutMaxMs", "heartbeatIntervalMs", "nodePriority", "transferTimeoutMs"]) {
      expect(mistakes).toContain(`${name} must`);
    }
  });
});
