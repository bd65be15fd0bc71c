import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../../kit/assert.ts";
import { nodeIdOf, peerKey, type PeerKey } from "../../kit/ids.ts";
import { CONF_CHANGE_OPERATIONS_MAX, MEMBERS_MAX } from "../../kit/limits.ts";
import { applyConfChange, checkConfiguration, configurationOf, emptyConfiguration } from "./membership.ts";
import type { ConfChange, ConfChangeOperation, Configuration } from "../types.ts";

const SEED = 4;
const [A, B, C, D, E] = ["n1", "n2", "n3", "n4", "n5"].map((nodeId) => peerKey(nodeId, "a")) as [
  PeerKey,
  PeerKey,
  PeerKey,
  PeerKey,
  PeerKey,
];
/** The same node on a new disk. */
const A2 = peerKey("n1", "b");
const LEAVE: ConfChange = { operations: [] };

const add = (peer: PeerKey): ConfChangeOperation => ({ op: "add-voter", peer });
const learn = (peer: PeerKey): ConfChangeOperation => ({ op: "add-learner", peer });
const remove = (peer: PeerKey): ConfChangeOperation => ({ op: "remove", peer });

function applied(configuration: Configuration, ...operations: ConfChangeOperation[]): Configuration {
  const outcome = applyConfChange(configuration, { operations });
  if (!outcome.ok) throw new Error(outcome.reason);
  return outcome.configuration;
}

function reasonFor(configuration: Configuration, ...operations: ConfChangeOperation[]): string {
  const outcome = applyConfChange(configuration, { operations });
  return outcome.ok ? "accepted" : outcome.reason;
}

// ---- the dumb oracles ------------------------------------------------------------------------------

/** Every set of voters that decides in the one, and everybody else: do those decide in the other? */
function quorumsIntersect(before: Configuration, after: Configuration): boolean {
  const everybody = [...new Set([before, after].flatMap((each) => [...each.voters, ...each.votersOutgoing]))];
  for (let subset = 0; subset < 2 ** everybody.length; subset++) {
    const inside = everybody.filter((_, i) => (subset & (1 << i)) !== 0);
    const outside = everybody.filter((_, i) => (subset & (1 << i)) === 0);
    if (decides(before, inside) && decides(after, outside)) return false;
  }
  return true;
}

function decides(configuration: Configuration, peers: readonly PeerKey[]): boolean {
  const halves = [configuration.voters, configuration.votersOutgoing].filter((half) => half.length > 0);
  return halves.every((half) => half.filter((peer) => peers.includes(peer)).length * 2 > half.length);
}

type Roles = Map<PeerKey, "voter" | "learner">;

/** What a change means once it is over, by the letter of the rules; null where they refuse it. */
function rolesAfter(roles: Roles, operations: readonly ConfChangeOperation[]): Roles | null {
  const next: Roles = new Map(roles);
  if (new Set(operations.map(({ peer }) => peer)).size < operations.length) return null;
  for (const { op, peer } of operations) {
    const wanted = op === "add-voter" ? "voter" : op === "add-learner" ? "learner" : undefined;
    if (next.get(peer) === wanted) return null;
    if (wanted === undefined) next.delete(peer);
    else next.set(peer, wanted);
  }
  const voters = [...next.keys()].filter((peer) => next.get(peer) === "voter");
  const hasVoter = voters.length > 0;
  return hasVoter && new Set(voters.map(nodeIdOf)).size === voters.length ? next : null;
}

function listOf(roles: Roles, role: "voter" | "learner"): PeerKey[] {
  return [...roles.keys()].filter((peer) => roles.get(peer) === role).sort();
}

const pool = ["n1", "n2", "n3", "n4"].flatMap((nodeId) => [peerKey(nodeId, "a"), peerKey(nodeId, "b")]);
const operation: fc.Arbitrary<ConfChangeOperation> = fc.record({
  op: fc.constantFrom("add-voter", "add-learner", "remove"),
  peer: fc.constantFrom(...pool),
});
const changes = fc.array(fc.array(operation, { maxLength: 4 }), { maxLength: 30, size: "max" });

