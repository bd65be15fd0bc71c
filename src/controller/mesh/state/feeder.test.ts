// The feeder of the mesh's views, over real archives and a fold, with views that are a list.

import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import type { SealedEvent } from "../../../core/events/index.ts";
import { archived, encodePage, encodeRecord, recordedPage } from "../../../core/mesh/receipts/index.ts";
import type { KnownSite } from "../../../core/mesh/registry/index.ts";
import { TestDisk } from "../../../engine/test-disk.ts";
import { RECEIPTS } from "../../../logs/index.ts";
import { ManualClock, settled } from "../../../loops/test-clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { ArrivedEvent, LineMark, MeshViews } from "../../../ports/mesh/views.ts";
import { open, sealedEvents } from "../../../../test/archive/test-archive.ts";
import { MeshFeeder } from "./feeder.ts";
import { FEED_GATHER_MS, FEED_RETRY_MS, FEED_WAITING_MAX } from "../limits.ts";
import type { OwnLines } from "../own/own-line-fold.ts";
import { ReceiptsFold } from "../receipts/receipts-fold.ts";
import { siteOf, verified } from "../receipts/test-receipts.ts";

const OWN = "near.0";
const EVENTS = sealedEvents(FEED_WAITING_MAX + 50);
const RING = { controller: "near", generation: 1, author: "near", keys: [] };

class ListViews implements Pick<
  MeshViews,
  "through" | "put" | "mark" | "lastOf" | "savedThrough" | "rebuild" | "onReset"
> {
  events: ArrivedEvent[] = [];
  readonly marks: (readonly [string, LineMark | null])[] = [];
  failures = 0;
  holds: Promise<void> | null = null;
  reset: () => void = () => undefined;

  async through(): Promise<number> {
    return this.events.at(-1)?.arrival ?? 0;
  }

  puts = 0;

  async put(batch: readonly ArrivedEvent[]): Promise<void> {
    await this.holds;
    if (this.failures-- > 0) throw new Error("the disk is full");
    this.puts++;
    this.events.push(...batch);
  }

  async mark(line: string, mark: LineMark | null): Promise<void> {
    this.marks.push([line, mark]);
  }

  onReset(listener: () => void): void {
    this.reset = listener;
  }

  savedThrough: number | null = null;
  /** What `rebuild` goes on from; a list of what was saved. */
  saved: readonly ArrivedEvent[] = [];
  readonly rebuilt: string[] = [];

  async lastOf(line: string): Promise<number> {
    return this.events.findLast((event) => event.line === line)?.lineSequence ?? 0;
  }

  async rebuild(_reason: string, from: "nothing" | "saved"): Promise<void> {
    this.rebuilt.push(from);
    this.events = from === "saved" ? [...this.saved] : [];
    this.reset();
  }

  get shown(): string[] {
    return this.events.map(({ arrival, line, lineSequence }) => `${arrival} ${line}/${lineSequence}`);
  }
}

