// A receipt: that a page of another site's line has entered this site's log, and where. Receipts are a chain of their own; they are
// never sent to other sites.
//
//   version u8 | sequence | previousHash | epoch | timestamp | own | foreign | first | bytes of the page
//
// The page's events from `first` on are new here. They arrive after `own` events of the site itself and `foreign` events of others:
// the event with sequence s of its line has the arrival number own + foreign + s - first + 1.

import { ByteReader, ByteWriter, decoded, DecodeError } from "../../kit/bytes.ts";
import type { Digest } from "../../../ports/digest.ts";
import { RECEIPT_BYTES_MAX } from "./limits.ts";
import { decodePage, type HeldPage, readHash, writeHash } from "./page-bytes.ts";

const RECEIPT_VERSION = 1;
const RECEIPT_HEAD_BYTES = 128;
const DOMAIN = new TextEncoder().encode("tenure:receipt:v1\n");

export interface ReceiptHead {
  /** 1 for the first. */
  readonly sequence: number;
  readonly previousHash: string | null;
  /** In which it was appended. */
  readonly epoch: number;
  /** When the leader had the page, in whole milliseconds; never below the receipt before. */
  readonly timestamp: number;
  /** The site's own events that were applied before it. */
  readonly own: number;
  /** The events of other sites that were. */
  readonly foreign: number;
  /** The sequence of the page's first event that was not known here. */
  readonly first: number;
}

export interface Receipt extends ReceiptHead {
  readonly page: HeldPage;
}

/** With what the archive keeps of it. */
export interface SealedReceipt {
  readonly receipt: Receipt;
  readonly hash: string;
  /** What is stored and hashed. Nobody may write to it. */
  readonly bytes: Uint8Array;
}

/** `page`: encodePage. */
export function encodeReceipt(head: ReceiptHead, page: Uint8Array): Uint8Array {
  const writer = new ByteWriter(RECEIPT_HEAD_BYTES + page.length);
  writer.u8(RECEIPT_VERSION);
  writer.uint53(head.sequence);
  writeHash(writer, head.previousHash);
  for (const field of [head.epoch, head.timestamp, head.own, head.foreign, head.first]) writer.uint53(field);
  writer.bytes(page);
  return writer.finish();
}

export function decodeReceipt(
  bytes: Uint8Array,
): { readonly kind: "receipt"; readonly receipt: Receipt } | { readonly kind: "malformed"; readonly problem: string } {
  return decoded(
    () => ({ kind: "receipt", receipt: read(new ByteReader(bytes)) }),
    ({ message }) => ({ kind: "malformed", problem: message }),
  );
}

function read(reader: ByteReader): Receipt {
  const version = reader.u8();
  if (version !== RECEIPT_VERSION) throw new DecodeError("malformed", `a receipt of version ${version}`);
  const [sequence, previousHash] = [reader.uint53(), readHash(reader)];
  const [epoch, timestamp, own, foreign] = [reader.uint53(), reader.uint53(), reader.uint53(), reader.uint53()];
  const first = reader.uint53();
  const page = decodePage(reader.bytes(RECEIPT_BYTES_MAX));
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", "bytes follow a receipt");
  if (first <= page.after || first > lastOf(page)) throw new DecodeError("malformed", "nothing of its page is new");
  return { sequence, previousHash, epoch, timestamp, own, foreign, first, page };
}

export function receiptHashOf(bytes: Uint8Array, digest: Pick<Digest, "sha256Hex">): string {
  const input = new Uint8Array(DOMAIN.length + bytes.length);
  input.set(DOMAIN);
  input.set(bytes, DOMAIN.length);
  return digest.sha256Hex(input);
}

/** How many of the page's events are new. */
export function newEvents({ first, page }: Pick<Receipt, "first" | "page">): number {
  return lastOf(page) - first + 1;
}

function lastOf({ after, items }: HeldPage): number {
  return after + items.length;
}
