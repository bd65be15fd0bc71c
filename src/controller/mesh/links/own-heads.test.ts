// Heads are made once for all links; a line that is held since they were made is not shown any more.

import { expect, it } from "vitest";
import { HandClock } from "../../../loops/test-clock.ts";
import { HEADS_ALL_EVERY } from "../limits.ts";
import { OwnHeads } from "./own-heads.ts";

function stage() {
  const clock = new HandClock();
  const shown = new Set(["own.1", "b.1"]);
  let signed = 0;
  const lines = {
    lines: () => [...shown],
    size: () => 1,
    checkpoint: async (line: string) => {
      signed++;
      return `${line} signed`;
    },
  };
  return { clock, shown, heads: new OwnHeads(lines, clock), signed: () => signed };
}

it("are signed once for the links that ask within half a second", async () => {
  const { heads, signed, clock } = stage();
  await heads.now();
  expect((await heads.now()).map(({ note }) => note)).toEqual(["own.1 signed", "b.1 signed"]);
  expect(signed()).toBe(2);
  await clock.advance(500);
  await heads.now();
  expect(signed()).toBe(4);
});

it("a link that has nothing new is sent nothing two times of three, and all heads every tenth time, also where there are none", async () => {
  const { heads, shown, clock } = stage();
  const times = async (): Promise<(number | null)[]> => {
    const link = heads.forLink();
    const lengths: (number | null)[] = [];
    for (let second = 0; second < HEADS_ALL_EVERY + 1; second++) {
      lengths.push((await link.next())?.length ?? null);
      await clock.advance(1_000);
    }
    return lengths;
  };
  expect(await times()).toEqual([2, null, null, 0, null, null, 0, null, null, 0, 2]);
  shown.clear();
  expect(await times()).toEqual([0, null, null, 0, null, null, 0, null, null, 0, 0]);
});

it("the own line, held since the first peer registered, is left out at once, and shown again to links that were not sent it", async () => {
  const { heads, shown, clock } = stage();
  await heads.now();
  shown.delete("own.1");
  const link = heads.forLink();
  expect(await link.next()).toEqual(["b.1 signed"]);
  shown.add("own.1");
  await clock.advance(500);
  expect(await link.next()).toEqual(["own.1 signed"]);
});
