// The voter's rules, each sentence of the design (2.2, 2.3) by its own test.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GENERATION_TERMS, LEASE_BOOT_WAIT_MS, LEASE_TTL_MS, LEASE_TERM_JUMP_MAX } from "./limits.ts";
import type { VoterRequest } from "./model.ts";
import { comparePositions, recovered } from "./roster.ts";
import { acquire, asked, CLUSTER, ledgerOf, peer, release, renew, rosterOf, voterOf, votersOf } from "./test-lease.ts";

const ABC = rosterOf(0, 1, "a@1", "b@1", "c@1");
const TTL = LEASE_TTL_MS;

describe("identity", () => {
  test("an identity is the certificate's: nobody acquires, renews or releases for another (hole 5)", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    expect(asked(voter, 0, acquire("a@1", "b@1", 1, ABC))).toBe("accepted");
    for (const request of [acquire("a@1", "b@1", 1, ABC), renew("a@1", "b@1", 1, ABC), release("a@1", "b@1", 1)]) {
      const { answer, ledger } = voter.decide(1, "c", request);
      expect(answer.outcome).toEqual({ kind: "refused", reason: "identity-mismatch" });
      expect(ledger).toBeNull();
    }
    expect(voter.leaderAt(2)?.peer).toBe("a@1");
  });

  test("the holder is identity@incarnation: its wiped successor neither renews nor releases its lease", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    asked(voter, 0, acquire("a@1", "b@1", 1, ABC));
    expect(asked(voter, 1, release("a@2", "b@1", 1))).toBe("not-holder");
    expect(asked(voter, 1, renew("a@2", "b@1", 1, rosterOf(0, 1, "a@2", "b@1", "c@1")))).toBe("not-holder");
  });

  test("a request is for exactly one voter: the disk that took its place refuses", () => {
    const voter = voterOf("b@2");
    expect(asked(voter, 0, acquire("a@1", "b@1", 1, ABC))).toBe("other-voter");
    expect(voter.ledger.roster).toBeNull();
  });

  test("requests carry the cluster's id: another cluster's are refused, and whoever is in none adopts the first", () => {
    const voter = voterOf("b@1");
    expect(asked(voter, 0, acquire("a@1", "b@1", 1, ABC))).toBe("accepted");
    expect(voter.ledger.clusterId).toBe(CLUSTER);
    const other: VoterRequest = { ...renew("a@1", "b@1", 1, ABC), clusterId: "cluster-2" };
    expect(asked(voter, 1, other)).toBe("cluster-mismatch");
  });

  test("a missing roster is refused", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    expect(asked(voter, 0, acquire("a@1", "b@1", 1, null))).toBe("roster-missing");
    asked(voter, 0, acquire("a@1", "b@1", 1, ABC));
    expect(asked(voter, 1, renew("a@1", "b@1", 1, null))).toBe("roster-missing");
  });
});

describe("terms", () => {
  test("terms never fall: one that was granted and expired unobserved is not granted to another (hole 3)", () => {
    const voter = voterOf("c@1", ledgerOf(ABC));
    expect(asked(voter, 0, acquire("a@1", "c@1", 1, ABC))).toBe("accepted");
    expect(asked(voter, 10 * TTL, acquire("b@1", "c@1", 1, ABC))).toBe("term-stale");
    expect(asked(voter, 10 * TTL, acquire("b@1", "c@1", 2, ABC))).toBe("accepted");
  });

  test("the same term goes to the same holder, until it has released", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    for (const ms of [0, 1, 10 * TTL]) expect(asked(voter, ms, acquire("a@1", "b@1", 1, ABC))).toBe("accepted");
    expect(asked(voter, 10 * TTL, release("a@1", "b@1", 1))).toBe("accepted");
    expect(asked(voter, 10 * TTL, acquire("a@1", "b@1", 1, ABC))).toBe("term-stale");
  });

  test("one message must not use up a generation's terms: one far beyond the ledger's is refused (trap 31)", () => {
    const voter = voterOf("b@1", ledgerOf(ABC, { term: 5 }));
    expect(asked(voter, 0, acquire("a@1", "b@1", GENERATION_TERMS - 1, ABC))).toBe("impossible");
    expect(asked(voter, 0, acquire("a@1", "b@1", 6 + LEASE_TERM_JUMP_MAX, ABC))).toBe("impossible");
    expect(asked(voter, 0, acquire("a@1", "b@1", 5 + LEASE_TERM_JUMP_MAX, ABC))).toBe("accepted");
    // Nor for a term that is none: it would be the ledger's for ever.
    for (const term of [6.5 + LEASE_TERM_JUMP_MAX, Number.NaN, Infinity])
      expect(asked(voter, 0, acquire("a@1", "b@1", term, ABC))).toBe("impossible");
  });

  test("who knows nothing yet believes any term, and the first ones of a generation are counted from its begin", () => {
    const late = rosterOf(3 * LEASE_TERM_JUMP_MAX, 1, "a@1", "b@1", "c@1");
    expect(asked(voterOf("d@1"), 0, acquire("a@1", "d@1", 3 * LEASE_TERM_JUMP_MAX + 1, late))).toBe("accepted");
    const roster = recovered(ledgerOf(ABC, { term: 7 }), votersOf("a@1")[0]!).roster;
    const outdated = voterOf("b@1", ledgerOf(ABC, { term: 7 }));
    expect(asked(outdated, 0, acquire("a@1", "b@1", GENERATION_TERMS + 3, roster))).toBe("accepted");
  });

  test("a release that is late and names an older term releases nothing", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    asked(voter, 0, acquire("a@1", "b@1", 1, ABC));
    asked(voter, 0, acquire("a@1", "b@1", 2, ABC));
    expect(asked(voter, 1, release("a@1", "b@1", 1))).toBe("not-holder");
    expect(voter.leaderAt(2)?.term).toBe(2);
  });

  test("a release is durable before it is answered, and wakes candidates", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    asked(voter, 0, acquire("a@1", "b@1", 1, ABC));
    const decision = voter.decide(1, "a", release("a@1", "b@1", 1));
    expect(decision.ledger?.grant).toEqual({ term: 1, leader: "a@1", released: true });
    expect(decision.isReleased).toBe(true);
    expect(asked(voter, 1, acquire("c@1", "b@1", 2, ABC))).toBe("accepted");
  });
});