async function stage() {
  const { archive: own } = await open(new TestDisk());
  const { archive: receipts } = await open(new TestDisk(), { of: RECEIPTS });
  const fold = new ReceiptsFold({ digest, own: () => own.lastSequence });
  fold.follow((sealed) => receipts.append([archived(sealed)]));
  const followers = new Set<(sealed: SealedEvent) => void>();
  const restored = new Set<() => void>();
  const lines = (): OwnLines => ({
    controller: "near",
    name: "near",
    urls: [],
    generations: [{ line: OWN, after: 0, rings: [{ since: 1, ring: RING }], end: null }],
  });
  const ownLine: { lines: OwnLines | null } = { lines: lines() };
  const sites: Partial<KnownSite>[] = [];
  const forks = new Set<string>();
  let changed = (): void => undefined;
  const far = siteOf("far", 60, digest);
  const expected: string[] = [];
  const write = (count: number, eventType?: string): void => {
    for (let at = 0; at < count; at++) {
      const sealed = EVENTS[own.lastSequence]!;
      own.append([sealed]);
      expected.push(`${fold.arrival} ${OWN}/${own.lastSequence}`);
      const event = eventType === undefined ? sealed.event : { ...sealed.event, eventType };
      for (const tell of followers) tell({ ...sealed, event } as SealedEvent);
    }
  };
  const receive = (count: number): void => {
    const known = fold.state.line(far.line)?.size ?? 0;
    const page = verified(far, known, known + count);
    const recorded = recordedPage(encodePage(page.page), page.from, page.state);
    const before = fold.arrival;
    fold.apply({
      position: before + 1,
      epoch: 1,
      data: encodeRecord({ arrivedMs: 7, floorMs: 0, pages: [recorded] }),
    });
    for (let at = 1; at <= count; at++) expected.push(`${before + at} ${far.line}/${known + at}`);
  };
  const views = new ListViews();
  const clock = new ManualClock();
  const logger = { warn: () => undefined } as unknown as Logger;
  const start = (): MeshFeeder =>
    new MeshFeeder({
      journal: {
        follow: (tell) => {
          followers.add(tell);
          return () => void followers.delete(tell);
        },
        onRestored: (tell) => {
          restored.add(tell);
          return () => void restored.delete(tell);
        },
      },
      receipts: fold,
      ownLine,
      controllers: {
        registry: { sites: () => sites as KnownSite[], forkOf: (line) => (forks.has(line) ? 1 : undefined) },
        onChanged: (listener) => void (changed = listener),
      },
      archives: { own, receipts },
      views,
      clock,
      logger,
    });
  const register = (site: Partial<KnownSite>): void => {
    sites.splice(0, sites.length, site);
    changed();
  };
  const fork = (line: string): void => {
    forks.add(line);
    changed();
  };
  return {
    own,
    receipts,
    far,
    write,
    receive,
    expected,
    views,
    clock,
    start,
    ownLine,
    lines,
    register,
    fork,
    restored,
  };
}

async function fed(clock: ManualClock): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await settled();
  await clock.advance(FEED_GATHER_MS);
  for (let turn = 0; turn < 200; turn++) await settled();
}

