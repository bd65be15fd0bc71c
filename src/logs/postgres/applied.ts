// What this node has applied of a log in Postgres: the fold, the newest records in memory, and the highest epoch heard of.
// Records come from two sides, the follower's pages and the writer's own commits, and meet here.
// Invariants:
// - Each position is applied once, in order; what was applied already is passed over, and a gap is our own mistake.
// - The fold has applied a record before subscribers are notified of it.
// - A fold that has failed once gets nothing more: what it is now is not what the log says.

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Fold, LogHead, LogRecord } from "../../ports/log.ts";
import type { SnapshotData } from "../../ports/state-machine.ts";
import { type FeedBounds, RecordFeed } from "../record-feed.ts";

export class Applied {
  readonly feed: RecordFeed;
  readonly #fold: Fold;
  readonly #onFailure: (error: TenureError) => void;
  #epoch = 0;
  #failure: TenureError | null = null;

  constructor(fold: Fold, kept: FeedBounds | undefined, onFailure: (error: TenureError) => void) {
    this.#fold = fold;
    this.#onFailure = onFailure;
    this.feed = new RecordFeed(kept);
  }

  get position(): number {
    return this.feed.position;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get head(): LogHead {
    return { position: this.feed.position, epoch: this.#epoch };
  }

  heardOf(epoch: number): void {
    this.#epoch = Math.max(this.#epoch, epoch);
  }

  take(record: LogRecord): void {
    if (record.position <= this.feed.position) return;
    this.#soundly(record.position, () => {
      assert(record.position === this.feed.position + 1, "no record is passed over", () => String(record.position));
      this.feed.push(record);
      this.#fold.apply(record);
      this.feed.tell(record);
    });
  }

  snapshot(): SnapshotData {
    return this.#fold.snapshot();
  }

  /** A snapshot that is not ahead of what was applied is of no use. */
  restore(data: Uint8Array, head: LogHead): void {
    if (head.position <= this.feed.position) return;
    this.#soundly(head.position, () => {
      this.#fold.restore(data, head);
      this.heardOf(head.epoch);
      this.feed.jump(head.position);
    });
  }

  #soundly(position: number, work: () => void): void {
    if (this.#failure !== null) throw this.#failure;
    try {
      work();
    } catch (error) {
      const message = `record ${position} of the log can't be applied: ${String(error)}. Nothing behind it is; this node must not go on.`;
      this.#failure = TenureError.is(error) ? error : new TenureError("INTERNAL", message, { cause: error });
      this.#onFailure(this.#failure);
      throw this.#failure;
    }
  }
}
