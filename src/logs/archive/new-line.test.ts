// History where a cluster begins anew (recover, restore): nothing is written before it is decided, and what nobody has any
// more is let go and said so, instead of being waited for.

import { describe, expect, test } from "vitest";
import { decodeCapture, encodeCapture } from "../../core/archive/index.ts";
import { DecodeError } from "../../core/kit/bytes.ts";
import { TestDisk } from "../../engine/test-disk.ts";
import {
  digest,
  expectHistory,
  expectIntact,
  filled,
  open,
  sealedEvents,
  sequencesOf,
} from "../../../test/archive/test-archive.ts";
import { captureFrom } from "./captures.ts";
import { EVENTS } from "./kinds.ts";
import type { Finding } from "./index.ts";
import { wholeOf } from "../../core/kit/pieces.ts";

const events = sealedEvents(23);

function contents(disk: TestDisk): Record<string, string> {
  return Object.fromEntries(disk.names().map((name) => [name, Buffer.from(disk.bytesOf(name)).toString("hex")]));
}

describe("an archive that syncs when it is asked", () => {
  test("leaves the directory as it is, whatever is appended and captured, until it is", async () => {
    const disk = new TestDisk();
    await (await filled(disk, events.slice(0, 12))).archive.close();
    const before = contents(disk);
    const { archive, clock } = await open(disk, { syncs: "asked" });
    archive.append(events);
    const capture = wholeOf(await archive.capture());
    expect(decodeCapture(capture).head.sequence).toBe(23);
    expect(clock.pending).toBe(0);
    expect(contents(disk)).toEqual(before);
    await archive.durable(23);
    await archive.close();
    const again = await open(disk);
    await again.archive.restore(capture);
    expect(again.archive.missing()).toEqual([]);
    await expectHistory(again.archive, events);
    await expectIntact(again.archive, 23);
  });

  test("gives up what was appended where it is closed before", async () => {
    const disk = new TestDisk();
    await (await filled(disk, events.slice(0, 12))).archive.close();
    const before = contents(disk);
    const { archive } = await open(disk, { syncs: "asked" });
    archive.append(events);
    await archive.close();
    expect(contents(disk)).toEqual(before);
  });
});

