// Two survivors that learn in the same moment that their leader is gone (design D6): their requests cross, and they must not
// spend an election timeout on a split vote. Measured on real processes before this rule: 18 of 90 kills -9 of a leader.

import { expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { TestCluster } from "./test-cluster.ts";
import { bytes, peersNamed } from "./test-messages.ts";

const [A, B, C] = peersNamed(3) as [PeerKey, PeerKey, PeerKey];
/** Long enough for the second one's attempt, which starts a little later than the first one's. */
const BOTH_ASK_MS = 4;

function crossing(prepare: (cluster: TestCluster) => void = () => undefined): TestCluster {
  const cluster = new TestCluster({ voters: [A, B, C] });
  cluster.elect(A);
  cluster.advance(100);
  prepare(cluster);
  cluster.crash(A);
  const held = cluster.hold(({ type }) => type === "MsgPreVote");
  for (const peer of [B, C]) cluster.act(peer, { kind: "peer-gone", peer: A });
  cluster.advance(BOTH_ASK_MS);
  for (const peer of [B, C]) expect(cluster.status(peer).role, "both ask").toBe("pre-candidate");
  held.release();
  cluster.settle();
  return cluster;
}

test("one of them yields, and the other leads without any further time", () => {
  const cluster = crossing();
  expect(cluster.leader()).toBe(B);
  expect(cluster.status(C)).toMatchObject({ role: "follower", leader: B });
});

test("the longer log wins, also against the one that others yield to", () => {
  const cluster = crossing((before) => {
    const heal = before.drop(({ type, to }) => type === "MsgApp" && to === B);
    before.act(A, { kind: "propose", data: [bytes("only A and C have it")] });
    heal();
  });
  expect(cluster.leader()).toBe(C);
});

test("one that nobody hears keeps nobody from leading for longer than its own attempt", () => {
  const cluster = new TestCluster({ voters: [A, B, C] });
  cluster.elect(A);
  cluster.advance(100);
  cluster.crash(A);
  cluster.drop(({ type, from }) => type === "MsgPreVote" && from === B);
  for (const peer of [B, C]) cluster.act(peer, { kind: "peer-gone", peer: A });
  cluster.advance(2_000);
  expect(cluster.leader()).toBe(C);
});

test("two whose timeouts fall together again and again, on a slow network, do not split votes for ever", () => {
  const election = { electionTimeoutMinMs: 150, electionTimeoutMaxMs: 151 };
  for (let seed = 1; seed <= 50; seed++) {
    const cluster = new TestCluster({ voters: [A, B, C], running: [A, B], election, seed });
    const underWay = cluster.hold(() => true);
    while (cluster.leader() === null) {
      expect(cluster.nowMs, `seed ${seed}`).toBeLessThan(10_000);
      cluster.advance(15);
      for (const message of underWay.messages.splice(0)) if (message.to !== C) cluster.receive(message);
    }
  }
});
