// Which events may be on no other disk: the same as asking for each event alone, and in time whatever members answer.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeLacks, encodeLacks, holdingOf, soleCopies, type EventRange, type Lacks } from "./index.ts";
import { LACKS_RANGES_MAX } from "./limits.ts";

const EVENTS_MAX = 24;

const rangesFrom = (events: readonly number[]): EventRange[] => {
  const ranges: { first: number; last: number }[] = [];
  for (const event of events.toSorted((a, b) => a - b)) {
    if (ranges.at(-1)?.last === event - 1) ranges.at(-1)!.last = event;
    else ranges.push({ first: event, last: event });
  }
  return ranges;
};

const position = fc.integer({ min: 0, max: EVENTS_MAX });
const answer: fc.Arbitrary<Lacks | null> = fc.option(
  fc.record({
    start: position,
    reached: position,
    ranges: fc.uniqueArray(fc.integer({ min: 1, max: EVENTS_MAX })).map(rangesFrom),
  }),
);
const answers = fc.array(answer, { maxLength: 4 });

const isIn = (ranges: readonly EventRange[], event: number): boolean =>
  ranges.some(({ first, last }) => first <= event && event <= last);

/** Each event alone. */
function oneByOne(voters: (Lacks | null)[], others: (Lacks | null)[], leaving: (Lacks | null)[]): EventRange[] {
  const all = Array.from({ length: EVENTS_MAX }, (_, at) => at + 1);
  const risked = all.filter((event) => {
    const isMissed = voters.some((one) => one !== null && isIn(one.ranges, event));
    const isHad = [...voters, ...others].some(
      (one) => one !== null && one.start < event && event <= one.reached && !isIn(one.ranges, event),
    );
    return isMissed && !isHad && leaving.some((one) => one === null || (one.start < event && !isIn(one.ranges, event)));
  });
  return rangesFrom(risked);
}

describe("what may be on a disk that leaves, and nowhere else", () => {
  test("is the same as for each event alone", () => {
    fc.assert(
      fc.property(answers, answers, answers, (voters, others, leaving) => {
        expect(soleCopies(voters, others, leaving)).toEqual(oneByOne(voters, others, leaving));
      }),
      { numRuns: 2_000 },
    );
  });

  test("is found in a few looks at each range, though every voter answers with as many as it may", () => {
    const voters = 4;
    const looksMax = 64 * voters * LACKS_RANGES_MAX;
    let looks = 0;
    const counted = (value: number): number => {
      const valueOf = (): number => {
        if (++looks > looksMax) throw new Error(`more than ${looksMax} looks`);
        return value;
      };
      return { valueOf } as unknown as number;
    };
    // One event of eight, another one for each voter; the last voter lacks the same as the first.
    const said = Array.from({ length: voters }, (_, voter) => ({
      start: 0,
      reached: 8 * LACKS_RANGES_MAX,
      ranges: Array.from({ length: LACKS_RANGES_MAX }, (_range, at) => {
        const event = 8 * at + 1 + 2 * (voter % (voters - 1));
        return { first: counted(event), last: counted(event) };
      }),
    }));
    expect(soleCopies(said, [], [null])).toEqual([]);
    expect(soleCopies([said[0]!, said[3]!], [], [null])).toHaveLength(LACKS_RANGES_MAX);
    expect(soleCopies([said[0]!, said[3]!], [], [said[1]!])).toHaveLength(LACKS_RANGES_MAX);
  });
});

test("whether a member has a segment is the same as for each range alone", () => {
  fc.assert(
    fc.property(answer, position, position, (lacks, one, other) => {
      if (lacks === null) return;
      const [first, last] = [1 + Math.min(one, other), 1 + Math.max(one, other)];
      const isGone = last <= lacks.start || lacks.ranges.some((range) => range.first <= last && first <= range.last);
      const isThere = last <= lacks.reached && first > lacks.start;
      expect(holdingOf(lacks, { first, last })).toBe(isGone ? "lacks" : isThere ? "has" : "unknown");
    }),
    { numRuns: 1_000 },
  );
});

test("an answer whose ranges are out of order, overlap or end before they begin says nothing", () => {
  const lacks = (...ranges: [number, number][]): Lacks | null =>
    decodeLacks(encodeLacks({ start: 0, reached: 90, ranges: ranges.map(([first, last]) => ({ first, last })) }));
  expect(lacks([1, 5], [6, 6], [8, 9])).toMatchObject({ ranges: [{ first: 1 }, { first: 6 }, { first: 8 }] });
  expect(lacks([8, 9], [1, 5])).toBeNull();
  expect(lacks([1, 5], [5, 9])).toBeNull();
  expect(lacks([1, 5], [1, 5])).toBeNull();
  expect(lacks([5, 1])).toBeNull();
});
