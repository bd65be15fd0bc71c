// The leader's rules, each sentence of the design (2.3 to 2.7) by its own test.

import { describe, expect, test } from "vitest";
import { Candidacy } from "./candidacy.ts";
import { CLOCK_DRIFT_MAX, MEMBERS_MAX } from "../kit/limits.ts";
import { LEASE_TRUST_MS, LEASE_TTL_MS, ROUND_ANSWERED_MS, LEASE_TERM_JUMP_MAX } from "./limits.ts";
import type { Outgoing } from "./model.ts";
import { isVoter, positionOf } from "./roster.ts";
import {
  CLUSTER,
  accepted,
  asked,
  at,
  elected,
  ledgerOf,
  opened,
  peer,
  refused,
  rosterOf,
  round,
  voterOf,
  votersOf,
} from "./test-lease.ts";

const ABC = rosterOf(0, 1, "a@1", "b@1", "c@1");
const ALL = ["a@1", "b@1", "c@1"];
const IDS = new Set(["a", "b", "c"]);
const entry = { backendHash: "h", endpoint: "e" };

describe("time", () => {
  test("the leader counts from sending, a voter from receipt, and no clocks within 20 % make the one outlast the other", () => {
    expect(LEASE_TRUST_MS / (1 - CLOCK_DRIFT_MAX)).toBeLessThanOrEqual(LEASE_TTL_MS / (1 + CLOCK_DRIFT_MAX));
  });

  test("a leader counts its lease from the beginning of a round, not from its end (hole 2)", () => {
    const leader = opened(ABC, 1);
    const sent = leader.round([]);
    for (const one of sent) leader.took(one, at(500), accepted(one));
    expect(leader.isOpen(at(500 + LEASE_TRUST_MS - 1))).toBe(true);
    expect(leader.isOpen(at(500 + LEASE_TRUST_MS))).toBe(false);
  });

  test("either clock ends the trust", () => {
    const leader = opened(ABC, 1);
    expect(leader.isOpen({ monotonicMs: 1, wallMs: at(LEASE_TRUST_MS).wallMs })).toBe(false);
    expect(leader.isOpen({ monotonicMs: LEASE_TRUST_MS, wallMs: at(1).wallMs })).toBe(false);
  });

  test("an answer counts from its own request, also when it comes after a later one", () => {
    const leader = opened(ABC, 1);
    const [early] = [leader.round([])];
    round(leader, 1_000, ALL);
    for (const sent of early) leader.took(sent, at(100), accepted(sent));
    expect(leader.provedAt).toEqual(at(1_000));
  });

  test("an answer that promises less than the lease is no proof", () => {
    const leader = opened(ABC, 1);
    for (const sent of leader.round([])) {
      leader.took(sent, at(1_000), accepted(sent, { outcome: { kind: "accepted", lastsMs: LEASE_TTL_MS - 1 } }));
    }
    expect(leader.provedAt).toEqual(at(0));
  });

  test("a gate that closed opens again in the same term, until the whole lease has passed without a quorum", () => {
    const leader = opened(ABC, 1);
    expect(leader.isOpen(at(LEASE_TRUST_MS))).toBe(false);
    round(leader, 2_500, ["a@1", "b@1"]);
    expect(leader.isOpen(at(2_501))).toBe(true);
    leader.passTime(at(2_500 + LEASE_TTL_MS));
    expect(leader.over).toBe("expired");
    round(leader, 6_000, ALL);
    expect(leader.isOpen(at(6_001))).toBe(false);
  });
});

