import { describe, expect, it } from "vitest";
import { type PeerKey, peerKey } from "../../core/kit/ids.ts";
import type { Wire } from "../../ports/peers/wire.ts";
import type { LinkModel } from "./link.ts";
import { World } from "./world.ts";

/** Nodes that only listen; `seen(node)` is what they were told since the last call. */
function listeners(nodes: string[], link: Partial<LinkModel> = {}, seed: number | string = 1) {
  const notes = new Map<string, string[]>();
  const wires = new Map<string, Wire>();
  const incarnations = new Map<string, string>();
  const note = (node: string, line: string): void => void notes.set(node, [...(notes.get(node) ?? []), line]);
  const world = new World({
    seed,
    nodes,
    link,
    start: (boot) => {
      const wire = boot.wire(peerKey(boot.node, incarnations.get(boot.node) ?? "a"));
      wires.set(boot.node, wire);
      wire.start({
        message: (from, bytes) => note(boot.node, `${from}:${[...bytes].join(",")}`),
        peerSeen: (peer) => note(boot.node, `seen ${peer}`),
        peerGone: (peer) => note(boot.node, `gone ${peer}`),
      });
    },
  });
  const seen = (node: string): string[] => {
    const lines = notes.get(node) ?? [];
    notes.delete(node);
    return lines;
  };
  const send = (from: string, to: string, ...bytes: number[]): void =>
    wires.get(from)?.send((to.includes("@") ? to : `${to}@a`) as PeerKey, Uint8Array.from(bytes));
  const settle = async (): Promise<void> => {
    await world.runFor(200);
    for (const node of nodes) seen(node);
  };
  return { world, network: world.network, seen, send, settle, incarnations, wires };
}

async function connected(nodes = ["n1", "n2"], link: Partial<LinkModel> = {}) {
  const made = listeners(nodes, link);
  made.world.startAll();
  await made.settle();
  return made;
}

describe("connections", () => {
  it("tell both ends peerSeen once both listen and the link is open", async () => {
    const { world, network, seen } = listeners(["n1", "n2"]);
    world.start("n1");
    await world.runFor(100);
    expect(seen("n1")).toEqual([]);
    network.cutOneWay("n2", "n1");
    world.start("n2");
    await world.runFor(100);
    expect(seen("n1")).toEqual([]);
    network.heal("n1", "n2");
    await world.runFor(100);
    expect([seen("n1"), seen("n2")]).toEqual([["seen n2@a"], ["seen n1@a"]]);
  });

  it("wait for a paused process, whose kernel accepts but which does not shake hands", async () => {
    const { world, seen } = listeners(["n1", "n2"]);
    world.startAll();
    await world.run(() => world.node("n2").process.state === "running");
    world.pause("n2");
    await world.runFor(100);
    expect(seen("n1")).toEqual([]);
    world.resume("n2");
    await world.runFor(100);
    expect([seen("n1"), seen("n2")]).toEqual([["seen n2@a"], ["seen n1@a"]]);
  });

  it("tell each reachable peer peerGone after a crash, with the key that died, and peerSeen after the restart", async () => {
    const { world, network, seen, incarnations } = await connected(["n1", "n2", "n3"]);
    network.partition([["n1"], ["n3"]]);
    incarnations.set("n1", "b");
    world.crash("n1");
    await world.runFor(100);
    expect([seen("n2"), seen("n3")]).toEqual([["gone n1@a"], []]);
    world.start("n1");
    await world.runFor(100);
    expect([seen("n2"), seen("n3")]).toEqual([["seen n1@b"], []]);
  });

  it("tell of a crash behind a cut when the cut heals, unless the process is back by then", async () => {
    for (const [restart, told] of [
      [false, "gone n1@a"],
      [true, "seen n1@a"],
    ] as const) {
      const { world, network, seen } = await connected();
      network.cutOneWay("n1", "n2");
      world.crash("n1");
      if (restart) world.start("n1");
      await world.runFor(100);
      expect(seen("n2")).toEqual([]);
      network.heal();
      await world.runFor(100);
      expect(seen("n2")).toEqual([told]);
    }
  });

  it("tell nothing when the machine lost its power, or when a process is only paused", async () => {
    const { world, seen } = await connected(["n1", "n2", "n3"]);
    world.crash("n1", { silent: true });
    world.pause("n2");
    await world.runFor(1_000);
    expect(seen("n3")).toEqual([]);
  });

  it("reset with an accepted re-dial: peerSeen again, what was under way is lost", async () => {
    const { world, network, seen, send } = await connected();
    send("n1", "n2", 1);
    expect(network.reset("n1", "n2", "accepted")).toBe(true);
    await world.runFor(100);
    expect([seen("n1"), seen("n2")]).toEqual([["seen n2@a"], ["seen n1@a"]]);
    expect(network.counts.reset).toBe(1);
  });

  it("reset with a refused re-dial: peerGone of a living peer at the dialler, later peerSeen on both", async () => {
    for (const [a, b] of [
      ["n1", "n2"],
      ["n2", "n1"],
    ] as const) {
      const { world, network, seen } = await connected();
      expect(network.reset(a, b, "refused")).toBe(true);
      await world.runFor(200);
      expect([seen(a), seen(b)]).toEqual([[`gone ${b}@a`, `seen ${b}@a`], [`seen ${a}@a`]]);
    }
  });

  it("are not reset where there is none", async () => {
    const { world, network } = await connected();
    world.crash("n2");
    expect(network.reset("n1", "n2", "refused")).toBe(false);
  });
});

