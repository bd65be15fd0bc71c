// Who is a member, who votes next, who founds, and what the registry holds.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dueVoters } from "./changes.ts";
import { foundingOf } from "./founding.ts";
import { MEMBERSHIP_TTL_MS } from "./limits.ts";
import { MembershipList } from "./members.ts";
import { withBackend, withoutBackend } from "./registry.ts";
import { peer, votersOf } from "./test-lease.ts";

describe("membership leases", () => {
  test("announce and list: normalised, sorted, each endpoint once", () => {
    const members = new MembershipList();
    members.announce(0, "b", "https://b/");
    members.announce(0, "a", "https://a//");
    members.announce(0, "c", "https://b");
    expect(members.endpoints(1)).toEqual(["https://a", "https://b"]);
    expect(members.active(1).map(({ identity }) => identity)).toEqual(["a", "b", "c"]);
  });

  test("announce renews, and moves: a stable identity has one lease", () => {
    const members = new MembershipList();
    members.announce(0, "a", "https://old");
    members.announce(5_000, "a", "https://new");
    expect(members.endpoints(MEMBERSHIP_TTL_MS)).toEqual(["https://new"]);
  });

  test("a crash leaves the list when its lease expires; a clock that was set back keeps nobody for ever", () => {
    const members = new MembershipList();
    members.announce(1_000_000, "a", "https://a");
    expect(members.endpoints(1_000_000 + MEMBERSHIP_TTL_MS - 1)).toEqual(["https://a"]);
    expect(members.endpoints(1_000_000 + MEMBERSHIP_TTL_MS)).toEqual([]);
    expect(members.endpoints(0)).toEqual([]);
  });

  test("leave removes the caller's own lease, nothing else, and pauses nobody else's announcements (hole 11)", () => {
    const members = new MembershipList();
    members.announce(0, "a", "https://a");
    members.announce(0, "b", "https://b");
    members.leave("a");
    expect(members.endpoints(1)).toEqual(["https://b"]);
    expect(members.isAnnouncing).toBe(true);
  });

  test("after a restart those in force are there again, and those that have ended are not", () => {
    const members = new MembershipList();
    const lease = { endpoint: "https://x", updatedAtMs: 0, expiresAtMs: MEMBERSHIP_TTL_MS };
    const later = { identity: "b", endpoint: "https://b", updatedAtMs: 2_000, expiresAtMs: MEMBERSHIP_TTL_MS + 2_000 };
    members.restore(MEMBERSHIP_TTL_MS, [{ identity: "a", ...lease }, later]);
    expect(members.active(MEMBERSHIP_TTL_MS)).toEqual([later]);
    expect(members.endpoints(MEMBERSHIP_TTL_MS + 2_000)).toEqual([]);
  });

  test("a node that left announces nothing until it is told to", () => {
    const members = new MembershipList();
    members.pause();
    expect(members.isAnnouncing).toBe(false);
    members.resume();
    expect(members.isAnnouncing).toBe(true);
  });
});