describe("the feeder", () => {
  test("feeds what is applied, own and foreign, once and in order; the last item of a page has its note", async () => {
    const { write, receive, views, expected, start, far, clock } = await stage();
    const feeder = start();
    for (const step of [3, 1, 5]) {
      write(step);
      receive(step);
      await fed(clock);
    }
    expect(views.shown).toEqual(expected);
    expect(feeder.lag).toBe(0);
    const foreign = views.events.filter(({ line }) => line === far.line);
    expect(
      foreign.filter(({ checkpoint }) => checkpoint !== undefined).map(({ lineSequence }) => lineSequence),
    ).toEqual([3, 4, 9]);
    expect(foreign[0]).toMatchObject({ receipt: 1, arrivedMs: 7, generation: 1 });
    feeder.close();
  });

  test("puts what comes after another put together, and at once what comes after a rest", async () => {
    const { write, views, start, clock } = await stage();
    const feeder = start();
    write(1);
    for (let turn = 0; turn < 200; turn++) await settled();
    expect(views.shown).toHaveLength(1);
    for (let page = 0; page < 5; page++) {
      write(1);
      for (let turn = 0; turn < 200; turn++) await settled();
    }
    expect(views.shown).toHaveLength(1);
    await fed(clock);
    expect(views.shown).toHaveLength(6);
    expect(views.puts).toBe(2);
    await clock.advance(FEED_GATHER_MS);
    write(1);
    for (let turn = 0; turn < 200; turn++) await settled();
    expect(views.shown).toHaveLength(7);
    feeder.close();
  });

  test("begins with what the archives have, and goes on where the views are after a restart", async () => {
    const { write, receive, views, expected, start, clock } = await stage();
    write(20);
    receive(10);
    write(5);
    let feeder = start();
    await fed(clock);
    expect(views.shown).toEqual(expected);
    feeder.close();
    receive(3);
    write(2);
    views.events = views.events.slice(0, 13);
    feeder = start();
    await fed(clock);
    expect(views.shown).toEqual(expected);
    feeder.close();
  });

  test("goes on after a put that was refused, from where the views are", async () => {
    const { write, receive, views, expected, start, clock } = await stage();
    const feeder = start();
    views.failures = 2;
    write(3);
    await fed(clock);
    receive(2);
    await fed(clock);
    expect(views.shown).toEqual([]);
    for (let at = 0; at < 2; at++) {
      await clock.advance(FEED_RETRY_MS);
      await fed(clock);
    }
    expect(views.shown).toEqual(expected);
    feeder.close();
  });

  test("waits for the name of the own line", async () => {
    const { write, receive, views, expected, start, ownLine, lines, clock } = await stage();
    ownLine.lines = null;
    const feeder = start();
    write(2);
    receive(2);
    await fed(clock);
    expect(views.shown).toEqual([]);
    ownLine.lines = lines();
    write(1);
    await fed(clock);
    expect(views.shown).toEqual(expected);
    feeder.close();
  });

  test("reads from the archives what did not fit into memory", async () => {
    const { write, receive, views, expected, start, clock } = await stage();
    const feeder = start();
    const { promise, resolve } = Promise.withResolvers<void>();
    views.holds = promise;
    write(1);
    await fed(clock);
    write(FEED_WAITING_MAX + 20);
    receive(5);
    views.holds = null;
    resolve();
    for (let turn = 0; turn < 20; turn++) await fed(clock);
    expect(views.shown).toEqual(expected);
    feeder.close();
  });

  test("passes over what is not kept any more", async () => {
    const { write, receive, views, expected, start, receipts, clock } = await stage();
    for (let at = 0; at < 12; at++) {
      write(1);
      receive(4);
    }
    const [first] = receipts.manifest().segments;
    await receipts.retain(await receipts.pointAt(first!.last));
    const feeder = start();
    await fed(clock);
    expect(views.shown.length).toBeGreaterThan(0);
    expect(views.shown.length).toBeLessThan(expected.length);
    expect(views.shown).toEqual(expected.slice(-views.shown.length));
    feeder.close();
  });

  test("feeds anew what was lost, and after a snapshot", async () => {
    const { write, receive, views, expected, start, restored, clock } = await stage();
    const feeder = start();
    write(4);
    receive(4);
    await fed(clock);
    views.events = [];
    views.reset();
    await fed(clock);
    expect(views.shown).toEqual(expected);
    views.events = views.events.slice(0, 3);
    for (const tell of restored) tell();
    await fed(clock);
    expect(views.shown).toEqual(expected);
    feeder.close();
  });

  test("builds anew what shows more than a leader has applied: a disk was restored, and the views were copied later", async () => {
    const { write, receive, views, expected, start, clock } = await stage();
    write(3);
    receive(2);
    const lost = { ...views.events.at(-1), arrival: 9, line: OWN, lineSequence: 7 } as ArrivedEvent;
    views.events.push(lost);
    const feeder = start();
    await fed(clock);
    // A node that starts applies once more what its views have.
    expect(views.rebuilt).toEqual([]);
    feeder.caughtUp();
    await fed(clock);
    expect([views.rebuilt, views.shown]).toEqual([["nothing"], expected]);
    write(1);
    await fed(clock);
    expect([views.rebuilt, views.shown]).toEqual([["nothing"], expected]);
    feeder.close();
  });

  test("marks lines as the registry says: at each beginning all of them, then what changes", async () => {
    const { views, start, register, fork, far, clock } = await stage();
    const lines = [{ line: far.line, ring: RING }];
    const feeder = start();
    register({ id: "far", lines, isEvicted: false });
    await fed(clock);
    expect(views.marks).toEqual([[far.line, null]]);
    register({ id: "far", lines, isEvicted: true });
    await fed(clock);
    fork(far.line);
    await fed(clock);
    expect(views.marks.slice(1)).toEqual([
      [far.line, "evicted"],
      [far.line, "forked"],
    ]);
    views.reset();
    await fed(clock);
    expect(views.marks.slice(3)).toEqual([[far.line, "forked"]]);
    feeder.close();
  });

  test("marks lines of older generations than the registry remembers, too", async () => {
    const { views, start, register, receive, fork, far, clock } = await stage();
    const lines = [{ line: "far.later", ring: RING }];
    receive(1);
    const feeder = start();
    register({ id: "far", lines, isEvicted: true });
    await fed(clock);
    expect(new Map(views.marks)).toEqual(
      new Map([
        ["far.later", "evicted"],
        [far.line, "evicted"],
      ]),
    );
    register({ id: "far", lines, isEvicted: false });
    fork(far.line);
    await fed(clock);
    expect(views.marks.slice(-2)).toEqual([
      ["far.later", null],
      [far.line, "forked"],
    ]);
    feeder.close();
  });
});

