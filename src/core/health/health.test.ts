import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { ELECTION_HISTORY_MAX, TERM_JUMP_MAX } from "../kit/limits.ts";
import type { ElectionRecord, RaftEvent } from "../raft/types.ts";
import { Health } from "./health.ts";
import { PRE_VOTES_KEPT_MAX } from "./limits.ts";
import type { Beacon, HealthOutput, Observation } from "./outputs.ts";

const [A, B, C] = [peerKey("n1", "a1"), peerKey("n2", "a1"), peerKey("n3", "a1")];
const STRANGER = peerKey("n9", "a1");
/** Where the wall clock stands when the other one shows 0. */
const WALL_MS = 1_000_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

class Desk {
  readonly health = new Health({
    self: A,
    startedAt: { nowMs: 0, wallMs: WALL_MS },
    chainHashAt: () => null,
    isMember: (peer) => peer === A || peer === B || peer === C,
    ownTerm: () => this.term,
  });
  nowMs = 0;
  term = 0;

  get at() {
    return { nowMs: this.nowMs, wallMs: WALL_MS + this.nowMs };
  }

  get alerts(): string[] {
    return this.health.alerts.map(({ name }) => name);
  }

  tell(event: RaftEvent): readonly HealthOutput[] {
    return this.health.event(this.at, event);
  }

  role(
    role: "follower" | "candidate" | "leader" | "pre-candidate",
    term: number,
    leader = role === "leader" ? A : null,
  ) {
    this.term = term;
    return this.tell({ kind: "role", role, term, leader });
  }

  follow(term: number, leader = B): readonly HealthOutput[] {
    return this.role("follower", term, leader);
  }

  election(given: Partial<ElectionRecord> = {}): readonly HealthOutput[] {
    const record: ElectionRecord = {
      term: 2,
      stage: "vote",
      reason: "timeout",
      candidate: A,
      candidates: [A],
      votes: [{ voter: A, granted: true }],
      startedAtMs: this.nowMs,
      durationMs: 0,
      result: "won",
      ...given,
    };
    return this.tell({ kind: "election", record });
  }

  failedPreVote(): readonly HealthOutput[] {
    return this.election({ stage: "pre-vote", result: "timed-out", startedAtMs: this.nowMs - 10, durationMs: 10 });
  }

  /** As a whole: candidate, elected, established. */
  win(term: number, reason: ElectionRecord["reason"] = "timeout"): readonly HealthOutput[] {
    this.role("candidate", term);
    const told = [...this.election({ term, reason }), ...this.role("leader", term)];
    return [...told, ...this.tell({ kind: "established", term, index: 1 })];
  }

  tick(seen: Partial<Observation> = {}): readonly HealthOutput[] {
    return this.health.tick(this.at, {
      isMember: true,
      leader: null,
      leaderContactMs: 0,
      disk: "ok",
      historyQuota: "ok",
      stalls: 0,
      clock: { state: "ok", skewMs: 0 },
      ...seen,
    });
  }

  beacon(from: typeof A, given: Partial<Beacon>): readonly HealthOutput[] {
    const beacon = { role: "follower", term: 1, leader: null, established: false, handedTerm: 0 } as const;
    return this.health.beacon(this.at, from, { ...beacon, applied: 1, chain: [], wallMs: 0, ...given });
  }
}

const kinds = (outputs: readonly HealthOutput[]): string[] => outputs.map(({ kind }) => kind);