describe("quorum", () => {
  test("the quorum is that of the roster, whoever is listed or answers (hole 1)", () => {
    const leader = opened(rosterOf(0, 1, "a@1", "b@1", "c@1", "d@1", "e@1"), 1);
    round(leader, 1_000, ["a@1", "b@1"]);
    expect(leader.provedAt).toEqual(at(0));
    round(leader, 2_000, ["a@1", "b@1", "e@1"]);
    expect(leader.provedAt).toEqual(at(2_000));
  });

  test("an answer counts only for exactly that voter: a wiped one's successor does not vote for it", () => {
    const leader = opened(ABC, 1);
    for (const sent of leader.round([])) {
      if (sent.to.peer !== "a@1")
        leader.took(sent, at(1_000), accepted(sent, { voter: peer(`${sent.to.endpoint}@2`) }));
      else leader.took(sent, at(1_000), accepted(sent));
    }
    expect(leader.provedAt).toEqual(at(0));
    expect(leader.isReplaced(peer("b@1"))).toBe(true);
  });

  test("the leader's own voter is one of its quorum, whoever else answers: its disk may hang (trap 30)", () => {
    const leader = opened(ABC, 1);
    round(leader, 1_000, ["b@1", "c@1"]);
    expect(leader.provedAt).toEqual(at(0));
    round(leader, 1_100, ["a@1"]);
    expect(leader.provedAt).toEqual(at(1_000));
  });

  test("an answer of another cluster does not count", () => {
    const leader = opened(ABC, 1);
    for (const sent of leader.round([])) leader.took(sent, at(1_000), accepted(sent, { clusterId: "cluster-2" }));
    expect(leader.provedAt).toEqual(at(0));
  });

  test("until a majority of C′ has stored C′, renewals count only with majorities of both", () => {
    const leader = opened(rosterOf(0, 1, "a@1", "b@1"), 1);
    const others = ["c@1"];
    for (const ms of [1, 2]) round(leader, ms, ["a@1", "b@1", "c@1"], others);
    expect(leader.changeVoters(at(3), votersOf("c@1"), IDS)).toBe(true);
    // A majority of the new three, and half of the old two: they have renewed, and not stored yet.
    for (const sent of leader.round([])) {
      if (sent.to.peer !== "b@1") leader.took(sent, at(1_000), accepted(sent, { roster: { term: 1, version: 1 } }));
    }
    expect(leader.provedAt).toEqual(at(2));
    round(leader, 1_100, ["a@1", "c@1"]);
    expect(leader.provedAt).toEqual(at(1_100));
  });
});

describe("terms", () => {
  test("a leader that sees a higher term steps down", () => {
    const leader = opened(ABC, 1);
    const [, sent] = leader.round([]);
    leader.took(sent!, at(1), refused(sent!, "not-holder", 2));
    expect(leader.over).toBe("higher-term");
  });

  test("but not at a term that is not believed: one voter's word must not keep everybody from leading (trap 31)", () => {
    const leader = opened(ABC, 1);
    const [, sent] = leader.round([]);
    leader.took(sent!, at(1), refused(sent!, "term-stale", 2 + LEASE_TERM_JUMP_MAX));
    expect(leader.over).toBeNull();
  });

  test("also where a voter has given this very term to a candidate that lost: it could never follow in this term", () => {
    const leader = opened(ABC, 3);
    const [, sent] = leader.round([]);
    leader.took(sent!, at(1), refused(sent!, "term-stale", 3));
    expect(leader.over).toBe("higher-term");
  });

  test("a node that sees a higher generation closes its gate", () => {
    const told = opened(ABC, 1);
    const [, sent] = told.round([]);
    told.took(sent!, at(1), refused(sent!, "generation-over", 1));
    const seen = opened(ABC, 1);
    seen.yieldTo(1);
    for (const leader of [told, seen]) expect(leader.isOpen(at(1))).toBe(false);
  });
});