describe("own events that turn out to be of the next line", () => {
  async function renewed(savedThrough: number | null) {
    const { write, views, start, ownLine, lines, clock } = await stage();
    const feeder = start();
    write(10);
    await fed(clock);
    views.savedThrough = savedThrough;
    views.saved = views.events.slice(0, savedThrough ?? 0);
    const [old] = lines().generations;
    const ring = { ...RING, generation: 2, author: "near+1" };
    ownLine.lines = {
      ...lines(),
      generations: [
        { ...old!, end: { through: 5, hash: null } },
        { line: "near.2", after: 5, rings: [{ since: 11, ring }], end: null },
      ],
    };
    write(1, "controller:recovered");
    await fed(clock);
    feeder.close();
    const shown = new Map(views.events.map(({ lineSequence, line }) => [lineSequence, line]));
    return { shown: [5, 6, 10, 11].map((sequence) => shown.get(sequence)), rebuilt: views.rebuilt };
  }
  const right = [OWN, "near.2", "near.2", "near.2"];

  // `tenure mesh resume --new-line` ends the own line at an earlier event. A replay and every other site have what was written since in the new line.
  test("are shown as of that line", async () => {
    expect(await renewed(null)).toEqual({ shown: right, rebuilt: ["nothing"] });
  });

  test("are shown anew from the saved state, unless that has them in the wrong place", async () => {
    expect(await renewed(4)).toEqual({ shown: right, rebuilt: ["saved"] });
    expect(await renewed(8)).toEqual({ shown: right, rebuilt: ["saved", "nothing"] });
  });

  test.each(["saved in the wrong place", "not saved"])(
    "stay where they are where the archives are cut and they are %s: nothing else has what was cut, of any site",
    async (how) => {
      const { write, receive, views, expected, start, receipts, ownLine, lines, clock } = await stage();
      const feeder = start();
      for (let at = 0; at < 12; at++) {
        write(1);
        receive(4);
      }
      await fed(clock);
      expect(views.shown).toEqual(expected);
      if (how !== "not saved") {
        views.savedThrough = views.events.length;
        views.saved = [...views.events];
      }
      const [first] = receipts.manifest().segments;
      await receipts.retain(await receipts.pointAt(first!.last));
      const [old] = lines().generations;
      const ring = { ...RING, generation: 2, author: "near+1" };
      ownLine.lines = {
        ...lines(),
        generations: [
          { ...old!, end: { through: 5, hash: null } },
          { line: "near.2", after: 5, rings: [{ since: 13, ring }], end: null },
        ],
      };
      write(1, "controller:recovered");
      await fed(clock);
      feeder.close();
      expect(views.rebuilt).not.toContain("nothing");
      expect(views.shown.slice(0, -1)).toEqual(expected.slice(0, -1));
      expect(views.events.at(-1)).toMatchObject({ line: "near.2", lineSequence: 13 });
    },
  );
});
