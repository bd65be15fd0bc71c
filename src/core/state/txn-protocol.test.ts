// Transactions at one island: each sentence of the protocol that its state alone can show.

import { describe, expect, it } from "vitest";
import { decide as decideScope } from "../scopes/index.ts";
import {
  decideDelivered,
  decideDropped,
  decideForce,
  decideOutcome,
  decideRecover,
  decideSettledKnown,
  decideTxn,
  type TxnChange,
  type TxnHeader,
  type TxnOperation,
} from "../txn/index.ts";
import { GENERATION_TERMS, VALUES_MAX } from "../kit/limits.ts";
import { seededRandom } from "../kit/random.ts";
import { newTxnId } from "../txn/test-ids.ts";
import { decideValue } from "../values/index.ts";
import { encodeRecord, StateFold, withNewLine } from "./index.ts";
import { acquire, fence, hashOf, header, Island, job, NOW_MS, put, REASON, release } from "./test-island.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const random = seededRandom("txn-protocol.test");

const idAt = (ms: number): string => newTxnId(ms, random);
const remove = (name: string): TxnOperation => ({ kind: "value-delete", name, ifVersion: null });
const check = (name: string, ifVersion: number): TxnOperation => ({ kind: "value-check", name, ifVersion });
const phase = (of: string, reason: unknown = null): unknown =>
  expect.objectContaining({ kind: "txn", phase: of, reason });
const rolledBack = (code: string): unknown =>
  phase("rolled-back", expect.objectContaining({ code, backendHash: null }));
const refused = (code: string): unknown => expect.objectContaining({ kind: "refused", code });

function write(island: Island, name: string, text = "9"): string {
  const data = new TextEncoder().encode(text);
  const decision = decideValue(island.head, {
    kind: "put",
    name,
    data,
    ifVersion: null,
    fence: null,
    atMs: island.nowMs,
  });
  if (decision.kind === "event") island.write([decision.event]);
  return decision.kind;
}

function claim(island: Island, scope: string): string {
  const { head } = island;
  const command = { kind: "acquire", scope, session: "x", identity: "x", metadata: {}, ttlMs: 1_000, atMs: 1 } as const;
  const decision = decideScope(head.scopes, command, { position: island.log.length + 1, locks: head });
  if (decision.kind === "event") island.write([decision.event]);
  return decision.kind;
}

describe("home decides last, in one record", () => {
  it("it is never prepared, so that nothing at home is locked", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    expect(home.prepare(txn, [put("x")])).toEqual(refused("invalid_home"));
    expect(home.log).toEqual([]);
    expect(home.commit(txn, [put("x")])).toEqual(phase("committed"));
    expect([home.log.length, home.text("x"), home.fold.txns.prepared]).toEqual([1, "1", 0]);
    expect(write(home, "x")).toBe("event");
  });

  it("one participant that is home is one append, and is settled with it", () => {
    const home = new Island("a");
    const epoch = home.grant("s");
    const txn = header("a", "a");
    const operations = [put("x"), put("y", "2"), release("s", epoch), acquire("t"), check("w", 0), remove("z")];
    const answer = home.commit(txn, operations, [{ scope: "s", epoch }]);
    const none = { version: null, epoch: null, jobId: null };
    const wrote = { ...none, version: 2 };
    expect(answer).toMatchObject({
      phase: "committed",
      results: [wrote, wrote, none, { ...none, epoch: 2 }, none, none],
    });
    expect(home.log.length).toBe(2);
    expect([home.fold.scopes.get("s")!.hold, home.fold.scopes.get("t")!.hold!.epoch]).toEqual([null, 2]);
    expect(home.fold.values.get("y")!.version).toBe(2);
    expect(home.fold.txns.get(txn.id)!.isSettled).toBe(true);
  });

  it("a home without operations of its own decides too", () => {
    const home = new Island("a");
    expect(home.commit(header("a", "bc"))).toEqual(phase("committed"));
    expect(home.commit(header("a", "bc"), [put("x")])).toEqual(rolledBack("invalid_operations"));
    expect(home.text("x")).toBeNull();
  });

  it("where anything is wrong there, the same record says that it is rolled back, and why", () => {
    const home = new Island("a");
    home.put("x");
    home.prepare(header("b", "ab"), [put("locked")]);
    home.problemOf = ({ kind }) => (kind === "nobody" ? "nobody can do it" : null);
    const epoch = home.grant("s");
    const wrong: readonly (readonly [string, readonly TxnOperation[] | null])[] = [
      ["txn_locked", [put("y"), put("locked")]],
      ["VERSION_CONFLICT", [put("x", "2", 7)]],
      ["VERSION_CONFLICT", [check("x", 0)]],
      ["VERSION_CONFLICT", [{ kind: "value-delete", name: "none", ifVersion: 3 }]],
      ["STALE_EPOCH", [release("s", epoch + 1)]],
      ["txn_locked", [acquire("s")]],
      ["BAD_REQUEST", [job({ kind: "nobody" })]],
      ["invalid_operations", [put("x"), remove("x")]],
      ["invalid_operations", []],
      ["txn_not_found", null],
    ];
    for (const [code, operations] of wrong) {
      const txn = header("a", "ab");
      const before = home.log.length;
      expect(home.commit(txn, operations)).toEqual(rolledBack(code));
      expect(home.log.length).toBe(before + 1);
      expect(home.commit(txn, [put("y")])).toEqual(rolledBack(code));
    }
    expect([home.text("x"), home.text("y"), home.text("locked")]).toEqual(["1", null, null]);
    expect(home.fold.scopes.get("s")!.hold?.epoch).toBe(epoch);
    expect(home.fold.counts.unfit).toBe(0);
  });

  it("`require` is checked at the decision, not before: an epoch that ended since the others were prepared rolls it back", () => {
    const [home, other] = [new Island("a"), new Island("b")];
    const epoch = home.grant("led");
    const txn = header("a", "ab");
    const require = [{ scope: "led", epoch }];
    expect(other.prepare(txn, [put("y")])).toEqual(phase("prepared"));
    home.write([{ kind: "expired", scope: "led", epoch, atMs: 1 }]);
    expect(home.commit(txn, [put("x")], require)).toEqual(rolledBack("STALE_EPOCH"));
    const successor = home.grant("led", "next");
    expect(home.commit(header("a", "ab"), [put("x")], require)).toEqual(rolledBack("STALE_EPOCH"));
    expect(home.text("x")).toBeNull();
    const now = [{ scope: "led", epoch: successor }];
    expect(home.commit(header("a", "ab"), [put("x")], now)).toEqual(phase("committed"));
  });

  it("`require` looks at what is appended: an end that is under way counts", () => {
    const home = new Island("a");
    const epoch = home.grant("led");
    home.append([{ kind: "resigned", scope: "led", epoch, atMs: 1 }]);
    expect(home.commit(header("a", "a"), [put("x")], [{ scope: "led", epoch }])).toEqual(rolledBack("STALE_EPOCH"));
  });
});

