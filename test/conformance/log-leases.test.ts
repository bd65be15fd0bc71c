// The scopes on the replicated log, with engines of production on simulated machines, clocks that differ, servers that
// freeze, crash and are cut off, and answers that are lost: no two clients ever trust one scope at one time. With a mistake
// planted, the same run must find it.

import { expect, it } from "vitest";
import { type LeaseRunOptions, runLeases } from "./test-lease-clients.ts";

const SEEDS = 8;
const HARSH_SEEDS = 8;
/** How many runs may look for a planted mistake; most are found in the first few. */
const SEARCH_SEEDS = 40;
const FOR_MS = 60_000;

it.each(Array.from({ length: SEEDS }, (_, at) => `leases/${at + 1}`))(
  "no two clients trust one scope at one time, and epochs only grow (%s)",
  async (seed) => {
    const { violations, counts } = await runLeases({ seed, forMs: FOR_MS });
    expect(violations, JSON.stringify(counts)).toEqual([]);
    // Chaos that never happened shows nothing (trap 33).
    for (const what of ["leaders", "trusted", "renewed", "resigned", "no answer", "NOT_LEADER", "answers lost"]) {
      expect(counts[what] ?? 0, `${what} in ${JSON.stringify(counts)}`).toBeGreaterThan(5);
    }
  },
);

it("the runs together have met every answer that a client can get", async () => {
  const met = new Set<string>();
  for (let at = 1; at <= 4; at++) {
    const { counts } = await runLeases({ seed: `leases/${at}`, forMs: FOR_MS });
    for (const what of Object.keys(counts)) met.add(what);
  }
  for (const what of ["STALE_EPOCH", "OUTCOME_UNKNOWN", "NOT_LEADER", "freeze", "cut", "crash", "transfer"])
    expect([...met]).toContain(what);
});

it("also with clocks as far apart as the margin allows, and a leader that does not know that it is cut off", async () => {
  for (let at = 1; at <= HARSH_SEEDS; at++) {
    const { violations, counts } = await runLeases({ seed: `leases/${at}`, forMs: FOR_MS, harsh: true });
    expect(violations, JSON.stringify(counts)).toEqual([]);
  }
});

async function findsWith(mistake: Partial<LeaseRunOptions>): Promise<string[]> {
  for (let at = 1; at <= SEARCH_SEEDS; at++) {
    const { violations } = await runLeases({ seed: `leases/${at}`, forMs: FOR_MS, ...mistake });
    if (violations.length > 0) return [...violations];
  }
  return [];
}

it("trap 20: a leader that renews without asking a majority is found", async () => {
  expect(await findsWith({ unconfirmedRenewals: true, harsh: true })).not.toEqual([]);
});

it("trap 56a: a leader that answers before its append is committed is found", async () => {
  expect(await findsWith({ acknowledgedEarly: true })).not.toEqual([]);
});

it("trap 44: a client that trusts from the answer, not from the request, is found", async () => {
  expect(await findsWith({ trustFromTheAnswer: true })).not.toEqual([]);
});

it("the same seed gives the same run", async () => {
  const options = { seed: "leases/again", forMs: 20_000 };
  expect(await runLeases(options)).toEqual(await runLeases(options));
});
