// A thousand streams of events on one node: what an append costs the loop, and that each reader sees all of it.

import { describe, expect, it } from "vitest";
import type { Events, EventsFilter } from "../../ports/events.ts";
import { EventStreams } from "./event-stream.ts";
import type { Service } from "../handlers/handler.ts";
import { StreamPlaces } from "./stream-places.ts";
import { CountingClock, MemoryEvents, TestReader } from "./test-fan.ts";

const STREAMS = 1_000;
/** What one write takes; together they take 20 ms. */
const WRITE_MS = 0.02;
const SLICE_MS = 2;
const HEARTBEAT_MS = 15_000;
const typeOf = (sequence: number): string => (sequence % 3 === 0 ? "build:completed" : "build:submitted");
const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1);

class Site {
  readonly clock = new CountingClock();
  readonly events = new MemoryEvents();
  readonly places = new StreamPlaces(STREAMS);
  readonly ends: Promise<unknown>[] = [];
  readonly #streams: EventStreams;

  constructor() {
    const { clock } = this;
    const service = { clock, limits: { heartbeatMs: HEARTBEAT_MS } } as unknown as Service;
    this.#streams = new EventStreams(service, this.events as unknown as Events);
  }

  async open(filter: EventsFilter | null = null, isAdmitted: () => boolean = () => true): Promise<TestReader> {
    const reader = new TestReader(this.clock, WRITE_MS);
    const answer = await this.#streams.open(async () => ({ sequence: 0, hash: null }), {
      filter,
      isChained: false,
      isStillAdmitted: isAdmitted,
      takeStream: () => this.places.take(),
    });
    this.ends.push(answer.stream(reader).catch((error: unknown) => error));
    return reader;
  }

  async openMany(count: number, filterOf: (n: number) => EventsFilter | null = () => null): Promise<TestReader[]> {
    const readers: TestReader[] = [];
    // One after the other, as connections come.
    for (let n = 0; n < count; n++) readers.push(await this.open(filterOf(n)));
    await this.clock.run(() => undefined, 100);
    this.clock.longestTurnMs = 0;
    return readers;
  }
}