describe("rollback is home's record first", () => {
  it("a tombstone: the commit that arrives later is rolled back, and so it stays", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    expect(home.rollback(txn)).toEqual(phase("rolled-back", REASON));
    expect(home.log.length).toBe(1);
    expect(home.commit(txn, [put("x")], [], fence(9))).toEqual(phase("rolled-back", REASON));
    expect(home.text("x")).toBeNull();
  });

  it("hole 10: no later leader records the opposite of what is decided", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    expect(home.commit(txn, [put("x")])).toEqual(phase("committed"));
    const settled = home.fold.txns.get(txn.id);
    for (let term = 2; term < 5; term++) expect(home.rollback(txn, fence(term))).toEqual(phase("committed"));
    expect(home.inquire(txn)).toEqual(phase("committed"));
    expect([home.fold.txns.get(txn.id), home.text("x")]).toEqual([settled, "1"]);
  });

  it("elsewhere it is only a hint: it answers what is so, and changes nothing", () => {
    const other = new Island("b");
    const txn = header("a", "ab");
    expect(other.rollback(txn)).toEqual(phase(null as never));
    other.prepare(txn, [put("y")]);
    const before = other.snapshot;
    expect(other.rollback(txn, fence(2))).toEqual(phase("prepared"));
    expect([other.snapshot, other.log.length]).toEqual([before, 1]);
  });

  it("hole 9: however long home is silent, an island never rolls back by itself what it has prepared", () => {
    const other = new Island("b");
    const txn = header("a", "ab");
    other.prepare(txn, [put("y")]);
    other.nowMs += 400 * DAY_MS;
    expect(decideDropped(other.head, [txn.id], other.context)).toEqual([]);
    expect(decideSettledKnown(other.head, [txn.id], other.context)).toEqual([]);
    expect(other.rollback(txn)).toEqual(phase("prepared"));
    // What is decided elsewhere meanwhile forgets outcomes, never this.
    other.rollback(header("b", "b", { id: idAt(other.nowMs) }));
    expect(other.prepare(txn, [put("y")])).toEqual(phase("prepared"));
    expect(other.commit(txn)).toEqual(phase("committed"));
    expect(other.text("y")).toBe("1");
  });

  it("hole 9: what is not prepared, or is another one, is not committed: a refusal, which nobody can take for applied", () => {
    const other = new Island("b");
    const txn = header("a", "ab");
    expect(other.commit(txn)).toEqual(refused("txn_not_found"));
    other.stage(txn, [put("y")]);
    expect(other.commit(txn)).toEqual(refused("txn_not_found"));
    other.prepare(txn, null);
    expect(other.commit({ ...txn, digest: "1d".repeat(32) })).toEqual(refused("txn_conflict"));
    expect(other.text("y")).toBeNull();
  });

  it("what an island is answered by home it does: either outcome, once", () => {
    const other = new Island("b");
    const [one, two] = [header("a", "ab"), header("a", "ab")];
    other.prepare(one, [put("y")]);
    other.prepare(two, [put("z")]);
    const outcomes = { [one.id]: "committed", [two.id]: "rolled-back" } as const;
    for (const id of [one.id, two.id, one.id]) {
      const outcome = { phase: outcomes[id]!, reason: null };
      other.write(decideOutcome(other.head, id, outcome, other.context));
      const opposite = { phase: outcome.phase === "committed" ? "rolled-back" : "committed", reason: null } as const;
      expect(decideOutcome(other.head, id, opposite, other.context)).toEqual([]);
    }
    expect([other.text("y"), other.text("z"), other.log.length]).toEqual(["1", null, 4]);
    expect([write(other, "y"), write(other, "z")]).toEqual(["event", "event"]);
  });
});

describe("presumed abort", () => {
  it("what home does not know is rolled back from the question on", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    expect(home.inquire(txn)).toEqual(rolledBack("txn_fanout_failed"));
    expect(home.log.length).toBe(1);
    expect(home.commit(txn, [put("x")])).toEqual(rolledBack("txn_fanout_failed"));
    expect(home.text("x")).toBeNull();
  });

  it("nor does home know what is only staged there", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    home.stage(txn, [put("x")]);
    expect(home.inquire(txn)).toEqual(rolledBack("txn_fanout_failed"));
    expect([home.commit(txn), home.fold.txns.staged]).toEqual([rolledBack("txn_fanout_failed"), 0]);
  });

  it("an island that has another one under the id is answered that its own is rolled back: home can never commit it", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    home.commit(txn, [put("x")]);
    expect(home.inquire({ ...txn, digest: "1d".repeat(32) })).toEqual(rolledBack("txn_conflict"));
    expect(home.inquire(txn)).toEqual(phase("committed"));
  });

  it("an island that is not home answers nothing", () => {
    const other = new Island("b");
    const txn = header("a", "ab");
    expect(other.inquire(txn)).toEqual(refused("txn_backend_mismatch"));
    expect(other.log).toEqual([]);
  });
});

