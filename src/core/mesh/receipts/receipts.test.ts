// Records, receipts, their chain and the state that they are folded into.

import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { BEFORE_FIRST } from "../../archive/index.ts";
import { DecodeError } from "../../kit/bytes.ts";
import { wholeOf } from "../../kit/pieces.ts";
import { hexOf } from "../../events/index.ts";
import type { LineState } from "../model.ts";
import { checkPage } from "../proof/index.ts";
import { fakeVerify } from "../test-signatures.ts";
import { ringOf, TestSite } from "../test-site.ts";
import {
  archived,
  countsOf,
  decodeReceipt,
  decodeRecord,
  encodePage,
  encodeRecord,
  newEvents,
  pageOf,
  receiptChain,
  ReceiptsState,
  recordedPage,
  type SealedReceipt,
} from "./index.ts";

const tools = { digest, verify: fakeVerify(digest) };

function siteOf(name: string, events: number): TestSite {
  const site = new TestSite(ringOf(name, ["n1"], digest), digest);
  for (let at = 1; at <= events; at++) site.write(at % 4 === 0 ? { eventType: "build:log" } : {});
  return site;
}

/** The state of its line at a size. */
function stateAt(site: TestSite, size: number): LineState {
  if (size === 0) return site.start;
  const check = checkPage({ state: site.start, page: site.page(0, size), ...tools });
  for (;;) {
    const step = check.next();
    if (step.done !== true) continue;
    if (step.value.kind !== "accepted") throw new Error(step.value.kind);
    return step.value.state;
  }
}

/** A page with everything after `after` up to `size`, verified on what is known up to `from`. */
function recordOf(site: TestSite, after: number, size: number, from = after, floorMs = 0): Uint8Array {
  const page = recordedPage(encodePage(site.page(after, size)), stateAt(site, from), stateAt(site, size));
  return encodeRecord({ arrivedMs: 1_000, floorMs, pages: [page] });
}

function take(state: ReceiptsState, bytes: Uint8Array, own = 0, epoch = 3): (SealedReceipt | null)[] {
  const record = decodeRecord(bytes);
  if (record.kind !== "record") throw new Error(record.kind);
  state.raiseFloor(record.floorMs);
  return record.pages.map((page) => state.take(page, { epoch, own, arrivedMs: record.arrivedMs }));
}

const site = siteOf("site-a", 12);

describe("a record", () => {
  test("has these bytes, for ever", () => {
    const bytes = recordOf(site, 2, 5, 3, 77);
    expect([bytes.length, digest.sha256Hex(bytes)]).toMatchInlineSnapshot(`
      [
        1604,
        "768d949bd4914a18ed8d579cd8356466ea2df74ad1190a67ff605171f1d969b9",
      ]
    `);
    expect(hexOf(bytes.subarray(0, 40))).toMatchInlineSnapshot(
      `"0100000000000003e8000000000000004d00000001000003d500000027736974652d612e31333336"`,
    );
  });

  test("is read as it was written, and pages come back as they were", () => {
    const record = decodeRecord(recordOf(site, 2, 5, 3, 77));
    if (record.kind !== "record") throw new Error(record.kind);
    expect(record).toMatchObject({ arrivedMs: 1_000, floorMs: 77 });
    expect(pageOf(record.pages[0]!.page)).toEqual(site.page(2, 5));
    expect(record.pages[0]!.state).toEqual(stateAt(site, 5));
    expect(record.pages[0]!.from).toEqual({ size: 3, hash: site.hash(3) });
  });

  test("that is cut, goes on, or leads nowhere is malformed; a later version is told apart", () => {
    const bytes = recordOf(site, 0, 3);
    for (let end = 0; end < bytes.length; end++) expect(decodeRecord(bytes.subarray(0, end)).kind).toBe("malformed");
    expect(decodeRecord(Uint8Array.from([...bytes, 0])).kind).toBe("malformed");
    expect(decodeRecord(bytes.with(0, 0)).kind).toBe("malformed");
    expect(decodeRecord(bytes.with(0, 2))).toEqual({ kind: "later-version", version: 2 });
    const none = encodeRecord({ arrivedMs: 1, floorMs: 0, pages: [] });
    expect(decodeRecord(none).kind).toBe("malformed");
    const wrong = [
      [0, 3, 4, 5],
      [3, 5, 2, 5],
      [0, 3, 0, 4],
      [0, 3, 3, 3],
    ] as const;
    for (const [after, size, from, to] of wrong) {
      const page = recordedPage(encodePage(site.page(after, size)), stateAt(site, from), stateAt(site, to));
      expect(decodeRecord(encodeRecord({ arrivedMs: 1, floorMs: 0, pages: [page] })).kind).toBe("malformed");
    }
    const other = recordedPage(encodePage(site.page(0, 3)), site.start, stateAt(siteOf("site-b", 3), 3));
    expect(decodeRecord(encodeRecord({ arrivedMs: 1, floorMs: 0, pages: [other] })).kind).toBe("malformed");
  });
});

