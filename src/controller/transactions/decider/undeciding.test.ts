// Homes that decide nothing: noted, asked until they decide, and forgotten.

import { expect, it } from "vitest";
import type { TxnAnswer } from "../../../core/txn/model.ts";
import { seededRandom } from "../../../core/kit/random.ts";
import { TXN_HOME_RETRY_MS_MAX } from "./limits.ts";
import { A, FENCE, TestIslands } from "./test-islands.ts";
import { Undeciding } from "./undeciding.ts";

const PREPARED: TxnAnswer = { kind: "txn", phase: "prepared", results: [], reason: null };
const FULL: TxnAnswer = { kind: "refused", code: "DISK_FULL", message: "no room" };

function stage() {
  const islands = new TestIslands();
  const { term, clock } = islands;
  return { islands, homes: new Undeciding({ term, calls: islands, clock, random: seededRandom(1) }) };
}

it("one that was silent is noted until it answers anything; as a participant its silence says nothing of it as a home", () => {
  const { homes } = stage();
  homes.note(A, FENCE, "silent", false);
  expect(homes.of(A)).toBeNull();
  homes.note(A, FENCE, "silent", true);
  expect(homes.of(A)).toMatchObject({ isSilent: true });
  homes.note(A, FENCE, PREPARED, false);
  expect(homes.of(A)).toBeNull();
});

it("one that refused is noted until it says that it decides, whatever it does meanwhile of what was promised before", async () => {
  const { islands, homes } = stage();
  islands.at(A).refusesNew = "DISK_FULL";
  homes.note(A, FENCE, FULL, true);
  homes.note(A, FENCE, { ...PREPARED, phase: "rolled-back" }, true);
  homes.note(A, FENCE, { ...PREPARED, phase: "committed" }, false);
  await islands.clock.advance(10_000);
  expect(homes.of(A)).toMatchObject({ isSilent: false, why: { kind: "refused", code: "DISK_FULL" } });
  islands.at(A).refusesNew = null;
  await islands.clock.advance(TXN_HOME_RETRY_MS_MAX + 10);
  expect(homes.of(A)).toBeNull();
});

it("a refusal of one call alone says nothing of the home", () => {
  const { homes } = stage();
  for (const code of ["OVERLOADED", "UNCOMMITTED_LIMIT", "txn_expired", "tc_term_stale", "invalid_operations"] as const)
    homes.note(A, FENCE, { kind: "refused", code, message: "not this one" }, true);
  expect(homes.of(A)).toBeNull();
});

it("is asked by one question at a time, in moderation, and no longer than this node leads and the home is registered", async () => {
  for (const end of ["term", "registry"] as const) {
    const { islands, homes } = stage();
    islands.fate = () => ({ isLost: true });
    for (let n = 0; n < 100; n++) homes.note(A, FENCE, "silent", true);
    expect(islands.sent).toHaveLength(1);
    await islands.clock.advance(60_000);
    expect(islands.sent.length).toBeGreaterThan(15);
    expect(islands.sent.length).toBeLessThan(40);
    if (end === "term") islands.fence = { ...FENCE, term: FENCE.term + 1 };
    else islands.registered = [];
    islands.sent.length = 0;
    await islands.clock.advance(60_000);
    expect([islands.sent, homes.of(A)]).toEqual([[], null]);
  }
});

it("a home that answers some calls and others not (it is overloaded) is asked by one question at a time", async () => {
  const { islands, homes } = stage();
  islands.fate = () => ({ isLost: true });
  for (let n = 0; n < 100; n++) {
    homes.note(A, FENCE, "silent", true);
    homes.note(A, FENCE, PREPARED, false);
    await islands.clock.advance(10);
  }
  // One second.
  expect(islands.sent.length).toBeLessThanOrEqual(2);
});

it("a term that is lost and won again: a note of the former one says nothing in the next, and does not take the next one's with it", async () => {
  const { islands, homes } = stage();
  islands.fate = () => ({ isLost: true });
  homes.note(A, FENCE, "silent", true);
  await islands.clock.advance(500);
  const next = { ...FENCE, term: FENCE.term + 2 };
  islands.fence = next;
  islands.at(A).refusesNew = "DISK_FULL";
  homes.note(A, next, FULL, true);
  islands.fate = () => ({});
  await islands.clock.advance(5_000);
  expect(homes.of(A)).toMatchObject({ why: { kind: "refused", code: "DISK_FULL" } });
});

it("an answer to a call of a former term, which comes late, takes nothing from what is noted in this one", async () => {
  const { islands, homes } = stage();
  const next = { ...FENCE, term: FENCE.term + 2 };
  islands.fence = next;
  islands.at(A).refusesNew = "DISK_FULL";
  homes.note(A, next, FULL, true);
  await islands.clock.advance(10);
  homes.note(A, FENCE, FULL, true);
  await islands.clock.advance(10_000);
  expect(homes.of(A)).toMatchObject({ why: { kind: "refused", code: "DISK_FULL" } });
});
