// The coordinator of transactions: what it asks of whom, when it stops, and what its client is told.

import { describe, expect, it } from "vitest";
import type { TxnOutcome } from "../../../ports/transactions.ts";
import {
  TXN_APPLY_MS,
  TXN_CALL_MS,
  TXN_HOME_PART,
  TXN_HOME_RETRY_MS_MAX,
  TXN_RUNNING_BYTES_MAX,
  TXN_RUNNING_MAX,
} from "./limits.ts";
import { A, B, bodyOf, C, CALLER, D, decideOf, FENCE, ID, type Sent, TestIslands } from "./test-islands.ts";

const ALL = [A, B, C];
/** The default. */
const TIMEOUT_MS = 5_000;

const stateOf = (told: unknown): string => (typeof told === "string" ? told : (told as TxnOutcome).state);
const statesOf = (told: unknown) =>
  (told as TxnOutcome).participants.map(({ backendHash, state }) => [backendHash[0], state].join(" "));
const idOf = (n: number): string => `019aa000-0000-7000-8000-${String(n).padStart(12, "0")}`;

describe("a transaction over three islands", () => {
  it("is five calls, one after the other at most three; home decides once, and last", async () => {
    const islands = new TestIslands();
    const startMs = islands.clock.nowMs;
    const told = await islands.endOf(islands.decider().run(bodyOf([C, A, B]), CALLER));
    expect(islands.sent.map(({ target, request }) => `${request.kind} ${target[0]}`)).toEqual([
      "prepare b",
      "prepare c",
      "commit a",
      "commit b",
      "commit c",
    ]);
    // Each takes 1 ms there, and 1 back.
    expect(islands.clock.nowMs - startMs).toBe(6);
    expect(told).toEqual({
      id: ID,
      state: "committed",
      term: FENCE.term,
      home: A,
      reason: null,
      participants: [C, A, B].map((backendHash) => ({
        backendHash,
        state: "applied",
        results: [{ version: 1, epoch: null, jobId: null }],
      })),
    });
    expect(islands.phases()).toBe("committed committed committed");
    expect(islands.clock.pending).toBe(0);
  });

  it("tells each island its own: operations to whoever prepares and to home, requirements to home alone", async () => {
    const islands = new TestIslands();
    const require = [{ backendHash: A, scope: "orders", epoch: 9 }];
    await islands.endOf(islands.decider().run(bodyOf([B], { require, timeoutMs: 3_000 }), CALLER));
    const header = { id: ID, home: A, participants: [B], timeoutMs: 3_000, by: "payer" };
    const { operations } = bodyOf([B]).participants[0]!;
    expect(islands.sent.map(({ request }) => request)).toEqual([
      { kind: "prepare", header: expect.objectContaining(header), operations, fence: FENCE },
      {
        kind: "commit",
        header: expect.objectContaining(header),
        operations: [],
        require: [{ scope: "orders", epoch: 9 }],
        fence: FENCE,
      },
      { kind: "commit", header: expect.objectContaining(header), operations: null, require: [], fence: FENCE },
    ]);
  });

  it("at home alone is one call", async () => {
    const islands = new TestIslands();
    const told = await islands.endOf(islands.decider().run(bodyOf([A]), CALLER));
    expect([stateOf(told), islands.sent.length]).toEqual(["committed", 1]);
  });

  it("home-chosen-again: whoever has it finds the same home, whatever the order of its islands", async () => {
    const homes = new Set<string>();
    for (const participants of [ALL, [C, B, A], [B, A, C]]) {
      const islands = new TestIslands();
      const told = await islands.endOf(islands.decider().run(bodyOf(participants, { home: null }), CALLER));
      homes.add((told as TxnOutcome).home);
    }
    expect([...homes]).toEqual([A]);
    const islands = new TestIslands();
    const require = [{ backendHash: C, scope: "orders", epoch: 9 }];
    const told = await islands.endOf(islands.decider().run(bodyOf(ALL, { home: null, require }), CALLER));
    expect([(told as TxnOutcome).home, islands.kinds("prepare")]).toEqual([C, [A, B]]);
  });

  it("that moves a scope is decided where the scope is released, unless another home is named", async () => {
    const homes: string[] = [];
    const release = { kind: "scope-release", scope: "orders", epoch: 9 } as const;
    const participants = bodyOf(ALL).participants.map((one) => {
      return one.backendHash === C ? { ...one, operations: [...one.operations, release] } : one;
    });
    for (const home of [null, B]) {
      const islands = new TestIslands();
      const told = await islands.endOf(islands.decider().run(bodyOf([], { home, participants }), CALLER));
      homes.push((told as TxnOutcome).home);
    }
    expect(homes).toEqual([C, B]);
  });

  it("requires nothing at another island than its home, where it is decided", async () => {
    const islands = new TestIslands();
    const require = [{ backendHash: B, scope: "orders", epoch: 9 }];
    expect(await islands.endOf(islands.decider().run(bodyOf(ALL, { require }), CALLER))).toBe("invalid_require");
    expect(await islands.endOf(islands.decider().run(bodyOf([], { home: null }), CALLER))).toBe("missing_participants");
    expect(islands.sent).toEqual([]);
  });
});

