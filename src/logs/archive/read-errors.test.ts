import { describe, expect, onTestFinished, test, vi } from "vitest";
import { TestDisk } from "../../engine/test-disk.ts";
import type { Archive, VerifyStep } from "./index.ts";
import {
  expectHistory,
  expectIntact,
  fetchAll,
  filled,
  open,
  sealedEvents,
  sequencesOf,
  verified,
} from "../../../test/archive/test-archive.ts";

const events = sealedEvents(23);
const SECOND = "events-0000000000000006";
const THIRD = "events-0000000000000011";

const failure = (code: string): Error => Object.assign(new Error(`${code}: no read`), { code });
const damagedFiles = (disk: TestDisk): string[] => disk.names().filter((name) => name.startsWith("damaged-"));

/** With 23 events in it, closed. */
async function closedDisk(): Promise<TestDisk> {
  const disk = new TestDisk();
  await (await filled(disk, events)).archive.close();
  return disk;
}

/** The next reads of files, one error each. */
function failReads(disk: TestDisk, ...codes: string[]): void {
  const read = disk.read.bind(disk);
  const spy = vi.spyOn(disk, "read").mockImplementation((name, label) => {
    const code = codes.shift();
    return code === undefined ? read(name, label) : Promise.reject(failure(code));
  });
  onTestFinished(() => spy.mockRestore());
}

