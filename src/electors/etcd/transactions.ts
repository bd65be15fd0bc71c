// The three transactions of a hold, as the JSON API writes them: winning it, looking at it, giving it up. Each compares
// the leader key's create_revision first, which etcd does in the same step.

import type { TransitionRecord } from "../../ports/backends/scope-admin.ts";
import { putTransition } from "./history.ts";
import { type ScopeKeys, toBase64 } from "./keys.ts";
import { type Holder, holderText } from "./records.ts";
import { guardOf } from "./term.ts";

/** Refused: the first answer is the key of whoever has it. */
export function createTxn(keys: ScopeKeys, lease: string, holder: Holder, won: TransitionRecord): object {
  const value = toBase64(holderText(holder));
  return {
    compare: [guardOf(keys.leader, 0)],
    success: [{ request_put: { key: toBase64(keys.leader), value, lease } }, putTransition(keys, lease, won)],
    failure: [{ request_range: { key: toBase64(keys.leader) } }],
  };
}

/** The first answer is the wish to resign; refused, it is the key of whoever has it now. */
export function lookTxn(keys: ScopeKeys, epoch: number): object {
  return {
    compare: [guardOf(keys.leader, epoch)],
    success: [{ request_range: { key: toBase64(keys.resign) } }],
    failure: [{ request_range: { key: toBase64(keys.leader) } }],
  };
}

/** Refused, it was not ours any more. */
export function releaseTxn(keys: ScopeKeys, lease: string, ended: TransitionRecord): object {
  return {
    compare: [guardOf(keys.leader, ended.epoch)],
    success: [{ request_delete_range: { key: toBase64(keys.leader) } }, putTransition(keys, lease, ended)],
  };
}
