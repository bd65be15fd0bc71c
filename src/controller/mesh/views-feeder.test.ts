// What feeds the state of all sites, on two archives in memory: everything is put once and in order, whatever fails on the way.

import { describe, expect, test, vi } from "vitest";
import { open, sealedEvents } from "../../../test/archive/test-archive.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { ringOf } from "../../core/mesh/test-site.ts";
import { Registry } from "../../core/mesh/registry/index.ts";
import { archived, encodePage, encodeRecord, recordedPage } from "../../core/mesh/receipts/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { TestDisk } from "../../engine/test-disk.ts";
import { RECEIPTS } from "../../logs/index.ts";
import type { ArrivedEvent, LineMark } from "../../ports/mesh-views.ts";
import { firstArrival } from "./arrivals.ts";
import { ReceiptsFold } from "./receipts-fold.ts";
import { siteOf, verified } from "./test-receipts.ts";
import { MeshFeeder, type MeshFeederOptions } from "./views-feeder.ts";

const SILENT = { debug() {}, info() {}, warn: vi.fn<() => void>(), error() {} };
const OWN_LINES = [
  { line: "own.1", generation: 1, after: 0 },
  { line: "own.2", generation: 2, after: 3 },
];

class ListedViews {
  readonly events: ArrivedEvent[] = [];
  readonly marks: [string, LineMark | null][] = [];
  failures = 0;
  #reset: () => void = () => undefined;

  async through(): Promise<number> {
    return this.events.at(-1)?.arrival ?? 0;
  }

  async put(batch: readonly ArrivedEvent[]): Promise<void> {
    if (this.failures-- > 0) throw new TenureError("DISK_FULL", "no room");
    this.events.push(...batch);
  }

  async mark(line: string, mark: LineMark | null): Promise<void> {
    this.marks.push([line, mark]);
  }

  onReset(listener: () => void): void {
    this.#reset = listener;
  }

  lose(): void {
    this.events.length = 0;
    this.#reset();
  }

  get shown(): string[] {
    return this.events.map(({ arrival, line, lineSequence }) => `${arrival} ${line}/${lineSequence}`);
  }
}

async function stage(change: Partial<MeshFeederOptions> = {}) {
  const far = siteOf("far", 40);
  const events = sealedEvents(60);
  const { archive: own } = await open(new TestDisk());
  const { archive: receipts } = await open(new TestDisk(), { of: RECEIPTS });
  const fold = new ReceiptsFold({ digest, own: () => own.lastSequence });
  fold.follow((sealed) => receipts.append([archived(sealed)]));
  const views = new ListedViews();
  const feeder = new MeshFeeder({
    views,
    sources: { own, receipts },
    own: () => ({ line: "own.2", lines: OWN_LINES as never }),
    generationOf: () => 7,
    registry: () => new Registry(),
    clock: systemClock,
    logger: SILENT,
    ...change,
  });
  return {
    own,
    receipts,
    views,
    feeder,
    far,
    write: (count: number) => {
      for (let at = 0; at < count; at++) own.append([events[own.lastSequence]!]);
      feeder.ring();
    },
    receive: (after: number, size: number) => {
      const page = verified(far, after, size, after);
      const recorded = recordedPage(encodePage(page.page), page.from, page.state);
      fold.apply({ position: size, epoch: 1, data: encodeRecord({ arrivedMs: size, floorMs: 0, pages: [recorded] }) });
      feeder.ring();
    },
  };
}

describe("the state of all sites", () => {
  test("is fed with own and foreign events in one order, each with what it came with", async () => {
    const { write, receive, views, feeder, far } = await stage();
    write(4);
    receive(0, 2);
    write(1);
    const expected = [
      "1 own.1/1",
      "2 own.1/2",
      "3 own.1/3",
      "4 own.2/4",
      `5 ${far.line}/1`,
      `6 ${far.line}/2`,
      "7 own.2/5",
    ];
    await expect.poll(() => views.shown).toEqual(expected);
    expect(views.events[3]).toMatchObject({ generation: 2, receipt: null });
    expect(views.events[4]).toMatchObject({ generation: 7, receipt: 1, arrivedMs: 2 });
    expect(views.events.map(({ checkpoint }) => checkpoint?.after)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      0,
      undefined,
    ]);
    feeder.close();
  });

  test("waits for the name of the own line, and goes on after what can't be written now", async () => {
    let isNamed = false;
    const named = { line: "own.2", lines: OWN_LINES as never };
    const { write, views, feeder } = await stage({ own: () => (isNamed ? named : null) });
    views.failures = 1;
    write(2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(views.shown).toEqual([]);
    isNamed = true;
    feeder.ring();
    await expect.poll(() => views.shown, { timeout: 5_000 }).toEqual(["1 own.1/1", "2 own.1/2"]);
    expect(SILENT.warn).toHaveBeenCalledOnce();
    feeder.close();
  });

  test("is built again where it was lost, from what retention has left", async () => {
    const { own, write, receive, receipts, views, feeder } = await stage();
    for (let size = 1; size <= 40; size++) {
      write(1);
      receive(size - 1, size);
    }
    await expect.poll(() => views.events.length).toBe(80);
    const all = views.shown;
    views.lose();
    await expect.poll(() => views.shown).toEqual(all);
    const [first] = receipts.manifest().segments;
    await receipts.retain(await receipts.pointAt(first!.last));
    const kept = all.slice((await firstArrival({ own, receipts })) - 1);
    expect(kept.length).toBeLessThan(80);
    views.lose();
    await expect.poll(() => views.shown).toEqual(kept);
    feeder.close();
  });

  test("has lines that are forked or evicted marked, once, and again after it was lost", async () => {
    const ring = ringOf("far", ["n1"], digest);
    const site = { id: "far", lines: [{ line: "far.1", ring }] };
    let kind = "evicted";
    const registry = { sites: () => [site], standingOf: () => ({ kind }) } as never;
    const { views, feeder } = await stage({ registry: () => registry });
    await expect.poll(() => views.marks).toEqual([["far.1", "evicted"]]);
    feeder.ring();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(views.marks).toHaveLength(1);
    views.lose();
    await expect.poll(() => views.marks).toHaveLength(2);
    kind = "wanted";
    feeder.ring();
    await expect.poll(() => views.marks.at(-1)).toEqual(["far.1", null]);
    expect(views.marks).toHaveLength(3);
    feeder.close();
  });
});
