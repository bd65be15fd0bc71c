// What an island remembers of transactions: how much, how long, and that no step looks at all of it.

import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { wholeOf } from "../kit/pieces.ts";
import { seededRandom } from "../kit/random.ts";
import type { SnapshotData } from "../../ports/state-machine.ts";
import { TXN_AHEAD_MS_MAX } from "../kit/limits.ts";
import { ById } from "./by-id.ts";
import { createdMs, homeOf, isTxnId, type TxnEvent, type TxnHeader, TxnsFold, TxnsHead } from "./index.ts";
import { newTxnId } from "./test-ids.ts";
import { ageProblem } from "./refusals.ts";
import type { TxnsView } from "./view.ts";
import { TXN_SETTLED_BYTES_MAX, TXN_SETTLED_MAX, TXN_SETTLED_MS, TXNS_FORGOTTEN_PER_RECORD_MAX } from "./limits.ts";

const NOW_MS = 1_798_761_600_000;
const random = seededRandom("fold.test");
const hash = (letter: string): string => letter.repeat(64);
const FENCE = { clusterId: "k", term: 1, recoveredBy: null };
const NOTHING = { values: 0, bytes: 0, scopes: 0 };

/** The nth of a series, in the order of their making. */
function idOf(n: number): string {
  const hex = n.toString(16).padStart(12, "0");
  return `01a2ce8b-d400-7000-8000-${hex}`;
}

function header(id: string, changes: Partial<TxnHeader> = {}): TxnHeader {
  return { id, home: hash("a"), participants: [hash("b")], digest: hash("d"), timeoutMs: 5_000, by: "c", ...changes };
}

function rolledBack(id: string, atMs: number, message = "m"): TxnEvent {
  const reason = { code: "txn_locked", message, backendHash: null } as const;
  const rest = { results: [], outbox: [], reason, fence: null, atMs };
  return { kind: "txn-decided", header: header(id), outcome: "rolled-back", ...rest };
}

function prepared(id: string, name: string): TxnEvent {
  const operations = [{ kind: "value-put", name, data: Uint8Array.of(1), ifVersion: null }] as const;
  return {
    kind: "txn-prepared",
    header: header(id),
    operations,
    reserved: { ...NOTHING, values: 1 },
    fence: FENCE,
    atMs: NOW_MS,
  };
}

function committed(id: string): TxnEvent {
  const rest = { results: [], outbox: [], reason: null, fence: FENCE, atMs: NOW_MS };
  return { kind: "txn-decided", header: header(id), outcome: "committed", ...rest };
}

function evolve(fold: TxnsFold, event: TxnEvent, place = 1): void {
  expect(fold.fits(event)).toBe(true);
  fold.evolve(event, place);
}

function restored(fold: TxnsFold): TxnsFold {
  const again = new TxnsFold();
  again.restore(wholeOf(fold.snapshot()));
  return again;
}

/** Without a report of millions of bytes where they are not. */
function isSame(one: SnapshotData, other: SnapshotData): boolean {
  return Buffer.compare(wholeOf(one), wholeOf(other)) === 0;
}

const full = new TxnsFold();
for (let n = 0; n < TXN_SETTLED_MAX; n++) full.evolve(rolledBack(idOf(n + 100_000), NOW_MS), n);

afterEach(() => vi.restoreAllMocks());

