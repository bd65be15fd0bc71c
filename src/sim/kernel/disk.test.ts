import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import type { Disk } from "../../ports/disk.ts";
import { SECTOR_BYTES, type Tear } from "./disk-inode.ts";
import { World } from "./world.ts";

/** A world with one node whose disk the test uses directly; `done` runs the world until a promise settles. */
function platter(seed: number | string = 1) {
  const disks: Disk[] = [];
  const world = new World({ seed, nodes: ["n1"], start: (boot) => disks.push(boot.disk) });
  world.start("n1");
  const done = async <T>(promise: Promise<T>): Promise<T> => {
    let settled = false;
    promise.then(
      () => (settled = true),
      () => (settled = true),
    );
    await world.run(() => settled, { untilMs: world.nowMs + 10_000 });
    if (!settled) throw new Error("not settled in 10 s");
    return promise;
  };
  const reboot = (tear: Tear | "random"): Disk => {
    world.crash("n1", { tear });
    world.start("n1");
    return disks.at(-1) as Disk;
  };
  return { world, disk: disks[0] as Disk, sim: world.node("n1").disk, done, reboot };
}

/** A file `f` with 1,000 durable bytes of 1 and 3,000 unsynced bytes of 2, in two appends. */
async function withUnsynced(seed: number) {
  const made = platter(seed);
  const file = await made.done(made.disk.create("f", "x"));
  await made.done(made.disk.syncDirectory("x"));
  await made.done(file.append(new Uint8Array(1_000).fill(1), "x"));
  await made.done(file.fdatasync("x"));
  await made.done(file.append(new Uint8Array(1_500).fill(2), "x"));
  await made.done(file.append(new Uint8Array(1_500).fill(2), "x"));
  return { ...made, file };
}

const SEEDS = [...Array(40).keys()];

/** Seeds with which a corruption is a flipped bit, and a lost write. */
const FLIPS = 3;
const LOSES = 1;

describe("disk that was restored", () => {
  it("has what was durable when the copy was made, and nothing that came later", async () => {
    const { world, disk, done, sim, file } = await withUnsynced(1);
    const image = sim.image();
    await done(file.fdatasync("x"));
    await done(disk.create("later", "x"));
    await done(disk.syncDirectory("x"));
    world.crash("n1", { tear: "keep" });
    sim.restore(image);
    expect(sim.files().map(({ name, durableBytes }) => [name, durableBytes])).toEqual([["f", 1_000]]);
    expect(sim.durableContent("f")).toEqual(new Uint8Array(1_000).fill(1));
  });
});

