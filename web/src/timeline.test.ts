import { expect, it } from "vitest";
import type { ElectionView } from "../../src/client/index.ts";
import { mergedElections, nodeOf, NOTHING_SEEN, placed, timelineOf } from "./timeline.ts";

const election = (term: number, startedAtMs: number, change: Partial<ElectionView> = {}): ElectionView => ({
  term,
  stage: "vote",
  reason: "leader-gone",
  candidate: `n${term}@aa`,
  candidates: [`n${term}@aa`],
  votes: [],
  startedAtMs,
  durationMs: 20,
  result: "won",
  ...change,
});

it("a term begins when its vote is won, and ends when the campaign for the next begins; between them is a gap", () => {
  const preVote = election(2, 9_990, { stage: "pre-vote", candidate: "n3@aa", result: "lost" });
  const { bars, gaps } = timelineOf([election(2, 10_000), preVote, election(1, 1_000)], NOTHING_SEEN);
  expect(bars.map(({ nodeId, epoch, fromMs, toMs }) => [nodeId, epoch, fromMs, toMs])).toEqual([
    ["n1", 1, 1_020, 9_990],
    ["n2", 2, 10_020, null],
  ]);
  expect(gaps).toEqual([{ fromMs: 9_990, toMs: 10_020, epoch: 2 }]);
});

it("a candidate that failed alone, long before, made no gap", () => {
  const alone = election(2, 5_000, { stage: "pre-vote", result: "timed-out" });
  expect(timelineOf([election(1, 1_000), alone, election(2, 10_000)], NOTHING_SEEN).gaps).toEqual([
    { fromMs: 10_000, toMs: 10_020, epoch: 2 },
  ]);
});

it("what the page has seen makes a gap longer, but not into the term before it", () => {
  const two = [election(1, 1_000), election(2, 10_000)];
  const since = (ms: number) => timelineOf(two, { ...NOTHING_SEEN, goneBefore: new Map([[2, ms]]) }).gaps[0]?.fromMs;
  expect(since(8_000)).toBe(8_000);
  expect(since(10_500)).toBe(10_000);
  expect(since(10)).toBe(1_020);
});

it("while nobody leads the last gap is open", () => {
  const { bars, gaps } = timelineOf([election(1, 1_000)], { ...NOTHING_SEEN, goneSinceMs: 7_000 });
  expect(bars[0]?.toMs).toBe(7_000);
  expect(gaps).toEqual([{ fromMs: 7_000, toMs: null, epoch: null }]);
  expect(timelineOf([], NOTHING_SEEN)).toEqual({ bars: [], gaps: [] });
});

it("a term that no node remembers is shown since it was seen, and what is remembered goes before", () => {
  const terms = new Map([
    [1, { nodeId: "n1", fromMs: 5_000 }],
    [2, { nodeId: "n3", fromMs: 9_000 }],
  ]);
  const { bars, gaps } = timelineOf([election(1, 1_000)], {
    ...NOTHING_SEEN,
    terms,
    goneBefore: new Map([[2, 8_000]]),
  });
  expect(bars.map(({ nodeId, fromMs, toMs }) => [nodeId, fromMs, toMs])).toEqual([
    ["n1", 1_020, 8_000],
    ["n3", 9_000, null],
  ]);
  expect(bars.map((bar) => bar.election === null)).toEqual([false, true]);
  expect(gaps).toEqual([{ fromMs: 8_000, toMs: 9_000, epoch: 2 }]);
  expect(timelineOf([election(1, 1_000)], { ...NOTHING_SEEN, terms }).gaps).toEqual([]);
});

it("the same election, told by several nodes, is one, with the most votes that anybody knows", () => {
  const votes = [{ voter: "n1@aa", granted: true }];
  const merged = mergedElections([[election(1, 1_000)], [election(1, 1_003, { votes }), election(2, 9_000)]]);
  expect(merged.map(({ term, votes: known }) => [term, known.length])).toEqual([
    [2, 0],
    [1, 1],
  ]);
});

it("is placed in percent of the window, cut at its edges", () => {
  expect(placed(0, 50, 0, 100)).toEqual({ left: 0, width: 50 });
  expect(placed(-100, 200, 0, 100)).toEqual({ left: 0, width: 100 });
  expect(placed(-100, -1, 0, 100)).toBeNull();
  expect(placed(101, 200, 0, 100)).toBeNull();
  expect(nodeOf("n1@3f9a")).toBe("n1");
});
