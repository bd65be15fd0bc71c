// Transactions as bytes.

import type { ByteReader, ByteWriter } from "../kit/bytes.ts";
import type { TxnEvent } from "./events.ts";

export function writeTxnEvent(_writer: ByteWriter, event: TxnEvent): void {
  throw new Error(`not written yet: ${event.kind}`);
}

/** Null: of a form that this release does not know. */
export function readTxnEvent(reader: ByteReader): TxnEvent | null {
  throw new Error(`not written yet: ${reader.remainingBytes}`);
}
