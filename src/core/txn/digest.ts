// What a transaction is to do, as canonical bytes. Their SHA-256 is in each record and message about it: another body under the same id is refused.
//
//   "tenure-txn\n", id, home, timeout, requirements (island, scope, epoch), participants by island: island, operations

import { ByteWriter } from "../kit/bytes.ts";
import { TXN_TIMEOUT_MS } from "../kit/limits.ts";
import { writeIsland, writeId, writeList } from "./codec/fields.ts";
import type { BackendHash, TxnOperation, TxnRequire } from "./model.ts";
import { writeOperation } from "./codec/operation.ts";

const TITLE = "tenure-txn\n";

export interface TxnContent {
  readonly id: string;
  /** Null: the default. */
  readonly timeoutMs: number | null;
  readonly require: readonly (TxnRequire & { readonly backendHash: BackendHash })[];
  readonly participants: readonly { readonly backendHash: BackendHash; readonly operations: readonly TxnOperation[] }[];
}

/**
 * Of one that has passed its checks, in whatever order its islands are named. `home`: as `homeOf` finds it. Of operations that were staged before
 * nothing is known: an empty list.
 */
export function txnDigestInput({ id, timeoutMs, require, participants }: TxnContent, home: BackendHash): Uint8Array {
  const writer = new ByteWriter();
  writer.text(TITLE);
  writeId(writer, id);
  writeIsland(writer, home);
  writer.uint53(timeoutMs ?? TXN_TIMEOUT_MS);
  writeList(writer, require, ({ backendHash, scope, epoch }) => {
    writeIsland(writer, backendHash);
    writer.text(scope);
    writer.uint53(epoch);
  });
  writeList(writer, participants.toSorted(byIsland), ({ backendHash, operations }) => {
    writeIsland(writer, backendHash);
    writeList(writer, operations, (one) => writeOperation(writer, one));
  });
  return writer.finish();
}

function byIsland(one: { readonly backendHash: string }, other: { readonly backendHash: string }): number {
  return one.backendHash < other.backendHash ? -1 : Number(one.backendHash > other.backendHash);
}
