import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemIo } from "../../src/drivers/disk/index.ts";
import { newPath, openAt, pattern, recording } from "./test-directory.ts";
import { DiskFaults } from "./test-faulty-disk.ts";

const MIB = 1024 * 1024;
const isLinux = process.platform === "linux";

describe("a file", () => {
  test("gathers appends and makes them durable in one call", async () => {
    const path = await newPath();
    const { io, calls } = recording();
    const { disk } = await openAt(path, { io });
    const file = await disk.create("a", "create");
    await file.append(pattern(10), "append");
    await file.fdatasync("sync");
    // The first sync covers the file's size too, whatever it was before.
    expect(calls.splice(0)).toEqual(["write 10@0", "fdatasync"]);
    await file.append(pattern(5, 2), "append");
    await file.append(pattern(7, 3), "append");
    expect(calls).toEqual([]);
    await file.fdatasync("sync");
    expect(calls).toEqual(isLinux ? ["writeSynced 12@10"] : ["write 12@10", "fdatasync"]);
    await file.close();
    expect(await disk.read("a", "read")).toEqual(Uint8Array.from([...pattern(10), ...pattern(5, 2), ...pattern(7, 3)]));
  });

  test("keeps nothing of the caller's memory: bytes may change as soon as an append has resolved", async () => {
    const { disk } = await openAt(await newPath());
    const file = await disk.create("a", "create");
    const bytes = pattern(100);
    await file.append(bytes, "append");
    bytes.fill(0);
    const large = pattern(3 * MIB + 5);
    await file.append(large, "append");
    large.fill(0);
    await file.close();
    expect(await disk.read("a", "read")).toEqual(Uint8Array.from([...pattern(100), ...pattern(3 * MIB + 5)]));
  });

  test("streams a large append in pieces, and syncs it on its way and as a whole", async () => {
    const { io, calls } = recording();
    const { disk } = await openAt(await newPath(), { io });
    const file = await disk.create("a", "create");
    const bytes = pattern(20 * MIB + 1);
    await file.append(bytes, "append");
    const sizes = calls.filter((call) => call.startsWith("write ")).map((call) => Number(/ (\d+)@/.exec(call)![1]));
    expect(Math.max(...sizes)).toBe(MIB);
    expect(calls.filter((call) => call === "fdatasync")).toHaveLength(2);
    calls.length = 0;
    await file.append(pattern(3), "append");
    // The five megabytes since the last sync are covered by a real one, which a synced write of 3 bytes would not be.
    await file.fdatasync("sync");
    expect(calls).toEqual([`write 3@${20 * MIB + 1}`, "fdatasync"]);
    await file.close();
    const written = await disk.read("a", "read");
    expect(Buffer.compare(written.subarray(0, bytes.length), bytes)).toBe(0);
    expect(written.subarray(bytes.length)).toEqual(pattern(3));
  });

  test("takes calls in their order, also those that nobody waited for", async () => {
    const { disk } = await openAt(await newPath());
    const file = await disk.create("a", "create");
    const calls = [
      file.append(pattern(2 * MIB), "append"),
      file.append(pattern(4, 9), "append"),
      file.fdatasync("sync"),
      file.truncate(MIB, "truncate"),
      file.append(pattern(6, 8), "append"),
      file.close(),
    ];
    await Promise.all(calls);
    expect(await disk.read("a", "read")).toEqual(
      Uint8Array.from([...pattern(2 * MIB).subarray(0, MIB), ...pattern(6, 8)]),
    );
  });

  test("goes on where the kernel wrote less than it was given", async () => {
    const few =
      (write: typeof systemIo.write): typeof systemIo.write =>
      (fd, bytes, positionBytes, label) =>
        write(fd, bytes.subarray(0, Math.max(1, bytes.length >>> 1)), positionBytes, label);
    const io = { ...systemIo, write: few(systemIo.write), writeSynced: few(systemIo.writeSynced) };
    const { disk } = await openAt(await newPath(), { io });
    const file = await disk.create("a", "create");
    for (let i = 0; i < 3; i++) {
      await file.append(pattern(1000, i), "append");
      await file.fdatasync("sync");
    }
    await file.close();
    expect(await disk.read("a", "read")).toEqual(
      Uint8Array.from([...pattern(1000, 0), ...pattern(1000, 1), ...pattern(1000, 2)]),
    );
  });

  test("that is opened again is continued at its end, and its first sync covers what was there", async () => {
    const path = await newPath();
    const { io, calls } = recording();
    const { disk } = await openAt(path, { io });
    const file = await disk.create("a", "create");
    await file.append(pattern(10), "append");
    await file.close();
    const again = await disk.open("a", "open");
    calls.length = 0;
    await again.fdatasync("sync");
    expect(calls).toEqual(["fdatasync"]);
    await again.append(pattern(3), "append");
    await again.close();
    expect((await stat(join(path, "a"))).size).toBe(13);
    const emptied = await disk.create("a", "create");
    await emptied.close();
    expect((await readFile(join(path, "a"))).length).toBe(0);
  });
});