describe("opening", () => {
  test("the winner re-stamps the roster with its term, and its gate opens when a majority has stored it", () => {
    const leader = elected(ABC, 4);
    expect(leader.roster).toEqual({ ...ABC, term: 4, version: 1 });
    round(leader, 1, ["a@1"]);
    expect(leader.isOpen(at(1))).toBe(false);
    round(leader, 2, ["b@1"]);
    expect(leader.isOpen(at(2))).toBe(true);
  });

  test("what a winner's roster contains is shown when its gate opens", () => {
    const leader = elected({ ...ABC, registry: [entry] }, 4);
    const marks = () => leader.round([]).map(({ request }) => (request.kind === "renew" ? request.mark : null));
    expect(marks()).toEqual([null, null, null]);
    round(leader, 1, ALL);
    expect(marks()).toEqual([1, 2, 3].map(() => ({ term: 4, version: 1 })));
  });

  test("a node that has not granted the leader's term is first sent an acquire with that term and the re-stamped roster", () => {
    const leader = opened(ABC, 2);
    const toD = () => leader.round(votersOf("d@1")).find(({ to }) => to.peer === "d@1")!;
    expect(toD().request).toMatchObject({ kind: "acquire", term: 2, roster: { term: 2, version: 1 } });
    leader.took(toD(), at(1), accepted(toD()));
    expect(toD().request.kind).toBe("renew");
    // And a voter takes it.
    expect(asked(voterOf("d@1", ledgerOf(ABC)), 0, opened(ABC, 2).round(votersOf("d@1"))[3]!.request)).toBe("accepted");
  });
});

