import { describe, expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { TestDisk } from "../../engine/test-disk.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import type { Logger } from "../../ports/logger.ts";
import {
  expectHistory,
  expectIntact,
  fetchAll,
  filled,
  open,
  sealedEvents,
  sequencesOf,
} from "../../../test/archive/test-archive.ts";
import { Retention, SegmentFetcher, type Archive, type SegmentSource } from "./index.ts";

/** One a millisecond, the first at FIRST_MS; five are a segment. */
const events = sealedEvents(23);
const FIRST_MS = 1_700_000_000_000;
const LAST_MS = FIRST_MS + 22;
const HOUR_MS = 3_600_000;

const silent: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** With a snapshot of all of it, on a clock that shows `wallMs`. */
async function aged(wallMs = LAST_MS + HOUR_MS): Promise<{ archive: Archive; clock: ManualClock; disk: TestDisk }> {
  const disk = new TestDisk();
  const { archive, clock } = await filled(disk, events);
  clock.skewMs = wallMs - clock.nowMs;
  await archive.capture();
  return { archive, clock, disk };
}

describe("history that is older than it is kept", () => {
  test("is let go in whole segments; verify begins behind them, and older events are LOG_COMPACTED", async () => {
    const { archive, disk } = await aged();
    // Event 15, the last of the third segment, is 8 ms older than the newest.
    expect(await archive.letGoOlder(8)).toBeGreaterThan(0);
    expect(archive.stats()).toMatchObject({ startSequence: 10, segments: 2 });
    expect(await archive.letGoOlder(8)).toBe(0);
    expect(await archive.letGoOlder(7)).toBeGreaterThan(0);
    expect(archive.stats()).toMatchObject({ startSequence: 15, segments: 1 });
    await expect(sequencesOf(archive, 15)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    await expectHistory(archive, events, 16);
    await expectIntact(archive, 8);
    await archive.close();
    await expectIntact((await open(disk)).archive, 8);
  });

  test("is measured from the newest event: a clock that jumps ahead lets nothing go, one that is behind keeps more", async () => {
    const ahead = await aged(LAST_MS + 1_000 * 24 * HOUR_MS);
    expect(await ahead.archive.letGoOlder(HOUR_MS)).toBe(0);
    const behind = await aged(FIRST_MS + 6);
    expect(await behind.archive.letGoOlder(1)).toBeGreaterThan(0);
    expect(behind.archive.stats().startSequence).toBe(5);
  });

  test("stays where no snapshot of this node covers it", async () => {
    const { archive, clock } = await filled(new TestDisk(), events.slice(0, 12));
    clock.skewMs = LAST_MS + HOUR_MS;
    expect(await archive.letGoOlder(1)).toBe(0);
    await archive.capture();
    archive.append(events.slice(12));
    await archive.durable(23);
    expect(await archive.letGoOlder(1)).toBeGreaterThan(0);
    expect(archive.stats().startSequence).toBe(10);
  });

  test("goes although a segment of it is missing", async () => {
    const { archive, disk } = await aged();
    disk.bytesOf("events-0000000000000001")[200]! ^= 1;
    await expect(sequencesOf(archive, 1, 5)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    await archive.letGoOlder(8);
    expect(archive.stats()).toMatchObject({ startSequence: 10, missingSegments: 0 });
    expect(disk.names().filter((name) => name.startsWith("damaged-"))).toEqual([]);
  });

  test("is not brought back by a snapshot of a node that still has it", async () => {
    const source = await filled(new TestDisk(), events.slice(0, 18));
    const node = await filled(new TestDisk(), events.slice(0, 12));
    await node.archive.retain(await node.archive.pointAt(10));
    await node.archive.restore(await source.archive.capture());
    expect(node.archive.stats()).toMatchObject({ startSequence: 10, lastSequence: 18 });
    await fetchAll(node.archive, source.archive);
    await expectIntact(node.archive, 8);
  });
});

describe("retention", () => {
  test("looks at the start and every hour, and not after it was stopped", async () => {
    const { archive, clock } = await aged();
    const lines: string[] = [];
    const logger: Logger = { ...silent, info: (_fields, message) => void lines.push(message) };
    const retention = new Retention({ archive, keepMs: 8, clock, logger });
    await settled();
    expect(archive.stats().startSequence).toBe(10);
    expect(lines).toEqual(["events before 11 are older than they are kept, and were let go"]);
    archive.append(sealedEvents(43).slice(23));
    await archive.capture();
    clock.nowMs += HOUR_MS - 1;
    while (clock.fireNext());
    await settled();
    expect(archive.stats().startSequence).toBe(10);
    clock.nowMs += 1;
    while (clock.fireNext());
    await settled();
    expect(archive.stats().startSequence).toBe(30);
    await retention.stop();
    expect(clock.pending).toBe(0);
  });

  test("lets go no more than somebody else allows; what waits for ever goes when it is twice as old", async () => {
    const { archive, clock } = await aged();
    const warned: object[] = [];
    const logger: Logger = { ...silent, warn: (fields) => void warned.push(fields) };
    const asked: number[] = [];
    let allowed = { through: 7, isStuck: false };
    const mayGo = async (sequence: number) => {
      asked.push(sequence);
      return allowed;
    };
    // Events 1 to 15, three segments, are older than that, and twice as old too.
    const retention = new Retention({ archive, keepMs: 3, mayGo, clock, logger });
    const hourLater = async (): Promise<void> => {
      clock.nowMs += HOUR_MS;
      while (clock.fireNext());
      await settled();
    };
    await settled();
    expect(archive.stats().startSequence).toBe(5);
    expect(asked).toEqual([15, 15]);
    allowed = { through: 12, isStuck: false };
    await hourLater();
    expect(archive.stats().startSequence).toBe(10);
    expect(warned).toEqual([]);
    allowed = { through: 12, isStuck: true };
    await hourLater();
    expect(archive.stats().startSequence).toBe(15);
    expect(warned).toEqual([{ event: "history", first: 11, count: 5 }]);
    await retention.stop();
  });

  test("keeps everything where nothing else is said, and goes on after a failure", async () => {
    const { archive, clock } = await aged();
    const all = new Retention({ archive, keepMs: null, clock, logger: silent });
    await settled();
    expect(archive.stats().startSequence).toBe(0);
    await all.stop();
    let isBroken = true;
    const flaky = {
      stats: () => archive.stats(),
      recount: () => archive.recount(),
      letGoOlder: (ms: number) => (isBroken ? Promise.reject(new Error("not now")) : archive.letGoOlder(ms)),
    };
    const retention = new Retention({ archive: flaky, keepMs: 8, clock, logger: silent });
    await settled();
    isBroken = false;
    clock.nowMs += HOUR_MS;
    while (clock.fireNext());
    await settled();
    expect(archive.stats().startSequence).toBe(10);
    await retention.stop();
  });
});

describe("a node that lacks what others have let go", () => {
  interface Others {
    readonly archives: Archive[];
    members: string[];
    /** Pieces that were asked for. */
    asked: number;
  }

  async function others(count: number, having = events): Promise<Others> {
    const archives = await Promise.all(
      Array.from({ length: count }, async () => (await filled(new TestDisk(), having)).archive),
    );
    return { archives, members: archives.map((_, at) => `n${at + 2}`), asked: 0 };
  }

  /** It has a snapshot from before they let anything go. */
  async function joining(around: Others) {
    const { archive } = await open(new TestDisk());
    await archive.restore(await around.archives[0]!.capture());
    const sourceOf = (peer: Archive): SegmentSource => ({
      fetch: (first, at, max) => {
        around.asked++;
        return peer.serve(first, at, max);
      },
      start: async () => peer.manifest().start.sequence,
      lacks: async () => null,
    });
    const clock = new ManualClock();
    const fetcher = new SegmentFetcher({
      archive,
      peers: () => around.archives.map((peer, at) => ({ name: `n${at + 2}`, source: sourceOf(peer) })),
      members: () => around.members,
      clock,
      random: seededRandom(1),
      logger: silent,
    });
    onTestFinished(() => fetcher.stop());
    const goOn = async (): Promise<void> => {
      for (let i = 0; i < 6; i++) {
        await settled();
        clock.nowMs += 60_000;
        while (clock.fireNext());
      }
      await settled();
    };
    return { archive, fetcher, goOn };
  }

  const cut = async (archive: Archive, at: number): Promise<unknown> => archive.retain(await archive.pointAt(at));

  test("starts behind it, has the rest, and asks no more", async () => {
    const around = await others(2);
    const node = await joining(around);
    await cut(around.archives[0]!, 15);
    await cut(around.archives[1]!, 10);
    node.fetcher.poke();
    await node.goOn();
    expect(node.archive.stats()).toMatchObject({ startSequence: 10, missingSegments: 0 });
    await expectHistory(node.archive, events, 11);
    await expectIntact(node.archive, 13);
    const { asked } = around;
    await node.goOn();
    expect(around.asked).toBe(asked);
  });

  test("asks first for what follows, however much they have let go: that tells where history starts", async () => {
    const many = sealedEvents(43);
    const around = await others(1, many);
    const node = await joining(around);
    await cut(around.archives[0]!, 30);
    node.fetcher.poke();
    await node.goOn();
    expect(node.archive.stats()).toMatchObject({ startSequence: 30, missingSegments: 0 });
    await expectHistory(node.archive, many, 31);
    // Three that nobody has, and the rest waits; then the two that follow, and three again.
    expect(around.asked).toBe(8);
  });

  test("starts with the open segment where they have nothing else", async () => {
    const around = await others(1);
    const node = await joining(around);
    await cut(around.archives[0]!, 20);
    node.fetcher.poke();
    await node.goOn();
    expect(node.archive.stats()).toMatchObject({ startSequence: 20, missingSegments: 0 });
    await expectHistory(node.archive, events, 21);
  });

  test("waits for a member that does not answer, and for one that has it but can't give it now", async () => {
    const around = await others(2);
    const node = await joining(around);
    await cut(around.archives[0]!, 10);
    const silentOne = around.archives.pop()!;
    node.fetcher.poke();
    await node.goOn();
    expect(node.archive.stats()).toMatchObject({ startSequence: 0 });
    expect(node.archive.missing().map(({ first }) => first)).toEqual([1, 6]);
    around.archives.push(silentOne);
    node.fetcher.poke();
    await node.goOn();
    expect(node.archive.stats()).toMatchObject({ startSequence: 0, missingSegments: 0 });
    await expectHistory(node.archive, events);
  });
});