describe("the state", () => {
  test("counts what is new, and numbers it after all that arrived before", () => {
    const state = new ReceiptsState(digest);
    const [first] = take(state, recordOf(site, 0, 3), 10);
    const [second] = take(state, recordOf(site, 1, 5, 3), 12);
    expect(first!.receipt).toMatchObject({ sequence: 1, previousHash: null, epoch: 3, own: 10, foreign: 0, first: 1 });
    expect(second!.receipt).toMatchObject({ sequence: 2, previousHash: first!.hash, own: 12, foreign: 3, first: 4 });
    expect([newEvents(first!.receipt), newEvents(second!.receipt), state.foreign]).toEqual([3, 2, 5]);
    expect(state.line(site.line)).toEqual(stateAt(site, 5));
    expect(state.head).toEqual({ sequence: 2, hash: second!.hash, timestamp: 1_000, own: 12 });
  });

  test("is not changed by a page that it knows, that skips something, or that was verified on something else", () => {
    const state = new ReceiptsState(digest);
    take(state, recordOf(site, 0, 4));
    const before = digest.sha256Hex(wholeOf(state.slices()));
    const other = { ...stateAt(site, 4), hash: "f".repeat(64) };
    const page = recordedPage(encodePage(site.page(4, 6)), other, stateAt(site, 6));
    const records = [
      recordOf(site, 0, 4),
      recordOf(site, 0, 2),
      recordOf(site, 5, 7),
      recordOf(site, 0, 6, 3),
      encodeRecord({ arrivedMs: 9, floorMs: 0, pages: [page] }),
    ];
    for (const record of records) expect(take(state, record)).toEqual([null]);
    expect(digest.sha256Hex(wholeOf(state.slices()))).toBe(before);
  });

  test("takes several pages of one line in one record, and refuses the same one twice", () => {
    const state = new ReceiptsState(digest);
    const pages = [
      recordedPage(encodePage(site.page(0, 2)), site.start, stateAt(site, 2)),
      recordedPage(encodePage(site.page(2, 4)), stateAt(site, 2), stateAt(site, 4)),
      recordedPage(encodePage(site.page(2, 4)), stateAt(site, 2), stateAt(site, 4)),
    ];
    const taken = take(state, encodeRecord({ arrivedMs: 1, floorMs: 0, pages }), 7);
    expect(taken.map((one) => one?.receipt.foreign ?? null)).toEqual([0, 2, null]);
    expect(state.foreign).toBe(4);
  });

  test("begins a line where its generation begins", () => {
    const state = new ReceiptsState(digest);
    const [taken] = take(state, recordOf(site, 3, 5));
    expect(taken!.receipt.first).toBe(4);
    expect(state.foreign).toBe(2);
  });

  test("has a floor that only rises, and receipts whose times only grow", () => {
    const state = new ReceiptsState(digest);
    take(state, recordOf(site, 0, 1, 0, 50));
    take(state, recordOf(site, 1, 2, 1, 20));
    expect(state.floorMs).toBe(50);
    const page = recordedPage(encodePage(site.page(2, 3)), stateAt(site, 2), stateAt(site, 3));
    const [late] = take(state, encodeRecord({ arrivedMs: 400, floorMs: 0, pages: [page] }));
    expect(late!.receipt.timestamp).toBe(1_000);
  });

  test("is written down the same whatever the order in which lines came, in pieces, and read again", () => {
    const sites = ["b", "a", "c"].map((name) => siteOf(`site-${name}`, 2));
    const states = [sites, sites.toReversed()].map((order) => {
      const state = new ReceiptsState(digest);
      for (const one of order) take(state, recordOf(one, 0, 2), 4);
      return state;
    });
    const lines = states.map((state) => [...state.lines()].map(({ line }) => line));
    expect(lines[0]).not.toEqual(lines[1]);
    const whole = wholeOf(states[0]!.slices());
    expect(wholeOf(states[0]!.slices(1))).toEqual(whole);
    // What differs is the last receipt alone.
    expect(whole.subarray(45)).toEqual(wholeOf(states[1]!.slices()).subarray(45));
    const restored = new ReceiptsState(digest);
    restored.adopt(contentOf(restored, whole));
    expect(wholeOf(restored.slices())).toEqual(whole);
    expect([restored.foreign, restored.lineCount, restored.head]).toEqual([6, 3, states[0]!.head]);
  });

  test("that is cut, goes on or is of a later release is not read", () => {
    const state = new ReceiptsState(digest);
    take(state, recordOf(site, 0, 2), 4);
    const whole = wholeOf(state.slices());
    const bad: Uint8Array[] = [Uint8Array.from([...whole, 0]), whole.with(0, 2)];
    for (let end = 0; end < whole.length; end++) bad.push(whole.subarray(0, end));
    for (const bytes of bad) expect(() => contentOf(state, bytes)).toThrow(DecodeError);
  });
});

