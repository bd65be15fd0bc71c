// What an island's leader does about transactions of its own accord, without any leader of the coordinators.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import { seededRandom } from "../../core/kit/random.ts";
import type { TxnOperation } from "../../core/txn/index.ts";
import { watch } from "../scopes/test-scopes.ts";
import {
  FENCE,
  putting,
  submitting,
  type TestIsland,
  TestIslands,
  TestTxn,
} from "../../sim/controller/test-txn-islands.ts";
import {
  TXN_DELIVERED_BYTES,
  TXN_INQUIRIES_AT_ONCE,
  TXN_OPEN_SLICE,
  TXN_REPORT_IDS,
  TXN_REPORT_MS,
  TXN_RETRY_MS_MAX,
} from "./limits.ts";

async function two(nodes: readonly number[] = [1, 1]) {
  const islands = await new TestIslands("resolver", nodes).start();
  const [home, other] = islands.all as [TestIsland, TestIsland];
  return { islands, home, other };
}

function transfer(islands: TestIslands, home: TestIsland, other: TestIsland, name = "b", jobs: readonly string[] = []) {
  const submitted = jobs.map(submitting);
  return new TestTxn(islands, [
    [home, [putting(name, "home")]],
    [other, [putting(name, "other"), ...submitted]],
  ]);
}

function inquiries(islands: TestIslands): number[] {
  return islands.asked.flatMap(({ kind, atMs }) => (kind === "inquire" ? [atMs] : []));
}

