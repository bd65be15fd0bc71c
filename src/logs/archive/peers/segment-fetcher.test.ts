import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../core/kit/random.ts";
import { TestDisk } from "../../../engine/test-disk.ts";
import { ManualClock } from "../../../loops/test-clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import { expectHistory, filled, open, sealedEvents } from "../../../../test/archive/test-archive.ts";
import { ownLacks, SegmentFetcher, type Archive, type SegmentSource } from "../index.ts";

const events = sealedEvents(23);
/** One that does not say has kept everything. */
type Source = Pick<SegmentSource, "fetch"> & Partial<SegmentSource>;

function served(archive: Archive): Source & { asked: number } {
  const source = {
    asked: 0,
    fetch: (first: number, offsetBytes: number, bytesMax: number) => {
      source.asked++;
      return archive.serve(first, offsetBytes, Math.min(bytesMax, 700));
    },
    start: () => Promise.resolve(archive.manifest().start.sequence),
    lacks: () => Promise.resolve(ownLacks(archive)),
  };
  return source;
}

const lines: string[] = [];
const logger: Logger = {
  info: (_fields, message) => void lines.push(message),
  warn: (_fields, message) => void lines.push(message),
  error: (_fields, message) => void lines.push(message),
};

async function joining(sources: () => Record<string, Source>): Promise<{
  readonly peer: Archive;
  readonly archive: Archive;
  readonly fetcher: SegmentFetcher;
  readonly clock: ManualClock;
}> {
  const { archive: peer } = await filled(new TestDisk(), events);
  const { archive } = await open(new TestDisk());
  const clock = new ManualClock();
  const peers = (): { name: string; source: SegmentSource }[] =>
    Object.entries(sources()).map(([name, source]) => ({
      name,
      source: { start: async () => 0, lacks: async () => null, ...source },
    }));
  // One more that is down: what nobody else has is waited for.
  const members = (): string[] => [...Object.keys(sources()), "down"];
  const fetcher = new SegmentFetcher({ archive, peers, members, clock, random: seededRandom(1), logger });
  return { peer, archive, fetcher, clock };
}

/** A cluster of nodes that lack, or hold damaged, what the test says; and one that knows no more than its snapshot. */
async function lacking(damaged: readonly string[]): Promise<{
  readonly archive: Archive;
  readonly fetcher: SegmentFetcher;
  readonly clock: ManualClock;
  readonly sources: Record<string, Source>;
  readonly names: string[];
  readonly changes: number[];
  readonly whole: Archive;
}> {
  const { archive: whole } = await filled(new TestDisk(), events);
  const sources: Record<string, Source> = {};
  for (const name of damaged) {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events);
    await disk.remove(segmentFile(6), "test");
    sources[name] = served(archive);
  }
  const { archive } = await open(new TestDisk());
  const clock = new ManualClock();
  const names = [...damaged];
  const changes: number[] = [];
  const fetcher = new SegmentFetcher({
    archive,
    peers: () =>
      Object.entries(sources).map(([name, source]) => ({
        name,
        source: { start: async () => 0, lacks: async () => null, ...source },
      })),
    members: () => names,
    changed: () => void changes.push(archive.lost().length),
    clock,
    random: seededRandom(1),
    logger,
  });
  lines.length = 0;
  await archive.restore(await whole.capture());
  return { archive, fetcher, clock, sources, names, changes, whole };
}

function segmentFile(first: number): string {
  return `events-${String(first).padStart(16, "0")}`;
}

async function rounds(clock: ManualClock, count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    await settled();
    if (clock.pending === 0) return;
    clock.nowMs = clock.nextMs;
    clock.fireNext();
  }
  await settled();
}

