import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { apply, type Fault } from "./faults.ts";
import { Injector } from "./injector.ts";
import { DRAWN_KINDS, randomPlan } from "./plan.ts";
import { shrink } from "./shrink.ts";
import { type Diary, toy } from "./test-toy.ts";
import { type Boot, World } from "./world.ts";

const NODES = ["n1", "n2", "n3", "n4", "n5"];

interface Knobs {
  nodes?: string[];
  start?: (boot: Boot) => void;
  plan?: readonly Fault[];
  forMs?: number;
}

async function live(seed: number | string, knobs: Knobs = {}) {
  const world = new World({
    seed,
    nodes: knobs.nodes ?? NODES,
    start: knobs.start ?? toy(),
    link: { inOrder: false },
    restartAfterExitMs: 50,
  });
  const injector = new Injector<Fault>(world.scheduler, (fault, hit) => apply(world, fault, { hit }));
  injector.schedule(
    knobs.plan ?? randomPlan(seededRandom(seed), { nodes: NODES, fromMs: 100, untilMs: 3_000, count: 40 }),
  );
  world.startAll();
  await world.run(knobs.forMs ?? 3_000);
  return { world, injector };
}

describe("world", () => {
  it("gives the same hash for the same seed, and another one for another seed", async () => {
    const hashes = new Set<string>();
    for (let seed = 0; seed < 8; seed++) {
      const [first, second] = [await live(seed), await live(seed)];
      expect(second.world.hash()).toBe(first.world.hash());
      expect(second.world.counts()).toEqual(first.world.counts());
      expect(first.world.findings).toEqual([]);
      expect(first.world.counts().network["delivered"]).toBeGreaterThan(1_000);
      hashes.add(first.world.hash());
    }
    expect(hashes.size).toBe(8);
  });

  it("gives the same hash when two worlds run interleaved in one process", async () => {
    const alone = await live("interleaved");
    const [first, other] = await Promise.all([live("interleaved"), live("other")]);
    expect(first.world.hash()).toBe(alone.world.hash());
    expect(other.world.hash()).not.toBe(alone.world.hash());
  });

  it("does not depend on the order in which nodes are listed", async () => {
    for (let seed = 0; seed < 5; seed++) {
      const straight = await live(seed);
      for (const nodes of [NODES.toReversed(), ["n3", "n1", "n5", "n2", "n4"]]) {
        expect((await live(seed, { nodes })).world.hash()).toBe(straight.world.hash());
      }
    }
  });

  it("shows a planted Math.random in a process by its hash", async () => {
    const leaky = (boot: Boot): void =>
      toy()({ ...boot, random: { ...boot.random, between: () => 0.5 + Math.random(), chance: () => false } });
    expect((await live(1, { start: leaky })).world.hash()).not.toBe((await live(1, { start: leaky })).world.hash());
  });

  it("converges after calm: everybody runs and hears everybody", async () => {
    for (let seed = 0; seed < 5; seed++) {
      const heard = new Set<string>();
      const diary: Diary = (node, line) => void heard.add(`${node} ${line.split(" ").slice(0, 2).join(" ")}`);
      const { world } = await live(seed, { start: toy(diary) });
      world.calm();
      await world.runFor(200);
      heard.clear();
      await world.runFor(200);
      for (const to of NODES)
        for (const from of NODES) if (from !== to) expect(heard).toContain(`${to} message ${from}@a`);
    }
  });

  it("writes a readable trace for who asks, which does not change the hash", async () => {
    const lines: string[] = [];
    const options = { seed: 1, nodes: ["n1", "n2"], start: toy() };
    const hashes: string[] = [];
    for (const trace of [
      undefined,
      (_atMs: number, owner: string, text: string) => void lines.push(`${owner}: ${text}`),
    ]) {
      const world = new World({ ...options, trace });
      world.startAll();
      await world.run(100);
      hashes.push(world.hash());
    }
    expect(hashes[0]).toBe(hashes[1]);
    expect(lines).toContain("n1: start (life 1)");
    expect(lines).toContain("net: n1@a = n2@a connected");
  });

  it("carries a machine that joins in the middle", async () => {
    const heard: string[] = [];
    const world = new World({ seed: 1, nodes: ["n1"], start: toy((node, line) => void heard.push(`${node} ${line}`)) });
    world.startAll();
    await world.run(50);
    world.addNode("n2");
    world.start("n2");
    await world.run(100);
    expect(heard).toContain("n1 seen n2@a");
  });
});