describe("outcomes that nobody needs", () => {
  it("are kept up to 65,536; then the smallest ids are forgotten, and only these", () => {
    const fold = restored(full);
    expect([fold.size, fold.horizon]).toEqual([TXN_SETTLED_MAX, null]);
    for (let n = 0; n < 10; n++) evolve(fold, rolledBack(idOf(200_000 + n), NOW_MS));
    expect([fold.size, fold.horizon]).toEqual([TXN_SETTLED_MAX, idOf(100_009)]);
    expect([fold.get(idOf(100_009)), fold.get(idOf(100_010))?.phase]).toEqual([undefined, "rolled-back"]);
    // An id below all: it is itself what is forgotten, and the horizon does not fall.
    evolve(fold, rolledBack(idOf(1), NOW_MS));
    expect([fold.size, fold.horizon, fold.get(idOf(1))]).toEqual([TXN_SETTLED_MAX, idOf(100_009), undefined]);
  });

  it("never push out what is needed still: prepared, or committed and not settled", () => {
    const fold = restored(full);
    evolve(fold, prepared(idOf(1), "x"));
    evolve(fold, prepared(idOf(2), "y"));
    evolve(fold, committed(idOf(2)));
    for (let n = 0; n < 200; n++) evolve(fold, rolledBack(idOf(200_000 + n), NOW_MS + 2 * TXN_SETTLED_MS));
    expect([fold.get(idOf(1))?.phase, fold.get(idOf(2))?.phase]).toEqual(["prepared", "committed"]);
    expect([fold.lockedBy({ value: "x" }), fold.lockedBy({ value: "y" })]).toEqual([idOf(1), null]);
    expect([fold.prepared, fold.unsettled, fold.reserved.values]).toEqual([1, 1, 1]);
  });

  it("go with their age a few with each record, by the record's time: equal on every node", () => {
    const fold = restored(full);
    const atMs = NOW_MS + TXN_SETTLED_MS;
    fold.evolve({ kind: "txn-fence", fence: FENCE, atMs: atMs - 1 }, 1);
    expect(fold.size).toBe(TXN_SETTLED_MAX);
    fold.evolve({ kind: "txn-fence", fence: FENCE, atMs }, 1);
    expect(fold.size).toBe(TXN_SETTLED_MAX - TXNS_FORGOTTEN_PER_RECORD_MAX);
    const other = restored(fold);
    for (const one of [fold, other]) one.evolve({ kind: "txn-fence", fence: FENCE, atMs }, 1);
    expect(isSame(other.snapshot(), fold.snapshot())).toBe(true);
  });

  it("are bounded by their bytes, also where large ones follow small ones", () => {
    const fold = restored(full);
    const message = "m".repeat(1_024);
    const large = Array.from({ length: 16 }, (_, at) => at.toString(16).repeat(64));
    let most = 0;
    for (let n = 0; n < 12_000; n++) {
      const results = Array.from({ length: 64 }, () => ({ version: n, epoch: null, jobId: null }));
      const event = rolledBack(idOf(200_000 + n), NOW_MS, message) as Extract<TxnEvent, { kind: "txn-decided" }>;
      fold.evolve({ ...event, header: { ...event.header, participants: large }, results }, 1);
      if (n % 4_000 === 3_999) most = Math.max(most, wholeOf(fold.snapshot()).length);
    }
    // Lengths besides.
    expect(most).toBeLessThan(TXN_SETTLED_BYTES_MAX + 4 * TXN_SETTLED_MAX + 10_000);
    expect(fold.size).toBeLessThan(TXN_SETTLED_MAX / 2);
  });

  it("are the same when they are unpacked, in the head too", () => {
    const fold = new TxnsFold();
    const head = new TxnsHead<null>(fold);
    evolve(fold, prepared(idOf(1), "x"));
    const event = { ...committed(idOf(1)), results: [{ version: 3, epoch: null, jobId: "j" }] } as TxnEvent;
    const settled: TxnEvent = { kind: "txn-settled", id: idOf(1), by: null, atMs: NOW_MS };
    for (const [at, one] of [event, settled].entries()) head.push(one, at + 7, at + 7, null);
    const before = head.get(idOf(1));
    expect(before).toMatchObject({ phase: "committed", isSettled: true, settledBy: [] });
    for (const [at, one] of [event, settled].entries()) {
      evolve(fold, one, at + 7);
      head.applied(one, at + 7);
    }
    expect(fold.get(idOf(1))).toEqual(before);
    expect(restored(fold).get(idOf(1))).toEqual(before);
    expect(head.underWay(idOf(1))).toBeNull();
  });
});