describe("①", () => {
  it("commit-without-all-prepared: one refusal is a rollback at home, then the answer, then hints to those that prepared", async () => {
    const islands = new TestIslands();
    islands.at(C).refuses = "txn_locked";
    const decider = islands.decider();
    const told = await islands.endOf(decider.run(bodyOf(ALL), CALLER));
    expect(told).toMatchObject({ state: "rolled-back", reason: { code: "txn_locked", backendHash: C } });
    expect(statesOf(told)).toEqual(["a rolled-back", "b rolled-back", "c rolled-back"]);
    await islands.clock.advance(10);
    expect(islands.sent.map(({ target, request }) => `${request.kind} ${target[0]}`)).toEqual([
      "prepare b",
      "prepare c",
      "rollback a",
      "rollback b",
    ]);
    expect(islands.phases()).toBe("rolled-back rolled-back -");
    expect(decider.stats()).toMatchObject({ outcomes: { "rolled-back": 1, committed: 0 }, running: 0 });
  });

  it("rollback-before-home: nobody hears of a rollback before home has recorded it, and the client neither", async () => {
    const islands = new TestIslands();
    islands.at(B).refuses = "txn_locked";
    islands.fate = ({ target }) => (target === A ? { isLost: true } : {});
    expect(await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    expect(islands.kinds("rollback").every((target) => target === A)).toBe(true);
  });

  it("a refusal is not held up by an island that is silent; a late one gets its hint after it has prepared", async () => {
    const islands = new TestIslands();
    islands.at(B).refuses = "VERSION_CONFLICT";
    islands.fate = ({ request, target }) => (request.kind === "prepare" && target === C ? { thereMs: 500 } : {});
    const startMs = islands.clock.nowMs;
    const told = await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER));
    expect([stateOf(told), islands.clock.nowMs - startMs]).toEqual(["rolled-back", 4]);
    await islands.clock.advance(400);
    expect(islands.kinds("rollback")).toEqual([A]);
    await islands.clock.advance(200);
    expect(islands.kinds("rollback")).toEqual([A, C]);
    expect(islands.phases()).toBe("rolled-back - rolled-back");
  });

  it("silence for half of the time is txn_fanout_failed, after home's record", async () => {
    const islands = new TestIslands();
    islands.fate = ({ target, request }) => (target === C && request.kind === "prepare" ? { isLost: true } : {});
    const startMs = islands.clock.nowMs;
    const decider = islands.decider();
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("txn_fanout_failed");
    expect(islands.clock.nowMs - startMs).toBeGreaterThanOrEqual(TIMEOUT_MS / 2);
    expect(islands.clock.nowMs - startMs).toBeLessThan(TIMEOUT_MS / 2 + 10);
    await islands.clock.advance(10);
    expect(islands.phases()).toBe("rolled-back rolled-back -");
    expect(decider.stats().outcomes).toMatchObject({ "rolled-back": 1, unknown: 0 });
  });

  it("silence, of one that home has forgotten, is no rollback: it may have been committed, and done everywhere", async () => {
    const islands = new TestIslands();
    islands.fate = ({ target, request }) => {
      if (target === A) return { refuse: "txn_expired" };
      return target === C && request.kind === "prepare" ? { isLost: true } : {};
    };
    expect(await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER))).toBe("txn_expired");
  });

  it.each(["txn_expired", "invalid_txn_id"] as const)(
    "%s at an island, or by home's own clock, is an outcome once home has recorded the rollback: this is definite",
    async (code) => {
      for (const island of [C, A]) {
        const islands = new TestIslands();
        islands.at(island).refuses = code;
        const decider = islands.decider();
        for (let time = 0; time < 2; time++) {
          const outcome = await islands.endOf(decider.run(bodyOf(ALL), CALLER));
          expect(outcome).toMatchObject({ state: "rolled-back", reason: { code } });
        }
        const decided = await islands.endOf(decider.decide(decideOf("commit", { id: idOf(2) }), CALLER));
        expect(decided).toMatchObject({ state: island === A ? "rollback" : "commit" });
      }
    },
  );

  it("nothing is prepared any more once it is to be rolled back", async () => {
    const islands = new TestIslands();
    islands.at(B).refuses = "txn_locked";
    islands.fate = ({ request, target }) => (request.kind === "prepare" && target === C ? { isLost: true } : {});
    await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER));
    await islands.clock.advance(TIMEOUT_MS);
    expect(islands.kinds("prepare")).toEqual([B, C]);
    expect(islands.kinds("rollback")).toEqual([A, C]);
  });

  it("is repeated within its time", async () => {
    const islands = new TestIslands();
    islands.fate = ({ nth }) => (nth === 1 ? { isLost: true } : {});
    expect(stateOf(await islands.endOf(islands.decider().run(bodyOf([A, B]), CALLER)))).toBe("committed");
    expect(islands.kinds("prepare")).toEqual([B, B]);
  });

  it("prepared after a stop of the process is not begun to be committed: the islands are about to ask home", async () => {
    const islands = new TestIslands();
    islands.onAnswer = ({ request }) => {
      if (request.kind === "prepare") islands.clock.stop(TIMEOUT_MS / 2);
    };
    expect(await islands.endOf(islands.decider().run(bodyOf([A, B]), CALLER))).toBe("txn_fanout_failed");
    expect(islands.kinds("commit")).toEqual([]);
    expect(islands.at(A).phase()).toBe("rolled-back");
  });

  it("other-body-same-id: a conflict at an island is told as one, and rolled back at home first", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    await islands.endOf(decider.run(bodyOf([C], { home: C }), CALLER));
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("txn_conflict");
    await islands.clock.advance(10);
    expect(islands.phases()).toBe("rolled-back rolled-back committed");
  });

  it("stale-term-told-as-rollback: a later term at an island ends it without a word to home", async () => {
    const islands = new TestIslands();
    islands.at(C).fence = { ...FENCE, term: FENCE.term + 1 };
    const decider = islands.decider();
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    await islands.clock.advance(TIMEOUT_MS);
    expect(islands.kinds("rollback").concat(islands.kinds("commit"))).toEqual([]);
    expect(decider.stats().outcomes).toMatchObject({ unknown: 1 });
  });
});

