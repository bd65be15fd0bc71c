// What is shown of transactions in doubt, and when a person has to do something.

import { expect, it } from "vitest";
import type { IslandsView, WaitingTransactionView } from "../../src/client/index.ts";
import { doubtAdvice, waitingRows } from "./transactions.ts";

const OWN = "a".repeat(64);
const OTHER = "b".repeat(64);
const GONE = "c".repeat(64);
const NOW = 1_000_000;

function rowsOf(...waiting: readonly Partial<WaitingTransactionView>[]) {
  const view = {
    self: { backendHash: OWN },
    registry: [
      { backendHash: OTHER, endpoint: "https://b2:1" },
      { backendHash: OTHER, endpoint: "https://b1:1" },
    ],
    transactions: {
      waiting: waiting.map((one) => ({
        txnId: "id",
        home: OTHER,
        phase: "prepared",
        atMs: NOW - 1_000,
        timeoutMs: 5_000,
        locks: ["value a"],
        locksCount: 1,
        waitsFor: [OTHER],
        ...one,
      })),
    },
  } as unknown as IslandsView;
  return waitingRows(view, NOW);
}

it("a row has the phase, the locks and where the island that is waited for is reached", () => {
  expect(rowsOf({})).toEqual([
    {
      id: "id",
      phase: { tone: "busy", text: "prepared" },
      sinceMs: NOW - 1_000,
      home: "bbbbbbbbbbbb… (https://b1:1, https://b2:1)",
      locks: "value a",
      waitsFor: [{ backendHash: OTHER, text: "bbbbbbbbbbbb… (https://b1:1, https://b2:1)" }],
    },
  ]);
});

it("it is in doubt when its time is over, and an island that is not registered is named as such", () => {
  const [late, decided] = rowsOf(
    { atMs: NOW - 5_001, locks: ["value a", "value b"], locksCount: 9 },
    { phase: "committed", home: OWN, locks: [], locksCount: 0, waitsFor: [GONE], atMs: NOW - 60_000 },
  );
  expect(late).toMatchObject({
    phase: { tone: "bad", text: "prepared, in doubt" },
    locks: "value a, value b and 7 more",
  });
  expect(decided).toMatchObject({
    phase: { tone: "bad", text: "committed, in doubt" },
    home: "this island",
    locks: "",
    waitsFor: [{ text: "cccccccccccc… (not registered)" }],
  });
});

it("a node of a release before transactions, or on Postgres, has no rows and no advice", () => {
  for (const transactions of [undefined, null]) {
    expect(waitingRows({ transactions, registry: [], self: {} } as unknown as IslandsView, NOW)).toEqual([]);
    expect(doubtAdvice(transactions)).toBeNull();
  }
});

it("a person has to do something after half a minute", () => {
  const advice = (inDoubt: number, oldestInDoubtMs: number) =>
    doubtAdvice({ prepared: 0, inDoubt, oldestInDoubtMs, undeliveredJobs: 0, waiting: [], isAll: true });
  expect(advice(0, 0)).toBeNull();
  expect(advice(3, 30_000)).toBeNull();
  expect(advice(1, 31_000)).toContain("1 transaction is in doubt, the oldest for 31 s");
  expect(advice(3, 95_000)).toContain("3 transactions are in doubt, the oldest for 95 s");
});
