// How far apart candidates begin: as calls and writes have taken.

import { expect, test } from "vitest";
import { PACE_KEPT, CANDIDATE_TURN_MS_MAX, CANDIDATE_TURN_MS_MIN } from "./limits.ts";
import { Pace } from "./pace.ts";

function paceOf(callsMs: readonly number[], writesMs: readonly number[]): Pace {
  const pace = new Pace();
  for (const ms of callsMs) pace.called(ms);
  for (const ms of writesMs) pace.wrote(ms);
  return pace;
}

test("is two calls and a write, as most of the last ones took", () => {
  expect(paceOf([20, 22, 24, 26], [10]).turnMs).toBe(2 * 26 + 10);
});

test("a stall of one call or one write says nothing of the next ones", () => {
  expect(paceOf([20, 20, 20, 20, 900], [10, 10, 10, 10, 900]).turnMs).toBe(50);
});

test("is bounded on both sides: before anything was measured, on a fast network, and on one that hangs", () => {
  expect(new Pace().turnMs).toBe(CANDIDATE_TURN_MS_MIN);
  expect(paceOf([0.2], [0.1]).turnMs).toBe(CANDIDATE_TURN_MS_MIN);
  expect(paceOf([1_000], [5_000]).turnMs).toBe(CANDIDATE_TURN_MS_MAX);
});

test("what was long ago is forgotten: a disk that was slow last week delays no election today", () => {
  const slow = Array.from({ length: PACE_KEPT }, () => 300);
  const fast = Array.from({ length: PACE_KEPT }, () => 10);
  expect(paceOf([...slow, ...fast], [...slow, ...fast]).turnMs).toBe(30);
});
