// The segment that is being written, as it will be in its file: it is kept in memory until it is sealed, so that the
// newest events are read without the disk, and snapshots can carry it. It is in pieces of a bounded size: to get four megabytes
// at once took up to 12 ms of one turn.
//
//   open ──▶ sealed
//
// Invariants:
// - Bytes that were handed out never change: events come after them, and another piece is other memory.
// - A block is in one piece. Where a piece has no room for the next event, the block that is not whole moves to the next piece.
// - `isFull` follows from the header, the events and the limits alone, so every node seals at the same event.

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import type { ChainPoint } from "./chain.ts";
import { putU32 } from "./fields.ts";
import { EVENT_BYTES_MAX, PIECE_BYTES_MAX, PIECE_BYTES_MIN, type SegmentLimits } from "./limits.ts";
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

const NOTHING = new Uint8Array(0);

export class SegmentBuilder {
  readonly header: SegmentHeader;
  readonly #limits: SegmentLimits;
  readonly #digest: Digest;
  readonly #header: Uint8Array;
  readonly #headerCrc: number;
  /** Those that are full. */
  readonly #pieces: Uint8Array[] = [];
  #piecesBytes = 0;
  /** The one after them, with room at its end. */
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
    this.#header = bytes;
    this.#buffer = new Uint8Array(PIECE_BYTES_MIN);
    this.#buffer.set(bytes);
    this.#size = bytes.length;
    this.#headerCrc = read.crc;
    this.#crc = read.crc;
    this.#blockAt = this.#size;
    this.#blockSeed = this.#crc;
  }

  /** Goes on with the events of a file, up to the first that is not whole or that would come after the segment's end. */
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
    this.#crc = this.#digest.crc32(buffer.subarray(at + CRC_BYTES, this.#size - this.#piecesBytes), this.#crc);
    putU32(buffer, at, this.#crc);
    this.#events++;
    if (this.#size - this.#blockAt >= this.#limits.blockBytesMax) this.#closeBlock();
  }

  /** `after`: the chain after its last event. */
  seal(after: ChainPoint): SegmentEntry {
    assert(this.#entry === null && this.#events > 0, "a segment with events is sealed once");
    assert(after.sequence === this.last, "a segment ends with its last event", () => `${after.sequence}`);
    if (this.#size > this.#blockAt) this.#closeBlock();
    const contentHash = contentHashOf(this.#header, this.#blocks, this.#digest);
    const footer = encodeFooter({ after, blocks: this.#blocks, contentHash }, this.#headerCrc, this.#digest);
    this.#closePiece(footer);
    this.#size += footer.length;
    const lastHash = after.hash!;
    this.#entry = { first: this.first, last: this.last, lastHash, contentHash, sizeBytes: this.#size };
    return this.#entry;
  }

  /** As in the file, from `fromBytes` on: views. */
  pieces(fromBytes = 0): Uint8Array[] {
    const views: Uint8Array[] = [];
    let at = 0;
    for (const piece of [...this.#pieces, this.#buffer.subarray(0, this.#size - this.#piecesBytes)]) {
      if (fromBytes < at + piece.length) views.push(piece.subarray(Math.max(0, fromBytes - at)));
      at += piece.length;
    }
    return views;
  }

  /** Reads from an event on; `sequence` is one of the segment. Its footer is not read. */
  cursorAt(sequence: number): SegmentCursor {
    const block = this.#blocks.findLast(({ eventsBefore }) => this.first + eventsBefore <= sequence);
    const open = this.first + this.#blockEventsBefore <= sequence;
    const at = open || block === undefined ? this.#blockAt : block.offsetBytes;
    const seed = open || block === undefined ? this.#blockSeed : block.seed;
    const before = this.header.before.sequence + (open ? this.#blockEventsBefore : (block?.eventsBefore ?? 0));
    const [first = NOTHING, ...more] = this.isSealed ? this.pieces(at).slice(0, -1) : this.pieces(at);
    return new SegmentCursor(first, 0, seed, before, this.#digest, more);
  }

  #closeBlock(): void {
    const [from, to] = [this.#blockAt - this.#piecesBytes, this.#size - this.#piecesBytes];
    const hash = this.#digest.sha256(this.#buffer.subarray(from, to));
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

  /** Where it begins in the buffer. */
  #reserve(sizeBytes: number): number {
    const at = this.#size - this.#piecesBytes;
    this.#size += sizeBytes;
    if (at + sizeBytes <= this.#buffer.length) return at;
    const block = this.#buffer.subarray(this.#blockAt - this.#piecesBytes, at);
    const room = Math.min(2 * this.#buffer.length, PIECE_BYTES_MAX);
    this.#closePiece(new Uint8Array(Math.max(room, block.length + sizeBytes)));
    this.#buffer.set(block);
    return block.length;
  }

  /** The blocks that are whole. */
  #closePiece(next: Uint8Array): void {
    const sizeBytes = this.#blockAt - this.#piecesBytes;
    if (sizeBytes > 0) this.#pieces.push(this.#buffer.subarray(0, sizeBytes));
    this.#piecesBytes = this.#blockAt;
    this.#buffer = next;
  }
}
