import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { Health } from "./health.ts";
import type { Beacon, HealthOutput } from "./outputs.ts";
import { SplitBrain } from "./split-brain.ts";

const PEERS = ["n1", "n2", "n3", "n4", "n5"].map((nodeId) => peerKey(nodeId, "a1"));
const [A, B, C] = PEERS as [PeerKey, PeerKey, PeerKey];
const known = { isMember: (peer: PeerKey) => PEERS.includes(peer), ownTerm: () => TERMS } as const;
const TERMS = 12;
const INDEXES = 40;

/** An honest history: at most one leader in each term, one hash at each index. */
interface History {
  readonly leaderOf: readonly (PeerKey | null)[];
}

interface Said {
  readonly from: PeerKey;
  readonly beacon: Beacon;
}

const hashAt = (index: number): number => Math.imul(index, 0x9e3779b1) >>> 0;

const histories: fc.Arbitrary<History> = fc
  .array(fc.constantFrom(null, ...PEERS), { minLength: TERMS, maxLength: TERMS })
  .map((leaderOf) => ({ leaderOf }));

/** What a node could have said at some moment of that history. */
function sayings({ leaderOf }: History): fc.Arbitrary<Said> {
  return fc
    .record({
      from: fc.constantFrom(...PEERS.slice(1)),
      term: fc.nat(TERMS - 1),
      heard: fc.boolean(),
      applied: fc.integer({ min: 1, max: INDEXES }),
    })
    .map(({ from, term, heard, applied }) => {
      const leader = leaderOf[term] ?? null;
      const leads = leader === from && heard;
      const beacon: Beacon = {
        role: leads ? "leader" : "follower",
        term,
        leader: heard ? leader : null,
        established: leads,
        handedTerm: 0,
        applied,
        chain: [applied, Math.ceil(applied / 2)].map((index) => ({ index, hash: hashAt(index) })),
        wallMs: 0,
      };
      return { from, beacon };
    });
}

const runs = histories.chain((history) =>
  fc.record({
    history: fc.constant(history),
    // In any order, late, twice, never.
    said: fc.array(sayings(history), { minLength: 1, maxLength: 60 }),
    // Our own progress, which the claims of the others may be ahead of or behind.
    ownApplied: fc.array(fc.nat(INDEXES), { minLength: 60, maxLength: 60 }),
    ownTerms: fc.array(fc.nat(TERMS - 1), { minLength: 60, maxLength: 60 }),
  }),
);

const quiet = {
  isMember: true,
  leader: null,
  leaderContactMs: 0,
  disk: "ok",
  historyQuota: "ok",
  stalls: 0,
  clock: { state: "ok", skewMs: 0 },
} as const;

interface Run {
  readonly history: History;
  readonly said: readonly Said[];
  readonly ownApplied: readonly number[];
  readonly ownTerms: readonly number[];
}

function play({ history, said, ownApplied, ownTerms }: Run): { health: Health; outputs: HealthOutput[] } {
  let applied = 0;
  const at = { nowMs: 1_000, wallMs: 1_000 };
  const chainHashAt = (index: number): number | null => (index <= applied ? hashAt(index) : null);
  const health = new Health({ self: A, startedAt: at, chainHashAt, ...known });
  const outputs: HealthOutput[] = [];
  let ownTerm = 0;
  for (const [step, { from, beacon }] of said.entries()) {
    applied = Math.max(applied, ownApplied[step] ?? 0);
    ownTerm = Math.max(ownTerm, ownTerms[step] ?? 0);
    const leader = history.leaderOf[ownTerm] ?? null;
    const role = leader === A ? "leader" : "follower";
    outputs.push(...health.event(at, { kind: "role", role, term: ownTerm, leader }));
    outputs.push(...health.beacon(at, from, beacon));
    outputs.push(...health.tick(at, quiet));
  }
  applied = INDEXES;
  outputs.push(...health.tick(at, quiet));
  return { health, outputs };
}

const alarms = (health: Health): string[] =>
  health.alerts.map(({ name }) => name).filter((name) => name === "multiple_leaders" || name === "state_diverged");

