// One island's part in transactions: what it answers when, and on what an answer rests. The numbers of holes are those of the system that this was
// specified after (docs/decisions/0066-quorum-leases.md).

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { TxnAnswer } from "../../core/txn/index.ts";
import { drain, watch } from "../scopes/test-scopes.ts";
import {
  acquiring,
  FENCE,
  putting,
  releasing,
  submitting,
  TestIslands,
  TestTxn,
} from "../../sim/controller/test-txn-islands.ts";

async function two(nodes: readonly number[] = [1, 1]) {
  const islands = await new TestIslands("participant", nodes).start();
  const [home, other] = islands.all as [(typeof islands.all)[0], (typeof islands.all)[0]];
  return { islands, home, other };
}

const phase = (answer: TxnAnswer | null): string | null =>
  answer?.kind === "txn" ? answer.phase : answer?.kind === "refused" ? answer.code : (answer?.kind ?? null);

describe("a transaction", () => {
  it("is committed at home in one record, and then at the other islands: everywhere", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2"), submitting("mail")]],
    ]);
    expect(phase(await other.answer(txn.prepare(other)))).toBe("prepared");
    expect([home.value("a"), other.value("b")]).toEqual([null, null]);
    expect(phase(await home.answer(txn.commit(home)))).toBe("committed");
    expect([home.value("a"), other.value("b")]).toEqual(["1", null]);
    const answer = await other.answer(txn.commit(other));
    expect(phase(answer)).toBe("committed");
    expect(other.value("b")).toBe("2");
    await islands.clock.advance(1_000);
    expect(other.jobs.marks).toEqual([`txn:${txn.id}:1`]);
    expect(other.jobs.jobs[0]).toMatchObject({ by: "client", id: answer?.kind === "txn" && answer.results[1]?.jobId });
    // And nobody needs it any more.
    expect([home.get(txn.id)?.isSettled, other.get(txn.id)?.isSettled]).toEqual([true, true]);
    expect([home.get(txn.id)?.waitsFor, other.get(txn.id)?.undelivered]).toEqual([[], 0]);
  });

  it("of one island alone is one append", async () => {
    const { islands, home } = await two();
    const before = home.leader.log.head().position;
    const txn = new TestTxn(islands, [[home, [putting("a", "1"), putting("b", "1")]]]);
    expect(phase(await home.answer(txn.commit(home)))).toBe("committed");
    await islands.clock.advance(10_000);
    expect([home.leader.log.head().position - before, home.get(txn.id)?.isSettled]).toEqual([1, true]);
  });

  it("is answered when it is committed in the log, and shown by every node of its island", async () => {
    const { islands, home, other } = await two([1, 2]);
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [putting("b", "2")]],
    ]);
    other.leader.log.isHolding = true;
    const preparing = watch(other.leader.state.transactions.answer(txn.prepare(other)));
    await drain();
    expect([preparing.state, other.phase(txn.id)]).toEqual(["pending", null]);
    other.leader.log.release();
    await drain();
    expect(preparing.value).toMatchObject({ phase: "prepared" });
    for (const { state } of other.nodes)
      expect(state.transactions.get(txn.id)).toMatchObject({ phase: "prepared", locks: ["value b"], isInDoubt: true });
    expect(other.nodes[1]!.state.transactions.list({ inDoubt: true, after: null, limit: 9 })).toMatchObject({
      transactions: [{ header: { id: txn.id } }],
      next: null,
    });
  });

  it("that is refused says so only after what that rests on is committed", async () => {
    const { islands, home, other } = await two();
    const [first, second] = [1, 2].map(
      () =>
        new TestTxn(islands, [
          [home, []],
          [other, [putting("b", "2")]],
        ]),
    ) as [TestTxn, TestTxn];
    other.leader.log.isHolding = true;
    const preparing = watch(other.answer(first.prepare(other)));
    const refused = watch(other.answer(second.prepare(other)));
    await drain();
    expect([preparing.state, refused.state]).toEqual(["pending", "pending"]);
    // The first one is given up: so is what the refusal of the second one rests on.
    other.leader.log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits to be committed"));
    await drain();
    expect([preparing.value, refused.value]).toMatchObject([null, { phase: "prepared" }]);
    expect([other.phase(first.id), other.phase(second.id)]).toEqual([null, "prepared"]);
  });

  it("of a node that was deposed without knowing it is neither unknown nor rolled back: nothing is said", async () => {
    const { islands, home, other } = await two([2, 1]);
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await home.answer(txn.rollback());
    const deposed = home.leader;
    deposed.consensus.holdReads = true;
    // What it would say rests on its head alone, which nobody confirms.
    const asked = watch(deposed.state.transactions.answer(txn.inquire()));
    await drain();
    expect(asked.state).toBe("pending");
    await home.elect(1, true);
    // And what it would write is refused.
    const second = new TestTxn(islands, [[home, [putting("c", "1")]]]);
    const writing = watch(deposed.state.transactions.answer(second.commit(home)));
    await drain();
    deposed.consensus.answerReads(null);
    await drain();
    expect([asked.code, writing.code]).toEqual(["NOT_LEADER", "NOT_LEADER"]);
    expect(home.value("c")).toBeNull();
  });
});

