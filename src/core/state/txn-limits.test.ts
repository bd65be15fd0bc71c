// Calls that nobody should send: every bound of transactions, texts that are none, names that mean something to JavaScript. None of them throws, and
// none of them leaves anything in the log that can't be written or read.

import { describe, expect, it } from "vitest";
import {
  TXN_BYTES_MAX,
  TXN_MESSAGE_BYTES_MAX,
  TXN_OPERATIONS_MAX,
  TXN_STAGED_MS_MAX,
  VALUE_BYTES_MAX,
} from "../kit/limits.ts";
import { decideRecover, type TxnHeader, type TxnOperation, type TxnReason } from "../txn/index.ts";
import { TXNS_BYTES_MAX, TXNS_OPEN_MAX, TXNS_STAGED_MAX } from "../txn/limits.ts";
import { decodeRecord } from "./index.ts";
import { acquire, fence, hashOf, header, Island, job, put, REASON, release } from "./test-island.ts";

const refused = (code: string): unknown => expect.objectContaining({ kind: "refused", code });
const rolledBack = (code: string): unknown =>
  expect.objectContaining({ phase: "rolled-back", reason: expect.objectContaining({ code }) as unknown });
const large = (name: string, bytes = VALUE_BYTES_MAX): TxnOperation => ({
  kind: "value-put",
  name,
  data: new Uint8Array(bytes),
  ifVersion: null,
});
const many = (count: number): TxnOperation[] => Array.from({ length: count }, (_, at) => put(`n${at}`));

describe("operations", () => {
  const wrong: readonly (readonly [string, readonly TxnOperation[]])[] = [
    ["none", []],
    ["too many", many(TXN_OPERATIONS_MAX + 1)],
    ["two of one value", [put("x"), { kind: "value-check", name: "x", ifVersion: 0 }]],
    ["two of one text that is none", [put("\ud800".repeat(2_000)), put("\ud800".repeat(2_000))]],
    ["two of one scope", [acquire("s"), release("s", 1)]],
    ["a value of no name", [put("")]],
    ["a name that is a path", [put("..")]],
    ["half of a surrogate pair", [put("\ud800")]],
    ["a name of 257 bytes", [put("é".repeat(129))]],
    ["a content that is too long", [large("x", VALUE_BYTES_MAX + 1)]],
    ["a negative version", [put("x", "1", -1)]],
    ["a version that is none", [{ kind: "value-check", name: "x", ifVersion: Number.NaN }]],
    ["an epoch of 0", [release("s", 0)]],
    ["an epoch past all integers", [release("s", 2 ** 53)]],
    ["a session that is none", [acquire("s", "")]],
    ["a ttl of nothing", [{ ...acquire("s"), ttlMs: 0 } as TxnOperation]],
    ["metadata that is too long", [{ ...acquire("s"), metadata: { m: "x".repeat(5_000) } } as TxnOperation]],
    ["a payload that is no JSON", [job({ payload: Number.NaN })]],
    ["a payload with half of a surrogate pair", [job({ payload: "\ud800" })]],
    ["too many bytes", Array.from({ length: 9 }, (_, at) => large(`n${at}`))],
  ];

  it.each(wrong)(
    "with %s are refused, staged, prepared and at home, and nothing of them is written",
    (_, operations) => {
      const [home, other] = [new Island("a"), new Island("b")];
      const txn = header("a", "ab");
      expect(other.prepare(txn, operations)).toEqual(refused("invalid_operations"));
      expect(other.stage(txn, operations)).toEqual(refused("invalid_operations"));
      expect(other.log).toEqual([]);
      expect(home.commit(txn, operations)).toEqual(rolledBack("invalid_operations"));
      expect([home.fold.values.size, home.fold.scopes.size]).toEqual([0, 0]);
    },
  );

  it("a payload past its bound is a job that can't be submitted", () => {
    const other = new Island("b");
    const tooLong = job({ payload: "x".repeat(256 * 1024) });
    expect(other.prepare(header("a", "ab"), [tooLong])).toEqual(refused("BAD_REQUEST"));
  });

  it("as many and as large as they may be fit into one record, prepared and decided", () => {
    const island = new Island("b");
    const name = (at: number): string => String(at).padStart(128, "é");
    const metadata = { ["é".repeat(1_000)]: "é".repeat(1_000) };
    const scopes = Array.from(
      { length: 40 },
      (_, at) => ({ ...acquire(name(at), "é".repeat(64)), metadata }) as TxnOperation,
    );
    const free = TXN_BYTES_MAX - 95_000 - 6 * VALUE_BYTES_MAX;
    const values = Array.from({ length: 7 }, (_, at) => large(`n${at}`, at < 6 ? VALUE_BYTES_MAX : free));
    const txn = header("a", "abcdef", { by: "é".repeat(256) });
    expect(island.prepare(txn, [...scopes, ...values, job()])).toMatchObject({ phase: "prepared" });
    expect(island.commit(txn)).toMatchObject({ phase: "committed" });
    expect([island.fold.counts.unfit, island.fold.scopes.held]).toEqual([0, 40]);
    for (const bytes of island.log) {
      expect(bytes.length).toBeLessThan(1024 * 1024);
      expect(decodeRecord(bytes).kind).toBe("changes");
    }
  });

  it("about __proto__ and constructor are of values and scopes like any others", () => {
    const [home, other] = [new Island("a"), new Island("b")];
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    const txn = header("a", "ab", { by: "__proto__" });
    const operations = names.flatMap((name) => [put(name), acquire(name)]);
    expect(other.prepare(txn, operations)).toMatchObject({ phase: "prepared" });
    expect(other.prepare(header("a", "ab"), [put("prototype")])).toMatchObject({ phase: "prepared" });
    for (const name of names) {
      expect([other.head.lockedBy({ value: name }), other.head.lockedBy({ scope: name })]).toEqual([txn.id, txn.id]);
      expect(home.head.lockedBy({ value: name })).toBeNull();
    }
    expect(other.commit(txn)).toMatchObject({ phase: "committed" });
    expect(names.map((name) => other.text(name))).toEqual(names.map(() => "1"));
    expect(home.commit(txn, operations, [{ scope: "__proto__", epoch: 1 }])).toEqual(rolledBack("STALE_EPOCH"));
  });
});

