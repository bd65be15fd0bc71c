// Campaigns: the pre-vote, the term, the own grant.

import { describe, expect, test } from "vitest";
import { Candidacy, placeOf, preVote } from "./candidacy.ts";
import { GENERATION_TERMS, LEASE_TERM_JUMP_MAX } from "./limits.ts";
import type { CoordinatorStatus } from "./model.ts";
import { recovered } from "./roster.ts";
import { accepted, at, CLUSTER, elected, ledgerOf, peer, refused, rosterOf } from "./test-lease.ts";

const ABC = rosterOf(0, 1, "a@1", "b@1", "c@1");
const A = peer("a@1");

function status(self: string, more: Partial<CoordinatorStatus> = {}): CoordinatorStatus {
  return { self: peer(self), clusterId: CLUSTER, term: 0, roster: null, isLeaving: false, leader: null, ...more };
}

function led(by: string): Partial<CoordinatorStatus> {
  return { leader: { peer: peer(by), endpoint: null, term: 1 } };
}

describe("the pre-vote", () => {
  test("a majority of the roster's voters must know nobody who leads", () => {
    const ledger = ledgerOf(ABC);
    expect(preVote(A, ledger, [status("a@1")])).toMatchObject({ because: "leader-known" });
    expect(preVote(A, ledger, [status("a@1"), status("b@1", led("c@1"))])).toMatchObject({ because: "leader-known" });
    expect(preVote(A, ledger, [status("a@1", led("c@1")), status("b@1"), status("c@1")])).toMatchObject({
      kind: "wait",
    });
    expect(preVote(A, ledger, [status("a@1"), status("d@1"), status("b@2")])).toMatchObject({ kind: "wait" });
    expect(preVote(A, ledger, [status("a@1"), status("b@1", led("a@1"))])).toEqual({ kind: "campaign", term: 1 });
  });

  test("a voter with a newer roster would refuse, so it counts as one that knows a leader: who can't win disturbs nobody", () => {
    const roster = { term: 0, version: 2 };
    const ahead = [status("a@1"), status("b@1", { roster }), status("c@1", { roster })];
    expect(preVote(A, ledgerOf(ABC), ahead)).toMatchObject({ because: "leader-known" });
    expect(preVote(A, ledgerOf({ ...ABC, version: 2 }), ahead)).toEqual({ kind: "campaign", term: 1 });
  });

  test("self is in the roster's voters", () => {
    expect(preVote(peer("d@1"), ledgerOf(ABC), [status("d@1")])).toEqual({ kind: "wait", because: "no-voter" });
  });

  test("the term is above all that were heard of; after a restart the first campaign's is above the ledger's", () => {
    const all = [status("a@1"), status("b@1", { term: 4 })];
    expect(preVote(A, ledgerOf(ABC, { term: 9 }), all)).toEqual({ kind: "campaign", term: 10 });
    expect(preVote(A, ledgerOf(ABC), all)).toEqual({ kind: "campaign", term: 5 });
  });

  test("one status must not use up a generation's terms: a term far beyond the own one is not believed (trap 31)", () => {
    const all = [status("a@1"), status("b@1"), status("c@1", { term: GENERATION_TERMS - 2 })];
    expect(preVote(A, ledgerOf(ABC, { term: 9 }), all)).toEqual({ kind: "campaign", term: 10 });
    const near = [status("a@1"), status("b@1", { term: 9 + LEASE_TERM_JUMP_MAX })];
    expect(preVote(A, ledgerOf(ABC, { term: 9 }), near)).toEqual({ kind: "campaign", term: 10 + LEASE_TERM_JUMP_MAX });
  });

  test("the last term of a generation can be won and released, and then nobody campaigns there any more", () => {
    const last = GENERATION_TERMS - 1;
    const all = [status("a@1"), status("b@1")];
    expect(preVote(A, ledgerOf(ABC, { term: last - 1 }), all)).toEqual({ kind: "campaign", term: last });
    const leader = elected({ ...ABC, term: last - 1 }, last);
    expect(leader.roster).toMatchObject({ term: last, version: 1 });
    expect(preVote(A, ledgerOf({ ...ABC, term: last }, { term: last }), all)).toMatchObject({
      because: "terms-used-up",
    });
    // A recovery goes on in the next one.
    const recovery = recovered(ledgerOf({ ...ABC, term: last }, { term: last }), ABC.voters[0]!);
    expect(preVote(A, recovery, [status("a@1")])).toEqual({ kind: "campaign", term: GENERATION_TERMS + 1 });
  });

  test("the term stays within the roster's generation: whoever hears of a higher one waits to be admitted", () => {
    const all = [status("a@1"), status("b@1", { term: GENERATION_TERMS })];
    expect(preVote(A, ledgerOf(ABC), all)).toEqual({ kind: "wait", because: "outdated" });
    const last = ledgerOf(ABC, { term: GENERATION_TERMS - 1 });
    expect(preVote(A, last, [status("a@1"), status("b@1")])).toEqual({ kind: "wait", because: "terms-used-up" });
  });
});

