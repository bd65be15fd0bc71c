// The checker itself: histories that are known to be good and known to be bad, and histories of a real register with and
// without one planted lie.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PROPERTY_SEED } from "../property-seed.ts";
import { checkHistory, describeOperation } from "./checker.ts";
import { History, type Operation } from "./history.ts";
import { type Anomaly, cas, get, history, plantAnomaly, playedHistory, put } from "./test-histories.ts";

const verdictOf = (operations: readonly Operation[]): string => checkHistory(operations).kind;
const GOOD = "linearizable";
const BAD = "not-linearizable";

describe("histories that are good", () => {
  test("a read beside a write may see the old value or the new one", () => {
    for (const seen of [null, "1"]) {
      expect(verdictOf(history(["a", 0, 10, put("1")], ["b", 5, 6, get(seen)]))).toBe(GOOD);
    }
  });

  test("an unknown write appears later, after reads that did not see it", () => {
    const lines = history(
      ["a", 0, 1, put("1")],
      ["b", 2, null, put("2")],
      ["c", 3, 4, get("1")],
      ["c", 5, 6, put("3")],
      ["c", 7, 8, get("3")],
      ["c", 90, 91, get("2")],
    );
    expect(verdictOf(lines)).toBe(GOOD);
  });

  test("an unknown write never happens", () => {
    expect(verdictOf(history(["a", 0, 1, put("1")], ["b", 2, null, put("2")], ["c", 3, 4, get("1")]))).toBe(GOOD);
  });

  test("an unknown cas explains the next value, and a chain of them too", () => {
    const lines = history(
      ["a", 0, 1, put("1")],
      ["b", 2, null, cas("1", "2")],
      ["c", 2, null, cas("2", "3")],
      ["d", 5, 6, get("3")],
    );
    expect(verdictOf(lines)).toBe(GOOD);
  });

  test("an unknown write explains why a cas was refused that expected the last acknowledged value", () => {
    const lines = history(["a", 0, 1, put("1")], ["b", 2, null, put("2")], ["c", 3, 4, cas("1", "9", false)]);
    expect(verdictOf(lines)).toBe(GOOD);
    expect(verdictOf([...lines, ...history(["c", 5, 6, get("2")])])).toBe(GOOD);
    expect(verdictOf([...lines, ...history(["c", 5, 6, get("1")])])).toBe(BAD);
  });

  test("two writes beside each other may be seen in either order, but by everybody in the same", () => {
    const both = history(["a", 0, 10, put("1")], ["b", 0, 10, put("2")]);
    expect(verdictOf([...both, ...history(["c", 11, 12, get("1")])])).toBe(GOOD);
    expect(verdictOf([...both, ...history(["c", 11, 12, get("2")])])).toBe(GOOD);
    expect(verdictOf([...both, ...history(["c", 11, 12, get("1")], ["d", 13, 14, get("2")])])).toBe(BAD);
  });

  test("operations that touch at one instant count as concurrent: clocks are not that fine", () => {
    expect(verdictOf(history(["a", 0, 5, put("1")], ["b", 5, 6, get(null)]))).toBe(GOOD);
  });

  test("the same value written twice is told apart by order alone", () => {
    const lines = history(["a", 0, 1, put("x")], ["a", 2, 3, put("y")], ["a", 4, 5, put("x")], ["b", 6, 7, get("x")]);
    expect(verdictOf(lines)).toBe(GOOD);
  });

  test("an empty history says nothing against anybody", () => {
    expect(checkHistory([])).toEqual({ kind: GOOD, keys: 0, operations: 0 });
  });
});

describe("histories that are bad", () => {
  const cases: Readonly<Record<string, readonly Operation[]>> = {
    "a stale read": history(["a", 0, 1, put("1")], ["a", 2, 3, put("2")], ["b", 4, 5, get("1")]),
    "a lost update": history(["a", 0, 1, put("1")], ["b", 2, 3, get(null)]),
    "a read of a value that nobody wrote": history(["a", 0, 1, put("1")], ["b", 2, 3, get("7")]),
    "a read of a value before it was asked for": history(["b", 0, 1, get("1")], ["a", 2, 3, put("1")]),
    "a read of an unknown write before it was asked for": history(["b", 0, 1, get("1")], ["a", 2, null, put("1")]),
    "a cas that succeeded twice": history(
      ["a", 0, 1, put("1")],
      ["b", 2, 9, cas("1", "2")],
      ["c", 2, 9, cas("1", "3")],
    ),
    "a cas that succeeded on another value": history(["a", 0, 1, put("1")], ["b", 2, 3, cas("5", "6")]),
    "a cas refused though nothing else was there": history(["a", 0, 1, put("1")], ["b", 2, 3, cas("1", "2", false)]),
    "reads that go backwards": history(["a", 0, 100, put("1")], ["b", 10, 11, get("1")], ["c", 20, 21, get(null)]),
    "an unknown write that happened twice": history(
      ["a", 0, null, put("1")],
      ["b", 1, 2, get("1")],
      ["b", 3, 4, put("2")],
      ["b", 5, 6, get("1")],
    ),
    "an unknown cas whose expectation was never met": history(
      ["a", 0, 1, put("1")],
      ["b", 2, null, cas("5", "6")],
      ["c", 3, 4, get("6")],
    ),
  };
  for (const [name, operations] of Object.entries(cases)) {
    test(name, () => expect(verdictOf(operations)).toBe(BAD));
  }

  test("one bad key among good ones is named, with the operations around the failure and no others", () => {
    const good = playedHistory({ seed: 5, operations: 400, keys: 8, clients: 6, unknown: 0.02 });
    const lie = history(
      ["a", 1_000, 1_001, put("1"), "k3"],
      ["a", 1_002, 1_003, put("2"), "k3"],
      ["b", 1_004, 1_005, get("1"), "k3"],
      ["b", 1_006, 1_007, put("4"), "k3"],
    );
    const verdict = checkHistory([...good, ...lie]);
    expect(verdict).toMatchObject({ kind: BAD, key: "k3" });
    if (verdict.kind !== BAD) return;
    expect(verdict.window.length).toBeLessThan(60);
    const told = verdict.window.map(describeOperation).join("\n");
    expect(told).toContain("b get k3 → 1 [1004.0, 1005.0]");
    expect(told).not.toContain("put k3 = 4");
  });
});

