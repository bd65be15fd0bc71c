import { describe, expect, test } from "vitest";
import { BEFORE_FIRST, decodeCapture, encodeCapture } from "../../core/archive/index.ts";
import { Sealer } from "../../core/events/index.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { TestDisk } from "../../engine/test-disk.ts";
import {
  AUTHOR,
  digest,
  expectHistory,
  expectIntact,
  fetchAll,
  filled,
  open,
  sealedEvents,
  sequencesOf,
  TINY,
  verified,
} from "../../../test/archive/test-archive.ts";
import { wholeOf } from "../../core/kit/pieces.ts";

const events = sealedEvents(23);

function segmentFiles(disk: TestDisk): Record<string, string> {
  const names = disk.names().filter((name) => name.startsWith("events-0"));
  return Object.fromEntries(names.map((name) => [name, Buffer.from(disk.bytesOf(name)).toString("hex")]));
}

describe("an archive", () => {
  test("keeps events in segments whose names sort by sequence, and gives them back in order from any sequence on", async () => {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events);
    expect(archive.manifest().segments.map(({ first, last }) => [first, last])).toEqual([
      [1, 5],
      [6, 10],
      [11, 15],
      [16, 20],
    ]);
    expect(Object.keys(segmentFiles(disk))).toEqual(
      [1, 6, 11, 16, 21].map((first) => `events-${String(first).padStart(16, "0")}`),
    );
    await expectHistory(archive, events);
    for (let from = 1; from <= 23; from++) {
      expect(await sequencesOf(archive, from)).toEqual(Array.from({ length: 24 - from }, (_, i) => from + i));
    }
    expect(await sequencesOf(archive, 4, 8)).toEqual([4, 5, 6, 7, 8, 9, 10, 11]);
    expect(await sequencesOf(archive, 24)).toEqual([]);
    await expectIntact(archive, 23);
  });

  test("makes the same files whatever the batches, the syncs and the restarts", async () => {
    const whole = new TestDisk();
    await filled(whole, events);
    const pieces = new TestDisk();
    let { archive } = await open(pieces);
    for (let i = 0; i < events.length; i++) {
      archive.append([events[i]!]);
      if (i % 3 === 0) await archive.durable(i + 1);
      if (i % 4 !== 0) continue;
      await archive.close();
      ({ archive } = await open(pieces));
    }
    await archive.close();
    expect(segmentFiles(pieces)).toEqual(segmentFiles(whole));
  });

  test("serves what is applied at once, and says what of it is durable", async () => {
    const disk = new TestDisk();
    const { archive, clock } = await open(disk);
    archive.append(events.slice(0, 7));
    expect(archive.durableThrough).toBe(0);
    await expectHistory(archive, events.slice(0, 7));
    expect(disk.names()).toEqual([]);
    clock.nowMs += 199;
    expect(clock.fireNext()).toBe(false);
    clock.nowMs += 1;
    expect(clock.fireNext()).toBe(true);
    await archive.durable(0);
    await expect.poll(() => archive.durableThrough).toBe(7);
    expect(archive.stats()).toMatchObject({ lastSequence: 7, segments: 1, unsyncedBytes: 0, isBehind: false });
  });

  test("does not wait for the timer where many bytes are not synced", async () => {
    const { archive, clock } = await open(new TestDisk(), { limits: { ...TINY, bytesMax: 8 * 1024 * 1024 } });
    archive.append(sealedEvents(3, AUTHOR, 400_000));
    expect(clock.nextMs).toBe(clock.nowMs);
  });

  test("skips what it has when a log is replayed, and refuses another event in the place of one that it has", async () => {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events);
    archive.append(events);
    await archive.durable(23);
    await expectHistory(archive, events);
    const other = sealedEvents(23, "c1.1");
    expect(() => archive.append(other.slice(20))).toThrow(/event 21 does not continue the chain/);
    expect(() => archive.append([sealedEvents(25)[24]!])).toThrow(/invariant/);
  });

  test("refuses a log that is not its own as soon as that reaches the end of a segment", async () => {
    const { archive } = await filled(new TestDisk(), events);
    const foreign = sealedEvents(23, "another");
    archive.append(foreign.slice(0, 4));
    expect(() => archive.append(foreign.slice(4, 5))).toThrow(/event 5 .*another event in its place/);
  });

  test("refuses another event in the place of one in its open segment at once, before any that follows", async () => {
    const { archive } = await filled(new TestDisk(), events);
    archive.append(events.slice(20, 22));
    expect(() => archive.append(sealedEvents(23, "another").slice(21, 22))).toThrow(
      /event 22 .*another event in its place/,
    );
  });

  test("ends with its process when a sync fails: nothing is tried again (trap 23)", async () => {
    const disk = new TestDisk();
    const { archive, failures } = await open(disk);
    archive.append(events.slice(0, 3));
    disk.failNext("archive-fdatasync", new Error("EIO"));
    await expect(archive.durable(3)).rejects.toThrow(/could not be synced.*EIO/);
    expect(failures).toHaveLength(1);
    expect(archive.durableThrough).toBe(0);
    expect(() => archive.append(events.slice(3))).toThrow(/usable/);
    await archive.close();
  });

  test("calls durable only what survives a power loss, also what a killed process had written and not synced", async () => {
    const disk = new TestDisk();
    const { archive } = await open(disk);
    archive.append(events.slice(0, 3));
    await archive.durable(3);
    archive.append(events.slice(3, 4));
    // In the sync: the bytes are visible, and not durable.
    disk.crashAt(2);
    await expect(archive.durable(4)).rejects.toThrow();
    disk.restart("process", seededRandom(1));
    const second = await open(disk);
    expect(second.archive.durableThrough).toBe(4);
    disk.restart("vanish", seededRandom(1));
    expect((await open(disk)).archive.lastSequence).toBe(4);
  });

  test("starts a segment where the author changes, because a header names one", async () => {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events.slice(0, 7));
    const { event } = events[6]!;
    const head = { sequence: 7, hash: event.eventHash, timestamp: event.timestamp };
    const sealer = new Sealer({ head, sourceControllerId: "c1.1", leaderEpoch: 2, digest });
    const draft = {
      id: "x",
      eventType: "controller:recovered",
      entityId: "c1",
      entityType: "controller",
      payload: {},
    } as const;
    const later = [sealer.seal({ ...draft, timestamp: 1 }), sealer.seal({ ...draft, timestamp: 1 })];
    archive.append(later);
    await archive.close();
    const again = await open(disk);
    expect(again.archive.manifest().segments.map(({ first, last }) => [first, last])).toEqual([
      [1, 5],
      [6, 7],
    ]);
    await expectHistory(again.archive, [...events.slice(0, 7), ...later]);
    await expectIntact(again.archive, 9);
  });

  test("reads segments that its catalog lists only when they are needed", async () => {
    const disk = new TestDisk();
    await (await filled(disk, events)).archive.close();
    disk.calls.length = 0;
    await open(disk);
    expect(disk.calls.filter((call) => call.startsWith("archive-read "))).toEqual([
      "archive-read events-0000000000000021",
    ]);
  });
});