describe("a header", () => {
  const wrong: readonly (readonly [string, Partial<TxnHeader>])[] = [
    ["invalid_txn_id", { id: "x" }],
    ["invalid_home", { home: "A".repeat(64) }],
    ["invalid_participants", { participants: ["b", "a"].map(hashOf) }],
    ["invalid_participants", { participants: ["a", "a", "b"].map(hashOf) }],
    ["invalid_participants", { participants: ["a", "x"].map(hashOf) }],
    ["invalid_participants", { participants: Array.from({ length: 17 }, (_, at) => `${at + 10}`.repeat(32)) }],
    ["BAD_REQUEST", { digest: "" }],
    ["invalid_timeout", { timeoutMs: 0 }],
    ["invalid_timeout", { timeoutMs: 60_001 }],
    ["invalid_timeout", { timeoutMs: 1_000.5 }],
    ["BAD_REQUEST", { by: "\ud800" }],
    ["BAD_REQUEST", { by: "é".repeat(257) }],
  ];

  it.each(wrong)("is refused with %s, whatever is called", (code, changes) => {
    const island = new Island("a");
    const txn = header("a", "ab", changes);
    const answers = [
      island.prepare(txn, [put("x")]),
      island.commit(txn, [put("x")]),
      island.rollback(txn),
      island.inquire(txn),
    ];
    expect(answers).toEqual(answers.map(() => refused(code)));
    expect(island.log).toEqual([]);
  });

  it("with a fence that is none is refused", () => {
    const island = new Island("a");
    const wrongTerms = [0, -1, 1.5, 2 ** 53, Number.NaN];
    for (const term of wrongTerms) {
      expect(island.commit(header("a", "a"), [put("x")], [], fence(term))).toEqual(refused("invalid_term"));
      expect(decideRecover(island.head, fence(term), island.context)).toMatchObject({ code: "invalid_term" });
    }
    const texts = [
      { clusterId: "" },
      { clusterId: "\ud800" },
      { clusterId: "x".repeat(129) },
      { recoveredBy: "x".repeat(81) },
    ];
    for (const changes of texts)
      expect(island.commit(header("a", "a"), [put("x")], [], fence(1, changes))).toEqual(refused("BAD_REQUEST"));
    expect(island.log).toEqual([]);
  });

  it("staged: what it lacks is refused too", () => {
    const island = new Island("b");
    const txn = header("a", "ab");
    expect(island.stage({ ...txn, home: "x" }, [put("x")])).toEqual(refused("invalid_home"));
    expect(island.stage({ ...txn, by: "\ud800" }, [put("x")])).toEqual(refused("BAD_REQUEST"));
    for (const ms of [0, 0.5, TXN_STAGED_MS_MAX + 1])
      expect(island.stage(txn, [put("x")], ms)).toEqual(refused("invalid_timeout"));
  });
});