describe("what is missing in a cluster that begins anew", () => {
  /** Segments 1–5, 6–10, 11–15, 16–20, and 21–23 open; those that start with `gone` are not here. */
  async function lacking(...gone: number[]): Promise<TestDisk> {
    const disk = new TestDisk();
    await (await filled(disk, events)).archive.close();
    for (const first of gone) disk.drop(EVENTS.names.segment(first));
    return disk;
  }

  test.each([
    { gone: [1], from: 6, former: [] },
    { gone: [11], from: 16, former: [1, 6] },
    { gone: [6, 16], from: 21, former: [1, 11] },
  ])("is let go, with all that is before it ($gone)", async ({ gone, from, former }) => {
    const disk = await lacking(...gone);
    const { archive } = await open(disk, { syncs: "asked" });
    const start = (await archive.startBehindMissing())!;
    expect(start).toMatchObject({ sequence: from - 1, hash: events[from - 2]!.event.eventHash });
    const capture = captureFrom(wholeOf(await archive.capture()), start, digest);
    expect(capture.startSequence).toBe(from - 1);
    await archive.giveUpBefore(start);
    await archive.close();
    expect(disk.names().filter((name) => name.startsWith("former-"))).toEqual(
      former.map((first) => `former-${EVENTS.names.segment(first)}`),
    );
    const again = await open(disk);
    await again.archive.restore(capture.bytes);
    expect(again.archive.missing()).toEqual([]);
    expect(await sequencesOf(again.archive, from)).toEqual(events.slice(from - 1).map(({ event }) => event.sequence));
    await expect(sequencesOf(again.archive, from - 1)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    await expectIntact(again.archive, 23 - from + 1);
  });

  test("is let go by the next start too, where the tool was killed before it set anything aside", async () => {
    const disk = await lacking(11);
    const { archive } = await open(disk, { syncs: "asked" });
    const capture = captureFrom(wholeOf(await archive.capture()), await archive.startBehindMissing(), digest);
    const again = await open(disk.clone());
    expect(again.archive.missing()).toHaveLength(1);
    await again.archive.restore(capture.bytes);
    expect(again.archive.missing()).toEqual([]);
    expect(again.archive.stats()).toMatchObject({ startSequence: 15, lastSequence: 23 });
    await expectIntact(again.archive, 8);
    // And whoever joins hears of nothing else.
    expect(decodeCapture(wholeOf(await again.archive.capture())).start.sequence).toBe(15);
  });

  test("is nothing where all is here", async () => {
    const { archive } = await open(await lacking());
    expect(await archive.startBehindMissing()).toBeNull();
  });

  test("is found also where the next segment turns out to be damaged", async () => {
    const disk = await lacking(6);
    const bytes = disk.bytesOf(EVENTS.names.segment(11)).slice();
    bytes[20]! ^= 1;
    disk.put(EVENTS.names.segment(11), bytes);
    const { archive } = await open(disk);
    expect(await archive.startBehindMissing()).toMatchObject({ sequence: 15 });
  });

  test("a snapshot alone has the open segment, and history begins with it, on every node that it comes to", async () => {
    const source = await filled(new TestDisk(), events);
    const capture = captureFrom(wholeOf(await source.archive.capture()), null, digest);
    expect(capture.startSequence).toBe(20);
    const disk = new TestDisk();
    const restored = await open(disk);
    await restored.archive.restore(capture.bytes);
    expect(restored.archive.missing()).toEqual([]);
    expect(await sequencesOf(restored.archive, 21)).toEqual([21, 22, 23]);
    await expect(sequencesOf(restored.archive, 1)).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    await expectIntact(restored.archive, 3);
    const joining = await open(new TestDisk());
    await joining.archive.restore(wholeOf(await restored.archive.capture()));
    expect(joining.archive.stats()).toMatchObject({ startSequence: 20, lastSequence: 23, missingSegments: 0 });
    await restored.archive.close();
    expect((await open(disk)).archive.stats()).toMatchObject({ startSequence: 20, lastSequence: 23 });
  });

  test("a snapshot without an open segment, or without a sealed one, is one too", async () => {
    const full = await filled(new TestDisk(), events.slice(0, 20));
    expect(captureFrom(wholeOf(await full.archive.capture()), null, digest).startSequence).toBe(20);
    const young = await filled(new TestDisk(), events.slice(0, 3));
    const captured = wholeOf(await young.archive.capture());
    expect(captureFrom(captured, null, digest)).toEqual({ bytes: captured, startSequence: 0 });
  });
});

describe("a capture that makes no sense", () => {
  test("is refused, and nothing is changed: cut short, of another place, or with an open segment that is not its own", async () => {
    const source = await filled(new TestDisk(), events);
    const bytes = wholeOf(await source.archive.capture());
    const capture = decodeCapture(bytes);
    const other = decodeCapture(wholeOf(await (await filled(new TestDisk(), events.slice(0, 12))).archive.capture()));
    const disk = new TestDisk();
    const { archive } = await filled(disk, events.slice(0, 7));
    const before = contents(disk);
    const wrong = [
      bytes.subarray(0, bytes.length - 1),
      encodeCapture({ ...capture, open: other.open }),
      encodeCapture({ ...capture, open: new Uint8Array(0) }),
      encodeCapture({ ...capture, open: capture.open.subarray(0, 40) }),
      encodeCapture({ ...capture, segments: capture.segments.slice(0, 2) }),
      encodeCapture({ ...capture, head: { ...capture.head, frontier: new Uint8Array(3) } }),
    ];
    for (const one of wrong) expect(() => archive.restore(one)).toThrow(DecodeError);
    expect(archive.lastSequence).toBe(7);
    expect(contents(disk)).toEqual(before);
    await archive.restore(bytes);
    expect(archive.lastSequence).toBe(23);
  });
});

describe("damage that is found while the node runs", () => {
  test("is told with the file and the event, once, whether a reader, verify or a peer found it", async () => {
    const found: Finding[] = [];
    const disk = new TestDisk();
    await (await filled(disk, events)).archive.close();
    for (const first of [1, 6]) {
      const bytes = disk.bytesOf(EVENTS.names.segment(first)).slice();
      bytes[bytes.length >> 1]! ^= 1;
      disk.put(EVENTS.names.segment(first), bytes);
    }
    disk.drop(EVENTS.names.segment(11));
    const { archive } = await open(disk, { found: (one) => void found.push(one) });
    await expect(sequencesOf(archive, 1)).rejects.toMatchObject({ code: "DISK_DAMAGED" });
    for await (const step of archive.verify()) if (step.kind === "end") expect(step.isIntact).toBe(false);
    expect(found.map(({ file }) => file)).toEqual([EVENTS.names.segment(1), EVENTS.names.segment(6)]);
    for (const { kind, sequence, why } of found) {
      expect(kind).toBe("damaged");
      expect(sequence).toBeGreaterThan(0);
      expect(why).not.toBe("");
    }
    expect(archive.missing().map(({ first }) => first)).toEqual([1, 6, 11]);
    expect(disk.names().filter((name) => name.startsWith("damaged-"))).toHaveLength(2);
  });
});
