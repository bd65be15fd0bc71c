// What the judge of `chaos tc` makes of answers: what is proof of two leaders, and what is not.

import { describe, expect, test } from "vitest";
import { LEASE_TTL_MS } from "../../src/core/lease/limits.ts";
import { TcSamples } from "./tc-samples.ts";

/** [voter, acts in term, asked at, answered at]. */
type Row = readonly [string, number | null, number, number];

function seen(...rows: readonly Row[]): TcSamples {
  const samples = new TcSamples();
  for (const [voter, actsIn, sentMs, arrivedMs] of rows)
    samples.see({ voter, term: actsIn ?? 0, actsIn, sentMs, arrivedMs });
  return samples;
}

describe("leases overlap", () => {
  test("where the older one's leader was asked after the newer one's had answered", () => {
    expect(seen(["a@1", 1, 0, 1], ["b@1", 2, 5, 6], ["a@1", 1, 7, 8]).overlaps).toBe(1);
  });

  test("also where the later answer arrives first", () => {
    expect(seen(["a@1", 1, 7, 8], ["b@1", 2, 5, 6]).overlaps).toBe(1);
  });

  test("not where both were asked at once: either may have been first", () => {
    expect(seen(["a@1", 1, 5, 8], ["b@1", 2, 5, 8]).overlaps).toBe(0);
  });

  test("not where the same voter leads twice, nor one after the other", () => {
    expect(seen(["a@1", 1, 0, 1], ["a@1", 2, 2, 3], ["b@1", 3, 4, 5]).overlaps).toBe(0);
  });
});

test("a term has two leaders where two voters act in it, also of one island", () => {
  expect([...seen(["a@1", 4, 0, 1], ["a@2", 4, 9, 10]).twice]).toEqual([4]);
  expect([...seen(["a@1", 4, 0, 1], ["a@1", 4, 9, 10]).twice]).toEqual([]);
});

test("a term falls for one voter; another disk is another voter", () => {
  const samples = seen();
  for (const [voter, term] of [
    ["a@1", 5],
    ["b@1", 4],
    ["a@2", 1],
    ["a@1", 5],
  ] as const)
    samples.see({ voter, term, actsIn: null, sentMs: 0, arrivedMs: 1 });
  expect(samples.termsFell).toBe(0);
  samples.see({ voter: "a@1", term: 4, actsIn: null, sentMs: 2, arrivedMs: 3 });
  expect(samples.termsFell).toBe(1);
});

test("who acts without a majority is counted from one TTL after it was lost", () => {
  const samples = seen();
  samples.noQuorumSinceMs = 100;
  const act = (sentMs: number): void =>
    samples.see({ voter: "a@1", term: 1, actsIn: 1, sentMs, arrivedMs: sentMs + 1 });
  act(100 + LEASE_TTL_MS);
  expect(samples.actedAlone).toBe(0);
  act(101 + LEASE_TTL_MS);
  expect(samples.actedAlone).toBe(1);
});