describe("a term that is lost", () => {
  it.each([
    ["over", null],
    ["won again", { ...FENCE, term: FENCE.term + 1 }],
    ["that of another recovery", { ...FENCE, recoveredBy: "n9@1" }],
    ["that of other coordinators", { ...FENCE, clusterId: "cluster-2" }],
  ])("and is then %s ends ① without a word to anybody", async (_how, fence) => {
    const islands = new TestIslands();
    islands.onAnswer = () => void (islands.fence = fence);
    expect(await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    await islands.clock.advance(TIMEOUT_MS);
    expect(islands.sent.map(({ request }) => request.kind)).toEqual(["prepare", "prepare"]);
  });

  it("after home has committed leaves the others to ask by themselves", async () => {
    const islands = new TestIslands();
    islands.onAnswer = ({ request }) => void (request.kind === "commit" && (islands.fence = null));
    const told = await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER));
    expect([stateOf(told), ...statesOf(told)]).toEqual(["committed", "a applied", "b pending", "c pending"]);
    islands.settle();
    expect(islands.phases()).toBe("committed committed committed");
  });

  it("after home has rolled back is told as that, and no hint leaves", async () => {
    const islands = new TestIslands();
    islands.at(C).refuses = "txn_locked";
    islands.onAnswer = ({ request }) => void (request.kind === "rollback" && (islands.fence = null));
    expect(stateOf(await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER)))).toBe("rolled-back");
    await islands.clock.advance(TIMEOUT_MS);
    expect(islands.kinds("rollback")).toEqual([A]);
  });
});

