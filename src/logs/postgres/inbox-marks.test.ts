// Which numbers of the inbox are looked for.

import { expect, test } from "vitest";
import { InboxMarks } from "./inbox-marks.ts";

function found(marks: InboxMarks, numbers: readonly number[], nowMs = 0): void {
  const { exactly } = marks.next(nowMs);
  marks.found(numbers, exactly, true, nowMs);
}

test("numbers that were passed over are looked for until they are found", () => {
  const marks = new InboxMarks();
  found(marks, [1]);
  found(marks, [4, 6]);
  expect(marks.next(0)).toEqual({ after: 6, exactly: [2, 3, 5] });
  found(marks, [3]);
  expect(marks.next(0)).toEqual({ after: 6, exactly: [2, 5] });
});

test("before the first that is found as many are waited for as may be under way", () => {
  const marks = new InboxMarks();
  expect(marks.next(0)).toEqual({ after: 0, exactly: [] });
  found(marks, [1_000]);
  const { after, exactly } = marks.next(0);
  expect([after, exactly.length, exactly[0], exactly.at(-1)]).toEqual([1_000, 100, 900, 999]);
});

test("a number is forgotten after a minute, and the oldest where there are too many", () => {
  const marks = new InboxMarks();
  found(marks, [1]);
  found(marks, [3], 10);
  expect(marks.next(60_009).exactly).toEqual([2]);
  expect(marks.next(60_010).exactly).toEqual([]);
  found(marks, [1_000_000], 60_010);
  const { exactly } = marks.next(60_010);
  expect([exactly.length, exactly[0]]).toEqual([1_000, 999_000]);
  found(marks, [1_000_002], 60_010);
  expect(marks.next(60_010).exactly).toHaveLength(1_000);
  expect(marks.next(60_010).exactly.at(-1)).toBe(1_000_001);
});

test("one that may still be there is looked for once more, and given up only by a look that saw everything", () => {
  const marks = new InboxMarks();
  found(marks, [1, 2, 3]);
  marks.again(2);
  const look = marks.next(0);
  expect(look).toEqual({ after: 3, exactly: [2] });
  marks.found([4], look.exactly, false, 0);
  expect(marks.next(0)).toEqual({ after: 4, exactly: [2] });
  // Settled while the look was under way: it was not asked for.
  marks.again(3);
  marks.found([], look.exactly, true, 0);
  expect(marks.next(0)).toEqual({ after: 4, exactly: [3] });
});

test("on another server nothing is known", () => {
  const marks = new InboxMarks();
  found(marks, [5, 7]);
  marks.again(5);
  marks.forget();
  expect(marks.next(0)).toEqual({ after: 0, exactly: [] });
});