describe("a prepared transaction", () => {
  it("of which nothing more is heard is asked about when its time is over, and what home says is done", async () => {
    const { islands, home, other } = await two();
    const [committed, unknown] = [transfer(islands, home, other, "x"), transfer(islands, home, other, "y")];
    for (const txn of [committed, unknown]) await other.answer(txn.prepare(other));
    await home.answer(committed.commit(home));
    await islands.clock.advance(4_999);
    expect([inquiries(islands), other.phase(committed.id)]).toEqual([[], "prepared"]);
    await islands.clock.advance(1);
    expect([other.phase(committed.id), other.phase(unknown.id)]).toEqual(["committed", "rolled-back"]);
    expect([other.value("x"), other.value("y")]).toEqual(["other", null]);
    // Presumed abort: home has never heard of it, and from now on it is rolled back there.
    expect([home.phase(unknown.id), home.value("y")]).toEqual(["rolled-back", null]);
    expect(await home.answer(unknown.commit(home))).toMatchObject({ phase: "rolled-back" });
  });

  it("has its whole time anew under each leader, by that one's clock", async () => {
    const { islands, home, other } = await two([1, 2]);
    const txn = transfer(islands, home, other);
    await other.answer(txn.prepare(other));
    await islands.clock.advance(4_000);
    await other.elect(1);
    await islands.clock.advance(4_000);
    expect(inquiries(islands)).toEqual([]);
    await islands.clock.advance(1_000);
    expect([inquiries(islands).length, other.phase(txn.id)]).toEqual([1, "rolled-back"]);
  });

  it("is asked about by nobody but the leader, and by a deposed one no more", async () => {
    const { islands, home, other } = await two([1, 2]);
    await other.answer(transfer(islands, home, other).prepare(other));
    islands.away.add(home.hash);
    await islands.clock.advance(60_000);
    const before = inquiries(islands).length;
    await other.elect(1);
    await islands.clock.advance(4_999);
    expect(inquiries(islands).length).toBe(before);
  });

  it("whose home does not answer is asked about again and again, later each time, and as soon as it is back", async () => {
    const { islands, home, other } = await two();
    const txn = transfer(islands, home, other);
    await other.answer(txn.prepare(other));
    await home.answer(txn.commit(home));
    islands.away.add(home.hash);
    await islands.clock.advance(600_000);
    const asked = inquiries(islands).length;
    // A question may take two seconds, and the pause after it up to five.
    expect(asked).toBeGreaterThan(600_000 / 7_000);
    expect(asked).toBeLessThan(600_000 / 2_000);
    islands.away.clear();
    await islands.clock.advance(TXN_RETRY_MS_MAX + 2_000);
    expect(other.phase(txn.id)).toBe("committed");
  });

  it("is one of many: they are asked about in turns, and all of them are", async () => {
    const { islands, home, other } = await two();
    islands.faults = { loss: 0, twice: 0, delayMs: 20 };
    const all = Array.from({ length: 300 }, (_, at) => transfer(islands, home, other, `v${at}`));
    for (const txn of all) await other.leader.state.transactions.answer(txn.prepare(other));
    await islands.clock.advance(5_000);
    expect(islands.underWayMax).toBeLessThanOrEqual(TXN_INQUIRIES_AT_ONCE);
    await islands.clock.advance(5_000);
    expect(all.filter(({ id }) => other.phase(id) !== "rolled-back")).toEqual([]);
    expect(inquiries(islands)).toHaveLength(300);
    expect(other.leader.state.transactions.stats()).toMatchObject({ prepared: 0, inDoubt: 0, oldestInDoubtMs: 0 });
  });

  it("is one of many that a new leader takes up: in slices, and all of them", async () => {
    const { islands, home, other } = await two([1, 2]);
    const all = Array.from({ length: 2 * TXN_OPEN_SLICE + 1 }, (_, at) => transfer(islands, home, other, `v${at}`));
    for (const txn of all) await other.answer(txn.prepare(other));
    islands.faults = { loss: 0, twice: 0, delayMs: 5 };
    await other.elect(1);
    await islands.clock.advance(10_000);
    const left = all.filter(({ id }) => other.phase(id) !== "rolled-back");
    expect(left).toEqual([]);
  });

  it("of a snapshot that is restored is asked about too", async () => {
    const ahead = await two();
    const txn = transfer(ahead.islands, ahead.home, ahead.other);
    await ahead.other.answer(txn.prepare(ahead.other));
    const { islands, other } = await two();
    other.leader.applied.restore(wholeOf(ahead.other.leader.applied.snapshot()));
    other.leader.log.jump();
    expect(other.phase(txn.id)).toBe("prepared");
    await islands.clock.advance(5_000);
    expect(inquiries(islands)).toHaveLength(1);
  });

  it("of before a restore is not asked about: it stays in doubt, is listed, and ends by an operator's word", async () => {
    const { islands, home, other } = await two();
    const txn = transfer(islands, home, other);
    await other.answer(txn.prepare(other));
    await home.answer(txn.commit(home));
    other.leader.consensus.depose();
    const restored = other.restoredAs("9".repeat(64));
    await restored.lead(5);
    const { transactions, values } = restored.state;
    const writing = { name: "b", value: 1, ifVersion: null, fence: null };
    await islands.clock.advance(3_600_000);
    expect([islands.asked, transactions.get(txn.id)?.phase]).toEqual([[], "prepared"]);
    await expect(values.put(writing)).rejects.toMatchObject({ code: "txn_locked" });
    expect(transactions.list({ inDoubt: true, after: null, limit: 9 }).transactions).toMatchObject([
      { header: { id: txn.id }, locks: ["value b"], isInDoubt: true },
    ]);
    expect(transactions.stats()).toMatchObject({ prepared: 1, inDoubt: 1 });
    // It is another island: who asks for the one that it was is told so.
    await expect(transactions.answer(txn.commit(other))).resolves.toMatchObject({ code: "txn_backend_mismatch" });
    expect(await transactions.replay(txn.id, null)).toBe("prepared");
    expect(await transactions.replay(txn.id, "committed")).toBe("committed");
    expect([values.get("b")?.value, islands.asked]).toEqual(["other", []]);
    await values.put(writing);
  });
});