describe("disk at a crash", () => {
  it("shows unsynced bytes to readers, and loses them all when they vanish", async () => {
    const { disk, done, reboot, sim } = await withUnsynced(1);
    expect(await done(disk.read("f", "x"))).toHaveLength(4_000);
    expect(sim.files()).toEqual([
      { name: "f", sizeBytes: 4_000, durableBytes: 1_000, reservedBytes: 0, durableBeforeBytes: 0 },
    ]);
    expect(await done(reboot("vanish").read("f", "x"))).toEqual(new Uint8Array(1_000).fill(1));
  });

  it("keeps them all when only the process was killed", async () => {
    const { done, reboot } = await withUnsynced(1);
    expect(await done(reboot("keep").read("f", "x"))).toHaveLength(4_000);
  });

  it("keeps a random prefix when torn, cut at any byte", async () => {
    const sizes = new Set<number>();
    for (const seed of SEEDS) {
      const { done, reboot } = await withUnsynced(seed);
      const bytes = await done(reboot("torn").read("f", "x"));
      expect(bytes.length).toBeGreaterThanOrEqual(1_000);
      expect(bytes.every((byte, i) => byte === (i < 1_000 ? 1 : 2))).toBe(true);
      sizes.add(bytes.length);
    }
    expect([...sizes].some((size) => size > 1_000 && size % SECTOR_BYTES !== 0 && size % 500 !== 0)).toBe(true);
    expect(sizes.size).toBeGreaterThan(10);
  });

  it("keeps random whole sectors with zeros elsewhere, the size extended, durable bytes of a shared sector unharmed", async () => {
    let mixed = 0;
    for (const seed of SEEDS) {
      const { done, reboot } = await withUnsynced(seed);
      const bytes = await done(reboot("sectors").read("f", "x"));
      expect(bytes).toHaveLength(4_000);
      expect(bytes.subarray(0, 1_000).every((byte) => byte === 1)).toBe(true);
      for (let sector = 1; sector < 8; sector++) {
        const fresh = bytes.subarray(
          Math.max(1_000, sector * SECTOR_BYTES),
          Math.min(4_000, (sector + 1) * SECTOR_BYTES),
        );
        expect(new Set(fresh).size).toBeLessThanOrEqual(1);
      }
      if (new Set(bytes.subarray(1_000)).size === 2) mixed++;
    }
    expect(mixed).toBeGreaterThan(30);
  });

  it("undoes a truncation that was not synced, or keeps it", async () => {
    for (const [tear, size] of [
      ["vanish", 1_000],
      ["keep", 10],
    ] as const) {
      const { disk, done, reboot, sim } = await withUnsynced(1);
      const file = await done(disk.open("f", "x"));
      await done(file.truncate(10, "x"));
      expect(sim.files()[0]?.sizeBytes).toBe(10);
      expect(await done(reboot(tear).read("f", "x"))).toHaveLength(size);
    }
  });

  it("keeps a prefix of the unsynced directory operations, so that names stay consistent", async () => {
    const outcomes = new Set<string>();
    for (const seed of SEEDS) {
      const { disk, done, reboot } = platter(seed);
      await done(disk.create("old", "x"));
      await done(disk.syncDirectory("x"));
      await done(disk.create("new", "x"));
      await done(disk.rename("new", "current", "x"));
      await done(disk.remove("old", "x"));
      outcomes.add((await done(reboot("torn").list("x"))).join(" "));
    }
    expect([...outcomes].toSorted()).toEqual(["current", "current old", "new old", "old"]);
  });

  it("keeps a synced directory, and loses a synced file whose name was not", async () => {
    const { disk, done, reboot } = platter();
    const named = await done(disk.create("named", "x"));
    await done(disk.syncDirectory("x"));
    const nameless = await done(disk.create("nameless", "x"));
    for (const file of [named, nameless]) {
      await done(file.append(Uint8Array.of(7), "x"));
      await done(file.fdatasync("x"));
    }
    const after = reboot("vanish");
    expect(await done(after.list("x"))).toEqual(["named"]);
    expect(await done(after.read("named", "x"))).toEqual(Uint8Array.of(7));
    await expect(done(after.read("nameless", "x"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("reserved room", () => {
  /** 1,000 durable bytes of 1, zeros up to 4,000, and in their place 2,000 unsynced bytes of 2. */
  async function withReserved(seed: number) {
    const made = platter(seed);
    const file = await made.done(made.disk.create("f", "x"));
    await made.done(made.disk.syncDirectory("x"));
    await made.done(file.append(new Uint8Array(1_000).fill(1), "x"));
    expect(await made.done(file.reserve(4_000, "x"))).toBe(true);
    await made.done(file.fdatasync("x"));
    await made.done(file.append(new Uint8Array(2_000).fill(2), "x"));
    return { ...made, file };
  }

  it("is zeros that readers see, and appends take their place", async () => {
    const { disk, done, file, sim } = await withReserved(1);
    expect(sim.files()[0]).toMatchObject({ durableBytes: 4_000, reservedBytes: 3_000 });
    const bytes = await done(disk.read("f", "x"));
    expect([bytes.length, bytes[999], bytes[1_000], bytes[2_999], bytes[3_000]]).toEqual([4_000, 1, 2, 2, 0]);
    await done(file.append(new Uint8Array(1_500).fill(3), "x"));
    expect(await done(disk.read("f", "x"))).toHaveLength(4_500);
    await done(file.fdatasync("x"));
    expect(sim.files()).toEqual([
      { name: "f", sizeBytes: 4_500, durableBytes: 4_500, reservedBytes: 0, durableBeforeBytes: 1_000 },
    ]);
  });

  it("has the old zeros, after a crash, wherever a write into it is missing", async () => {
    let mixed = 0;
    for (const seed of SEEDS) {
      for (const tear of ["vanish", "torn", "sectors", "keep"] as const) {
        const { done, reboot } = await withReserved(seed);
        const bytes = await done(reboot(tear).read("f", "x"));
        expect(bytes).toHaveLength(4_000);
        expect(bytes.subarray(0, 1_000).every((byte) => byte === 1)).toBe(true);
        expect(bytes.subarray(1_000, 3_000).every((byte) => byte === 0 || byte === 2)).toBe(true);
        expect(bytes.subarray(3_000).every((byte) => byte === 0)).toBe(true);
        if (tear === "sectors" && new Set(bytes.subarray(1_000, 3_000)).size === 2) mixed++;
      }
    }
    expect(mixed).toBeGreaterThan(20);
  });

  it("is there in part, or not at all, where it was not synced", async () => {
    const sizes = new Set<number>();
    for (const seed of SEEDS) {
      const { disk, done, reboot } = platter(seed);
      const file = await done(disk.create("f", "x"));
      await done(disk.syncDirectory("x"));
      await done(file.append(new Uint8Array(100).fill(1), "x"));
      await done(file.fdatasync("x"));
      await done(file.reserve(5_000, "x"));
      const bytes = await done(reboot(seed % 2 === 0 ? "torn" : "sectors").read("f", "x"));
      expect(bytes.subarray(100).every((byte) => byte === 0)).toBe(true);
      sizes.add(bytes.length);
    }
    expect(Math.min(...sizes)).toBeLessThan(1_000);
    expect(Math.max(...sizes)).toBeGreaterThan(4_000);
  });

  it("is refused while the disk is full, perhaps after some of it, and is no error", async () => {
    const { disk, done, sim } = platter();
    const file = await done(disk.create("f", "x"));
    sim.faults.setFull(true);
    expect(await done(file.reserve(5_000, "x"))).toBe(false);
    sim.faults.setFull(false);
    await done(file.append(Uint8Array.of(7), "x"));
    expect((await done(disk.read("f", "x")))[0]).toBe(7);
  });

  it("ends with a truncation, and when the file is opened again; what was cut off does not come back", async () => {
    const { disk, done, file } = await withReserved(1);
    await done(file.truncate(500, "x"));
    await done(file.fdatasync("x"));
    await done(file.reserve(900, "x"));
    await done(file.append(Uint8Array.of(3), "x"));
    await done(file.fdatasync("x"));
    const again = await done(disk.open("f", "x"));
    await done(again.append(Uint8Array.of(4), "x"));
    const bytes = await done(disk.read("f", "x"));
    expect([...bytes.subarray(499, 502), ...bytes.subarray(899)]).toEqual([1, 3, 0, 0, 4]);
  });
});

describe("disk", () => {
  it("syncs only writes that had completed when the sync was called", async () => {
    const { disk, done, sim } = platter();
    const file = await done(disk.create("f", "x"));
    await done(file.append(Uint8Array.of(1), "x"));
    const notAwaited = file.append(Uint8Array.of(2), "x");
    await done(file.fdatasync("x"));
    await done(notAwaited);
    expect(sim.durableContent("f")).toEqual(Uint8Array.of(1));
  });

  it("copies what it is given", async () => {
    const { disk, done } = platter();
    const file = await done(disk.create("f", "x"));
    const bytes = Uint8Array.of(1);
    const appended = file.append(bytes, "x");
    bytes[0] = 9;
    await done(appended);
    expect(await done(disk.read("f", "x"))).toEqual(Uint8Array.of(1));
  });

  it("fails the next call with a label or of a kind, once, and a failed sync loses its bytes for good (trap 23)", async () => {
    const { disk, done, sim } = platter();
    const file = await done(disk.create("f", "x"));
    let hits = 0;
    sim.faults.failNext({ label: "log", operation: "fdatasync", onHit: () => hits++ });
    await done(file.append(Uint8Array.of(1, 2, 3), "log"));
    await done(disk.syncDirectory("other"));
    await expect(done(file.fdatasync("log"))).rejects.toMatchObject({ code: "EIO" });
    expect(hits).toBe(1);
    await done(file.append(Uint8Array.of(4), "log"));
    await done(file.fdatasync("log"));
    expect(sim.durableContent("f")).toEqual(Uint8Array.of(0, 0, 0, 4));
    expect(sim.counts.failed).toBe(1);
  });

  it("does not bring bytes back at a crash whose sync had failed, unless as zeros", async () => {
    for (const tear of ["keep", "vanish", "torn", "sectors"] as const) {
      for (let seed = 0; seed < 10; seed++) {
        const { disk, done, reboot, sim } = platter(seed);
        const file = await done(disk.create("f", "x"));
        await done(disk.syncDirectory("x"));
        await done(file.append(Uint8Array.of(1, 2, 3), "x"));
        sim.faults.failNext({ operation: "fdatasync" });
        await expect(done(file.fdatasync("x"))).rejects.toMatchObject({ code: "EIO" });
        const bytes = await done(reboot(tear).read("f", "x"));
        expect(bytes.every((byte) => byte === 0)).toBe(true);
      }
    }
  });

  it("hangs as long as the later of two hangs says", async () => {
    const { disk, sim, world } = platter();
    let listed = false;
    sim.faults.hang(100);
    sim.faults.hang(1_000);
    void disk.list("x").then(() => (listed = true));
    await world.runFor(500);
    expect(listed).toBe(false);
    await world.runFor(600);
    expect(listed).toBe(true);
  });

  it("refuses appends while full, perhaps after some of their bytes, and syncs still work", async () => {
    const { disk, done, sim } = platter();
    const file = await done(disk.create("f", "x"));
    sim.faults.setFull(true);
    await expect(done(file.append(new Uint8Array(10), "x"))).rejects.toMatchObject({ code: "ENOSPC" });
    await done(file.fdatasync("x"));
    sim.faults.setFull(false);
    await done(file.append(new Uint8Array(10), "x"));
    expect(sim.files()[0]?.sizeBytes).toBeLessThanOrEqual(20);
  });

  it("completes nothing while it hangs, then everything in order, also across a restart of the process", async () => {
    const { disk, done, sim, world, reboot } = platter();
    const file = await done(disk.create("f", "x"));
    const seen: string[] = [];
    sim.faults.hang(500);
    void file.append(Uint8Array.of(1), "x").then(() => seen.push(`append ${Math.floor(world.nowMs / 100)}`));
    void file.fdatasync("x").then(() => seen.push("sync"));
    await world.runFor(400);
    expect(seen).toEqual([]);
    await world.runFor(200);
    expect(seen).toEqual(["append 5", "sync"]);
    sim.faults.hang("forever");
    void reboot("vanish")
      .list("x")
      .then(() => seen.push("list"));
    await world.runFor(5_000);
    expect(seen).toHaveLength(2);
    sim.faults.unhang();
    await world.runFor(1);
    expect(seen.at(-1)).toBe("list");
  });

  it("is slower by a factor when slow", async () => {
    const { disk, done, sim, world } = platter();
    sim.faults.setSlow(1_000);
    await done(disk.syncDirectory("x"));
    expect(world.nowMs).toBeGreaterThanOrEqual(200);
    expect(sim.counts.slowed).toBe(1);
  });

  it("makes a sync durable although the paused process can't hear of it", async () => {
    const { disk, done, sim, world } = platter();
    const file = await done(disk.create("f", "x"));
    await done(file.append(Uint8Array.of(1), "x"));
    let heard = false;
    void file.fdatasync("x").then(() => (heard = true));
    world.pause("n1");
    await world.runFor(100);
    expect(heard).toBe(false);
    expect(sim.durableContent("f")).toEqual(Uint8Array.of(1));
    world.resume("n1");
    await world.runFor(1);
    expect(heard).toBe(true);
  });

  it("flips one bit where the chooser allows it, such as below the last sync, and nowhere else", async () => {
    const { disk, done, sim } = platter();
    const file = await done(disk.create("f", "x"));
    for (const byte of [1, 2, 3]) {
      await done(file.append(new Uint8Array(100).fill(byte), "x"));
      await done(file.fdatasync("x"));
    }
    await done(file.fdatasync("x"));
    expect(sim.files()[0]).toMatchObject({ durableBytes: 300, durableBeforeBytes: 200 });
    const before = sim.durableContent("f") as Uint8Array;
    const place = sim.corrupt(seededRandom(FLIPS), ({ durableBeforeBytes }) => ({
      fromByte: 100,
      toByte: durableBeforeBytes,
    }));
    const after = sim.durableContent("f") as Uint8Array;
    const changed = [...after.keys()].filter((i) => after[i] !== before[i]);
    expect(changed).toEqual([place?.offset]);
    expect(place?.offset).toSatisfy((offset: number) => offset >= 100 && offset < 200);
    expect(sim.corrupt(seededRandom(1), () => undefined)).toBeUndefined();
  });

  it("loses the write of the sector in which an append begins, which then is as it was before", async () => {
    const { disk, done, sim } = platter();
    const file = await done(disk.create("f", "x"));
    await done(file.reserve(5_000, "x"));
    for (const byte of [1, 2, 3]) {
      await done(file.append(new Uint8Array(700).fill(byte), "x"));
      await done(file.fdatasync("x"));
    }
    const before = sim.durableContent("f") as Uint8Array;
    sim.corrupt(seededRandom(LOSES), ({ durableBeforeBytes }) => ({ fromByte: 1_200, toByte: durableBeforeBytes }));
    const expected = before.slice();
    expected.fill(0, 700, 1_024);
    expect(sim.durableContent("f")).toEqual(expected);
  });

  it("is empty after it was replaced", async () => {
    const { disk, done, sim, world, reboot } = platter();
    await done(disk.create("f", "x"));
    await done(disk.syncDirectory("x"));
    world.crash("n1");
    sim.wipe();
    world.start("n1");
    expect(await done(reboot("vanish").list("x"))).toEqual([]);
  });
});
