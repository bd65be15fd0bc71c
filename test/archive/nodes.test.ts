import { describe, expect, test } from "vitest";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import { CRASH_MODES, TestDisk } from "../../src/engine/test-disk.ts";
import type { Archive } from "../../src/logs/archive/index.ts";
import { expectHistory, expectIntact, logBehind, open, sealedEvents } from "./test-archive.ts";
import { wholeOf } from "../../src/core/kit/pieces.ts";

// Three nodes that apply one log. They crash, lose power, rot, are overtaken by snapshots and are wiped, one after the
// other; a node is wiped only while both others are complete, which is what an operator must see to.

const events = sealedEvents(40, "c", 1);
const limits = { eventsMax: 4, bytesMax: 100_000, blockBytesMax: 600 };

interface Node {
  disk: TestDisk;
  archive: Archive;
  /** As its Raft log has it: the newest snapshot, and entries from there on. */
  snapshot: Uint8Array | null;
  applied: number;
}

async function started(disk: TestDisk, snapshot: Uint8Array | null, applied: number): Promise<Node> {
  const { archive } = await open(disk, { limits });
  if (snapshot !== null) await archive.restore(snapshot);
  archive.append(logBehind(snapshot, events, applied));
  return { disk, archive, snapshot, applied };
}

async function complete(node: Node, others: readonly Node[], random: Random): Promise<void> {
  for await (const step of node.archive.verify()) void step;
  for (const entry of node.archive.missing()) {
    // Not every peer has it.
    for (const { archive } of random.chance(0.5) ? others : others.toReversed()) {
      const bytes = await archive.serve(entry.first, 0, entry.sizeBytes);
      if (bytes === null) continue;
      await node.archive.install(bytes, entry);
      break;
    }
  }
}

const deeds: Record<string, (node: Node, others: readonly [Node, Node], random: Random) => Promise<Node>> = {
  apply: async (node, others, random) => {
    const ahead = Math.max(node.applied, ...others.map(({ applied }) => applied));
    node.applied = Math.min(events.length, ahead, node.applied + 1 + random.below(9));
    if (node.applied === ahead) node.applied = Math.min(events.length, ahead + random.below(4));
    node.archive.append(logBehind(node.snapshot, events, node.applied));
    return node;
  },
  snapshot: async (node) => ({ ...node, snapshot: wholeOf(await node.archive.capture()) }),
  overtake: async (node, [leader]) => {
    if (leader.applied <= node.applied) return node;
    const snapshot = wholeOf(await leader.archive.capture());
    await node.archive.restore(snapshot);
    return { ...node, snapshot, applied: leader.applied };
  },
  crash: async (node, _others, random) => {
    node.disk.crashAt(1 + random.below(12));
    await node.archive.durable(node.archive.lastSequence).catch(() => undefined);
    await node.archive.capture().catch(() => undefined);
    node.disk.restart(random.pick(CRASH_MODES), random);
    return started(node.disk, node.snapshot, node.applied);
  },
  rot: async (node, others, random) => {
    await node.archive.durable(node.archive.lastSequence);
    const segments = node.archive
      .manifest()
      .segments.filter(({ first }) => node.disk.names().includes(`events-${String(first).padStart(16, "0")}`));
    if (segments.length === 0 || !others.every(({ archive }) => archive.isComplete)) return node;
    const bytes = node.disk.bytesOf(`events-${String(random.pick(segments).first).padStart(16, "0")}`);
    bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
    await complete(node, others, random);
    return node;
  },
  wipe: async (node, others, random) => {
    for (const other of others) await complete(other, [others[0], others[1], node], random);
    if (!others.every(({ archive }) => archive.isComplete)) return node;
    const [leader] = others;
    leader.snapshot = wholeOf(await leader.archive.capture());
    return started(new TestDisk(), leader.snapshot, Math.max(leader.applied, 0));
  },
};

describe("three nodes", () => {
  test("serve the same bytes from the first event to the last at the end, whatever happens to them in turn", async () => {
    const done: Record<string, number> = {};
    for (let seed = 0; seed < 60; seed++) {
      const random = seededRandom(`nodes/${seed}`);
      const nodes: Node[] = [];
      for (let i = 0; i < 3; i++) nodes.push(await started(new TestDisk(), null, 0));
      for (let step = 0; step < 30; step++) {
        const at = random.below(3);
        const name = random.pick(["apply", "apply", "apply", ...Object.keys(deeds)]);
        const others: [Node, Node] = [nodes[(at + 1) % 3]!, nodes[(at + 2) % 3]!];
        nodes[at] = await deeds[name]!(nodes[at]!, others, random);
        done[name] = (done[name] ?? 0) + 1;
      }
      for (const node of nodes) node.archive.append(logBehind(node.snapshot, events));
      for (let round = 0; round < 2; round++) for (const node of nodes) await complete(node, nodes, random);
      const files = nodes.map(({ disk }) => disk.names().filter((name) => name.startsWith("events-0")));
      for (const { archive, disk } of nodes) {
        await expectHistory(archive, events);
        await expectIntact(archive, events.length);
        await archive.close();
        expect(disk.names().filter((name) => name.startsWith("events-0"))).toEqual(files[0]);
        for (const name of files[0]!) {
          expect(Buffer.compare(disk.bytesOf(name), nodes[0]!.disk.bytesOf(name)), `${seed}: ${name}`).toBe(0);
        }
      }
    }
    for (const name of Object.keys(deeds)) expect(done[name], name).toBeGreaterThan(50);
  });
});