describe("each record keeps home, participants and digest", () => {
  const txn = header("a", "ab");
  const others: readonly (readonly [string, TxnHeader])[] = [
    ["home", { ...txn, home: hashOf("c") }],
    ["participants", { ...txn, participants: ["a", "b", "c"].map(hashOf) }],
    ["digest", { ...txn, digest: "1d".repeat(32) }],
    ["time", { ...txn, timeoutMs: 6_000 }],
  ];

  it.each(others)(
    "another %s under the same id is txn_conflict, in whatever phase, and changes nothing",
    (_, other) => {
      const island = new Island("b");
      for (const step of [() => island.prepare(txn, [put("y")]), () => island.commit(txn)]) {
        step();
        const before = island.snapshot;
        expect(island.prepare(other, [put("z")], fence(2))).toEqual(refused("txn_conflict"));
        expect(island.commit(other, null, [], fence(2))).toEqual(refused("txn_conflict"));
        expect(island.rollback(other, fence(2))).toEqual(refused("txn_conflict"));
        expect(island.snapshot).toEqual(before);
      }
    },
  );

  it("so it is at home, where nothing but the decision was ever said of it", () => {
    const home = new Island("a");
    home.rollback(txn);
    for (const [, other] of others.slice(1)) expect(home.commit(other, [put("x")])).toEqual(refused("txn_conflict"));
  });

  it("the client's name is not compared", () => {
    const island = new Island("b");
    island.prepare(txn, [put("y")]);
    expect(island.prepare({ ...txn, by: "another server" }, [put("y")])).toEqual(phase("prepared"));
  });

  it("what is staged knows home alone; operations under it that are sent once more are another one", () => {
    const island = new Island("b");
    island.stage(txn, [put("y")]);
    expect(island.stage(txn, [put("y")])).toEqual(phase("staged"));
    expect(island.stage(txn, [put("z")])).toEqual(refused("txn_conflict"));
    expect(island.stage({ ...txn, home: hashOf("c") }, [put("y")])).toEqual(refused("txn_conflict"));
    expect(island.prepare({ ...txn, home: hashOf("c") }, null)).toEqual(refused("txn_conflict"));
    expect(island.prepare(txn, [put("y")])).toEqual(refused("txn_conflict"));
    expect(island.log.length).toBe(1);
    expect(island.prepare(txn, null)).toEqual(phase("prepared"));
  });

  it("islands that have no part in it refuse it", () => {
    const island = new Island("c");
    expect(island.prepare(txn, [put("y")])).toEqual(refused("txn_backend_mismatch"));
    expect(island.commit(txn, [put("y")])).toEqual(refused("txn_backend_mismatch"));
  });
});

describe("the id carries its time", () => {
  it("one that is older than 12 hours is expired where it is unknown, and answered where it is known", () => {
    const island = new Island("b");
    const [old, known] = [idAt(NOW_MS - 12 * HOUR_MS - 1), idAt(NOW_MS - 12 * HOUR_MS)];
    expect(island.prepare(header("a", "ab", { id: old }), [put("y")])).toEqual(refused("txn_expired"));
    expect(island.stage(header("a", "ab", { id: old }), [put("y")])).toEqual(refused("txn_expired"));
    expect(island.log).toEqual([]);
    const txn = header("a", "ab", { id: known });
    expect(island.prepare(txn, [put("y")])).toEqual(phase("prepared"));
    island.nowMs += 13 * HOUR_MS;
    expect(island.prepare(txn, [put("y")])).toEqual(phase("prepared"));
    expect(island.commit(txn)).toEqual(phase("committed"));
  });

  it("one that is more than 10 s ahead is invalid where it is unknown", () => {
    const other = new Island("b");
    const ahead = header("a", "ab", { id: idAt(NOW_MS + 10_001) });
    expect(other.prepare(ahead, [put("y")])).toEqual(refused("invalid_txn_id"));
    expect(other.stage(ahead, [put("y")])).toEqual(refused("invalid_txn_id"));
    expect(other.log).toEqual([]);
    expect(other.prepare(header("a", "ab", { id: idAt(NOW_MS + 10_000) }), [put("y")])).toEqual(phase("prepared"));
  });

  it.each([
    ["txn_expired", -12 * HOUR_MS - 1, -13 * HOUR_MS],
    ["invalid_txn_id", 10_001, HOUR_MS],
  ] as const)(
    "home writes down that it is %s: its next leader's clock may take it for fine",
    (code, madeMs, thenMs) => {
      const home = new Island("a");
      const txn = header("a", "ab", { id: idAt(NOW_MS + madeMs) });
      expect(home.commit(txn, [put("x")])).toEqual(rolledBack(code));
      home.nowMs += thenMs;
      expect(home.commit(txn, [put("x")])).toEqual(rolledBack(code));
    },
  );

  it("what an island with a faster clock has prepared ends by home's word all the same", () => {
    const home = new Island("a");
    const txns = [header("a", "ab", { id: idAt(NOW_MS + HOUR_MS) }), header("a", "ab", { id: idAt(NOW_MS + HOUR_MS) })];
    expect(home.inquire(txns[0]!)).toEqual(rolledBack("txn_fanout_failed"));
    expect(home.rollback(txns[1]!)).toEqual(phase("rolled-back", REASON));
    expect(txns.map(({ id }) => home.fold.txns.get(id)?.phase)).toEqual(["rolled-back", "rolled-back"]);
  });

  it("one that is made in the future is not forgotten before that time: it would end all ids before it", () => {
    const home = new Island("a");
    home.inquire(header("a", "ab", { id: idAt(NOW_MS + 3 * DAY_MS) }));
    home.nowMs += 2 * DAY_MS;
    const now = header("a", "ab", { id: idAt(home.nowMs) });
    expect(home.commit(now, [put("x")])).toEqual(phase("committed"));
    expect(home.fold.txns.horizon).toBe(null);
    home.nowMs += DAY_MS + 1;
    home.settled(hashOf("b"), now.id);
    home.nowMs += DAY_MS;
    home.rollback(header("a", "ab", { id: idAt(home.nowMs) }));
    expect([home.fold.txns.size, home.fold.txns.horizon! > now.id]).toEqual([1, true]);
  });

  it.each(["", "x", "__proto__", "0197a1b2-c3d4-4000-8000-000000000000", "0197A1B2-C3D4-7000-8000-000000000000"])(
    "%s is none",
    (id) => {
      const home = new Island("a");
      const wrong = refused("invalid_txn_id");
      expect(home.commit(header("a", "a", { id }), [put("x")])).toEqual(wrong);
      expect(home.inquire(header("a", "a", { id }))).toEqual(wrong);
      expect(home.stage(header("a", "a", { id }), [put("x")])).toEqual(wrong);
      expect(home.settled(hashOf("b"), id)).toEqual(wrong);
    },
  );
});

