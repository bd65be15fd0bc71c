import { expect, test } from "vitest";
import { restAfterMs } from "./giving-way.ts";

test("who is not kept waiting does not rest, who is rests for longer, and nobody for ever", () => {
  expect([0, 1, 4].map(restAfterMs)).toEqual([0, 0, 0]);
  expect(restAfterMs(5)).toBe(10);
  expect(restAfterMs(25)).toBe(50);
  expect(restAfterMs(10_000)).toBe(50);
});
