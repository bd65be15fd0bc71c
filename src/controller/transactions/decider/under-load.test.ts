// Homes that decide nothing for a while, under load, over the lane that a server has.

import { describe, expect, it } from "vitest";
import { seededRandom } from "../../../core/kit/random.ts";
import type { TcAnswer, TcExchange } from "../../../drivers/coordinators/index.ts";
import { HttpIslandCalls } from "../../../drivers/transactions/index.ts";
import { ManualClock } from "../../../loops/test-clock.ts";
import type { TxnOutcome } from "../../../ports/transactions.ts";
import { Decider } from "./decider.ts";
import { A, B, bodyOf, C, CALLER, FENCE, TestIslands } from "./test-islands.ts";

const idOf = (n: number): string => `019aa000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const stateOf = (ended: unknown): string => (typeof ended === "string" ? ended : (ended as TxnOutcome).state);

/** Islands on the wire, which decide whatever they are asked, in one round trip; home is away for a while. */
class Far {
  readonly clock = new ManualClock();
  readonly ended: { readonly atMs: number; readonly what: string }[] = [];
  readonly kinds: string[] = [];
  /** Commits that the other island was sent. */
  readonly committed = new Set<string>();
  readonly decider: Decider;
  awayFromMs = Infinity;
  awayUntilMs = Infinity;
  refusesNew = false;

  constructor(rttMs: number, otherMs = 20) {
    const { clock } = this;
    const calls = new HttpIslandCalls({
      http: { exchange: (asked) => this.#exchange(asked, asked.endpoint.includes("home") ? rttMs : otherMs) },
      registry: () => [
        { backendHash: A, endpoint: "https://home:1" },
        { backendHash: B, endpoint: "https://other:1" },
      ],
      own: { backendHash: C, answer: () => Promise.reject(new Error("not asked")) },
      ownEndpoint: "https://own:1",
      clock,
      random: seededRandom(1),
      nextTurn: (begin) => void clock.setTimer(clock.nowMs, begin),
    });
    this.decider = new Decider({
      term: { fence: () => FENCE, leaderEndpoint: () => null, isLed: () => true },
      calls,
      forward: { run: () => Promise.resolve(null), decide: () => Promise.resolve(null) },
      own: { backendHash: C, get: () => null },
      clock,
      random: seededRandom(1),
      logger: { warn: () => undefined },
      digestOf: () => "d".repeat(64),
    });
  }

  async load(perSecond: number, seconds: number): Promise<void> {
    for (let at = 0; at < perSecond * seconds; at++) {
      const atMs = this.clock.nowMs;
      const body = bodyOf([A, B], { id: idOf(atMs * 10) });
      this.decider.run(body, CALLER).then(
        ({ state }) => void this.ended.push({ atMs, what: state }),
        (error: unknown) => void this.ended.push({ atMs, what: (error as { code: string }).code }),
      );
      await this.clock.advance(1_000 / perSecond);
    }
  }

  share(fromMs: number, untilMs: number, what: string): number {
    const all = this.ended.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs);
    return all.filter((one) => one.what === what).length / all.length;
  }

  #exchange({ endpoint, path, body, withinMs }: TcExchange, rttMs: number): Promise<TcAnswer | null> {
    const { clock } = this;
    const { promise, resolve } = Promise.withResolvers<TcAnswer | null>();
    const isAway = endpoint.includes("home") && clock.nowMs >= this.awayFromMs && clock.nowMs < this.awayUntilMs;
    const isAnswered = !isAway && rttMs <= withinMs;
    const isFull = this.refusesNew && endpoint.includes("home");
    const { status, body: said } = this.#answer(path.split("/").at(-1)!, body as Wire, isFull);
    const answer = { from: "n1", status, body: said };
    if (endpoint.includes("home")) this.kinds.push(path.split("/").at(-1)!);
    else
      for (const one of (body as Wire).requests ?? [{ call: path.split("/").at(-1)!, body: body as Wire }])
        if (one.call === "commit") this.committed.add(one.body.txn!.txn_id);
    clock.setTimer(clock.nowMs + (isAnswered ? rttMs : withinMs), () => resolve(isAnswered ? answer : null));
    return promise;
  }

  #answer(call: string, body: Wire, isFull: boolean): { status: number; body: Record<string, unknown> } {
    if (call === "batch")
      return { status: 200, body: { answers: body.requests!.map((one) => this.#answer(one.call, one.body, isFull)) } };
    if (call === "recover") {
      const why = isFull ? { refuses_new: { code: "DISK_FULL", message: "full" } } : {};
      return { status: 200, body: { open: [], next: null, ...why } };
    }
    if (isFull) return { status: 507, body: { error: "DISK_FULL", message: "full" } };
    const state = call === "prepare" ? "prepared" : call === "commit" ? "committed" : "rolled_back";
    return { status: 200, body: { txn_id: body.txn!.txn_id, state, results: [], reason: null } };
  }
}

interface Wire {
  readonly txn?: { readonly txn_id: string };
  readonly requests?: readonly { readonly call: string; readonly body: Wire }[];
}

describe("a home on a far link that was away for a moment", () => {
  it.each([
    [50, 100],
    [300, 50],
    [1_000, 10],
  ])(
    "with round trips of %i ms and %i transactions a second is taken for one that decides again, and stays so",
    async (rttMs, perSecond) => {
      const control = new Far(rttMs);
      await control.load(perSecond, 60);
      await control.clock.advance(10_000);
      expect(control.share(20_000, 60_000, "committed")).toBe(1);

      const far = new Far(rttMs);
      far.awayFromMs = 5_000;
      far.awayUntilMs = 12_000;
      await far.load(perSecond, 60);
      await far.clock.advance(10_000);
      // Home is back since 12 s, and answers everything. Batches grow with each answer: slowly where that takes a second.
      expect(far.share(40_000, 60_000, "committed")).toBe(1);
    },
  );
});

describe("an island whose answers take longer than a client waits for them", () => {
  it.each([700, 1_200])("%i ms: is sent the commits all the same, so that its locks end", async (otherMs) => {
    const far = new Far(20, otherMs);
    await far.load(20, 30);
    await far.clock.advance(10_000);
    const committed = far.ended.filter(({ what }) => what === "committed").length;
    expect(committed).toBeGreaterThan(300);
    expect(far.committed.size / committed).toBeGreaterThan(0.9);
  });
});

describe("a home that can't write", () => {
  it("has each new transaction refused with its reason, also where many come", async () => {
    const far = new Far(100);
    await far.load(100, 5);
    // From then on it answers, after one round trip, that its disk is full.
    far.refusesNew = true;
    await far.load(100, 25);
    await far.clock.advance(10_000);
    expect(far.share(15_000, 30_000, "DISK_FULL")).toBe(1);
  });
});

describe("a home that refuses one call because of that call's id", () => {
  it("is none that decides nothing: the transactions of others go on", async () => {
    const islands = new TestIslands();
    const FAR_MS = 600;
    // As home answers where TXNS_AHEAD_MAX rollbacks of ids of the future are kept (core/txn/refusals.ts aheadProblem): of this id alone.
    const isAhead = (id: string): boolean => id.startsWith("019aafff");
    islands.fate = ({ target, request }) => {
      const there = target === A ? { thereMs: FAR_MS, backMs: FAR_MS } : {};
      const isBad = target === A && "header" in request && isAhead(request.header.id);
      return isBad ? { ...there, refuse: "OVERLOADED" } : there;
    };
    const decider = islands.decider();
    expect(stateOf(await islands.endOf(decider.run(bodyOf([A, B], { id: idOf(1) }), CALLER)))).toBe("committed");
    const ended: string[] = [];
    for (let n = 2; n < 12; n++) {
      const bad = `019aafff-0000-7000-8000-${String(n).padStart(12, "0")}`;
      await islands.endOf(decider.run(bodyOf([A], { id: bad }), CALLER));
      ended.push(stateOf(await islands.endOf(decider.run(bodyOf([A, B], { id: idOf(n) }), CALLER))));
    }
    expect(new Set(ended)).toEqual(new Set(["committed"]));
  });
});
