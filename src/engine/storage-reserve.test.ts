import { describe, expect, test } from "vitest";
import { WAL_RESERVE_SYNC_BYTES_MAX } from "../core/kit/limits.ts";
import { readSegmentHeader, recover, type Recovery } from "../core/wal/index.ts";
import { readDirectory } from "./storage-layout.ts";
import type { Storage } from "./storage.ts";
import { TestDisk } from "./test-disk.ts";
import { digest, entry, hardState, logEndOf, open, request, snapshotAt, verdictOn, written } from "./test-storage.ts";

const TAIL = "wal-0000000001";
const SECTOR_BYTES = 16;
const reserving = { reserveBytes: 1_000 };

function append(storage: Storage, index: number, text?: string, mustSync = true): Promise<void> {
  return storage.persist([request({ entries: [entry(index, 3, text)], mustSync })], null);
}

function callsOf(disk: TestDisk, label: string): number {
  return disk.calls.filter((call) => call.startsWith(`${label} `)).length;
}

function lastIndexOf(verdict: Recovery): number | undefined {
  return verdict.kind === "intact" ? verdict.entries.at(-1)?.index : undefined;
}

describe("reserving", () => {
  test("writes zeros ahead once, and the next writes take their place", async () => {
    const disk = new TestDisk();
    const storage = await written(disk, reserving);
    const sizeBytes = disk.bytesOf(TAIL).length;
    expect(sizeBytes).toBeGreaterThan(1_000);
    for (let index = 6; index < 10; index++) await append(storage, index);
    expect(callsOf(disk, "wal-reserve")).toBe(1);
    expect(disk.bytesOf(TAIL).length).toBe(sizeBytes);
    // Used up: the write that makes the file longer anyway reserves again.
    await append(storage, 10, "x".repeat(900));
    expect(callsOf(disk, "wal-reserve")).toBe(2);
    expect(disk.bytesOf(TAIL).length).toBe(logEndOf(disk.bytesOf(TAIL)) + 1_000);
    expect((await open(disk)).entries.map(({ index }) => index)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test("is left out by a large sync, which would write everything twice", async () => {
    const disk = new TestDisk();
    const storage = await written(disk, { reserveBytes: 10 });
    const reserved = callsOf(disk, "wal-reserve");
    await append(storage, 6, "x".repeat(WAL_RESERVE_SYNC_BYTES_MAX));
    expect(callsOf(disk, "wal-reserve")).toBe(reserved);
    await append(storage, 7, "x".repeat(100));
    expect(callsOf(disk, "wal-reserve")).toBe(reserved + 1);
  });

  test("stays within the size at which a segment is full", async () => {
    const disk = new TestDisk();
    const { storage } = await open(disk, { segmentBytesMax: 500, ...reserving });
    for (let index = 2; index < 30; index++) {
      await storage.persist([request({ hardState: hardState(3, 1), entries: [entry(index, 3)] })], null);
      const sizes = disk.names().map((name) => (name.startsWith("wal-") ? disk.bytesOf(name).length : 0));
      expect(Math.max(...sizes)).toBeLessThan(600);
    }
    expect(disk.names()).toContain("wal-0000000004");
    expect(callsOf(disk, "wal-reserve")).toBeGreaterThan(3);
  });

  test("ends with a segment, which is cut to its size, durably, before the next one is created", async () => {
    const disk = new TestDisk();
    const storage = await written(disk, reserving);
    const sizeBytes = logEndOf(disk.bytesOf(TAIL));
    expect(disk.bytesOf(TAIL).length).toBeGreaterThan(sizeBytes);
    const callsBefore = disk.calls.length;
    await storage.saveSnapshot(snapshotAt(3, 2), new Uint8Array(0), 2);
    const calls = disk.calls.slice(callsBefore).filter((call) => call.includes("wal-"));
    expect(calls.slice(0, 3)).toEqual([`wal-trim ${TAIL}`, `wal-fdatasync ${TAIL}`, "wal-create wal-0000000002"]);
    expect(disk.bytesOf(TAIL).length).toBe(sizeBytes);
    expect(readSegmentHeader(disk.bytesOf("wal-0000000002"), digest).header!.previousBytes).toBe(sizeBytes);
    expect((await verdictOn(disk)).kind).toBe("intact");
  });

  test("is given up for the rest of a segment where there is no room, and what was left behind is cut off", async () => {
    const disk = new TestDisk();
    disk.hasRoom = false;
    const storage = await written(disk, reserving);
    await append(storage, 6);
    expect(callsOf(disk, "wal-reserve")).toBe(1);
    const sizeBytes = logEndOf(disk.bytesOf(TAIL));
    expect(disk.bytesOf(TAIL).length).toBeGreaterThan(sizeBytes);
    disk.hasRoom = true;
    await storage.saveSnapshot(snapshotAt(3, 2), new Uint8Array(0), 2);
    expect(disk.bytesOf(TAIL).length).toBe(sizeBytes);
    await append(storage, 7);
    expect(callsOf(disk, "wal-reserve")).toBe(2);
    expect((await open(disk)).entries.at(-1)!.index).toBe(7);
  });

  test("ends with the storage; where the process was killed instead, the next one finds the end, and nothing torn", async () => {
    const closed = new TestDisk();
    await (await written(closed, reserving)).close();
    expect(closed.bytesOf(TAIL).length).toBe(logEndOf(closed.bytesOf(TAIL)));
    const killed = new TestDisk();
    await written(killed, reserving);
    expect(killed.bytesOf(TAIL).length).toBeGreaterThan(logEndOf(killed.bytesOf(TAIL)));
    for (const disk of [closed, killed]) {
      const opened = await open(disk, reserving);
      expect(opened.recovery).toBe("intact");
      expect(opened.entries.at(-1)!.index).toBe(5);
      await append(opened.storage, 6);
      expect(lastIndexOf(await verdictOn(disk))).toBe(6);
    }
  });

  test("keeps what a torn write has left out of the next one: it is cut off, durably, before a byte is appended", async () => {
    const disk = new TestDisk();
    const storage = await written(disk, reserving);
    const from = logEndOf(disk.bytesOf(TAIL));
    await append(storage, 6, "stale", false);
    const firstBytes = logEndOf(disk.bytesOf(TAIL)) - from;
    await append(storage, 7, "stale", false);
    // The first of the two never reached the platter, the second did: a batch of that size would join the two.
    const bytes = disk.bytesOf(TAIL).slice();
    bytes.fill(0, from, from + firstBytes);
    disk.put(TAIL, bytes);
    const callsBefore = disk.calls.length;
    const opened = await open(disk, reserving);
    expect(opened.recovery).toBe("torn-tail-cut");
    const calls = disk.calls.slice(callsBefore).filter((call) => call.endsWith(TAIL) && !call.startsWith("wal-read"));
    expect(calls.slice(0, 4)).toEqual([
      `wal-open ${TAIL}`,
      `wal-truncate ${TAIL}`,
      `wal-fdatasync ${TAIL}`,
      `wal-append ${TAIL}`,
    ]);
    expect(new TextDecoder().decode(disk.bytesOf(TAIL))).not.toContain("stale");
  });
});

describe("a crash in a write to reserved room", () => {
  /** What is durable, and the same with one more batch of three entries. */
  async function beforeAndAfter(): Promise<{ disk: TestDisk; before: Uint8Array; after: Uint8Array }> {
    const disk = new TestDisk();
    const storage = await written(disk, reserving);
    const before = disk.bytesOf(TAIL).slice();
    await storage.persist([request({ entries: [entry(6, 3), entry(7, 3), entry(8, 3)] })], null);
    const after = disk.bytesOf(TAIL).slice();
    expect(after.length).toBe(before.length);
    return { disk, before, after };
  }

  test("trap 24: with any of its sectors there or not, leaves all that was acknowledged, and of it a beginning", async () => {
    const { disk, before, after } = await beforeAndAfter();
    const input = { clusterId: "c", nodeId: "n1", ...(await readDirectory(disk)) };
    const firstSector = Math.floor(logEndOf(before) / SECTOR_BYTES);
    const sectors = Math.ceil(logEndOf(after) / SECTOR_BYTES) - firstSector;
    expect(sectors).toBeGreaterThan(6);
    const seen = { clean: 0, torn: 0, whole: 0 };
    for (let there = 0; there < 2 ** sectors; there++) {
      const bytes = before.slice();
      for (let i = 0; i < sectors; i++) {
        if ((there & (1 << i)) === 0) continue;
        const start = (firstSector + i) * SECTOR_BYTES;
        bytes.set(after.subarray(start, start + SECTOR_BYTES), start);
      }
      const verdict = recover({ ...input, segments: [{ name: TAIL, number: 1, bytes }] }, digest);
      if (verdict.kind !== "intact") expect.fail(`sectors ${there.toString(2)}: ${verdict.kind}`);
      const last = verdict.entries.at(-1)!.index;
      expect(verdict.entries.map(({ index }) => index)).toEqual([2, 3, 4, 5, 6, 7, 8].slice(0, last - 1));
      expect(last).toBeGreaterThanOrEqual(5);
      if (there === 0) expect(verdict.cut).toMatchObject({ isTorn: false });
      if (verdict.cut!.isTorn) seen.torn++;
      else if (last === 8) seen.whole++;
      else seen.clean++;
    }
    expect(seen.whole).toBeGreaterThan(0);
    expect(seen.torn).toBeGreaterThan(2 ** sectors - 20);
  });

  test("trap 24: cut at any byte, and with any of the zeros behind it missing, is the same", async () => {
    const { disk, before, after } = await beforeAndAfter();
    for (let at = logEndOf(before); at <= logEndOf(after); at++) {
      for (const sizeBytes of [at, at + 1, at + 13, at + 14, at + 15, after.length]) {
        const bytes = after.slice(0, sizeBytes);
        bytes.fill(0, at);
        disk.put(TAIL, bytes);
        const verdict = await verdictOn(disk);
        if (verdict.kind !== "intact") expect.fail(`cut at ${at} of ${sizeBytes}: ${verdict.kind}`);
        expect(verdict.entries.length).toBeGreaterThanOrEqual(4);
        expect(verdict.entries.length === 7).toBe(at === logEndOf(after));
      }
    }
  });
});

describe("damage in front of reserved zeros", () => {
  /** Ten synced batches of one entry each in one segment, and where each of them begins. */
  async function ten(): Promise<{ disk: TestDisk; starts: number[] }> {
    const disk = new TestDisk();
    const storage = await written(disk, { reserveBytes: 5_000 });
    const starts: number[] = [];
    for (let index = 6; index < 16; index++) {
      starts.push(logEndOf(disk.bytesOf(TAIL)));
      await append(storage, index);
    }
    return { disk, starts };
  }

  test("trap 24: zeros in the middle are no end: where a synced batch was lost, the next one testifies to it", async () => {
    const { disk, starts } = await ten();
    const whole = disk.bytesOf(TAIL).slice();
    const last = starts.length - 1;
    for (let from = 0; from < last; from++) {
      for (let to = from + 1; to <= last; to++) {
        for (const end of [starts[to]!, starts[from]! + 1, starts[to]! - 1]) {
          disk.put(TAIL, whole.slice().fill(0, starts[from], end));
          expect(await verdictOn(disk)).toMatchObject({ kind: "damaged", where: `${TAIL} at ${starts[from]}` });
        }
      }
    }
    // What nobody can decide, with or without a reservation: the last batch, with nothing after it (decision 0002).
    disk.put(TAIL, whole.slice().fill(0, starts[last]));
    expect(lastIndexOf(await verdictOn(disk))).toBe(14);
  });

  test("trap 24: every flipped bit in front of the last batch is found", async () => {
    const { disk, starts } = await ten();
    const input = { clusterId: "c", nodeId: "n1", ...(await readDirectory(disk)) };
    const { bytes } = input.segments[0]!;
    for (let at = 0; at < starts.at(-1)!; at++) {
      bytes[at]! ^= 1 << (at % 8);
      const verdict = recover(input, digest);
      if (verdict.kind !== "damaged") expect.fail(`at ${at}: ${verdict.kind}`);
      bytes[at]! ^= 1 << (at % 8);
    }
    expect(recover(input, digest)).toMatchObject({ kind: "intact", cut: { isTorn: false } });
  });

  test("a flipped bit among the zeros loses nothing: it is cut off with them", async () => {
    const { disk } = await ten();
    const end = logEndOf(disk.bytesOf(TAIL));
    for (const at of [end, end + 1, end + 777, disk.bytesOf(TAIL).length - 1]) {
      const copy = disk.clone();
      copy.bytesOf(TAIL)[at]! ^= 0x40;
      const opened = await open(copy, reserving);
      expect(opened.recovery).toBe("torn-tail-cut");
      expect(opened.entries.at(-1)!.index).toBe(15);
    }
  });

  test("zeros behind a segment that has a next one are damage: it was cut to its size before that", async () => {
    const disk = new TestDisk();
    const { storage } = await open(disk, { segmentBytesMax: 400, ...reserving });
    for (let index = 2; index < 12; index++)
      await storage.persist([request({ hardState: hardState(3, 1), entries: [entry(index, 3)] })], null);
    expect((await verdictOn(disk)).kind).toBe("intact");
    const first = disk.bytesOf(TAIL);
    for (const zeros of [1, 20, 600]) {
      disk.put(TAIL, Uint8Array.from([...first, ...new Uint8Array(zeros)]));
      expect(await verdictOn(disk)).toMatchObject({ kind: "damaged" });
    }
    const alone = new TestDisk();
    await written(alone, reserving);
    alone.put("wal-0000000002", new Uint8Array(0));
    expect(await verdictOn(alone)).toMatchObject({ kind: "damaged" });
  });
});
