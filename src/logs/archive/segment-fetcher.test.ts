import { describe, expect, test } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { TestDisk } from "../../engine/test-disk.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import type { Logger } from "../../ports/logger.ts";
import { expectHistory, filled, open, sealedEvents } from "../../../test/archive/test-archive.ts";
import { SegmentFetcher, type Archive, type SegmentSource } from "./index.ts";

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
    Object.entries(sources()).map(([name, source]) => ({ name, source: { start: async () => 0, ...source } }));
  const members = (): string[] => Object.keys(sources());
  const fetcher = new SegmentFetcher({ archive, peers, members, clock, random: seededRandom(1), logger });
  return { peer, archive, fetcher, clock };
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
    // Told once when it begins, once when it lasts.
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
