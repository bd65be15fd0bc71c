import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { EventHeap, HeapEvent } from "./event-heap.ts";
import { Scheduler } from "./scheduler.ts";

function scheduler(seed: number | string = 1): Scheduler {
  return new Scheduler(seededRandom(seed));
}

describe("scheduler", () => {
  it("fires in order of time, and within an owner in order of scheduling", async () => {
    const world = scheduler();
    const owner = world.owner("x");
    const fired: string[] = [];
    for (const [atMs, name] of [
      [5, "c"],
      [1, "a"],
      [5, "d"],
      [2.5, "b"],
    ] as const) {
      world.schedule(atMs, owner, () => fired.push(name));
    }
    expect(await world.run(10)).toBe("time");
    expect(fired).toEqual(["a", "b", "c", "d"]);
    expect(world.nowMs).toBe(10);
  });

  it("breaks ties between owners by seed and name, not by order of construction", async () => {
    const order = async (seed: number, names: string[]): Promise<string> => {
      const world = scheduler(seed);
      const fired: string[] = [];
      for (const name of names) world.schedule(1, world.owner(name), () => fired.push(name));
      await world.run(1);
      return fired.join("") + world.hash();
    };
    for (let seed = 0; seed < 20; seed++) {
      expect(await order(seed, ["a", "b", "c", "d"])).toBe(await order(seed, ["d", "b", "a", "c"]));
    }
    const orders = new Set(
      await Promise.all(
        [...Array(20).keys()].map((seed) => order(seed, ["a", "b", "c"]).then((text) => text.slice(0, 3))),
      ),
    );
    expect(orders.size).toBeGreaterThan(2);
  });

  it("drains microtasks completely before time moves, however long the chain of promises", async () => {
    const world = scheduler();
    const owner = world.owner("x");
    const seen: string[] = [];
    world.schedule(1, owner, () => {
      void (async () => {
        for (let hop = 0; hop < 5_000; hop++) await Promise.resolve();
        seen.push(`chain done at ${world.nowMs}`);
      })();
    });
    world.schedule(2, owner, () => seen.push(`next event at ${world.nowMs}`));
    await world.run(3);
    expect(seen).toEqual(["chain done at 1", "next event at 2"]);
  });

  it("asks the predicate after each event, when its promises have run", async () => {
    const world = scheduler();
    let done = false;
    world.schedule(1, world.owner("x"), () => void Promise.resolve().then(() => (done = true)));
    world.schedule(2, world.owner("x"), () => expect.unreachable());
    expect(await world.run(() => done)).toBe("predicate");
    expect(world.nowMs).toBe(1);
  });

  it("ends when nothing is left, at the step limit, and when halted", async () => {
    const world = scheduler();
    const again = (): void => void world.schedule(world.nowMs + 1, world.owner("x"), again);
    expect(await world.run(() => false)).toBe("empty");
    again();
    expect(await world.run(() => false, { stepsMax: 3 })).toBe("steps");
    expect(world.steps).toBe(3);
    world.schedule(world.nowMs, world.owner("y"), () => world.halt());
    expect(await world.run(() => false)).toBe("halted");
  });

  it("does not fire what was cancelled, also past the sweep of dead events", async () => {
    const world = scheduler();
    let fired = 0;
    const events = [...Array(5_000).keys()].map((i) => world.schedule(i % 97, world.owner(`o${i % 7}`), () => fired++));
    for (const [i, event] of events.entries()) if (i % 10 !== 0) event.cancel();
    expect(world.pending).toBe(500);
    await world.run(100);
    expect(fired).toBe(500);
  });

  it("rejects the run when an event outside of any process throws", async () => {
    const world = scheduler();
    world.schedule(1, world.owner("x"), () => {
      throw new Error("oracle");
    });
    await expect(world.run(2)).rejects.toThrow("oracle");
    expect(await world.run(3)).toBe("time");
  });

  it("orders its heap as sorting does", () => {
    const random = seededRandom("heap");
    const heap = new EventHeap();
    const owner = { name: "x", rank: 1, sequence: 0 };
    const events = [...Array(500)].map(() => new HeapEvent(heap, random.below(50), owner, () => undefined));
    for (const event of events) heap.push(event);
    const popped = events.map(() => heap.pop());
    expect(popped).toEqual(events.toSorted((a, b) => a.atMs - b.atMs || a.sequence - b.sequence));
  });

  it("runs at least 300,000 bare events per second", async () => {
    const world = scheduler();
    for (const name of ["a", "b", "c", "d", "e"]) {
      const owner = world.owner(name);
      const tick = (): void => void world.schedule(world.nowMs + 1 + (owner.rank % 7), owner, tick);
      tick();
    }
    await world.run(() => false, { stepsMax: 20_000 });
    const startMs = performance.now();
    await world.run(() => false, { stepsMax: 300_000 });
    const perSecond = 300_000 / ((performance.now() - startMs) / 1_000);
    // oxlint-disable-next-line no-console -- the figure is what this test is for
    console.log(`bare events: ${Math.round(perSecond / 1_000)}k/s`);
    // Thirteen times slower than measured on two cores: fails for a reason, not for a busy machine.
    expect(perSecond).toBeGreaterThan(300_000);
  });
});