describe("the history of elections", () => {
  test("is newest first, bounded, and in wall time", () => {
    const desk = new Desk();
    for (let term = 1; term <= ELECTION_HISTORY_MAX + 50; term++) {
      desk.nowMs = term * 1_000;
      desk.election({ term, startedAtMs: desk.nowMs - 20, durationMs: 20 });
    }
    const { elections } = desk.health;
    expect(elections).toHaveLength(ELECTION_HISTORY_MAX);
    expect(elections[0]).toMatchObject({ term: 178, startedAtMs: WALL_MS + 178_000 - 20, durationMs: 20, repeated: 1 });
    expect(elections.at(-1)?.term).toBe(51);
  });

  test("a row of failed pre-votes is one record, with the last answers, the first start and their number", () => {
    const desk = new Desk();
    desk.election({ term: 1 });
    let told = 0;
    for (let i = 1; i <= 5_000; i++) {
      desk.nowMs = i * 200;
      told += desk.failedPreVote().length;
    }
    const votes = [{ voter: B, granted: false }];
    desk.nowMs += 200;
    told += desk.election({ stage: "pre-vote", result: "lost", votes, durationMs: 5 }).length;
    expect(desk.health.elections).toHaveLength(2);
    expect(desk.health.elections[0]).toMatchObject({
      repeated: 5_001,
      result: "lost",
      votes,
      startedAtMs: WALL_MS + 190,
      durationMs: 5_001 * 200 + 5 - 190,
    });
    // The 1st, 2nd, 4th … 4096th.
    expect(told).toBe(13);
  });

  test("a row ends where a leader is heard, and rows can't push elections out", () => {
    const desk = new Desk();
    for (let term = 1; term <= ELECTION_HISTORY_MAX; term++) desk.election({ term });
    for (let i = 0; i < 500; i++) {
      desk.failedPreVote();
      desk.failedPreVote();
      desk.follow(200);
      desk.role("pre-candidate", 200);
    }
    const stages = desk.health.elections.map(({ stage }) => stage);
    expect(stages.filter((stage) => stage === "pre-vote")).toHaveLength(PRE_VOTES_KEPT_MAX);
    expect(stages).toHaveLength(ELECTION_HISTORY_MAX);
    expect(desk.health.elections[0]?.repeated).toBe(2);
  });

  test("a pre-vote that was won is not kept: the vote behind it is", () => {
    const desk = new Desk();
    expect(desk.election({ stage: "pre-vote" })).toEqual([]);
    expect(desk.health.elections).toEqual([]);
  });

  test("what was refused and what nobody answered have their codes; what another won has none", () => {
    const desk = new Desk();
    const code = (result: ElectionRecord["result"]) =>
      desk.election({ result }).map((output) => "code" in output && output.code);
    expect(code("won")).toEqual([null]);
    expect(code("superseded")).toEqual([null]);
    expect(code("lost")).toEqual(["ERR_VOTE_DENIED"]);
    expect(code("timed-out")).toEqual(["ERR_ELECTION_FAILED"]);
  });
});