describe("an operator", () => {
  it("asks home now; a word of force counts only where home says nothing", async () => {
    const { islands, home, other } = await two();
    const [first, second] = [transfer(islands, home, other, "x"), transfer(islands, home, other, "y")];
    const { transactions } = other.leader.state;
    expect(await transactions.replay(first.id, null)).toBeNull();
    for (const txn of [first, second]) await other.answer(txn.prepare(other));
    await home.answer(first.commit(home));
    // Home answers, and has committed it.
    expect(await transactions.replay(first.id, "rolled-back")).toBe("committed");
    islands.away.add(home.hash);
    const asking = watch(transactions.replay(second.id, null));
    await islands.clock.advance(2_000);
    expect([asking.value, other.phase(second.id)]).toEqual(["prepared", "prepared"]);
    const forcing = watch(transactions.replay(second.id, "rolled-back"));
    await islands.clock.advance(2_000);
    expect([forcing.value, other.phase(second.id), other.value("y")]).toEqual(["rolled-back", "rolled-back", null]);
    await other.put("y", "free");
  });

  it("is not heard where home is there and can't answer at this moment: it may come to the other decision", async () => {
    const { islands, home, other } = await two();
    const txn = transfer(islands, home, other, "x");
    const { transactions } = other.leader.state;
    await other.answer(txn.prepare(other));
    // Home does not know it, and can't write that down now.
    home.unready = ["an older node"];
    const forcing = watch(transactions.replay(txn.id, "committed"));
    await islands.clock.advance(100);
    expect([forcing.code, other.phase(txn.id)]).toEqual(["txn_pending", "prepared"]);
    home.unready = [];
    expect(await transactions.replay(txn.id, "committed")).toBe("rolled-back");
  });

  it("has home asked however many questions are under way: force never counts unasked", async () => {
    const { islands, home, other } = await two();
    const txns = Array.from({ length: 2 * TXN_INQUIRIES_AT_ONCE + 1 }, (_, at) =>
      transfer(islands, home, other, `v${at}`),
    );
    for (const txn of txns) await other.answer(txn.prepare(other));
    islands.faults = { loss: 0, twice: 0, delayMs: 500 };
    const { transactions } = other.leader.state;
    const last = txns.at(-1)!;
    await home.answer(last.commit(home));
    // Hints: home is asked about all the others at once.
    for (const txn of txns.slice(0, -1)) await other.answer(txn.rollback());
    const forcing = watch(transactions.replay(last.id, "rolled-back"));
    await islands.clock.advance(5_000);
    expect([forcing.value, other.phase(last.id)]).toEqual(["committed", "committed"]);
  });

  it("does not count under a leader that has not come to the transaction yet: home is asked first", async () => {
    const { islands, home, other } = await two([1, 2]);
    const txns = Array.from({ length: TXN_OPEN_SLICE + 1 }, (_, at) => transfer(islands, home, other, `v${at}`));
    for (const txn of txns) await other.answer(txn.prepare(other));
    const last = txns.toSorted((one, another) => (one.id < another.id ? -1 : 1)).at(-1)!;
    await home.answer(last.commit(home));
    await other.elect(1);
    const forcing = watch(other.leader.state.transactions.replay(last.id, "rolled-back"));
    await islands.clock.advance(5_000);
    expect([forcing.value, home.phase(last.id), other.phase(last.id)]).toEqual(["committed", "committed", "committed"]);
  });

  it("does not count where this node can ask nobody yet", async () => {
    const { islands, home, other } = await two();
    const txn = transfer(islands, home, other, "x");
    await other.answer(txn.prepare(other));
    await home.answer(txn.commit(home));
    const { transactions } = other.leader.state;
    transactions.attach({ calls: undefined });
    const forcing = watch(transactions.replay(txn.id, "rolled-back"));
    await islands.clock.advance(100);
    expect([forcing.code, other.phase(txn.id)]).toEqual(["txn_pending", "prepared"]);
  });

  it.each(["prepared", "committed"] as const)(
    "ends no report by force while home is there: of what is %s here home hears at last, over a change of leader",
    async (phase) => {
      const { islands, home, other } = await two([1, 2]);
      const txn = transfer(islands, home, other, "x");
      await other.answer(txn.prepare(other));
      await home.answer(txn.commit(home));
      if (phase === "committed") await other.answer(txn.commit(other));
      const forcing = watch(other.leader.state.transactions.replay(txn.id, "committed"));
      await islands.clock.advance(TXN_REPORT_MS / 2);
      expect([forcing.code ?? forcing.value, other.get(txn.id)?.isSettled]).toEqual([
        phase === "committed" ? "txn_pending" : "committed",
        false,
      ]);
      await other.elect(1);
      await islands.clock.advance(5_000);
      expect([other.get(txn.id)?.isSettled, home.get(txn.id)?.waitsFor]).toEqual([true, []]);
    },
  );

  it("ends by force the report to a home that is gone for good", async () => {
    const { islands, home, other } = await two();
    const txn = transfer(islands, home, other, "x");
    await other.answer(txn.prepare(other));
    await home.answer(txn.commit(home));
    await other.answer(txn.commit(other));
    islands.away.add(home.hash);
    const { transactions } = other.leader.state;
    expect(await transactions.replay(txn.id, "rolled-back")).toBe("committed");
    expect(other.get(txn.id)?.isSettled).toBe(false);
    expect(await transactions.replay(txn.id, "committed")).toBe("committed");
    expect(other.get(txn.id)?.isSettled).toBe(true);
  });

  it("forces a commit too, with its values and its jobs", async () => {
    const { islands, home, other } = await two();
    const txn = transfer(islands, home, other, "x", ["mail"]);
    await other.answer(txn.prepare(other));
    islands.away.add(home.hash);
    const forcing = watch(other.leader.state.transactions.replay(txn.id, "committed"));
    await islands.clock.advance(5_000);
    expect([forcing.value, other.value("x"), other.jobs.marks]).toEqual(["committed", "other", [`txn:${txn.id}:1`]]);
  });
});