describe("the detector", () => {
  test("trap 22: never cries over an honest history, in whatever order and how late it is told", () => {
    fc.assert(
      fc.property(runs, (run) => {
        const { health } = play(run);
        expect(alarms(health)).toEqual([]);
        expect(health.stats().splitBrains).toBe(0);
      }),
    );
  });

  test("finds every second leader of a term, whenever the two are told, and whoever tells", () => {
    const plants = fc.record({
      run: runs,
      term: fc.nat(TERMS - 1),
      // The leader says so itself, or somebody follows it.
      ways: fc.tuple(fc.boolean(), fc.boolean()),
      places: fc.tuple(fc.nat(60), fc.nat(60)),
    });
    fc.assert(
      fc.property(plants, ({ run, term, ways, places }) => {
        const leaders = PEERS.slice(1, 3);
        const said = [...run.said];
        for (const [i, leader] of leaders.entries()) {
          const itself = ways[i]!;
          const from = itself ? leader : PEERS[3 + i]!;
          const beacon: Beacon = {
            role: itself ? "leader" : "follower",
            term,
            leader,
            established: itself,
            handedTerm: 0,
            applied: 1,
            chain: [],
            wallMs: 0,
          };
          said.splice(Math.min(places[i]!, said.length), 0, { from, beacon });
        }
        const { health, outputs } = play({ ...run, said });
        expect(alarms(health)).toContain("multiple_leaders");
        expect(health.stats().splitBrains).toBeGreaterThanOrEqual(1);
        const raised = outputs.filter((output) => output.kind === "alert-raised" && output.code === "ERR_SPLIT_BRAIN");
        expect(raised).toHaveLength(1);
        expect(
          outputs.some((output) => output.kind === "alert-cleared" && output.alert.name === "multiple_leaders"),
        ).toBe(false);
      }),
    );
  });

  test("finds every state that differs, whether we are ahead of it or behind", () => {
    const plants = fc.record({ run: runs, index: fc.integer({ min: 1, max: INDEXES }), place: fc.nat(60) });
    fc.assert(
      fc.property(plants, ({ run, index, place }) => {
        const beacon: Beacon = {
          role: "follower",
          term: 0,
          leader: null,
          established: false,
          handedTerm: 0,
          applied: index,
          chain: [{ index, hash: hashAt(index) ^ 1 }],
          wallMs: 0,
        };
        const said = [...run.said];
        said.splice(Math.min(place, said.length), 0, { from: B, beacon });
        const { health } = play({ ...run, said });
        expect(alarms(health)).toContain("state_diverged");
        expect(health.alerts.some(({ name, nodeId }) => name === "state_diverged" && nodeId === "n2")).toBe(true);
      }),
    );
  });

  test("finds two others that differ from each other where we do not know our own any more", () => {
    const detector = new SplitBrain(A, () => null);
    expect(detector.claims(B, { index: 7, hash: 1 })).toEqual([]);
    expect(detector.claims(B, { index: 7, hash: 1 })).toEqual([]);
    expect(detector.claims(C, { index: 7, hash: 2 })).toEqual([{ kind: "diverged", index: 7, nodes: [B, C] }]);
    // Reported once, though they will differ for ever.
    expect(detector.claims(C, { index: 8, hash: 4 })).toEqual([]);
    expect(detector.claims(B, { index: 8, hash: 3 })).toEqual([]);
  });

  test("two disks of one node that lead one term are two leaders", () => {
    const detector = new SplitBrain(A, () => null);
    detector.leads(3, peerKey("n2", "a1"));
    expect(detector.leads(3, peerKey("n2", "b2"))).toMatchObject([{ kind: "two-leaders", term: 3 }]);
  });

  test("its memory is bounded: of very many terms and claims the newest are kept", () => {
    const detector = new SplitBrain(A, () => null);
    for (let term = 1; term <= 5_000; term++) detector.leads(term, B);
    expect(detector.leads(1, C)).toEqual([]);
    expect(detector.leads(5_000, C)).toHaveLength(1);
    for (let index = 1; index <= 5_000; index++) detector.claims(B, { index, hash: 1 });
    expect(detector.claims(C, { index: 1, hash: 2 })).toEqual([]);
    expect(detector.claims(C, { index: 5_000, hash: 2 })).toHaveLength(1);
  });
});

describe("leaders of different terms", () => {
  const at = { nowMs: 1_000, wallMs: 9_000 };
  const says = (term: number): Beacon => ({
    role: "leader",
    term,
    leader: null,
    established: true,
    handedTerm: 0,
    applied: 1,
    chain: [],
    wallMs: 5,
  });

  test("this node steps down where it is the lower one, and is told so once", () => {
    const health = new Health({ self: A, startedAt: at, chainHashAt: () => null, ...known });
    health.event(at, { kind: "role", role: "leader", term: 3, leader: A });
    const told = health.beacon(at, B, says(5));
    expect(told).toContainEqual({ kind: "step-down", term: 3, currentTerm: 5, leader: B, code: "ERR_TERM_STALE" });
    expect(health.beacon(at, B, says(5))).toEqual([]);
    expect([health.alerts, health.staleTerms, health.stats().splitBrains]).toEqual([[], 1, 0]);
  });

  test("the other's lower term is counted once, and is nobody's alarm", () => {
    const health = new Health({ self: A, startedAt: at, chainHashAt: () => null, ...known });
    health.event(at, { kind: "role", role: "leader", term: 5, leader: A });
    expect(health.beacon(at, B, says(3))).toEqual([
      { kind: "term-stale", peer: B, term: 3, currentTerm: 5, saidAtWallMs: 5, code: "ERR_TERM_STALE" },
    ]);
    expect(health.beacon(at, B, says(3))).toEqual([]);
    expect([health.alerts, health.staleTerms]).toEqual([[], 1]);
  });
});
