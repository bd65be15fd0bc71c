// The counter in etcd, and the few requests that the harness and its workers make of etcd themselves, over its JSON
// gateway. A lane is a key; an increment is a key of its own, put in the same transaction.

import type { Row } from "./ledger.ts";
import type { Increment } from "./office.ts";

const REQUEST_MS_MAX = 2_000;
const PAGE_KEYS = 2_000;
const LANES = "chaos/lane/";
const INCREMENTS = "chaos/increment/";

interface KeyValue {
  readonly key: string;
  readonly value: string;
  readonly mod_revision: string;
  readonly create_revision: string;
  readonly lease?: string;
}

/** One request, sent once. Rejects when no answer came. */
export async function ask<Answer>(endpoint: string, path: string, body: object): Promise<Answer> {
  const response = await fetch(`${endpoint}/v3/${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`etcd refused ${path}: ${text}`);
  return JSON.parse(text) as Answer;
}

export async function getKey(endpoint: string, key: string): Promise<KeyValue | undefined> {
  const answer = await ask<{ kvs?: KeyValue[] }>(endpoint, "kv/range", { key: base64(key) });
  return answer.kvs?.[0];
}

/** A lane that was never written is at 0. */
export async function readLanes(endpoint: string, lanes: number): Promise<number[]> {
  const range = { key: base64(LANES), range_end: endOf(LANES) };
  const { kvs = [] } = await ask<{ kvs?: KeyValue[] }>(endpoint, "kv/range", range);
  const found = new Map(kvs.map((kv) => [plainOf(kv.key), Number(plainOf(kv.value))]));
  return Array.from({ length: lanes }, (_, lane) => found.get(`${LANES}${lane}`) ?? 0);
}

/** The puts of an increment, for a transaction. */
export function putsOf({ lane, value, worker, seq }: Increment, epoch: number): object[] {
  const stored = JSON.stringify({ lane, value, worker, seq, epoch });
  return [
    { request_put: { key: base64(`${LANES}${lane}`), value: base64(String(value)) } },
    { request_put: { key: base64(`${INCREMENTS}${worker}/${seq}`), value: base64(stored) } },
  ];
}

/** What a stale leader would put; lane −1 is no part of the counter. */
export function stalePut(worker: string, seq: number, epoch: number): object {
  const stored = JSON.stringify({ lane: -1, value: 0, worker, seq, epoch });
  return { request_put: { key: base64(`${INCREMENTS}${worker}/stale-${seq}`), value: base64(stored) } };
}

export async function readRows(endpoint: string): Promise<Row[]> {
  const rows: Row[] = [];
  let key = base64(INCREMENTS);
  for (;;) {
    const range = { key, range_end: endOf(INCREMENTS), limit: PAGE_KEYS };
    const { kvs = [], more } = await ask<{ kvs?: KeyValue[]; more?: boolean }>(endpoint, "kv/range", range);
    for (const kv of kvs) {
      const stored = JSON.parse(plainOf(kv.value)) as Omit<Row, "order">;
      rows.push({ ...stored, order: { kind: "revision", revision: Number(kv.mod_revision) } });
    }
    const last = kvs.at(-1);
    if (more !== true || last === undefined) return rows;
    key = Buffer.concat([Buffer.from(last.key, "base64"), Buffer.from([0])]).toString("base64");
  }
}

export async function clearRows(endpoint: string): Promise<void> {
  await ask(endpoint, "kv/deleterange", { key: base64(INCREMENTS), range_end: endOf(INCREMENTS) });
}

export function base64(plain: string): string {
  return Buffer.from(plain).toString("base64");
}

function plainOf(encoded: string): string {
  return Buffer.from(encoded, "base64").toString();
}

/** Of all keys that begin so: their last byte, one higher. */
function endOf(prefix: string): string {
  const bytes = Buffer.from(prefix);
  bytes[bytes.length - 1]! += 1;
  return bytes.toString("base64");
}