describe("faults", () => {
  it("of every kind fire in some run", async () => {
    const fired = new Map<string, number>();
    for (let seed = 0; seed < 12; seed++) {
      const { injector } = await live(seed);
      for (const [kind, count] of Object.entries(injector.counts)) {
        expect(count.fired).toBeLessThanOrEqual(count.scheduled);
        fired.set(kind, (fired.get(kind) ?? 0) + count.fired);
      }
    }
    expect(DRAWN_KINDS.filter((kind) => (fired.get(kind) ?? 0) === 0)).toEqual([]);
  });

  it("that met nothing are scheduled, not fired (trap 33)", async () => {
    const plan: Fault[] = [
      { atMs: 10, kind: "restart", node: "n1" },
      { atMs: 10, kind: "resume", node: "n1" },
      { atMs: 10, kind: "heal" },
      { atMs: 20, kind: "crash", node: "n2", silent: true },
      { atMs: 30, kind: "disk-fsync-error", node: "n2" },
      { atMs: 30, kind: "disk-full", node: "n2" },
      { atMs: 30, kind: "pause", node: "n2" },
      { atMs: 30, kind: "reset-refused", a: "n1", b: "n2" },
      { atMs: 30, kind: "garbage", node: "n2", from: "n1@0", sizeBytes: 5 },
      { atMs: 900, kind: "cut", a: "n1", b: "n2", forMs: 0 },
    ];
    const { injector } = await live(1, { nodes: ["n1", "n2"], plan, forMs: 1_000 });
    expect(injector.unfired()).toEqual(
      plan
        .map(({ kind }) => kind)
        .filter((kind) => kind !== "crash")
        .toSorted(),
    );
    expect(injector.counts["crash"]).toEqual({ scheduled: 1, fired: 1 });
  });

  it("that last for a time end by themselves, and leave what another fault made", async () => {
    const plan: Fault[] = [
      { atMs: 100, kind: "cut-one-way", from: "n1", to: "n2" },
      { atMs: 110, kind: "partition", groups: [["n1"], ["n2"]], forMs: 50 },
      { atMs: 110, kind: "lossy", rate: 0.3, forMs: 50 },
      { atMs: 120, kind: "duplicating", rate: 0.5, forMs: 500 },
      { atMs: 110, kind: "clock-rate", node: "n1", rate: 1.2, forMs: 50 },
    ];
    const { world } = await live(1, { nodes: ["n1", "n2"], plan, forMs: 200 });
    const link = world.network.link("n1", "n2");
    expect([link.cut, world.network.link("n2", "n1").cut]).toEqual([true, false]);
    expect([link.model.lossRate, link.model.duplicateRate]).toEqual([0, 0.5]);
    expect(world.node("n1").process.machine.rate).toBe(1);
  });

  it("that flap toggle their link and leave it open, at once when healed", async () => {
    for (const healAtMs of [400, 150]) {
      const plan: Fault[] = [
        { atMs: 100, kind: "flap", a: "n1", b: "n2", periodMs: 20, forMs: 200 },
        { atMs: healAtMs, kind: "heal" },
      ];
      const seen: number[] = [];
      const { world } = await live(1, { nodes: ["n1", "n2"], plan, forMs: 99 });
      while (world.nowMs < 500) {
        await world.runFor(10);
        if (!world.network.link("n1", "n2").open) seen.push(world.nowMs);
      }
      expect(seen.length).toBeGreaterThan(1);
      expect(Math.max(...seen)).toBeLessThan(Math.min(healAtMs, 300));
      expect(world.network.counts.peerSeen).toBeGreaterThan(2);
    }
  });

  it("make the same plan from the same stream, sorted, inside the window", () => {
    const options = { nodes: NODES, fromMs: 100, untilMs: 5_000, count: 200 };
    const plan = randomPlan(seededRandom(7), options);
    expect(plan).toEqual(randomPlan(seededRandom(7), { ...options, nodes: NODES.toReversed() }));
    expect(plan.every((fault, i) => fault.atMs >= (plan[i - 1]?.atMs ?? 100) && fault.atMs < 5_000)).toBe(true);
    expect(new Set(plan.map(({ kind }) => kind))).toEqual(new Set(DRAWN_KINDS));
    const crashes = randomPlan(seededRandom(7), { ...options, weights: { crash: 1 } });
    expect(new Set(crashes.map(({ kind }) => kind))).toEqual(new Set(["crash"]));
  });
});

describe("shrink", () => {
  it("finds the minimal plan", async () => {
    const needed = [13, 57, 58];
    const all = [...Array(100).keys()];
    const fails = (plan: readonly number[]): Promise<boolean> =>
      Promise.resolve(needed.every((item) => plan.includes(item)));
    expect(await shrink(all, fails, 1_000)).toMatchObject({ plan: needed, minimal: true });
    const short = await shrink(all, fails, 5);
    expect(short).toMatchObject({ tries: 5, minimal: false });
    expect(await fails(short.plan)).toBe(true);
    expect((await shrink(all, () => Promise.resolve(true), 1_000)).plan).toEqual([]);
  });

  it("finds the two faults of a run that break a process together", async () => {
    const breaks = async (plan: readonly Fault[]): Promise<boolean> => {
      const { world } = await live(3, { plan, forMs: 3_000 });
      const { lives, machine } = world.node("n1").process;
      return lives > 1 && Math.abs(machine.wallMs() - world.node("n2").process.machine.wallMs()) > 100_000;
    };
    const noise = randomPlan(seededRandom(3), { nodes: ["n3", "n4", "n5"], fromMs: 100, untilMs: 2_900, count: 30 });
    const culprits: Fault[] = [
      { atMs: 500, kind: "wall-jump", node: "n1", byMs: 10_000_000 },
      { atMs: 1_500, kind: "crash", node: "n1", restartAfterMs: 100 },
    ];
    const plan = [...noise, ...culprits].sort((a, b) => a.atMs - b.atMs);
    expect(await breaks(plan)).toBe(true);
    expect((await shrink(plan, breaks, 60)).plan).toEqual(culprits);
  });
});

describe("speed", () => {
  it("prints the events per second of five nodes that use every port", async () => {
    const world = new World({ seed: 1, nodes: NODES, start: toy() });
    world.startAll();
    const startMs = performance.now();
    await world.run(20_000);
    const seconds = (performance.now() - startMs) / 1_000;
    // oxlint-disable-next-line no-console -- the figure is what this test is for
    console.log(
      `five nodes: ${Math.round(world.scheduler.steps / seconds / 1_000)}k events/s, ${Math.round(20 / seconds)} × real time`,
    );
    expect(world.scheduler.steps).toBeGreaterThan(20_000);
  });
});