describe("②", () => {
  it.each([
    ["refused there", (islands: TestIslands) => void (islands.at(A).refuses = "STALE_EPOCH"), "rolled-back"],
    ["locked by a rollback of before", (islands: TestIslands) => tombstone(islands), "rolled-back"],
  ])("%s is rolled back, and says why; those that have prepared get a hint", async (_how, plan, state) => {
    const islands = new TestIslands();
    plan(islands);
    const told = await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER));
    expect(stateOf(told)).toBe(state);
    expect((told as TxnOutcome).reason?.backendHash).toBe(null);
    await islands.clock.advance(10);
    expect(islands.phases()).toBe("rolled-back rolled-back rolled-back");
  });

  it("is repeated within the time, and then the outcome is unknown; nobody is told of a rollback", async () => {
    const islands = new TestIslands();
    islands.fate = ({ target }) => (target === A ? { isUnheard: true } : {});
    const startMs = islands.clock.nowMs;
    const decider = islands.decider();
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    expect(islands.clock.nowMs - startMs).toBe(TIMEOUT_MS);
    expect(islands.kinds("commit").filter((target) => target === A).length).toBeGreaterThan(1);
    expect(islands.kinds("rollback")).toEqual([]);
    // Home has committed: who asks hears so, and who repeats it too.
    islands.fate = () => ({});
    await islands.clock.advance(TXN_CALL_MS + TXN_HOME_RETRY_MS_MAX);
    expect(stateOf(await islands.endOf(decider.run(bodyOf(ALL), CALLER)))).toBe("committed");
    expect(islands.phases()).toBe("committed committed committed");
  });

  it("whose first answer is lost is asked for again, and heard", async () => {
    const islands = new TestIslands();
    let lost = 0;
    islands.fate = ({ target }) => (target === A && lost++ === 0 ? { isUnheard: true } : {});
    expect(stateOf(await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER)))).toBe("committed");
  });

  it("other-body-same-id: a conflict at home is definite, and those that have prepared are freed", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    await islands.endOf(decider.run(bodyOf([A]), CALLER));
    expect(await islands.endOf(decider.run(bodyOf([A, B]), CALLER))).toBe("txn_conflict");
    await islands.clock.advance(10);
    expect(islands.phases()).toBe("committed rolled-back -");
    expect(decider.stats().outcomes).toMatchObject({ committed: 1, refused: 1 });
  });

  it.each(["txn_expired", "invalid_txn_id"] as const)("%s at home is definite", async (code) => {
    const islands = new TestIslands();
    islands.fate = ({ target }) => (target === A ? { refuse: code } : {});
    expect(await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER))).toBe(code);
    expect(islands.kinds("rollback")).toEqual([B, C]);
  });

  it.each(["OVERLOADED", "NOT_SUPPORTED", "txn_backend_mismatch"] as const)(
    "refused by home with %s is rolled back there, and unknown where that is refused as well",
    async (code) => {
      const islands = new TestIslands();
      islands.fate = ({ target, request }) => (target === A && request.kind === "commit" ? { refuse: code } : {});
      const told = await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER));
      expect(told).toMatchObject({ state: "rolled-back", reason: { code, backendHash: null } });
      const deaf = new TestIslands();
      deaf.fate = ({ target }) => (target === A ? { refuse: code } : {});
      expect(await deaf.endOf(deaf.decider().run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    },
  );

  it("stale-term-told-as-rollback: a later term at home leaves it unknown", async () => {
    const islands = new TestIslands();
    islands.at(A).fence = { ...FENCE, term: FENCE.term + 1 };
    expect(await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    expect(islands.kinds("rollback")).toEqual([]);
  });

  it("a rollback that home has committed before is told as a commit, everywhere", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    await islands.endOf(decider.run(bodyOf(ALL), CALLER));
    islands.fate = ({ request, target }) =>
      request.kind === "prepare" && target === B ? { refuse: "txn_expired" } : {};
    const told = await islands.endOf(decider.run(bodyOf(ALL), CALLER));
    expect([stateOf(told), ...statesOf(told)]).toEqual(["committed", "a applied", "b applied", "c applied"]);
  });
});

describe("③", () => {
  it.each(["isLost", "isUnheard"] as const)("an island whose call %s is pending, after a bounded time", async (how) => {
    const islands = new TestIslands();
    islands.fate = ({ target, request }) => (target === C && request.kind === "commit" ? { [how]: true } : {});
    const startMs = islands.clock.nowMs;
    const told = await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER));
    expect([stateOf(told), ...statesOf(told)]).toEqual(["committed", "a applied", "b applied", "c pending"]);
    expect(islands.clock.nowMs - startMs).toBeLessThanOrEqual(TXN_APPLY_MS + 10);
    islands.settle();
    expect(islands.phases()).toBe("committed committed committed");
  });

  it("conflict-is-applied: a conflict after the decision is pending, and never applied", async () => {
    const islands = new TestIslands();
    islands.fate = ({ target, request }) =>
      target === B && request.kind === "commit" ? { refuse: "txn_conflict" } : {};
    const told = await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER));
    expect(statesOf(told)).toEqual(["a applied", "b pending", "c applied"]);
  });
});