describe("an outcome", () => {
  /** An island that has committed it, and another record a while later. */
  function later(island: Island, afterMs: number): void {
    island.nowMs += afterMs;
    island.write([{ kind: "txn-fence", fence: fence(1), atMs: island.nowMs }]);
  }

  it("of home is kept until all participants have reported, however long that takes, and 24 hours more", () => {
    const home = new Island("a");
    const txn = header("a", "abc");
    home.commit(txn, [put("x")]);
    later(home, 100 * DAY_MS);
    expect(home.settled(hashOf("b"), txn.id, txn.id)).toEqual({ kind: "settled", ids: [txn.id, txn.id] });
    expect(home.fold.txns.get(txn.id)).toMatchObject({ isSettled: false, settledBy: [hashOf("b")] });
    later(home, 100 * DAY_MS);
    expect(home.inquire(txn)).toEqual(phase("committed"));
    home.settled(hashOf("c"), txn.id);
    later(home, DAY_MS - 1);
    expect([home.inquire(txn), home.fold.txns.horizon]).toEqual([phase("committed"), null]);
    later(home, 1);
    expect([home.fold.txns.get(txn.id), home.fold.txns.horizon]).toEqual([undefined, txn.id]);
  });

  it("of a participant is kept until home has answered its report, and 24 hours more; then it is never done again", () => {
    const other = new Island("b");
    const txn = header("a", "ab");
    other.prepare(txn, [put("y")]);
    other.commit(txn);
    later(other, 100 * DAY_MS);
    expect(other.prepare(txn, [put("y")])).toEqual(phase("committed"));
    other.write(decideSettledKnown(other.head, [txn.id, "unknown"], other.context));
    expect(decideSettledKnown(other.head, [txn.id], other.context)).toEqual([]);
    later(other, DAY_MS);
    for (const answer of [other.prepare(txn, [put("y")]), other.commit(txn), other.stage(txn, [put("y")])])
      expect(answer).toEqual(refused("txn_expired"));
    expect(other.fold.values.get("y")!.version).toBe(2);
  });

  it("reports of those who have no part in it, or of home itself, count for nothing", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    home.commit(txn, [put("x")]);
    for (const from of ["a", "c"]) home.settled(hashOf(from), txn.id);
    expect([home.log.length, home.fold.txns.unsettled]).toEqual([1, 1]);
    const other = new Island("b");
    other.prepare(txn, [put("y")]);
    other.commit(txn);
    other.settled(hashOf("b"), txn.id);
    expect(other.fold.txns.unsettled).toBe(1);
  });

  it("that is a rollback is needed by nobody: what is unknown at home is the same", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    home.rollback(txn);
    expect([home.fold.txns.get(txn.id)!.isSettled, home.fold.txns.unsettled]).toEqual([true, 0]);
    later(home, DAY_MS);
    const before = home.log.length;
    expect([home.fold.txns.size, home.fold.txns.horizon]).toEqual([0, txn.id]);
    // Nobody writes it down again, and nobody does it either.
    expect(home.inquire(txn)).toEqual(rolledBack("txn_fanout_failed"));
    expect(home.log.length).toBe(before);
    expect(home.commit(txn, [put("x")])).toEqual(refused("txn_expired"));
    // Who asks for it a second time must not hear "rolled back" of what may have been committed, and is done everywhere.
    expect(home.rollback(txn)).toEqual(refused("txn_expired"));
    expect(home.log.length).toBe(before);
  });

  it("the horizon is above all that was forgotten: an id up to there that is unknown is refused, whatever clocks say", () => {
    const home = new Island("a");
    const [early, late] = [header("a", "a"), header("a", "a", { id: idAt(NOW_MS + 5_000) })];
    home.rollback(late);
    later(home, DAY_MS);
    // The next leader's clock is a day slow: by it the id is new.
    home.nowMs = NOW_MS + 6_000;
    expect(home.commit(early, [put("x")])).toEqual(refused("txn_expired"));
    const restored = new StateFold();
    restored.restore(home.snapshot);
    expect(restored.txns.horizon).toBe(late.id);
    const next = header("a", "a", { id: idAt(NOW_MS + 5_001) });
    expect(home.commit(next, [put("x")])).toEqual(phase("committed"));
  });

  it("one that is prepared below the horizon is done all the same: it was never forgotten", () => {
    const other = new Island("b");
    const txn = header("a", "ab");
    other.prepare(txn, [put("y")]);
    other.rollback(header("b", "b", { id: idAt(NOW_MS + 9_000) }));
    later(other, 2 * DAY_MS);
    expect(other.fold.txns.horizon! > txn.id).toBe(true);
    expect(other.commit(txn)).toEqual(phase("committed"));
  });
});