// ---- properties ------------------------------------------------------------------------------------

describe("any sequence of changes", () => {
  test("keeps the invariants, ends where the rules say, and consecutive quorums always meet", () => {
    const seen = { simple: 0, joint: 0, refused: 0, staged: 0 };
    fc.assert(
      fc.property(changes, (sequence) => {
        let current = configurationOf([A, B, C], [D]);
        let roles: Roles = new Map([
          [A, "voter"],
          [B, "voter"],
          [C, "voter"],
          [D, "learner"],
        ]);
        for (const operations of sequence.filter((each) => each.length > 0)) {
          const expected = rolesAfter(roles, operations);
          const outcome = applyConfChange(current, { operations });
          expect(outcome.ok).toBe(expected !== null);
          if (!outcome.ok || expected === null) {
            seen.refused++;
            continue;
          }
          expectStep(current, outcome.configuration);
          const entered = outcome.configuration;
          current = entered;
          roles = expected;
          if (entered.votersOutgoing.length > 0) {
            seen.joint++;
            seen.staged += entered.learnersNext.length;
            current = applied(entered);
            expectStep(entered, current);
          } else {
            seen.simple++;
          }
          expect([current.voters, current.learners]).toEqual([listOf(roles, "voter"), listOf(roles, "learner")]);
        }
      }),
      { seed: SEED, numRuns: 300 },
    );
    // A run that never came near the interesting states has shown nothing (trap 33).
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(50);
  });

  function expectStep(before: Configuration, after: Configuration): void {
    expect(checkConfiguration(after)).toBeNull();
    expect(quorumsIntersect(before, after)).toBe(true);
  }

  test("the oracle can tell: two voters changed at once would not always meet", () => {
    expect(quorumsIntersect(configurationOf([A, B, C]), configurationOf([A, D, E]))).toBe(false);
    expect(quorumsIntersect(configurationOf([A, B, C]), configurationOf([A, B, D]))).toBe(false);
  });

  test("a change does not touch the configuration it starts from", () => {
    const before = configurationOf([A, B, C], [D]);
    applied(before, remove(A), add(D), learn(B));
    expect(before).toEqual(configurationOf([A, B, C], [D]));
  });
});

// ---- named rules -----------------------------------------------------------------------------------

describe("simple and joint", () => {
  test("one voter added, removed, promoted or demoted is simple", () => {
    const three = configurationOf([A, B, C], [D]);
    expect(applied(three, add(E))).toEqual(configurationOf([A, B, C, E], [D]));
    expect(applied(three, remove(C))).toEqual({ ...configurationOf([A, B], [D]), removed: [C] });
    expect(applied(three, add(D))).toEqual(configurationOf([A, B, C, D]));
    expect(applied(three, learn(C))).toEqual(configurationOf([A, B], [C, D]));
  });

  test("any number of learners is simple", () => {
    expect(applied(configurationOf([A], [B, C]), remove(B), remove(C), learn(D), learn(E))).toEqual({
      ...configurationOf([A], [D, E]),
      removed: [B, C],
    });
  });

  test("two voters go through a joint configuration, which is left by an empty change", () => {
    const joint = applied(configurationOf([A, B, C]), remove(A), add(D));
    const voters = { voters: [B, C, D], votersOutgoing: [A, B, C] };
    expect(joint).toEqual({ ...voters, learners: [], learnersNext: [], autoLeave: true });
    expect(applied(joint)).toEqual({ ...configurationOf([B, C, D]), removed: [A] });
  });

  test("a demoted voter counts in the outgoing half and becomes a learner on leaving", () => {
    const joint = applied(configurationOf([A, B, C]), learn(A), add(D));
    expect([joint.votersOutgoing, joint.learners, joint.learnersNext]).toEqual([[A, B, C], [], [A]]);
    expect(applied(joint)).toEqual(configurationOf([B, C, D], [A]));
  });

  test("while joint, everything but leaving is refused", () => {
    const joint = applied(configurationOf([A, B, C]), remove(A), add(D));
    expect(reasonFor(joint, add(E))).toMatch(/joint configuration is being left/);
    expect(reasonFor(joint, learn(E))).toMatch(/joint configuration is being left/);
  });

  test("without a joint configuration there is nothing to leave", () => {
    expect(applyConfChange(configurationOf([A]), LEAVE)).toMatchObject({ ok: false, reason: /no joint/ });
  });

  test("an empty configuration takes one voter, not two", () => {
    expect(applied(emptyConfiguration(), add(A))).toEqual(configurationOf([A]));
    expect(reasonFor(emptyConfiguration(), add(A), add(B))).toMatch(/first voter alone/);
  });
});