describe("reserved room", () => {
  test("is written as zeros with the next sync, and later appends take their place in one call each", async () => {
    const path = await newPath();
    const { io, calls } = recording();
    const { disk } = await openAt(path, { io });
    const file = await disk.create("a", "create");
    await file.append(pattern(10), "append");
    expect(await file.reserve(3 * MIB, "reserve")).toBe(true);
    await file.fdatasync("sync");
    const rest = 3 * MIB - 10 - 2 * MIB;
    expect(calls.splice(0)).toEqual([
      "write 10@0",
      `write ${MIB}@10`,
      `write ${MIB}@${MIB + 10}`,
      `write ${rest}@${2 * MIB + 10}`,
      "fdatasync",
    ]);
    await file.append(pattern(5, 2), "append");
    await file.fdatasync("sync");
    expect(calls.splice(0)).toEqual(isLinux ? ["writeSynced 5@10"] : ["write 5@10", "fdatasync"]);
    // What is there already is not written again.
    expect(await file.reserve(2 * MIB, "reserve")).toBe(true);
    expect(calls).toEqual([]);
    const bytes = await readFile(join(path, "a"));
    expect(bytes.length).toBe(3 * MIB);
    expect(Uint8Array.from(bytes.subarray(0, 15))).toEqual(Uint8Array.from([...pattern(10), ...pattern(5, 2)]));
    expect(bytes.subarray(15).every((byte) => byte === 0)).toBe(true);
  });

  test("is left behind by a close, cut off by a truncation, and continued behind by whoever opens the file", async () => {
    const path = await newPath();
    const { disk } = await openAt(path);
    const file = await disk.create("a", "create");
    await file.append(pattern(10), "append");
    await file.reserve(100, "reserve");
    await file.append(pattern(200, 2), "append");
    await file.reserve(300, "reserve");
    await file.close();
    expect((await stat(join(path, "a"))).size).toBe(300);
    const again = await disk.open("a", "open");
    await again.append(pattern(1, 3), "append");
    await again.truncate(210, "truncate");
    await again.append(pattern(1, 4), "append");
    await again.close();
    const expected = Uint8Array.from([...pattern(10), ...pattern(200, 2), ...pattern(1, 4)]);
    expect(await disk.read("a", "read")).toEqual(expected);
  });

  test("goes on where the kernel wrote less than it was given", async () => {
    const few: typeof systemIo.write = (fd, bytes, positionBytes, label) =>
      systemIo.write(fd, bytes.subarray(0, Math.max(1, bytes.length >>> 1)), positionBytes, label);
    const { disk } = await openAt(await newPath(), { io: { ...systemIo, write: few } });
    const file = await disk.create("a", "create");
    await file.append(pattern(10), "append");
    expect(await file.reserve(1_000, "reserve")).toBe(true);
    await file.close();
    expect(await disk.read("a", "read")).toEqual(Uint8Array.from([...pattern(10), ...new Uint8Array(990)]));
  });

  test("that can't be written for another reason than room ends the file as any failed write does", async () => {
    let isBad = false;
    const bad = Object.assign(new Error("EIO: bad sector"), { code: "EIO" });
    const write: typeof systemIo.write = (...call) => (isBad ? Promise.reject(bad) : systemIo.write(...call));
    const { disk } = await openAt(await newPath(), { io: { ...systemIo, write } });
    const file = await disk.create("a", "create");
    isBad = true;
    await expect(file.reserve(1_000, "reserve")).rejects.toThrow("bad sector");
    isBad = false;
    await expect(file.fdatasync("sync")).rejects.toThrow("bad sector");
  });
});