describe("a leader that is deposed between append and answer", () => {
  it("says that it does not know; its successor has what was written, and answers the same request alike", async () => {
    const { islands, home, other } = await two([2, 2]);
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    for (const [island, request] of [
      [other, txn.prepare(other)],
      [home, txn.commit(home)],
      [other, txn.commit(other)],
    ] as const) {
      const { leader } = island;
      leader.log.isHolding = true;
      leader.log.isDeaf = true;
      const answer = watch(leader.state.transactions.answer(request));
      await drain();
      leader.log.release();
      await drain();
      expect(answer.code).toBe("OUTCOME_UNKNOWN");
      const position = leader.log.head().position;
      await island.elect(island.nodes.indexOf(leader) === 0 ? 1 : 0);
      const expected = request.kind === "prepare" ? "prepared" : "committed";
      expect(phase(await island.answer(request))).toBe(expected);
      expect(island.leader.log.head().position).toBe(position);
      leader.log.isDeaf = false;
    }
    expect([home.value("a"), other.value("b")]).toEqual(["1", "2"]);
  });

  it("or before anything was written: then the successor decides, and it may be otherwise", async () => {
    const { islands, home, other } = await two([2, 1]);
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await other.answer(txn.prepare(other));
    const { leader } = home;
    leader.log.isHolding = true;
    const committing = watch(leader.state.transactions.answer(txn.commit(home)));
    await drain();
    await home.elect(1);
    expect(phase(await home.answer(txn.rollback()))).toBe("rolled-back");
    leader.log.release();
    await drain();
    expect(committing.code).toBe("NOT_LEADER");
    expect([home.value("a"), home.phase(txn.id)]).toEqual([null, "rolled-back"]);
  });
});

