// The log of receipts, folded: core/mesh/receipts on every node. A receipt is sealed where its record is applied, so nothing is
// predicted, and nothing has to be undone.
//
// Whoever follows hears of a receipt after it is applied: the archive, the feeder of the views, the links to other sites.

import { DecodeError } from "../../../core/kit/bytes.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { begun, type Pieces } from "../../../core/kit/pieces.ts";
import { assertNever } from "../../../core/kit/assert.ts";
import { decodeRecord, ReceiptsState, type SealedReceipt } from "../../../core/mesh/receipts/index.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Fold, LogRecord } from "../../../ports/log.ts";

export interface ReceiptsFoldOptions {
  readonly digest: Pick<Digest, "sha256Hex">;
  /** The last own event that is applied on this node. */
  readonly own: () => number;
  /** How much of a snapshot is made in one turn, about. */
  readonly sliceBytes?: number | undefined;
}

/** Of this life. */
export interface ReceiptsCounts {
  /** Pages that were taken, and the new events in them. */
  pages: number;
  events: number;
  /** Pages that did not continue what was known of their line. */
  ignored: number;
  malformed: number;
}

type Prepared = ReturnType<ReceiptsState["prepare"]> extends Generator<void, infer Content, void> ? Content : never;

export class ReceiptsFold implements Fold {
  readonly counts: ReceiptsCounts = { pages: 0, events: 0, ignored: 0, malformed: 0 };
  readonly state: ReceiptsState;
  readonly #options: ReceiptsFoldOptions;
  readonly #followers = new Set<(applied: SealedReceipt) => void>();
  readonly #restored = new Set<() => void>();
  #prepared: { readonly bytes: Uint8Array; readonly content: Prepared } | null = null;

  constructor(options: ReceiptsFoldOptions) {
    this.#options = options;
    this.state = new ReceiptsState(options.digest);
  }

  /** The arrival number of the last event that is applied, own or foreign. */
  get arrival(): number {
    return this.#options.own() + this.state.foreign;
  }

  /** Called with every receipt after it is applied, in order; must not throw. */
  follow(tell: (applied: SealedReceipt) => void): () => void {
    this.#followers.add(tell);
    return () => void this.#followers.delete(tell);
  }

  /** Called when a snapshot has taken the place of everything: receipts between were not passed on. */
  onRestored(tell: () => void): () => void {
    this.#restored.add(tell);
    return () => void this.#restored.delete(tell);
  }

  apply({ position, epoch, data }: LogRecord): void {
    const read = decodeRecord(data);
    switch (read.kind) {
      case "malformed":
        // No node can read it: it changes nothing anywhere.
        this.counts.malformed++;
        return;
      case "later-version":
        throw new TenureError(
          "FORMAT_UNSUPPORTED",
          `Record ${position} of receipts has format ${read.version}, which this release does not know. It stops, because others have applied it: upgrade this node.`,
        );
      case "record":
        break;
      default:
        return assertNever(read, "record of receipts");
    }
    this.state.raiseFloor(read.floorMs);
    const applying = { epoch, own: this.#options.own(), arrivedMs: read.arrivedMs };
    for (const page of read.pages) {
      const before = this.state.foreign;
      const sealed = this.state.take(page, applying);
      if (sealed === null) {
        this.counts.ignored++;
        continue;
      }
      this.counts.pages++;
      this.counts.events += this.state.foreign - before;
      for (const tell of this.#followers) tell(sealed);
    }
  }

  /** Of this moment. */
  snapshot(): Pieces {
    return begun(this.state.slices(this.#options.sliceBytes));
  }

  *prepare(bytes: Uint8Array): Generator<void, void, void> {
    this.#prepared = null;
    this.#prepared = { bytes, content: yield* this.state.prepare(bytes) };
  }

  restore(bytes: Uint8Array): void {
    const prepared = this.#prepared;
    this.#prepared = null;
    // Of the same memory: nobody writes to a snapshot's bytes again.
    const isPrepared = prepared?.bytes.buffer === bytes.buffer && prepared.bytes.byteOffset === bytes.byteOffset;
    this.state.adopt(isPrepared ? prepared.content : this.#read(bytes));
    for (const tell of this.#restored) tell();
  }

  #read(bytes: Uint8Array): Prepared {
    const reading = this.state.prepare(bytes);
    try {
      for (;;) {
        const step = reading.next();
        if (step.done === true) return step.value;
      }
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      throw new TenureError(
        "SNAPSHOT_INVALID",
        `the state of receipts in this snapshot can't be read: ${error.message}`,
      );
    }
  }
}
