// A batch of calls takes slices of turns, as requests that arrive together do.

import { describe, expect, it } from "vitest";
import type { TxnHeader, TxnRequest } from "../../../core/txn/model.ts";
import { batchCall } from "../../../core/txn/wire-calls.ts";
import { settled } from "../../../loops/test-clock.ts";
import { TurnShare } from "../../traffic/turn-share.ts";
import type { Answer, Call, Service } from "../handler.ts";
import { txnHandlers } from "./txn.ts";

const HERE = "b".repeat(64);
const idOf = (n: number): string => `019aa000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const headerOf = (n: number): TxnHeader => {
  return { id: idOf(n), home: HERE, participants: [HERE], digest: "d".repeat(64), timeoutMs: 5_000, by: "payer" };
};

/** A loop whose turns are begun by hand, and an island where each call takes some milliseconds of it. */
class Loop {
  readonly gone = new AbortController();
  readonly begun: string[] = [];
  /** What each turn took. */
  readonly turns: number[] = [0];
  nowMs = 0;
  readonly share: TurnShare;
  readonly #eachMs: number;
  #begins: (() => void)[] = [];

  constructor(eachMs: number) {
    this.#eachMs = eachMs;
    this.share = new TurnShare({
      clock: { monotonicMs: () => this.nowMs, setTimer: () => ({ cancel: () => undefined }) },
      nextTurn: (begin) => void this.#begins.push(begin),
    });
  }

  batch(count: number): Promise<Answer> {
    const requests = Array.from({ length: count }, (_, at) => ({ kind: "inquire", header: headerOf(at) }) as const);
    const call = {
      body: batchCall(HERE, requests).body,
      gone: this.gone.signal,
      enterTurn: () => this.share.enter(),
    } as unknown as Call<"batchTxns">;
    const transactions = { backendHash: HERE, answer: (request: TxnRequest) => this.#answer(request) };
    return txnHandlers({ transactions } as unknown as Service).batchTxns(call) as Promise<Answer>;
  }

  async next(): Promise<void> {
    this.turns.push(0);
    for (const begin of this.#begins.splice(0)) begin();
    await settled();
    await settled();
  }

  #answer(request: TxnRequest): Promise<unknown> {
    this.begun.push("header" in request ? request.header.id : "");
    this.nowMs += this.#eachMs;
    this.turns[this.turns.length - 1]! += this.#eachMs;
    return Promise.resolve({ kind: "txn", phase: "prepared", results: [], reason: null });
  }
}

describe("a batch of calls", () => {
  it("takes no more of a turn than its slice, and begins them in their order", async () => {
    const loop = new Loop(0.5);
    const answered = loop.batch(128);
    await settled();
    expect(loop.begun.length).toBe(4);
    for (let turn = 0; turn < 31; turn++) await loop.next();
    expect(((await answered).body as { answers: object[] }).answers.length).toBe(128);
    expect(loop.begun).toEqual(Array.from({ length: 128 }, (_, at) => idOf(at)));
    expect(Math.max(...loop.turns)).toBe(2);
  });

  it("large calls are one in each turn, and another request gets its turn among them", async () => {
    const loop = new Loop(30);
    const answered = loop.batch(10);
    await settled();
    let other = -1;
    void loop.share.enter()!.then(() => (other = loop.begun.length));
    await loop.next();
    await loop.next();
    expect(other).toBe(2);
    for (let turn = 0; turn < 10; turn++) await loop.next();
    await answered;
    expect(Math.max(...loop.turns)).toBe(30);
  });

  it("that was given up is not begun any further", async () => {
    const loop = new Loop(30);
    const answered = loop.batch(10);
    await settled();
    loop.gone.abort();
    await loop.next();
    await answered;
    expect(loop.begun.length).toBe(1);
  });
});
