import { describe, expect, it } from "vitest";
import { TurnShare } from "./turn-share.ts";

/** A loop whose turns are begun by hand, and requests that each take some milliseconds of it. */
class Loop {
  nowMs = 0;
  readonly turns: number[] = [0];
  #begins: (() => void)[] = [];
  readonly share = new TurnShare({
    clock: { monotonicMs: () => this.nowMs, setTimer: () => ({ cancel: () => undefined }) },
    nextTurn: (begin) => void this.#begins.push(begin),
  });
  readonly done: string[] = [];

  arrive(name: string, tookMs: number): void {
    const turn = this.share.enter();
    if (turn === null) this.#work(name, tookMs);
    else void turn.then(() => this.#work(name, tookMs));
  }

  async next(): Promise<void> {
    this.turns.push(0);
    for (const begin of this.#begins.splice(0)) begin();
    for (let hop = 0; hop < 100; hop++) await Promise.resolve();
  }

  #work(name: string, tookMs: number): void {
    this.nowMs += tookMs;
    this.turns[this.turns.length - 1]! += tookMs;
    this.done.push(name);
  }
}

describe("requests that arrive together", () => {
  it("ten large ones are one in each turn, in the order in which they came", async () => {
    const loop = new Loop();
    const names = Array.from({ length: 10 }, (_, n) => `r${n}`);
    for (const name of names) loop.arrive(name, 4);
    expect(loop.done, "the first does not wait").toEqual(["r0"]);
    for (let turn = 0; turn < 10; turn++) await loop.next();
    expect(loop.done).toEqual(names);
    expect(Math.max(...loop.turns), "no turn has two of them").toBe(4);
  });

  it("small ones share a turn, and none waits where there is time", async () => {
    const loop = new Loop();
    for (let n = 0; n < 10; n++) loop.arrive(`r${n}`, 0.125);
    expect(loop.done.length).toBe(10);
    await loop.next();
    loop.arrive("later", 1);
    expect([loop.done.at(-1), loop.share.waiting]).toEqual(["later", 0]);
  });

  it("a thousand small ones that waited share the turns that follow", async () => {
    const loop = new Loop();
    for (let n = 0; n < 1_000; n++) loop.arrive(`r${n}`, 0.125);
    for (let turn = 0; turn < 70; turn++) await loop.next();
    expect(loop.done.length).toBe(1_000);
    expect(Math.max(...loop.turns)).toBeLessThanOrEqual(2);
  });

  it("one that comes later does not overtake those that wait", async () => {
    const loop = new Loop();
    for (const name of ["a", "b", "c"]) loop.arrive(name, 4);
    await loop.next();
    loop.arrive("d", 1);
    for (let turn = 0; turn < 4; turn++) await loop.next();
    expect(loop.done).toEqual(["a", "b", "c", "d"]);
    expect(loop.share.waiting).toBe(0);
  });

  it("keeps nothing of those that have gone on, also where somebody always waits", async () => {
    const loop = new Loop();
    for (let n = 0; n < 100; n++) loop.arrive(`r${n}`, 4);
    for (let turn = 0; turn < 2_000; turn++) {
      loop.arrive("one more", 4);
      await loop.next();
    }
    expect(loop.share.waiting).toBeGreaterThan(50);
    expect(loop.share.kept).toBeLessThanOrEqual(2 * loop.share.waiting + 1);
  });
});
