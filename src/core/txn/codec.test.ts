// Transactions as bytes: what is written is read, in one form for ever.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { txnDigestInput } from "./digest.ts";
import type { JobSpec } from "../jobs/model.ts";
import {
  readTxnEvent,
  type TcFence,
  type TxnEvent,
  type TxnHeader,
  type TxnOperation,
  type TxnReason,
  type TxnResult,
  writeTxnEvent,
} from "./index.ts";
import { newTxnId } from "./test-ids.ts";

const ID = "01020304-0506-7708-890a-0b0c0d0e0f10";
const ID_BYTES = [1, 2, 3, 4, 5, 6, 0x77, 8, 0x89, 10, 11, 12, 13, 14, 15, 16];
const HASH = "a1".repeat(32);
const HASH_BYTES = new Array<number>(32).fill(0xa1);
const HEADER = { id: ID, home: HASH, participants: [HASH], digest: HASH, timeoutMs: 5, by: "c" };
const u53 = (value: number): number[] => [0, 0, 0, 0, 0, 0, 0, value];
const text = (value: string): number[] => [0, 0, 0, value.length, ...new TextEncoder().encode(value)];
const HEADER_BYTES = [...ID_BYTES, ...HASH_BYTES, 1, ...HASH_BYTES, ...HASH_BYTES, ...u53(5), ...text("c")];
const FENCE = { clusterId: "k", term: 2, recoveredBy: "n" };
const FENCE_BYTES = [...text("k"), ...u53(2), 1, ...text("n")];
const SPEC = {
  kind: "b",
  payload: { z: 1, a: null },
  queue: "q",
  labels: { l: "m" },
  platform: null,
  priority: -1,
  notBeforeMs: 7,
  attemptsMax: 1,
  lossesMax: 2,
  backoff: { baseMs: 3, maxMs: 4 },
  timeoutMs: null,
  retentionMs: 5,
  concurrency: { key: "y", limit: 6 },
};
const SPEC_INNER = [
  ...text("b"),
  ...text("q"),
  1,
  ...text("l"),
  ...text("m"),
  0,
  0,
  0,
  0,
  0,
  0x7f,
  0xff,
  0xff,
  0xff,
  1,
  ...u53(7),
  ...u53(1),
  ...u53(2),
  ...u53(3),
  ...u53(4),
  0,
  ...u53(5),
  1,
  ...text("y"),
  ...u53(6),
  ...text('{"a":null,"z":1}'),
];
const SPEC_BYTES = [0, 0, 0, SPEC_INNER.length, ...SPEC_INNER];
const OPERATIONS: readonly TxnOperation[] = [
  { kind: "value-put", name: "n", data: Uint8Array.of(0x31), ifVersion: 8 },
  { kind: "value-delete", name: "n", ifVersion: null },
  { kind: "value-check", name: "n", ifVersion: 0 },
  { kind: "scope-release", scope: "s", epoch: 9 },
  { kind: "scope-acquire", scope: "s", session: "e", identity: "i", metadata: { m: "d" }, ttlMs: 10 },
  { kind: "job-submit", spec: SPEC },
];
const OPERATION_BYTES = [
  0,
  ...text("n"),
  1,
  ...u53(8),
  ...text("1"),
  1,
  ...text("n"),
  0,
  2,
  ...text("n"),
  ...u53(0),
  3,
  ...text("s"),
  ...u53(9),
  4,
  ...text("s"),
  ...text("e"),
  ...text("i"),
  ...u53(10),
  1,
  ...text("m"),
  ...text("d"),
  5,
  ...SPEC_BYTES,
];

// ---- any event ---------------------------------------------------------------------------------------

const someText = fc.oneof(
  fc.constantFrom("a", "é", "__proto__", "constructor", "toString", "漢字/🙂"),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).filter((one) => !one.includes("\0")),
);
const count = fc.oneof(fc.nat(9), fc.constant(Number.MAX_SAFE_INTEGER));
const hash = fc
  .array(fc.constantFrom(..."0123456789abcdef".split("")), { minLength: 64, maxLength: 64 })
  .map((all) => all.join(""));
const texts = fc.dictionary(someText, someText, { maxKeys: 3 });
const bytes = fc.uint8Array({ maxLength: 20 });

const txnId: fc.Arbitrary<string> = fc
  .tuple(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.infiniteStream(fc.nat(15)))
  .map(([ms, digits]) => newTxnId(ms, { below: (below) => (digits.next().value as number) % below }));

