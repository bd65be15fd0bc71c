import { crc32 } from "node:zlib";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import { peerKey } from "../core/kit/ids.ts";
import { seededRandom } from "../core/kit/random.ts";
import type { PersistRequest, SnapshotMeta } from "../core/raft/types.ts";
import { TestDisk } from "./test-disk.ts";
import {
  bootstrap,
  bytesOf,
  configuration,
  entry,
  hardState,
  n1,
  n2,
  open,
  request,
  snapshotAt,
  verdictOn,
  written,
} from "./test-storage.ts";

describe("opening", () => {
  test("a founder starts behind the same snapshot as all founders", async () => {
    const opened = await open(new TestDisk());
    expect(opened.peer).toBe("n1@a1");
    expect(opened.recovery).toBe("fresh");
    expect(opened.hardState).toEqual({ term: 1, vote: null, commit: 1 });
    expect(opened.snapshot).toEqual({ meta: snapshotAt(1, 1), data: new Uint8Array(0) });
    expect(opened.entries).toEqual([]);
    expect(await opened.storage.readSnapshot()).toEqual(opened.snapshot);
  });

  test("any other node starts empty, with a new incarnation", async () => {
    const opened = await open(new TestDisk(), { bootstrap: null, newIncarnation: () => "77" });
    expect(opened.peer).toBe("n1@77");
    expect(opened.hardState).toEqual({ term: 0, vote: null, commit: 0 });
    expect(opened.snapshot).toBeNull();
    expect(await opened.storage.readSnapshot()).toBeNull();
  });

  test("what was persisted is there again, and bootstrap is not asked any more", async () => {
    const disk = new TestDisk();
    await written(disk);
    const opened = await open(disk, { bootstrap: { incarnation: "ffff", configuration } });
    expect(opened.recovery).toBe("intact");
    expect(opened.peer).toBe("n1@a1");
    expect(opened.hardState).toEqual(hardState(3, 3, n2));
    expect(opened.entries).toEqual([entry(2, 2), entry(3, 2), entry(4, 2), entry(5, 3)]);
  });

  test("trap 13: another node's or cluster's directory is refused and not touched", async () => {
    const disk = new TestDisk();
    await written(disk);
    for (const other of [{ nodeId: "n2" }, { clusterId: "d" }]) {
      const before = disk.calls.length;
      await expect(open(disk, other)).rejects.toMatchObject({ code: "STAMP_MISMATCH" });
      expect(disk.calls.slice(before).filter((call) => !/list|read/.test(call))).toEqual([]);
    }
  });

  test("trap 13: a segment of another disk of the same node is refused", async () => {
    const disk = new TestDisk();
    const other = new TestDisk();
    await written(disk);
    await open(other, { bootstrap: { ...bootstrap, incarnation: "a9" } });
    disk.put("wal-0000000002", other.bytesOf("wal-0000000001"));
    await expect(open(disk)).rejects.toMatchObject({ code: "STAMP_MISMATCH" });
  });

  test("a lost stamp over another cluster's segments is refused, over our own it is damage", async () => {
    const disk = new TestDisk();
    await written(disk);
    disk.drop("stamp");
    await expect(open(disk.clone(), { clusterId: "d" })).rejects.toMatchObject({ code: "STAMP_MISMATCH" });
    const opened = await open(disk);
    expect(opened.recovery).toBe("damaged-set-aside");
    expect(opened.peer).not.toBe("n1@a1");
  });

  test("a later release's format is refused and not touched", async () => {
    for (const name of ["stamp", "wal-0000000001", "snapshot-1-1"]) {
      const disk = new TestDisk();
      await written(disk);
      const bytes = disk.bytesOf(name).slice();
      bytes[9] = 2;
      const length = new DataView(bytes.buffer).getUint32(10);
      new DataView(bytes.buffer).setUint32(4, crc32(bytes.subarray(8, 14 + length)));
      disk.put(name, bytes);
      const before = disk.calls.length;
      await expect(open(disk)).rejects.toMatchObject({ code: "FORMAT_UNSUPPORTED" });
      expect(disk.calls.slice(before).filter((call) => !/list|read/.test(call))).toEqual([]);
    }
  });

  test("opening testifies to what it has read: rot in it is seen although nothing was written since", async () => {
    const disk = new TestDisk();
    await written(disk);
    const sizeBytes = disk.bytesOf("wal-0000000001").length;
    await open(disk);
    disk.restart("vanish", seededRandom(1));
    disk.bytesOf("wal-0000000001")[sizeBytes - 1]! ^= 1;
    expect(await verdictOn(disk)).toMatchObject({ kind: "damaged" });
  });
});

