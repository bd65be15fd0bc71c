import { stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemIo, type SpaceState } from "../../src/drivers/disk/index.ts";
import { waitFor } from "../servers/index.ts";
import { newPath, openAt, pattern } from "./test-directory.ts";
import { DiskFaults } from "./test-faulty-disk.ts";

describe("a full disk", () => {
  test.each(["ENOSPC", "EDQUOT"] as const)("(%s) holds a write until there is room, and says so", async (code) => {
    const path = await newPath();
    const faults = new DiskFaults();
    const directory = await openAt(path, { io: faults.io });
    const states: SpaceState[] = [];
    directory.onChange((state) => states.push(state));
    const file = await directory.disk.create("a", "create");
    await file.append(pattern(100), "append");
    await file.fdatasync("sync");

    faults.fill(30, code);
    await file.append(pattern(50, 2), "append");
    let isDurable = false;
    const synced = file.fdatasync("sync").then(() => {
      isDurable = true;
    });
    await waitFor("the disk to be found full again after a pause", () => faults.counts.noRoom >= 3);
    expect(directory.state()).toBe("full");
    // The 30 bytes that found room are gone again: nothing half-written stays behind.
    expect((await stat(join(path, "a"))).size).toBe(100);
    expect(isDurable).toBe(false);
    faults.free();
    await synced;
    expect(directory.state()).toBe("ok");
    expect(states).toEqual(["full", "ok"]);
    await file.append(pattern(7, 3), "append");
    await file.close();
    expect(await directory.disk.read("a", "read")).toEqual(
      Uint8Array.from([...pattern(100), ...pattern(50, 2), ...pattern(7, 3)]),
    );
  });

  test.each([0, 30, 400])("(room for %i bytes) reserves nothing, and nobody waits for that", async (roomBytes) => {
    const path = await newPath();
    const faults = new DiskFaults();
    const directory = await openAt(path, { io: faults.io });
    const states: SpaceState[] = [];
    directory.onChange((state) => states.push(state));
    const file = await directory.disk.create("a", "create");
    await file.append(pattern(100), "append");
    await file.fdatasync("sync");
    faults.fill(roomBytes);
    expect(await file.reserve(1_000, "reserve")).toBe(false);
    expect((await stat(join(path, "a"))).size).toBe(100);
    expect(states).toEqual([]);
    faults.free();
    await file.append(pattern(7, 3), "append");
    await file.fdatasync("sync");
    expect(await directory.disk.read("a", "read")).toEqual(Uint8Array.from([...pattern(100), ...pattern(7, 3)]));
  });

  test("takes reserved room back from a file whose writes wait", async () => {
    const path = await newPath();
    const faults = new DiskFaults();
    const directory = await openAt(path, { io: faults.io });
    const file = await directory.disk.create("a", "create");
    await file.append(pattern(100), "append");
    await file.reserve(1_000, "reserve");
    await file.fdatasync("sync");
    // As on a file system that never writes in place: what is overwritten needs room too.
    faults.fill(30);
    await file.append(pattern(50, 2), "append");
    const synced = file.fdatasync("sync");
    await waitFor("the disk to be found full again after a pause", () => faults.counts.noRoom >= 3);
    expect(directory.state()).toBe("full");
    expect((await stat(join(path, "a"))).size).toBe(100);
    faults.free();
    await synced;
    await file.append(pattern(7, 3), "append");
    await file.close();
    expect(await directory.disk.read("a", "read")).toEqual(
      Uint8Array.from([...pattern(100), ...pattern(50, 2), ...pattern(7, 3)]),
    );
  });

  test("holds a large append in the middle, and its pieces stay in order", async () => {
    const faults = new DiskFaults();
    const directory = await openAt(await newPath(), { io: faults.io });
    const file = await directory.disk.create("a", "create");
    const bytes = pattern(5 * 1024 * 1024);
    faults.fill(2_500_000);
    const appended = file.append(bytes, "append");
    await waitFor("the disk to be full", () => directory.state() === "full");
    faults.free();
    await appended;
    await file.close();
    expect(Buffer.compare(await directory.disk.read("a", "read"), bytes)).toBe(0);
  });

  test("also holds new names, which need room in their directory", async () => {
    let isFull = true;
    const full = Object.assign(new Error("ENOSPC: no room"), { code: "ENOSPC" });
    const unless = <T>(work: () => Promise<T>): Promise<T> => (isFull ? Promise.reject(full) : work());
    const io = {
      ...systemIo,
      open: (path: string, flags: number, mode: number) =>
        path.endsWith("/a") ? unless(() => systemIo.open(path, flags, mode)) : systemIo.open(path, flags, mode),
      rename: (from: string, to: string) => unless(() => systemIo.rename(from, to)),
    };
    const directory = await openAt(await newPath(), { io });
    const created = directory.disk.create("a", "create");
    await waitFor("the disk to be full", () => directory.state() === "full");
    isFull = false;
    await (await created).close();
    isFull = true;
    const renamed = directory.disk.rename("a", "b", "rename");
    await waitFor("the disk to be full", () => directory.state() === "full");
    isFull = false;
    await renamed;
    expect(await directory.disk.list("list")).toEqual(["b"]);
  });

  test("does not keep a directory from being closed: the write that waits is given up", async () => {
    const path = await newPath();
    const faults = new DiskFaults();
    const directory = await openAt(path, { io: faults.io });
    const file = await directory.disk.create("a", "create");
    await file.append(pattern(10), "append");
    faults.fill();
    const synced = file.fdatasync("sync");
    const refused = expect(synced).rejects.toMatchObject({ code: "DISK_FULL" });
    await waitFor("the disk to be full", () => directory.state() === "full");
    await directory.close();
    await refused;
    await (await openAt(path)).close();
  });
});

describe("free space", () => {
  test("that is low is not reserved", async () => {
    const io = { ...systemIo, freeBytes: () => Promise.resolve(5_000) };
    const directory = await openAt(await newPath(), { io, minFreeBytes: 10_000 });
    const file = await directory.disk.create("a", "create");
    await file.append(pattern(10), "append");
    expect(await file.reserve(1_000, "reserve")).toBe(false);
    await file.close();
    expect(await directory.disk.read("a", "read")).toEqual(pattern(10));
  });

  test("is looked up, and below its limit the state is low", async () => {
    let freeBytes = 5_000;
    const io = { ...systemIo, freeBytes: () => Promise.resolve(freeBytes) };
    const directory = await openAt(await newPath(), { io, minFreeBytes: 10_000 });
    expect([directory.state(), directory.freeBytes()]).toEqual(["low", 5_000]);
    const states: SpaceState[] = [];
    const forget = directory.onChange((state) => states.push(state));
    freeBytes = 20_000;
    await waitFor("the state to change", () => directory.state() === "ok");
    expect(states).toEqual(["ok"]);
    forget();
    freeBytes = 1;
    await waitFor("the state to change", () => directory.state() === "low");
    expect(states).toEqual(["ok"]);
  });

  test("of a real directory is known from the start; one that can't be told is null, and not low", async () => {
    expect((await openAt(await newPath())).freeBytes()).toBeGreaterThan(0);
    const io = { ...systemIo, freeBytes: () => Promise.reject(new Error("ENOSYS")) };
    const directory = await openAt(await newPath(), { io });
    expect([directory.state(), directory.freeBytes()]).toEqual(["ok", null]);
  });
});