const spec: fc.Arbitrary<JobSpec> = fc.record({
  kind: someText,
  payload: fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as never),
  queue: someText,
  labels: texts,
  platform: fc.option(someText),
  priority: fc.integer({ min: -1_000_000, max: 1_000_000 }),
  notBeforeMs: fc.option(count),
  attemptsMax: count,
  lossesMax: count,
  backoff: fc.record({ baseMs: count, maxMs: count }),
  timeoutMs: fc.option(count),
  retentionMs: count,
  concurrency: fc.option(fc.record({ key: someText, limit: count })),
});

const operation: fc.Arbitrary<TxnOperation> = fc.oneof(
  fc.record({ kind: fc.constant("value-put" as const), name: someText, data: bytes, ifVersion: fc.option(count) }),
  fc.record({ kind: fc.constant("value-delete" as const), name: someText, ifVersion: fc.option(count) }),
  fc.record({ kind: fc.constant("value-check" as const), name: someText, ifVersion: count }),
  fc.record({ kind: fc.constant("scope-release" as const), scope: someText, epoch: count }),
  fc.record({
    kind: fc.constant("scope-acquire" as const),
    scope: someText,
    session: someText,
    identity: someText,
    metadata: texts,
    ttlMs: count,
  }),
  fc.record({ kind: fc.constant("job-submit" as const), spec }),
);
const operations = fc.array(operation, { maxLength: 4 });

const someHeader: fc.Arbitrary<TxnHeader> = fc.record({
  id: txnId,
  home: hash,
  participants: fc.uniqueArray(hash, { maxLength: 4 }).map((all) => all.toSorted()),
  digest: hash,
  timeoutMs: count,
  by: someText,
});

const fence: fc.Arbitrary<TcFence> = fc.record({ clusterId: someText, term: count, recoveredBy: fc.option(someText) });
const reason: fc.Arbitrary<TxnReason> = fc.record({
  code: fc.constantFrom("txn_locked" as const, "STALE_EPOCH" as const),
  message: someText,
  backendHash: fc.option(hash),
});
const result: fc.Arbitrary<TxnResult> = fc.record({
  version: fc.option(count),
  epoch: fc.option(count),
  jobId: fc.option(someText),
});
const outbox = fc
  .array(fc.record({ jobId: someText, spec }), { maxLength: 3 })
  .map((all) => all.map((one, at) => ({ operation: 2 * at, ...one })));
const reserved = fc.record({ values: count, bytes: count, scopes: count });
const staged = someHeader.map((of) => ({ ...of, participants: [], digest: "", timeoutMs: 0 }));

