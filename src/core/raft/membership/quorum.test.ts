import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { peerKey, type PeerKey } from "../../kit/ids.ts";
import { configurationOf, emptyConfiguration } from "./membership.ts";
import { committedIndex, isJoint, isLearner, isMember, isVoter, members, voteResult, voterKeys } from "./quorum.ts";
import type { Configuration } from "../types.ts";

const SEED = 3;
const POOL = Array.from({ length: 9 }, (_, i) => peerKey(`n${i}`, "a"));
const [A, B, C, D, E] = POOL as [PeerKey, PeerKey, PeerKey, PeerKey, PeerKey];

const peers = (maxLength: number): fc.Arbitrary<PeerKey[]> =>
  fc.uniqueArray(fc.constantFrom(...POOL), { maxLength }).map((each) => each.sort());

const configuration: fc.Arbitrary<Configuration> = fc
  .tuple(peers(7), fc.oneof(fc.constant<PeerKey[]>([]), peers(7)), peers(3))
  .map(([voters, votersOutgoing, others]) => {
    const learners = others.filter((each) => !voters.includes(each) && !votersOutgoing.includes(each));
    return { voters, votersOutgoing, learners, learnersNext: [], autoLeave: false };
  });
/** One value for each peer of the pool; learners and strangers have one too, and it must not count. */
const acked = fc.array(fc.oneof(fc.nat({ max: 5 }), fc.maxSafeNat()), {
  minLength: POOL.length,
  maxLength: POOL.length,
});
const votes = fc.array(fc.constantFrom(true, false, undefined), { minLength: POOL.length, maxLength: POOL.length });

function joint(voters: PeerKey[], votersOutgoing: PeerKey[]): Configuration {
  return { voters, votersOutgoing, learners: [], learnersNext: [], autoLeave: true };
}

function halvesOf(configuration: Configuration): (readonly PeerKey[])[] {
  return [configuration.voters, configuration.votersOutgoing].filter((half) => half.length > 0);
}

describe("committedIndex", () => {
  test("trap 9: the fast quorum index equals the sort-based one", () => {
    const sortBased = (half: readonly PeerKey[], values: readonly number[]): number =>
      half.map((peer) => values[POOL.indexOf(peer)] as number).sort((a, b) => b - a)[
        Math.floor(half.length / 2)
      ] as number;
    fc.assert(
      fc.property(configuration, acked, (each, values) => {
        const halves = halvesOf(each).map((half) => sortBased(half, values));
        const expected = halves.length === 0 ? 0 : Math.min(...halves);
        expect(committedIndex(each, (peer) => values[POOL.indexOf(peer)] as number)).toBe(expected);
      }),
      { seed: SEED, numRuns: 3000 },
    );
  });

  test("it is the highest index that more than half of each half has", () => {
    fc.assert(
      fc.property(configuration, acked, (each, values) => {
        const valueOf = (peer: PeerKey): number => values[POOL.indexOf(peer)] as number;
        const has = (index: number): boolean =>
          halvesOf(each).every((half) => half.filter((peer) => valueOf(peer) >= index).length * 2 > half.length);
        const highest = halvesOf(each).length === 0 ? 0 : Math.max(0, ...values.filter(has));
        expect(committedIndex(each, valueOf)).toBe(highest);
      }),
      { seed: SEED, numRuns: 1000 },
    );
  });

  test("trap 8: learners never count", () => {
    const each = configurationOf([A, B, C], [D, E]);
    expect(committedIndex(each, (peer) => (peer === D || peer === E ? 100 : 1))).toBe(1);
  });

  test("trap 8: a joint configuration commits what both halves have", () => {
    const each = joint([A, B, C], [C, D, E]);
    const has = new Map([
      [A, 9],
      [B, 9],
      [C, 9],
      [D, 4],
      [E, 2],
    ]);
    expect(committedIndex(each, (peer) => has.get(peer) ?? 0)).toBe(4);
  });

  test("nothing is committed where nobody votes", () => {
    expect(committedIndex(emptyConfiguration(), () => 7)).toBe(0);
  });
});

describe("voteResult", () => {
  test("trap 8: it is won when every way in which the missing votes could fall wins, lost when none does", () => {
    fc.assert(
      fc.property(configuration, votes, (each, values) => {
        const known = new Map(POOL.map((peer, i) => [peer, values[i]]));
        const voters = POOL.filter((peer) => each.voters.includes(peer) || each.votersOutgoing.includes(peer));
        const missing = voters.filter((peer) => known.get(peer) === undefined);
        let wins = 0;
        for (let draw = 0; draw < 2 ** missing.length; draw++) {
          const granted = (peer: PeerKey): boolean => known.get(peer) ?? (draw & (1 << missing.indexOf(peer))) !== 0;
          const halves = halvesOf(each);
          if (halves.length > 0 && halves.every((half) => half.filter(granted).length * 2 > half.length)) wins++;
        }
        const expected = wins === 0 ? "lost" : wins === 2 ** missing.length ? "won" : "pending";
        expect(voteResult(each, (peer) => known.get(peer))).toBe(expected);
      }),
      { seed: SEED, numRuns: 1000 },
    );
  });

  test("trap 8: votes of learners and strangers are not counted", () => {
    const each = configurationOf([A, B, C], [D]);
    expect(voteResult(each, (peer) => (peer === A ? true : peer === B || peer === C ? undefined : true))).toBe(
      "pending",
    );
  });

  test("trap 8: a joint election needs a majority of both halves, and is lost with either", () => {
    const each = joint([A], [B, C, D]);
    const granted = (...yes: PeerKey[]) => voteResult(each, (peer) => yes.includes(peer) || undefined);
    expect([granted(A), granted(B, C), granted(A, B, C)]).toEqual(["pending", "pending", "won"]);
    expect(voteResult(each, (peer) => peer !== A)).toBe("lost");
  });

  test("an even half needs more than half", () => {
    const each = configurationOf([A, B, C, D]);
    expect(voteResult(each, (peer) => peer === A || peer === B)).toBe("lost");
  });

  test("nobody is elected where nobody votes", () => {
    expect(voteResult(emptyConfiguration(), () => true)).toBe("lost");
  });
});

describe("who belongs", () => {
  test("voters are those of both halves, a staged learner is still a voter, members are sorted", () => {
    const each = { ...joint([A, D], [B, C]), learners: [E], learnersNext: [B] };
    expect(voterKeys(each)).toEqual([A, B, C, D]);
    expect(members(each)).toEqual([A, B, C, D, E]);
    expect(members(each)).toBe(members(each));
    expect(POOL.filter((peer) => isVoter(each, peer))).toEqual([A, B, C, D]);
    expect(POOL.filter((peer) => isLearner(each, peer))).toEqual([E]);
    expect(POOL.filter((peer) => isMember(each, peer))).toEqual([A, B, C, D, E]);
    expect([isJoint(each), isJoint(configurationOf([A]))]).toEqual([true, false]);
  });
});