describe("jobs of committed transactions", () => {
  async function committed(count: number, nodes: readonly number[] = [1, 2]) {
    const { islands, home, other } = await two(nodes);
    const txns = Array.from({ length: count }, (_, at) => transfer(islands, home, other, `v${at}`, ["one", "two"]));
    for (const txn of txns) await other.answer(txn.prepare(other));
    for (const txn of txns) await home.answer(txn.commit(home));
    const marks = txns.flatMap(({ id }) => [`txn:${id}:1`, `txn:${id}:2`]);
    const commit = async (): Promise<void> => {
      for (const txn of txns) await other.leader.state.transactions.answer(txn.commit(other));
    };
    return { islands, home, other, txns, marks, commit };
  }

  it("are delivered in the order of their commits, each once", async () => {
    const { islands, other, marks, txns, commit } = await committed(100);
    await commit();
    await islands.clock.advance(1_000);
    expect(other.jobs.marks).toEqual(marks);
    expect(other.leader.state.transactions.stats().undelivered).toBe(0);
    expect(txns.every(({ id }) => other.get(id)?.isSettled)).toBe(true);
  });

  it("that are large are delivered a few at a time: what waited for hours is not one turn of megabytes", async () => {
    const { islands, home, other } = await two();
    const sizes: number[] = [];
    let isOpen = false;
    const { transactions } = other.leader.state;
    transactions.attach({
      jobs: {
        deliver: (jobs) => {
          if (!isOpen) return Promise.reject(new TenureError("DISK_FULL", "no room"));
          sizes.push(jobs.reduce((sum, { spec }) => sum + JSON.stringify(spec).length, 0));
          return Promise.resolve();
        },
      },
    });
    const payload = "x".repeat(200 * 1024);
    for (let at = 0; at < 20; at++) {
      const large = submitting("mail") as Extract<TxnOperation, { kind: "job-submit" }>;
      const txn = new TestTxn(islands, [
        [home, []],
        [other, [{ ...large, spec: { ...large.spec, payload } }]],
      ]);
      await other.answer(txn.prepare(other));
      await home.answer(txn.commit(home));
      await other.answer(txn.commit(other));
    }
    isOpen = true;
    await islands.clock.advance(20_000);
    expect(transactions.stats().undelivered).toBe(0);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(TXN_DELIVERED_BYTES);
  });

  it("are delivered once, whatever becomes of the answers, and nothing is reported to home before they are there", async () => {
    const { islands, home, other, marks, txns, commit } = await committed(5);
    other.jobs.failing.push("after", "before", "after", "before", "before");
    await commit();
    await islands.clock.advance(200);
    expect(islands.asked.filter(({ kind }) => kind === "settled")).toEqual([]);
    expect(txns.every(({ id }) => home.get(id)?.isSettled === false)).toBe(true);
    await islands.clock.advance(60_000);
    expect(other.jobs.marks).toEqual(marks);
    expect(txns.every(({ id }) => home.get(id)?.isSettled)).toBe(true);
  });

  it("†of a deposed leader are refused, and its successor delivers them: each is there once", async () => {
    const { islands, other, marks, txns, commit } = await committed(5);
    other.jobs.failing.push("after", "before");
    await commit();
    await other.elect(1);
    await islands.clock.advance(10_000);
    await other.elect(0);
    await islands.clock.advance(10_000);
    expect(other.jobs.marks).toEqual(marks);
    expect(txns.every(({ id }) => other.get(id)?.isSettled)).toBe(true);
  });

  it("at home too, of which nobody else has to know", async () => {
    const { islands, home } = await two();
    const txn = new TestTxn(islands, [[home, [submitting("mail")]]]);
    expect(await home.answer(txn.commit(home))).toMatchObject({ phase: "committed", results: [{ jobId: "job-a-1" }] });
    await islands.clock.advance(1_000);
    expect([home.jobs.jobs.map(({ id }) => id), home.get(txn.id)?.isSettled]).toEqual([["job-a-1"], true]);
    expect(islands.asked).toEqual([]);
  });

  it("wait until the jobs' log is there", async () => {
    const { islands, home } = await two();
    const { transactions } = home.leader.state;
    transactions.attach({ jobs: { deliver: () => Promise.reject(new Error("not yet")) } });
    await home.answer(new TestTxn(islands, [[home, [submitting("mail")]]]).commit(home));
    await islands.clock.advance(60_000);
    expect(home.jobs.marks).toEqual([]);
    transactions.attach({ jobs: home.jobs.deliveryOf(() => true) });
    await islands.clock.advance(TXN_RETRY_MS_MAX);
    expect(home.jobs.marks).toHaveLength(1);
  });
});