describe("whoever asks for the same", () => {
  it("while it runs joins it, and both get its outcome", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    const both = Promise.all([decider.run(bodyOf(ALL), CALLER), decider.run(bodyOf(ALL), { ...CALLER, by: "other" })]);
    expect(decider.stats().running).toBe(1);
    const [first, second] = (await islands.endOf(both)) as TxnOutcome[];
    expect([second, islands.sent.length]).toEqual([first, 5]);
    expect(decider.stats()).toMatchObject({ outcomes: { committed: 1 }, running: 0 });
  });

  it("other-body-same-id: under the id of another one that runs is asked to wait, and that one goes on", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    const first = decider.run(bodyOf(ALL), CALLER);
    expect(await islands.endOf(decider.run(bodyOf([A, B]), CALLER))).toBe("txn_pending");
    expect(stateOf(await islands.endOf(first))).toBe("committed");
    expect(await islands.endOf(decider.run(bodyOf([A, B]), CALLER))).toBe("txn_conflict");
  });

  it("is never told of a conflict while another body of its id runs: it may be the one that is committed", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    expect(stateOf(await islands.endOf(decider.run(bodyOf([A, B]), CALLER)))).toBe("committed");
    const other = decider.run(bodyOf(ALL), CALLER);
    expect(await islands.endOf(decider.run(bodyOf([A, B]), CALLER))).toBe("txn_pending");
    expect(await islands.endOf(other)).toBe("txn_conflict");
    expect(stateOf(await islands.endOf(decider.run(bodyOf([A, B]), CALLER)))).toBe("committed");
  });

  it("afterwards gets the same answer, without a second effect", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    const first = await islands.endOf(decider.run(bodyOf(ALL), CALLER));
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toEqual(first);
    // What has answered ① with "committed" is not told again.
    expect(islands.kinds("commit")).toEqual([A, B, C, A]);
  });

  it("is refused where too many run, before anything is done", async () => {
    const islands = new TestIslands();
    islands.fate = () => ({ isLost: true });
    const decider = islands.decider();
    const running = Array.from({ length: TXN_RUNNING_MAX }, (_, n) =>
      decider.run(bodyOf([A], { id: idOf(n) }), CALLER),
    );
    expect(decider.stats().running).toBe(TXN_RUNNING_MAX);
    expect(await islands.endOf(decider.run(bodyOf([A], { id: idOf(TXN_RUNNING_MAX) }), CALLER))).toBe("OVERLOADED");
    expect(islands.sent.length).toBe(TXN_RUNNING_MAX);
    await islands.endOf(Promise.allSettled(running));
    expect(decider.stats()).toMatchObject({ running: 0, outcomes: { unknown: TXN_RUNNING_MAX } });
  });

  it("has no room where as many wait for an island that is silent, for half of their time, whichever island it names itself", async () => {
    const islands = new TestIslands();
    islands.fate = ({ target }) => ({ isLost: target === C });
    const decider = islands.decider();
    for (let n = 0; n < TXN_RUNNING_MAX; n++)
      decider.run(bodyOf([A, C], { id: idOf(n) }), CALLER).catch(() => undefined);
    await islands.clock.advance(TIMEOUT_MS / 2 - 100);
    const mine = bodyOf([A, B], { id: idOf(TXN_RUNNING_MAX) });
    expect(await islands.endOf(decider.run(mine, CALLER))).toBe("OVERLOADED");
    await islands.clock.advance(200);
    expect(stateOf(await islands.endOf(decider.run(mine, CALLER)))).toBe("committed");
  });
});

describe("bytes of what runs, or is forwarded", () => {
  const bytes = TXN_RUNNING_BYTES_MAX / 2;
  const large = (n: number) => bodyOf([A], { id: idOf(n), bytes });

  it("are bounded: what has no room is refused before anything is done, and has it when another one has ended", async () => {
    const islands = new TestIslands();
    islands.fate = () => ({ isLost: true });
    const decider = islands.decider();
    const running = [1, 2].map((n) => decider.run(large(n), CALLER));
    await expect(decider.run(bodyOf([A], { id: idOf(3) }), CALLER)).rejects.toMatchObject({ code: "OVERLOADED" });
    expect(islands.sent.length).toBe(2);
    // Whoever asks for the same again joins it.
    const joined = decider.run(large(1), CALLER);
    await islands.endOf(Promise.allSettled([...running, joined]));
    islands.fate = () => ({});
    expect(stateOf(await islands.endOf(decider.run(large(4), CALLER)))).toBe("committed");
  });

  it("count until no island is asked to prepare them any more, also where another one has refused at once", async () => {
    const islands = new TestIslands();
    islands.fate = ({ target }) => (target === C ? { isLost: true } : {});
    islands.at(B).refuses = "txn_locked";
    const decider = islands.decider();
    const run = (n: number) => islands.endOf(decider.run(bodyOf(ALL, { id: idOf(n), bytes }), CALLER));
    for (const n of [1, 2]) expect(stateOf(await run(n))).toBe("rolled-back");
    expect(await run(3)).toBe("OVERLOADED");
    await islands.clock.advance(TXN_CALL_MS);
    expect(stateOf(await run(4))).toBe("rolled-back");
  });

  it("are bounded in the same way where they are forwarded", async () => {
    const islands = new TestIslands({ run: () => new Promise(() => {}) });
    islands.fence = null;
    islands.leaderEndpoint = "https://n2:7401";
    const decider = islands.decider();
    for (const n of [1, 2]) void decider.run(large(n), CALLER);
    await expect(decider.run(large(3), CALLER)).rejects.toMatchObject({ code: "OVERLOADED" });
    expect(decider.stats().forwarded).toBe(2);
  });

  it("are bounded in the same way where they are staged at an island that does not answer", async () => {
    const islands = new TestIslands();
    islands.fate = () => ({ isLost: true });
    const decider = islands.decider();
    const data = new Uint8Array(bytes - 1_000);
    const operations = [{ kind: "value-put", name: "orders/cursor", data, ifVersion: null }] as const;
    const stage = (n: number) =>
      decider.stage(B, { kind: "stage", id: idOf(n), home: A, by: "payer", operations, expiresInMs: 10_000 });
    const under = [1, 2].map(stage);
    expect(await islands.endOf(stage(3))).toBe("OVERLOADED");
    expect(islands.sent.length).toBe(2);
    await islands.endOf(Promise.allSettled(under));
    islands.fate = () => ({});
    expect(await islands.endOf(stage(4))).toMatchObject({ phase: "staged" });
  });
});