describe("the fence", () => {
  const TERM = 3 * GENERATION_TERMS + 7;

  it("is raised in the record that prepares or decides, and lower terms are stale from then on", () => {
    const island = new Island("b");
    const [one, two] = [header("a", "ab"), header("a", "ab")];
    island.prepare(one, [put("y")], fence(5));
    expect([island.log.length, island.fold.txns.fence]).toEqual([1, fence(5)]);
    expect(island.prepare(two, [put("z")], fence(4))).toEqual(refused("tc_term_stale"));
    expect(island.commit(one, null, [], fence(4))).toEqual(refused("tc_term_stale"));
    expect(island.commit(one, null, [], fence(5))).toEqual(phase("committed"));
    const home = new Island("a");
    home.commit(one, [put("x")], [], fence(6));
    expect(home.rollback(two, fence(5))).toEqual(refused("tc_term_stale"));
    expect(home.rollback(two, fence(7))).toEqual(phase("rolled-back", REASON));
    expect(home.fold.txns.fence).toEqual(fence(7));
  });

  it("is raised by an answer about what was decided before, too: a deposed leader is not heard after it", () => {
    const island = new Island("b");
    const txn = header("a", "ab");
    island.prepare(txn, [put("y")], fence(5));
    expect(island.prepare(txn, [put("y")], fence(6))).toEqual(phase("prepared"));
    expect(island.commit(txn, null, [], fence(5))).toEqual(refused("tc_term_stale"));
    island.commit(txn, null, [], fence(6));
    expect(island.commit(txn, null, [], fence(7))).toEqual(phase("committed"));
    expect([island.fold.txns.fence, island.log.length]).toEqual([fence(7), 4]);
  });

  it("goes up by `recover` alone, once", () => {
    const island = new Island("b");
    const decision = decideRecover(island.head, fence(3), island.context);
    if (decision.kind === "record") island.write(decision.changes);
    expect(island.fold.txns.fence).toEqual(fence(3));
    expect(decideRecover(island.head, fence(3), island.context)).toEqual({ kind: "nothing" });
    expect(decideRecover(island.head, fence(2), island.context)).toMatchObject({ code: "tc_term_stale" });
  });

  it("counts while its record is under way, and no longer when that is given up", () => {
    const island = new Island("b");
    const { context, head } = island;
    const decision = decideRecover(head, fence(3), context);
    island.append(decision.kind === "record" ? decision.changes : []);
    expect(island.prepare(header("a", "ab"), [put("y")], fence(2))).toEqual(refused("tc_term_stale"));
    island.giveUp();
    expect(island.prepare(header("a", "ab"), [put("y")], fence(2))).toEqual(phase("prepared"));
  });

  it("hole 4: a term below the one that this node observes is stale, though the island's log never heard of that", () => {
    const island = new Island("b");
    island.observed = fence(8);
    expect(island.prepare(header("a", "ab"), [put("y")], fence(7))).toEqual(refused("tc_term_stale"));
    expect(island.prepare(header("a", "ab"), [put("y")], fence(8))).toEqual(phase("prepared"));
    expect(decideRecover(island.head, fence(7), island.context)).toMatchObject({ code: "tc_term_stale" });
  });

  it("is durable over a snapshot and its restore, and over a recovery of the island", () => {
    const island = new Island("b");
    const by = fence(TERM, { recoveredBy: "n1@a" });
    island.prepare(header("a", "ab"), [put("y")], by);
    const line = { generation: 0, place: 7, position: island.log.length, session: "nobody" };
    for (const bytes of [island.snapshot, withNewLine(island.snapshot, line)]) {
      const fold = new StateFold();
      fold.restore(bytes);
      expect(fold.txns.fence).toEqual(by);
      const again = new Island("b", fold, island.log.length);
      const older = fence(TERM - 1, { recoveredBy: "n1@a" });
      expect(again.prepare(header("a", "ab"), [put("z")], older)).toEqual(refused("tc_term_stale"));
    }
  });

  it("compares who has recovered the coordinators: of one generation there may be two, which win the same terms", () => {
    const island = new Island("b");
    island.prepare(header("a", "ab"), [put("y")], fence(TERM, { recoveredBy: "n1@a" }));
    const calls = [fence(TERM + 1, { recoveredBy: "n2@b" }), fence(TERM - 1, { recoveredBy: "n2@b" }), fence(TERM)];
    for (const by of calls)
      expect(island.prepare(header("a", "ab"), [put("z")], by)).toEqual(refused("tc_cluster_mismatch"));
    const next = fence(4 * GENERATION_TERMS, { recoveredBy: "n2@b" });
    expect(island.prepare(header("a", "ab"), [put("z")], next)).toEqual(phase("prepared"));
    expect(island.prepare(header("a", "ab"), [put("w")], fence(TERM, { recoveredBy: "n1@a" }))).toEqual(
      refused("tc_term_stale"),
    );
  });

  it("of another cluster of coordinators is refused, unless this node's own coordinator is in that one", () => {
    const island = new Island("b");
    island.prepare(header("a", "ab"), [put("y")], fence(9));
    const other = fence(1, { clusterId: "others" });
    expect(island.prepare(header("a", "ab"), [put("z")], other)).toEqual(refused("tc_cluster_mismatch"));
    island.observed = other;
    expect(island.prepare(header("a", "ab"), [put("z")], other)).toEqual(phase("prepared"));
    expect(island.fold.txns.fence).toEqual(other);
    expect(island.prepare(header("a", "ab"), [put("w")], fence(10))).toEqual(refused("tc_cluster_mismatch"));
    // One that has heard of no coordinators believes its own node's.
    const fresh = new Island("b");
    fresh.observed = other;
    expect(fresh.prepare(header("a", "ab"), [put("y")], fence(1))).toEqual(refused("tc_cluster_mismatch"));
  });
});