describe("what is done", () => {
  it("is reported to home in batches, and recorded at both", async () => {
    const { islands, home, other } = await two();
    const txns = Array.from({ length: TXN_REPORT_IDS + 10 }, (_, at) => transfer(islands, home, other, `v${at}`));
    for (const txn of txns) await other.answer(txn.prepare(other));
    for (const txn of txns) await home.answer(txn.commit(home));
    for (const txn of txns) await other.answer(txn.commit(other));
    await islands.clock.advance(1_000);
    expect(islands.asked.filter(({ kind }) => kind === "settled")).toHaveLength(2);
    for (const island of [home, other]) expect(txns.every(({ id }) => island.get(id)?.isSettled)).toBe(true);
    await islands.clock.advance(60_000);
    expect(islands.asked).toHaveLength(2);
  });

  it("is reported by the next leader where the last one has not, and taken as often as it is", async () => {
    const { islands, home, other } = await two([2, 2]);
    const txn = transfer(islands, home, other);
    await other.answer(txn.prepare(other));
    await home.answer(txn.commit(home));
    await other.answer(txn.commit(other));
    await other.elect(1);
    await home.elect(1);
    await islands.clock.advance(1_000);
    expect([home.get(txn.id)?.isSettled, other.get(txn.id)?.isSettled]).toEqual([true, true]);
    const again = { kind: "settled", from: other.hash, ids: [txn.id] } as const;
    expect(await home.answer(again)).toMatchObject({ kind: "settled", ids: [txn.id] });
  });
});

describe("what is staged", () => {
  const stage = (txn: TestTxn, island: TestIsland, expiresInMs: number) =>
    ({
      kind: "stage",
      id: txn.id,
      home: txn.header.home,
      by: "client",
      operations: txn.prepare(island).operations!,
      expiresInMs,
    }) as const;

  it("is dropped when it expires, and what is prepared from it is not", async () => {
    const { islands, home, other } = await two();
    const [dropped, kept] = [transfer(islands, home, other, "x"), transfer(islands, home, other, "y")];
    for (const txn of [dropped, kept])
      expect(await other.answer(stage(txn, other, 1_000))).toMatchObject({ phase: "staged" });
    expect(await other.answer({ ...kept.prepare(other), operations: null })).toMatchObject({ phase: "prepared" });
    await islands.clock.advance(900);
    expect(other.phase(dropped.id)).toBe("staged");
    await islands.clock.advance(200);
    expect([other.phase(dropped.id), other.phase(kept.id)]).toEqual([null, "prepared"]);
    expect(await other.answer({ ...dropped.prepare(other), operations: null })).toMatchObject({ kind: "refused" });
  });

  it("is dropped by the next leader within its bound, however wrong the clock of the last one was", async () => {
    const { islands, home, other } = await two([1, 2]);
    const txn = transfer(islands, home, other);
    islands.clock.skewMs = 4 * 60_000;
    await other.answer(stage(txn, other, 60_000));
    islands.clock.skewMs = -3_600_000;
    await other.elect(1);
    await islands.clock.advance(60_100);
    expect(other.phase(txn.id)).toBeNull();
  });
});

