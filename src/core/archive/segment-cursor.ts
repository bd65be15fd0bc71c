// Reads the records of a segment one after the other, without an object for each: millions are read at a time.
//
//   next() ─▶ "event"    `sequence`, `data()` are those of the event
//          ─▶ "footer"   `footer`; the file ends with it
//          ─▶ "end"      the file ends after a whole event: a segment that is not sealed
//          ─▶ "bad"      `why`; from `atBytes` on the file is torn or damaged, in the record of event `sequence` + 1

import type { Digest } from "../../ports/digest.ts";
import { assert } from "../kit/assert.ts";
import { u32At } from "./fields.ts";
import { EVENT_BYTES_MAX } from "./limits.ts";
import { CRC_BYTES, FOOTER_MARK, readFooter, RECORD_OVERHEAD_BYTES, type Footer } from "./segment-format.ts";

export type CursorStep = "event" | "footer" | "end" | "bad";

export class SegmentCursor {
  readonly #digest: Digest;
  /** Those after `#bytes`, where a segment is in pieces; no record is in two of them. */
  readonly #more: Iterator<Uint8Array>;
  #bytes: Uint8Array;
  #at: number;
  #crc: number;
  #sequence: number;
  #dataAt = 0;
  #footer: Footer | null = null;
  #why = "";

  /** `crc` and `sequence`: those of the record before the one at `atBytes`. */
  constructor(
    bytes: Uint8Array,
    atBytes: number,
    crc: number,
    sequence: number,
    digest: Digest,
    more: readonly Uint8Array[] = [],
  ) {
    this.#bytes = bytes;
    this.#more = more[Symbol.iterator]();
    this.#at = atBytes;
    this.#crc = crc;
    this.#sequence = sequence;
    this.#digest = digest;
  }

  /** Where the next record starts, in its piece. */
  get atBytes(): number {
    return this.#at;
  }

  get crc(): number {
    return this.#crc;
  }

  /** Of the last event that was read. */
  get sequence(): number {
    return this.#sequence;
  }

  get why(): string {
    return this.#why;
  }

  get footer(): Footer {
    assert(this.#footer !== null, "the footer was read");
    return this.#footer;
  }

  /** A view of the last event's bytes. */
  data(): Uint8Array {
    return this.#bytes.subarray(this.#dataAt, this.#at);
  }

  next(): CursorStep {
    if (this.#at === this.#bytes.length && !this.#toNextPiece()) return "end";
    const bytes = this.#bytes;
    const at = this.#at;
    if (bytes.length - at < RECORD_OVERHEAD_BYTES) return this.#bad("the file ends inside a record's head");
    const lengthBytes = u32At(bytes, at + CRC_BYTES);
    if (lengthBytes === FOOTER_MARK) {
      const footer = readFooter(bytes, at, this.#digest);
      if (typeof footer === "string") return this.#bad(footer);
      this.#footer = footer;
      return "footer";
    }
    if (lengthBytes === 0 || lengthBytes > EVENT_BYTES_MAX) return this.#bad(`an event of ${lengthBytes} bytes`);
    const end = at + RECORD_OVERHEAD_BYTES + lengthBytes;
    if (end > bytes.length) return this.#bad("the file ends inside an event");
    const crc = this.#digest.crc32(bytes.subarray(at + CRC_BYTES, end), this.#crc);
    if (crc !== u32At(bytes, at)) return this.#bad("the checksum is wrong");
    this.#crc = crc;
    this.#dataAt = at + RECORD_OVERHEAD_BYTES;
    this.#at = end;
    this.#sequence++;
    return "event";
  }

  #toNextPiece(): boolean {
    const { done, value } = this.#more.next();
    if (done === true) return false;
    this.#bytes = value;
    this.#at = 0;
    return true;
  }

  #bad(why: string): "bad" {
    this.#why = why;
    return "bad";
  }
}