describe("an island that is not registered", () => {
  it.each([
    ["takes part", bodyOf([A, D])],
    ["is home", bodyOf([A], { home: D })],
  ])("and %s: nothing is done", async (_how, body) => {
    const islands = new TestIslands();
    expect(await islands.endOf(islands.decider().run(body, CALLER))).toBe("tc_rm_unavailable");
    expect(islands.sent).toEqual([]);
  });
});

describe("a node that does not lead the coordinators", () => {
  const away = (run: () => Promise<TxnOutcome | null>) => {
    const asked: unknown[] = [];
    const islands = new TestIslands({
      run: (...arguments_) => {
        asked.push(arguments_);
        return run();
      },
    });
    islands.fence = null;
    islands.leaderEndpoint = "https://n2:7401";
    return { islands, asked };
  };
  const OUTCOME: TxnOutcome = { id: ID, state: "committed", term: 8, home: A, reason: null, participants: [] };

  it("forwards to the one that does, for its caller, and answers with its answer", async () => {
    const { islands, asked } = away(async () => OUTCOME);
    const decider = islands.decider();
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toEqual(OUTCOME);
    expect(asked).toEqual([["https://n2:7401", bodyOf(ALL), "payer", expect.any(Number)]]);
    expect((asked as number[][])[0]![3]).toBeGreaterThan(TIMEOUT_MS + TXN_APPLY_MS);
    expect([decider.stats().forwarded, islands.sent.length]).toEqual([1, 0]);
  });

  it("passes a refusal on, as it is", async () => {
    const { islands } = away(() => Promise.reject(Object.assign(new Error("x"), { code: "txn_fanout_failed" })));
    expect(await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER))).toBe("txn_fanout_failed");
  });

  it("names the leader where it can't reach it, and forwards nothing a second time", async () => {
    const { islands, asked } = away(async () => null);
    const refused = expect.objectContaining({ code: "tc_not_leader", leaderEndpoint: "https://n2:7401" });
    await expect(islands.decider().run(bodyOf(ALL), CALLER)).rejects.toEqual(refused);
    expect(asked.length).toBe(1);
    await expect(islands.decider().run(bodyOf(ALL), { by: "payer", isForwarded: true })).rejects.toEqual(refused);
    expect(asked.length).toBe(1);
  });

  it("refuses where nobody leads, or nobody knows where", async () => {
    const { islands, asked } = away(async () => OUTCOME);
    islands.leaderEndpoint = null;
    await expect(islands.decider().run(bodyOf(ALL), CALLER)).rejects.toMatchObject({ code: "tc_not_leader" });
    islands.isLed = false;
    await expect(islands.decider().run(bodyOf(ALL), CALLER)).rejects.toMatchObject({ code: "tc_unavailable" });
    expect(asked).toEqual([]);
  });

  it("forwards so many at once, and no more", async () => {
    const { islands } = away(() => new Promise(() => {}));
    const decider = islands.decider();
    for (let n = 0; n < TXN_RUNNING_MAX; n++) void decider.run(bodyOf([A], { id: idOf(n) }), CALLER);
    await expect(decider.run(bodyOf(ALL), CALLER)).rejects.toMatchObject({ code: "OVERLOADED" });
  });
});