describe("islands on a bad network, whose leaders change, and coordinators that die at any moment", () => {
  const outcomes: Record<string, number> = {};

  it.each(Array.from({ length: 20 }, (_, seed) => seed))(
    "seed %i: all do the same, and nothing is locked at the end",
    async (seed) => {
      const islands = await new TestIslands(`bad network ${seed}`, [2, 2, 1]).start();
      islands.faults = { loss: 0.2, twice: 0.2, delayMs: 40 };
      const { clock, all } = islands;
      const random = seededRandom(`deeds ${seed}`);
      const txns: TestTxn[] = [];
      const told = new Map<string, string>();
      const running: Promise<void>[] = [];
      for (let at = 0; at < 40; at++) {
        const home = random.pick(all);
        const parts = all
          .filter((one) => one === home || random.chance(0.7))
          .map((one) => [one, [putting(`v${random.below(6)}`, `t${at}`), submitting(`job${at}`)]] as const);
        const txn = new TestTxn(islands, parts, { home, timeoutMs: 1_000 });
        txns.push(txn);
        const outcome = coordinate(
          islands,
          txn,
          parts.map(([one]) => one),
          random.below(7),
        );
        running.push(outcome.then((said) => void (said !== null && told.set(txn.id, said))));
        await clock.advance(random.between(0, 200));
        if (random.chance(0.15)) {
          const island = random.pick(all);
          await island.elect(random.below(island.nodes.length));
        }
      }
      islands.faults = { loss: 0, twice: 0, delayMs: 1 };
      await clock.advance(30_000);
      await Promise.all(running);
      for (const txn of txns) {
        const phases = txn.header.participants.map((hash) => islands.island(hash).phase(txn.id));
        const home = islands.island(txn.header.home).phase(txn.id);
        if (home === "committed") expect(new Set(phases)).toEqual(new Set(["committed"]));
        else expect(phases).not.toContain("committed");
        expect(phases).not.toContain("prepared");
        if (told.has(txn.id)) expect(home).toBe(told.get(txn.id));
      }
      for (const island of all) {
        const committed = txns.filter(
          ({ id, header }) => header.participants.includes(island.hash) && island.phase(id) === "committed",
        );
        expect(island.jobs.marks.toSorted()).toEqual(committed.map(({ id }) => `txn:${id}:1`).toSorted());
        expect(island.leader.state.transactions.stats()).toMatchObject({ prepared: 0, inDoubt: 0, undelivered: 0 });
        expect(island.leader.state.transactions.list({ inDoubt: true, after: null, limit: 9 }).transactions).toEqual(
          [],
        );
        for (let at = 0; at < 6; at++) await island.put(`v${at}`, "free");
      }
      for (const outcome of told.values()) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    },
  );

  it("of all of these many were committed, and many rolled back, and clients were told so", () => {
    expect(outcomes["committed"]).toBeGreaterThan(20);
    expect(outcomes["rolled-back"]).toBeGreaterThan(20);
  });
});

/** As the coordinator does it, until it dies before its step `diesAt`. What it says to its client; null: nothing. */
async function coordinate(
  islands: TestIslands,
  txn: TestTxn,
  participants: readonly TestIsland[],
  diesAt: number,
): Promise<string | null> {
  const calls = islands.callsOf(null);
  const home = islands.island(txn.header.home);
  const others = participants.filter((one) => one !== home);
  if (diesAt === 0) return null;
  const prepared = await Promise.all(others.map((one) => calls.call(one.hash, txn.prepare(one), 1_000)));
  if (diesAt === 1) return null;
  const isPrepared = prepared.every((answer) => answer?.kind === "txn" && answer.phase === "prepared");
  const decided = await calls.call(home.hash, isPrepared ? txn.commit(home, [], FENCE) : txn.rollback(), 1_000);
  if (diesAt === 2 || decided?.kind !== "txn") return null;
  const { phase } = decided;
  if (phase === "rolled-back" && diesAt !== 3)
    for (const one of others) void calls.call(one.hash, txn.rollback(), 1_000);
  if (phase === "committed" && diesAt !== 3)
    await Promise.all(others.map((one) => calls.call(one.hash, txn.commit(one), 1_000)));
  return phase;
}