describe("persisting", () => {
  test("a group is one append and one sync", async () => {
    const disk = new TestDisk();
    const { storage } = await open(disk);
    const before = disk.calls.length;
    const group = [2, 3, 4].map((index) => request({ hardState: hardState(2, 1), entries: [entry(index, 2)] }));
    await storage.persist(group, null);
    expect(disk.calls.slice(before)).toEqual(["wal-append wal-0000000001", "wal-fdatasync wal-0000000001"]);
  });

  test("a group that needs no sync is not synced, and an empty barrier does not touch the disk", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    const before = disk.calls.length;
    await storage.persist([request({ hardState: hardState(3, 4, n2), mustSync: false })], null);
    await storage.persist([request({ mustSync: false })], null);
    expect(disk.calls.slice(before)).toEqual(["wal-append wal-0000000001"]);
    // The next one that needs it covers both.
    await storage.persist([request({ hardState: hardState(4, 4), mustSync: true })], null);
    disk.restart("vanish", seededRandom(1));
    expect((await open(disk)).hardState).toEqual(hardState(4, 4));
  });

  test("trap 2: an entry of a term that is not durable before it is refused", async () => {
    const { storage } = await open(new TestDisk());
    await expect(storage.persist([request({ entries: [entry(2, 2)] })], null)).rejects.toThrow(InvariantError);
  });

  test("trap 2: wherever a batch is torn, no entry is there without its term, vote and commit index", async () => {
    const disk = new TestDisk();
    const { storage } = await open(disk);
    const from = disk.bytesOf("wal-0000000001").length;
    await storage.persist([request({ hardState: hardState(7, 2, n2), entries: [entry(2, 7), entry(3, 7)] })], null);
    const whole = disk.bytesOf("wal-0000000001");
    const seen = new Set<string>();
    for (let size = from; size <= whole.length; size++) {
      const copy = disk.clone();
      copy.put("wal-0000000001", whole.slice(0, size));
      const opened = await open(copy);
      const last = opened.entries.at(-1)?.index ?? 1;
      if (last > 1) expect(opened.hardState).toEqual(hardState(7, 2, n2));
      // The commit index never points after the log.
      expect(opened.hardState.commit).toBeLessThanOrEqual(last);
      seen.add(`${opened.hardState.term}/${last}`);
    }
    expect([...seen]).toEqual(["1/1", "7/1", "7/2", "7/3"]);
  });

  test("an entry that is not above the last one replaces it and all that follow", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    await storage.persist([request({ hardState: hardState(4, 3), entries: [entry(4, 4, "other")] })], null);
    expect((await open(disk)).entries).toEqual([entry(2, 2), entry(3, 2), entry(4, 4, "other")]);
  });

  test("trap 26: an entry that was replaced twice by the same (term, index) is the last one written", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    const group = [
      request({ hardState: hardState(4, 3), entries: [entry(4, 4, "first"), entry(5, 4)] }),
      request({ hardState: hardState(5, 3), entries: [entry(4, 5)] }),
      request({ hardState: hardState(6, 3), entries: [entry(4, 5, "again")] }),
    ];
    await storage.persist(group, null);
    expect((await open(disk)).entries.slice(2)).toEqual([entry(4, 5, "again")]);
  });

  test("two persists at once, a falling term, a second vote, a gap and a replaced commit are our mistakes", async () => {
    const cases: PersistRequest[][] = [
      [request({ hardState: hardState(2, 3, n2) })],
      [request({ hardState: hardState(3, 3, n1) })],
      [request({ hardState: hardState(3, 2, n2) })],
      [request({ entries: [entry(7, 3)] })],
      [request({ entries: [entry(3, 3)] })],
      [request({ entries: [entry(5, 3), entry(7, 3)] })],
    ];
    for (const requests of cases) {
      const storage = await written(new TestDisk());
      await expect(storage.persist(requests, null)).rejects.toThrow(InvariantError);
    }
    const storage = await written(new TestDisk());
    const first = storage.persist([request({ entries: [entry(6, 3)] })], null);
    await expect(storage.persist([request({ entries: [entry(7, 3)] })], null)).rejects.toThrow("one persist at a time");
    await first;
  });

  test("trap 23: a failed sync ends the storage and is never tried again", async () => {
    for (const label of ["wal-fdatasync", "wal-append"]) {
      const disk = new TestDisk();
      const storage = await written(disk);
      disk.failNext(label, new Error("EIO"));
      const failed = storage.persist([request({ entries: [entry(6, 3)] })], null);
      const expected = label === "wal-append" ? "EIO" : expect.objectContaining({ code: "FSYNC_FAILED" });
      await (typeof expected === "string"
        ? expect(failed).rejects.toThrow(expected)
        : expect(failed).rejects.toEqual(expected));
      const before = disk.calls.length;
      await expect(storage.persist([request({ entries: [entry(6, 3)] })], null)).rejects.toThrow(InvariantError);
      await expect(storage.saveSnapshot(snapshotAt(3, 2), bytesOf("s"), 4)).rejects.toThrow(InvariantError);
      expect(disk.calls.length).toBe(before);
    }
  });

  test("trap 23: bytes that the kernel shows but never wrote are damage once the node has acted on them", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    const sizeBytes = disk.bytesOf("wal-0000000001").length;
    disk.failNext("wal-fdatasync", new Error("EIO"));
    await expect(storage.persist([request({ hardState: hardState(9, 3) })], null)).rejects.toThrow(TenureError);
    disk.restart("process", seededRandom(1));
    // The restarted process reads the vote of term 9 from clean pages, and syncing them writes nothing.
    expect((await open(disk)).hardState.term).toBe(9);
    disk.bytesOf("wal-0000000001").fill(0, sizeBytes, sizeBytes + 40);
    expect((await open(disk)).recovery).toBe("damaged-set-aside");
  });

  test("trap 25: what was not acknowledged may be lost, what was acknowledged is not", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    disk.crashAt(2);
    await expect(storage.persist([request({ entries: [entry(6, 3)] })], null)).rejects.toThrow(
      "crashed in wal-fdatasync",
    );
    disk.restart("vanish", seededRandom(1));
    expect((await open(disk)).entries.at(-1)).toEqual(entry(5, 3));
  });
});

