import { describe, expect, test } from "vitest";
import { encodeSnapshotFile } from "../core/wal/index.ts";
import type { Digest } from "../ports/digest.ts";
import { writeDurably } from "./storage-layout.ts";
import { GivingWay } from "./storage-slices.ts";
import { TestDisk } from "./test-disk.ts";
import { ManualClock } from "../loops/test-clock.ts";
import { digest, open, request, snapshotAt, written } from "./test-storage.ts";

const MIB = 1024 * 1024;

/** How much is asked for at a time. */
function measured(): { readonly sums: Digest; readonly asked: number[] } {
  const asked: number[] = [];
  const crc32: Digest["crc32"] = (bytes, seed) => {
    asked.push(bytes.length);
    return digest.crc32(bytes, seed);
  };
  return { sums: { ...digest, crc32 }, asked };
}

describe("a large snapshot", () => {
  const bytes = new Uint8Array(MIB + 5_000).fill(7);

  test("is checksummed a megabyte at a time, and others run in between", async () => {
    const { sums, asked } = measured();
    const clock = new ManualClock();
    const disk = new TestDisk();
    const { storage } = await open(disk, { digest: sums, clock, bootstrap: null });
    asked.length = 0;
    const turns: number[] = [];
    const saved = storage.persist([request({ snapshot: snapshotAt(9, 0) })], bytes);
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      turns.push(asked.filter((size) => size > 1000).reduce((sum, size) => sum + size, 0));
      clock.fireNext();
    }
    await saved;
    expect(turns).toEqual([MIB, MIB + 5_000, MIB + 5_000]);
    expect(Math.max(...asked)).toBe(MIB);

    asked.length = 0;
    const read = storage.readSnapshotFile();
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      clock.fireNext();
    }
    const file = await read;
    expect(file!.meta).toEqual(snapshotAt(9, 0));
    expect(Math.max(...asked)).toBe(MIB);
    expect(file!.bytes).toEqual(encodeSnapshotFile(snapshotAt(9, 0), bytes, sums));
  });

  test("whose records take long to encode has two milliseconds of each turn, however few bytes that is", async () => {
    const clock = new ManualClock();
    const slices = new GivingWay(clock);
    const turns: number[] = [0];
    const records = function* (): Generator<Uint8Array, void, void> {
      for (let record = 0; record < 40; record++) {
        clock.nowMs += 0.5;
        turns[turns.length - 1]! += 0.5;
        yield new Uint8Array(100).fill(record);
      }
    };
    const state = { isOver: false };
    const pause = (bytes: number): Promise<void> | null => slices.pause(bytes);
    const saved = writeDurably(new TestDisk(), "s", records(), "s", { pause }).finally(() => (state.isOver = true));
    while (!state.isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      turns.push(0);
      clock.nowMs++;
      clock.fireNext();
    }
    await saved;
    expect(turns.reduce((sum, one) => sum + one)).toBe(20);
    expect(Math.max(...turns)).toBeLessThanOrEqual(2);
  });

  test("is refused when it is read again and has rotted, whatever byte it is", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    await storage.saveSnapshot(snapshotAt(3, 2), new Uint8Array(40).fill(1), 3);
    const whole = disk.bytesOf("snapshot-3-2").slice();
    expect((await storage.readSnapshotFile())!.bytes).toEqual(whole);
    for (let at = 0; at < whole.length; at++) {
      const rotten = whole.slice();
      rotten[at]! ^= 1;
      disk.put("snapshot-3-2", rotten);
      await expect(storage.readSnapshotFile()).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    }
    for (const size of [0, 5, whole.length - 1]) {
      disk.put("snapshot-3-2", whole.slice(0, size));
      await expect(storage.readSnapshotFile()).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    }
    disk.put("snapshot-3-2", Uint8Array.from([...whole, 0]));
    await expect(storage.readSnapshotFile()).rejects.toMatchObject({ code: "DISK_DAMAGED" });
  });

  test("without one there is no file", async () => {
    const { storage } = await open(new TestDisk(), { bootstrap: null, digest });
    expect(await storage.readSnapshotFile()).toBeNull();
  });
});