function contentOf(state: ReceiptsState, bytes: Uint8Array): Parameters<ReceiptsState["adopt"]>[0] {
  const reading = state.prepare(bytes);
  for (;;) {
    const step = reading.next();
    if (step.done === true) return step.value;
  }
}

describe("the chain of receipts", () => {
  const chain = receiptChain(digest);
  const state = new ReceiptsState(digest);
  const receipts = [
    ...take(state, recordOf(site, 0, 3), 10),
    ...take(state, recordOf(site, 3, 5), 10),
    ...take(state, recordOf(site, 4, 9, 5), 15),
  ].map((one) => one!);

  test("has receipts of these bytes, for ever", () => {
    const { bytes, hash } = receipts[1]!;
    expect([bytes.length, hash]).toMatchInlineSnapshot(`
      [
        763,
        "81117715699968dbf499e4642a04069870c43ae173f190dc8ecffefa8e83c92f",
      ]
    `);
    expect(hexOf(bytes.subarray(0, 100))).toMatchInlineSnapshot(
      `"01000000000000000200000020e7a8fce4b1db9475284a60d44a2102392461627f2b4e8237a495e1bda78d927e000000000000000300000000000003e8000000000000000a00000000000000030000000000000004000002a200000027736974652d612e"`,
    );
  });

  test("is whole from any place on, and a place says what was counted up to it", () => {
    const taking = chain.follow(BEFORE_FIRST)!;
    const points = [taking.point()];
    for (const one of receipts) {
      taking.take(archived(one));
      points.push(taking.point());
    }
    expect(points.map(countsOf)).toEqual([
      { own: 0, foreign: 0 },
      { own: 10, foreign: 3 },
      { own: 10, foreign: 5 },
      { own: 15, foreign: 9 },
    ]);
    for (const [from, point] of points.entries()) {
      const walk = chain.follow(point)!;
      for (const { bytes } of receipts.slice(from)) expect(walk.check(bytes)).toBe(true);
      expect(walk.fault(points.at(-1)!)).toBeNull();
      expect(walk.point()).toEqual(points.at(-1));
    }
    expect(chain.hash(receipts[2]!.bytes)).toBe(points[3]!.hash);
  });

  test("is broken by a receipt that is left out, twice there, changed, or of other counts", () => {
    const [first, second, third] = receipts.map(({ bytes }) => bytes) as [Uint8Array, Uint8Array, Uint8Array];
    const broken = (list: readonly Uint8Array[]): number | undefined => {
      const walk = chain.follow(BEFORE_FIRST)!;
      for (const bytes of list) walk.check(bytes);
      return walk.fault(null)?.sequence;
    };
    expect(broken([first, second, third])).toBeUndefined();
    expect(broken([second])).toBe(1);
    expect(broken([first, third])).toBe(2);
    expect(broken([first, first])).toBe(2);
    for (let at = 0; at < first.length; at++) {
      const changed = first.with(at, first[at]! ^ 1);
      expect(broken([changed, second]), `byte ${at}`).toBeLessThanOrEqual(2);
    }
    const walk = chain.follow(BEFORE_FIRST)!;
    walk.check(first);
    const end = walk.point();
    expect(walk.fault({ ...end, hash: "0".repeat(64) })).toMatchObject({ sequence: 1 });
    const counted = end.frontier.with(15, 4);
    expect(chain.follow({ ...end, frontier: counted })!.check(second)).toBe(false);
    const owned = end.frontier.with(7, 200);
    expect(chain.follow({ ...end, frontier: owned })!.check(second)).toBe(false);
    expect(chain.follow({ ...end, frontier: new Uint8Array(15) })).toBeNull();
    expect(chain.follow({ ...end, timestamp: 5_000 })!.check(second)).toBe(false);
  });

  test("has no receipt of a page of which nothing is new", () => {
    const { bytes } = receipts[0]!;
    // `first` is the last number before the page's bytes.
    const at = 1 + 8 + 4 + 0 + 4 * 8;
    for (const first of [0, 4]) expect(decodeReceipt(bytes.with(at + 7, first)).kind).toBe("malformed");
    expect(decodeReceipt(bytes.with(at + 7, 3)).kind).toBe("receipt");
  });
});
