// Arbitrary events of transactions, for tests.

import fc from "fast-check";
import type { JobSpec } from "../jobs/model.ts";
import type { TxnEvent } from "./events.ts";
import { newTxnId } from "./id.ts";
import type { TcFence, TxnHeader, TxnOperation, TxnReason, TxnResult } from "./model.ts";

const text = fc.oneof(
  fc.constantFrom("a", "é", "__proto__", "constructor", "toString", "漢字/🙂"),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).filter((one) => !one.includes("\0")),
);
const count = fc.oneof(fc.nat(9), fc.constant(Number.MAX_SAFE_INTEGER));
const hash = fc
  .array(fc.constantFrom(..."0123456789abcdef"), { minLength: 64, maxLength: 64 })
  .map((all) => all.join(""));
const texts = fc.dictionary(text, text, { maxKeys: 3 });
const bytes = fc.uint8Array({ maxLength: 20 });

export const txnId: fc.Arbitrary<string> = fc
  .tuple(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.infiniteStream(fc.nat(15)))
  .map(([ms, digits]) => newTxnId(ms, { below: (below) => (digits.next().value as number) % below }));

export const spec: fc.Arbitrary<JobSpec> = fc.record({
  kind: text,
  payload: fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as never),
  queue: text,
  labels: texts,
  platform: fc.option(text),
  priority: fc.integer({ min: -1_000_000, max: 1_000_000 }),
  notBeforeMs: fc.option(count),
  attemptsMax: count,
  lossesMax: count,
  backoff: fc.record({ baseMs: count, maxMs: count }),
  timeoutMs: fc.option(count),
  retentionMs: count,
  concurrency: fc.option(fc.record({ key: text, limit: count })),
});

export const operation: fc.Arbitrary<TxnOperation> = fc.oneof(
  fc.record({ kind: fc.constant("value-put" as const), name: text, data: bytes, ifVersion: fc.option(count) }),
  fc.record({ kind: fc.constant("value-delete" as const), name: text, ifVersion: fc.option(count) }),
  fc.record({ kind: fc.constant("value-check" as const), name: text, ifVersion: count }),
  fc.record({ kind: fc.constant("scope-release" as const), scope: text, epoch: count }),
  fc.record({
    kind: fc.constant("scope-acquire" as const),
    scope: text,
    session: text,
    identity: text,
    metadata: texts,
    ttlMs: count,
  }),
  fc.record({ kind: fc.constant("job-submit" as const), spec }),
);
const operations = fc.array(operation, { maxLength: 4 });

export const header: fc.Arbitrary<TxnHeader> = fc.record({
  id: txnId,
  home: hash,
  participants: fc.uniqueArray(hash, { maxLength: 4 }).map((all) => all.toSorted()),
  digest: hash,
  timeoutMs: count,
  by: text,
});

const fence: fc.Arbitrary<TcFence> = fc.record({ clusterId: text, term: count, recoveredBy: fc.option(text) });
const reason: fc.Arbitrary<TxnReason> = fc.record({
  code: fc.constantFrom("txn_locked" as const, "STALE_EPOCH" as const),
  message: text,
  backendHash: fc.option(hash),
});
const result: fc.Arbitrary<TxnResult> = fc.record({
  version: fc.option(count),
  epoch: fc.option(count),
  jobId: fc.option(text),
});
const outbox = fc
  .array(fc.record({ jobId: text, spec }), { maxLength: 3 })
  .map((all) => all.map((one, at) => ({ operation: 2 * at, ...one })));
const reserved = fc.record({ values: count, bytes: count, scopes: count });
const staged = header.map((of) => ({ ...of, participants: [], digest: "", timeoutMs: 0 }));

export const txnEvent: fc.Arbitrary<TxnEvent> = fc.oneof(
  fc.record({ kind: fc.constant("txn-staged" as const), header: staged, operations, atMs: count }),
  fc.record({ kind: fc.constant("txn-prepared" as const), header, operations, reserved, fence, atMs: count }),
  fc.record({
    kind: fc.constant("txn-decided" as const),
    header,
    outcome: fc.constantFrom("committed" as const, "rolled-back" as const),
    results: fc.array(result, { maxLength: 4 }),
    outbox,
    reason: fc.option(reason),
    fence: fc.option(fence),
    atMs: count,
  }),
  fc.record({ kind: fc.constant("txn-delivered" as const), id: txnId, atMs: count }),
  fc.record({ kind: fc.constant("txn-settled" as const), id: txnId, by: fc.option(hash), atMs: count }),
  fc.record({ kind: fc.constant("txn-fence" as const), fence, atMs: count }),
  fc.record({ kind: fc.constant("txn-dropped" as const), id: txnId, atMs: count }),
);