describe("what is prepared", () => {
  it("locks each value that it names, also one that it only checks: nobody else writes it, and nobody waits", () => {
    const island = new Island("b");
    island.put("checked");
    const txn = header("a", "ab");
    island.prepare(txn, [put("x"), remove("y"), check("checked", 1)]);
    for (const name of ["x", "y", "checked"]) {
      expect(island.head.lockedBy({ value: name })).toBe(txn.id);
      expect(write(island, name)).toBe("locked");
      expect(island.prepare(header("a", "ab"), [put(name)])).toEqual(refused("txn_locked"));
      expect(island.commit(header("b", "ab"), [check(name, 0)])).toEqual(rolledBack("txn_locked"));
    }
    expect([write(island, "z"), island.head.lockedBy({ scope: "x" })]).toEqual(["event", null]);
    island.commit(txn);
    for (const name of ["x", "y", "checked"]) expect(write(island, name)).toBe("event");
  });

  it("locks each scope that it names: it is granted to nobody; to renew, resign, expire and force go on", () => {
    const island = new Island("b");
    const epoch = island.grant("s");
    const txn = header("a", "ab");
    island.prepare(txn, [release("s", epoch), acquire("t")]);
    expect([claim(island, "s"), claim(island, "t"), claim(island, "u")]).toEqual(["held", "locked", "event"]);
    expect(island.head.heldEpoch("s")).toBe(epoch);
    const at = { position: island.log.length + 1, locks: island.head };
    expect(decideScope(island.head.scopes, { kind: "force", scope: "s", atMs: 1 }, at).kind).toBe("event");
    island.write([{ kind: "expired", scope: "s", epoch, atMs: 1 }]);
    expect(claim(island, "s")).toBe("locked");
    const before = island.fold.scopes.get("s");
    expect(island.commit(txn)).toEqual(phase("committed"));
    // It is released by what ended it first; the commit has nothing to release.
    expect([island.fold.scopes.get("s"), island.fold.counts.unfit]).toEqual([before, 0]);
    expect([claim(island, "s"), claim(island, "t")]).toEqual(["event", "held"]);
  });

  it("of a scope is released and acquired at the place of the commit, not before", () => {
    const island = new Island("b");
    const epoch = island.grant("s");
    const txn = header("a", "ab");
    island.prepare(txn, [release("s", epoch), acquire("t", "session")]);
    expect([island.fold.scopes.get("s")!.hold?.epoch, island.fold.scopes.get("t")]).toEqual([epoch, undefined]);
    island.commit(txn);
    const position = island.log.length;
    expect(island.fold.scopes.get("s")!.hold).toBeNull();
    expect(island.fold.scopes.get("t")!.hold).toMatchObject({ epoch: position, session: "session", ttlMs: 1_000 });
    expect(island.fold.txns.get(txn.id)!.results[1]!.epoch).toBe(position);
  });

  it("is refused where a version, an epoch or a hold is not as it says, and nothing is written", () => {
    const island = new Island("b");
    island.put("x");
    const epoch = island.grant("s");
    const cases: readonly (readonly [string, TxnOperation])[] = [
      ["VERSION_CONFLICT", put("x", "2", 0)],
      ["VERSION_CONFLICT", check("x", 2)],
      ["STALE_EPOCH", release("s", epoch - 1)],
      ["STALE_EPOCH", release("none", 1)],
      ["txn_locked", acquire("s")],
    ];
    for (const [code, operation] of cases)
      expect(island.prepare(header("a", "ab"), [put("y"), operation])).toEqual(refused(code));
    expect(island.prepare(header("a", "ab"), null)).toEqual(refused("txn_not_found"));
    expect([island.log.length, island.fold.txns.size]).toEqual([2, 0]);
  });

  it("keeps room for values, by number and bytes: a commit fits into a store that others have filled", () => {
    const island = new Island("b");
    for (let at = 0; at < VALUES_MAX - 2; at++)
      island.fold.values.evolve({ kind: "value-put", name: `n${at}`, data: Uint8Array.of(1), fence: null, atMs: 1 }, 1);
    const txn = header("a", "ab");
    expect(island.prepare(txn, [put("x"), remove("n0"), put("y"), put("n1", "22")])).toEqual(phase("prepared"));
    expect(island.head.reserved).toEqual({ values: 1, bytes: "x1".length + "y1".length - "n0.".length + 1, scopes: 0 });
    expect([write(island, "z"), write(island, "w"), write(island, "n5")]).toEqual(["event", "full", "event"]);
    expect(island.prepare(header("a", "ab"), [put("w")])).toEqual(refused("QUOTA_EXCEEDED"));
    expect(island.commit(header("b", "ab"), [put("w")])).toEqual(rolledBack("QUOTA_EXCEEDED"));
    expect(island.commit(header("b", "ab"), [put("w"), remove("n2")])).toEqual(phase("committed"));
    expect(island.commit(txn)).toEqual(phase("committed"));
    expect([island.fold.values.size, island.head.reserved.values]).toEqual([VALUES_MAX, 0]);
  });

  it("keeps room for scopes: what it releases may end before, and its place be taken", () => {
    const island = new Island("b", new StateFold(2));
    const epoch = island.grant("s");
    expect(island.prepare(header("a", "ab"), [acquire("a"), acquire("b"), release("s", epoch)])).toEqual(
      refused("QUOTA_EXCEEDED"),
    );
    const txn = header("a", "ab");
    expect(island.prepare(txn, [acquire("t")])).toEqual(phase("prepared"));
    expect([claim(island, "u"), island.head.reserved.scopes]).toEqual(["full", 1]);
    island.write([{ kind: "resigned", scope: "s", epoch, atMs: 1 }]);
    expect([claim(island, "u"), claim(island, "v")]).toEqual(["event", "full"]);
    expect(island.commit(txn)).toEqual(phase("committed"));
    expect([island.fold.scopes.held, island.fold.counts.unfit]).toEqual([2, 0]);
  });

  it("at home, what is released makes room for what is acquired in the same record, in whatever order they are named", () => {
    const home = new Island("a", new StateFold(2));
    const [s, t] = [home.grant("s"), home.grant("t")];
    expect(home.commit(header("a", "a"), [acquire("u"), release("s", s), acquire("v"), release("t", t)])).toEqual(
      phase("committed"),
    );
    expect([home.fold.scopes.held, home.fold.scopes.size, home.fold.counts.unfit]).toEqual([2, 2, 0]);
    const [u] = ["u"].map((scope) => home.fold.scopes.get(scope)!.epoch);
    expect(home.commit(header("a", "a"), [acquire("w"), acquire("x"), release("u", u!)])).toEqual(
      rolledBack("QUOTA_EXCEEDED"),
    );
  });

  it("is free again when it is rolled back, with nothing of it left", () => {
    const island = new Island("b");
    const txn = header("a", "ab");
    island.prepare(txn, [put("x"), acquire("t"), job()]);
    island.write(decideOutcome(island.head, txn.id, { phase: "rolled-back", reason: REASON }, island.context));
    expect([island.text("x"), island.fold.scopes.get("t"), island.fold.txns.undeliveredJobs]).toEqual([
      null,
      undefined,
      0,
    ]);
    expect([write(island, "x"), claim(island, "t")]).toEqual(["event", "event"]);
    expect(island.fold.txns.reserved).toEqual({ values: 0, bytes: 0, scopes: 0 });
    expect(island.prepare(txn, [put("x")])).toEqual(phase("rolled-back", REASON));
  });

  it("is locked while its record is under way, by whoever is prepared last, and free where that is given up", () => {
    const island = new Island("b");
    const [one, two] = [header("a", "ab"), header("a", "ab")];
    const call = (request: Parameters<typeof decideTxn>[1]): void => {
      const decision = decideTxn(island.head, request, island.context);
      if (decision.kind === "record") island.append(decision.changes);
    };
    call({ kind: "prepare", header: one, operations: [put("x")], fence: fence() });
    expect(island.head.lockedBy({ value: "x" })).toBe(one.id);
    call({ kind: "commit", header: one, operations: null, require: [], fence: fence() });
    expect(island.head.lockedBy({ value: "x" })).toBeNull();
    call({ kind: "prepare", header: two, operations: [put("x", "2")], fence: fence() });
    for (let applied = 0; applied <= 3; applied++) {
      expect(island.head.lockedBy({ value: "x" })).toBe(two.id);
      island.applyNext();
    }
    const three = header("a", "ab");
    call({ kind: "prepare", header: three, operations: [put("y")], fence: fence() });
    expect(island.head.lockedBy({ value: "y" })).toBe(three.id);
    island.giveUp();
    expect([island.head.lockedBy({ value: "y" }), island.head.txns.prepared]).toEqual([null, 1]);
  });
});

