// Lines of other sites, served from receipts: pages as they were cut, from memory and from the archive, and proofs over them.

import { describe, expect, it } from "vitest";
import { bytesOfHash, hexOf } from "../../../core/events/index.ts";
import { verifyConsistency } from "../../../core/events/merkle-proof.ts";
import type { LineState } from "../../../core/mesh/model.ts";
import { checkPage, PAGE_ITEMS_MAX, recoveredPayload, successorOf } from "../../../core/mesh/proof/index.ts";
import { encodePage, type Receipt, ReceiptsState, type SealedReceipt } from "../../../core/mesh/receipts/index.ts";
import { decodePage } from "../../../core/mesh/receipts/page-bytes.ts";
import { fakeVerify } from "../../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../../core/mesh/test-site.ts";
import { TURN_SLICE_MS } from "../../../core/kit/limits.ts";
import type { Clock } from "../../../ports/clock.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { PAGES_SENT_MAX } from "../limits.ts";
import { ForeignLines } from "./foreign-lines.ts";

/** A receipt takes longer than a slice may; timers fire as soon as nothing else is done. */
class SlowClock implements Clock {
  #nowMs = 0;
  turns = 0;
  monotonicMs = (): number => (this.#nowMs += TURN_SLICE_MS);
  wallMs = (): number => this.#nowMs;
  setTimer: Clock["setTimer"] = (_atMs, fire) => {
    this.turns++;
    void Promise.resolve().then(fire);
    return { cancel: () => undefined };
  };
}

function stage() {
  const state = new ReceiptsState(digest);
  const archive: SealedReceipt[] = [];
  const followers: ((applied: SealedReceipt) => void)[] = [];
  const restored: (() => void)[] = [];
  const reads: number[] = [];
  const asked = { receipts: 0, isIndexed: false };
  const clock = new SlowClock();
  const kept = { after: 0, lineBefore: null as string | null };
  const sites = ["a", "b"].map((id) => new TestSite(ringOf(id, ["n1"], digest), digest));
  const lines = new ForeignLines({
    receipts: {
      state,
      follow: (tell) => {
        followers.push(tell);
        return () => undefined;
      },
      onRestored: (tell) => {
        restored.push(tell);
        return () => undefined;
      },
    },
    archive: {
      get lastSequence() {
        return archive.length;
      },
      async *read(from, max = Infinity) {
        reads.push(from);
        const batch = archive.slice(from - 1, from - 1 + max);
        asked.receipts += batch.length;
        yield batch;
      },
      manifest: () => ({ start: { sequence: kept.after } }),
    },
    digest,
    clock,
    lineBefore: () => kept.lineBefore,
    receiptOf: async (line, sequence) => {
      const has = ({ page }: Receipt): boolean => page.line === line && page.after + page.items.length >= sequence;
      return (asked.isIndexed && archive.find(({ receipt }) => has(receipt))?.receipt.sequence) || null;
    },
  });
  /** `changed`: so many of its first items are not those that the site has signed. */
  const receive = (site: TestSite, after: number, size: number, changed = 0): void => {
    const before: LineState = state.line(site.line) ?? site.start;
    const signed = site.page(after, size);
    const page = { ...signed, items: signed.items.map((item, at) => (at < changed ? "another text" : item)) };
    const checking = checkPage({ digest, verify: fakeVerify(digest), state: before, page });
    let step = checking.next();
    while (step.done !== true) step = checking.next();
    if (step.value.kind !== "accepted") throw new Error(step.value.kind);
    const bytes = encodePage(page);
    const offered = {
      bytes,
      page: decodePage(bytes),
      from: { size: before.size, hash: before.hash },
      state: step.value.state,
    };
    const sealed = state.take(offered, { epoch: 1, own: 0, arrivedMs: 1 })!;
    archive.push(sealed);
    for (const tell of followers) tell(sealed);
  };
  const [a, b] = sites as [TestSite, TestSite];
  for (const site of sites) site.writeMany(30);
  a.write({ eventType: "build:log" });
  return { a, b, lines, receive, restored, reads, asked, state, clock, kept };
}

const CUTS = [
  [0, 5],
  [3, 9],
  [9, 10],
  [10, 31],
] as const;

describe.each([
  ["from memory", false],
  ["from the archive", true],
])("pages %s", (_name, isCold) => {
  it("are those that came: the one in which the next event was new, with its own note", async () => {
    const { a, b, lines, receive, restored, reads } = stage();
    for (const [after, size] of CUTS) {
      receive(a, after, size);
      if (size <= 30) receive(b, after, size);
    }
    if (isCold) for (const tell of restored) tell();
    expect(lines.lines().toSorted()).toEqual([a.line, b.line].toSorted());
    expect([lines.size(a.line), lines.size(b.line), lines.size("x.1")]).toEqual([31, 10, 0]);
    for (let after = 0; after < 31; after++) {
      const [from, size] = CUTS.find(([, end]) => end > after)!;
      expect(await lines.page(a.line, after), `after ${after}`).toEqual(a.page(from, size));
    }
    expect(await lines.page(a.line, 31)).toBeNull();
    await expect(lines.page("x.1", 0)).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(await lines.checkpoint(b.line)).toBe(b.page(9, 10).checkpoint);
    expect(reads.length > 0).toBe(isCold);
  });

  it("have the events that were verified: what was known when a page came is not looked at, and may have been changed", async () => {
    const { a, b, lines, receive, restored } = stage();
    receive(a, 0, 2);
    receive(a, 1, 5, 1);
    receive(b, 0, 5);
    receive(a, 1, 9, 4);
    receive(a, 9, 10);
    receive(a, 0, 12, 10);
    if (isCold) for (const tell of restored) tell();
    for (const [after, from, size] of [
      [2, 1, 5],
      [5, 1, 9],
      [10, 0, 12],
    ] as const) {
      expect(await lines.page(a.line, after), `after ${after}`).toEqual(a.page(from, size));
    }
  });
});

describe.each([
  ["from memory", false],
  ["from the archive", true],
])("pages that go together, %s", (_name, isCold) => {
  it("are consecutive ones of one line, whatever came between them", async () => {
    const { a, b, lines, receive, restored } = stage();
    for (const [after, size] of CUTS) {
      receive(a, after, size);
      if (size <= 30) receive(b, after, size);
    }
    if (isCold) for (const tell of restored) tell();
    const all = CUTS.map(([after, size]) => a.page(after, size));
    expect(await lines.pages(a.line, 0)).toEqual(all);
    expect(await lines.pages(a.line, 9)).toEqual(all.slice(2));
    expect(await lines.pages(a.line, 31)).toEqual([]);
  });

  it("are as many as one request takes, and no more than one page may be", async () => {
    const { a, b, lines, receive, restored } = stage();
    for (let size = 1; size <= 30; size++) receive(a, size - 1, size);
    b.writeMany(PAGE_ITEMS_MAX);
    const cuts = [30, 30 + PAGE_ITEMS_MAX / 2, 30 + PAGE_ITEMS_MAX] as const;
    cuts.forEach((size, at) => receive(b, cuts[at - 1] ?? 0, size));
    if (isCold) for (const tell of restored) tell();
    expect((await lines.pages(a.line, 0)).map(({ after }) => after)).toEqual(
      Array.from({ length: PAGES_SENT_MAX }, (_, at) => at),
    );
    expect((await lines.pages(b.line, 0)).map(({ after }) => after)).toEqual([0, 30]);
    expect((await lines.pages(b.line, 30)).map(({ after }) => after)).toEqual([30, 30 + PAGE_ITEMS_MAX / 2]);
  });
});

it("a page of the archive costs about as many receipts as it is made of, however many follow", async () => {
  const { a, lines, receive, restored, asked } = stage();
  a.writeMany(300);
  for (let size = 1; size <= 300; size++) receive(a, size - 1, size);
  for (const tell of restored) tell();
  asked.isIndexed = true;
  for (let after = 0; after < 300; after++) {
    asked.receipts = 0;
    expect(await lines.page(a.line, after)).toMatchObject({ after });
    expect(asked.receipts).toBe(1);
  }
  asked.receipts = 0;
  expect(await lines.pages(a.line, 100)).toHaveLength(PAGES_SENT_MAX);
  expect(asked.receipts).toBeLessThanOrEqual(2 * PAGES_SENT_MAX);
});

it("proofs of consistency are those of the line's own tree, withheld events included", async () => {
  const { a, b, lines, receive } = stage();
  for (const [after, size] of CUTS) {
    receive(a, after, size);
    if (size <= 30) receive(b, after, size);
  }
  for (const from of [1, 5, 8, 17, 30]) {
    const { fromRoot, root, path } = await lines.consistency(a.line, from, 31);
    expect([fromRoot, root]).toEqual([a.root(from), a.root(31)]);
    const claim = {
      first: from,
      second: 31,
      firstRoot: bytesOfHash(fromRoot),
      secondRoot: bytesOfHash(root),
      proof: path.map(bytesOfHash),
    };
    expect(verifyConsistency(claim, digest), `from ${from}`).toBe(true);
  }
  const inclusion = await lines.inclusion(a.line, 7, 31);
  expect([inclusion.root, inclusion.path]).toEqual([a.root(31), a.inclusion(7, 31)]);
  expect(inclusion.leafHash).toBe(hexOf(a.leaves(31)[6]!));
  await expect(lines.consistency(a.line, 5, 32)).rejects.toMatchObject({ code: "NOT_FOUND" });
});

it("a proof from a later size to an earlier one, or from nothing, is refused and ends no process", async () => {
  const { a, lines, receive } = stage();
  receive(a, 0, 5);
  for (const [from, to] of [
    [4, 2],
    [0, 3],
    [2, 6],
  ] as const) {
    await expect(lines.consistency(a.line, from, to)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(lines.inclusion(a.line, from, to)).rejects.toMatchObject({ code: "NOT_FOUND" });
  }
});

it("a point of a long line is found in slices: it hashes all that was before", async () => {
  const { a, lines, receive, restored, state, clock } = stage();
  for (let at = 0; at < 30; at++) receive(a, at, at + 1);
  for (const tell of restored) tell();
  const before = clock.turns;
  const { hash } = await lines.pointOf(state.line(a.line)!, 29);
  expect(hash).toBe(a.hash(29));
  expect(clock.turns - before).toBeGreaterThanOrEqual(25);
});

describe("a line that continues another, of which the beginning is cut", () => {
  /** The next generation of `a`, from its tenth event on; `a` had more, which is lost. */
  function continued(a: TestSite) {
    const ring = { ...ringOf("a", ["n1"], digest, 2), keys: a.ring.keys };
    const place = { line: a.line, size: 10, hash: a.hash(10), frontier: a.frontier(10) };
    const recovered = { line: a.line, through: 10, hash: place.hash, frontier: place.frontier };
    const old = { ...a.start, ...place, timestamp: 0 };
    const begun = successorOf({ old, ring, recovered, digest });
    if (begun.kind !== "line") throw new Error(begun.kind);
    const next = new TestSite(ring, digest, { state: begun.state, leaves: a.leaves(10) });
    next.write({ eventType: "controller:recovered", entityId: "a", payload: recoveredPayload(place) });
    next.writeMany(19);
    return next;
  }

  function cut(receipts: number) {
    const { a, b, lines, receive, restored, kept, asked } = stage();
    const next = continued(a);
    kept.lineBefore = a.line;
    receive(a, 0, 31);
    for (const [after, size] of [
      [10, 15],
      [15, 25],
      [25, 30],
    ] as const)
      receive(next, after, size);
    // As after a restart.
    for (const tell of restored) tell();
    kept.after = receipts;
    return { b, next, lines, receive, restored, asked };
  }

  it("is served from its beginning on while that is kept, whatever else is cut", async () => {
    const { next, lines } = cut(1);
    expect((await lines.page(next.line, 0))?.after).toBe(10);
  });

  it("is not said to begin with the first page that is kept", async () => {
    const { next, lines } = cut(2);
    for (const after of [0, 10, 14])
      await expect(lines.page(next.line, after)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    expect((await lines.page(next.line, 15))?.after).toBe(15);
    // The other history of the line before is no part of this one.
    await expect(lines.consistency(next.line, 20, 30)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
  });

  it("is looked for once where nothing of it is kept", async () => {
    const { b, next, lines, receive, restored, asked } = cut(4);
    for (let size = 1; size <= 30; size++) receive(b, size - 1, size);
    for (const tell of restored) tell();
    for (let times = 0; times < 10; times++)
      await expect(lines.page(next.line, 0)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    // Where it begins, and where its first event is.
    expect(asked.receipts).toBe(30 + 30);
  });
});

describe("what is not kept any more", () => {
  it("is not looked for in all that is kept, and not again each time that somebody asks", async () => {
    const { a, b, lines, receive, restored, kept, asked } = stage();
    receive(a, 0, 5);
    receive(b, 0, 5);
    receive(a, 5, 6);
    for (let size = 7; size <= 30; size++) receive(a, size - 1, size);
    for (const tell of restored) tell();
    kept.after = 2;
    // The first receipt of the line that is kept says that nothing of before it is.
    await expect(lines.page(a.line, 0)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    expect(asked.receipts).toBe(1);
    // Of this line none is: that is seen once.
    for (let times = 0; times < 10; times++)
      await expect(lines.page(b.line, 0)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    expect(asked.receipts).toBe(1 + 25);
    // What comes later is there.
    receive(b, 5, 6);
    for (const tell of restored) tell();
    expect((await lines.page(b.line, 5))?.after).toBe(5);
  });
});