describe("holes and sentences of the design, at one island", () => {
  it("hole 4: terms are compared with what the island's log says, so a stale one is refused by the next leader too", async () => {
    const { islands, home, other } = await two([1, 2]);
    const newer = { ...FENCE, term: 7 };
    const [first, late] = [1, 2].map(
      () =>
        new TestTxn(islands, [
          [home, []],
          [other, [putting("b", "2")]],
        ]),
    ) as [TestTxn, TestTxn];
    expect(phase(await other.answer({ kind: "recover", fence: newer, after: null }))).toBe("recovered");
    expect(phase(await other.answer(first.prepare(other, { ...FENCE, term: 6 })))).toBe("tc_term_stale");
    await other.elect(1);
    expect(phase(await other.answer(first.prepare(other, { ...FENCE, term: 6 })))).toBe("tc_term_stale");
    expect(phase(await other.answer(first.prepare(other, newer)))).toBe("prepared");
    expect(other.leader.state.transactions.stats().staleTerms).toBe(1);
    // A higher one is accepted, and is the island's from then on, also where nothing else was to be written.
    expect(phase(await other.answer(first.prepare(other, { ...newer, term: 9 })))).toBe("prepared");
    await other.elect(0);
    expect(phase(await other.answer(late.prepare(other, { ...newer, term: 8 })))).toBe("tc_term_stale");
    expect(phase(await other.answer(late.commit(other, [], { ...newer, term: 8 })))).toBe("tc_term_stale");
  });

  it("hole 4: a term below the one that this node observes is stale, whatever the log says", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [putting("b", "2")]],
    ]);
    other.observed = { ...FENCE, term: 3 };
    expect(phase(await other.answer(txn.prepare(other, { ...FENCE, term: 2 })))).toBe("tc_term_stale");
    expect(phase(await other.answer(txn.prepare(other, { ...FENCE, term: 3 })))).toBe("prepared");
  });

  it("hole 9: an island that has prepared ends it by itself never, however long home is away: locks and room stay", async () => {
    const { islands, home, other } = await two([1, 2]);
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await other.answer(txn.prepare(other));
    await home.answer(txn.commit(home));
    islands.away.add(home.hash);
    await islands.clock.advance(3_600_000);
    await other.elect(1);
    await islands.clock.advance(24 * 3_600_000);
    expect(other.phase(txn.id)).toBe("prepared");
    await expect(other.put("b", "3")).rejects.toMatchObject({ code: "txn_locked" });
    expect(other.leader.state.transactions.stats()).toMatchObject({ prepared: 1, inDoubt: 1 });
    expect(other.leader.state.transactions.stats().oldestInDoubtMs).toBeGreaterThan(23 * 3_600_000);
    // Home comes back, and says what it has decided.
    islands.away.clear();
    await islands.clock.advance(10_000);
    expect([other.phase(txn.id), other.value("b")]).toEqual(["committed", "2"]);
  });

  it("hole 9: what conflicts is refused, and never counted as applied", async () => {
    const { islands, home, other } = await two();
    await other.put("b", "0");
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2", 999)]],
    ]);
    expect(phase(await other.answer(txn.prepare(other)))).toBe("VERSION_CONFLICT");
    // A commit of what was never prepared is no success either.
    expect(phase(await other.answer(txn.commit(other)))).toBe("txn_not_found");
    expect(other.value("b")).toBe("0");
  });

  it("hole 10: the decision is home's record: the next coordinator, and the next leader of home, find it and can't make the opposite", async () => {
    const { islands, home, other } = await two([2, 1]);
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await other.answer(txn.prepare(other));
    await home.answer(txn.commit(home));
    await home.elect(1);
    const later = { ...FENCE, term: 2 };
    expect(phase(await home.answer(txn.rollback(undefined, later)))).toBe("committed");
    expect(phase(await home.answer(txn.inquire()))).toBe("committed");
    const recovered = await home.answer({ kind: "recover", fence: later, after: null });
    expect(recovered).toMatchObject({ open: [{ header: { id: txn.id }, phase: "committed", waitsFor: [other.hash] }] });
    // And the other way around.
    const second = new TestTxn(islands, [
      [home, [putting("a", "2")]],
      [other, []],
    ]);
    await home.answer(second.rollback(undefined, later));
    await home.elect(0);
    expect(phase(await home.answer(second.commit(home, [], { ...FENCE, term: 3 })))).toBe("rolled-back");
    expect(home.value("a")).toBe("1");
  });

  it("†home is in each record: a message with another home is refused, and so is one with another body or other participants", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await other.answer(txn.prepare(other));
    const same = { id: txn.id };
    const parts = [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ] as const;
    for (const wrong of [
      new TestTxn(islands, parts, { ...same, digest: "1".repeat(64) }),
      new TestTxn(islands, [parts[1]], { ...same, home }),
    ]) {
      expect(phase(await other.answer(wrong.prepare(other)))).toBe("txn_conflict");
      expect(phase(await other.answer(wrong.commit(other)))).toBe("txn_conflict");
    }
    const third = { ...txn.header, home: "9".repeat(64) };
    expect(phase(await other.answer({ ...txn.prepare(other), header: third }))).toBe("txn_conflict");
    expect(other.phase(txn.id)).toBe("prepared");
  });

  it("†an id that is older than twelve hours is refused where it is unknown, and home writes that down", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await islands.clock.advance(12 * 3_600_000 + 1_000);
    expect(phase(await other.answer(txn.prepare(other)))).toBe("txn_expired");
    // Home writes down what it has said: by another clock the id may be fine, and the same call may come again.
    const decided = { phase: "rolled-back", reason: { code: "txn_expired" } };
    expect(await home.answer(txn.commit(home))).toMatchObject(decided);
    islands.clock.skewMs = -3_600_000;
    expect(await home.answer(txn.commit(home))).toMatchObject(decided);
    expect([home.value("a"), other.phase(txn.id)]).toEqual([null, null]);
  });

  it("†at an island that is not home `rollback` is only a hint to ask home: it is asked at once, and what it says counts", async () => {
    const { islands, home, other } = await two();
    const [kept, ended] = [1, 2].map(
      (at) =>
        new TestTxn(islands, [
          [home, [putting(`a${at}`, "1")]],
          [other, [putting(`b${at}`, "2")]],
        ]),
    ) as [TestTxn, TestTxn];
    for (const txn of [kept, ended]) await other.answer(txn.prepare(other));
    await home.answer(kept.commit(home));
    await home.answer(ended.rollback());
    for (const txn of [kept, ended]) expect(phase(await other.answer(txn.rollback()))).toBe("prepared");
    await drain();
    expect(islands.asked.filter(({ kind }) => kind === "inquire")).toHaveLength(2);
    expect([other.value("b1"), other.value("b2")]).toEqual(["2", null]);
    expect([other.phase(kept.id), other.phase(ended.id)]).toEqual(["committed", "rolled-back"]);
  });

  it("†an island keeps an outcome until home has recorded that it is done: a late commit, or inquiry, finds it", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await other.answer(txn.prepare(other));
    await home.answer(txn.commit(home));
    islands.away.add(home.hash);
    await other.answer(txn.commit(other));
    await islands.clock.advance(48 * 3_600_000);
    expect([other.get(txn.id)?.isSettled, home.get(txn.id)?.isSettled]).toEqual([false, false]);
    // Each for the other one: home for the report, and this island for home's answer to it.
    expect([home.get(txn.id)?.waitsFor, other.get(txn.id)?.waitsFor]).toEqual([[other.hash], [home.hash]]);
    islands.away.clear();
    await islands.clock.advance(10_000);
    expect([other.get(txn.id)?.isSettled, home.get(txn.id)?.isSettled]).toEqual([true, true]);
    expect(phase(await other.answer(txn.commit(other)))).toBe("committed");
  });

  it("a late prepare of what was rolled back is refused, so that nothing is locked for ever", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await home.answer(txn.rollback());
    // The hint came first: there is nothing to ask about, and the prepare is on its way still.
    expect(phase(await other.answer(txn.rollback()))).toBeNull();
    expect(phase(await other.answer(txn.prepare(other)))).toBe("prepared");
    await islands.clock.advance(10_000);
    expect(other.phase(txn.id)).toBe("rolled-back");
    expect(phase(await other.answer(txn.prepare(other)))).toBe("rolled-back");
    expect(await other.put("b", "3")).toBeGreaterThan(0);
  });
});

