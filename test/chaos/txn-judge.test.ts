// The judge and the books of `chaos txn` on histories made up by hand: what is right passes, and each thing that can be wrong is counted as what it is.

import { describe, expect, test } from "vitest";
import {
  type Account,
  type IslandBook,
  moveId,
  placeOfAccount,
  placesOfMove,
  TxnBooks,
  type Workload,
} from "./txn-books.ts";
import { TxnJudge, type TxnTold } from "./txn-judge.ts";

const PLACES = ["i1 a", "i2 b"];

function judged(told: readonly TxnTold[], applied: readonly string[], broken: readonly string[] = []) {
  const judge = new TxnJudge();
  judge.start("t", PLACES);
  for (const one of told) judge.tell("t", one);
  const wrong = judge.audit({
    applied: new Map(applied.length === 0 ? [] : [["t", new Set(applied)]]),
    broken,
  });
  const { halfApplied, ackedCommitMissing, ackedRollbackApplied, contradictions } = judge;
  return { wrong: wrong.length, halfApplied, ackedCommitMissing, ackedRollbackApplied, contradictions };
}

const RIGHT = { wrong: 0, halfApplied: 0, ackedCommitMissing: 0, ackedRollbackApplied: 0, contradictions: 0 };

describe("a transaction", () => {
  test.each<[string, readonly TxnTold[], readonly string[]]>([
    ["committed, and applied everywhere", ["commit"], PLACES],
    ["rolled back, and applied nowhere", ["rollback"], []],
    ["unknown, and applied everywhere", ["unknown"], PLACES],
    ["unknown, and applied nowhere", ["unknown"], []],
    ["unknown first, and known when asked again", ["unknown", "commit", "unknown", "commit"], PLACES],
    ["of whose client nothing was heard", [], PLACES],
  ])("%s is right", (_name, told, applied) => {
    expect(judged(told, applied)).toEqual(RIGHT);
  });

  test.each<[string, readonly TxnTold[], readonly string[], Partial<typeof RIGHT>]>([
    ["unknown and half applied", ["unknown"], ["i1 a"], { halfApplied: 1 }],
    ["committed and half applied", ["commit"], ["i1 a"], { halfApplied: 1, ackedCommitMissing: 1 }],
    ["committed and lost", ["commit"], [], { ackedCommitMissing: 1 }],
    ["rolled back and applied", ["rollback"], PLACES, { ackedRollbackApplied: 1 }],
    ["rolled back and half applied", ["rollback"], ["i2 b"], { halfApplied: 1, ackedRollbackApplied: 1 }],
    ["applied where it was not to be", ["commit"], [...PLACES, "i3 c"], { halfApplied: 1, ackedCommitMissing: 1 }],
    ["told as both", ["commit", "rollback"], PLACES, { contradictions: 1 }],
    ["told as both, after it was unknown", ["unknown", "rollback", "commit"], [], { contradictions: 1 }],
  ])("%s is counted", (_name, told, applied, counts) => {
    expect(judged(told, applied)).toEqual({ ...RIGHT, ...counts, wrong: 1 });
  });

  test("is judged once: what is applied later counts as half applied, and so does what the books say is broken", () => {
    const judge = new TxnJudge();
    judge.start("t", PLACES);
    judge.tell("t", "rollback");
    expect(judge.audit({ applied: new Map(), broken: [] })).toEqual([]);
    expect(judge.audit({ applied: new Map([["t", new Set(PLACES)]]), broken: ["a copy"] })).toHaveLength(2);
    expect(judge.halfApplied).toBe(2);
    expect(judge.transactions).toEqual({ started: 1, commit: 0, rollback: 1, unknown: 0 });
  });
});

// ---- books -------------------------------------------------------------------------------------------

interface Shown {
  readonly accounts?: Readonly<Record<string, Account>>;
  readonly workloads?: Readonly<Record<string, Workload>>;
  readonly holders?: Readonly<Record<string, string>>;
  readonly submitted?: readonly string[];
}

let versions = 0;

function versioned<T>(all: Readonly<Record<string, T>>): Map<string, { version: number; value: T }> {
  return new Map(Object.entries(all).map(([name, value]) => [name, { version: ++versions, value }]));
}