describe("messages", () => {
  it("arrive in order on an in-order link, and overtake each other on one that is not", async () => {
    for (const inOrder of [true, false]) {
      const { world, network, seen, send } = await connected(["n1", "n2"], { inOrder, latencyTailMs: 5 });
      for (let i = 0; i < 50; i++) send("n1", "n2", i);
      await world.runFor(200);
      const arrived = seen("n2").map((line) => Number(line.split(":")[1]));
      expect(arrived).toHaveLength(50);
      expect(arrived.every((value, i) => value === i)).toBe(inOrder);
      expect(network.counts.reordered > 0).toBe(!inOrder);
    }
  });

  it("are lost and doubled at the given rates, each copy counted", async () => {
    const { world, network, seen, send } = await connected(["n1", "n2"], { lossRate: 0.3, duplicateRate: 0.5 });
    for (let i = 0; i < 2_000; i++) send("n1", "n2", 1);
    await world.runFor(1_000);
    const { sent, lost, duplicated, delivered } = network.counts;
    expect(lost / sent).toBeCloseTo(0.3, 1);
    expect(duplicated / (sent - lost)).toBeCloseTo(0.5, 1);
    expect(delivered).toBe(sent - lost + duplicated);
    expect(seen("n2")).toHaveLength(delivered);
  });

  it("do not pass a cut, one way or both, at sending or at arrival", async () => {
    const { world, network, seen, send } = await connected();
    network.cutOneWay("n1", "n2");
    send("n1", "n2", 1);
    send("n2", "n1", 2);
    await world.runFor(100);
    expect([seen("n1"), seen("n2")]).toEqual([["n2@a:2"], []]);
    send("n2", "n1", 3);
    network.cutOneWay("n2", "n1");
    await world.runFor(100);
    expect(seen("n1")).toEqual([]);
    expect(network.counts.cut).toBe(2);
  });

  it("pass a bridge, which sees both halves that don't see each other", async () => {
    const nodes = ["n1", "n2", "n3"];
    const { world, network, seen, send } = await connected(nodes);
    network.partition([["n1"], ["n3"]]);
    for (const from of nodes) for (const to of nodes) if (from !== to) send(from, to, 1);
    await world.runFor(100);
    expect(seen("n1")).toEqual(["n2@a:1"]);
    expect(seen("n2").toSorted()).toEqual(["n1@a:1", "n3@a:1"]);
    expect(seen("n3")).toEqual(["n2@a:1"]);
  });

  it("are dropped beyond the bytes that a link queues, and wait for its bandwidth", async () => {
    const { world, network, seen, send } = await connected(["n1", "n2"], { bytesPerMs: 1, queueBytesMax: 10 });
    const startMs = world.nowMs;
    for (let i = 0; i < 20; i++) send("n1", "n2", i);
    expect(network.counts.overflowed).toBe(10);
    await world.run(() => network.counts.delivered === 10, { untilMs: startMs + 100 });
    expect(world.nowMs - startMs).toBeGreaterThanOrEqual(10);
    expect(seen("n2")).toHaveLength(10);
  });

  it("reach the node although they were meant for another disk of it, with the sender's key", async () => {
    const { world, seen, send } = await connected();
    send("n1", "n2@ff", 5);
    send("n1", "n9@a", 5);
    await world.runFor(10);
    expect(seen("n2")).toEqual(["n1@a:5"]);
    expect(world.network.counts.unroutable).toBe(1);
  });

  it("are copied at the sender, injected ones too", async () => {
    const { world, network, seen, wires } = await connected();
    const bytes = Uint8Array.of(1);
    wires.get("n1")?.send("n2@a" as PeerKey, bytes);
    network.inject("n2", "n1@b" as PeerKey, bytes);
    bytes[0] = 2;
    await world.runFor(10);
    expect(seen("n2").toSorted()).toEqual(["n1@a:1", "n1@b:1"]);
  });

  it("of a sender that died meanwhile still arrive; those to a dead receiver are refused", async () => {
    const { world, network, seen, send } = await connected();
    send("n1", "n2", 1);
    send("n2", "n1", 2);
    world.crash("n1");
    await world.runFor(10);
    expect(seen("n2")).toContain("n1@a:1");
    expect(network.counts.refused).toBe(1);
  });

  it("under way at a restart of the receiver reach its next life sometimes", async () => {
    const { world, network, send } = await connected(["n1", "n2"], { acrossLivesRate: 0.5, latencyMinMs: 5 });
    for (let i = 0; i < 100; i++) send("n1", "n2", i);
    world.crash("n2");
    world.start("n2");
    await world.runFor(100);
    expect(network.counts.acrossLives).toBeGreaterThan(20);
    expect(network.counts.acrossLives + network.counts.expired).toBe(100);
  });

  it("are held while the receiver is paused, and come in order at resume", async () => {
    const { world, seen, send } = await connected();
    world.pause("n2");
    for (let i = 0; i < 5; i++) send("n1", "n2", i);
    await world.runFor(100);
    expect(seen("n2")).toEqual([]);
    world.resume("n2");
    await world.runFor(10);
    expect(seen("n2")).toEqual([0, 1, 2, 3, 4].map((i) => `n1@a:${i}`));
  });

  it("are damaged at the given rate, by the hook where there is one, and shown to onSend as they were", async () => {
    const { world, network, seen, send } = await connected(["n1", "n2"], { corruptRate: 1 });
    const sent: number[] = [];
    network.hooks = { onSend: (_from, _to, bytes) => sent.push(...bytes), corrupt: () => Uint8Array.of(66) };
    send("n1", "n2", 1, 2);
    network.hooks = {};
    send("n1", "n2", 1, 2);
    await world.runFor(10);
    const lines = seen("n2");
    expect(sent).toEqual([1, 2]);
    expect(lines[0]).toBe("n1@a:66");
    expect(lines[1]).not.toBe("n1@a:1,2");
    expect(network.counts.corrupted).toBe(2);
  });
});