describe("voters", () => {
  const joined = () => {
    const leader = opened(ABC, 1);
    for (const ms of [1, 2]) round(leader, ms, [...ALL, "d@1", "e@1"], ["d@1", "e@1"]);
    return leader;
  };

  test("one voter differs, and the next change waits until a majority of C′ has stored C′", () => {
    const leader = joined();
    const both = votersOf("d@1", "e@1");
    expect(leader.changeVoters(at(3), both, IDS)).toBe(true);
    expect(leader.roster.voters.map((voter) => voter.peer)).toEqual([...ALL, "d@1"]);
    expect(leader.changeVoters(at(3), both, IDS)).toBe(false);
    expect(leader.changeRegistry(at(3), [entry], [])).toBeNull();
    round(leader, 4, ["a@1", "b@1"], ["e@1"]);
    expect(leader.changeVoters(at(5), both, IDS)).toBe(false);
    round(leader, 6, ["a@1", "b@1", "d@1", "e@1"], ["e@1"]);
    expect(leader.changeVoters(at(7), both, IDS)).toBe(true);
  });

  test("nothing changes while the gate is closed", () => {
    expect(joined().changeVoters(at(2 + LEASE_TRUST_MS), votersOf("d@1"), IDS)).toBe(false);
  });

  test("a joiner is added after one answered renewal, and only while it answers", () => {
    const leader = opened(ABC, 1);
    round(leader, 1, [...ALL, "d@1"], ["d@1"]);
    expect(leader.changeVoters(at(2), votersOf("d@1"), IDS)).toBe(false);
    round(leader, 3, [...ALL, "d@1"], ["d@1"]);
    round(leader, 1_500, ALL, ["d@1"]);
    expect(leader.changeVoters(at(4 + ROUND_ANSWERED_MS), votersOf("d@1"), IDS)).toBe(false);
    expect(leader.changeVoters(at(4), votersOf("d@1"), IDS)).toBe(true);
  });

  test("until a majority of its voters has stored it, a roster is sent to its own voters only", () => {
    const leader = opened(ABC, 1);
    for (const sent of leader.round([]))
      leader.took(sent, at(1), accepted(sent, { isLeaving: sent.to.peer === "c@1" }));
    expect(leader.changeVoters(at(2), [], IDS)).toBe(true);
    expect(isVoter(leader.roster, peer("c@1"))).toBe(false);
    for (const { to, request } of leader.round(votersOf("d@1"))) {
      expect(positionOf(request.roster!).version).toBe(to.peer === "c@1" || to.peer === "d@1" ? 1 : 2);
    }
    round(leader, 3, ["a@1", "b@1"]);
    for (const { request } of leader.round(votersOf("c@1", "d@1"))) expect(request.roster!.version).toBe(2);
  });

  test("of as many voters as there may be 17 are a quorum, nobody is added, and a lost disk is replaced by way of 31", () => {
    const names = Array.from({ length: MEMBERS_MAX }, (_, at) => `n${String(at).padStart(2, "0")}@1`);
    const ids = new Set(names.map((name) => name.split("@")[0]!));
    const leader = opened(rosterOf(0, 1, ...names), 1);
    round(leader, 1_000, names.slice(0, 16));
    expect(leader.provedAt).toEqual(at(0));
    round(leader, 1_000, names.slice(16, 17));
    expect(leader.provedAt).toEqual(at(1_000));
    for (const ms of [1_001, 1_002]) round(leader, ms, [...names, "x@1"], ["x@1"]);
    expect(leader.changeVoters(at(1_003), votersOf("x@1"), new Set([...ids, "x"]))).toBe(false);
    const [last] = leader.round([]).slice(-1);
    leader.took(last!, at(1_003), accepted(last!, { voter: peer("n31@2") }));
    expect(leader.changeVoters(at(1_004), votersOf("x@1"), ids)).toBe(true);
    expect(leader.roster.voters.length).toBe(MEMBERS_MAX - 1);
    for (const ms of [1_005, 1_006]) round(leader, ms, [...names, "n31@2"], ["n31@2"]);
    expect(leader.changeVoters(at(1_007), votersOf("n31@2"), ids)).toBe(true);
    expect(leader.roster.voters.at(-1)!.peer).toBe("n31@2");
  });

  test("who has had no time to answer a new leader is not gone: where nobody is listed yet, nobody is retired at once", () => {
    const names = ["a@1", "b@1", "c@1"];
    const candidacy = new Candidacy({
      self: peer("a@1"),
      clusterId: CLUSTER,
      roster: rosterOf(0, 1, ...names, "d@1"),
      term: 1,
    });
    const all = (): readonly Outgoing[] => [candidacy.ownRequest(), ...candidacy.otherRequests()];
    candidacy.took(candidacy.ownRequest(), at(0), accepted(candidacy.ownRequest()));
    for (const sent of all()) if (names.includes(sent.to.peer)) candidacy.took(sent, at(0), accepted(sent));
    const leader = candidacy.leader();
    round(leader, 1, names);
    const alone = new Set(["a"]);
    expect(leader.changeVoters(at(2), [], alone)).toBe(false);
    round(leader, 1_000, names);
    expect(leader.changeVoters(at(1_001), [], alone)).toBe(false);
    expect(leader.changeVoters(at(3 + ROUND_ANSWERED_MS), [], alone)).toBe(true);
    expect(leader.roster.voters.map((voter) => voter.peer)).toEqual(names);
  });

  test("a voter is removed only if a majority of C′ answered the last round", () => {
    const leader = opened(ABC, 1);
    for (const sent of leader.round([])) {
      if (sent.to.peer === "a@1" || sent.to.peer === "c@1")
        leader.took(sent, at(1_200), accepted(sent, { isLeaving: sent.to.peer === "c@1" }));
    }
    // b answered long ago: a and b would be two voters of whom one is silent.
    expect(leader.changeVoters(at(1_201), [], IDS)).toBe(false);
    round(leader, 1_300, ["a@1", "b@1"]);
    expect(leader.changeVoters(at(1_301), [], IDS)).toBe(true);
  });
});

describe("memory", () => {
  test("a leader keeps nothing of peers that it does not ask any more: one member can show a new disk every second", () => {
    const leader = opened(ABC, 1);
    const requestTo = (name: string) => leader.round(votersOf(name)).find(({ to }) => to.peer === name)!.request.kind;
    for (const ms of [1, 2]) round(leader, ms, ["d@1"], ["d@1"]);
    expect(requestTo("d@1")).toBe("renew");
    expect(requestTo("d@2")).toBe("acquire");
    // Asked for again it is a stranger, also where its answer to the last round comes late.
    const [late] = leader.round(votersOf("d@3")).filter(({ to }) => to.peer === "d@3");
    expect(requestTo("d@1")).toBe("acquire");
    leader.took(late!, at(3), accepted(late!));
    expect(requestTo("d@3")).toBe("acquire");
  });
});

