import { describe, expect, test } from "vitest";
import { recover } from "../core/wal/index.ts";
import { readDirectory } from "./storage-layout.ts";
import { TestDisk } from "./test-disk.ts";
import {
  bootstrap,
  bytesOf,
  digest,
  entry,
  hardState,
  open,
  request,
  snapshotAt,
  verdictOn,
  written,
} from "./test-storage.ts";

describe("damage", () => {
  /** Segments 1 to 4 and more, of which nothing is obsolete. */
  async function long(): Promise<TestDisk> {
    const disk = new TestDisk();
    const { storage } = await open(disk, { segmentBytesMax: 300 });
    for (let index = 2; index <= 20; index++) {
      await storage.persist([request({ hardState: hardState(2, index - 1), entries: [entry(index, 2)] })], null);
    }
    return disk;
  }

  test("a damaged disk is set aside, and the node is another peer that is empty and no founder", async () => {
    const disk = new TestDisk();
    await written(disk);
    disk.bytesOf("wal-0000000001")[5]! ^= 1;
    const evidence = disk.bytesOf("wal-0000000001").slice();
    const opened = await open(disk);
    expect(opened.recovery).toBe("damaged-set-aside");
    expect(opened.damage).toContain("wal-0000000001");
    expect(opened.peer).not.toBe("n1@a1");
    expect(opened.hardState).toEqual({ term: 0, vote: null, commit: 0 });
    expect(opened.snapshot).toBeNull();
    expect(opened.entries).toEqual([]);
    expect(disk.bytesOf("damaged-1-wal-0000000001")).toEqual(evidence);
    const again = await open(disk);
    expect(again.recovery).toBe("intact");
    expect(again.peer).toBe(opened.peer);
  });

  test("the only server refuses its damaged disk with what to do, and changes nothing; one with others says what it set aside", async () => {
    const disk = new TestDisk();
    await written(disk);
    disk.bytesOf("wal-0000000001")[5]! ^= 1;
    const names = disk.names();
    const told: string[] = [];
    const onSetAside = (damage: string): void => void told.push(damage);
    await expect(open(disk, { isAlone: true, onSetAside })).rejects.toMatchObject({
      code: "DISK_DAMAGED",
      message: expect.stringMatching(/wal-0000000001.*Nothing was changed.*tenure server restore.*`peers`/),
    });
    expect([disk.names(), told]).toEqual([names, []]);
    expect((await open(disk, { isAlone: false, onSetAside })).recovery).toBe("damaged-set-aside");
    expect(told).toEqual([expect.stringContaining("wal-0000000001")]);
  });

  test("a directory of which only what was set aside is left is not founded again", async () => {
    const disk = new TestDisk();
    await written(disk);
    disk.bytesOf("wal-0000000001")[5]! ^= 1;
    await open(disk);
    for (const name of disk.names()) if (!name.startsWith("damaged-")) disk.drop(name);
    expect((await open(disk)).hardState.term).toBe(0);
  });

  test("a missing, shortened, swapped or emptied segment before the last one is damage", async () => {
    const names = (await long()).names().filter((name) => name.startsWith("wal-"));
    expect(names.length).toBeGreaterThan(3);
    const spoils: ((disk: TestDisk, name: string) => void)[] = [
      (disk, name) => disk.drop(name),
      (disk, name) => disk.put(name, disk.bytesOf(name).slice(0, -1)),
      (disk, name) => disk.put(name, new Uint8Array(0)),
      (disk, name) => disk.put(name, disk.bytesOf(names.at(-1)!)),
    ];
    for (const name of names.slice(0, -1)) {
      for (const spoil of spoils) {
        const disk = await long();
        spoil(disk, name);
        expect(await verdictOn(disk)).toMatchObject({ kind: "damaged" });
      }
    }
  });

  test("an early segment that ends at a frame's border is damage, although every frame in it is whole", async () => {
    const disk = await long();
    const [first] = disk.names().filter((name) => name.startsWith("wal-"));
    const bytes = disk.bytesOf(first!);
    let last = 0;
    for (let at = 0; at < bytes.length; at += 14 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(at + 10))
      last = at;
    disk.put(first!, bytes.slice(0, last));
    expect(await verdictOn(disk)).toMatchObject({ kind: "damaged", where: first });
  });

  test("a last segment that never got a durable header is dropped", async () => {
    for (const sizeBytes of [0, 1, 20]) {
      const disk = await long();
      const names = disk.names().filter((name) => name.startsWith("wal-"));
      const header = disk.bytesOf(names.at(-1)!).slice(0, sizeBytes);
      const next = `wal-${String(names.length + 1).padStart(10, "0")}`;
      disk.put(next, header);
      const opened = await open(disk);
      expect(opened.recovery).toBe("torn-tail-cut");
      expect(opened.entries.at(-1)?.index).toBe(20);
      expect(disk.names()).not.toContain(next);
    }
  });

  test("a last segment whose header rotted is damage where a batch knew it to be durable", async () => {
    const disk = await long();
    disk.bytesOf(
      disk
        .names()
        .filter((name) => name.startsWith("wal-"))
        .at(-1)!,
    )[3]! ^= 1;
    expect(await verdictOn(disk)).toMatchObject({ kind: "damaged" });
  });

  test("a ready directory without segments is damage, not a fresh one", async () => {
    const disk = new TestDisk();
    await written(disk);
    disk.drop("wal-0000000001");
    expect((await open(disk)).recovery).toBe("damaged-set-aside");
  });

  test("trap 24: every byte that a later batch testifies to is guarded: one flipped bit is damage", async () => {
    const disk = new TestDisk();
    const { storage } = await open(disk, { segmentBytesMax: 400 });
    for (let index = 2; index <= 9; index++) {
      await storage.persist([request({ hardState: hardState(2, index - 1), entries: [entry(index, 2)] })], null);
    }
    await storage.saveSnapshot(snapshotAt(6, 2), bytesOf("state"), 3);
    await storage.persist([request({ entries: [entry(10, 2)] })], null);
    const tail = disk.names().findLast((name) => name.startsWith("wal-"))!;
    const testifiedBytes = disk.bytesOf(tail).length;
    await storage.persist([request({ entries: [entry(11, 2)] })], null);
    const input = { clusterId: "c", nodeId: "n1", ...(await readDirectory(disk)) };
    expect(input.segments.length).toBeGreaterThan(1);
    let flips = 0;
    for (const name of disk.names()) {
      const bytes = [...input.segments, ...input.snapshots].find((file) => file.name === name)?.bytes ?? input.stamp!;
      const until = name === tail ? testifiedBytes : bytes.length;
      for (let at = 0; at < until; at++) {
        const mask = 1 << (at % 8);
        bytes[at]! ^= mask;
        const verdict = recover(input, digest);
        if (verdict.kind !== "damaged") expect.fail(`${name} at ${at}: ${verdict.kind}`);
        bytes[at]! ^= mask;
        flips++;
      }
    }
    expect(recover(input, digest).kind).toBe("intact");
    expect(flips).toBeGreaterThan(1000);
  });

  test("trap 24: cut anywhere, the last segment keeps its earlier batches or is damage", async () => {
    const disk = new TestDisk();
    const { storage } = await open(disk, { segmentBytesMax: 500 });
    const ends: { size: number; index: number }[] = [];
    const tailName = (): string => disk.names().findLast((name) => name.startsWith("wal-"))!;
    for (let index = 2; index <= 12; index++) {
      await storage.persist([request({ hardState: hardState(2, index - 1), entries: [entry(index, 2)] })], null);
      ends.push({ size: disk.bytesOf(tailName()).length, index });
    }
    const tail = tailName();
    const whole = disk.bytesOf(tail);
    const inTail = ends.slice(ends.findLastIndex((end, i) => end.size < (ends[i - 1]?.size ?? 0)));
    const outcomes = new Set<string>();
    for (let size = 0; size < whole.length; size++) {
      disk.put(tail, whole.slice(0, size));
      const verdict = await verdictOn(disk);
      outcomes.add(verdict.kind);
      if (verdict.kind !== "intact") continue;
      const complete = inTail.findLast((end) => end.size <= size)?.index ?? inTail[0]!.index - 1;
      expect(verdict.entries.at(-1)!.index).toBeGreaterThanOrEqual(complete);
      expect(verdict.hardState.commit).toBeGreaterThanOrEqual(complete - 1);
    }
    expect([...outcomes]).toEqual(["intact"]);
  });

  test("trap 24: a complete frame with a wrong checksum in the unsynced batch is a torn write, and is cut", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    const from = disk.bytesOf("wal-0000000001").length;
    await storage.persist([request({ entries: [entry(6, 3), entry(7, 3), entry(8, 3)] })], null);
    const whole = disk.bytesOf("wal-0000000001");
    for (let at = from; at < whole.length; at++) {
      const copy = disk.clone();
      copy.bytesOf("wal-0000000001")[at] = whole[at]! ^ 0x10;
      const opened = await open(copy);
      expect(opened.recovery).toBe("torn-tail-cut");
      expect(opened.entries.length).toBeGreaterThanOrEqual(4);
    }
  });

  test("a batch that a client hid in its data testifies to nothing", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    const stranger = new TestDisk();
    const strange = await written(stranger, { bootstrap: { ...bootstrap, incarnation: "a9" } });
    // So long that its last batch knows of more bytes than the damaged place is at.
    for (let index = 6; index < 9; index++) await strange.persist([request({ entries: [entry(index, 3)] })], null);
    const hidden = { ...entry(7, 3), data: stranger.bytesOf("wal-0000000001") };
    const from = disk.bytesOf("wal-0000000001").length;
    await storage.persist([request({ entries: [entry(6, 3), hidden] })], null);
    disk.bytesOf("wal-0000000001").fill(0, from, from + 8);
    expect((await open(disk)).recovery).toBe("torn-tail-cut");
  });

  test("even an empty next segment testifies that the one before was durable as a whole", async () => {
    const disk = new TestDisk();
    await written(disk);
    disk.put("wal-0000000002", new Uint8Array(0));
    const bytes = disk.bytesOf("wal-0000000001");
    bytes[bytes.length - 1]! ^= 1;
    expect(await verdictOn(disk)).toMatchObject({ kind: "damaged" });
  });
});
