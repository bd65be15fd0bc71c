// What a transaction is to do, as canonical bytes. Their SHA-256 is in each record and message about it: another body under the same id is refused.

import type { BackendHash, TxnOperation, TxnRequire } from "./model.ts";

export interface TxnContent {
  readonly id: string;
  readonly timeoutMs: number | null;
  readonly require: readonly (TxnRequire & { readonly backendHash: BackendHash })[];
  readonly participants: readonly { readonly backendHash: BackendHash; readonly operations: readonly TxnOperation[] }[];
}

/** In whatever order the islands are named. `home`: as `homeOf` finds it. Of operations that were staged before nothing is known: an empty list. */
export function txnDigestInput(content: TxnContent, home: BackendHash): Uint8Array {
  throw new Error(`not written yet: ${content.id} ${home}`);
}