/** Lets promises settle that need no timer. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

describe("the fetcher", () => {
  test("gets all that is missing as soon as a snapshot says so, piece by piece", async () => {
    const sources: Record<string, Source & { asked: number }> = {};
    const { peer, archive, fetcher } = await joining(() => sources);
    sources["n2"] = served(peer);
    await archive.restore(await peer.capture());
    await expect.poll(() => archive.isComplete).toBe(true);
    await expectHistory(archive, events);
    expect(fetcher.counts).toEqual({ installed: 4, refused: 0 });
    expect(sources["n2"].asked).toBeGreaterThan(8);
    await fetcher.stop();
  });

  test("that was poked while nothing was missing gets what is missing later", async () => {
    const sources: Record<string, Source> = {};
    const { peer, archive, fetcher } = await joining(() => sources);
    sources["n2"] = served(peer);
    fetcher.poke();
    fetcher.poke();
    await archive.restore(await peer.capture());
    await expect.poll(() => archive.isComplete).toBe(true);
    await fetcher.stop();
  });

  test("asks the next peer where one has nothing, fails, lies, sends too much or sends nothing", async () => {
    const sources: Record<string, Source> = {};
    const { peer, archive, fetcher } = await joining(() => sources);
    const { archive: stranger } = await filled(new TestDisk(), sealedEvents(23, "c1.9"));
    sources["empty"] = { fetch: async () => null };
    sources["broken"] = { fetch: async () => Promise.reject(new Error("reset")) };
    sources["liar"] = served(stranger);
    sources["zeros"] = { fetch: async (_first, _offset, bytesMax) => new Uint8Array(bytesMax) };
    sources["flood"] = { fetch: async (_first, _offset, bytesMax) => new Uint8Array(bytesMax + 1) };
    sources["silent"] = { fetch: async () => new Uint8Array(0) };
    sources["good"] = served(peer);
    lines.length = 0;
    await archive.restore(await peer.capture());
    await expect.poll(() => archive.isComplete).toBe(true);
    await expectHistory(archive, events);
    expect(fetcher.counts.installed).toBe(4);
    expect(fetcher.counts.refused).toBeGreaterThan(0);
    expect(lines.some((line) => line.includes("is not the one that is missing"))).toBe(true);
    await fetcher.stop();
  });

  test("gives up a peer that does not answer in time", async () => {
    const sources: Record<string, Source> = { hung: { fetch: () => new Promise(() => undefined) } };
    const { peer, archive, fetcher, clock } = await joining(() => sources);
    await archive.restore(await peer.capture());
    await settled();
    expect(clock.pending).toBe(1);
    sources["good"] = served(peer);
    for (let i = 0; i < 10 && !archive.isComplete; i++) {
      clock.nowMs = clock.pending > 0 ? clock.nextMs : clock.nowMs;
      clock.fireNext();
      await settled();
    }
    expect(archive.isComplete).toBe(true);
    expect(clock.nowMs).toBeGreaterThanOrEqual(1_000 + 5_000);
    await fetcher.stop();
  });

  test("waits longer each time where nobody has it, up to a minute, and at once looks again when it is poked", async () => {
    let asked = 0;
    const nobody: Source = {
      fetch: async () => {
        asked++;
        return null;
      },
    };
    const sources: Record<string, Source> = { nobody };
    const { peer, archive, fetcher, clock } = await joining(() => sources);
    lines.length = 0;
    await archive.restore(await peer.capture());
    const waits: number[] = [];
    for (let i = 0; i < 14; i++) {
      await settled();
      // Three segments in a row that nobody has: the fourth is not asked for.
      expect(asked).toBe(3 * (i + 1));
      waits.push(clock.nextMs - clock.nowMs);
      clock.nowMs = clock.nextMs;
      clock.fireNext();
    }
    // Reported once when it begins, once when it lasts.
    expect(lines.filter((line) => line.includes("missing here"))).toHaveLength(2);
    expect(waits[0]).toBeLessThanOrEqual(500);
    expect(waits[13]).toBeGreaterThan(29_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(60_000);
    await settled();
    sources["good"] = served(peer);
    fetcher.poke();
    await expect.poll(() => archive.isComplete).toBe(true);
    expect(clock.pending).toBe(0);
    await fetcher.stop();
    expect(lines.at(-1)).toBe("the history of events is whole");
  });

  test("gets the rest where nobody has the first ones", async () => {
    const sources: Record<string, Source> = {};
    const { peer, archive, fetcher, clock } = await joining(() => sources);
    const source = served(peer);
    sources["n2"] = { fetch: async (first, at, max) => (first < 16 ? null : source.fetch(first, at, max)) };
    await archive.restore(await peer.capture());
    for (let i = 0; i < 2; i++) {
      await settled();
      clock.nowMs = clock.nextMs;
      clock.fireNext();
    }
    await settled();
    expect(archive.missing().map(({ first }) => first)).toEqual([1, 6, 11]);
    await fetcher.stop();
  });

  test("looks again at once when it was poked while it looked", async () => {
    const sources: Record<string, Source> = {};
    const { peer, archive, fetcher, clock } = await joining(() => sources);
    await archive.restore(await peer.capture());
    await settled();
    sources["late"] = {
      fetch: async () => {
        // A better one connects while this one is being asked, for the last time in this round.
        sources["good"] ??= served(peer);
        fetcher.poke();
        return null;
      },
    };
    fetcher.poke();
    await expect.poll(() => archive.isComplete).toBe(true);
    expect(clock.pending).toBe(0);
    await fetcher.stop();
  });

  test("stops in the middle of a piece, and starts nothing more", async () => {
    const sources: Record<string, Source> = { hung: { fetch: () => new Promise(() => undefined) } };
    const { peer, archive, fetcher, clock } = await joining(() => sources);
    await archive.restore(await peer.capture());
    await settled();
    await fetcher.stop();
    expect(clock.pending).toBe(0);
    fetcher.poke();
    await settled();
    expect(clock.pending).toBe(0);
  });

  test("ends with the archive", async () => {
    const sources: Record<string, Source> = {};
    const { peer, archive, fetcher } = await joining(() => sources);
    await archive.restore(await peer.capture());
    sources["good"] = {
      fetch: async (first, offsetBytes, bytesMax) => {
        await archive.close();
        return peer.serve(first, offsetBytes, bytesMax);
      },
    };
    lines.length = 0;
    fetcher.poke();
    await expect.poll(() => lines).toEqual(["no more history is fetched"]);
    await fetcher.stop();
  });
});

describe("history that no member has", () => {
  test("is lost at once where there is no other member, and a reader is told so by name", async () => {
    const { archive, fetcher, changes } = await lacking([]);
    await settled();
    expect(fetcher.standing).toEqual({
      missing: [{ first: 1, last: 20 }],
      lost: [{ first: 1, last: 20 }],
      awaited: [],
    });
    expect(changes).toEqual([4]);
    await expect(archive.read(3).next()).rejects.toMatchObject({
      code: "EVENTS_LOST",
      message: "events 1 to 5 are lost: no member of the cluster has them. Go on with event 6.",
    });
    expect(archive.stats()).toMatchObject({ missingSegments: 4, lostSegments: 4 });
    await fetcher.stop();
  });

  test("is lost when every other member has looked and lacks it, and is said once", async () => {
    const { archive, fetcher, clock, changes } = await lacking(["n2", "n3"]);
    await rounds(clock, 12);
    expect(fetcher.standing).toEqual({
      missing: [{ first: 6, last: 10 }],
      lost: [{ first: 6, last: 10 }],
      awaited: [],
    });
    expect(changes).toEqual([0, 0, 0, 1]);
    expect(lines.filter((line) => line.includes("lost"))).toHaveLength(1);
    const steps = [];
    for await (const step of archive.verify()) steps.push(step);
    expect(steps).toContainEqual({ kind: "missing", first: 6, last: 10, isLost: true });
    await fetcher.stop();
  });

  test("is waited for, by name, while a member that may have it is down, of an earlier release, or not that far yet", async () => {
    const { archive, fetcher, clock, sources, names, changes } = await lacking(["n2"]);
    names.push("down", "old", "joining");
    sources["old"] = { fetch: async () => null };
    sources["joining"] = { fetch: async () => null, lacks: async () => ({ start: 0, reached: 7, ranges: [] }) };
    await rounds(clock, 12);
    expect(archive.lost()).toEqual([]);
    expect(changes).toEqual([0, 0, 0]);
    expect(fetcher.standing.awaited).toEqual(["down", "old", "joining"]);
    expect(lines.filter((line) => line.includes("no member that answers has it"))).toHaveLength(1);
    await expect(archive.read(6).next()).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    // They come, and lack it too.
    for (const name of ["down", "old", "joining"]) sources[name] = sources["n2"]!;
    await rounds(clock, 3);
    expect(archive.lost()).toHaveLength(1);
    await fetcher.stop();
  });

  test("is lost where the only other copy has rotted, which nobody but its reader can see", async () => {
    const { archive, fetcher, clock, sources, whole } = await lacking(["n2"]);
    sources["n2"] = {
      ...served(whole),
      fetch: async (first, at, max) => {
        const piece = (await whole.serve(first, at, max))!.slice();
        if (first === 6 && at === 0) piece[piece.length >> 1]! ^= 4;
        return piece;
      },
    };
    await rounds(clock, 12);
    expect(archive.lost().map(({ first }) => first)).toEqual([6]);
    await fetcher.stop();
  });

  test("is not called lost by a node that does not know the members yet, nor where all have let it go", async () => {
    const { archive: whole } = await filled(new TestDisk(), events);
    const { archive } = await open(new TestDisk());
    const clock = new ManualClock();
    const common = { archive, clock, random: seededRandom(1), logger };
    const fetcher = new SegmentFetcher({ ...common, peers: () => [], members: () => null });
    await archive.restore(await whole.capture());
    await rounds(clock, 8);
    expect(archive.lost()).toEqual([]);
    await fetcher.stop();
    const cut: SegmentSource = {
      fetch: async () => null,
      start: async () => 10,
      lacks: async () => ({ start: 10, reached: 23, ranges: [{ first: 11, last: 15 }] }),
    };
    const other = new SegmentFetcher({
      ...common,
      peers: () => [{ name: "n2", source: cut }],
      members: () => ["n2"],
    });
    other.poke();
    await rounds(clock, 3);
    expect(archive.lost().map(({ first }) => first)).toEqual([11]);
    await other.stop();
  });

  test("is fetched when a copy turns up, and is lost no more", async () => {
    const { archive, fetcher, clock, sources, names, changes, whole } = await lacking(["n2"]);
    await rounds(clock, 4);
    expect(archive.lost()).toHaveLength(1);
    names.push("n3");
    sources["n3"] = served(whole);
    fetcher.poke();
    await expect.poll(() => archive.isComplete).toBe(true);
    await expectHistory(archive, events);
    expect(changes.slice(-2)).toEqual([1, 0]);
    expect(fetcher.standing).toEqual({ missing: [], lost: [], awaited: [] });
    expect(lines.at(-1)).toBe("the history of events is whole");
    await fetcher.stop();
  });

  test("does not keep out what a member has: that is asked for first, and what is lost in the same round", async () => {
    const { archive, fetcher, sources, names, whole } = await lacking([]);
    // Until a round would begin with the first one again.
    for (let round = 1; round <= 4; round++, fetcher.poke()) await settled();
    const asked = new Set<number>();
    names.push("n2");
    sources["n2"] = {
      fetch: async (first, at, max) => (asked.add(first) && first === 16 ? whole.serve(first, at, max) : null),
    };
    const lost = archive.lost().filter(({ first }) => first !== 16);
    archive.lost = () => lost;
    fetcher.poke();
    await settled();
    expect([[...asked][0], asked.size]).toEqual([16, 4]);
    await fetcher.stop();
  });
});
