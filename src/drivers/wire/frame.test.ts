import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BulkReceiver } from "./bulk-receiver.ts";
import {
  FRAME,
  frame,
  FRAME_HEADER_BYTES,
  type FrameFault,
  FrameReader,
  type FrameType,
  type Phase,
  writeHeader,
} from "./frame.ts";
import { COPY_BELOW_BYTES } from "./limits.ts";

const BYTES_MAX = 20_000;
const EVERYTHING: Phase = Object.fromEntries(Object.values(FRAME).map((type) => [type, BYTES_MAX]));

interface Read {
  readonly frames: (readonly [FrameType, number[]])[];
  readonly fault: FrameFault | null;
}

function read(chunks: readonly Uint8Array[], phase = EVERYTHING): Read {
  const reader = new FrameReader(phase);
  const frames: (readonly [FrameType, number[]])[] = [];
  for (const chunk of chunks) {
    const fault = reader.push(chunk, (type, payload) => void frames.push([type, [...payload]]));
    if (fault !== null) return { frames, fault };
  }
  return { frames, fault: null };
}

/** Cut at any places, also between the bytes of a header. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b);
  return [0, ...sorted].map((from, at) => bytes.slice(from, sorted[at] ?? bytes.length));
}

const types = fc.constantFrom(...Object.values(FRAME));
const payloads = fc.oneof(
  fc.uint8Array({ maxLength: 64 }),
  fc.uint8Array({ minLength: COPY_BELOW_BYTES - 2, maxLength: COPY_BELOW_BYTES + 2 }),
);
const places = fc.array(fc.nat(), { maxLength: 12 });

describe("the frame reader", () => {
  it("reads what was written, however it was cut into chunks", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(types, payloads), { maxLength: 8 }), places, (frames, cuts) => {
        const bytes = Buffer.concat(frames.map(([type, payload]) => frame(type, payload)));
        expect(read(cut(bytes, cuts))).toEqual({
          frames: frames.map(([type, payload]) => [type, [...payload]]),
          fault: null,
        });
      }),
    );
  });

  it("survives any bytes, tells the same of them in any chunks, and hands out nothing past its bounds", () => {
    const phase: Phase = { [FRAME.hello]: 10, [FRAME.message]: 300 };
    // Small lengths and known types often enough that frames do come about.
    const byte = fc.oneof(fc.constantFrom(0, 1, 4, 2), fc.nat(255));
    const soup = fc.array(byte, { maxLength: 400 }).map((bytes) => Uint8Array.from(bytes));
    fc.assert(
      fc.property(soup, places, (bytes, cuts) => {
        const whole = read([bytes], phase);
        expect(read(cut(bytes, cuts), phase)).toEqual(whole);
        for (const [type, payload] of whole.frames) expect(payload.length).toBeLessThanOrEqual(phase[type]!);
      }),
      { numRuns: 500 },
    );
  });

  it("hands out memory that is not the chunk's where the frame is small, and is never written again", () => {
    const chunk = Buffer.concat([
      frame(FRAME.message, new Uint8Array(40).fill(1)),
      frame(FRAME.message, new Uint8Array(8_000).fill(2)),
    ]);
    const got: Uint8Array[] = [];
    new FrameReader(EVERYTHING).push(chunk, (_type, payload) => void got.push(payload));
    expect(got[0]!.buffer.byteLength).toBe(40);
    expect(got[1]!.buffer).toBe(chunk.buffer);
  });

  it("refuses a length before it allocates it, at the bound and one past it", () => {
    const header = (lengthBytes: number): Uint8Array => {
      const bytes = new Uint8Array(FRAME_HEADER_BYTES);
      writeHeader(bytes, 0, FRAME.message, lengthBytes);
      return bytes;
    };
    expect(read([header(BYTES_MAX)]).fault).toBeNull();
    expect(read([header(BYTES_MAX + 1)]).fault?.reason).toBe("oversized-frame");
    expect(read([header(2 ** 32 - 1)]).fault).toEqual({
      reason: "oversized-frame",
      message: `a frame of 4294967295 bytes, where at most ${BYTES_MAX} are allowed`,
    });
  });

  it("stops in the middle of a chunk when its owner ends it, and follows a change of phase at once", () => {
    const three = Buffer.concat([
      frame(FRAME.hello, Uint8Array.of(1)),
      frame(FRAME.message, Uint8Array.of(2)),
      frame(FRAME.message, Uint8Array.of(3)),
    ]);
    const reader = new FrameReader({ [FRAME.hello]: 10 });
    const got: number[] = [];
    const fault = reader.push(three, (_type, payload) => {
      got.push(payload[0]!);
      if (payload[0] === 1) reader.expect({ [FRAME.message]: 10 });
      if (payload[0] === 2) reader.end();
    });
    expect([got, fault]).toEqual([[1, 2], null]);
    expect(reader.push(three, () => got.push(9))).toBeNull();
    expect(got).toEqual([1, 2]);
  });
});

describe("the bulk receiver", () => {
  it("gives the whole or nothing, whatever comes in whatever order", () => {
    const begin = fc.bigInt({ min: 0n, max: 40n }).map((size) => {
      const payload = new Uint8Array(8);
      new DataView(payload.buffer).setBigUint64(0, size);
      return [FRAME.bulkBegin, payload] as const;
    });
    const data = fc.uint8Array({ maxLength: 20 }).map((payload) => [FRAME.bulkData, payload] as const);
    const end = fc.constant([FRAME.bulkEnd, new Uint8Array(0)] as const);
    let whole = 0;
    fc.assert(
      fc.property(
        begin,
        fc.array(fc.oneof({ weight: 6, arbitrary: data }, begin, end), { maxLength: 6 }),
        (first, rest) => {
          const receiver = new BulkReceiver();
          let sent: number[] = [];
          for (const [type, payload] of [first, ...rest, [FRAME.bulkEnd, new Uint8Array(0)] as const]) {
            if (type === FRAME.bulkData) sent = [...sent, ...payload];
            const step = receiver.take(type, payload);
            if (step.kind === "fault") return;
            if (step.kind !== "whole") continue;
            expect([...step.bytes]).toEqual(sent);
            whole++;
            return;
          }
          expect.unreachable("an end is whole or a fault");
        },
      ),
      { numRuns: 1_000 },
    );
    expect(whole).toBeGreaterThan(10);
  });
});
