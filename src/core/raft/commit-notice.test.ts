// How followers hear of the commit index where they may be made to wait for it (`commitNoticeMs`).

import { expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { TestCluster } from "./test-cluster.ts";
import { peersNamed, textOf } from "./test-messages.ts";

const [A, B, C] = peersNamed(3) as [PeerKey, PeerKey, PeerKey];
const NOTICE_MS = 2;

function led(): TestCluster {
  const cluster = new TestCluster({ voters: [A, B, C], limits: { commitNoticeMs: NOTICE_MS } });
  cluster.elect(A);
  cluster.advance(100);
  return cluster;
}

const appliedBy = (cluster: TestCluster, peer: PeerKey): string[] => cluster.node(peer).applied.map(textOf);
const emptyAppends = (cluster: TestCluster): number =>
  cluster
    .node(A)
    .sentOf("MsgApp")
    .filter(({ entries }) => entries.length === 0).length;

test("the leader applies at once, followers within the time and without another proposal", () => {
  const cluster = led();
  cluster.propose(A, "x");
  expect(appliedBy(cluster, A)).toEqual(["", "x"]);
  expect(appliedBy(cluster, B)).toEqual([""]);
  cluster.advance(NOTICE_MS);
  for (const peer of [B, C]) expect(appliedBy(cluster, peer), peer).toEqual(["", "x"]);
});

test("an append that comes before the time is over says it, and nothing else is sent for it", () => {
  const cluster = led();
  const before = emptyAppends(cluster);
  for (const text of ["x", "y", "z"]) cluster.propose(A, text);
  expect(emptyAppends(cluster)).toBe(before);
  expect(appliedBy(cluster, B)).toEqual(["", "x", "y"]);
  cluster.advance(NOTICE_MS);
  expect(emptyAppends(cluster), "one for each follower, for the last entry").toBe(before + 2);
  cluster.advance(10 * NOTICE_MS);
  expect(emptyAppends(cluster), "and it is not repeated").toBe(before + 2);
  expect(appliedBy(cluster, C)).toEqual(["", "x", "y", "z"]);
});

test("a steady stream of proposals does not put it off for ever", () => {
  const cluster = led();
  cluster.isolate(C);
  for (let n = 0; n < 50; n++) {
    cluster.propose(A, String(n));
    cluster.advance(1);
  }
  expect(appliedBy(cluster, B).length).toBeGreaterThanOrEqual(50);
});