describe("what a prepared transaction locks", () => {
  it("is refused to plain writes of values as txn_locked, shown as pending, and free again afterwards", async () => {
    const { islands, home, other } = await two();
    await other.put("b", "0");
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [putting("b", "2"), { kind: "value-delete", name: "c", ifVersion: null }]],
    ]);
    await other.answer(txn.prepare(other));
    const { values } = other.leader.state;
    await expect(other.put("b", "1")).rejects.toMatchObject({ code: "txn_locked" });
    await expect(other.put("c", "1")).rejects.toMatchObject({ code: "txn_locked" });
    await expect(values.delete({ name: "b", ifVersion: null, fence: null })).rejects.toMatchObject({
      code: "txn_locked",
    });
    expect(values.stats.writes).toMatchObject({ committed: 1, locked: 3 });
    expect(values.get("b")).toMatchObject({ value: "0", pendingTxn: txn.id });
    expect(values.list({ prefix: "", after: null, limit: 9 }).values[0]).toMatchObject({ pendingTxn: txn.id });
    await other.put("d", "1");
    expect(values.get("d")?.pendingTxn).toBeNull();
    await home.answer(txn.commit(home));
    await other.answer(txn.commit(other));
    expect(values.get("b")).toMatchObject({ value: "2", pendingTxn: null });
    await other.put("c", "1");
  });

  it("is refused to other transactions at once: nobody waits, so nobody waits for each other", async () => {
    const { islands, home, other } = await two();
    const [first, second] = [1, 2].map(
      () =>
        new TestTxn(islands, [
          [home, []],
          [other, [putting("b", "2")]],
        ]),
    ) as [TestTxn, TestTxn];
    await other.answer(first.prepare(other));
    expect(phase(await other.answer(second.prepare(other)))).toBe("txn_locked");
    await other.answer(first.prepare(other));
    expect(other.phase(first.id)).toBe("prepared");
  });

  it("of a scope: claims wait, and go on when the transaction is committed and has released it", async () => {
    const { islands, home, other } = await two();
    const epoch = await other.leader.granted("a");
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [releasing("s", epoch)]],
    ]);
    expect(phase(await other.answer(txn.prepare(other)))).toBe("prepared");
    const claim = watch(other.leader.acquire("b", { waitMs: 60_000 }));
    // Its holder goes on: it may renew, and it may resign.
    await other.leader.service.renew("s", "a", epoch);
    await other.leader.service.resign("s", "a", epoch);
    await islands.clock.advance(1_000);
    expect([claim.state, other.leader.service.get("s")?.holder ?? null]).toEqual(["pending", null]);
    expect(await other.leader.acquire("c", { waitMs: 0 })).toMatchObject({ granted: false });
    await home.answer(txn.commit(home));
    await other.answer(txn.commit(other));
    await islands.clock.advance(0);
    expect(claim.value).toMatchObject({ granted: true });
  });

  it("of a scope that is acquired: claims wait, and go on when it is rolled back", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [acquiring("s", "mover")]],
    ]);
    await other.answer(txn.prepare(other));
    const claims = ["b", "c"].map((session) => watch(other.leader.acquire(session, { waitMs: 60_000 })));
    await drain();
    expect(claims.map(({ state }) => state)).toEqual(["pending", "pending"]);
    await home.answer(txn.rollback());
    await other.answer(txn.rollback());
    await islands.clock.advance(0);
    expect(claims.map(({ value }) => value?.granted)).toEqual([true, undefined]);
  });

  it("of a scope that is acquired, and committed: its lease starts there, and claims wait for the end of that", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [acquiring("s", "mover")]],
    ]);
    await other.answer(txn.prepare(other));
    const claim = watch(other.leader.acquire("b", { waitMs: 60_000 }));
    await islands.clock.advance(4_000);
    await home.answer(txn.commit(home));
    const answer = await other.answer(txn.commit(other));
    const epoch = answer?.kind === "txn" ? answer.results[0]!.epoch! : 0;
    expect(other.leader.service.get("s")?.holder).toMatchObject({ epoch, identity: "id-mover" });
    await islands.clock.advance(9_000);
    await other.leader.service.renew("s", "mover", epoch);
    await islands.clock.advance(9_000);
    expect(claim.state).toBe("pending");
    await islands.clock.advance(2_000);
    expect(claim.value).toMatchObject({ granted: true });
  });

  it("of a scope at home that a transaction has just released is granted to who waits", async () => {
    const { islands, home } = await two();
    const epoch = await home.leader.granted("a");
    const claim = watch(home.leader.acquire("b", { waitMs: 60_000 }));
    const txn = new TestTxn(islands, [[home, [releasing("s", epoch), putting("cursor", "7")]]]);
    expect(phase(await home.answer(txn.commit(home)))).toBe("committed");
    await islands.clock.advance(0);
    expect(claim.value).toMatchObject({ granted: true });
  });

  it("of a scope whose prepare is given up by the log: who claimed it meanwhile goes on", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [acquiring("s", "mover")]],
    ]);
    other.leader.log.isHolding = true;
    const preparing = watch(other.answer(txn.prepare(other)));
    await drain();
    const claim = watch(other.leader.acquire("b", { waitMs: 60_000 }));
    const denied = watch(other.leader.acquire("c", { waitMs: 0 }));
    await drain();
    expect([claim.state, denied.state]).toEqual(["pending", "pending"]);
    other.leader.log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits to be committed"));
    await islands.clock.advance(1_000);
    expect([preparing.value, claim.value]).toMatchObject([null, { granted: true }]);
    expect(denied.state).not.toBe("pending");
  });

  it("is required at the decision: a transaction with an epoch that is over is rolled back by home, in one record", async () => {
    const { islands, home, other } = await two();
    const epoch = await home.leader.granted("a");
    const txn = new TestTxn(islands, [
      [home, [putting("a", "1")]],
      [other, [putting("b", "2")]],
    ]);
    await other.answer(txn.prepare(other));
    await home.leader.service.resign("s", "a", epoch);
    const answer = await home.answer(txn.commit(home, [{ scope: "s", epoch }]));
    expect(answer).toMatchObject({ phase: "rolled-back", reason: { code: "STALE_EPOCH" } });
    await other.answer(txn.rollback());
    await drain();
    expect([home.value("a"), other.value("b"), other.phase(txn.id)]).toEqual([null, null, "rolled-back"]);
  });
});