describe("trap 23: a failed sync", () => {
  test.each(["fdatasync", "writeSynced"])(
    "(%s) is reported, never retried, and nothing is written behind it",
    async (how) => {
      const { io, calls } = recording();
      const faults = new DiskFaults(io);
      const { disk } = await openAt(await newPath(), { io: faults.io });
      const file = await disk.create("a", "create");
      if (how === "writeSynced") {
        await file.append(pattern(10), "append");
        await file.fdatasync("sync");
      }
      await file.append(pattern(10), "append");
      faults.failSyncs("EIO");
      await expect(file.fdatasync("sync")).rejects.toThrow("EIO");
      expect(faults.counts.failedSyncs).toBe(1);
      faults.heal();
      calls.length = 0;
      // A second sync would succeed without having written what was lost.
      await expect(file.fdatasync("sync")).rejects.toThrow("EIO");
      await expect(file.append(pattern(1), "append")).rejects.toThrow("EIO");
      await expect(file.truncate(0, "truncate")).rejects.toThrow("EIO");
      await expect(file.close()).rejects.toThrow("EIO");
      expect(calls).toEqual([]);
    },
  );

  test("is not taken for a full disk: a sync that finds no room has lost bytes too", async () => {
    const faults = new DiskFaults();
    const directory = await openAt(await newPath(), { io: faults.io });
    const file = await directory.disk.create("a", "create");
    await file.append(pattern(10), "append");
    faults.failSyncs("ENOSPC");
    await expect(file.fdatasync("sync")).rejects.toThrow("ENOSPC");
    expect(directory.state()).toBe("ok");
  });

  test("also of a write that does both in one call, once the write got through", async () => {
    const faults = new DiskFaults();
    const directory = await openAt(await newPath(), { io: faults.io });
    const file = await directory.disk.create("a", "create");
    await file.fdatasync("sync");
    await file.append(pattern(10), "append");
    faults.failSyncs("ENOSPC");
    await expect(file.fdatasync("sync")).rejects.toThrow("ENOSPC");
    expect(faults.counts.failedSyncs).toBe(isLinux ? 2 : 1);
  });

  test("of the directory is reported", async () => {
    const faults = new DiskFaults();
    const { disk } = await openAt(await newPath(), { io: faults.io });
    faults.failSyncs("EIO");
    await expect(disk.syncDirectory("sync-directory")).rejects.toThrow("EIO");
  });

  test("and a failed write end a file alike", async () => {
    let isBad = false;
    const bad = Object.assign(new Error("EIO: bad sector"), { code: "EIO" });
    const write: typeof systemIo.write = (...call) => (isBad ? Promise.reject(bad) : systemIo.write(...call));
    const { disk } = await openAt(await newPath(), { io: { ...systemIo, write } });
    const file = await disk.create("a", "create");
    isBad = true;
    await expect(file.append(pattern(2 * MIB), "append")).rejects.toThrow("bad sector");
    isBad = false;
    await expect(file.fdatasync("sync")).rejects.toThrow("bad sector");
  });
});
