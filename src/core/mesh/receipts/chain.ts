// The chain of receipts, as the archive walks along it: each names the hash of the one before, and counts on from it.
//
// Its places have no Merkle tree, because nobody outside asks for proofs about receipts. What a place carries instead is how many own
// and how many foreign events there are up to it, so that a walk from the middle checks the numbers too.

import type { Chain, ChainPoint, ChainWalk, CommittedEvent } from "../../archive/index.ts";
import { assert } from "../../kit/assert.ts";
import { ByteReader, ByteWriter, decoded, DecodeError } from "../../kit/bytes.ts";
import type { Digest } from "../../../ports/digest.ts";
import { decodeReceipt, newEvents, receiptHashOf, type Receipt, type SealedReceipt } from "./receipt.ts";

const COUNTS_BYTES = 16;
/** The archive's segments name an author: receipts have one, this site. */
const AUTHOR = "receipts";

/** Up to a receipt, with it. */
interface Counts {
  readonly own: number;
  readonly foreign: number;
}

const NO_COUNTS: Counts = { own: 0, foreign: 0 };

/** A receipt as an archive takes it. */
export function archived({ receipt, hash, bytes }: SealedReceipt): CommittedEvent {
  const { sequence, timestamp } = receipt;
  return { event: { sequence, eventHash: hash, timestamp, sourceControllerId: AUTHOR }, bytes };
}

export function receiptChain(digest: Pick<Digest, "sha256Hex">): Chain {
  return {
    hash: (bytes) => receiptHashOf(bytes, digest),
    follow: (from) => {
      const counts = countsOf(from);
      return counts === null ? null : new ReceiptWalk(from, counts, digest);
    },
  };
}

/** Null where it is no place in a chain of receipts. */
export function countsOf({ sequence, frontier }: Pick<ChainPoint, "sequence" | "frontier">): Counts | null {
  if (sequence === 0) return frontier.length === 0 ? NO_COUNTS : null;
  return decoded(
    () => {
      const reader = new ByteReader(frontier);
      const counts = { own: reader.uint53(), foreign: reader.uint53() };
      if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow the counts");
      return counts;
    },
    () => null,
  );
}

class ReceiptWalk implements ChainWalk {
  readonly #digest: Pick<Digest, "sha256Hex">;
  #head: Omit<ChainPoint, "frontier">;
  #counts: Counts;
  #fault: { readonly sequence: number; readonly why: string } | null = null;

  constructor(from: ChainPoint, counts: Counts, digest: Pick<Digest, "sha256Hex">) {
    this.#digest = digest;
    this.#head = { sequence: from.sequence, hash: from.hash, timestamp: from.timestamp };
    this.#counts = counts;
  }

  check(bytes: Uint8Array): boolean {
    if (this.#fault !== null) return false;
    const read = decodeReceipt(bytes);
    const why = read.kind === "malformed" ? read.problem : this.#problemOf(read.receipt);
    if (why !== null) this.#fault = { sequence: this.#head.sequence + 1, why };
    else if (read.kind === "receipt") this.#goOn(read.receipt, receiptHashOf(bytes, this.#digest));
    return why === null;
  }

  fault(expected: ChainPoint | null): { readonly sequence: number; readonly why: string } | null {
    if (this.#fault !== null || expected === null) return this.#fault;
    const { sequence, hash } = this.#head;
    if (expected.sequence === sequence && expected.hash === hash) return null;
    return { sequence, why: `it does not end with the receipt that is expected, ${expected.sequence}` };
  }

  /** The receipt was sealed after the one before it, here: it is not read again in full. */
  take({ event, bytes }: CommittedEvent): void {
    assert(this.#fault === null, "nobody goes on after a broken chain");
    assert(event.sequence === this.#head.sequence + 1, "receipts are archived in order", () => `${event.sequence}`);
    const read = decodeReceipt(bytes);
    assert(read.kind === "receipt", "what was sealed can be read");
    this.#goOn(read.receipt, event.eventHash);
  }

  point(): ChainPoint {
    assert(this.#fault === null, "nobody goes on after a broken chain");
    if (this.#head.sequence === 0) return { ...this.#head, frontier: new Uint8Array(0) };
    const writer = new ByteWriter(COUNTS_BYTES);
    writer.uint53(this.#counts.own);
    writer.uint53(this.#counts.foreign);
    return { ...this.#head, frontier: writer.finish() };
  }

  #problemOf({ sequence, previousHash, timestamp, own, foreign }: Receipt): string | null {
    const { sequence: before, hash, timestamp: beforeMs } = this.#head;
    if (sequence !== before + 1) return `receipt ${sequence} follows ${before}`;
    if (previousHash !== hash) return `previousHash is not the hash of receipt ${before}`;
    if (timestamp < beforeMs) return `timestamp ${timestamp} is below ${beforeMs}`;
    if (own < this.#counts.own) return `${own} own events follow ${this.#counts.own}`;
    if (foreign !== this.#counts.foreign) return `${foreign} foreign events follow ${this.#counts.foreign}`;
    return null;
  }

  #goOn(receipt: Receipt, hash: string): void {
    this.#head = { sequence: receipt.sequence, hash, timestamp: receipt.timestamp };
    this.#counts = { own: receipt.own, foreign: receipt.foreign + newEvents(receipt) };
  }
}
