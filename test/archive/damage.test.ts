import { describe, expect, test } from "vitest";
import { TestDisk } from "../../src/engine/test-disk.ts";
import type { Archive, VerifyStep } from "../../src/logs/archive/index.ts";
import {
  expectHistory,
  expectIntact,
  fetchAll,
  filled,
  open,
  sealedEvents,
  verified,
  type TestArchive,
} from "./test-archive.ts";

const events = sealedEvents(5, "c", 1);
const limits = { eventsMax: 2, bytesMax: 100_000, blockBytesMax: 100 };
const SEGMENTS = [1, 3] as const;
const OPEN_FIRST = 5;
const nameOf = (first: number): string => `events-${String(first).padStart(16, "0")}`;
const start = (disk: TestDisk): Promise<TestArchive> => open(disk, { limits });

function firstBroken(steps: readonly VerifyStep[]): VerifyStep | undefined {
  return steps.find(({ kind }) => kind === "broken");
}

/** Where each event's record ends in its file: the footer is after the last. */
function recordEnds(bytes: Uint8Array, count: number): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const ends = [13 + view.getUint32(9)];
  for (let i = 0; i < count; i++) ends.push(ends.at(-1)! + 8 + view.getUint32(ends.at(-1)! + 4));
  return ends;
}

/** The event that a byte belongs to; the header counts to the first, the footer to the last. */
function eventAt(at: number, ends: readonly number[], first: number): number {
  const record = ends.findIndex((end) => at < end);
  return record < 0 ? first + ends.length - 2 : Math.max(first, first + record - 1);
}

async function mended(archive: Archive, peer: Archive): Promise<void> {
  await fetchAll(archive, peer);
  await expectHistory(archive, events);
  await expectIntact(archive, events.length);
}

describe("every single flipped byte of an archive", () => {
  test.each(SEGMENTS)(
    "in the sealed segment from %i on is found, named with its event, and mended from a peer",
    async (first) => {
      const intact = new TestDisk();
      const { archive: peer } = await filled(intact, events, { limits });
      const ends = recordEnds(intact.bytesOf(nameOf(first)), 2);
      const size = intact.bytesOf(nameOf(first)).length;
      for (let at = 0; at < size; at++) {
        const disk = intact.clone();
        disk.bytesOf(nameOf(first))[at]! ^= 1 << (at % 8);
        const { archive } = await start(disk);
        const broken = firstBroken(await verified(archive));
        if (broken?.kind !== "broken") expect.unreachable(`byte ${at} of ${nameOf(first)} is not found`);
        expect([at, broken.file, broken.sequence]).toEqual([at, nameOf(first), eventAt(at, ends, first)]);
        expect(archive.missing().map((entry) => entry.first)).toEqual([first]);
        await fetchAll(archive, peer);
        expect(Buffer.compare(disk.bytesOf(nameOf(first)), intact.bytesOf(nameOf(first)))).toBe(0);
        if (at % 50 === 0) await mended(archive, peer);
        expect(disk.names().filter((name) => name.startsWith("damaged-"))).toEqual([]);
      }
    },
  );

  test("in the open segment is found by verify, and cut at its event by the next start, which the snapshot mends", async () => {
    const intact = new TestDisk();
    const { archive: peer } = await filled(intact, events, { limits });
    const capture = await peer.capture();
    const name = nameOf(OPEN_FIRST);
    for (let at = 0; at < intact.bytesOf(name).length; at++) {
      const disk = intact.clone();
      const running = await start(disk);
      disk.bytesOf(name)[at]! ^= 1 << (at % 8);
      expect(firstBroken(await verified(running.archive))).toMatchObject({ file: name, sequence: OPEN_FIRST });
      const again = await start(disk);
      expect(again.findings).toMatchObject([{ kind: "torn", file: name, sequence: OPEN_FIRST }]);
      expect(again.archive.lastSequence).toBe(OPEN_FIRST - 1);
      await again.archive.restore(capture);
      if (at % 50 === 0) await mended(again.archive, peer);
      expect(Buffer.compare(disk.bytesOf(name), intact.bytesOf(name))).toBe(0);
    }
  });

  test("in the catalog is found, and costs no event", async () => {
    const intact = new TestDisk();
    const { archive: peer } = await filled(intact, events, { limits });
    for (let at = 0; at < intact.bytesOf("events-catalog").length; at++) {
      const disk = intact.clone();
      disk.bytesOf("events-catalog")[at]! ^= 1 << (at % 8);
      const { archive, findings } = await start(disk);
      expect(findings).toMatchObject([{ kind: "damaged", file: "events-catalog" }]);
      expect(archive.lastSequence).toBe(5);
      if (at % 20 === 0) await mended(archive, peer);
    }
  });
});