describe("the counts of elections", () => {
  test("last from the first pre-vote without a leader until the winner may act", () => {
    const desk = new Desk();
    desk.follow(1);
    desk.nowMs = 100;
    desk.role("pre-candidate", 1);
    desk.nowMs = 400;
    desk.election({ stage: "pre-vote", result: "timed-out", startedAtMs: 100, durationMs: 300 });
    desk.nowMs = 500;
    desk.election({ stage: "pre-vote", startedAtMs: 400, durationMs: 100 });
    desk.role("candidate", 2);
    desk.election({ term: 2, startedAtMs: 500 });
    desk.role("leader", 2);
    expect(desk.health.stats().electionDurationMs.count).toBe(0);
    desk.nowMs = 512;
    desk.tell({ kind: "established", term: 2, index: 9 });
    expect(desk.health.stats()).toMatchObject({ electionsStarted: 1, electionsWon: 1, electionSuccessRate: 1 });
    expect(desk.health.stats().electionDurationMs).toMatchObject({ count: 1, sum: 412 });
  });

  test("a campaign that ended with another's leadership is no part of the next one", () => {
    const desk = new Desk();
    desk.nowMs = 100;
    desk.failedPreVote();
    desk.follow(1);
    desk.nowMs = 50_000;
    desk.win(2);
    expect(desk.health.stats().electionDurationMs.sum).toBe(0);
  });

  test("an election that this node lost has succeeded if somebody won that term, and failed if nobody did", () => {
    const desk = new Desk();
    desk.election({ term: 2, result: "lost" });
    desk.follow(2);
    expect(desk.health.stats().electionSuccessRate).toBe(1);
    desk.election({ term: 3, result: "lost" });
    desk.follow(4);
    expect(desk.health.stats().electionSuccessRate).toBe(0.5);
    expect(kinds(desk.tick())).toEqual(["alert-raised"]);
    expect(desk.health.alerts).toMatchObject([{ name: "election_failed", severity: "warning" }]);
  });

  test("the rate looks back five minutes, and its alert ends with it", () => {
    const desk = new Desk();
    desk.follow(1);
    expect(desk.health.stats().electionSuccessRate).toBeNull();
    desk.election({ term: 2, result: "timed-out" });
    desk.follow(3);
    expect(desk.tick()).toMatchObject([{ kind: "alert-raised", code: "ERR_ELECTION_FAILED" }]);
    expect(desk.tick()).toEqual([]);
    desk.nowMs = 299_000;
    desk.tick();
    expect(desk.alerts).toEqual(["election_failed"]);
    desk.nowMs = 300_001;
    expect(desk.tick()).toMatchObject([{ kind: "alert-cleared", lastedMs: 300_001 }]);
    expect(desk.health.stats(desk.nowMs).electionSuccessRate).toBeNull();
  });
});

describe("failovers", () => {
  test("are changes to another leader: not the first one, and not the same one again", () => {
    const desk = new Desk();
    desk.follow(1, B);
    desk.role("pre-candidate", 1);
    desk.follow(2, B);
    desk.nowMs = 60_000;
    desk.tick();
    expect(desk.health.stats().failovers).toBe(0);
    desk.follow(3, C);
    expect(desk.beacon(C, { role: "leader", term: 3, leader: C })).toMatchObject([
      { kind: "failover", from: B, to: C },
    ]);
    expect(desk.health.stats().failovers).toBe(1);
  });

  test("are none where the new leader says, now or later, that it was asked to lead", () => {
    const desk = new Desk();
    desk.follow(1, B);
    desk.follow(2, C);
    desk.follow(3, B);
    desk.nowMs = 1_000;
    desk.tick();
    desk.beacon(C, { role: "follower", term: 3, leader: B, handedTerm: 2 });
    desk.beacon(B, { role: "leader", term: 3, leader: B, handedTerm: 3 });
    desk.nowMs = 60_000;
    desk.tick();
    expect(desk.health.stats().failovers).toBe(0);
  });

  test("count after a while where the new leader never says anything", () => {
    const desk = new Desk();
    desk.follow(1, B);
    desk.follow(2, C);
    desk.nowMs = 4_999;
    desk.tick();
    expect(desk.health.stats().failovers).toBe(0);
    desk.nowMs = 5_000;
    expect(kinds(desk.tick())).toContain("failover");
  });

  test("the winner knows at once, and who handed over knows too", () => {
    const asked = new Desk();
    asked.follow(1, B);
    expect(kinds(asked.win(2, "transfer"))).not.toContain("failover");
    const alone = new Desk();
    alone.follow(1, B);
    expect(kinds(alone.win(2))).toContain("failover");
    const giver = new Desk();
    giver.win(1);
    giver.follow(2, B);
    giver.tell({
      kind: "transfer",
      result: { success: true, isUnknown: false, message: "", oldLeaderId: A, newLeaderId: B },
    });
    giver.nowMs = 60_000;
    giver.tick();
    expect(giver.health.stats()).toMatchObject({ failovers: 0, transfers: { succeeded: 1, failed: 0 } });
    expect([asked, alone].map(({ health }) => health.stats().failovers)).toEqual([0, 1]);
  });

  test("more than five within an hour are an alert, which ends when the hour has passed", () => {
    const desk = new Desk();
    desk.follow(1, B);
    for (let term = 2; term <= 6; term++) desk.follow(term, term % 2 === 0 ? C : B);
    desk.nowMs = 5_000;
    desk.tick();
    expect([desk.health.stats().failovers, desk.alerts]).toEqual([5, []]);
    desk.follow(7, B);
    desk.nowMs = 10_000;
    desk.tick();
    expect(desk.alerts).toEqual(["failover_rate_high"]);
    desk.nowMs = 10_000 + 3_600_000;
    desk.tick();
    expect(desk.alerts).toEqual([]);
  });
});

