// A transaction over three islands, and one mishap, at every call that it makes and at every moment of it. Afterwards, when whatever is prepared has asked
// its home: it is done everywhere or nowhere, as whoever asked for it was told, and nothing has left behind a closed gate. Then the next leader is asked
// for the same.

import { describe, expect, it } from "vitest";
import type { TcFence } from "../../../core/txn/model.ts";
import type { TxnBody, TxnOutcome } from "../../../ports/transactions.ts";
import { A, B, bodyOf, C, CALLER, decideOf, FENCE, type Fate, type Sent, TestIslands } from "./test-islands.ts";

const NEXT: TcFence = { ...FENCE, term: FENCE.term + 1 };
const ALL = [A, B, C];
/** No attempt makes more calls in which a mishap is of another kind than in those before. */
const CALLS = 8;

/** What goes wrong at the nth call. */
type Mishap = (islands: TestIslands, nth: number) => void;

function fate(islands: TestIslands, isMet: (sent: Sent) => boolean, of: Fate): void {
  const before = islands.fate;
  islands.fate = (sent) => (isMet(sent) ? { ...before(sent), ...of } : before(sent));
}

/** Which island is called there, once it is. */
function fromThen(islands: TestIslands, nth: number, of: Fate): void {
  let target: string | null = null;
  fate(
    islands,
    (sent) => {
      if (sent.nth === nth) ({ target } = sent);
      return sent.target === target;
    },
    of,
  );
}

const MISHAPS: Readonly<Record<string, Mishap>> = {
  "nothing goes wrong": () => {},
  "the term ends before it leaves": (islands, nth) => {
    // In the moment after the one before.
    islands.onSend = (sent) => void (sent.nth === nth - 1 && (islands.fence = null));
  },
  "the term ends when its answer is there": (islands, nth) => {
    islands.onAnswer = (sent) => void (sent.nth === nth && (islands.fence = null));
  },
  "the term is lost and won again meanwhile": (islands, nth) => {
    islands.onAnswer = (sent) => void (sent.nth === nth && (islands.fence = NEXT));
  },
  "another leader has told the island of its term": (islands, nth) => {
    islands.onSend = (sent) => {
      if (sent.nth === nth) islands.at(sent.target).fence = NEXT;
    };
  },
  "it is lost": (islands, nth) => fate(islands, (sent) => sent.nth === nth, { isLost: true }),
  "its answer is lost": (islands, nth) => fate(islands, (sent) => sent.nth === nth, { isUnheard: true }),
  "its island is not reached from then on": (islands, nth) => fromThen(islands, nth, { isLost: true }),
  "its island is not heard from then on": (islands, nth) => fromThen(islands, nth, { isUnheard: true }),
  "it arrives very late": (islands, nth) => fate(islands, (sent) => sent.nth === nth, { thereMs: 20_000 }),
  "it is locked": (islands, nth) => fate(islands, (sent) => sent.nth === nth, { refuse: "txn_locked" }),
  "its island has another one under this id": (islands, nth) => {
    islands.onSend = ({ nth: sent, target, request }) => {
      if (sent === nth && "header" in request) islands.at(target).take({ ...request.header, digest: "another" });
    };
  },
  "its island has too much to do": (islands, nth) =>
    fate(islands, (sent) => sent.nth === nth, { refuse: "OVERLOADED" }),
  "its island is in other coordinators": (islands, nth) => fromThen(islands, nth, { refuse: "tc_cluster_mismatch" }),
  "its participant asks home first": (islands, nth) => {
    islands.onSend = (sent) => {
      if (sent.nth === nth) islands.settle();
    };
  },
  "the process stands still": (islands, nth) => {
    islands.onAnswer = (sent) => {
      if (sent.nth === nth) islands.clock.stop(4_000);
    };
  },
};

const ORDERS: Readonly<Record<string, Fate>> = { "B is faster": {}, "C is faster": { backMs: 3, thereMs: 3 } };
const BODIES: Readonly<Record<string, TxnBody>> = {
  "of three islands": bodyOf(ALL),
  "of two that are not home": bodyOf([B, C]),
  "of home alone": bodyOf([A]),
};

interface Told {
  readonly told: string;
  readonly outcome: TxnOutcome | null;
}

async function attempt(islands: TestIslands, work: Promise<unknown>): Promise<Told> {
  const told = await islands.endOf(work);
  return typeof told === "string"
    ? { told, outcome: null }
    : { told: (told as TxnOutcome).state, outcome: told as never };
}