describe("a client whose clock is ahead by as much as is taken", () => {
  const RATE = 2_000;
  const SECONDS = 60;
  /** The nth id that is made in this millisecond. */
  const idAt = (ms: number, nth: number): string => {
    const time = ms.toString(16).padStart(12, "0");
    return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${nth.toString(16).padStart(12, "0")}`;
  };

  it("and who asks for 2,000 transactions a second for a minute, has no fresh transaction of others refused", () => {
    const fold = new TxnsFold();
    const view = { txns: fold } as unknown as TxnsView;
    const refusals = new Set<string>();
    let oldestMs = 0;
    for (let second = 0; second < SECONDS; second++) {
      for (let n = 0; n < RATE; n++) {
        const nowMs = NOW_MS + second * 1_000 + Math.floor((n * 1_000) / RATE);
        const id = idAt(nowMs + TXN_AHEAD_MS_MAX, n);
        if (ageProblem(view, id, nowMs) !== null) refusals.add(`of the client that is ahead: ${id}`);
        fold.evolve(rolledBack(id, nowMs), 1);
      }
      const nowMs = NOW_MS + (second + 1) * 1_000;
      const fresh = ageProblem(view, idAt(nowMs, 0), nowMs);
      if (fresh !== null) refusals.add(fresh.code);
      oldestMs = fold.horizon === null ? 0 : nowMs - createdMs(fold.horizon);
    }
    expect([...refusals]).toEqual([]);
    // As docs/transactions.md says of ids that are sent again.
    expect(oldestMs).toBeGreaterThan((TXN_SETTLED_MAX / RATE) * 1_000 - TXN_AHEAD_MS_MAX - 1_000);
    expect(fold.size).toBe(TXN_SETTLED_MAX);
  });

  it("by one millisecond more is refused, and says by how much a clock may be ahead", () => {
    const view = { txns: new TxnsFold() } as unknown as TxnsView;
    expect(ageProblem(view, idAt(NOW_MS + TXN_AHEAD_MS_MAX, 0), NOW_MS)).toBeNull();
    const problem = ageProblem(view, idAt(NOW_MS + TXN_AHEAD_MS_MAX + 1, 0), NOW_MS);
    expect(problem).toMatchObject({ code: "invalid_txn_id", message: expect.stringContaining("10 s ahead") as string });
  });
});

describe("an event that makes no sense", () => {
  it("does not fit, in any phase", () => {
    const fold = new TxnsFold();
    const [id, other] = [idOf(1), idOf(2)];
    const delivered: TxnEvent = { kind: "txn-delivered", id, atMs: 1 };
    const dropped: TxnEvent = { kind: "txn-dropped", id, atMs: 1 };
    const settled: TxnEvent = { kind: "txn-settled", id, by: null, atMs: 1 };
    const staged: TxnEvent = {
      kind: "txn-staged",
      header: header(id, { participants: [], digest: "", timeoutMs: 0 }),
      operations: [],
      atMs: 1,
    };
    const fit = (...events: readonly TxnEvent[]): readonly boolean[] => events.map((one) => fold.fits(one));
    expect(fit(delivered, dropped, settled)).toEqual([false, false, false]);
    fold.evolve(staged, 1);
    expect(fit(staged, delivered, settled)).toEqual([false, false, false]);
    fold.evolve(prepared(id, "x"), 2);
    expect(fit(staged, prepared(id, "y"), prepared(other, "x"), dropped, delivered, settled)).not.toContain(true);
    const anothers = { ...committed(id), header: header(id, { digest: hash("e") }) } as TxnEvent;
    expect(fit(anothers)).toEqual([false]);
    fold.evolve(committed(id), 3);
    expect(fit(committed(id), rolledBack(id, 1), prepared(id, "x"), delivered, dropped, staged)).not.toContain(true);
    fold.evolve(settled, 4);
    expect(fit(settled, committed(id), rolledBack(id, 1))).not.toContain(true);
  });
});

describe("no step looks at all of them", () => {
  it("where 4,096 are prepared and 65,536 are remembered, none of these is walked through, sorted or copied", () => {
    const fold = restored(full);
    for (let n = 0; n < 4_000; n++) fold.evolve(prepared(idOf(n), `n${n}`), n);
    const head = new TxnsHead<null>(fold);
    const walks = [vi.spyOn(ById.prototype, "from"), vi.spyOn(ById.prototype, "all")];
    let looks = 0;
    const get = fold.get.bind(fold);
    vi.spyOn(fold, "get").mockImplementation((id) => {
      looks++;
      return get(id);
    });
    for (let n = 0; n < 90; n++) {
      const id = idOf(4_000 + n);
      for (const event of [prepared(id, `n${4_000 + n}`), committed(id)]) {
        head.push(event, n, n, null);
        fold.evolve(event, n);
        head.applied(event, n);
      }
      for (const key of [{ value: `n${n}` }, { value: "none" }, { scope: "none" }]) head.lockedBy(key);
      fold.evolve(rolledBack(idOf(300_000 + n), NOW_MS), n);
    }
    expect(walks.map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
    expect(looks).toBeLessThan(90 * 20);
    expect([head.prepared, head.unsettled, fold.size]).toEqual([4_000, 90, TXN_SETTLED_MAX + 4_090]);
  });
});

describe("the snapshot", () => {
  it("is of the moment in which it was taken, in pieces, and the same after a restore", () => {
    const fold = restored(full);
    evolve(fold, prepared(idOf(1), "x"));
    const before = wholeOf(fold.snapshot());
    const taken = fold.snapshot();
    evolve(fold, committed(idOf(1)));
    for (let n = 0; n < 100; n++) evolve(fold, rolledBack(idOf(n + 2), NOW_MS + 2 * TXN_SETTLED_MS));
    const whole = wholeOf(taken);
    expect(isSame(whole, before)).toBe(true);
    expect(isSame(restored(fold).snapshot(), fold.snapshot())).toBe(true);
    expect([...fold.snapshot()].length).toBeGreaterThan(10);
  });

  it("lists all by id, whatever they are, after any id", () => {
    const fold = new TxnsFold();
    for (const n of [5, 1, 9]) evolve(fold, rolledBack(idOf(n), NOW_MS));
    for (const n of [4, 7, 0]) evolve(fold, prepared(idOf(n), `n${n}`));
    const all = [0, 1, 4, 5, 7, 9].map(idOf);
    const ids = (after: string | null): string[] => [...fold.from(after)].map(({ header: of }) => of.id);
    expect(ids(null)).toEqual(all);
    for (const [at, id] of all.entries()) expect(ids(id)).toEqual(all.slice(at + 1));
    expect(ids(idOf(6))).toEqual([7, 9].map(idOf));
    expect([...fold.live(idOf(3))].map(({ header: of }) => of.id)).toEqual([4, 7].map(idOf));
  });

  it("that is cut short, made longer, out of order, or locks one thing twice is refused", () => {
    const fold = new TxnsFold();
    evolve(fold, prepared(idOf(1), "x"));
    evolve(fold, prepared(idOf(2), "y"));
    for (const n of [3, 4]) evolve(fold, rolledBack(idOf(n), NOW_MS));
    const bytes = wholeOf(fold.snapshot());
    const restoring = (of: Uint8Array) => () => new TxnsFold().restore(of);
    for (let at = 1; at < bytes.length; at++) expect(restoring(bytes.subarray(0, at))).toThrow(/truncated|malformed/);
    expect(restoring(Uint8Array.of(...bytes, 0))).toThrow(/after the transactions/);
    const changed = (from: number, to: number): Uint8Array => {
      const copy = bytes.slice();
      copy[copy.lastIndexOf(from)] = to;
      return copy;
    };
    expect(restoring(changed(0x79, 0x78))).toThrow(/locked twice/);
    const empty = new TxnsFold();
    empty.restore(new Uint8Array(0));
    expect(empty.isEmpty).toBe(true);
  });
});

describe("what is kept by id", () => {
  it("is to its users what a sorted list is, whatever comes and goes", () => {
    const step = fc.record({ what: fc.constantFrom("set", "set", "delete", "shift"), n: fc.nat(40), value: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const own = new ById<readonly [string, number]>(([id]) => id);
        const oracle = new Map<string, number>();
        for (const { what, n, value } of steps) {
          const id = idOf(n);
          const first = [...oracle.keys()].toSorted()[0];
          if (what === "set") {
            own.set([id, value]);
            oracle.set(id, value);
          } else if (what === "delete") {
            own.delete(id);
            oracle.delete(id);
          } else if (first !== undefined) {
            own.delete(first);
            oracle.delete(first);
          }
          const sorted = [...oracle].toSorted(([one], [other]) => (one < other ? -1 : 1));
          expect(own.all()).toEqual(sorted);
          expect([own.size, own.first]).toEqual([sorted.length, sorted[0]]);
          expect([...own.from(id)]).toEqual(sorted.filter(([one]) => one > id));
          expect(own.get(id)?.[1]).toBe(oracle.get(id));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("an id", () => {
  it("is a UUID of version 7 that carries its time, and ids are in the order of their times", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 2 }), (ms) => {
        const id = newTxnId(ms, random);
        expect([isTxnId(id), createdMs(id)]).toEqual([true, ms]);
        expect(newTxnId(ms + 1, random) > id).toBe(true);
      }),
    );
    expect(newTxnId(NOW_MS, random)).not.toBe(newTxnId(NOW_MS, random));
    const upper = idOf(1).replace("01a2", "01A2");
    const wrong = [upper, `${idOf(1)} `, `${idOf(1)}\n`, idOf(1).replace("-7", "-4"), null, 7, {}, [idOf(1)]];
    expect(wrong.map((one) => isTxnId(one))).toEqual(wrong.map(() => false));
  });
});

describe("home", () => {
  const of = (...letters: readonly string[]) =>
    letters.map((letter) => ({ backendHash: hash(letter), operations: [] }));

  it("is the given one, else the island of the first requirement, else the smallest that releases a scope, else the smallest", () => {
    const require = [
      { backendHash: hash("c"), scope: "s", epoch: 1 },
      { backendHash: hash("a"), scope: "s", epoch: 1 },
    ];
    expect(homeOf({ home: hash("e"), require, participants: of("b", "a") })).toBe(hash("e"));
    expect(homeOf({ home: null, require, participants: of("b", "a") })).toBe(hash("c"));
    expect(homeOf({ home: null, require: [], participants: of("b", "a", "c") })).toBe(hash("a"));
    const releasing = (letter: string) => ({
      backendHash: hash(letter),
      operations: [{ kind: "value-delete" }, { kind: "scope-release" }],
    });
    const moved = [...of("b"), releasing("d"), releasing("c"), ...of("a")];
    for (const participants of [moved, moved.toReversed()])
      expect(homeOf({ home: null, require: [], participants })).toBe(hash("c"));
    expect(homeOf({ home: null, require: [require[1]!], participants: moved })).toBe(hash("a"));
    expect(homeOf({ home: hash("e"), require: [], participants: moved })).toBe(hash("e"));
    expect(homeOf({ home: null, require: [], participants: [] })).toBeNull();
  });
});