describe("what is not there any more", () => {
  test.each(["a segment", "the last sealed segment", "the open segment", "the catalog", "everything"])(
    "%s: the history is whole again with the snapshot and the peers",
    async (what) => {
      const disk = new TestDisk();
      const { archive: peer } = await filled(disk.clone(), events, { limits });
      const capture = await peer.capture();
      await (await filled(disk, events, { limits })).archive.close();
      const lost: Record<string, string[]> = {
        "a segment": [nameOf(1)],
        "the last sealed segment": [nameOf(3)],
        "the open segment": [nameOf(5)],
        "the catalog": ["events-catalog"],
        everything: disk.names(),
      };
      for (const name of lost[what]!) disk.drop(name);
      const { archive } = await start(disk);
      await archive.restore(capture);
      await mended(archive, peer);
      await archive.close();
      const again = await start(disk);
      expect(again.findings).toEqual([]);
      await mended(again.archive, peer);
    },
  );

  test("a segment that is cut short at any byte, or longer than it was", async () => {
    const intact = new TestDisk();
    const { archive: peer } = await filled(intact, events, { limits });
    const whole = intact.bytesOf(nameOf(3));
    for (let size = 0; size <= whole.length + 1; size += 1 + (size % 3)) {
      if (size === whole.length) continue;
      const disk = intact.clone();
      disk.put(nameOf(3), size > whole.length ? Uint8Array.from([...whole, 0]) : whole.slice(0, size));
      const { archive } = await start(disk);
      const broken = firstBroken(await verified(archive));
      if (broken?.kind !== "broken") expect.unreachable(`${size} bytes are believed`);
      expect([3, 4]).toContain(broken.sequence);
      if (size % 40 === 0) await mended(archive, peer);
    }
  });

  test("damage that a reader meets first is named, set aside and fetched again", async () => {
    const disk = new TestDisk();
    const { archive: peer } = await filled(disk, events, { limits });
    const { archive } = await start(disk.clone());
    const node = disk.clone();
    node.bytesOf(nameOf(3)).fill(0, 200, 210);
    const reader = await start(node);
    let told = 0;
    reader.archive.onMissing(() => told++);
    await expect(expectHistory(reader.archive, events)).rejects.toThrow(
      /events-0000000000000003 is damaged at event 3/,
    );
    expect(told).toBe(1);
    await expect(expectHistory(reader.archive, events)).rejects.toThrow(/event 3 is not in this node's archive/);
    expect(await reader.archive.serve(3, 0, 100)).toBeNull();
    await mended(reader.archive, peer);
    await expectIntact(archive, 5);
  });
});

describe("a segment from a peer", () => {
  test("is refused unless it is the one that is missing", async () => {
    const source = new TestDisk();
    const { archive: peer } = await filled(source, events, { limits });
    const { archive: stranger } = await filled(new TestDisk(), sealedEvents(5, "d", 1), { limits });
    const { archive } = await start(new TestDisk());
    await archive.restore(await peer.capture());
    const [one, two] = archive.missing();
    const bytes = (await peer.serve(1, 0, 100_000))!;
    const wrong: Record<string, Uint8Array> = {
      "another chain's": (await stranger.serve(1, 0, 100_000))!,
      "the next one": (await peer.serve(3, 0, 100_000))!,
      "a short one": bytes.subarray(0, -1),
      "a long one": Uint8Array.from([...bytes, 0]),
      "an empty one": new Uint8Array(0),
      zeros: new Uint8Array(bytes.length),
    };
    for (const [what, wrongBytes] of Object.entries(wrong)) {
      await expect(archive.install(wrongBytes, one!), what).rejects.toMatchObject({ code: "CHAIN_BROKEN" });
    }
    // It is whole, and what the peer calls it; the manifest says otherwise.
    const forged = { ...one!, contentHash: two!.contentHash };
    await expect(archive.install(bytes, forged)).rejects.toThrow(/another hash/);
    expect(archive.missing()).toEqual([one, two]);
    await mended(archive, peer);
  });

  test("is taken once, and what is not missing stays as it is", async () => {
    const disk = new TestDisk();
    const { archive } = await filled(disk, events, { limits });
    const [one] = archive.manifest().segments;
    const calls = disk.calls.length;
    await archive.install((await archive.serve(1, 0, 100_000))!, one!);
    expect(disk.calls.slice(calls).filter((call) => call.includes("install"))).toEqual([]);
  });

  test("is served piece by piece, and not at all while it is not sealed and durable", async () => {
    const { archive } = await start(new TestDisk());
    archive.append(events);
    expect(await archive.serve(1, 0, 10)).toBeNull();
    await archive.durable(5);
    const whole = (await archive.serve(1, 0, 100_000))!;
    const pieces: number[] = [];
    for (let at = 0; at < whole.length; at += 100) pieces.push(...(await archive.serve(1, at, 100))!);
    expect(pieces).toEqual([...whole]);
    expect((await archive.serve(1, whole.length, 100))!.length).toBe(0);
    for (const first of [0, 2, 5, 99]) expect(await archive.serve(first, 0, 10)).toBeNull();
  });
});