describe("registry", () => {
  const ids = ALL.map(peer);

  test("a change is stored on all listed members and a majority of the voters before any mark shows it", () => {
    const leader = opened(ABC, 1);
    const change = leader.changeRegistry(at(1), [entry], [...ids, peer("d@1")])!;
    const mark = () =>
      leader.round([]).map(({ request }) => (request.kind === "renew" ? request.mark?.version : null))[0];
    round(leader, 2, ALL);
    expect([change.state, mark()]).toEqual(["storing", 1]);
    round(leader, 3, ["d@1"], ["d@1"]);
    expect([change.state, mark()]).toEqual(["shown", 2]);
  });

  test("one fails: v+2 undoes it on a majority, with what was there before (hole 8)", () => {
    const before = [{ backendHash: "old", endpoint: "e" }];
    const leader = opened({ ...ABC, registry: before }, 1);
    const change = leader.changeRegistry(at(1), [entry], ids)!;
    round(leader, 2, ["a@1", "b@1"]);
    leader.undoRegistry(change);
    expect(leader.roster).toMatchObject({ version: 3, registry: before });
    round(leader, 3, ["a@1"]);
    expect(change.state).toBe("undoing");
    round(leader, 4, ["b@1"]);
    expect(change.state).toBe("undone");
    expect(leader.round([])[0]!.request).toMatchObject({ mark: { term: 1, version: 3 } });
  });
});

describe("a voter that moved", () => {
  const moved = (one: string): string | undefined => (one === "b@1" ? "https://new" : undefined);

  test("is in the roster where it answers by now: the same voters, as the next version, one move at a time", () => {
    const leader = opened(ABC, 1);
    expect(leader.moveVoters(at(1), () => undefined)).toBe(false);
    expect(leader.moveVoters(at(1), moved)).toBe(true);
    expect(leader.roster).toMatchObject({ term: 1, version: 2 });
    expect(leader.roster.voters.map((voter) => `${voter.peer} ${voter.endpoint}`)).toEqual([
      "a@1 a",
      "b@1 https://new",
      "c@1 c",
    ]);
    expect(leader.moveVoters(at(2), (one) => `${one}.new`)).toBe(false);
    round(leader, 2, ["a@1", "c@1"]);
    expect(leader.moveVoters(at(3), moved)).toBe(false);
    expect(leader.moveVoters(at(3), (one) => `${one}.new`)).toBe(true);
  });

  test("stays where the roster has it while the gate is closed", () => {
    const leader = opened(ABC, 1);
    expect(leader.moveVoters(at(LEASE_TRUST_MS), moved)).toBe(false);
  });
});

describe("a disk that was put back to an older copy", () => {
  test("counts no more: neither what it promised to this leader nor what it stored, until it grants the term again", () => {
    const leader = opened(ABC, 1);
    const answering = (ms: number, forgets: boolean): void => {
      for (const sent of leader.round([])) {
        const isForgetful = forgets && sent.to.peer === "b@1";
        const position = { term: 0, version: 1 };
        const answer = isForgetful ? { ...refused(sent, "not-holder", 0), roster: position } : accepted(sent);
        if (sent.to.peer !== "c@1") leader.took(sent, at(ms), answer);
      }
    };
    answering(1_000, true);
    expect([...leader.forgetful]).toEqual(["b@1"]);
    // c's word of the beginning is what is left.
    expect(leader.provedAt).toEqual(at(0));
    const [toB] = leader.round([]).filter(({ to }) => to.peer === "b@1");
    expect(toB!.request.kind).toBe("acquire");
    answering(1_100, false);
    expect(leader.provedAt).toEqual(at(1_100));
  });

  test("an answer to an acquire, also a late one, says nothing of the kind: only what was granted can be forgotten", () => {
    const leader = elected(ABC, 1);
    const late = leader.round([]).map((sent) => ({ ...sent, request: { ...sent.request, kind: "acquire" as const } }));
    for (const sent of late) leader.took(sent, at(1), refused(sent, "not-holder", 0));
    expect(leader.forgetful.size).toBe(0);
  });
});
