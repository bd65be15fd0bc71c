// The judge of a chaos run must be able to condemn: each kind of damage is put before it once.

import { describe, expect, test } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { deckOf, WEIGHTS } from "./faults.ts";
import { figuresOf } from "./figures.ts";
import { Ledger, overlappingTerms, parseSnapshot, type Resource, type Row } from "./ledger.ts";

function row(worker: string, seq: number, value: number, epoch: number, revision: number, lane = 0): Row {
  return { worker, seq, lane, value, epoch, order: { kind: "revision", revision } };
}

/** Told to the ledger as acknowledged. */
function ledgerOf(rows: readonly Row[], outcome: "ack" | "unknown" | "refused" | "none" = "ack"): Ledger {
  const ledger = new Ledger();
  for (const { worker, seq, lane, value, epoch } of rows) {
    ledger.note(worker, { is: "begin", seq, lane, value, epoch });
    if (outcome === "ack") ledger.note(worker, { is: "ack", seq });
    else if (outcome !== "none") ledger.note(worker, { is: outcome, seq, why: "" });
  }
  return ledger;
}

const GOOD = [row("a", 1, 1, 1, 10), row("a", 2, 2, 1, 11), row("b", 1, 3, 2, 12)];
const at = (stands: number, rows: readonly Row[] = GOOD, base = 0): Resource => ({
  rows,
  lanes: [stands],
  base: [base],
});

describe("the ledger", () => {
  test("finds nothing where every acknowledged increment is there and counted", () => {
    expect(ledgerOf(GOOD).compare(at(3))).toEqual({
      increments: 3,
      lostUpdates: 0,
      overlappingTerms: 0,
      unknown: 0,
      findings: [],
    });
  });

  test("finds an acknowledged increment that is missing", () => {
    const verdict = ledgerOf(GOOD).compare(at(2, GOOD.slice(0, 2)));
    expect(verdict.lostUpdates).toBe(1);
    expect(verdict.findings[0]).toContain("b/1 (epoch 2, lane 0, value 3) was acknowledged, and is not there");
  });

  test("finds an increment that another one overwrote with the same number", () => {
    const rows = [...GOOD, row("a", 3, 3, 1, 13)];
    const verdict = ledgerOf(rows).compare(at(3, rows));
    expect(verdict.lostUpdates).toBe(1);
    expect(verdict.findings).toContain("lane 0 was set to 3 by b/1 in epoch 2 and a/3 in epoch 1");
  });

  test("finds that a lane was set back by an old number", () => {
    const rows = [...GOOD, row("b", 2, 4, 2, 13), row("a", 3, 3, 1, 14)];
    expect(ledgerOf(rows).compare(at(3, rows)).lostUpdates).toBe(2);
  });

  test("takes an unknown outcome either way, but what is there must be counted", () => {
    const there = ledgerOf(GOOD, "unknown");
    expect(there.compare(at(3))).toMatchObject({ lostUpdates: 0, unknown: 3, findings: [] });
    expect(there.compare(at(0, []))).toMatchObject({ lostUpdates: 0, unknown: 3, findings: [] });
    expect(there.compare(at(2)).lostUpdates).toBe(1);
    expect(ledgerOf(GOOD, "none").compare(at(3))).toMatchObject({ unknown: 3, findings: [] });
  });

  test("finds what was refused and is there all the same, what nobody began, and what is there twice", () => {
    expect(ledgerOf(GOOD, "refused").compare(at(3)).findings[0]).toContain("was refused, and is there");
    expect(new Ledger().compare(at(3)).findings[0]).toContain("nobody began it");
    const twice = [...GOOD, GOOD[2]!];
    expect(ledgerOf(GOOD).compare(at(3, twice)).findings[0]).toContain("b/1 is there 2 times");
  });

  test("counts from where a lane stood before", () => {
    const rows = GOOD.map((one) => ({ ...one, value: one.value + 50 }));
    expect(ledgerOf(rows).compare(at(53, rows, 50)).findings).toEqual([]);
  });
});

describe("terms overlap", () => {
  const overlaps = (rows: readonly Row[]): number => overlappingTerms(rows, () => undefined);

  test("where an older epoch wrote after a newer one had, in etcd's order", () => {
    expect(overlaps(GOOD)).toBe(0);
    expect(overlaps([...GOOD, row("a", 3, 4, 1, 13)])).toBe(1);
  });

  test("where two workers wrote in one epoch", () => {
    expect(overlaps([row("a", 1, 1, 1, 10), row("b", 1, 2, 1, 11)])).toBe(1);
  });

  test("where a newer epoch's snapshot did not see what an older one committed, in Postgres", () => {
    const of = (epoch: number, xid: number, snapshot: string, lane = 0): Row => ({
      ...row(`w${epoch}`, xid, 1, epoch, 0, lane),
      order: { kind: "snapshot", xid, snapshot: parseSnapshot(snapshot) },
    });
    expect(overlaps([of(1, 100, "100:100:"), of(2, 105, "101:105:")])).toBe(0);
    // 99 still ran, which says nothing about 100.
    expect(overlaps([of(1, 100, "99:100:99"), of(2, 105, "99:105:99")])).toBe(0);
    expect(overlaps([of(1, 100, "100:100:"), of(2, 105, "100:105:100,103")])).toBe(1);
    expect(overlaps([of(1, 107, "100:107:"), of(2, 105, "104:105:")])).toBe(1);
    // A stale attempt of the harness counts as much as a worker's write.
    expect(overlaps([of(1, 107, "100:107:", -1), of(2, 105, "104:105:")])).toBe(1);
  });
});

test("a deck has every kind where there is room, as many kills as promised, and is decided by the seed", () => {
  const kinds = Object.keys(WEIGHTS.postgres);
  const deck = deckOf(WEIGHTS.postgres, 300, seededRandom(1));
  expect(deck).toHaveLength(300);
  expect(new Set(deck)).toEqual(new Set(kinds));
  expect(deck.filter((kind) => kind.startsWith("kill")).length).toBeGreaterThanOrEqual(60);
  expect(new Set(deckOf(WEIGHTS.postgres, kinds.length, seededRandom(2)))).toEqual(new Set(kinds));
  expect(deckOf(WEIGHTS.etcd, 3, seededRandom(3))).toHaveLength(3);
  expect(deckOf(WEIGHTS.postgres, 300, seededRandom(1))).toEqual(deck);
  expect(deckOf(WEIGHTS.postgres, 300, seededRandom(2))).not.toEqual(deck);
});

test("percentiles are times that were measured", () => {
  const times = Array.from({ length: 200 }, (_, index) => 200 - index);
  expect(figuresOf(times)).toEqual({ count: 200, p50_ms: 100, p99_ms: 198, max_ms: 200 });
  expect(figuresOf([7])).toEqual({ count: 1, p50_ms: 7, p99_ms: 7, max_ms: 7 });
});