describe("a thousand streams of events", () => {
  it("an append holds the loop for no longer than a slice, and every stream sees each event once, in order", async () => {
    const site = new Site();
    const readers = await site.openMany(STREAMS);
    for (const count of [1, 3, 1]) await site.clock.run(() => site.events.append(count, typeOf), 100);
    expect(site.clock.longestTurnMs).toBeLessThanOrEqual(SLICE_MS + WRITE_MS);
    for (const reader of readers) expect(reader.sequences).toEqual(upTo(5));
  });

  it("events that come while an earlier one is being sent: nobody is left out, nobody is served twice before others", async () => {
    const site = new Site();
    const readers = await site.openMany(STREAMS);
    // A slice serves a hundred: the first are sent the first event while most have not had it.
    for (let n = 1; n <= 50; n++) await site.clock.run(() => site.events.append(1, typeOf), 1);
    const most = Math.max(...readers.map(({ lastId }) => lastId));
    const least = Math.min(...readers.map(({ lastId }) => lastId));
    expect(least, "every stream was served").toBeGreaterThan(0);
    expect(most - least, "none lags by more than one round of all").toBeLessThan(50);
    await site.clock.run(() => undefined, 100);
    expect(site.clock.longestTurnMs).toBeLessThanOrEqual(SLICE_MS + WRITE_MS);
    for (const reader of readers) expect(reader.sequences).toEqual(upTo(50));
  });

  it("with filters, which share what they have in common, and move the point of resuming over what they leave out", async () => {
    const site = new Site();
    const filter = { types: ["build:completed"], entityId: null, entityType: null };
    const readers = await site.openMany(STREAMS, (n) => (n % 2 === 0 ? null : filter));
    await site.clock.run(() => site.events.append(8, typeOf), 100);
    for (const [n, reader] of readers.entries()) expect(reader.sequences).toEqual(n % 2 === 0 ? upTo(8) : [3, 6]);
    await site.clock.run(() => undefined, HEARTBEAT_MS + 100);
    for (const reader of readers) expect([reader.lastId, reader.heartbeats]).toEqual([8, 1]);
    expect(site.clock.longestTurnMs, "heartbeats are as many as events").toBeLessThanOrEqual(SLICE_MS + WRITE_MS);
  });

  it("a heartbeat is due once, also where the sum of its time is rounded: 1,040,000.4 + 15,000 - 1,040,000.4 is less than 15,000", async () => {
    const site = new Site();
    const [reader] = await site.openMany(1);
    site.clock.nowMs = 1_040_000;
    for (let n = 1; n <= 20; n++) {
      await site.clock.run(() => site.events.append(1, typeOf), HEARTBEAT_MS + 50.1);
      expect(reader!.heartbeats).toBe(n);
      site.clock.nowMs = 1_040_000 + n / 10;
    }
  });

  it("a stream without room waits alone, and goes on where it was", async () => {
    const site = new Site();
    const readers = await site.openMany(10);
    const [slow, ...others] = readers;
    slow!.fill();
    for (let n = 0; n < 5; n++) await site.clock.run(() => site.events.append(1, typeOf), 100);
    for (const reader of others) expect(reader.sequences).toEqual(upTo(5));
    expect(slow!.sequences, "one page, and no more").toEqual([1]);
    await site.clock.run(() => slow!.empty(), 100);
    expect(slow!.sequences).toEqual(upTo(5));
  });

  it("what is in memory no more is read from the history, and the stream then follows with the others", async () => {
    const site = new Site();
    site.events.append(2_000, typeOf);
    site.events.recentMax = 100;
    const [reader] = await site.openMany(1);
    await site.clock.run(() => site.events.append(1, typeOf), 100);
    expect(reader!.sequences).toEqual(upTo(2_001));
  });

  it("where the node takes over another history every stream ends, and whoever comes next is shown nothing of the old one", async () => {
    const site = new Site();
    site.events.append(3, typeOf);
    const filter = { types: ["build:completed"], entityId: null, entityType: null };
    const [following, filtered] = await site.openMany(2, (n) => (n === 0 ? null : filter));
    expect([following!.sequences, filtered!.sequences]).toEqual([upTo(3), [3]]);
    await site.clock.run(() => site.events.replace(() => "build:failed"), 100);
    await site.clock.run(() => site.events.append(3, typeOf), 100);
    expect([following!.sequences, filtered!.sequences], "they resume, with the hash that they have").toEqual([
      upTo(3),
      [3],
    ]);
    expect(site.places.taken, "they have ended").toBe(0);
    const [again, plain] = await site.openMany(2, (n) => (n === 0 ? filter : null));
    expect(again!.sequences, "event 3 is another one now").toEqual([6]);
    expect(plain!.types).toEqual([
      "build:failed",
      "build:failed",
      "build:failed",
      "build:submitted",
      "build:submitted",
      "build:completed",
    ]);
  });

  it("a page that comes from the disk when the history is another one already leaves nothing for whoever comes next", async () => {
    const site = new Site();
    const { promise, resolve } = Promise.withResolvers<void>();
    site.events.append(3, typeOf);
    Object.assign(site.events, { recentMax: 0, reading: promise });
    const [reading] = await site.openMany(1);
    await site.clock.run(() => site.events.replace(() => "build:failed"), 100);
    await site.clock.run(resolve, 100);
    expect([reading!.sequences, site.places.taken]).toEqual([[], 0]);
    site.events.recentMax = Infinity;
    const [next] = await site.openMany(1);
    expect(next!.types).toEqual(["build:failed", "build:failed", "build:failed"]);
  });

  it("one that has gone, or is not admitted any more, ends and costs nothing afterwards", async () => {
    const site = new Site();
    const admitted = { is: true };
    const refused = await site.open(null, () => admitted.is);
    const [gone, stays] = await site.openMany(2);
    admitted.is = false;
    gone!.leave();
    // It is asked once a second.
    await site.clock.run(() => undefined, 1_000);
    await site.clock.run(() => site.events.append(1, typeOf), 100);
    expect([refused.sequences, gone!.sequences, stays!.sequences]).toEqual([[], [], [1]]);
    expect(site.places.taken).toBe(1);
    await site.clock.run(() => stays!.leave(), 100);
    expect(await Promise.all(site.ends)).toEqual([undefined, undefined, undefined]);
    expect([site.places.taken, site.clock.pending], "no timer is left").toEqual([0, 0]);
  });
});
