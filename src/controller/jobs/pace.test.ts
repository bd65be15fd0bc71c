import { expect, it } from "vitest";
import type { Clock } from "../../ports/clock.ts";
import { Pace } from "./pace.ts";

function paced(): {
  pace: Pace;
  through: string[];
  ask: (name: string, jobs: number) => void;
  nextTurn: () => Promise<void>;
} {
  const timers: (() => void)[] = [];
  const clock = { monotonicMs: () => 0, setTimer: (_atMs: number, fire: () => void) => timers.push(fire) };
  const pace = new Pace(clock as unknown as Clock);
  const through: string[] = [];
  return {
    pace,
    through,
    ask: (name, jobs) => {
      const turn = pace.turn(jobs);
      if (turn === null) through.push(name);
      else void turn.then(() => through.push(name));
    },
    nextTurn: async () => {
      expect(timers.length).toBeLessThanOrEqual(1);
      timers.shift()?.();
      for (let step = 0; step < 5; step++) await Promise.resolve();
    },
  };
}

it("lets so many through in each turn of the loop, in order, and one that has more alone", async () => {
  const { through, ask, nextTurn } = paced();
  ask("a", 100);
  ask("b", 100);
  ask("c", 100);
  ask("d", 1_000);
  // There would be room for it, but others came first.
  ask("e", 32);
  expect(through).toEqual(["a", "b"]);
  await nextTurn();
  expect(through).toEqual(["a", "b", "c"]);
  await nextTurn();
  expect(through).toEqual(["a", "b", "c", "d"]);
  await nextTurn();
  expect(through).toEqual(["a", "b", "c", "d", "e"]);
  await nextTurn();
  // Nobody waits: the next is let through at once.
  ask("f", 1_000);
  expect(through.at(-1)).toBe("f");
});

it("small ones go through as they come, also where large ones wait", () => {
  const { through, ask } = paced();
  ask("large", 1_000);
  ask("larger", 1_000);
  for (let at = 0; at < 1_000; at++) ask("small", 31);
  expect(through).toHaveLength(1_001);
});
