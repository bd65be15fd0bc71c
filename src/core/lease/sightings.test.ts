// What is reported, and what is not: a disk that took another one's place, and a node that moved, are no shared identity.

import { describe, expect, test } from "vitest";
import { SEEN_FOR_MS, SIGHTINGS_KEPT } from "./limits.ts";
import { Sightings } from "./sightings.ts";
import { peer } from "./test-lease.ts";

describe("one identity with two disks", () => {
  test("is reported when a disk answers again after another one was seen in its place, and no more after a while", () => {
    const sightings = new Sightings();
    sightings.answered(peer("a@1"), 0, 1);
    sightings.answered(peer("a@2"), 10, 11);
    expect(sightings.shared(11)).toEqual([]);
    sightings.answered(peer("a@1"), 20, 21);
    expect(sightings.shared(21)).toEqual(["a"]);
    expect(sightings.shared(21 + SEEN_FOR_MS)).toEqual(["a"]);
    expect(sightings.shared(22 + SEEN_FOR_MS)).toEqual([]);
  });

  test("is not reported for an answer that was on its way while the disk was replaced", () => {
    const sightings = new Sightings();
    sightings.answered(peer("a@1"), 0, 1);
    sightings.answered(peer("a@2"), 10, 11);
    sightings.answered(peer("a@1"), 9, 30);
    expect(sightings.shared(30)).toEqual([]);
  });

  test("three disks one after the other are none", () => {
    const sightings = new Sightings();
    for (const [at, disk] of ["a@1", "a@2", "a@3"].entries()) sightings.answered(peer(disk), 10 * at, 10 * at + 1);
    expect(sightings.shared(30)).toEqual([]);
  });
});

describe("one identity at two endpoints", () => {
  test("is reported when both announce themselves again and again; a move, and a late announcement after it, are none", () => {
    const sightings = new Sightings();
    const announce = (...endpoints: readonly string[]): readonly string[] => {
      for (const [at, endpoint] of endpoints.entries()) sightings.announced("a", endpoint, 1_500 * at);
      return sightings.shared(1_500 * endpoints.length);
    };
    expect(announce("e1", "e1", "e2", "e2")).toEqual([]);
    const late = new Sightings();
    for (const [at, endpoint] of ["e1", "e2", "e1", "e2"].entries()) late.announced("a", endpoint, at);
    expect(late.shared(4)).toEqual([]);
    expect(announce("e1", "e2", "e1", "e2", "e1")).toEqual(["a"]);
  });

  test("moves there and back that are far apart are none", () => {
    const sightings = new Sightings();
    for (let at = 0; at < 8; at++) sightings.announced("a", at % 2 === 0 ? "e1" : "e2", 20_000 * at);
    expect(sightings.shared(160_000)).toEqual([]);
  });
});

test("a member of another cluster is news once, and again when it was not seen for a while", () => {
  const sightings = new Sightings();
  expect(sightings.otherCluster(peer("a@1"), "c2", 0)).toBe(true);
  expect(sightings.otherCluster(peer("a@1"), "c2", 1_000)).toBe(false);
  expect(sightings.otherCluster(peer("a@1"), "c3", 2_000)).toBe(true);
  expect(sightings.otherClusters(2_000)).toEqual([{ peer: "a@1", clusterId: "c3" }]);
  expect(sightings.otherClusters(2_001 + SEEN_FOR_MS)).toEqual([]);
  expect(sightings.otherCluster(peer("a@1"), "c3", 2_001 + SEEN_FOR_MS)).toBe(true);
});

test("what is remembered is bounded: the last ones", () => {
  const sightings = new Sightings();
  for (let at = 0; at <= SIGHTINGS_KEPT; at++) sightings.otherCluster(peer(`n${at}@1`), "c2", 0);
  const seen = sightings.otherClusters(0).map((one) => one.peer);
  expect([seen.length, seen.includes(peer("n0@1"))]).toEqual([SIGHTINGS_KEPT, false]);
});
