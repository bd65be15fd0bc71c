import { describe, expect, test } from "vitest";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import { CRASH_MODES, TestDisk } from "../../src/engine/test-disk.ts";
import { expectHistory, expectIntact, fetchAll, filled, logBehind, open, sealedEvents } from "./test-archive.ts";
import type { Archive } from "../../src/logs/archive/index.ts";
import { wholeOf } from "../../src/core/kit/pieces.ts";

// A node after a crash: its snapshot, its archive and the log after the snapshot, replayed. The other nodes have
// everything. `told` is what the node knew to be durable before it crashed.

const events = sealedEvents(8, "c", 1);
const LAST = 8;
const limits = { eventsMax: 3, bytesMax: 100_000, blockBytesMax: 600 };
const start = (disk: TestDisk): ReturnType<typeof open> => open(disk, { limits });
const fill = (disk: TestDisk, count = LAST): ReturnType<typeof open> =>
  filled(disk, events.slice(0, count), { limits });

interface World {
  readonly disk: TestDisk;
  readonly peer: Archive;
  /** The newest snapshot that this node has marked. */
  snapshot: Uint8Array | null;
  told: number;
}

interface Scenario {
  readonly name: string;
  readonly before?: (world: World) => Promise<void>;
  readonly run: (world: World) => Promise<void>;
  readonly firstSequence?: number;
}

async function appendAll(world: World, archive: Archive, step: number): Promise<void> {
  for (let at = archive.lastSequence; at < events.length; at += step) {
    archive.append(events.slice(at, at + step));
    await archive.durable(archive.lastSequence);
    world.told = archive.durableThrough;
  }
}

const scenarios: Scenario[] = [
  {
    name: "while events are appended one by one and segments are sealed",
    run: async (world) => appendAll(world, (await start(world.disk)).archive, 1),
  },
  {
    name: "while batches go across several segments",
    run: async (world) => appendAll(world, (await start(world.disk)).archive, 4),
  },
  {
    name: "while snapshots are captured in between",
    run: async (world) => {
      const { archive } = await start(world.disk);
      for (let at = 0; at < events.length; at += 2) {
        archive.append(events.slice(at, at + 2));
        world.snapshot = wholeOf(await archive.capture());
        world.told = archive.durableThrough;
      }
    },
  },
  {
    name: "while an empty node takes over a snapshot and fetches what it lacks",
    run: async (world) => {
      world.snapshot = wholeOf(await world.peer.capture());
      const { archive } = await start(world.disk);
      await archive.restore(world.snapshot);
      await fetchAll(archive, world.peer);
    },
  },
  {
    name: "while a slow node takes over a snapshot and fetches what it lacks",
    before: async ({ disk }) => void (await fill(disk, 5)),
    run: async (world) => {
      world.snapshot = wholeOf(await world.peer.capture());
      const { archive } = await start(world.disk);
      await archive.restore(world.snapshot);
      await fetchAll(archive, world.peer);
    },
  },
  {
    name: "while damage is set aside and mended",
    before: async (world) => {
      const { archive } = await fill(world.disk);
      world.snapshot = wholeOf(await archive.capture());
      world.disk.bytesOf("events-0000000000000004")[400]! ^= 1;
    },
    run: async (world) => {
      const { archive } = await start(world.disk);
      for await (const step of archive.verify()) void step;
      await fetchAll(archive, world.peer);
    },
  },
  {
    name: "while a start takes back what was set aside and is whole",
    before: async (world) => {
      const { archive } = await fill(world.disk);
      world.snapshot = wholeOf(await archive.capture());
      world.told = LAST;
      await archive.close();
      for (const name of ["events-0000000000000001", "events-0000000000000004"]) {
        world.disk.put(`damaged-${name}`, world.disk.bytesOf(name).slice());
        world.disk.drop(name);
      }
    },
    run: async (world) => {
      const { archive } = await start(world.disk);
      expect(archive.isComplete).toBe(true);
    },
  },
  {
    name: "while history is cut behind a checkpoint",
    before: async (world) => {
      const { archive } = await fill(world.disk);
      world.snapshot = wholeOf(await archive.capture());
      world.told = LAST;
    },
    run: async (world) => {
      const { archive } = await start(world.disk);
      await archive.retain(await archive.pointAt(7));
    },
    firstSequence: 7,
  },
];

/** Starts the node again, and again as far as the next crash; then the rest of its life without one. */
async function checkAfterCrash(world: World, firstSequence: number, random: Random): Promise<void> {
  const { disk, peer, snapshot } = world;
  disk.crashAt(1 + random.below(20));
  await live(disk, snapshot, peer).catch(() => undefined);
  disk.restart("random", random);
  const { archive, findings } = await start(disk);
  // All that was durable is here, with a snapshot or without, but for what had been missing.
  expect(findings.filter(({ kind }) => kind === "damaged" && world.told > 0)).toEqual([]);
  expect(archive.lastSequence).toBeGreaterThanOrEqual(world.told);
  await archive.close();
  const node = await live(disk, snapshot, peer);
  const from = node.stats().startSequence + 1;
  expect([1, firstSequence]).toContain(from);
  await expectHistory(node, events, from);
  await expectIntact(node, LAST + 1 - from);
  await node.close();
}

async function live(disk: TestDisk, snapshot: Uint8Array | null, peer: Archive): Promise<Archive> {
  const { archive } = await start(disk);
  if (snapshot !== null) await archive.restore(snapshot);
  archive.append(logBehind(snapshot, events));
  await archive.durable(LAST);
  for await (const step of archive.verify()) void step;
  await fetchAll(archive, peer);
  return archive;
}

describe("a crash in each disk call", () => {
  test.each(scenarios)("$name", async ({ before, run, firstSequence }) => {
    const { archive: peer } = await fill(new TestDisk());
    let crashes = 0;
    for (const mode of CRASH_MODES) {
      for (let seed = 0; seed < (mode === "random" ? 6 : 1); seed++) {
        for (let call = 1; ; call++) {
          const random = seededRandom(`${mode}/${seed}/${call}`);
          const world: World = { disk: new TestDisk(), peer, snapshot: null, told: 0 };
          await before?.(world);
          world.disk.crashAt(call);
          const outcome = await run(world).then(
            () => "done",
            () => "crashed",
          );
          if (outcome === "done") break;
          crashes++;
          world.disk.restart(mode, random);
          await checkAfterCrash(world, firstSequence ?? 1, random);
        }
      }
    }
    expect(crashes).toBeGreaterThan(60);
  });
});
