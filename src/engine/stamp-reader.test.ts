import { describe, expect, test } from "vitest";
import { encodeStampFile } from "../core/wal/index.ts";
import { readStampOf } from "./stamp-reader.ts";
import { TestDisk } from "./test-disk.ts";
import { digest, open, written } from "./test-storage.ts";

const read = (disk: TestDisk): ReturnType<typeof readStampOf> => readStampOf(disk, digest);
const ours = { clusterId: "c", nodeId: "n1", incarnation: "a1" };

describe("whose a data directory is", () => {
  test("nobody's, where it is empty; what was set aside does not count", async () => {
    const disk = new TestDisk();
    expect(await read(disk)).toBeNull();
    disk.put("damaged-1-wal-0000000001", new Uint8Array(5));
    disk.put("tmp-stamp", new Uint8Array(5));
    expect(await read(disk)).toBeNull();
  });

  test("its stamp says so, and how far its preparation came", async () => {
    const disk = new TestDisk();
    disk.put("stamp", encodeStampFile(ours, "founding", digest));
    expect(await read(disk)).toEqual({ ...ours, phase: "founding", isReady: false });
    for (const phase of ["joining", "replacing", "recovering"] as const) {
      const other = new TestDisk();
      other.put("stamp", encodeStampFile(ours, phase, digest));
      expect(await read(other)).toEqual({ ...ours, phase, isReady: false });
    }
    await open(disk);
    expect(await read(disk)).toEqual({ ...ours, phase: "ready", isReady: true });
  });

  test("a lost or rotten stamp is looked up in the log", async () => {
    for (const spoil of [
      (disk: TestDisk) => disk.drop("stamp"),
      (disk: TestDisk) => {
        disk.bytesOf("stamp")[9]! ^= 1;
      },
    ]) {
      const disk = new TestDisk();
      await written(disk, { segmentBytesMax: 200 });
      spoil(disk);
      expect(await read(disk)).toEqual({ ...ours, phase: "ready", isReady: true });
      disk.put("wal-0000000009", new Uint8Array(3));
      expect(await read(disk)).toEqual({ ...ours, phase: "ready", isReady: true });
    }
  });

  test("a directory that says nothing is not taken for an empty one", async () => {
    const disk = new TestDisk();
    disk.put("snapshot-4-2", new Uint8Array(9));
    await expect(read(disk)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    const rotten = new TestDisk();
    rotten.put("stamp", new Uint8Array(9));
    await expect(read(rotten)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
  });

  test("a later release's is refused", async () => {
    const disk = new TestDisk();
    await written(disk);
    const later = disk.bytesOf("stamp").slice();
    later[9] = 2;
    const view = new DataView(later.buffer, later.byteOffset);
    view.setUint32(4, digest.crc32(later.subarray(8)));
    disk.put("stamp", later);
    await expect(read(disk)).rejects.toMatchObject({ code: "FORMAT_UNSUPPORTED" });
  });
});