describe("the decision about staged operations", () => {
  const staged = async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    for (const target of [A, B]) {
      const { operations } = bodyOf([target]).participants[0]!;
      const request = { kind: "stage", id: ID, home: A, by: "payer", operations, expiresInMs: 10_000 } as const;
      expect(await islands.endOf(decider.stage(target, request))).toMatchObject({ phase: "staged" });
    }
    return { islands, decider };
  };

  it("commit prepares and commits what was staged", async () => {
    const { islands, decider } = await staged();
    expect(await islands.endOf(decider.decide(decideOf("commit"), CALLER))).toEqual({ id: ID, state: "commit" });
    expect(islands.phases()).toBe("committed committed -");
    const of = (kind: string) => islands.sent.find(({ request }: Sent) => request.kind === kind)!.request;
    expect([of("prepare"), of("commit")]).toMatchObject([{ operations: null }, { operations: null }]);
    expect(await islands.endOf(decider.decide(decideOf("rollback"), CALLER))).toEqual({ id: ID, state: "commit" });
    expect(await islands.endOf(decider.decide(decideOf("pending"), CALLER))).toEqual({ id: ID, state: "commit" });
  });

  it("rollback is home's record", async () => {
    const { islands, decider } = await staged();
    expect(await islands.endOf(decider.decide(decideOf("rollback"), CALLER))).toEqual({ id: ID, state: "rollback" });
    expect(islands.at(A).phase()).toBe("rolled-back");
    expect(await islands.endOf(decider.decide(decideOf("commit"), CALLER))).toEqual({ id: ID, state: "rollback" });
    expect(await islands.endOf(decider.decide(decideOf("pending"), CALLER))).toEqual({ id: ID, state: "rollback" });
  });

  it("commit after its time is a rollback, and a repetition with a time is no other body", async () => {
    const { islands, decider } = await staged();
    const wallMs = islands.clock.wallMs();
    const late = decideOf("commit", { expiresAtMs: wallMs });
    expect(await islands.endOf(decider.decide(late, CALLER))).toEqual({ id: ID, state: "rollback" });
    const again = decideOf("commit", { expiresAtMs: wallMs + 7_000 });
    expect(await islands.endOf(decider.decide(again, CALLER))).toEqual({ id: ID, state: "rollback" });
  });

  it("pending asks, and changes nothing", async () => {
    const { islands, decider } = await staged();
    const before = islands.sent.length;
    expect(await islands.endOf(decider.decide(decideOf("pending"), CALLER))).toEqual({ id: ID, state: "pending" });
    expect(await islands.endOf(decider.decide(decideOf("pending", { home: B }), CALLER))).toEqual({
      id: ID,
      state: "pending",
    });
    expect(islands.sent.length).toBe(before);
  });

  it("both at once: the second one is told to wait", async () => {
    const { islands, decider } = await staged();
    const commit = decider.decide(decideOf("commit"), CALLER);
    expect(await islands.endOf(decider.decide(decideOf("pending"), CALLER))).toEqual({ id: ID, state: "pending" });
    expect(await islands.endOf(decider.decide(decideOf("rollback"), CALLER))).toBe("txn_pending");
    expect(await islands.endOf(commit)).toEqual({ id: ID, state: "commit" });
  });

  it("staging at an island that is not registered, or does not answer, is no success", async () => {
    const islands = new TestIslands();
    const request = { kind: "stage", id: ID, home: A, by: "payer", operations: [], expiresInMs: 10_000 } as const;
    expect(await islands.endOf(islands.decider().stage(D, request))).toBe("tc_rm_unavailable");
    islands.fate = () => ({ isLost: true });
    expect(await islands.endOf(islands.decider().stage(B, request))).toBe("OUTCOME_UNKNOWN");
  });

  it("is forwarded as a transaction is", async () => {
    const islands = new TestIslands({ decide: async (_endpoint, { id }) => ({ id, state: "commit" }) });
    islands.fence = null;
    islands.leaderEndpoint = "https://n2:7401";
    const decider = islands.decider();
    expect(await islands.endOf(decider.decide(decideOf("commit"), CALLER))).toEqual({ id: ID, state: "commit" });
  });
});

function tombstone(islands: TestIslands): void {
  islands.at(A).refuses = "VERSION_CONFLICT";
}

describe("a home that is away", () => {
  it("has others lock for it once: later transactions with it begin nothing until it answers again", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    islands.fate = ({ target }) => (target === A ? { isLost: true } : {});
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    expect(islands.phases()).toBe("- prepared prepared");
    for (const n of [2, 3, 4]) {
      const startMs = islands.clock.nowMs;
      expect(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(n) }), CALLER))).toBe("OUTCOME_UNKNOWN");
      // And it is told soon.
      expect([islands.phases(idOf(n)), islands.clock.nowMs - startMs <= TIMEOUT_MS / 4]).toEqual(["- - -", true]);
    }
    // Other homes decide meanwhile.
    expect(stateOf(await islands.endOf(decider.run(bodyOf([B, C], { id: idOf(5), home: B }), CALLER)))).toBe(
      "committed",
    );
    islands.fate = () => ({});
    await islands.clock.advance(TXN_CALL_MS + TXN_HOME_RETRY_MS_MAX);
    islands.sent.length = 0;
    expect(stateOf(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(7) }), CALLER)))).toBe("committed");
    expect(islands.kinds("recover")).toEqual([]);
  });
});