describe("rosters", () => {
  test("a candidate's roster is at least the voter's own", () => {
    const voter = voterOf("b@1", ledgerOf(rosterOf(1, 2, "a@1", "b@1")));
    expect(asked(voter, 0, acquire("c@1", "b@1", 5, rosterOf(1, 1, "a@1", "b@1", "c@1")))).toBe("roster-stale");
    expect(asked(voter, 0, acquire("a@1", "b@1", 5, rosterOf(1, 2, "a@1", "b@1")))).toBe("accepted");
  });

  test("a node that is no voter in its own roster grants by the same rules", () => {
    const voter = voterOf("d@1", ledgerOf(ABC));
    const next = rosterOf(1, 2, "a@1", "b@1", "c@1", "d@1");
    expect(asked(voter, 0, acquire("a@1", "d@1", 1, { ...next, term: 1 }))).toBe("accepted");
    expect(asked(voter, 1, acquire("b@1", "d@1", 2, next))).toBe("lease-active");
  });

  test("a roster is stored only by acquire or renew from the holder of the current grant", () => {
    const voter = voterOf("c@1", ledgerOf(ABC));
    asked(voter, 0, acquire("b@1", "c@1", 2, ABC));
    // The leader of term 1 is cut off, and sends once more.
    expect(asked(voter, 1, renew("a@1", "c@1", 1, rosterOf(1, 3, "a@1", "c@1")))).toBe("not-holder");
    expect(voter.ledger.roster).toEqual(ABC);
    expect(asked(voter, 1, renew("b@1", "c@1", 2, rosterOf(2, 1, "a@1", "b@1", "c@1")))).toBe("accepted");
    expect(voter.ledger.roster?.term).toBe(2);
  });

  test("a candidate that is no voter of its roster, or whose term is of another generation, is refused", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    expect(asked(voter, 0, acquire("d@1", "b@1", 1, ABC))).toBe("impossible");
    expect(asked(voter, 0, acquire("a@1", "b@1", GENERATION_TERMS, ABC))).toBe("impossible");
  });
});