describe("a read that fails for the moment", () => {
  const PASSING = ["EMFILE", "ENFILE", "EAGAIN", "ENOMEM", "EBUSY", "EACCES", "EINTR"];
  const uses: readonly (readonly [string, (archive: Archive) => Promise<unknown>])[] = [
    ["a reader", (archive) => sequencesOf(archive, 6, 5)],
    ["the chain behind an event", (archive) => archive.pointAt(8)],
    ["verify", (archive) => verified(archive)],
  ];

  test.each(uses)(
    "answers %s with BACKEND_UNAVAILABLE, changes nothing, and is over with its cause",
    async (_, use) => {
      for (const code of PASSING) {
        const disk = await closedDisk();
        const { archive } = await open(disk);
        const names = disk.names();
        failReads(disk, code);
        await expect(use(archive)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
        expect(archive.stats().missingSegments).toBe(0);
        expect(disk.names()).toEqual(names);
        await expectHistory(archive, events);
        await expectIntact(archive, 23);
      }
    },
  );

  test("is nothing for a peer that asks, who asks again", async () => {
    const disk = await closedDisk();
    const { archive } = await open(disk);
    failReads(disk, "EMFILE");
    expect(await archive.serve(6, 0, 10)).toBeNull();
    expect(archive.stats().missingSegments).toBe(0);
    expect(await archive.serve(6, 0, 10)).toHaveLength(10);
  });

  test("keeps a start from going on, and the directory as it was", async () => {
    const disk = await closedDisk();
    const before = disk.clone();
    // The catalog is read first, then the last sealed segment.
    disk.drop("events-catalog");
    failReads(disk, "EMFILE");
    await expect(open(disk)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(disk.names()).toEqual(before.names().filter((name) => name !== "events-catalog"));
    await expectIntact((await open(disk)).archive, 23);
  });
});

describe("a device that can't read", () => {
  test("is asked a second time, and believed when it fails again", async () => {
    const disk = await closedDisk();
    const { archive } = await open(disk);
    failReads(disk, "EIO");
    expect(await sequencesOf(archive, 6, 5)).toEqual([6, 7, 8, 9, 10]);
    failReads(disk, "EIO", "EIO");
    await expect(sequencesOf(archive, 11, 5)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    expect(damagedFiles(disk)).toEqual([`damaged-${THIRD}`]);
  });

  test("at a start: the segment is set aside, and not removed", async () => {
    const disk = await closedDisk();
    disk.drop("events-catalog");
    failReads(disk, "EIO", "EIO");
    const { findings } = await open(disk);
    expect(findings).toMatchObject([{ kind: "damaged", sequence: 1 }]);
    expect(damagedFiles(disk)).toEqual(["damaged-events-0000000000000001"]);
  });
});

describe("the open segment", () => {
  test("that the device can't read at a start is set aside too, and not taken for torn", async () => {
    const disk = new TestDisk();
    await (await filled(disk, events.slice(0, 3))).archive.close();
    failReads(disk, "EIO", "EIO");
    const { archive, findings } = await open(disk);
    expect(findings).toMatchObject([{ kind: "damaged", sequence: 1 }]);
    expect(damagedFiles(disk)).toEqual(["damaged-events-0000000000000001"]);
    // The log has it.
    archive.append(events.slice(0, 3));
    await expectHistory(archive, events.slice(0, 3));
  });
});

describe("a segment that was set aside", () => {
  test("and is whole after all is taken back by the next start", async () => {
    const disk = await closedDisk();
    const { archive } = await open(disk);
    failReads(disk, "EIO", "EIO");
    await expect(sequencesOf(archive, 6, 5)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    await archive.close();
    const again = await open(disk);
    expect(again.findings).toMatchObject([{ kind: "returned", file: `damaged-${SECOND}`, sequence: 6 }]);
    expect(damagedFiles(disk)).toEqual([]);
    expect(again.archive.missing()).toEqual([]);
    await expectHistory(again.archive, events);
    await expectIntact(again.archive, 23);
  });

  test("is taken back also where the catalog is gone, or was not written any more", async () => {
    for (const spoil of [(disk: TestDisk) => disk.drop("events-catalog"), () => undefined]) {
      const disk = await closedDisk();
      disk.put(`damaged-${SECOND}`, disk.bytesOf(SECOND).slice());
      disk.drop(SECOND);
      spoil(disk);
      await expectIntact((await open(disk)).archive, 23);
      expect(damagedFiles(disk)).toEqual([]);
    }
  });

  test("and is damaged stays aside, and is missing", async () => {
    const disk = await closedDisk();
    const bytes = disk.bytesOf(SECOND).slice();
    bytes[200]! ^= 1;
    disk.put(`damaged-${SECOND}`, bytes);
    disk.drop(SECOND);
    const { archive } = await open(disk);
    expect(archive.missing().map(({ first }) => first)).toEqual([6]);
    expect(damagedFiles(disk)).toEqual([`damaged-${SECOND}`]);
  });

  test("of another line is not taken back", async () => {
    const disk = await closedDisk();
    const other = new TestDisk();
    await filled(other, sealedEvents(23, "c1.1"));
    disk.put(`damaged-${SECOND}`, other.bytesOf(SECOND).slice());
    disk.drop(SECOND);
    const { archive } = await open(disk);
    expect(archive.missing().map(({ first }) => first)).toEqual([6]);
    expect(damagedFiles(disk)).toEqual([`damaged-${SECOND}`]);
  });

  test("is removed once a copy has its place, also by a start behind a crash between the two", async () => {
    const disk = await closedDisk();
    disk.put(`damaged-${SECOND}`, Uint8Array.of(1));
    const { archive } = await open(disk);
    expect(damagedFiles(disk)).toEqual([]);
    await expectIntact(archive, 23);
  });

  test("counts as history that is used, until an operator has removed it", async () => {
    const disk = await closedDisk();
    const { archive } = await open(disk);
    const { usedBytes } = archive.stats();
    const { sizeBytes } = archive.manifest().segments[1]!;
    disk.bytesOf(SECOND)[200]! ^= 1;
    await verified(archive);
    expect(damagedFiles(disk)).toHaveLength(1);
    expect(archive.stats().usedBytes).toBe(usedBytes);
    await fetchAll(archive, (await open(await closedDisk())).archive);
    expect(archive.stats().usedBytes).toBe(usedBytes);

    disk.put(`former-${THIRD}`, new Uint8Array(1_000));
    await archive.recount();
    expect(archive.stats().usedBytes).toBe(usedBytes + 1_000);
    await archive.close();
    const again = await open(disk, { quotaBytes: usedBytes + 1_000 });
    expect(again.archive.quota).toMatchObject({ usedBytes: usedBytes + 1_000, level: "refuse" });
    disk.failNext("archive-list", failure("EMFILE"));
    await again.archive.recount();
    expect(again.archive.quota.usedBytes, "what was counted before").toBe(usedBytes + 1_000);
    disk.drop(`former-${THIRD}`);
    await again.archive.recount();
    expect(again.archive.quota.usedBytes).toBe(usedBytes);
    expect(sizeBytes).toBeGreaterThan(0);
  });
});

describe("a whole segment in another's place", () => {
  async function misfiled(): Promise<TestDisk> {
    const disk = await closedDisk();
    disk.put(THIRD, disk.bytesOf(SECOND).slice());
    return disk;
  }

  test("is damage for a reader, and does not keep it for ever", async () => {
    const disk = await misfiled();
    const { archive } = await open(disk);
    await expect(sequencesOf(archive, 11, 5)).rejects.toMatchObject({
      code: "DISK_DAMAGED",
      message: expect.stringContaining("it starts with event 6 under another name"),
    });
    expect(archive.missing().map(({ first }) => first)).toEqual([11]);
    await fetchAll(archive, (await open(await closedDisk())).archive);
    await expectHistory(archive, events);
  });

  test("is not served to a peer", async () => {
    const { archive } = await open(await misfiled());
    expect(await archive.serve(11, 0, 10)).toBeNull();
    expect(archive.missing().map(({ first }) => first)).toEqual([11]);
  });

  test("or one that lacks its last event, footer and all, is damage where it ends", async () => {
    const disk = await closedDisk();
    const bytes = disk.bytesOf(SECOND);
    const u32 = (at: number): number => new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
    const ends = [13 + u32(9)];
    for (let event = 6; event <= 10; event++) ends.push(ends.at(-1)! + 8 + u32(ends.at(-1)! + 4));
    disk.put(SECOND, Uint8Array.from([...bytes.subarray(0, ends[4]), ...bytes.subarray(ends[5])]));
    const { archive } = await open(disk);
    await expect(sequencesOf(archive, 6, 5)).rejects.toMatchObject({
      code: "DISK_DAMAGED",
      message: expect.stringContaining("at event 10: the file ends before it"),
    });
    expect(archive.missing().map(({ first }) => first)).toEqual([6]);
  });

  test("of the same events with another author is another one", async () => {
    const disk = await closedDisk();
    const other = new TestDisk();
    await filled(other, sealedEvents(23, "c1.1"));
    disk.put(THIRD, other.bytesOf(THIRD).slice());
    const { archive } = await open(disk);
    await expect(sequencesOf(archive, 11, 5)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    const broken = (await verified(archive)).find(({ kind }) => kind !== "progress") as VerifyStep;
    expect(broken).toMatchObject({ kind: "missing", first: 11 });
  });
});