describe("bounds", () => {
  test("a history that can't be decided in time is called undecided, not good", () => {
    const lines = history(
      ...Array.from({ length: 30 }, (_, n) => [`c${n}`, 0, 100, put(String(n % 3))] as const),
      ...Array.from({ length: 30 }, (_, n) => [`r${n}`, 0, 100, get(String(n % 3))] as const),
      ["x", 200, 201, get("nobody's")],
    );
    expect(checkHistory(lines, { timeMsMax: 10_000, stepsMax: 500 })).toEqual({ kind: "undecided", keys: ["k"] });
  });

  test("10,000 operations of 25 clients on 50 keys, 3 % unknown, are decided within seconds", () => {
    const operations = playedHistory({ seed: 11, operations: 10_000, keys: 50, clients: 25, unknown: 0.03 });
    const startedMs = performance.now();
    expect(checkHistory(operations)).toMatchObject({ kind: GOOD, keys: 50 });
    const planted = plantAnomaly(operations, "lost-write", 1)!;
    expect(verdictOf(planted)).toBe(BAD);
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });
});

describe("properties", () => {
  const options = fc.record({
    seed: fc.nat(),
    operations: fc.integer({ min: 1, max: 120 }),
    keys: fc.integer({ min: 1, max: 3 }),
    clients: fc.integer({ min: 1, max: 8 }),
    unknown: fc.constantFrom(0, 0.05, 0.3),
  });

  test("what a real register has gone through is always accepted", () => {
    fc.assert(
      fc.property(options, (how) => {
        expect(verdictOf(playedHistory(how))).toBe(GOOD);
      }),
      { seed: PROPERTY_SEED, numRuns: 400 },
    );
  });

  test("the same with one lie is always rejected", () => {
    const lies: Anomaly[] = ["stale-read", "lost-write", "read-of-nothing-written", "cas-succeeded-twice"];
    fc.assert(
      fc.property(options, fc.constantFrom(...lies), fc.nat(), (how, lie, seed) => {
        const planted = plantAnomaly(playedHistory({ ...how, unknown: 0 }), lie, seed);
        if (planted !== undefined) expect(verdictOf(planted)).toBe(BAD);
      }),
      { seed: PROPERTY_SEED, numRuns: 400 },
    );
  });

  test("agrees with trying every order, on histories so small that this is possible", () => {
    const value = fc.constantFrom("1", "2");
    const action = fc.oneof(
      value.map(put),
      fc.option(value).map(get),
      fc.tuple(value, value, fc.boolean()).map(([expected, next, done]) => cas(expected, next, done)),
    );
    const line = fc.record({ at: fc.nat(8), tookMs: fc.nat(5), isLost: fc.boolean(), action });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
        const operations = history(
          ...lines.map(({ at, tookMs, isLost, action: one }, n) => {
            const isUnknown = isLost && one.kind !== "get";
            return [`c${n}`, at, isUnknown ? null : at + tookMs, one] as const;
          }),
        );
        expect(verdictOf(operations)).toBe(canBeOrdered(operations, null) ? GOOD : BAD);
      }),
      { seed: PROPERTY_SEED, numRuns: 5_000 },
    );
  });
});

test("a history remembers what was open as unknown, forgets what was refused, and drops gets without an answer", () => {
  const kept = new History();
  const first = kept.begin("a", "k", { kind: "put", value: "1" }, 0);
  const second = kept.begin("b", "k", { kind: "cas", expected: "1", value: "2" }, 1);
  const third = kept.begin("c", "k", { kind: "get" }, 1);
  kept.begin("d", "k", { kind: "put", value: "4" }, 2);
  const fifth = kept.begin("e", "k", { kind: "put", value: "5" }, 2);
  kept.end(first, null, 3);
  kept.end(second, true, 4);
  kept.unknown(third);
  kept.refused(fifth);
  expect(kept.operations().map(describeOperation)).toEqual([
    "#0 a put k = 1 [0.0, 3.0]",
    "#1 b cas k 1 ⇒ 2 → done [1.0, 4.0]",
    "#3 d put k = 4 [2.0, unknown]",
  ]);
  expect(() => kept.end(first, null, 9)).toThrow("operation 0 is not open");
});

/** The definition itself, without any cleverness. */
function canBeOrdered(left: readonly Operation[], value: string | null): boolean {
  if (left.every(({ endedAt }) => endedAt === null)) return true;
  return left.some((one) => {
    if (left.some((other) => other !== one && other.endedAt !== null && other.endedAt < one.startedAt)) return false;
    const rest = left.filter((other) => other !== one);
    const { action } = one;
    if (one.endedAt === null && canBeOrdered(rest, value)) return true;
    if (action.kind === "get") return action.value === value && canBeOrdered(rest, value);
    if (action.kind === "put") return canBeOrdered(rest, action.value);
    const matches = action.expected === value;
    if (one.endedAt !== null && matches !== action.succeeded) return false;
    return canBeOrdered(rest, matches ? action.value : value);
  });
}
