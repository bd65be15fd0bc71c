// The segment that is being written, as it stands in its file: it is kept in memory until it is sealed, so that the
// newest events are read without the disk, and snapshots can carry it.
//
//   open ──▶ sealed
//
// Invariants:
// - Bytes that were handed out never change: events come behind them, and a larger buffer is another one.
// - `isFull` follows from the header, the events and the limits alone, so every node seals at the same event.

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import type { ChainPoint } from "./chain.ts";
import { putU32 } from "./fields.ts";
import {
  EVENT_BYTES_MAX,
  FOOTER_BYTES_MAX,
  type SegmentLimits,
  SEGMENT_BUFFER_BYTES_MIN,
  SEGMENT_BUFFER_BYTES_SMALL,
} from "./limits.ts";
import type { SegmentEntry } from "./manifest.ts";
import { SegmentCursor } from "./segment-cursor.ts";
import {
  contentHashOf,
  CRC_BYTES,
  encodeFooter,
  encodeHeader,
  readHeader,
  RECORD_OVERHEAD_BYTES,
  type Block,
  type SegmentHeader,
} from "./segment-format.ts";

export class SegmentBuilder {
  readonly header: SegmentHeader;
  readonly #limits: SegmentLimits;
  readonly #digest: Digest;
  readonly #headerBytes: number;
  readonly #headerCrc: number;
  #buffer: Uint8Array;
  #size: number;
  #crc: number;
  #events = 0;
  readonly #blocks: Block[] = [];
  /** The block that is not whole yet. */
  #blockAt: number;
  #blockSeed: number;
  #blockEventsBefore = 0;
  #entry: SegmentEntry | null = null;

  constructor(header: SegmentHeader, limits: SegmentLimits, digest: Digest) {
    const bytes = encodeHeader(header, digest);
    const read = readHeader(bytes, digest);
    assert(read.kind === "header", "a header can be read");
    this.header = header;
    this.#limits = limits;
    this.#digest = digest;
    this.#headerBytes = bytes.length;
    this.#buffer = new Uint8Array(SEGMENT_BUFFER_BYTES_MIN);
    this.#buffer.set(bytes);
    this.#size = bytes.length;
    this.#headerCrc = read.crc;
    this.#crc = read.crc;
    this.#blockAt = this.#size;
    this.#blockSeed = this.#crc;
  }

  /** Goes on with the events of a file, up to the first that is not whole or that would come behind the segment's end. */
  static resume(header: SegmentHeader, bytes: Uint8Array, limits: SegmentLimits, digest: Digest): SegmentBuilder {
    const builder = new SegmentBuilder(header, limits, digest);
    const cursor = new SegmentCursor(bytes, builder.#size, builder.#crc, header.before.sequence, digest);
    while (!builder.isFull && cursor.next() === "event") builder.append(cursor.data());
    return builder;
  }

  get first(): number {
    return this.header.before.sequence + 1;
  }

  /** One less than `first` where there is no event. */
  get last(): number {
    return this.header.before.sequence + this.#events;
  }

  get sizeBytes(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#events >= this.#limits.eventsMax || this.#size >= this.#limits.bytesMax;
  }

  get isSealed(): boolean {
    return this.#entry !== null;
  }

  append(bytes: Uint8Array): void {
    assert(this.#entry === null && !this.isFull, "a segment takes events until it is full");
    assert(
      bytes.length > 0 && bytes.length <= EVENT_BYTES_MAX,
      "an event is within its bound",
      () => `${bytes.length}`,
    );
    const at = this.#reserve(RECORD_OVERHEAD_BYTES + bytes.length);
    const buffer = this.#buffer;
    putU32(buffer, at + CRC_BYTES, bytes.length);
    buffer.set(bytes, at + RECORD_OVERHEAD_BYTES);
    this.#crc = this.#digest.crc32(buffer.subarray(at + CRC_BYTES, this.#size), this.#crc);
    putU32(buffer, at, this.#crc);
    this.#events++;
    if (this.#size - this.#blockAt >= this.#limits.blockBytesMax) this.#closeBlock();
  }

  /** `after`: the chain behind its last event. */
  seal(after: ChainPoint): SegmentEntry {
    assert(this.#entry === null && this.#events > 0, "a segment with events is sealed once");
    assert(after.sequence === this.last, "a segment ends with its last event", () => `${after.sequence}`);
    if (this.#size > this.#blockAt) this.#closeBlock();
    const contentHash = contentHashOf(this.#buffer.subarray(0, this.#headerBytes), this.#blocks, this.#digest);
    const footer = encodeFooter({ after, blocks: this.#blocks, contentHash }, this.#headerCrc, this.#digest);
    const at = this.#reserve(footer.length);
    this.#buffer.set(footer, at);
    const lastHash = after.hash!;
    this.#entry = { first: this.first, last: this.last, lastHash, contentHash, sizeBytes: this.#size };
    return this.#entry;
  }

  /** As in the file, from `fromBytes` on: a view. */
  bytes(fromBytes = 0): Uint8Array {
    return this.#buffer.subarray(fromBytes, this.#size);
  }

  /** Reads from an event on; `sequence` is one of the segment. */
  cursorAt(sequence: number): SegmentCursor {
    const block = this.#blocks.findLast(({ eventsBefore }) => this.first + eventsBefore <= sequence);
    const open = this.first + this.#blockEventsBefore <= sequence;
    const at = open || block === undefined ? this.#blockAt : block.offsetBytes;
    const seed = open || block === undefined ? this.#blockSeed : block.seed;
    const before = this.header.before.sequence + (open ? this.#blockEventsBefore : (block?.eventsBefore ?? 0));
    return new SegmentCursor(this.bytes(), at, seed, before, this.#digest);
  }

  #closeBlock(): void {
    const hash = this.#digest.sha256(this.#buffer.subarray(this.#blockAt, this.#size));
    this.#blocks.push({
      eventsBefore: this.#blockEventsBefore,
      offsetBytes: this.#blockAt,
      seed: this.#blockSeed,
      hash,
    });
    this.#blockAt = this.#size;
    this.#blockSeed = this.#crc;
    this.#blockEventsBefore = this.#events;
  }

  #reserve(sizeBytes: number): number {
    const at = this.#size;
    if (at + sizeBytes > this.#buffer.length) {
      const doubled = 2 * this.#buffer.length;
      const room =
        doubled <= SEGMENT_BUFFER_BYTES_SMALL ? doubled : Math.max(doubled, this.#limits.bytesMax + FOOTER_BYTES_MAX);
      const grown = new Uint8Array(Math.max(room, at + sizeBytes));
      grown.set(this.#buffer.subarray(0, at));
      this.#buffer = grown;
    }
    this.#size = at + sizeBytes;
    return at;
  }
}
