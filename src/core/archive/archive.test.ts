import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { eventChain } from "../../logs/archive/event-chain.ts";
import { AUTHOR, sealedEvents, TINY } from "../../../test/archive/test-archive.ts";
import { DecodeError } from "../kit/bytes.ts";
import { TenureError } from "../kit/errors.ts";
import { wholeOf } from "../kit/pieces.ts";
import {
  BEFORE_FIRST,
  checkSegment,
  decodeCapture,
  decodeCatalog,
  encodeCapture,
  encodeCatalog,
  openSealed,
  SegmentBuilder,
  segmentOf,
  type ChainPoint,
  type SegmentEntry,
  type SegmentVerdict,
} from "./index.ts";
import { encodeHeader } from "./segment-format.ts";

const chain = eventChain(digest);
const events = sealedEvents(5);

function check(bytes: Uint8Array, first = 1, before: ChainPoint | null = BEFORE_FIRST): SegmentVerdict {
  const steps = checkSegment({ bytes, first, before, blockBytesMax: TINY.blockBytesMax }, chain, digest);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

function built(count = events.length): { builder: SegmentBuilder; after: ChainPoint; ends: number[] } {
  const builder = new SegmentBuilder({ author: AUTHOR, before: BEFORE_FIRST }, TINY, digest);
  const walk = chain.follow(BEFORE_FIRST)!;
  const ends = [builder.sizeBytes];
  for (const event of events.slice(0, count)) {
    builder.append(event.bytes);
    walk.take(event);
    ends.push(builder.sizeBytes);
  }
  return { builder, after: walk.point(), ends };
}

describe("a segment", () => {
  test("is read as it was written, and its entry names its range and its last hash", () => {
    const { builder, after } = built();
    expect(builder.isFull).toBe(true);
    const entry = builder.seal(after);
    expect(entry).toMatchObject({ first: 1, last: 5, lastHash: events[4]!.event.eventHash });
    expect(entry.sizeBytes).toBe(wholeOf(builder.pieces()).length);
    const verdict = check(wholeOf(builder.pieces()));
    expect(verdict).toMatchObject({ kind: "sealed", entry, after, header: { author: AUTHOR } });
  });

  test("is found from any event on by its index, sealed or not", () => {
    const { builder, after } = built();
    const read = (from: number, source: Pick<SegmentBuilder, "cursorAt">): string[] => {
      const texts: string[] = [];
      const cursor = source.cursorAt(from);
      while (cursor.next() === "event")
        if (cursor.sequence >= from) texts.push(new TextDecoder().decode(cursor.data()));
      return texts;
    };
    const texts = events.map(({ bytes }) => new TextDecoder().decode(bytes));
    for (let from = 1; from <= 5; from++) expect(read(from, builder)).toEqual(texts.slice(from - 1));
    builder.seal(after);
    const sealed = openSealed(wholeOf(builder.pieces()), digest);
    if (typeof sealed === "string") throw new Error(sealed);
    for (let from = 1; from <= 5; from++) {
      expect(read(from, sealed)).toEqual(texts.slice(from - 1));
      expect(read(from, builder)).toEqual(texts.slice(from - 1));
    }
    // Not all of them begin at the start: that there are blocks is what is tested.
    expect(sealed.cursorAt(5).atBytes).toBeGreaterThan(sealed.cursorAt(1).atBytes);
  });

  test("is in pieces of a bounded size, of which no block is in two, and which never change", () => {
    const limits = { eventsMax: 100_000, bytesMax: 1024 * 1024, blockBytesMax: 64 * 1024 };
    const builder = new SegmentBuilder({ author: AUTHOR, before: BEFORE_FIRST }, limits, digest);
    const bytesOf = (n: number): Uint8Array =>
      new Uint8Array(n % 97 === 0 ? 300_000 : 1 + ((n * 7_919) % 3_000)).fill(n);
    const dumb: Uint8Array[] = [];
    const seen: { readonly fromBytes: number; readonly pieces: Uint8Array[]; readonly copy: Uint8Array }[] = [];
    while (!builder.isFull) {
      const fromBytes = builder.sizeBytes;
      dumb.push(bytesOf(dumb.length + 1));
      builder.append(dumb.at(-1)!);
      const pieces = builder.pieces(fromBytes);
      seen.push({ fromBytes, pieces, copy: wholeOf(pieces) });
      expect(pieces.length).toBe(1);
      expect(pieces[0]!.buffer.byteLength).toBeLessThanOrEqual(Math.max(256 * 1024, 300_000 + 64 * 1024 + 8));
    }
    const whole = wholeOf(builder.pieces());
    expect(whole.length).toBe(builder.sizeBytes);
    for (const { fromBytes, pieces, copy } of seen) {
      expect(Buffer.compare(wholeOf(pieces), copy)).toBe(0);
      expect(Buffer.compare(whole.subarray(fromBytes, fromBytes + copy.length), copy)).toBe(0);
      expect(Buffer.compare(wholeOf(builder.pieces(fromBytes)), whole.subarray(fromBytes))).toBe(0);
    }
    for (const from of [1, 2, 50, 97, 98, dumb.length]) {
      const cursor = builder.cursorAt(from);
      for (let at = cursor.sequence; at < dumb.length; at++) {
        expect(cursor.next()).toBe("event");
        expect(Buffer.compare(cursor.data(), dumb[at]!)).toBe(0);
      }
      expect([cursor.next(), cursor.sequence]).toEqual(["end", dumb.length]);
    }
  });

  test("names the event of every single flipped byte", () => {
    const { builder, after, ends } = built();
    builder.seal(after);
    const bytes = wholeOf(builder.pieces()).slice();
    for (let at = 0; at < bytes.length; at++) {
      const inEvent = ends.findIndex((end) => at < end);
      const expected = inEvent < 0 ? 5 : Math.max(1, inEvent);
      for (const bit of [1, 128]) {
        bytes[at]! ^= bit;
        const verdict = check(bytes);
        if (verdict.kind === "broken") expect([at, verdict.sequence]).toEqual([at, expected]);
        else if (verdict.kind === "open") expect([at, Math.min(5, verdict.after.sequence + 1)]).toEqual([at, expected]);
        else expect.unreachable(`byte ${at}: ${verdict.kind}`);
        bytes[at]! ^= bit;
      }
    }
    expect(check(bytes).kind).toBe("sealed");
  });

  test("that is torn anywhere is whole up to the last event before that, and goes on from there to the same bytes", () => {
    const { builder, ends } = built(4);
    const bytes = wholeOf(builder.pieces());
    for (let size = ends[0]!; size <= bytes.length; size++) {
      const verdict = check(bytes.subarray(0, size));
      if (verdict.kind !== "open") throw new Error(`${size}: ${verdict.kind}`);
      const whole = ends.findLastIndex((end) => end <= size);
      expect(verdict.after.sequence).toBe(whole);
      expect(verdict.sizeBytes).toBe(ends[whole]);
      expect(verdict.tail === null).toBe(ends.includes(size));
      const resumed = SegmentBuilder.resume(verdict.header, bytes.subarray(0, size), TINY, digest);
      for (const event of events.slice(whole, 4)) resumed.append(event.bytes);
      expect(Buffer.compare(wholeOf(resumed.pieces()), bytes)).toBe(0);
    }
    for (let size = 0; size < ends[0]!; size++) expect(check(bytes.subarray(0, size)).kind).toBe("broken");
  });

  test("is refused under another name, behind another chain, with an event out of place, and from a later release", () => {
    const { builder, after } = built();
    builder.seal(after);
    const bytes = wholeOf(builder.pieces());
    expect(check(bytes, 6, null)).toMatchObject({ kind: "broken", sequence: 6 });
    expect(check(bytes, 1, { ...BEFORE_FIRST, timestamp: 5 })).toMatchObject({ kind: "broken", isRot: false });

    const swapped = new SegmentBuilder({ author: AUTHOR, before: BEFORE_FIRST }, TINY, digest);
    for (const i of [0, 2, 1, 3, 4]) swapped.append(events[i]!.bytes);
    swapped.seal(after);
    expect(check(wholeOf(swapped.pieces()))).toMatchObject({ kind: "broken", sequence: 2, isRot: false });

    const newer = encodeHeader({ author: AUTHOR, before: BEFORE_FIRST }, digest).slice();
    newer[8] = 2;
    const crc = digest.crc32(newer.subarray(8));
    new DataView(newer.buffer, newer.byteOffset).setUint32(4, crc);
    expect(check(newer)).toEqual({ kind: "newer", version: 2 });
  });

  test("has the same contents' hash for the same contents, and for no others", () => {
    const hashOf = (count: number, author = AUTHOR): string => {
      const { after } = built(count);
      const builder = new SegmentBuilder({ author, before: BEFORE_FIRST }, TINY, digest);
      for (const event of events.slice(0, count)) builder.append(event.bytes);
      return Buffer.from(builder.seal(after).contentHash).toString("hex");
    };
    expect(hashOf(3)).toBe(hashOf(3));
    expect(new Set([hashOf(3), hashOf(4), hashOf(3, "other.0")]).size).toBe(3);
  });
});

describe("a manifest", () => {
  const entry = (first: number, last: number, sum = first): SegmentEntry => ({
    first,
    last,
    lastHash: String(sum % 10).repeat(64),
    contentHash: new Uint8Array(32).fill(sum),
    sizeBytes: 100,
  });
  const segments = [entry(1, 5), entry(6, 10), entry(11, 15)];

  test("finds the segment of an event", () => {
    for (let sequence = 1; sequence <= 15; sequence++) {
      expect(segmentOf(segments, sequence)).toBe(segments[Math.floor((sequence - 1) / 5)]);
    }
    expect(segmentOf(segments, 0)).toBeUndefined();
    expect(segmentOf(segments, 16)).toBeUndefined();
  });

  test("travels in a snapshot with the open segment, and no shortened one is read", () => {
    const { builder, after } = built(3);
    const checkpoint = { ...after, sequence: 3 };
    const capture = { start: BEFORE_FIRST, segments, head: after, checkpoint, open: wholeOf(builder.pieces()) };
    const bytes = encodeCapture(capture);
    expect(decodeCapture(bytes)).toEqual(capture);
    for (let size = 0; size < bytes.length; size++) {
      expect(() => decodeCapture(bytes.subarray(0, size))).toThrow(DecodeError);
    }
    expect(() => decodeCapture(Uint8Array.from([...bytes, 0]))).toThrow(DecodeError);
    expect(() => decodeCapture(Uint8Array.from([2, ...bytes.subarray(1)]))).toThrow(TenureError);
  });

  test("with a gap is no manifest", () => {
    const capture = { start: BEFORE_FIRST, head: BEFORE_FIRST, checkpoint: null, open: new Uint8Array(0) };
    const bytes = encodeCapture({ ...capture, segments: [entry(1, 5), entry(7, 8)] });
    expect(() => decodeCapture(bytes)).toThrow("a gap between segments");
  });

  test("is kept in a catalog in which no flipped byte is believed", () => {
    const catalog = { start: BEFORE_FIRST, checkpoint: null, segments, whole: new Set([1, 11]) };
    const bytes = encodeCatalog(catalog, digest).slice();
    expect(decodeCatalog(bytes, digest)).toEqual(catalog);
    for (let at = 0; at < bytes.length; at++) {
      bytes[at]! ^= 1;
      expect(decodeCatalog(bytes, digest)).toBeNull();
      bytes[at]! ^= 1;
    }
  });
});