function book(island: string, { accounts = {}, workloads = {}, holders = {}, submitted = [] }: Shown): IslandBook {
  return {
    island,
    accounts: versioned(accounts),
    workloads: versioned(workloads),
    holders: new Map(Object.entries(holders)),
    submitted,
  };
}

describe("accounts", () => {
  const account = (round: number, balance: number, ...ids: string[]): Account => ({ round, balance, ids });

  test("say which transactions of their round are applied, and what all of them have", () => {
    const found = new TxnBooks([]).audit(2, [
      book("i1", { accounts: { a: account(2, 90, "t1", "t2"), b: account(1, 5, "t0") } }),
      book("i2", { accounts: { c: account(2, 105, "t1") } }),
    ]);
    expect(found).toMatchObject({ broken: [], sum: 200 });
    expect(found.applied).toEqual(
      new Map([
        ["t1", new Set([placeOfAccount("i1", "a"), placeOfAccount("i2", "c")])],
        ["t2", new Set([placeOfAccount("i1", "a")])],
      ]),
    );
  });

  test("that changed in an older round's name are broken: an effect that came after its audit", () => {
    const books = new TxnBooks([]);
    const first = book("i1", { accounts: { a: account(1, 1) } });
    expect(books.audit(1, [first]).broken).toEqual([]);
    expect(books.audit(2, [first]).broken).toEqual([]);
    expect(books.audit(3, [book("i1", { accounts: { a: account(2, 1) } })]).broken).toHaveLength(1);
  });
});

describe("workloads", () => {
  const [m1, m2] = [moveId("m1", "i2"), moveId("m2", "i1")];
  const workload = (round: number, holder: string, ...moves: string[]): Workload => ({ round, holder, moves });

  function audited(one: Shown, two: Shown, started: readonly (readonly [string, TxnTold, string])[]) {
    const judge = new TxnJudge();
    for (const [id, told, to] of started) {
      judge.start(id, placesOfMove(to));
      judge.tell(id, told);
    }
    return judge.audit(new TxnBooks(["w"]).audit(7, [book("i1", one), book("i2", two)]));
  }

  const there = { workloads: { w: workload(7, m1, m1) }, holders: { w: m1 }, submitted: [m1] };

  test("that have moved, there and back, and not at all, are right", () => {
    expect(audited({}, there, [[m1, "commit", "i2"]])).toEqual([]);
    const back = { workloads: { w: workload(7, m2, m1, m2) }, holders: { w: m2 }, submitted: [m2] };
    const both = [
      [m1, "commit", "i2"],
      [m2, "unknown", "i1"],
    ] as const;
    expect(audited(back, { submitted: [m1] }, both)).toEqual([]);
    expect(
      audited({ workloads: { w: workload(6, "old>i1") }, holders: { w: "old>i1" } }, {}, [[m1, "rollback", "i2"]]),
    ).toEqual([]);
    // Moved twice in the round before, which was audited then.
    const before = { workloads: { w: workload(6, "second>i1", "first>i2", "second>i1") }, holders: { w: "second>i1" } };
    expect(audited(before, {}, [[m1, "rollback", "i2"]])).toEqual([]);
  });

  const still = { workloads: { w: workload(6, "old>i1") }, holders: { w: "old>i1" } };
  test.each<[string, Shown, Shown, TxnTold]>([
    ["is nowhere", {}, {}, "unknown"],
    ["is at both", still, there, "unknown"],
    ["was copied, and its scope stayed", { holders: still.holders }, { ...there, holders: {} }, "unknown"],
    ["is held at both", { holders: still.holders }, there, "unknown"],
    ["has lost its scope", { workloads: still.workloads }, {}, "rollback"],
    ["has moved without its job", {}, { ...there, submitted: [] }, "unknown"],
    ["has its job twice", {}, { ...there, submitted: [m1, m1] }, "commit"],
    ["has not moved, and its job was submitted", still, { submitted: [m1] }, "unknown"],
    ["has not moved, and its scope is taken there", still, { holders: { w: m1 } }, "unknown"],
    ["has moved, and was told as rolled back", {}, there, "rollback"],
    ["has not moved, and was told as committed", still, {}, "commit"],
  ])("a workload that %s is noticed", (_name, one, two, told) => {
    expect(audited(one, two, [[m1, told, "i2"]])).not.toEqual([]);
  });
});