describe("a cluster that takes nothing new", () => {
  it.each([
    ["CLUSTER_PAUSED", "it was restored paused"],
    ["DISK_FULL", "its disk is full"],
  ] as const)(
    "%s: makes no promise and says so, keeps those that it has made, and says what is decided",
    async (code, why) => {
      const { islands, home, other } = await two();
      const [kept, ended, fresh] = [1, 2, 3].map(
        (at) =>
          new TestTxn(islands, [
            [home, [putting(`a${at}`, "1")]],
            [other, [putting(`b${at}`, "2")]],
          ]),
      ) as [TestTxn, TestTxn, TestTxn];
      for (const txn of [kept, ended]) await other.answer(txn.prepare(other));
      await home.answer(kept.commit(home));
      const recover = { kind: "recover", fence: FENCE, after: null } as const;
      expect(await home.answer(recover)).not.toHaveProperty("refusesNew");
      other.refusal = new TenureError(code, why);
      home.refusal = other.refusal;
      // Whoever coordinates asks before anything is prepared for it.
      expect(await home.answer(recover)).toMatchObject({ kind: "recovered", refusesNew: { code, message: why } });
      expect(phase(await other.answer(fresh.prepare(other)))).toBe(code);
      expect(phase(await home.answer(fresh.commit(home)))).toBe(code);
      const staging = {
        kind: "stage",
        id: fresh.id,
        home: home.hash,
        by: "client",
        operations: [],
        expiresInMs: 1_000,
      } as const;
      expect(phase(await other.answer({ ...staging, operations: [putting("x", "1")] }))).toBe(code);
      // What was decided goes on, also the answer to who asks again, in a later term too.
      expect(phase(await home.answer(kept.commit(home)))).toBe("committed");
      expect(phase(await home.answer(kept.commit(home, [], { ...FENCE, term: 2 })))).toBe("committed");
      expect(phase(await other.answer(kept.commit(other)))).toBe("committed");
      expect(phase(await home.answer(ended.inquire()))).toBe("rolled-back");
      await islands.clock.advance(10_000);
      expect([other.phase(ended.id), other.value("b1"), other.phase(fresh.id)]).toEqual(["rolled-back", "2", null]);
      expect([kept, ended].map(({ id }) => other.get(id)?.isSettled)).toEqual([true, true]);
    },
  );

  it("goes on when it is resumed: claims for a scope that was unlocked meanwhile too", async () => {
    const { islands, home, other } = await two();
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [acquiring("s", "mover")]],
    ]);
    await other.answer(txn.prepare(other));
    const claim = watch(other.leader.acquire("b", { waitMs: 60_000 }));
    await drain();
    other.leader.isPaused = true;
    await home.answer(txn.rollback());
    await other.answer(txn.rollback());
    await islands.clock.advance(5_000);
    expect([other.phase(txn.id), claim.state]).toEqual(["rolled-back", "pending"]);
    other.leader.isPaused = false;
    other.leader.state.resumed();
    await islands.clock.advance(1_000);
    expect(claim.value).toMatchObject({ granted: true });
  });
});