describe("a report and a reason", () => {
  it("of nobody, or of too many, is refused", () => {
    const island = new Island("a");
    const { id } = header("a", "ab");
    expect(island.settled("x", id)).toEqual(refused("invalid_backend_hash"));
    const ids = Array.from({ length: 129 }, () => header("a", "ab").id);
    expect(island.settled(hashOf("b"), ...ids)).toEqual(refused("invalid_txn_id"));
    expect(island.settled(hashOf("b"), ...ids.slice(1))).toEqual({ kind: "settled", ids: ids.slice(1) });
  });

  it("is cut to what the log takes, whatever is in it", () => {
    const reasons: readonly TxnReason[] = [
      { ...REASON, message: "é".repeat(TXN_MESSAGE_BYTES_MAX) },
      { ...REASON, message: `${"x".repeat(340)}🙂` },
      { ...REASON, message: "\ud800" },
      { ...REASON, backendHash: "none" },
      { ...REASON, code: "\ud800" as never },
      { ...REASON, code: "x".repeat(65) as never },
    ];
    for (const reason of reasons) {
      const island = new Island("a");
      const txn = header("a", "ab");
      const answer = island.call({ kind: "rollback", header: txn, reason, fence: fence() });
      expect(answer).toMatchObject({ phase: "rolled-back" });
      expect([island.fold.counts.malformed, island.inquire(txn)]).toEqual([0, answer]);
    }
  });
});

describe("an island", () => {
  it("takes as many that are open as it may, and no more; what it has promised it commits all the same", () => {
    const island = new Island("b");
    const first = header("a", "ab");
    island.prepare(first, [put("first")]);
    for (let n = 1; n < TXNS_OPEN_MAX; n++) {
      const txn = header(n % 2 === 0 ? "b" : "a", "ab");
      const answer = n % 2 === 0 ? island.commit(txn, [put(`n${n % 100}`)]) : island.prepare(txn, [put(`p${n}`)]);
      expect(answer.kind === "txn" && answer.phase !== "rolled-back").toBe(true);
    }
    expect(island.fold.txns.prepared + island.fold.txns.unsettled).toBe(TXNS_OPEN_MAX);
    expect(island.prepare(header("a", "ab"), [put("x")])).toEqual(refused("OVERLOADED"));
    expect(island.commit(header("b", "ab"), [put("x")])).toEqual(rolledBack("OVERLOADED"));
    // What nobody else has a part in is done with its decision.
    expect(island.commit(header("b", "b"), [put("x")])).toMatchObject({ phase: "committed" });
    expect(island.commit(first)).toMatchObject({ phase: "committed" });
    expect(island.text("first")).toBe("1");
  });

  it("takes as many that are staged as it may, and as many bytes", () => {
    const island = new Island("b");
    for (let n = 0; n < TXNS_STAGED_MAX; n++) island.stage(header("a", "ab"), [put("x")]);
    expect(island.fold.txns.staged).toBe(TXNS_STAGED_MAX);
    expect(island.stage(header("a", "ab"), [put("x")])).toEqual(refused("OVERLOADED"));
    const bytes = new Island("b");
    const payload = "x".repeat(200_000);
    const some = header("a", "ab");
    for (let n = 0; bytes.fold.txns.bytes + 400_500 <= TXNS_BYTES_MAX; n++) {
      const txn = n === 0 ? some : header("a", "ab");
      const two = [job({ payload }), job({ payload })];
      expect(n % 2 === 0 ? bytes.prepare(txn, two) : bytes.stage(txn, two)).toMatchObject({ kind: "txn" });
    }
    const last = [job({ payload }), job({ payload })];
    expect(bytes.prepare(header("a", "ab"), last)).toEqual(refused("OVERLOADED"));
    expect(bytes.stage(header("a", "ab"), last)).toEqual(refused("OVERLOADED"));
    expect(bytes.commit(header("b", "b"), last)).toEqual(rolledBack("OVERLOADED"));
    const before = bytes.fold.txns.bytes;
    expect(bytes.commit(some)).toMatchObject({ phase: "committed" });
    expect(bytes.fold.txns.bytes).toBeLessThanOrEqual(before);
  });
});
