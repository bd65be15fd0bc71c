import { describe, expect, test } from "vitest";
import {
  bytesOfHash,
  EMPTY_CHAIN,
  MerkleFrontier,
  Sealer,
  verifyConsistency,
  verifyInclusion,
} from "../../core/events/index.ts";
import type { SealedEvent } from "../../core/events/index.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import { EventsService, type EventHistory } from "./events.ts";
import { SiteJournal } from "./site-journal.ts";

const WANTED = { filter: null, max: 1_000, bytesMax: 1_000_000 };

/** A history of queues that are paused, in memory, that counts what is read of it. */
class Stage {
  readonly fold = new SiteJournal(digest);
  readonly all: SealedEvent[] = [];
  readonly sealer = new Sealer({ head: EMPTY_CHAIN, sourceControllerId: "site", leaderEpoch: 1, digest });
  readCount = 0;
  /** While it is set, reads hang. */
  held: Promise<void> | null = null;
  startSequence = 0;
  /** It can't be read: its segment is missing here. */
  missing = Infinity;
  readonly history: EventHistory = {
    stats: () => ({ startSequence: this.startSequence, lastSequence: this.all.length }),
    read: (from, max) => this.#read(from, max ?? Infinity),
    verify: () => {
      throw new Error("not asked for here");
    },
  };
  events = new EventsService({ journal: this.fold, history: this.history, digest });

  grow(count: number): void {
    for (let i = 0; i < count; i++) {
      const isOdd = this.all.length % 2 === 1;
      const sealed = this.sealer.seal({
        id: `id-${this.all.length}`,
        eventType: isOdd ? "queue:resumed" : "queue:paused",
        entityId: `q${this.all.length % 7}`,
        entityType: "queue",
        payload: { paused: !isOdd },
        timestamp: 1_000 + this.all.length,
      });
      this.all.push(sealed);
      this.fold.apply({ position: this.all.length, epoch: 1, data: sealed.bytes });
    }
  }

  /** Another process: nothing in memory but the history. */
  restart(): void {
    this.events.close();
    this.events = new EventsService({ journal: this.fold, history: this.history, digest });
  }

  root(size: number): Uint8Array {
    const tree = new MerkleFrontier(digest);
    for (const { event } of this.all.slice(0, size)) tree.append(bytesOfHash(event.eventHash));
    return tree.root();
  }

  async *#read(
    from: number,
    max: number,
  ): AsyncGenerator<{ sequence: number; bytes: Uint8Array; eventHash: string }[]> {
    await this.held;
    for (const { event, bytes } of this.all.slice(from - 1, from - 1 + max)) {
      if (event.sequence >= this.missing) throw new TenureError("BACKEND_UNAVAILABLE", "not here yet");
      this.readCount++;
      yield [{ sequence: event.sequence, bytes, eventHash: event.eventHash }];
    }
  }
}

