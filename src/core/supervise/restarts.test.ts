import { expect, it } from "vitest";
import { Restarts } from "./restarts.ts";

it("waits longer after each short run, up to a bound, and begins again after a long one", () => {
  const restarts = new Restarts();
  const delays = Array.from({ length: 8 }, () => restarts.delayMs(9_999));
  expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  expect(restarts.delayMs(10_000)).toBe(100);
  expect(restarts.delayMs(0)).toBe(200);
});