describe("jobs", () => {
  it("nobody can do are refused when it is prepared; ids are drawn at the commit, and they wait in the outbox in the order of places", () => {
    const island = new Island("b");
    island.problemOf = ({ kind }) => (kind === "nobody" ? "nobody can do it" : null);
    expect(island.prepare(header("a", "ab"), [job({ kind: "nobody" })])).toEqual(refused("BAD_REQUEST"));
    const [one, two] = [header("a", "ab"), header("a", "ab")];
    island.prepare(one, [put("x"), job(), job({ kind: "other" })]);
    island.prepare(two, [job()]);
    // The later one is committed first.
    const second = island.commit(two);
    expect(second).toMatchObject({ results: [{ jobId: "job-1", version: null, epoch: null }] });
    expect(island.commit(one)).toMatchObject({ results: [{ jobId: null }, { jobId: "job-2" }, { jobId: "job-3" }] });
    // Who asks again gets the same ids.
    expect(island.commit(two)).toEqual(second);
    const waiting = [...island.fold.txns.undelivered()];
    expect(waiting.map(({ header: of }) => of.id)).toEqual([two.id, one.id]);
    expect(waiting.flatMap(({ outbox }) => outbox.map(({ operation, jobId }) => [operation, jobId]))).toEqual([
      [0, "job-1"],
      [1, "job-2"],
      [2, "job-3"],
    ]);
    const restored = new StateFold();
    restored.restore(island.snapshot);
    expect([...restored.txns.undelivered()]).toEqual(waiting);
    island.write(decideDelivered(island.head, two.id, island.context));
    expect([[...island.fold.txns.undelivered()].length, island.fold.txns.undeliveredJobs]).toEqual([1, 2]);
    expect(decideDelivered(island.head, two.id, island.context)).toEqual([]);
  });

  it("are kept until they are delivered: before that, nothing is reported as done, nor forgotten", () => {
    const [home, other] = [new Island("a"), new Island("b")];
    const [own, txn] = [header("a", "a"), header("a", "ab")];
    home.commit(own, [job()]);
    expect(home.fold.txns.get(own.id)!.isSettled).toBe(false);
    home.nowMs += 9 * DAY_MS;
    home.write(decideDelivered(home.head, own.id, home.context));
    expect(home.fold.txns.get(own.id)!.isSettled).toBe(true);
    other.prepare(txn, [job()]);
    other.commit(txn);
    expect(decideSettledKnown(other.head, [txn.id], other.context)).toEqual([]);
    other.write(decideDelivered(other.head, txn.id, other.context));
    expect(other.fold.txns.get(txn.id)!.isSettled).toBe(false);
    other.write(decideSettledKnown(other.head, [txn.id], other.context));
    expect(other.fold.txns.get(txn.id)!.isSettled).toBe(true);
  });
});

describe("what is staged", () => {
  it("promises nothing: it locks nothing, and is dropped when it has expired", () => {
    const island = new Island("b");
    const txn = header("a", "ab");
    island.stage(txn, [put("x")], 1_000);
    expect([write(island, "x"), island.fold.txns.staged]).toEqual(["event", 1]);
    island.nowMs += 999;
    expect(decideDropped(island.head, [txn.id, "unknown"], island.context)).toEqual([]);
    island.nowMs += 1;
    island.write(decideDropped(island.head, [txn.id, txn.id], island.context));
    expect([island.fold.txns.size, island.fold.txns.bytes]).toEqual([0, 0]);
    expect(island.prepare(txn, null)).toEqual(refused("txn_not_found"));
  });

  it("at home is decided with, where the coordinator sends no operations", () => {
    const home = new Island("a");
    const txn = header("a", "ab");
    home.stage(txn, [put("x")]);
    expect(home.commit(txn)).toEqual(phase("committed"));
    expect(home.text("x")).toBe("1");
  });
});