describe("time", () => {
  test("nobody else's lease is granted while one is in force, and from its end on another's is", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    asked(voter, 100, acquire("a@1", "b@1", 1, ABC));
    expect(asked(voter, 100 + TTL - 1, acquire("c@1", "b@1", 2, ABC))).toBe("lease-active");
    expect(asked(voter, 100 + TTL, acquire("c@1", "b@1", 2, ABC))).toBe("accepted");
  });

  test("a request may shorten the time, never lengthen it (hole 5)", () => {
    const lasts = (ttlMs: number): unknown => {
      const voter = voterOf("b@1", ledgerOf(ABC));
      return voter.decide(0, "a", { ...acquire("a@1", "b@1", 1, ABC), ttlMs }).answer.outcome;
    };
    expect(lasts(3_600_000)).toEqual({ kind: "accepted", lastsMs: TTL });
    expect(lasts(50)).toEqual({ kind: "accepted", lastsMs: 50 });
    for (const ttlMs of [0, -1, Number.NaN]) expect(lasts(ttlMs)).toEqual({ kind: "refused", reason: "invalid-ttl" });
  });

  test("an answer names the whole time at any moment of the clock: a thousandth of a nanosecond less would be no proof", () => {
    // Milliseconds with fractions, as processes have them: (now + 3000) - now is often less than 3000.
    for (const nowMs of [259_613.79571367803, 0.1, 1_234_567.89, 2 ** 31 - 0.3]) {
      const voter = voterOf("b@1", ledgerOf(ABC));
      for (const request of [acquire("a@1", "b@1", 1, ABC), renew("a@1", "b@1", 1, ABC)])
        expect(voter.decide(nowMs, "a", request).answer.outcome).toEqual({ kind: "accepted", lastsMs: TTL });
    }
  });

  test("a renewal never moves an expiry backwards", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    asked(voter, 0, acquire("a@1", "b@1", 1, ABC));
    asked(voter, 10, { ...renew("a@1", "b@1", 1, ABC), ttlMs: 1 });
    expect(asked(voter, TTL - 1, acquire("c@1", "b@1", 2, ABC))).toBe("lease-active");
  });

  test("after a restart nobody but the recorded holder is granted for 1.2 times the lease", () => {
    const ledger = ledgerOf(ABC, { term: 1, grant: { term: 1, leader: peer("a@1"), released: false } });
    const restarted = () => voterOf("b@1", ledger, 0);
    expect(asked(restarted(), 0, acquire("c@1", "b@1", 2, ABC))).toBe("lease-active");
    expect(asked(restarted(), LEASE_BOOT_WAIT_MS - 1, acquire("c@1", "b@1", 2, ABC))).toBe("lease-active");
    expect(asked(restarted(), LEASE_BOOT_WAIT_MS, acquire("c@1", "b@1", 2, ABC))).toBe("accepted");
    expect(asked(restarted(), 0, acquire("a@1", "b@1", 2, ABC))).toBe("accepted");
    expect(asked(restarted(), 0, renew("a@1", "b@1", 1, ABC))).toBe("accepted");
  });

  test("a released lease is over, also after a restart", () => {
    const ledger = ledgerOf(ABC, { term: 1, grant: { term: 1, leader: peer("a@1"), released: true } });
    expect(asked(voterOf("b@1", ledger, 0), 0, acquire("c@1", "b@1", 2, ABC))).toBe("accepted");
  });
});

describe("generations", () => {
  const self = votersOf("c@1")[0]!;
  const NEW = recovered(ledgerOf(ABC, { term: 7 }), self);

  test("recover enters the next generation, alone, and keeps the grant for the boot wait", () => {
    const before = ledgerOf(ABC, { term: 7, grant: { term: 7, leader: peer("a@1"), released: false } });
    const after = recovered(before, self);
    expect(after).toMatchObject({
      term: GENERATION_TERMS,
      grant: before.grant,
      roster: { voters: [self], recoveredBy: "c@1" },
    });
    expect(voterOf("c@1", after, 0).leaderAt(1)?.peer).toBe("a@1");
  });

  test("a node that sees a higher generation neither campaigns nor grants, and waits to be admitted", () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    asked(voter, 0, acquire("a@1", "b@1", 1, ABC));
    expect(asked(voter, 1, acquire("c@1", "b@1", GENERATION_TERMS + 1, NEW.roster))).toBe("lease-active");
    expect(voter.isOutdated).toBe(true);
    expect(asked(voter, 2, renew("a@1", "b@1", 1, ABC))).toBe("generation-over");
    expect(asked(voter, TTL, acquire("a@1", "b@1", 2, ABC))).toBe("generation-over");
    expect(asked(voter, TTL, acquire("c@1", "b@1", GENERATION_TERMS + 1, NEW.roster))).toBe("accepted");
    expect(voter.isOutdated).toBe(false);
  });

  test("the same generation with another recovered_by is another cluster", () => {
    const voter = voterOf("c@1", NEW);
    const other = recovered(ledgerOf(ABC), votersOf("a@1")[0]!).roster;
    expect(asked(voter, 0, acquire("a@1", "c@1", GENERATION_TERMS + 5, other))).toBe("cluster-mismatch");
  });
});