describe("reading events", () => {
  test("the newest come from memory, older ones from the history, and both are the same", async () => {
    const stage = new Stage();
    stage.grow(20);
    const fromMemory = await stage.events.read(5, WANTED);
    expect(stage.readCount).toBe(0);
    stage.restart();
    stage.grow(3);
    const fromHistory = await stage.events.read(5, { ...WANTED, max: 15 });
    expect(stage.readCount).toBe(15);
    expect(fromHistory.through).toBe(20);
    const plain = (page: typeof fromMemory): unknown =>
      page.events.map(({ sequence, eventType, eventHash }) => [sequence, eventType, eventHash]);
    expect(plain(fromHistory)).toEqual(plain(fromMemory));
    expect((await stage.events.read(20, WANTED)).through).toBe(23);
  });

  test.each([0, 10])(
    "a page ends at its bounds, and a filter counts what it passes over (%i in memory)",
    async (inMemory) => {
      const stage = new Stage();
      stage.grow(10 - inMemory);
      stage.restart();
      stage.grow(inMemory);
      expect(await stage.events.read(0, { ...WANTED, max: 4 })).toMatchObject({ through: 4 });
      const oneByte = await stage.events.read(0, { ...WANTED, bytesMax: 1 });
      expect(oneByte.events.map(({ sequence }) => sequence)).toEqual([1]);
      const filter = { types: ["queue:resumed"], entityId: "q1", entityType: null };
      const filtered = await stage.events.read(0, { ...WANTED, filter });
      expect(filtered.events.map(({ sequence }) => sequence)).toEqual([2]);
      expect(filtered.through).toBe(10);
      const type = { types: ["queue:*"], entityId: null, entityType: "queue" };
      expect((await stage.events.read(0, { ...WANTED, filter: type })).events).toHaveLength(10);
      expect(await stage.events.read(10, WANTED)).toEqual({ events: [], through: 10, hash: null });
    },
  );

  test("an event of the history that is no event is refused, and named", async () => {
    const stage = new Stage();
    stage.grow(3);
    stage.restart();
    stage.all[0] = { ...stage.all[0]!, bytes: stage.all[0]!.bytes.subarray(1) };
    await expect(stage.events.read(0, WANTED)).rejects.toMatchObject({
      code: "CHAIN_BROKEN",
      message: expect.stringContaining("Event 1 can't be read"),
    });
  });

  test.each([0, 20])("trap 82: the hash of any event that can be resumed from (%i in memory)", async (inMemory) => {
    const stage = new Stage();
    stage.grow(20 - inMemory);
    stage.restart();
    stage.grow(inMemory);
    const hashes = stage.all.map(({ event }) => event.eventHash);
    expect(await stage.events.hashAt(0)).toBeNull();
    expect(await Promise.all(hashes.map((_hash, at) => stage.events.hashAt(at + 1)))).toEqual(hashes);
    expect(await stage.events.hashAt(21), "not applied here").toBeNull();
    expect((await stage.events.read(3, { ...WANTED, max: 4 })).hash).toBe(hashes[6]);
    stage.startSequence = 5;
    expect(await stage.events.hashAt(5), "cut off, and named by the next").toBe(hashes[4]);
    await expect(stage.events.hashAt(4)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    stage.startSequence = 20;
    expect(await stage.events.hashAt(20), "all cut off").toBe(hashes[19]);
  });

  test("a page that runs into a missing segment has what comes before it, and the next one says what is missing", async () => {
    const stage = new Stage();
    stage.grow(10);
    stage.restart();
    stage.missing = 7;
    expect(await stage.events.read(2, WANTED)).toMatchObject({ through: 6 });
    expect((await stage.events.read(2, WANTED)).events.map(({ sequence }) => sequence)).toEqual([3, 4, 5, 6]);
    await expect(stage.events.read(6, WANTED)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
  });

  test("a few read the history at a time, some wait, and the next is refused", async () => {
    const stage = new Stage();
    stage.grow(3);
    stage.restart();
    let release = (): void => undefined;
    stage.held = new Promise((resolve) => (release = resolve));
    const readers = Array.from({ length: 1_028 }, () => stage.events.read(0, WANTED));
    await expect(stage.events.read(0, WANTED)).rejects.toMatchObject({ code: "OVERLOADED" });
    release();
    for (const page of await Promise.all(readers)) expect(page.through).toBe(3);
  });

  test("a state that is taken over whole is said to be: what stood under a number may be another event now", () => {
    const stage = new Stage();
    stage.grow(3);
    let replaced = 0;
    stage.events.onReplaced(() => replaced++);
    stage.grow(1);
    expect(replaced).toBe(0);
    stage.fold.restore(wholeOf(stage.fold.snapshot()), { position: 4, epoch: 1 });
    expect(replaced).toBe(1);
  });

  test("what is cut off is said to be", async () => {
    const stage = new Stage();
    stage.grow(3);
    stage.startSequence = 2;
    await expect(stage.events.read(0, WANTED)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    expect((await stage.events.read(2, WANTED)).through).toBe(3);
    await expect(stage.events.inclusion(3, 3)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
  });
});

describe("proofs", () => {
  const hash = (hex: string): Uint8Array => bytesOfHash(hex);

  test("hold at the edges of blocks, and only the first one reads all of the history", async () => {
    const stage = new Stage();
    stage.grow(3_000);
    for (const [sequence, size] of [
      [1, 1],
      [1, 3_000],
      [1_024, 1_024],
      [1_025, 2_048],
      [2_048, 2_049],
      [3_000, 3_000],
    ] as const) {
      const proof = await stage.events.inclusion(sequence, size);
      const claim = { leafHash: hash(proof.leafHash), index: sequence - 1, size, root: hash(proof.root) };
      expect(verifyInclusion({ ...claim, proof: proof.path.map(hash) }, digest)).toBe(true);
      expect(hash(proof.root)).toEqual(stage.root(size));
    }
    stage.readCount = 0;
    await stage.events.inclusion(700, 3_000);
    // Around the leaf, and after the last whole block; twice, for the path and for the root.
    expect(stage.readCount).toBeLessThan(1_024 + 3 * 952);
  });

  test("that the log only grew holds for every pair of sizes around a block", async () => {
    const stage = new Stage();
    stage.grow(2_060);
    for (const [first, second] of [
      [1, 2_060],
      [1_023, 1_025],
      [1_024, 2_048],
      [2_047, 2_060],
      [2_060, 2_060],
    ] as const) {
      const { fromRoot, root, path } = await stage.events.consistency(first, second);
      const claim = { first, second, firstRoot: hash(fromRoot), secondRoot: hash(root), proof: path.map(hash) };
      expect(verifyConsistency(claim, digest)).toBe(true);
      expect(hash(fromRoot)).toEqual(stage.root(first));
    }
  });

  test("one is made at a time, and the eighteenth is refused", async () => {
    const stage = new Stage();
    stage.grow(3);
    const asked = Array.from({ length: 18 }, () => stage.events.inclusion(1, 3));
    const settled = await Promise.allSettled(asked);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(17);
    expect(settled.at(-1)).toMatchObject({ status: "rejected", reason: { code: "OVERLOADED" } });
  });
});

test("the tail lets the oldest go, and says what it has", async () => {
  const { EventTail } = await import("./event-tail.ts");
  const stage = new Stage();
  const tail = new EventTail();
  const [one] = (stage.grow(1), stage.all);
  for (let sequence = 1; sequence <= 40_000; sequence++) tail.push({ ...one!, event: { ...one!.event, sequence } });
  expect([tail.has(40_000 - 32_768), tail.has(40_000 - 32_767), tail.has(40_000), tail.has(40_001)]).toEqual([
    false,
    true,
    true,
    false,
  ]);
  expect([...tail.behind(39_998)].map(({ sequence }) => sequence)).toEqual([39_999, 40_000]);
  tail.push({ ...one!, event: { ...one!.event, sequence: 50_000 } });
  expect([tail.has(40_000), tail.has(50_000)]).toEqual([false, true]);
});

describe("whoever follows one entity", () => {
  test("is woken by its events alone, once, and costs nothing afterwards", async () => {
    const stage = new Stage();
    const woken: string[] = [];
    const over = new AbortController();
    for (const entity of ["q3", "q3", "q5"])
      void stage.events.arrivedOf(entity, over.signal).then(() => woken.push(entity));
    stage.grow(3);
    await settled();
    expect(woken).toEqual([]);
    stage.grow(1);
    await settled();
    expect(woken).toEqual(["q3", "q3"]);
    over.abort();
    await settled();
    expect(woken).toEqual(["q3", "q3", "q5"]);
    stage.grow(14);
    await settled();
    expect(woken).toHaveLength(3);
  });

  test("what is in memory comes at once, and what is not comes from the history", async () => {
    const stage = new Stage();
    stage.grow(10);
    expect(stage.events.recent(4, WANTED)?.events.map(({ sequence }) => sequence)).toEqual([5, 6, 7, 8, 9, 10]);
    expect(stage.events.recent(10, WANTED)).toEqual({ events: [], through: 10, hash: null });
    stage.restart();
    expect(stage.events.recent(4, WANTED)).toBeNull();
    expect((await stage.events.read(4, WANTED)).through).toBe(10);
  });
});

async function settled(): Promise<void> {
  for (let n = 0; n < 20; n++) await Promise.resolve();
}