describe("a record", () => {
  it("stages, prepares or decides one transaction: two of them are none, nor is one that is changed twice", () => {
    const island = new Island("b");
    const decided = (txn: TxnHeader): TxnChange => {
      const rest = { results: [], outbox: [], reason: REASON, fence: null, atMs: NOW_MS };
      return { kind: "txn-decided", header: txn, outcome: "rolled-back", ...rest };
    };
    const [one, two] = [header("b", "b"), header("b", "b")];
    const twins: readonly (readonly TxnChange[])[] = [
      [decided(one), decided(two)],
      [decided(one), { kind: "txn-settled", id: one.id, by: null, atMs: NOW_MS }],
      [
        { kind: "txn-fence", fence: fence(1), atMs: 1 },
        { kind: "txn-fence", fence: fence(2), atMs: 1 },
      ],
    ];
    for (const [at, changes] of twins.entries())
      island.fold.apply({ position: at + 1, epoch: 1, data: encodeRecord(changes) });
    expect([island.fold.counts.unfit, island.fold.txns.isEmpty]).toEqual([3, true]);
  });

  it("that grants more scopes than there is room for is none, though each would fit alone", () => {
    const fold = new StateFold(2);
    const grant = (scope: string): TxnChange => {
      return { kind: "granted", scope, session: "a", identity: "i", metadata: {}, ttlMs: 1_000, atMs: 5 };
    };
    const records = [["s"], ["t", "u"], ["t"]].map((scopes) => scopes.map(grant));
    for (const [at, record] of records.entries())
      fold.apply({ position: at + 1, epoch: 1, data: encodeRecord(record) });
    expect([fold.counts.unfit, fold.scopes.held, fold.scopes.get("u")]).toEqual([1, 2, undefined]);
  });
});

describe("a new leader of the coordinators", () => {
  it("hears by pages of what is prepared, and of commits of home that are not done everywhere", () => {
    const island = new Island("a");
    const headers = Array.from({ length: 5 }, (_, at) => header(at % 2 === 0 ? "a" : "b", "abc"));
    for (const [at, txn] of headers.entries()) {
      if (at % 2 === 0) island.commit(txn, [put(`n${at}`)]);
      else island.prepare(txn, [put(`n${at}`)]);
    }
    island.settled(hashOf("b"), headers[0]!.id);
    for (const from of ["b", "c"]) island.settled(hashOf(from), headers[2]!.id);
    const elsewhere = header("b", "abc");
    island.prepare(elsewhere, [put("z")]);
    island.commit(elsewhere);
    island.stage(header("b", "abc"), [put("w")]);
    const open = [headers[0]!, headers[1]!, headers[3]!, headers[4]!].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const pages: unknown[] = [];
    for (let after: string | null = null; ;) {
      const page = island.fold.txns.openOf(island.self, after, 3);
      pages.push(...page.open);
      after = page.next;
      if (after === null) break;
    }
    expect(pages).toMatchObject(open.map(({ id }) => ({ header: { id } })));
    const waits = [hashOf("c")];
    expect(pages).toContainEqual({ header: headers[0], phase: "committed", waitsFor: waits });
    expect(pages).toContainEqual({ header: headers[1], phase: "prepared", waitsFor: [] });
  });
});

describe("an island that was restored or recovered", () => {
  function renewed(island: Island): Island {
    const line = { generation: 0, place: 7, position: island.log.length, session: "nobody" };
    const fold = new StateFold();
    fold.restore(withNewLine(island.snapshot, line));
    // Another cluster id: another island.
    return new Island("c", fold, island.log.length);
  }

  it("keeps what was prepared, with its locks, until an operator ends it, either way", () => {
    for (const outcome of ["committed", "rolled-back"] as const) {
      const island = new Island("b");
      const epoch = island.grant("s");
      const txn = header("a", "ab");
      island.prepare(txn, [put("x"), release("s", epoch), acquire("t")]);
      const after = renewed(island);
      expect(after.head.lockedBy({ value: "x" })).toBe(txn.id);
      expect([write(after, "x"), claim(after, "t")]).toEqual(["locked", "locked"]);
      expect(after.commit(txn)).toEqual(refused("txn_backend_mismatch"));
      after.write(decideForce(after.head, txn.id, outcome, after.context));
      const state = after.fold.txns.get(txn.id)!;
      expect(state).toMatchObject({
        phase: outcome,
        reason: { message: expect.stringContaining("operator") as string },
      });
      expect(after.text("x")).toBe(outcome === "committed" ? "1" : null);
      // Whether that epoch is in force nobody knows: its lease ends by itself.
      expect(after.fold.scopes.get("s")!.hold?.epoch).toBe(epoch);
      expect([after.fold.counts.unfit, write(after, "x")]).toEqual([0, "event"]);
      const opposite = outcome === "committed" ? "rolled-back" : "committed";
      expect(decideForce(after.head, txn.id, opposite, after.context)).toEqual([]);
      if (outcome === "rolled-back") continue;
      // Nor will anybody ever answer its report.
      after.write(decideForce(after.head, txn.id, "committed", after.context));
      expect(after.fold.txns.get(txn.id)!.isSettled).toBe(true);
    }
  });

  it("at home an operator ends the wait for islands that are gone for good, and changes no outcome", () => {
    const home = new Island("a");
    const txn = header("a", "abc");
    home.commit(txn, [put("x")]);
    expect(decideForce(home.head, txn.id, "rolled-back", home.context)).toEqual([]);
    expect(decideSettledKnown(home.head, [txn.id], home.context)).toEqual([]);
    expect(home.fold.txns.unsettled).toBe(1);
    home.write(decideForce(home.head, txn.id, "committed", home.context));
    expect(home.fold.txns.get(txn.id)).toMatchObject({ phase: "committed", isSettled: true });
    expect([home.fold.txns.unsettled, home.fold.counts.unfit]).toEqual([0, 0]);
    expect(decideForce(home.head, txn.id, "committed", home.context)).toEqual([]);
    // Until it is forgotten, one that comes back hears what was decided.
    expect(home.inquire(txn)).toEqual(phase("committed"));
  });

  it("has the bytes of older releases where there were no transactions", () => {
    const island = new Island("b");
    island.grant("s");
    const line = { generation: 0, place: 7, position: 1, session: "nobody" };
    expect(island.snapshot).toEqual(island.fold.scopes.snapshot());
    island.put("x");
    expect([...island.snapshot.subarray(0, 2)]).toEqual([0x54, 3]);
    expect([...withNewLine(island.snapshot, line).subarray(0, 2)]).toEqual([0x54, 3]);
    island.prepare(header("a", "ab"), [put("y")]);
    expect([...island.snapshot.subarray(0, 2)]).toEqual([0x54, 4]);
  });
});
