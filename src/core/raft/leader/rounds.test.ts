// Heartbeat rounds against a list that forgets nothing.

import fc from "fast-check";
import { expect, test } from "vitest";
import { InvariantError } from "../../kit/assert.ts";
import { HEARTBEAT_ROUNDS_MAX } from "../../kit/limits.ts";
import { electionConfig } from "../config.ts";
import { Rounds } from "./rounds.ts";
import { Strain } from "../strain.ts";

const SEED = 44;

function roundsSince(sinceMs: number): Rounds {
  return new Rounds(sinceMs, new Strain(electionConfig()));
}

test("the confirmed round's time is when it was sent, for any order of rounds and answers", () => {
  const step = fc.record({ elapsedMs: fc.nat(60), starts: fc.nat(3), back: fc.nat(8) });
  fc.assert(
    fc.property(fc.nat(1_000), fc.array(step, { maxLength: 60 }), (sinceMs, steps) => {
      const rounds = roundsSince(sinceMs);
      const sentMs: number[] = [];
      let nowMs = sinceMs;
      let confirmed = 0;
      for (const { elapsedMs, starts, back } of steps) {
        nowMs += elapsedMs;
        for (let i = 0; i < starts; i++) {
          sentMs.push(nowMs);
          expect(rounds.start(nowMs)).toBe(sentMs.length);
        }
        const round = Math.max(0, sentMs.length - back);
        expect(rounds.confirm(round, nowMs), `round ${round} after ${confirmed}`).toBe(round > confirmed);
        confirmed = Math.max(confirmed, round);
        expect([rounds.latest, rounds.confirmed]).toEqual([sentMs.length, confirmed]);
        expect(rounds.confirmedSentMs).toBe(confirmed === 0 ? sinceMs : sentMs[confirmed - 1]);
      }
    }),
    { seed: SEED, numRuns: 200 },
  );
});

test("before any round is confirmed, contact dates from the votes", () => {
  const rounds = roundsSince(70);
  rounds.start(90);
  expect([rounds.confirmed, rounds.confirmedSentMs]).toEqual([0, 70]);
});

test("an answer to a round whose time was forgotten proves nothing", () => {
  const rounds = roundsSince(0);
  for (let nowMs = 1; nowMs <= HEARTBEAT_ROUNDS_MAX + 1; nowMs++) rounds.start(nowMs);
  expect(rounds.confirm(1, 200)).toBe(false);
  expect([rounds.confirmed, rounds.confirmedSentMs]).toEqual([0, 0]);
  expect(rounds.confirm(2, 200)).toBe(true);
  expect(rounds.confirmedSentMs).toBe(2);
});

test("a confirmation of a round that was never started is our own mistake", () => {
  const rounds = roundsSince(0);
  rounds.start(1);
  expect(() => rounds.confirm(2, 200)).toThrow(InvariantError);
});
