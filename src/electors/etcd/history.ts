// The transitions of one scope, kept in etcd next to it: written in the same transaction as the change, trimmed by
// whoever wins. Keys are named by lease, which etcd never hands out twice; their order is that of their revisions.

import type { TransitionRecord } from "../../ports/backends/scope-admin.ts";
import { ETCD_HISTORY_RECORDS_MAX, ETCD_TRIM_RECORDS_MAX } from "../limits.ts";
import { type ScopeKeys, toBase64 } from "./keys.ts";
import { transitionOf, transitionText } from "./records.ts";
import type { EtcdSession } from "./session.ts";

/** The operation that writes a record. */
export function putTransition(keys: ScopeKeys, lease: string, record: TransitionRecord): object {
  const key = `${keys.history}${lease}-${record.reason}`;
  return { request_put: { key: toBase64(key), value: toBase64(transitionText(record)) } };
}

/** Newest first. */
export async function readHistory(
  session: EtcdSession,
  keys: ScopeKeys,
  signal: AbortSignal,
): Promise<TransitionRecord[]> {
  const order = { sort_order: "DESCEND", sort_target: "CREATE", limit: String(ETCD_HISTORY_RECORDS_MAX) };
  const { kvs } = await session.scan(keys.history, keys.history, order, signal);
  return kvs.map(transitionOf);
}

export async function trimHistory(session: EtcdSession, keys: ScopeKeys, signal: AbortSignal): Promise<void> {
  const { count } = await session.scan(keys.history, keys.history, { count_only: true }, signal);
  const surplus = Math.min(count - ETCD_HISTORY_RECORDS_MAX, ETCD_TRIM_RECORDS_MAX);
  if (surplus <= 0) return;
  const order = { sort_order: "ASCEND", sort_target: "CREATE", limit: String(surplus), keys_only: true };
  const { kvs } = await session.scan(keys.history, keys.history, order, signal);
  await session.txn({ success: kvs.map(({ key }) => ({ request_delete_range: { key: toBase64(key) } })) }, signal);
}