describe("a snapshot", () => {
  test("is captured only when all that it covers is durable", async () => {
    const disk = new TestDisk();
    const { archive } = await open(disk);
    archive.append(events.slice(0, 8));
    const capture = archive.capture();
    archive.append(events.slice(8, 9));
    const bytes = await capture;
    expect(archive.durableThrough).toBeGreaterThanOrEqual(8);
    const empty = await open(new TestDisk());
    await empty.archive.restore(bytes);
    expect(empty.archive.lastSequence).toBe(8);
  });

  test("gives an empty node the open segment and the list of the others, which it fetches; then all bytes are the same", async () => {
    const from = new TestDisk();
    const source = await filled(from, events.slice(0, 18));
    const capture = wholeOf(await source.archive.capture());
    source.archive.append(events.slice(18));
    const to = new TestDisk();
    const node = await open(to);
    let told = 0;
    node.archive.onMissing(() => told++);
    const restored = node.archive.restore(capture);
    // What comes after the snapshot is applied at once.
    node.archive.append(events.slice(18));
    await restored;
    expect(told).toBe(1);
    expect(node.archive.isComplete).toBe(false);
    expect(node.archive.missing().map(({ first }) => first)).toEqual([1, 6, 11]);
    expect(await sequencesOf(node.archive, 16)).toEqual([16, 17, 18, 19, 20, 21, 22, 23]);
    await expect(sequencesOf(node.archive, 15)).rejects.toThrow(/event 15 is not in this node's archive.*asked for it/);
    expect((await verified(node.archive)).filter(({ kind }) => kind === "missing")).toHaveLength(3);

    await fetchAll(node.archive, source.archive);
    expect(node.archive.isComplete).toBe(true);
    await node.archive.close();
    await source.archive.close();
    expect(segmentFiles(to)).toEqual(segmentFiles(from));
    const again = await open(to);
    await expectHistory(again.archive, events);
    await expectIntact(again.archive, 23);
  });

  test("overtakes a slow node: what it has of a segment that others sealed is replaced as a whole", async () => {
    const source = await filled(new TestDisk(), events);
    const disk = new TestDisk();
    const slow = await filled(disk, events.slice(0, 8));
    await slow.archive.restore(wholeOf(await source.archive.capture()));
    expect(slow.archive.missing().map(({ first }) => first)).toEqual([6, 11, 16]);
    await slow.archive.close();
    // It may start again before it is complete.
    const again = await open(disk);
    expect(again.archive.missing().map(({ first }) => first)).toEqual([6, 11, 16]);
    await fetchAll(again.archive, source.archive);
    await expectHistory(again.archive, events);
    await expectIntact(again.archive, 23);
  });

  test("takes over while older events wait to be written, and none of the newer ones is set aside", async () => {
    const source = await filled(new TestDisk(), events);
    const disk = new TestDisk();
    const { archive } = await open(disk);
    archive.append(events.slice(0, 4));
    const waiting = archive.durable(4);
    const restored = archive.restore(wholeOf(await source.archive.capture()));
    const later = sealedEvents(40);
    archive.append(later.slice(23));
    await Promise.all([waiting, restored, archive.durable(40)]);
    await fetchAll(archive, source.archive);
    await expectHistory(archive, later);
    expect(disk.names().filter((name) => !name.startsWith("events-"))).toEqual([]);
    await archive.close();
    await expectHistory((await open(disk)).archive, later);
  });

  test("that takes over before sealed segments are written leaves them to be fetched", async () => {
    const source = await filled(new TestDisk(), events);
    const { archive } = await open(new TestDisk());
    archive.append(events.slice(0, 12));
    await archive.restore(wholeOf(await source.archive.capture()));
    expect(archive.missing().map(({ first }) => first)).toEqual([1, 6, 11, 16]);
    await fetchAll(archive, source.archive);
    await expectHistory(archive, events);
  });

  test("that takes over never has less on the disk of the open segment than there was, wherever it crashes", async () => {
    const source = await filled(new TestDisk(), events);
    const capture = wholeOf(await source.archive.capture());
    let crashes = 0;
    for (let at = 2; ; at++) {
      const disk = new TestDisk();
      const { archive } = await filled(disk, events.slice(0, 22));
      const call = Math.floor(at / 2);
      disk.crashAt(call);
      const isDone = await archive.restore(capture).then(
        () => true,
        () => false,
      );
      if (isDone) break;
      crashes++;
      disk.restart(at % 2 === 0 ? "vanish" : "keep", seededRandom(call));
      expect((await open(disk)).archive.lastSequence).toBeGreaterThanOrEqual(22);
    }
    expect(crashes).toBeGreaterThan(16);
  });

  test("that is older than the archive changes nothing", async () => {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events.slice(0, 13));
    const capture = wholeOf(await archive.capture());
    archive.append(events.slice(13));
    await archive.durable(23);
    const calls = disk.calls.length;
    await archive.restore(capture);
    expect(disk.calls.length).toBe(calls);
    await archive.close();
    const again = await open(disk);
    await again.archive.restore(capture);
    again.archive.append(events.slice(13));
    await expectHistory(again.archive, events);
  });

  test("of another line replaces all that differs", async () => {
    const other = sealedEvents(23, "c1.1");
    const source = await filled(new TestDisk(), other);
    const disk = new TestDisk();
    const node = await filled(disk, events);
    await node.archive.restore(wholeOf(await source.archive.capture()));
    await fetchAll(node.archive, source.archive);
    await expectHistory(node.archive, other);
  });

  test("of an empty archive is one too", async () => {
    const source = await open(new TestDisk());
    const node = await open(new TestDisk());
    await node.archive.restore(wholeOf(await source.archive.capture()));
    node.archive.append(events);
    await expectHistory(node.archive, events);
  });
});