describe("what is shown", () => {
  const stored = { ...rosterOf(1, 3, "a@1", "b@1", "c@1"), registry: [{ backendHash: "h", endpoint: "e" }] };
  const voterWith = () => {
    const voter = voterOf("b@1", ledgerOf(ABC));
    asked(voter, 0, acquire("a@1", "b@1", 1, ABC));
    asked(voter, 0, renew("a@1", "b@1", 1, stored));
    return voter;
  };

  test("what is shown is `shown` in the ledger, never the stored roster", () => {
    expect(voterWith().ledger).toMatchObject({ roster: stored, shown: null });
  });

  test("a mark shows exactly (term, version), nothing else", () => {
    for (const version of [2, 4]) {
      const voter = voterWith();
      asked(voter, 1, { ...renew("a@1", "b@1", 1, stored), mark: { term: 1, version } });
      expect(voter.ledger.shown).toBeNull();
    }
    const voter = voterWith();
    asked(voter, 1, { ...renew("a@1", "b@1", 1, stored), mark: { term: 1, version: 3 } });
    expect(voter.ledger.shown).toEqual({ term: 1, version: 3, registry: stored.registry });
  });
});

test("since when nobody leads here: the start, the end of a lease, or its release", () => {
  const voter = voterOf("b@1", ledgerOf(ABC), 10);
  expect(voter.leaderlessSinceMs(500)).toBe(10);
  asked(voter, 1_000, acquire("a@1", "b@1", 1, ABC));
  expect(voter.leaderlessSinceMs(1_000 + TTL - 1)).toBeNull();
  expect(voter.leaderlessSinceMs(9_000)).toBe(1_000 + TTL);
  asked(voter, 9_000, acquire("a@1", "b@1", 1, ABC));
  asked(voter, 9_500, release("a@1", "b@1", 1));
  expect(voter.leaderlessSinceMs(9_600)).toBe(9_500);
  const restarted = voterOf(
    "b@1",
    ledgerOf(ABC, { term: 1, grant: { term: 1, leader: peer("a@1"), released: false } }),
    0,
  );
  expect(restarted.leaderlessSinceMs(LEASE_BOOT_WAIT_MS - 1)).toBeNull();
  expect(restarted.leaderlessSinceMs(LEASE_BOOT_WAIT_MS)).toBe(LEASE_BOOT_WAIT_MS);
});

test("a promise is said to last as long as was asked for, at whatever fraction of a millisecond it is given", () => {
  const voter = voterOf("b@1", ledgerOf(ABC));
  asked(voter, 0, acquire("a@1", "b@1", 1, ABC));
  for (let at = 0; at < 1_000; at++) {
    const { outcome } = voter.decide(at * 1_234.567_89, "a", renew("a@1", "b@1", 1, ABC)).answer;
    expect(outcome).toEqual({ kind: "accepted", lastsMs: TTL });
  }
});

test("whatever is asked, in whatever order: a term has one holder, terms and rosters never fall, and two leases never overlap at one voter", () => {
  const names = ["a@1", "b@1", "c@1"];
  const step = fc.record({
    kind: fc.constantFrom("acquire", "acquire", "renew", "release", "restart"),
    holder: fc.constantFrom(...names),
    term: fc.integer({ min: 1, max: 6 }),
    roster: fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 1, max: 3 })),
    ttlMs: fc.constantFrom(TTL, TTL, 1, 10 * TTL),
    afterMs: fc.integer({ min: 0, max: TTL }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let nowMs = 0;
      let voter = voterOf("b@1", ledgerOf(ABC));
      const holders = new Map<number, string>();
      // A dumb one: who was promised, and until when, over restarts too.
      let promised = { holder: "", untilMs: -1 };
      for (const { kind, holder, term, roster: place, ttlMs, afterMs } of steps) {
        nowMs += afterMs;
        const before = voter.ledger;
        if (kind === "restart") {
          voter = voterOf("b@1", before, nowMs);
          continue;
        }
        const roster = rosterOf(Math.min(place[0], term), place[1], ...names);
        const request =
          kind === "release"
            ? release(holder, "b@1", term)
            : { ...(kind === "acquire" ? acquire : renew)(holder, "b@1", term, roster), ttlMs };
        const { outcome } = voter.decide(nowMs, holder.split("@")[0]!, request).answer;
        const { ledger } = voter;
        expect(ledger.term).toBeGreaterThanOrEqual(before.term);
        expect(comparePositions(ledger.roster!, before.roster!)).toBeGreaterThanOrEqual(0);
        if (outcome.kind === "refused") {
          expect(ledger).toBe(before);
          continue;
        }
        expect(holders.get(term) ?? holder).toBe(holder);
        holders.set(term, holder);
        if (promised.holder !== holder && kind !== "release") expect(nowMs).toBeGreaterThanOrEqual(promised.untilMs);
        const untilMs = nowMs + outcome.lastsMs;
        if (kind === "release") promised = { holder: "", untilMs: -1 };
        else promised = { holder, untilMs: Math.max(untilMs, promised.holder === holder ? promised.untilMs : -1) };
      }
    }),
    { numRuns: 2_000 },
  );
});