describe("the place of a candidate, after a leadership has ended", () => {
  const grantOf = (leader: string, term: number) => ({ term, leader: peer(leader), released: true });
  const places = (...more: Parameters<typeof ledgerOf>): readonly number[] =>
    ["a@1", "b@1", "c@1"].map((self) => placeOf(peer(self), ledgerOf(...more)));

  test("is that in the roster, and whoever led comes last: the first one of the others begins at once", () => {
    const led = { ...ABC, term: 4 };
    expect(places(led, { term: 4, grant: grantOf("a@1", 4) })).toEqual([2, 0, 1]);
    expect(places(led, { term: 4, grant: grantOf("b@1", 4) })).toEqual([0, 2, 1]);
    expect(places(led)).toEqual([0, 1, 2]);
  });

  test("does not change for a candidate that lost: voters that have granted different ones must not take the same place", () => {
    expect(places({ ...ABC, term: 4 }, { term: 6, grant: grantOf("a@1", 6) })).toEqual([0, 1, 2]);
  });

  test("a former leader that votes no more takes no place", () => {
    expect(places({ ...ABC, term: 4 }, { term: 4, grant: grantOf("d@1", 4) })).toEqual([0, 1, 2]);
  });
});

describe("a candidacy", () => {
  const candidacy = () => new Candidacy({ self: A, clusterId: CLUSTER, roster: ABC, term: 1 });

  test("the candidate's own grant is durable before it asks others, so that a term on the wire is never asked for again", () => {
    const one = candidacy();
    expect(() => one.otherRequests()).toThrow("own grant");
    one.took(one.ownRequest(), at(0), accepted(one.ownRequest()));
    expect(one.otherRequests().map(({ to }) => to.peer)).toEqual(["b@1", "c@1"]);
  });

  test("is won with its own grant and a majority of the roster's voters, and lost at a higher term", () => {
    const won = candidacy();
    won.took(won.ownRequest(), at(0), accepted(won.ownRequest()));
    expect(won.verdict).toBe("open");
    const [toB] = won.otherRequests();
    won.took(toB!, at(0), accepted(toB!));
    expect(won.verdict).toBe("won");
    const lost = candidacy();
    lost.took(lost.ownRequest(), at(0), refused(lost.ownRequest(), "term-stale", 5));
    expect(lost.verdict).toBe("lost");
  });

  test("is lost as soon as so many have refused that no majority is left: it must not hold its own vote any longer", () => {
    const one = candidacy();
    one.took(one.ownRequest(), at(0), accepted(one.ownRequest()));
    const [toB, toC] = one.otherRequests();
    one.took(toB!, at(0), refused(toB!, "term-stale", 1));
    expect(one.verdict).toBe("open");
    one.took(toC!, at(0), refused(toC!, "term-stale", 1));
    expect(one.verdict).toBe("lost");
  });

  test("is hopeless where only silent voters could still grant it, and may be won all the same", () => {
    const one = candidacy();
    one.took(one.ownRequest(), at(0), accepted(one.ownRequest()));
    const [toB, toC] = one.otherRequests();
    const answering = new Set([peer("b@1")]);
    expect(one.isHopeless(answering)).toBe(false);
    one.took(toB!, at(0), refused(toB!, "term-stale", 1));
    expect([one.isHopeless(answering), one.isHopeless(new Set([peer("b@1"), peer("c@1")]))]).toEqual([true, false]);
    one.took(toC!, at(0), accepted(toC!));
    expect([one.isHopeless(answering), one.verdict]).toEqual([false, "won"]);
  });

  test("a voter whose term is not believed refuses, and no more: the others elect (trap 31)", () => {
    const one = candidacy();
    one.took(one.ownRequest(), at(0), accepted(one.ownRequest()));
    const [toB, toC] = one.otherRequests();
    one.took(toB!, at(0), refused(toB!, "term-stale", 2 + LEASE_TERM_JUMP_MAX));
    one.took(toC!, at(0), accepted(toC!));
    expect(one.verdict).toBe("won");
  });

  test("a wiped voter's answer is not its predecessor's (hole 1)", () => {
    const one = candidacy();
    one.took(one.ownRequest(), at(0), accepted(one.ownRequest()));
    for (const sent of one.otherRequests())
      one.took(sent, at(0), accepted(sent, { voter: peer(`${sent.to.endpoint}@2`) }));
    expect(one.verdict).toBe("open");
  });
});
