// How long is waited where words come late: the sums, and what a cluster makes of them.

import { expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { STRAIN_HALF_LIFE_MS } from "../kit/limits.ts";
import { electionConfig } from "./config.ts";
import { Rounds } from "./leader/rounds.ts";
import { Strain } from "./strain.ts";
import { TestCluster } from "./test-cluster.ts";
import { peersNamed } from "./test-messages.ts";

const [A, B, C] = peersNamed(3) as [PeerKey, PeerKey, PeerKey];
const TIMEOUTS = electionConfig();

test("it is zero as long as words come as they should", () => {
  const strain = new Strain(TIMEOUTS);
  for (let at = 0; at < 10_000; at += 75) strain.gapEnded(75, at);
  expect(strain.at(10_000)).toBe(0);
});

test("the longest gap of late counts, three times its lateness, and half of it is forgotten in a while", () => {
  const strain = new Strain(TIMEOUTS);
  strain.gapEnded(125, 1_000);
  strain.gapEnded(100, 1_000);
  expect(strain.at(1_000)).toBe(150);
  expect(strain.at(1_000 + STRAIN_HALF_LIFE_MS)).toBe(75);
  strain.gapEnded(110, 1_000 + STRAIN_HALF_LIFE_MS);
  expect(strain.at(1_000 + STRAIN_HALF_LIFE_MS), "longer than what is left of the old one").toBe(105);
  expect(strain.at(1_000 + 9 * STRAIN_HALF_LIFE_MS), "all of it in the end").toBe(0);
});

test("it is never more than two of the longest election timeouts", () => {
  const strain = new Strain(TIMEOUTS);
  for (let at = 0; at < 100_000; at += 100) strain.gapEnded(TIMEOUTS.electionTimeoutMaxMs + strain.at(at), at);
  expect(strain.at(99_900)).toBe(2 * TIMEOUTS.electionTimeoutMaxMs);
});

test("a pause or a cut, which is longer than all that is waited for, says nothing about the next gap", () => {
  const strain = new Strain(TIMEOUTS);
  strain.gapEnded(TIMEOUTS.electionTimeoutMaxMs + 1, 1_000);
  expect(strain.at(1_000)).toBe(0);
});

/** A leads; what it sends comes in bunches: nothing for `gapMs`, then all of it. */
function late(cluster: TestCluster, gapMs: number): void {
  const underWay = cluster.hold(({ from }) => from === A);
  cluster.advance(gapMs);
  underWay.release();
  cluster.settle();
}

function strained(seed = 1): TestCluster {
  const cluster = new TestCluster({ voters: [A, B, C], seed });
  cluster.elect(A);
  cluster.advance(100);
  // Below the shortest timeout: nobody campaigns, everybody learns.
  late(cluster, 140);
  return cluster;
}

test("a leader that is late again, by more than the shortest timeout, is not deposed", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const cluster = strained(seed);
    const { term } = cluster.status(A);
    for (let times = 0; times < 20; times++) {
      cluster.advance(200);
      late(cluster, 200);
    }
    expect([cluster.leader(), cluster.status(A).term]).toEqual([A, term]);
  }
});

test("without such a past it would be: the same gap deposes it", () => {
  const deposed = Array.from({ length: 20 }, (_, seed) => {
    const cluster = new TestCluster({ voters: [A, B, C], seed: seed + 1 });
    cluster.elect(A);
    cluster.advance(100);
    const { term } = cluster.status(A);
    late(cluster, 290);
    return cluster.status(B).term > term;
  });
  expect(deposed).toContain(true);
});

test("a leader that is gone is replaced within the longest timeout and what was added, and another follower helps", () => {
  const cluster = strained();
  const addedMs = cluster.status(B).strainMs;
  expect(addedMs).toBeGreaterThan(100);
  cluster.crash(A);
  const sinceMs = cluster.nowMs;
  while (cluster.leader() === null || cluster.leader() === A) cluster.advance(10);
  // One vote may be split.
  expect(cluster.nowMs - sinceMs).toBeLessThan(2 * (TIMEOUTS.electionTimeoutMaxMs + addedMs));
  expect(cluster.nowMs - sinceMs).toBeGreaterThan(TIMEOUTS.electionTimeoutMinMs);
});

test("a leader whose answers come late keeps its place for as much longer, and no more", () => {
  const cluster = new TestCluster({ voters: [A, B, C] });
  cluster.elect(A);
  cluster.advance(100);
  const answers = cluster.hold(({ to }) => to === A);
  cluster.advance(200);
  answers.release();
  cluster.settle();
  const addedMs = cluster.status(A).strainMs;
  expect(addedMs).toBeGreaterThan(100);
  const contactMs = cluster.status(A).quorumContactMs;
  cluster.drop(({ to }) => to === A);
  while (cluster.status(A).role === "leader") cluster.advance(5);
  const gaveUpMs = cluster.nowMs - contactMs;
  expect(gaveUpMs).toBeGreaterThan(TIMEOUTS.electionTimeoutMaxMs + 0.9 * addedMs);
  expect(gaveUpMs).toBeLessThan(TIMEOUTS.electionTimeoutMaxMs + addedMs + 100);
});

test("a leader that was elected again in between has not gone on all the time: that gap does not count", () => {
  const cluster = new TestCluster({ voters: [A, B, C] });
  cluster.elect(A);
  cluster.advance(100);
  const { term } = cluster.status(A);
  const cut = cluster.drop(({ from }) => from === A);
  cluster.advance(140);
  cut();
  cluster.act(A, { kind: "reelect" });
  cluster.settle();
  expect([cluster.leader(), cluster.status(A).term, cluster.status(B).strainMs]).toEqual([A, term + 1, 0]);
});

test("how far away the others are is no lateness: answers that all take equally long strain nobody", () => {
  const strain = new Strain(TIMEOUTS);
  const rounds = new Rounds(0, strain);
  for (let at = 1; at <= 100; at++) {
    rounds.start(50 * at);
    if (at > 2) rounds.confirm(at - 2, 50 * at);
  }
  expect(strain.at(5_000)).toBe(0);
});

test("a forced transfer that comes to nothing ends as soon as ever, and is told as that", () => {
  const cluster = strained();
  cluster.drop(({ type }) => type === "MsgPreVoteResp");
  cluster.act(A, { kind: "transfer", target: B, force: true });
  const sinceMs = cluster.nowMs;
  while (cluster.node(A).eventsOf("transfer").length === 0) cluster.advance(5);
  expect(cluster.node(A).eventsOf("transfer")[0]?.result).toMatchObject({ success: false, isUnknown: false });
  expect(cluster.nowMs - sinceMs).toBeLessThanOrEqual(TIMEOUTS.electionTimeoutMaxMs);
});

test("no promise of a lease grows with it: what others may rely on stays as configured", () => {
  const cluster = new TestCluster({ voters: [A, B, C], election: { enableLease: true } });
  cluster.advance(400);
  cluster.elect(A);
  cluster.advance(100);
  late(cluster, 120);
  cluster.advance(100);
  expect(cluster.status(A).strainMs).toBeGreaterThan(0);
  const { leaseUntilMs, quorumContactMs } = cluster.status(A);
  expect(leaseUntilMs - quorumContactMs).toBeLessThanOrEqual(TIMEOUTS.electionTimeoutMinMs);
});
