// Own and foreign events in the order of their arrival, read from two archives, next to a list in memory.

import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { seededRandom } from "../../../core/kit/random.ts";
import {
  archived,
  decodeReceipt,
  encodePage,
  encodeRecord,
  newEvents,
  recordedPage,
} from "../../../core/mesh/receipts/index.ts";
import { type Archive, RECEIPTS } from "../../../logs/index.ts";
import { filled, open, sealedEvents } from "../../../../test/archive/test-archive.ts";
import { TestDisk } from "../../../engine/test-disk.ts";
import { arrivals, firstArrivalKept, placesThrough } from "./arrivals.ts";
import { ReceiptsFold } from "./receipts-fold.ts";
import { siteOf, verified } from "./test-receipts.ts";

/** A site that writes and receives, in an order that the seed decides. */
async function played(seed: string, steps: number) {
  const random = seededRandom(seed);
  const events = sealedEvents(60);
  const sites = [siteOf("far", 60, digest), siteOf("near", 60, digest)];
  const { archive: own } = await open(new TestDisk());
  const { archive: receipts } = await open(new TestDisk(), { of: RECEIPTS });
  const fold = new ReceiptsFold({ digest, own: () => own.lastSequence });
  fold.follow((sealed) => receipts.append([archived(sealed)]));
  const expected: string[] = [];
  for (let step = 1; step <= steps; step++) {
    if (random.chance(0.5)) {
      own.append([events[own.lastSequence]!]);
      expected.push(`own/${own.lastSequence}`);
      continue;
    }
    const site = random.pick(sites);
    const known = fold.state.line(site.line)?.size ?? 0;
    const [after, size] = [Math.max(0, known - random.below(3)), known + 1 + random.below(4)];
    const page = verified(site, after, size, known);
    const recorded = recordedPage(encodePage(page.page), page.from, page.state);
    const data = encodeRecord({ arrivedMs: step, floorMs: 0, pages: [recorded] });
    fold.apply({ position: step, epoch: 1, data });
    for (let at = known + 1; at <= size; at++) expected.push(`${site.line}/${at}`);
  }
  return { own, receipts, fold, expected };
}

async function readFrom(sources: Parameters<typeof arrivals>[0], from: number): Promise<string[]> {
  const read: string[] = [];
  for await (const batch of arrivals(sources, from)) {
    for (const { arrival, line, lineSequence, ...content } of batch) {
      expect(arrival).toBe(from + read.length);
      expect("bytes" in content || "hash" in content).toBe(true);
      read.push(`${line ?? "own"}/${lineSequence}`);
    }
  }
  return read;
}

/** The arrival number of the last event of each receipt. */
async function receiptEnds(receipts: Archive): Promise<number[]> {
  const ends: number[] = [];
  for await (const batch of receipts.read(1)) {
    for (const { bytes } of batch) {
      const read = decodeReceipt(bytes);
      if (read.kind === "receipt") ends.push(read.receipt.own + read.receipt.foreign + newEvents(read.receipt));
    }
  }
  return ends;
}

describe("arrivals", () => {
  test.each(["a", "b", "c", "d"])("are all read, once and in order, from any number on (%s)", async (seed) => {
    const { own, receipts, fold, expected } = await played(seed, 30);
    expect(fold.arrival).toBe(expected.length);
    for (let from = 1; from <= expected.length + 2; from++)
      expect(await readFrom({ own, receipts }, from)).toEqual(expected.slice(from - 1));
  });

  test("are the own sequence while the site is alone", async () => {
    const { archive: own } = await filled(new TestDisk(), sealedEvents(12));
    const { archive: receipts } = await open(new TestDisk(), { of: RECEIPTS });
    const read = await readFrom({ own, receipts }, 4);
    expect(read).toEqual(Array.from({ length: 9 }, (_, at) => `own/${at + 4}`));
  });

  test("begin after what is not kept any more, and say where", async () => {
    const { own, receipts, expected } = await played("kept", 40);
    const [first] = receipts.manifest().segments;
    await receipts.retain(await receipts.pointAt(first!.last));
    const sources = { own, receipts };
    const error = await readFrom(sources, 1).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "LOG_COMPACTED" });
    const next = Number(/Begin with (\d+)/.exec((error as Error).message)![1]);
    expect(await readFrom(sources, next)).toEqual(expected.slice(next - 1));
    expect(next).toBeGreaterThan(1);
  });

  test.each(["e", "f", "g"])(
    "through any number are so many own events and so many whole receipts (%s)",
    async (seed) => {
      const { own, receipts, fold, expected } = await played(seed, 30);
      expect(fold.arrival).toBe(expected.length);
      const ends = await receiptEnds(receipts);
      for (let through = 0; through <= expected.length; through++) {
        const ownEvents = expected.slice(0, through).filter((name) => name.startsWith("own/")).length;
        const whole = ends.filter((end) => end <= through).length;
        expect(await placesThrough({ own, receipts }, through)).toEqual({ own: ownEvents, receipts: whole });
      }
    },
  );

  test.each(["h", "i", "j", "k"])("are kept from the one after what was cut of either archive (%s)", async (seed) => {
    const { own, receipts, expected } = await played(seed, 60);
    const ends = await receiptEnds(receipts);
    const sources = { own, receipts };
    expect(await firstArrivalKept(sources)).toBe(1);
    const cut = own.manifest().segments[0]!.last;
    await own.retain(await own.pointAt(cut));
    const afterOwn = expected.indexOf(`own/${cut}`) + 2;
    expect(await firstArrivalKept(sources)).toBe(afterOwn);
    expect(await readFrom(sources, afterOwn)).toEqual(expected.slice(afterOwn - 1));
    const { last } = receipts.manifest().segments[0]!;
    await receipts.retain(await receipts.pointAt(last));
    const afterBoth = Math.max(afterOwn, ends[last - 1]! + 1);
    expect(await firstArrivalKept(sources)).toBe(afterBoth);
    expect(await readFrom(sources, afterBoth)).toEqual(expected.slice(afterBoth - 1));
  });

  test("include what is withheld, by its hash", async () => {
    const site = siteOf("far", 1, digest);
    site.write({ eventType: "build:log" });
    const { archive: own } = await open(new TestDisk());
    const { archive: receipts } = await open(new TestDisk(), { of: RECEIPTS });
    const fold = new ReceiptsFold({ digest, own: () => 0 });
    fold.follow((sealed) => receipts.append([archived(sealed)]));
    const page = verified(site, 0, 2);
    const recorded = recordedPage(encodePage(page.page), page.from, page.state);
    fold.apply({ position: 1, epoch: 1, data: encodeRecord({ arrivedMs: 1, floorMs: 0, pages: [recorded] }) });
    for await (const batch of arrivals({ own, receipts }, 2)) {
      expect(batch).toMatchObject([{ arrival: 2, line: site.line, lineSequence: 2, hash: site.hash(2) }]);
    }
  });
});