describe("retention", () => {
  test("cuts whole segments behind a checkpoint, and history starts there", async () => {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events);
    const checkpoint = await archive.pointAt(12);
    const before = archive.stats().usedBytes;
    const freed = await archive.retain(checkpoint);
    expect(freed).toBeGreaterThan(0);
    expect(archive.stats()).toMatchObject({ usedBytes: before - freed, startSequence: 10, segments: 2 });
    expect(Object.keys(segmentFiles(disk))).toHaveLength(3);
    await expect(sequencesOf(archive, 10)).rejects.toThrow(/event 10 is behind the checkpoint/);
    await expectHistory(archive, events, 11);
    await expectIntact(archive, 13);
    await archive.close();
    const again = await open(disk);
    await expectIntact(again.archive, 13);
    expect(await again.archive.retain(checkpoint)).toBe(0);
    // A node that joins now is not told of what is gone.
    const node = await open(new TestDisk());
    await node.archive.restore(wholeOf(await again.archive.capture()));
    await fetchAll(node.archive, again.archive);
    await expectHistory(node.archive, events, 11);
    await expectIntact(node.archive, 13);
  });

  test("refuses a checkpoint that is not of this chain, or is not here yet", async () => {
    const { archive } = await filled(new TestDisk(), events);
    const checkpoint = await archive.pointAt(12);
    const other = await (await filled(new TestDisk(), sealedEvents(23, "c1.1"))).archive.pointAt(12);
    await expect(archive.retain(other)).rejects.toThrow(/event 12 .*checkpoint/);
    await expect(archive.retain({ ...checkpoint, frontier: other.frontier })).rejects.toThrow(/event 12/);
    await expect(archive.retain({ ...checkpoint, sequence: 99 })).rejects.toThrow(
      /event 99 is not in this node's archive/,
    );
    expect(archive.stats().startSequence).toBe(0);
    expect(await archive.retain(BEFORE_FIRST)).toBe(0);
  });

  test("waits until what it cuts is durable, so that a crash never leaves a start without its history", async () => {
    const disk = new TestDisk();
    const { archive } = await open(disk);
    archive.append(events);
    await archive.retain(await archive.pointAt(12));
    expect(archive.durableThrough).toBe(23);
    expect(Object.keys(segmentFiles(disk))).toHaveLength(3);
    await expectIntact(archive, 13);
  });

  test("at the end of a segment, and of everything that there is", async () => {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events.slice(0, 10));
    await archive.retain(await archive.pointAt(10));
    expect(archive.stats()).toMatchObject({ startSequence: 10, lastSequence: 10, segments: 0 });
    await archive.close();
    const again = await open(disk);
    expect(again.archive.lastSequence).toBe(10);
    again.archive.append(events.slice(10));
    await expectHistory(again.archive, events, 11);
    await expectIntact(again.archive, 13);
  });

  test("a history that does not lead to its checkpoint is found by verify", async () => {
    const source = await filled(new TestDisk(), events);
    await source.archive.retain(await source.archive.pointAt(12));
    const capture = decodeCapture(wholeOf(await source.archive.capture()));
    const node = await open(new TestDisk());
    const other = await (await filled(new TestDisk(), sealedEvents(23, "c1.1"))).archive.pointAt(12);
    await node.archive.restore(encodeCapture({ ...capture, checkpoint: other }));
    await fetchAll(node.archive, source.archive);
    const steps = await verified(node.archive);
    expect(steps.filter(({ kind }) => kind === "broken")).toMatchObject([
      { sequence: 12, why: expect.stringMatching("checkpoint") },
    ]);
    // Another copy would be the same: it is not fetched again.
    expect(node.archive.isComplete).toBe(true);
  });
});

describe("the quota", () => {
  test("has its alarm at 80 % and refuses at 95 %", async () => {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events);
    const { usedBytes, level } = archive.stats();
    expect(level).toBe("ok");
    expect(usedBytes).toBe(Object.values(segmentFiles(disk)).reduce((sum, hex) => sum + hex.length / 2, 0));
    await archive.close();
    const levelAt = async (quotaBytes: number): Promise<string> =>
      (await open(disk, { quotaBytes })).archive.stats().level;
    expect(await levelAt(Math.floor(usedBytes / 0.8) + 3)).toBe("ok");
    expect(await levelAt(Math.floor(usedBytes / 0.8))).toBe("alarm");
    expect(await levelAt(Math.floor(usedBytes / 0.95) + 3)).toBe("alarm");
    expect(await levelAt(Math.floor(usedBytes / 0.95))).toBe("refuse");
  });
});
