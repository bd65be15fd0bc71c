// What the log of receipts is folded into, the same on every node: how far each line is known, the end of the chain of receipts,
// how many foreign events there are, and the floor of the clock.
//
//   record ──▶ each page: does it continue its line from where it was verified? ──▶ a receipt, the line's next state
//                           │ no: changes nothing, and is counted
//
// Invariants:
// - It is a function of the records and of the own events that are applied before each of them. So arrival numbers are equal on all
//   nodes, and an event has one: what is known already is in no receipt a second time.
// - States of lines are never changed in place: a snapshot is of the moment in which it was begun.

import { assert } from "../../kit/assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../kit/bytes.ts";
import { TextMap } from "../../kit/keyed/text-map.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { LineId, LineState } from "../model.ts";
import { decodeLineState, encodeLineState } from "../proof/index.ts";
import { LINE_STATE_BYTES_MAX, LINES_MAX, LINES_PER_SLICE, LINES_SLICE_BYTES } from "./limits.ts";
import { readHash, writeHash } from "./page-bytes.ts";
import { encodeReceipt, newEvents, receiptHashOf, type SealedReceipt } from "./receipt.ts";
import type { LinePoint, OfferedPage } from "./record.ts";

const STATE_VERSION = 1;

/** The last receipt. */
export interface ReceiptsHead {
  /** 0: there is none yet. */
  readonly sequence: number;
  readonly hash: string | null;
  readonly timestamp: number;
  /** Own events that were applied before it. */
  readonly own: number;
}

/** When a record is applied. */
export interface Applying {
  readonly epoch: number;
  /** The last own event that is applied. */
  readonly own: number;
  readonly arrivedMs: number;
}

interface Content {
  readonly head: ReceiptsHead;
  readonly foreign: number;
  readonly floorMs: number;
  readonly lines: TextMap<LineState>;
}

const NOTHING = { sequence: 0, hash: null, timestamp: 0, own: 0 };

export class ReceiptsState {
  readonly #digest: Pick<Digest, "sha256Hex">;
  #lines = new TextMap<LineState>();
  #head: ReceiptsHead = NOTHING;
  #foreign = 0;
  #floorMs = 0;

  constructor(digest: Pick<Digest, "sha256Hex">) {
    this.#digest = digest;
  }

  get head(): ReceiptsHead {
    return this.#head;
  }

  /** Events of other sites that are known here. */
  get foreign(): number {
    return this.#foreign;
  }

  /** Own events are stamped above it; 0: it was never raised. */
  get floorMs(): number {
    return this.#floorMs;
  }

  get lineCount(): number {
    return this.#lines.size;
  }

  line(id: LineId): LineState | undefined {
    return this.#lines.get(id);
  }

  *lines(): Generator<LineState, void, void> {
    for (const [, state] of this.#lines.entries()) yield state;
  }

  raiseFloor(floorMs: number): void {
    this.#floorMs = Math.max(this.#floorMs, floorMs);
  }

  /** Null: it does not continue what is known of its line. */
  take({ bytes, page, from, state }: OfferedPage, { epoch, own, arrivedMs }: Applying): SealedReceipt | null {
    if (!continues(this.#lines.get(page.line), from) || !this.#hasRoomFor(page.line)) return null;
    const before = this.#head;
    assert(own >= before.own, "own events only grow", () => `${own} after ${before.own}`);
    const head = {
      sequence: before.sequence + 1,
      previousHash: before.hash,
      epoch,
      timestamp: Math.max(before.timestamp, arrivedMs),
      own,
      foreign: this.#foreign,
      first: from.size + 1,
    };
    const receiptBytes = encodeReceipt(head, bytes);
    const hash = receiptHashOf(receiptBytes, this.#digest);
    const receipt = { ...head, page };
    this.#head = { sequence: head.sequence, hash, timestamp: head.timestamp, own };
    this.#foreign += newEvents(receipt);
    this.#lines.set(page.line, state);
    return { receipt, hash, bytes: receiptBytes };
  }

  #hasRoomFor(line: LineId): boolean {
    return this.#lines.has(line) || this.#lines.size < LINES_MAX;
  }

  // ---- snapshots -----------------------------------------------------------------------------------

  /** In pieces, of this moment. */
  slices(sliceBytes = LINES_SLICE_BYTES): Generator<Uint8Array, void, void> {
    const lines = [...this.lines()].toSorted(byLine);
    return encode({ head: this.#head, foreign: this.#foreign, floorMs: this.#floorMs }, lines, sliceBytes);
  }

  /** What a snapshot holds, read in slices. Throws a DecodeError. */
  *prepare(bytes: Uint8Array): Generator<void, Content, void> {
    const reader = new ByteReader(bytes);
    const version = reader.u8();
    if (version !== STATE_VERSION) throw new DecodeError("malformed", `a state of receipts of version ${version}`);
    const [sequence, hash] = [reader.uint53(), readHash(reader)];
    const head = { sequence, hash, timestamp: reader.uint53(), own: reader.uint53() };
    const [foreign, floorMs, count] = [reader.uint53(), reader.uint53(), reader.u32()];
    if (count > LINES_MAX) throw new DecodeError("malformed", `${count} lines`);
    const lines = new TextMap<LineState>();
    for (let at = 0; at < count; at++) {
      const state = decodeLineState(reader.bytes(LINE_STATE_BYTES_MAX));
      lines.set(state.line, state);
      if (at % LINES_PER_SLICE === LINES_PER_SLICE - 1) yield;
    }
    if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow the state of receipts");
    return { head, foreign, floorMs, lines };
  }

  adopt({ head, foreign, floorMs, lines }: Content): void {
    this.#head = head;
    this.#foreign = foreign;
    this.#floorMs = floorMs;
    this.#lines = lines;
  }
}

/** The first page of a line may begin anywhere: a later generation of a site continues the one before. The leader has verified it. */
function continues(known: LineState | undefined, from: LinePoint): boolean {
  return known === undefined || (known.size === from.size && known.hash === from.hash);
}

function byLine(a: LineState, b: LineState): number {
  return a.line < b.line ? -1 : 1;
}

function* encode(
  { head, foreign, floorMs }: Omit<Content, "lines">,
  lines: readonly LineState[],
  sliceBytes: number,
): Generator<Uint8Array, void, void> {
  let writer = new ByteWriter(sliceBytes);
  writer.u8(STATE_VERSION);
  writer.uint53(head.sequence);
  writeHash(writer, head.hash);
  for (const field of [head.timestamp, head.own, foreign, floorMs]) writer.uint53(field);
  writer.u32(lines.length);
  for (const line of lines) {
    writer.bytes(encodeLineState(line));
    if (writer.lengthBytes < sliceBytes) continue;
    yield writer.finish();
    writer = new ByteWriter(sliceBytes);
  }
  if (writer.lengthBytes > 0) yield writer.finish();
}
