// The newest records of a log, kept in memory for readers and subscribers; the same for every log.
// Invariants:
// - What is kept is one run of consecutive positions that ends at the head. The oldest go first, when there are too many
//   or too many bytes; the newest is always kept.
// - A subscriber is told each position once, in order. It knows which it waits for, so one that subscribes or leaves while
//   a record is being told neither misses nor repeats anything.
// - Whoever waits for what is not kept is told `compacted`, once, and nothing more.

import { assert } from "../core/kit/assert.ts";
import { TenureError } from "../core/kit/errors.ts";
import type { LogRecord } from "../ports/log.ts";
import { KEPT_BYTES_MAX, KEPT_RECORDS_MAX } from "./limits.ts";

/** What a record costs next to its data, about. */
const RECORD_OVERHEAD_BYTES = 96;

export interface FeedBounds {
  readonly recordsMax?: number | undefined;
  readonly bytesMax?: number | undefined;
}

interface Subscriber {
  next: number;
  readonly tell: (record: LogRecord) => void;
  readonly compacted: () => void;
}

export class RecordFeed {
  readonly #recordsMax: number;
  readonly #bytesMax: number;
  #records: LogRecord[] = [];
  /** Emptied places; they are cut off in one go, once they are half of all. */
  #front = 0;
  #bytes = 0;
  #position = 0;
  readonly #subscribers = new Set<Subscriber>();

  constructor(bounds: FeedBounds = {}) {
    this.#recordsMax = bounds.recordsMax ?? KEPT_RECORDS_MAX;
    this.#bytesMax = bounds.bytesMax ?? KEPT_BYTES_MAX;
  }

  /** The last record's; 0 before the first. */
  get position(): number {
    return this.#position;
  }

  /** The oldest position that can be read; one after the head where nothing is kept. */
  get first(): number {
    return this.#position - (this.#records.length - this.#front) + 1;
  }

  push(record: LogRecord): void {
    assert(record.position === this.#position + 1, "records are consecutive", () => String(record.position));
    this.#position = record.position;
    this.#records.push(record);
    this.#bytes += record.data.length + RECORD_OVERHEAD_BYTES;
    while (this.#isFull && this.#records.length - this.#front > 1) this.#dropOldest();
  }

  /** Tells everybody of the record that was pushed last. */
  tell(record: LogRecord): void {
    for (const subscriber of this.#subscribers) this.#tell(subscriber, record);
  }

  read(from: number, max: number): readonly LogRecord[] {
    assert(Number.isSafeInteger(from) && from >= 1, "positions start at 1", () => String(from));
    if (from < this.first) {
      throw new TenureError(
        "LOG_COMPACTED",
        `record ${from} is not kept any more; the oldest here is ${this.first}. Read the state instead, and go on behind it.`,
      );
    }
    const start = this.#front + (from - this.first);
    return this.#records.slice(start, start + Math.max(0, max));
  }

  subscribe(from: number, tell: Subscriber["tell"], compacted: () => void): () => void {
    assert(Number.isSafeInteger(from) && from >= 1, "positions start at 1", () => String(from));
    if (from < this.first) {
      compacted();
      return () => undefined;
    }
    const subscriber: Subscriber = { next: from, tell, compacted };
    this.#subscribers.add(subscriber);
    for (const record of this.read(from, this.#position)) {
      if (this.#subscribers.has(subscriber)) this.#tell(subscriber, record);
    }
    return () => void this.#subscribers.delete(subscriber);
  }

  /** The log goes on after `position` without what lies before: a snapshot was restored. */
  jump(position: number): void {
    this.#records = [];
    this.#front = 0;
    this.#bytes = 0;
    this.#position = position;
    for (const subscriber of this.#subscribers) {
      if (subscriber.next > position) continue;
      this.#subscribers.delete(subscriber);
      subscriber.compacted();
    }
  }

  #tell(subscriber: Subscriber, record: LogRecord): void {
    if (record.position < subscriber.next) return;
    subscriber.next = record.position + 1;
    subscriber.tell(record);
  }

  get #isFull(): boolean {
    return this.#records.length - this.#front > this.#recordsMax || this.#bytes > this.#bytesMax;
  }

  #dropOldest(): void {
    const oldest = this.#records[this.#front];
    assert(oldest !== undefined, "there is an oldest record");
    this.#bytes -= oldest.data.length + RECORD_OVERHEAD_BYTES;
    this.#front++;
    if (this.#front * 2 < this.#records.length) return;
    this.#records = this.#records.slice(this.#front);
    this.#front = 0;
  }
}