describe("alerts", () => {
  test("a leader alerts about followers that do not answer, until they do, leave, or it leads no more", () => {
    const desk = new Desk();
    desk.win(1);
    const miss = (): void => {
      for (const peer of [B, C]) desk.tell({ kind: "follower-unresponsive", peer });
    };
    miss();
    miss();
    expect(desk.health.alerts.map(({ nodeId }) => nodeId)).toEqual(["n2", "n3"]);
    desk.tell({ kind: "follower-recovered", peer: B });
    expect(desk.health.alerts.map(({ nodeId }) => nodeId)).toEqual(["n3"]);
    const configuration = { voters: [A, B], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
    expect(kinds(desk.tell({ kind: "configuration", configuration, index: 5 }))).toEqual(["alert-cleared"]);
    miss();
    expect(kinds(desk.follow(2))).toEqual(["alert-cleared", "alert-cleared"]);
    expect(desk.alerts).toEqual([]);
  });

  test("an alert about a lost disk ends when the leader has swapped another in under the same node id", () => {
    const desk = new Desk();
    desk.win(1);
    const fresh = peerKey("n3", "b2");
    const enter = (voters: PeerKey[], learners: PeerKey[]): readonly HealthOutput[] =>
      desk.tell({
        kind: "configuration",
        configuration: { voters, votersOutgoing: [], learners, learnersNext: [], autoLeave: false },
        index: 5,
      });
    desk.tell({ kind: "follower-unresponsive", peer: C });
    expect(enter([A, B, C], [fresh])).toEqual([]);
    // What is heard of the new disk says nothing about the old one, which still counts.
    expect(desk.tell({ kind: "follower-recovered", peer: fresh })).toEqual([]);
    expect(desk.alerts).toEqual(["follower_unresponsive"]);
    expect(enter([A, B, fresh], [])).toMatchObject([{ kind: "alert-cleared", alert: { nodeId: "n3" } }]);
    expect(desk.alerts).toEqual([]);
  });

  test("a leader that is silent is suspect until somebody leads, or it is heard again without any change of role", () => {
    const desk = new Desk();
    desk.follow(1);
    const suspect = (): unknown => desk.tell({ kind: "leader-suspect", leader: B, silentMs: 300 });
    desk.nowMs = 1_000;
    suspect();
    expect(desk.health.alerts).toMatchObject([{ name: "leader_suspect", nodeId: "n2", sinceWallMs: WALL_MS + 1_000 }]);
    desk.tick({ leader: B, leaderContactMs: 700 });
    expect(desk.alerts).toEqual(["leader_suspect"]);
    desk.tick({ leader: B, leaderContactMs: 1_050 });
    expect(desk.alerts).toEqual([]);
    suspect();
    desk.role("pre-candidate", 1);
    desk.tick();
    expect(desk.alerts).toEqual(["leader_suspect"]);
    desk.follow(2, C);
    expect(desk.alerts).toEqual([]);
  });

  test("a leader that has stepped down does not suspect the one before it", () => {
    const desk = new Desk();
    desk.follow(1);
    desk.win(2);
    desk.role("follower", 2);
    expect(desk.tell({ kind: "leader-suspect", leader: B, silentMs: 90_000 })).toEqual([]);
    expect(desk.alerts).toEqual([]);
  });

  test("no leader for more than 30 s is critical, from the start on too, and a leader ends it", () => {
    const desk = new Desk();
    desk.nowMs = 30_000;
    desk.tick();
    expect(desk.alerts).toEqual([]);
    desk.nowMs = 30_001;
    expect(desk.tick()).toMatchObject([{ code: "ERR_NO_LEADER", alert: { severity: "critical" } }]);
    desk.follow(1);
    expect(kinds(desk.tick({ leader: B }))).toEqual(["alert-cleared"]);
    desk.role("pre-candidate", 1);
    desk.nowMs += 20_000;
    // Its attempts come to nothing: that is still the same silence.
    desk.role("follower", 1);
    desk.nowMs += 10_000;
    desk.tick();
    expect(desk.alerts).toEqual([]);
    desk.nowMs += 1;
    desk.tick();
    expect(desk.alerts).toEqual(["leader_unavailable"]);
  });

  test("nobody speaks to a node that is no member: that is no alert", () => {
    const desk = new Desk();
    desk.follow(1);
    desk.tell({ kind: "leader-suspect", leader: B, silentMs: 300 });
    desk.role("pre-candidate", 1);
    desk.nowMs = 60_000;
    desk.tick({ isMember: false });
    expect(desk.alerts).toEqual([]);
    desk.tick();
    expect(desk.alerts).toEqual(["leader_unavailable"]);
  });

  test("a certificate that this node shows ends within two weeks: until another is shown, and whichever it is", () => {
    const desk = new Desk();
    desk.follow(1);
    const tick = (...ends: { use: "peer" | "api"; leftMs: number }[]): readonly HealthOutput[] =>
      desk.tick({
        leader: B,
        certificates: ends.map(({ use, leftMs }) => ({ use, notAfterMs: desk.at.wallMs + leftMs })),
      });
    tick({ use: "peer", leftMs: 14 * DAY_MS }, { use: "api", leftMs: 14 * DAY_MS });
    expect(desk.alerts).toEqual([]);
    expect(kinds(tick({ use: "peer", leftMs: 15 * DAY_MS }, { use: "api", leftMs: 14 * DAY_MS - 1 }))).toEqual([
      "alert-raised",
    ]);
    const message = (): string => desk.health.alerts[0]!.message;
    expect(desk.health.alerts).toMatchObject([{ name: "certificate_ends", severity: "warning", nodeId: "n1" }]);
    expect(message()).toMatch(
      /^this node's certificate for clients and other coordinators .* ends in 13 days: .*cluster-certificates\.md$/,
    );
    // It is raised once, and says how it is now.
    expect(tick({ use: "peer", leftMs: 1 }, { use: "api", leftMs: 30 * HOUR_MS })).toEqual([]);
    expect(message()).toMatch(
      /for other nodes .* ends in 0 h, and this node's certificate for clients .* ends in 30 h:/,
    );
    tick({ use: "api", leftMs: -1 });
    expect(message()).toContain("has expired");
    expect(kinds(tick({ use: "peer", leftMs: 365 * DAY_MS }, { use: "api", leftMs: 365 * DAY_MS }))).toEqual([
      "alert-cleared",
    ]);
    tick();
    expect(desk.alerts).toEqual([]);
  });

  test("the disk and the loop: while it is so, and a minute after the last stall; the gravest comes first", () => {
    const desk = new Desk();
    desk.follow(1);
    const seen = { leader: B };
    desk.tick({ ...seen, stalls: 2, disk: "low" });
    expect(desk.alerts).toEqual(["disk_low", "loop_stalled"]);
    const [low] = desk.health.alerts;
    expect(low?.message, "what it does, not more").toMatch(/unwilling to lead.*takes no new holds/);
    expect(
      desk.health.alerts.map(({ nodeId }) => nodeId),
      "it is about this node",
    ).toEqual(["n1", "n1"]);
    desk.nowMs = 30_000;
    desk.tick({ ...seen, stalls: 2, disk: "full" });
    expect(desk.alerts).toEqual(["disk_full", "loop_stalled"]);
    desk.nowMs = 60_000;
    desk.tick({ ...seen, stalls: 2 });
    expect(desk.alerts).toEqual([]);
  });

  test("the history's quota: a warning from 80 % on, critical where new jobs are refused, and over when there is room", () => {
    const desk = new Desk();
    desk.follow(1);
    desk.tick({ leader: B, historyQuota: "alarm" });
    expect(desk.health.alerts).toMatchObject([{ name: "history_quota_near", severity: "warning", nodeId: "n1" }]);
    desk.tick({ leader: B, historyQuota: "refuse" });
    expect(desk.health.alerts).toMatchObject([{ name: "history_quota_used", severity: "critical", nodeId: "n1" }]);
    desk.tick({ leader: B });
    expect(desk.alerts).toEqual([]);
  });

  test("a line that is not given out: after half a minute, at once where the disk is an older copy, and over when it is", () => {
    const desk = new Desk();
    desk.follow(1);
    const held = { why: "paris is not compared yet", isBehind: false };
    desk.tick({ leader: B, signingHeld: { ...held, heldMs: 29_999 } });
    expect(desk.alerts, "peers are dialling").toEqual([]);
    desk.tick({ leader: B, signingHeld: { ...held, heldMs: 30_000 } });
    expect(desk.health.alerts).toMatchObject([{ name: "mesh_signing_held", severity: "warning", nodeId: "n1" }]);
    expect(desk.health.alerts[0]?.message).toMatch(/^paris is not compared yet.*mesh evict SITE.*mesh-sites\.md$/);
    desk.tick({ leader: B });
    expect(desk.alerts).toEqual([]);
    desk.tick({ leader: B, signingHeld: { why: "an older copy", isBehind: true, heldMs: 0 } });
    expect(desk.health.alerts[0]?.message).toMatch(/^an older copy.*mesh resume --new-line/);
  });

  test("receipts that are missing are said as events are, and in the same alert", () => {
    const desk = new Desk();
    desk.follow(1);
    const range = { first: 3, last: 9 };
    desk.tick({ leader: B, receipts: { missing: [range], lost: [], awaited: [B] } });
    expect(desk.health.alerts).toMatchObject([{ name: "history_incomplete", nodeId: "n1" }]);
    expect(desk.health.alerts[0]!.message).toContain("receipts of other sites' events 3 to 9 are missing here, and n2");
    const events = { missing: [range], lost: [range], awaited: [] };
    desk.tick({ leader: B, history: events, receipts: { missing: [range], lost: [range], awaited: [] } });
    expect(desk.alerts).toEqual(["history_lost"]);
    expect(desk.health.alerts[0]!.message).toContain(
      "events 3 to 9 and receipts of other sites' events 3 to 9 are lost",
    );
    desk.tick({ leader: B });
    expect(desk.alerts).toEqual([]);
  });

  test("history that is missing is said with who may have it, and as lost where no member has it, until it is here", () => {
    const desk = new Desk();
    desk.follow(1);
    const ranges = [
      { first: 1, last: 20 },
      { first: 41, last: 60 },
    ];
    desk.tick({ leader: B, history: { missing: ranges, lost: [], awaited: [B] } });
    expect(desk.health.alerts).toMatchObject([{ name: "history_incomplete", severity: "warning", nodeId: "n1" }]);
    expect(desk.health.alerts[0]!.message).toContain("events 1 to 20, 41 to 60 are missing here, and n2 may have them");
    desk.tick({ leader: B, history: { missing: ranges, lost: [ranges[1]!], awaited: [B] } });
    expect(desk.alerts).toEqual(["history_incomplete", "history_lost"]);
    expect(desk.health.alerts[0]!.message).toContain("events 1 to 20 are missing here");
    expect(desk.health.alerts[1]!.message).toContain("events 41 to 60 are lost: no member has them");
    desk.tick({ leader: B, history: { missing: [], lost: [], awaited: [] } });
    expect(desk.alerts).toEqual([]);
  });

  test("a stall is told once as once, and more as many", () => {
    const desk = new Desk();
    desk.follow(1);
    desk.tick({ leader: B, stalls: 1 });
    expect(desk.health.alerts[0]?.message).toContain("held up once since its start, within the last minute");
    desk.tick({ leader: B, stalls: 2 });
    expect(desk.health.alerts[0]?.message).toContain("held up 2 times since its start, the last time within the last");
  });

  test("split brain stays, whatever happens afterwards", () => {
    const desk = new Desk();
    desk.follow(3, B);
    expect(desk.beacon(C, { role: "leader", term: 3, leader: C })).toContainEqual(
      expect.objectContaining({ kind: "alert-raised", code: "ERR_SPLIT_BRAIN" }),
    );
    desk.follow(4, C);
    desk.nowMs = 100_000_000;
    desk.tick({ leader: C, leaderContactMs: desk.nowMs });
    expect(desk.health.alerts).toMatchObject([{ name: "multiple_leaders", severity: "critical" }]);
    expect(desk.health.stats().splitBrains).toBe(1);
  });
});

describe("trap 31: a beacon that is wrong", () => {
  /** Leads terms 7 to 10, one after the other, and hears an honest beacon in each; the terms in which it was deposed. */
  function deposedIn(desk: Desk): number[] {
    return [7, 8, 9, 10].filter((term) => {
      desk.nowMs += 1_000;
      desk.win(term);
      return kinds(desk.beacon(B, { term, leader: A })).includes("step-down");
    });
  }

  test("of a peer that is no member changes nothing, whatever it says", () => {
    const desk = new Desk();
    desk.win(6);
    const wrong = { term: 6, role: "leader", leader: STRANGER, chain: [{ index: 1, hash: 1 }] } as const;
    expect(desk.beacon(STRANGER, wrong)).toEqual([]);
    expect(desk.beacon(STRANGER, { ...wrong, term: 2 ** 31 + 7 })).toEqual([]);
    expect(deposedIn(desk)).toEqual([]);
    expect([desk.alerts, desk.health.staleTerms, desk.health.ignoredBeacons]).toEqual([[], 0, 2]);
  });

  test("of a term that no honest cluster has reached changes nothing", () => {
    const desk = new Desk();
    desk.win(6);
    expect(desk.beacon(B, { role: "leader", leader: B, term: 6 + TERM_JUMP_MAX + 1 })).toEqual([]);
    expect(deposedIn(desk)).toEqual([]);
    expect(desk.health.ignoredBeacons).toBe(1);
    desk.win(11);
    expect(kinds(desk.beacon(B, { role: "leader", leader: B, term: 11 + TERM_JUMP_MAX }))).toContain("step-down");
  });

  test("asks the leader that hears it to step down, once, and no leader after it", () => {
    const desk = new Desk();
    desk.win(6);
    const wrong = { term: 2 ** 31 + 7, leader: B } as const;
    expect(kinds(desk.beacon(C, wrong))).toEqual(["step-down"]);
    expect(deposedIn(desk)).toEqual([]);
    // Said again, it is the same claim; another one is another.
    expect(kinds(desk.beacon(C, wrong))).toEqual([]);
    expect(kinds(desk.beacon(C, { term: 12, leader: C }))).toEqual(["step-down"]);
  });

  test("that was heard before this node led does not depose it, and makes no other leader a stale one", () => {
    const desk = new Desk();
    desk.follow(6);
    desk.beacon(C, { term: 2 ** 31 + 7, leader: C });
    expect(deposedIn(desk)).toEqual([]);
    desk.follow(11);
    expect(desk.beacon(B, { role: "leader", leader: B, term: 11 })).not.toContainEqual(
      expect.objectContaining({ kind: "term-stale" }),
    );
    expect(desk.health.staleTerms).toBe(0);
  });
});