describe("segments and snapshots", () => {
  test("segments roll at their bound, and all of them are read again", async () => {
    const disk = new TestDisk();
    const { storage } = await open(disk, { segmentBytesMax: 300 });
    for (let index = 2; index <= 40; index++) {
      await storage.persist([request({ hardState: hardState(2, index - 1), entries: [entry(index, 2)] })], null);
    }
    expect(disk.names().filter((name) => name.startsWith("wal-")).length).toBeGreaterThan(5);
    const opened = await open(disk);
    expect(opened.entries.map((e) => e.index)).toEqual(Array.from({ length: 39 }, (_, i) => i + 2));
    expect(opened.hardState).toEqual(hardState(2, 39));
  });

  test("trap 27: an own snapshot keeps the suffix, and only the segments that are needed", async () => {
    const disk = new TestDisk();
    const { storage } = await open(disk, { segmentBytesMax: 300 });
    for (let index = 2; index <= 40; index++) {
      await storage.persist([request({ hardState: hardState(2, index - 1), entries: [entry(index, 2)] })], null);
    }
    const before = disk.names().length;
    await storage.saveSnapshot(snapshotAt(35, 2), bytesOf("at 35"), 30);
    expect(disk.names().length).toBeLessThan(before / 2);
    expect(disk.names().filter((name) => name.startsWith("snapshot-"))).toEqual(["snapshot-35-2"]);
    const opened = await open(disk);
    expect(opened.snapshot).toEqual({ meta: snapshotAt(35, 2), data: bytesOf("at 35") });
    expect(opened.entries.map((e) => e.index)).toEqual([36, 37, 38, 39, 40]);
    expect(await opened.storage.readSnapshot()).toEqual(opened.snapshot);
  });

  test("trap 27: an installed snapshot replaces the log, with its configuration and what follows in the group", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    const meta: SnapshotMeta = {
      index: 20,
      term: 4,
      configuration: { ...configuration, learners: [peerKey("n3", "a3")] },
    };
    const group = [
      request({ hardState: hardState(4, 3) }),
      request({ snapshot: meta, hardState: hardState(4, 20) }),
      request({ entries: [entry(21, 4)] }),
    ];
    await storage.persist(group, bytesOf("at 20"));
    expect(disk.names()).toEqual(["snapshot-20-4", "stamp", "wal-0000000002"]);
    const opened = await open(disk);
    expect(opened.snapshot).toEqual({ meta, data: bytesOf("at 20") });
    expect(opened.entries).toEqual([entry(21, 4)]);
    expect(opened.hardState).toEqual(hardState(4, 20));
  });

  test("trap 27: a snapshot that is not ahead of the commit index is refused or ignored", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    await storage.saveSnapshot(snapshotAt(1, 1), bytesOf("again"), 2);
    expect((await storage.readSnapshot())?.data).toEqual(new Uint8Array(0));
    const old = request({ snapshot: snapshotAt(3, 2) });
    await expect(storage.persist([old], bytesOf("old"))).rejects.toThrow(
      "a snapshot is never older than the commit index",
    );
  });

  test("an own snapshot is written beside persists, and gives way to a later one that was installed meanwhile", async () => {
    const disk = new TestDisk();
    const storage = await written(disk);
    const own = storage.saveSnapshot(snapshotAt(3, 2), bytesOf("own"), 4);
    const installed = storage.persist([request({ snapshot: snapshotAt(9, 3), mustSync: true })], bytesOf("theirs"));
    await Promise.all([own, installed]);
    const opened = await open(disk);
    expect(opened.snapshot?.data).toEqual(bytesOf("theirs"));
    expect(disk.names().filter((name) => name.startsWith("snapshot-"))).toEqual(["snapshot-9-3"]);
  });

  test("a snapshot that is missing or rotten is damage", async () => {
    for (const spoil of ["drop", "flip"]) {
      const disk = new TestDisk();
      await written(disk);
      if (spoil === "drop") disk.drop("snapshot-1-1");
      else disk.bytesOf("snapshot-1-1")[20]! ^= 4;
      expect((await open(disk)).recovery).toBe("damaged-set-aside");
    }
  });
});
