// Frames on a connection: u32 payload bytes, big-endian | u8 type | payload.
//
// Invariants of the reader:
// - What may come, and how long it may be, is said by the phase of the connection; a length is checked before
//   anything is allocated for it, and the first frame that does not fit is the last one that is read.
// - A payload that is handed out is memory that is never written again. A large one is a view of the chunk it came
//   in; a small one is a copy, so that 40 bytes do not keep 64 KiB alive.
// - How the bytes were cut into chunks can't be observed.

import { COPY_BELOW_BYTES } from "./limits.ts";

export const FRAME_HEADER_BYTES = 5;

export const FRAME = {
  hello: 1,
  ack: 2,
  refuse: 3,
  message: 4,
  beacon: 5,
  ping: 6,
  pong: 7,
  bulkBegin: 8,
  bulkData: 9,
  bulkEnd: 10,
  query: 11,
  answer: 12,
} as const;
export type FrameType = (typeof FRAME)[keyof typeof FRAME];

/** The types that are expected now, each with the most bytes of its payload. */
export type Phase = Readonly<Partial<Record<FrameType, number>>>;

export interface FrameFault {
  readonly reason: "oversized-frame" | "garbage";
  readonly message: string;
}

export function writeHeader(target: Uint8Array, at: number, type: FrameType, lengthBytes: number): void {
  target[at] = lengthBytes >>> 24;
  target[at + 1] = lengthBytes >>> 16;
  target[at + 2] = lengthBytes >>> 8;
  target[at + 3] = lengthBytes;
  target[at + 4] = type;
}

export function frame(type: FrameType, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
  writeHeader(bytes, 0, type, payload.length);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

export class FrameReader {
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  #headerBytes = 0;
  /** A frame that lies in several chunks. */
  #partial: Uint8Array | null = null;
  #partialBytes = 0;
  #partialType: FrameType = FRAME.message;
  #phase: Phase;
  #ended = false;

  constructor(phase: Phase) {
    this.#phase = phase;
  }

  /** From the next frame on; may be called by whoever is being handed one. */
  expect(phase: Phase): void {
    this.#phase = phase;
  }

  /** Nothing is handed out any more. */
  end(): void {
    this.#ended = true;
    this.#partial = null;
  }

  push(chunk: Uint8Array, take: (type: FrameType, payload: Uint8Array) => void): FrameFault | null {
    let at = 0;
    while (at < chunk.length && !this.#ended) {
      if (this.#partial !== null) {
        at = this.#fill(chunk, at, take);
        continue;
      }
      if (this.#headerBytes === 0 && chunk.length - at >= FRAME_HEADER_BYTES) {
        const fault = this.#begin(chunk, at);
        if (fault !== null) return fault;
        at = this.#body(chunk, at + FRAME_HEADER_BYTES, lengthAt(chunk, at), take);
        continue;
      }
      this.#header[this.#headerBytes++] = chunk[at++] as number;
      if (this.#headerBytes < FRAME_HEADER_BYTES) continue;
      this.#headerBytes = 0;
      const fault = this.#begin(this.#header, 0);
      if (fault !== null) return fault;
      at = this.#body(chunk, at, lengthAt(this.#header, 0), take);
    }
    return null;
  }

  #begin(header: Uint8Array, at: number): FrameFault | null {
    const type = header[at + 4] as FrameType;
    const lengthBytes = lengthAt(header, at);
    const bytesMax = this.#phase[type];
    if (bytesMax === undefined) {
      this.#ended = true;
      return { reason: "garbage", message: `a frame of type ${type} is not expected here` };
    }
    if (lengthBytes > bytesMax) {
      this.#ended = true;
      return {
        reason: "oversized-frame",
        message: `a frame of ${lengthBytes} bytes, where at most ${bytesMax} are allowed`,
      };
    }
    this.#partialType = type;
    return null;
  }

  /** Returns where the next frame begins in the chunk. */
  #body(
    chunk: Uint8Array,
    at: number,
    lengthBytes: number,
    take: (type: FrameType, payload: Uint8Array) => void,
  ): number {
    const end = at + lengthBytes;
    if (end > chunk.length) {
      this.#partial = new Uint8Array(lengthBytes);
      this.#partialBytes = 0;
      return at;
    }
    const whole = lengthBytes < COPY_BELOW_BYTES ? copyOf(chunk, at, lengthBytes) : viewOf(chunk, at, lengthBytes);
    take(this.#partialType, whole);
    return end;
  }

  #fill(chunk: Uint8Array, at: number, take: (type: FrameType, payload: Uint8Array) => void): number {
    const partial = this.#partial!;
    const end = Math.min(chunk.length, at + partial.length - this.#partialBytes);
    partial.set(viewOf(chunk, at, end - at), this.#partialBytes);
    this.#partialBytes += end - at;
    if (this.#partialBytes < partial.length) return end;
    this.#partial = null;
    take(this.#partialType, partial);
    return end;
  }
}

function lengthAt(bytes: Uint8Array, at: number): number {
  const low = (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  return bytes[at]! * 0x1000000 + low;
}

function viewOf(bytes: Uint8Array, at: number, lengthBytes: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + at, lengthBytes);
}

function copyOf(bytes: Uint8Array, at: number, lengthBytes: number): Uint8Array {
  const copy = new Uint8Array(lengthBytes);
  copy.set(viewOf(bytes, at, lengthBytes));
  return copy;
}