describe("a home that is far away", () => {
  it("and was taken for silent is asked once: its answer comes too late for that transaction, and in time for the next", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    islands.fate = ({ target }) => (target === A ? { isLost: true } : {});
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    const farMs = TIMEOUT_MS * TXN_HOME_PART;
    islands.fate = ({ target }) => (target === A ? { thereMs: farMs / 2, backMs: farMs / 2 + 50 } : {});
    expect(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(2) }), CALLER))).toBe("OUTCOME_UNKNOWN");
    await islands.clock.advance(TXN_CALL_MS + TXN_HOME_RETRY_MS_MAX);
    expect(stateOf(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(3) }), CALLER)))).toBe("committed");
  });
});

describe("a home that answers, and can't write", () => {
  it.each(["DISK_FULL", "NOT_SUPPORTED"] as const)(
    "with %s has others lock for it once, and not again",
    async (code) => {
      const islands = new TestIslands();
      const decider = islands.decider();
      islands.at(A).refusesNew = code;
      expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
      expect(islands.phases()).toBe("- prepared prepared");
      // Whoever asks again under that id is not answered that nothing was begun.
      expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
      islands.sent.length = 0;
      for (const n of [2, 3, 4]) {
        expect(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(n) }), CALLER))).toBe(code);
        expect(islands.phases(idOf(n))).toBe("- - -");
      }
      expect(islands.kinds("prepare")).toEqual([]);
      expect(decider.stats().outcomes).toMatchObject({ refused: 3 });
      islands.at(A).refusesNew = null;
      await islands.clock.advance(TXN_HOME_RETRY_MS_MAX + 10);
      expect(stateOf(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(5) }), CALLER)))).toBe("committed");
    },
  );

  it("and writes rollbacks all the same is remembered too: the next transaction locks nothing", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    Object.assign(islands.at(A), { refusesNew: "DISK_FULL", writesRollbacks: true });
    const first = await islands.endOf(decider.run(bodyOf(ALL), CALLER));
    expect(first).toMatchObject({ state: "rolled-back", reason: { code: "DISK_FULL", backendHash: null } });
    await islands.clock.advance(10);
    expect(islands.phases()).toBe("rolled-back rolled-back rolled-back");
    expect(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(2) }), CALLER))).toBe("DISK_FULL");
    expect(islands.phases(idOf(2))).toBe("- - -");
  });

  it("says what became of an id that was begun here before, and rolls it back where it was not decided", async () => {
    const islands = new TestIslands();
    const decider = islands.decider();
    expect(stateOf(await islands.endOf(decider.run(bodyOf(ALL), CALLER)))).toBe("committed");
    islands.at(A).refusesNew = "DISK_FULL";
    expect(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(2) }), CALLER))).toBe("OUTCOME_UNKNOWN");
    expect(stateOf(await islands.endOf(decider.run(bodyOf(ALL), CALLER)))).toBe("committed");
    islands.at(A).writesRollbacks = true;
    const ended = await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(2) }), CALLER));
    expect(ended).toMatchObject({ state: "rolled-back", reason: { code: "DISK_FULL" } });
    islands.settle();
    expect(islands.phases(idOf(2))).toBe("rolled-back rolled-back rolled-back");
  });

  it.each([
    ["refuses this coordinator", "tc_cluster_mismatch"],
    ["was restored as another island, and the registry has its addresses still", "txn_backend_mismatch"],
  ] as const)("%s: nothing is begun, and what became of it is not known", async (_, refuse) => {
    const islands = new TestIslands();
    const decider = islands.decider();
    islands.fate = ({ target }) => (target === A ? { refuse } : {});
    expect(await islands.endOf(decider.run(bodyOf(ALL), CALLER))).toBe("OUTCOME_UNKNOWN");
    expect(await islands.endOf(decider.run(bodyOf(ALL, { id: idOf(2) }), CALLER))).toBe("OUTCOME_UNKNOWN");
    expect(islands.phases(idOf(2))).toBe("- - -");
  });

  it("only takes part: it refuses to prepare at once, and the client hears which island did, and why", async () => {
    const islands = new TestIslands();
    islands.at(C).refusesNew = "DISK_FULL";
    const told = await islands.endOf(islands.decider().run(bodyOf(ALL), CALLER));
    expect(told).toMatchObject({ state: "rolled-back", reason: { code: "DISK_FULL", backendHash: C } });
    await islands.clock.advance(10);
    expect(islands.phases()).toBe("rolled-back rolled-back -");
  });
});