/** What each of the islands that take part has done, in one word. */
function done(islands: TestIslands, body: TxnBody): string {
  const phases = body.participants.map(({ backendHash }) => islands.at(backendHash).phase());
  const home = islands.at(A).phase();
  if (home === "committed" && phases.every((phase) => phase === "committed")) return "committed";
  const isNowhere = phases.every((phase) => phase !== "committed" && phase !== "prepared");
  return isNowhere && home !== "committed" ? "rolled-back" : `half: home ${home}, ${phases.join(" ")}`;
}

/** Definite, and it says that nothing was done. */
const NOWHERE = ["rolled-back", "txn_fanout_failed", "txn_conflict"];

function judge(islands: TestIslands, body: TxnBody, { told, outcome }: Told): void {
  const is = done(islands, body);
  expect(["committed", "rolled-back"], is).toContain(is);
  if (told === "committed") expect(is).toBe("committed");
  else if (NOWHERE.includes(told)) expect(is).toBe("rolled-back");
  else expect(told).toBe("OUTCOME_UNKNOWN");
  for (const { backendHash, state } of outcome?.participants ?? []) {
    if (state === "applied") expect(islands.at(backendHash).phase()).toBe("committed");
  }
  expect(islands.forbidden).toEqual([]);
}

describe.each(Object.entries(BODIES))("a transaction %s", (_of, body) => {
  describe.each(Object.entries(ORDERS))("where %s", (_order, slow) => {
    it.each(Object.entries(MISHAPS))(
      "is done everywhere or nowhere, as it was told, where %s",
      async (_what, mishap) => {
        for (let nth = 1; nth <= CALLS; nth++) {
          const islands = new TestIslands();
          islands.fate = ({ target }) => (target === B ? slow : {});
          mishap(islands, nth);
          const first = await attempt(islands, islands.decider().run(body, CALLER));
          // What was on its way has arrived; what is prepared has asked.
          await islands.clock.advance(30_000);
          islands.settle();
          judge(islands, body, first);

          const before = done(islands, body);
          islands.fate = () => ({});
          islands.onSend = islands.onAnswer = () => {};
          islands.fence = NEXT;
          const second = await attempt(islands, islands.decider().run(body, CALLER));
          islands.settle();
          judge(islands, body, second);
          if (first.told !== "OUTCOME_UNKNOWN") expect(done(islands, body)).toBe(before);
          expect(second.told).not.toBe("OUTCOME_UNKNOWN");
        }
      },
    );
  });
});

describe("a transaction that the next leader is asked for before the first one's messages have arrived", () => {
  it.each(Object.entries(MISHAPS))(
    "is done everywhere or nowhere, as both were told, where %s",
    async (_what, mishap) => {
      for (let nth = 1; nth <= CALLS; nth++) {
        for (const afterMs of [0, 1, 2, 3, 4, 5, 1_000]) {
          const body = bodyOf(ALL);
          const islands = new TestIslands();
          mishap(islands, nth);
          const old = islands.decider();
          const next = islands.decider();
          const first = attempt(islands, old.run(body, CALLER));
          await islands.clock.advance(afterMs);
          const { fate: before } = islands;
          islands.fate = (sent) => ("fence" in sent.request && sent.request.fence === NEXT ? {} : before(sent));
          islands.fence = NEXT;
          const second = await attempt(islands, next.run(body, CALLER));
          const told = await first;
          await islands.clock.advance(30_000);
          islands.settle();
          judge(islands, body, told);
          judge(islands, body, second);
        }
      }
    },
  );
});

describe("staged operations, about which two decide at the same time", () => {
  it.each(Object.entries(MISHAPS))("are done everywhere or nowhere, where %s", async (_what, mishap) => {
    for (let nth = 1; nth <= CALLS; nth++) {
      const islands = new TestIslands();
      mishap(islands, nth);
      const commit = islands.endOf(islands.decider().decide(decideOf("commit"), CALLER));
      const rollback = islands.endOf(islands.decider().decide(decideOf("rollback"), CALLER));
      const told = [await commit, await rollback];
      await islands.clock.advance(30_000);
      islands.settle();
      const is = done(islands, bodyOf([A, B]));
      expect(["committed", "rolled-back"], is).toContain(is);
      for (const one of told) {
        if (typeof one === "string") continue;
        expect((one as { readonly state: string }).state).toBe(is === "committed" ? "commit" : "rollback");
      }
    }
  });
});
