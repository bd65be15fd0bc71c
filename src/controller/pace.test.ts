import { expect, it } from "vitest";
import type { Clock } from "../ports/clock.ts";
import { Pace } from "./pace.ts";

it("lets one through in each turn of the loop, in order, and others between them", async () => {
  const timers: (() => void)[] = [];
  const clock = { monotonicMs: () => 0, setTimer: (_atMs: number, fire: () => void) => timers.push(fire) };
  const pace = new Pace(clock as unknown as Clock);
  const through: number[] = [];
  const all = [1, 2, 3].map((one) => pace.turn().then(() => through.push(one)));
  for (let turn = 1; turn <= 3; turn++) {
    for (let step = 0; step < 5; step++) await Promise.resolve();
    expect(through).toEqual([1, 2, 3].slice(0, turn));
    expect(timers.length).toBe(1);
    timers.shift()?.();
  }
  await Promise.all(all);
  // Nobody waits: the next is let through at once.
  timers.shift()?.();
  expect(timers.length).toBe(0);
  await pace.turn();
});