describe("records of transactions", () => {
  it("are written only when every member can read them, and for nobody's sake once there is one", async () => {
    const { islands, home, other } = await two();
    const [first, second] = [1, 2].map(
      (at) =>
        new TestTxn(islands, [
          [home, []],
          [other, [putting(`b${at}`, "2")]],
        ]),
    ) as [TestTxn, TestTxn];
    other.unready = ["n2"];
    const before = other.leader.log.head().position;
    for (const request of [
      first.prepare(other),
      first.inquire(),
      { kind: "recover", fence: FENCE, after: null } as const,
    ])
      expect(phase(await other.answer(request))).not.toBe("prepared");
    await expect(other.leader.state.transactions.answer(first.prepare(other))).rejects.toMatchObject({
      code: "NOT_SUPPORTED",
    });
    expect(other.leader.log.head().position).toBe(before);
    other.unready = [];
    await other.answer(first.prepare(other));
    other.unready = ["n3"];
    expect(phase(await other.answer(second.prepare(other)))).toBe("prepared");
  });

  it("are not written by a node that does not lead: it says so", async () => {
    const { islands, home, other } = await two([1, 2]);
    const txn = new TestTxn(islands, [
      [home, []],
      [other, [putting("b", "2")]],
    ]);
    const standby = other.nodes[1]!.state.transactions;
    await expect(standby.answer(txn.prepare(other))).rejects.toMatchObject({ code: "NOT_LEADER" });
    await expect(standby.replay(txn.id, null)).rejects.toMatchObject({ code: "NOT_LEADER" });
  });
});