describe("the next voters", () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  const view = fc.record({
    count: fc.integer({ min: 1, max: 6 }),
    listed: fc.subarray(names),
    answered: fc.subarray(names),
    leaving: fc.subarray(names),
    replaced: fc.subarray(names),
    joiners: fc.subarray(["g", "h", "b"]),
  });

  test("differ by one, keep the leader, and a removal leaves a majority that answers; silence alone lowers the quorum or changes nothing", () => {
    fc.assert(
      fc.property(view, ({ count, listed, answered, leaving, replaced, joiners }) => {
        const voters = votersOf(...names.slice(0, count).map((name) => `${name}@1`));
        const nameOf = (text: string): string => text.split("@")[0]!;
        const self = peer("a@1");
        const hasAnswered = (one: string): boolean => one === self || answered.includes(nameOf(one));
        const next = dueVoters({
          self,
          voters,
          listed: new Set(listed),
          joiners: votersOf(...joiners.map((name) => `${name}@2`)),
          isLeaving: (one) => leaving.includes(nameOf(one)),
          isReplaced: (one) => one.endsWith("@1") && replaced.includes(nameOf(one)),
          hasAnswered,
          isSilent: (one) => !hasAnswered(one),
        });
        if (next === null) return;
        const removed = voters.filter((voter) => !next.includes(voter));
        const added = next.filter((voter) => !voters.includes(voter));
        expect(removed.length + added.length).toBe(1);
        expect(next.some((voter) => voter.peer === self)).toBe(true);
        expect(new Set(next.map((voter) => nameOf(voter.peer))).size).toBe(next.length);
        const [gone] = removed;
        if (gone === undefined) return;
        expect(next.filter((voter) => hasAnswered(voter.peer)).length * 2).toBeGreaterThan(next.length);
        const isOwnWish = leaving.includes(nameOf(gone.peer)) || replaced.includes(nameOf(gone.peer));
        if (isOwnWish) return;
        // Retired: it is silent and not listed, and the quorum becomes smaller by this one or the next.
        expect(hasAnswered(gone.peer) || listed.includes(nameOf(gone.peer))).toBe(false);
        const silent = voters.filter(({ peer: one }) => !hasAnswered(one) && !listed.includes(nameOf(one))).length;
        const quorum = (voterCount: number): number => Math.floor(voterCount / 2) + 1;
        expect(Math.min(...[1, 2].filter((less) => less <= silent).map((less) => quorum(count - less)))).toBeLessThan(
          quorum(count),
        );
        expect(count).toBeGreaterThan(3);
      }),
      { numRuns: 5_000 },
    );
  });

  const retire = (count: number, ...gone: readonly string[]) => {
    const all = names.slice(0, count);
    const alive = all.filter((name) => !gone.includes(name));
    return dueVoters({
      self: peer("a@1"),
      voters: votersOf(...all.map((name) => `${name}@1`)),
      listed: new Set(alive),
      joiners: [],
      isLeaving: () => false,
      isReplaced: () => false,
      hasAnswered: (one) => alive.includes(one.split("@")[0]!),
      isSilent: (one) => !alive.includes(one.split("@")[0]!),
    })?.length;
  };

  test("a crash is retired only where that lowers the quorum: 4 to 3, 5 to 4 to 3 with two gone, not 3 to 2, and of two nobody", () => {
    expect([retire(4, "d"), retire(5, "e", "d"), retire(6, "f")]).toEqual([3, 4, 5]);
    expect([retire(3, "c"), retire(5, "e"), retire(2, "b")]).toEqual([undefined, undefined, undefined]);
  });

  test("a voter whose identity answers with another incarnation is removed first, then the new one is added", () => {
    const common = {
      self: peer("a@1"),
      listed: new Set(["a", "b", "c"]),
      isLeaving: () => false,
      hasAnswered: () => true,
      isSilent: () => false,
    };
    const joiners = votersOf("c@2");
    const isReplaced = (one: string): boolean => one === "c@1";
    const without = dueVoters({ ...common, voters: votersOf("a@1", "b@1", "c@1"), joiners, isReplaced })!;
    expect(without.map((voter) => voter.peer)).toEqual(["a@1", "b@1"]);
    expect(dueVoters({ ...common, voters: without, joiners, isReplaced })?.map((voter) => voter.peer)).toContain("c@2");
  });
});

describe("founding", () => {
  const free = (endpoint: string) => ({ endpoint, isInCluster: false });

  test("the smallest seed founds when every other seed answered and is in no cluster: a majority of seeds is not enough", () => {
    const seeds = ["b", "a/", "c"];
    expect(foundingOf("a", seeds, [free("b"), free("c")])).toEqual({ kind: "found" });
    expect(foundingOf("a", seeds, [free("b")])).toEqual({ kind: "wait", for: ["c"] });
    expect(foundingOf("a", seeds, [free("b"), { endpoint: "c", isInCluster: true }])).toEqual({ kind: "join" });
    expect(foundingOf("b", seeds, [free("a"), free("c")])).toEqual({ kind: "join" });
  });

  test("only itself in the list: founds at once; not in the list: waits to be admitted", () => {
    expect(foundingOf("a", ["a"], [])).toEqual({ kind: "found" });
    expect(foundingOf("a", ["b"], [free("b")])).toEqual({ kind: "join" });
  });
});

describe("the registry", () => {
  const known = withBackend(withBackend([], { backendHash: "h1", endpoint: "e1/" }), {
    backendHash: "h0",
    endpoint: "e2",
  });

  test("is sorted and normalised; what changes nothing is the same registry", () => {
    expect(known.map(({ backendHash, endpoint }) => `${backendHash} ${endpoint}`)).toEqual(["h0 e2", "h1 e1"]);
    expect(withBackend(known, { backendHash: "h1", endpoint: "e1" })).toBe(known);
    expect(withoutBackend(known, { backendHash: "h9", endpoint: "e1" })).toBe(known);
  });

  test("an endpoint answers for one backend: another hash moves it", () => {
    expect(withBackend(known, { backendHash: "h7", endpoint: "e1" })).toEqual([
      { backendHash: "h0", endpoint: "e2" },
      { backendHash: "h7", endpoint: "e1" },
    ]);
    expect(withoutBackend(known, { backendHash: "h0", endpoint: "e2" })).toEqual([
      { backendHash: "h1", endpoint: "e1" },
    ]);
  });
});
