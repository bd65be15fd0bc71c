import { expect, it } from "vitest";
import type { ElectionView } from "../../src/client/index.ts";
import { lookedAway, NOTHING_SEEN, sawLeader, sawNobody } from "./seen.ts";
import { gapText, lastedText, mergedElections, nodeOf, placed, timelineOf } from "./timeline.ts";

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
  expect(gaps).toEqual([{ fromMs: 9_990, toMs: 10_020, epoch: 2, isBeginKnown: true }]);
});

it("a candidate that failed alone, long before, made no gap", () => {
  const alone = election(2, 5_000, { stage: "pre-vote", result: "timed-out" });
  expect(timelineOf([election(1, 1_000), alone, election(2, 10_000)], NOTHING_SEEN).gaps).toEqual([
    { fromMs: 10_000, toMs: 10_020, epoch: 2, isBeginKnown: true },
  ]);
});

it("what the page has seen makes a gap longer, but not into the term before it", () => {
  const two = [election(1, 1_000), election(2, 10_000)];
  const since = (ms: number) =>
    timelineOf(two, sawLeader(sawNobody(sawLeader(NOTHING_SEEN, "n1", 1, 0), ms), "n2", 2, 10_020)).gaps[0]?.fromMs;
  expect(since(8_000)).toBe(8_000);
  expect(since(10_500)).toBe(10_000);
  expect(since(10)).toBe(1_020);
});

it("while nobody leads the last gap is open; one that was not seen to begin is longer by nobody knows how much", () => {
  const { bars, gaps } = timelineOf([election(1, 1_000)], sawNobody(sawLeader(NOTHING_SEEN, "n1", 1, 6_000), 7_000));
  expect(bars[0]).toMatchObject({ toMs: 7_000, isEndKnown: true });
  expect(gaps).toEqual([{ fromMs: 7_000, toMs: null, epoch: null, isBeginKnown: true }]);
  const late = timelineOf([election(1, 1_000)], sawNobody(NOTHING_SEEN, 7_000));
  expect(late.bars[0]).toMatchObject({ toMs: 7_000, isEndKnown: false });
  expect(late.gaps.map((gap) => gapText(gap, 9_000))).toEqual(["at least 2.0 s"]);
  expect(timelineOf([], NOTHING_SEEN)).toEqual({ bars: [], gaps: [] });
});

it("a term that no node remembers is shown since it was seen, and what is remembered goes before", () => {
  const led = sawLeader(NOTHING_SEEN, "n1", 1, 5_000);
  const { bars, gaps } = timelineOf([election(1, 1_000)], sawLeader(sawNobody(led, 8_000), "n3", 2, 9_000));
  expect(bars.map(({ nodeId, fromMs, toMs, isEndKnown }) => [nodeId, fromMs, toMs, isEndKnown])).toEqual([
    ["n1", 1_020, 8_000, true],
    ["n3", 9_000, null, true],
  ]);
  expect(bars.map((bar) => bar.election === null)).toEqual([false, true]);
  expect(gaps).toEqual([{ fromMs: 8_000, toMs: 9_000, epoch: 2, isBeginKnown: true }]);
  const handed = timelineOf([election(1, 1_000)], sawLeader(led, "n3", 2, 9_000));
  expect(handed.gaps).toEqual([]);
  expect(handed.bars[0]).toMatchObject({ toMs: 9_000, isEndKnown: true });
});

it("where the page only finds another leading, the end of the term before is not known and no duration is claimed", () => {
  const found = sawLeader(NOTHING_SEEN, "n1", 9, 500_000);
  const [bar] = timelineOf([election(3, 1_000)], found).bars;
  expect(bar).toMatchObject({ epoch: 3, toMs: 500_000, isEndKnown: false });
  expect(lastedText(bar!, 600_000)).toBe("end not known");
  const [, last] = timelineOf([election(3, 1_000)], found).bars;
  expect(lastedText(last!, 502_000)).toBe("for at least 2.0 s");
});

it("where epochs are missing between two elections, the end of the first is not known, and the gap is at least the campaign", () => {
  const { bars, gaps } = timelineOf([election(3, 1_000), election(9, 500_000)], NOTHING_SEEN);
  expect(bars.map(({ toMs, isEndKnown }) => [toMs, isEndKnown])).toEqual([
    [500_000, false],
    [null, true],
  ]);
  expect(gaps.map((gap) => gapText(gap, 0))).toEqual(["at least 20 ms"]);
});

it("an epoch whose only candidate got no majority is not missing; one whose candidate lost may have been another's", () => {
  const between = (result: ElectionView["result"]) =>
    timelineOf([election(1, 1_000), election(2, 9_000, { result }), election(3, 9_500)], NOTHING_SEEN).bars[0];
  expect(between("timed-out")).toMatchObject({ toMs: 9_000, isEndKnown: true });
  expect(between("lost")).toMatchObject({ isEndKnown: false });
});

it("what happened while the tab was hidden was not seen", () => {
  const away = lookedAway(sawLeader(NOTHING_SEEN, "n3", 3, 1_020));
  expect(timelineOf([election(3, 1_000)], sawLeader(away, "n1", 4, 500_000)).bars[0]).toMatchObject({
    isEndKnown: false,
  });
  expect(lookedAway(sawNobody(away, 2_000)).goneSinceMs).toBeNull();
  // The same one still leads: what comes after it is seen again.
  const back = sawLeader(sawLeader(away, "n3", 3, 400_000), "n1", 4, 500_000);
  expect(timelineOf([election(3, 1_000)], back).bars[0]).toMatchObject({ toMs: 500_000, isEndKnown: true });
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