const txnEvent: fc.Arbitrary<TxnEvent> = fc.oneof(
  fc.record({ kind: fc.constant("txn-staged" as const), header: staged, operations, atMs: count }),
  fc.record({
    kind: fc.constant("txn-prepared" as const),
    header: someHeader,
    operations,
    reserved,
    fence,
    atMs: count,
  }),
  fc.record({
    kind: fc.constant("txn-decided" as const),
    header: someHeader,
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

function written(event: TxnEvent): Uint8Array {
  const writer = new ByteWriter();
  writeTxnEvent(writer, event);
  return writer.finish();
}

const read = (bytes: Uint8Array): TxnEvent | null => readTxnEvent(new ByteReader(bytes));

describe("an event", () => {
  const forms: readonly (readonly [TxnEvent, readonly number[]])[] = [
    [
      {
        kind: "txn-staged",
        header: { ...HEADER, participants: [], digest: "", timeoutMs: 0 },
        operations: OPERATIONS,
        atMs: 3,
      },
      [0, ...ID_BYTES, ...HASH_BYTES, ...text("c"), ...u53(3), 6, ...OPERATION_BYTES],
    ],
    [
      {
        kind: "txn-prepared",
        header: HEADER,
        operations: OPERATIONS,
        reserved: { values: 1, bytes: 2, scopes: 3 },
        fence: FENCE,
        atMs: 3,
      },
      [1, ...HEADER_BYTES, ...u53(3), ...FENCE_BYTES, ...u53(1), ...u53(2), ...u53(3), 6, ...OPERATION_BYTES],
    ],
    [
      {
        kind: "txn-decided",
        header: HEADER,
        outcome: "committed",
        results: [
          { version: 4, epoch: null, jobId: null },
          { version: null, epoch: 5, jobId: null },
          { version: null, epoch: null, jobId: "j" },
          { version: null, epoch: null, jobId: null },
        ],
        outbox: [{ operation: 2, jobId: "j", spec: SPEC }],
        reason: null,
        fence: FENCE,
        atMs: 3,
      },
      [
        2,
        ...HEADER_BYTES,
        ...u53(3),
        0,
        1,
        ...FENCE_BYTES,
        0,
        4,
        1,
        ...u53(4),
        2,
        ...u53(5),
        4,
        ...text("j"),
        0,
        1,
        2,
        ...text("j"),
        ...SPEC_BYTES,
      ],
    ],
    [
      {
        kind: "txn-decided",
        header: HEADER,
        outcome: "rolled-back",
        results: [],
        outbox: [],
        reason: { code: "txn_locked", message: "m", backendHash: HASH },
        fence: null,
        atMs: 3,
      },
      [2, ...HEADER_BYTES, ...u53(3), 1, 0, 1, ...text("txn_locked"), ...text("m"), 1, ...HASH_BYTES, 0, 0],
    ],
    [{ kind: "txn-delivered", id: ID, atMs: 3 }, [3, ...ID_BYTES, ...u53(3)]],
    [{ kind: "txn-settled", id: ID, by: HASH, atMs: 3 }, [4, ...ID_BYTES, ...u53(3), 1, ...HASH_BYTES]],
    [{ kind: "txn-settled", id: ID, by: null, atMs: 3 }, [4, ...ID_BYTES, ...u53(3), 0]],
    [{ kind: "txn-fence", fence: FENCE, atMs: 3 }, [5, ...FENCE_BYTES, ...u53(3)]],
    [{ kind: "txn-dropped", id: ID, atMs: 3 }, [6, ...ID_BYTES, ...u53(3)]],
  ];

  it.each(forms)("keeps its form: $kind", (event, bytes) => {
    expect([...written(event)]).toEqual(bytes);
    expect(read(Uint8Array.from(bytes))).toEqual(event);
  });

  it("is read as it was written, and written again as it was read; cut short it is none", () => {
    fc.assert(
      fc.property(txnEvent, fc.nat(), (event, at) => {
        const bytes = written(event);
        const reader = new ByteReader(bytes);
        const again = readTxnEvent(reader);
        expect(again).toEqual(event);
        expect(reader.remainingBytes).toBe(0);
        // Not what is kept next to a spec: made anew.
        expect(written(structuredClone(again!))).toEqual(bytes);
        expect(() => read(bytes.subarray(0, at % bytes.length))).toThrow(DecodeError);
      }),
      { numRuns: 300 },
    );
  });

  it("has names like any other: __proto__ in labels, metadata and payloads is neither lost nor anybody's prototype", () => {
    const own = (value: unknown): never => Object.fromEntries([["__proto__", value]]) as never;
    const job: TxnOperation = { kind: "job-submit", spec: { ...SPEC, labels: own("l"), payload: own({ a: 1 }) } };
    const held: TxnOperation = {
      kind: "scope-acquire",
      scope: "__proto__",
      session: "e",
      identity: "i",
      ttlMs: 1,
      metadata: own("m"),
    };
    const header = { ...HEADER, participants: [], digest: "", timeoutMs: 0 };
    const event: TxnEvent = { kind: "txn-staged", header, operations: [job, held], atMs: 3 };
    const again = read(written(event)) as Extract<TxnEvent, { kind: "txn-staged" }>;
    expect(JSON.stringify(again.operations)).toBe(JSON.stringify(event.operations));
    expect(Object.getPrototypeOf((again.operations[0] as { spec: { labels: object } }).spec.labels)).toBe(
      Object.prototype,
    );
  });

  it("of a later form is told apart: whoever passed over it would have another state", () => {
    expect(read(Uint8Array.of(7))).toBeNull();
    const staged = [0, ...ID_BYTES, ...HASH_BYTES, ...text("c"), ...u53(3)];
    expect(read(Uint8Array.of(...staged, 1, 6))).toBeNull();
    const decided = [2, ...HEADER_BYTES, ...u53(3)];
    expect(read(Uint8Array.of(...decided, 2))).toBeNull();
    expect(read(Uint8Array.of(...decided, 0, 0, 0, 1, 8))).toBeNull();
  });

  it("that makes no sense is refused: an id of another version, islands out of order, too many of anything", () => {
    const wrong =
      (...bytes: readonly number[]) =>
      () =>
        read(Uint8Array.from(bytes));
    const id = ID_BYTES.with(6, 0x47);
    expect(wrong(3, ...id, ...u53(3))).toThrow(/no UUID/);
    expect(wrong(3, ...ID_BYTES.with(8, 0xc9), ...u53(3))).toThrow(/no UUID/);
    expect(wrong(1, ...ID_BYTES, ...HASH_BYTES, 2, ...HASH_BYTES, ...HASH_BYTES)).toThrow(/out of order/);
    expect(wrong(1, ...ID_BYTES, ...HASH_BYTES, 17)).toThrow(/17 where 16/);
    expect(wrong(0, ...ID_BYTES, ...HASH_BYTES, ...text("c"), ...u53(3), 65)).toThrow(/65 where 64/);
    expect(wrong(0, ...ID_BYTES, ...HASH_BYTES, 0xff, 0xff, 0xff, 0xff)).toThrow(/allowed/);
  });
});

describe("the digest's input", () => {
  const island = (letter: string): string => letter.repeat(64);
  const put: TxnOperation = { kind: "value-put", name: "n", data: Uint8Array.of(0x31), ifVersion: null };
  const content = {
    id: ID,
    timeoutMs: null,
    require: [{ backendHash: island("a"), scope: "s", epoch: 1 }],
    participants: [
      { backendHash: island("b"), operations: [put] },
      { backendHash: island("a"), operations: [] },
    ],
  };
  const input = (changes: Partial<typeof content> | object = {}, home = island("a")): string =>
    txnDigestInput({ ...content, ...changes }, home).join();

  it("is the same for the same transaction, in whatever order its islands and the keys of its payloads are named", () => {
    expect(input({ participants: content.participants.toReversed() })).toBe(input());
    expect(input({ timeoutMs: 5_000 })).toBe(input());
    const job = (payload: object): object => ({
      participants: [{ backendHash: island("a"), operations: [{ kind: "job-submit", spec: { ...SPEC, payload } }] }],
    });
    expect(input(job({ a: 1, b: 2 }))).toBe(input(job({ b: 2, a: 1 })));
  });

  it("is another one where anything of it is another", () => {
    const others = [
      input({ id: ID.replace("01", "02") }),
      input({ timeoutMs: 6_000 }),
      input({ require: [] }),
      input({ require: [{ backendHash: island("b"), scope: "s", epoch: 1 }] }),
      input({ require: [{ backendHash: island("a"), scope: "s", epoch: 2 }] }),
      input({ participants: [{ backendHash: island("b"), operations: [put] }] }),
      input({
        participants: [content.participants[1], { backendHash: island("b"), operations: [{ ...put, name: "m" }] }],
      }),
      input({ participants: [content.participants[1], { backendHash: island("b"), operations: [put, put] }] }),
      input({}, island("b")),
    ];
    expect(new Set([input(), ...others]).size).toBe(others.length + 1);
  });

  it("keeps its form", () => {
    const bytes = txnDigestInput({ ...content, participants: [content.participants[0]!] }, island("a"));
    const require = [1, ...new Array<number>(32).fill(0xaa), ...text("s"), ...u53(1)];
    const participants = [1, ...new Array<number>(32).fill(0xbb), 1, 0, ...text("n"), 0, ...text("1")];
    const timeout = [0, 0, 0, 0, 0, 0, 0x13, 0x88];
    const home = new Array<number>(32).fill(0xaa);
    expect([...bytes]).toEqual([
      ...text("tenure-txn\n"),
      ...ID_BYTES,
      ...home,
      ...timeout,
      ...require,
      ...participants,
    ]);
  });
});

it("a job's bytes are made once for each spec, whoever asks", () => {
  fc.assert(
    fc.property(spec, (one) => {
      const event = (of: typeof one): TxnEvent => ({
        kind: "txn-decided",
        header: HEADER,
        outcome: "committed",
        results: [],
        outbox: [{ operation: 0, jobId: "j", spec: of }],
        reason: null,
        fence: null,
        atMs: 1,
      });
      const first = written(event(one));
      expect(written(event(one))).toEqual(first);
      expect(written(event(structuredClone(one)))).toEqual(first);
    }),
    { numRuns: 50 },
  );
});
