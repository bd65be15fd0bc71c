// A log in memory, for tests and for a controller without servers: one store, and a handle for each node that uses it.
// What is appended is committed at once, and told to everybody who subscribed, whichever handle they have.
// Invariant: the fence is the store's, so a handle that has not heard of a higher epoch is refused all the same.

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { ENTRY_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Fold, Log, LogAppended, LogHead, LogOpened, LogRecord } from "../../ports/log.ts";
import { type FeedBounds, RecordFeed } from "../record-feed.ts";
import { misplaced, notOpened, tooLarge } from "../refusals.ts";

export class MemoryStore {
  readonly feed: RecordFeed;
  epoch = 0;

  constructor(bounds: FeedBounds = {}) {
    this.feed = new RecordFeed(bounds);
  }

  get head(): LogHead {
    return { position: this.feed.position, epoch: this.epoch };
  }
}

export class MemoryLog implements Log {
  readonly #store: MemoryStore;

  /** `fold`: what this node makes of the log, from its first record on. */
  constructor(store: MemoryStore = new MemoryStore(), fold?: Fold) {
    this.#store = store;
    if (fold !== undefined) store.feed.subscribe(1, (record) => fold.apply(record), tooLate);
  }

  head(): LogHead {
    return this.#store.head;
  }

  open(epoch: number): Promise<LogOpened> {
    const store = this.#store;
    if (epoch < store.epoch) return Promise.resolve({ outcome: "fenced", epoch: store.epoch });
    store.epoch = epoch;
    return Promise.resolve({ outcome: "opened", head: store.head });
  }

  append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    assert(batch.length > 0, "an append has records");
    const store = this.#store;
    if (epoch < store.epoch) return Promise.resolve({ outcome: "fenced", epoch: store.epoch });
    const refused = refusal(store.head, epoch, after, batch);
    if (refused !== null) return Promise.reject(refused);
    const records = batch.map((data, at): LogRecord => ({ position: after + 1 + at, epoch, data: data.slice() }));
    for (const record of records) {
      store.feed.push(record);
      store.feed.tell(record);
    }
    return Promise.resolve({ outcome: "committed", position: after + records.length });
  }

  async read(from: number, max: number): Promise<readonly LogRecord[]> {
    return this.#store.feed.read(from, max);
  }

  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    return this.#store.feed.subscribe(from, tell, compacted);
  }
}

function tooLate(): never {
  throw new TenureError("LOG_COMPACTED", "this store has forgotten its first records; fold it from the beginning");
}

function refusal(head: LogHead, epoch: number, after: number, batch: readonly Uint8Array[]): TenureError | null {
  if (epoch > head.epoch) return notOpened(epoch);
  if (after !== head.position) return misplaced(after, head.position);
  const bytes = batch.reduce((sum, data) => sum + data.length, 0);
  return bytes > ENTRY_BYTES_MAX ? tooLarge(bytes) : null;
}