describe("what is refused", () => {
  const three = configurationOf([A, B, C], [D]);

  test.each<[string, ConfChangeOperation[], RegExp]>([
    ["an unknown peer removed", [remove(E)], /nothing to change: n5@a is not a member/],
    ["a voter made a voter", [add(A)], /nothing to change: n1@a is a voter already/],
    ["a learner made a learner", [learn(D)], /nothing to change: n4@a is a learner already/],
    ["a peer named twice", [add(E), remove(E)], /n5@a is named twice/],
    ["the last voter removed", [remove(A), remove(B), remove(C)], /no voter would be left/],
    ["the last voter demoted", [learn(A), learn(B), remove(C)], /no voter would be left/],
    ["something that is no peer key", [add("n9" as PeerKey)], /not a peer key/],
  ])("%s", (_name, operations, reason) => {
    expect(reasonFor(three, ...operations)).toMatch(reason);
  });

  test("one member above the bound, and more operations than a change may have", () => {
    const crowd = Array.from({ length: MEMBERS_MAX }, (_, i) => peerKey(`m${i}`, "a"));
    const full = configurationOf(crowd.slice(0, 3), crowd.slice(3));
    expect(reasonFor(full, learn(A))).toMatch(`${MEMBERS_MAX + 1} members`);
    const flood = Array.from({ length: CONF_CHANGE_OPERATIONS_MAX + 1 }, (_, i) => learn(peerKey(`x${i}`, "a")));
    expect(reasonFor(three, ...flood)).toMatch(/operations in one change/);
  });

  test("a configuration that is broken to begin with is our own mistake", () => {
    expect(() => configurationOf([A, A2])).toThrow(InvariantError);
    expect(() => configurationOf([A], [A])).toThrow(InvariantError);
    expect(() => configurationOf([], [A])).toThrow(InvariantError);
    expect(() => applyConfChange({ ...configurationOf([A]), autoLeave: true }, LEAVE)).toThrow(InvariantError);
  });
});

describe("design D5: a voter is a node id with one disk (trap 13)", () => {
  test("a new incarnation may learn while the old one votes, but not vote beside it", () => {
    const learning = applied(configurationOf([A, B, C]), learn(A2));
    expect(learning).toEqual(configurationOf([A, B, C], [A2]));
    expect(reasonFor(learning, add(A2))).toMatch(/two incarnations of n1 would both be voters/);
  });

  test("replacement: old disk in the outgoing half, new one in the incoming half, then the new one alone", () => {
    const learning = configurationOf([A, B, C], [A2]);
    const joint = applied(learning, remove(A), add(A2));
    expect([joint.voters, joint.votersOutgoing, joint.learners]).toEqual([[A2, B, C], [A, B, C], []]);
    expect(quorumsIntersect(learning, joint)).toBe(true);
    expect(applied(joint)).toEqual({ ...configurationOf([A2, B, C]), removed: [A] });
  });

  test("the only voter can be replaced too", () => {
    const joint = applied(configurationOf([A], [A2]), remove(A), add(A2));
    expect(decides(joint, [A2])).toBe(false);
    expect(applied(joint)).toEqual({ ...configurationOf([A2]), removed: [A] });
  });
});
