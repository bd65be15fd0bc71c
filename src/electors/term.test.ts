import { describe, expect, test } from "vitest";
import type { LeaderGate } from "../ports/elector.ts";
import { HeldTerm } from "./term.ts";

function term() {
  const asked: unknown[] = [];
  const gate: LeaderGate = {
    isLeader: true,
    remainingMs: 1,
    requireLeader: () => 7,
    ensureEpoch: (...args) => void asked.push(args),
  };
  const resigned: number[] = [];
  const held = new HeldTerm({
    scope: "payer",
    epoch: 7,
    gate,
    resign: (epoch) => {
      resigned.push(epoch);
      return Promise.resolve();
    },
  });
  let aborts = 0;
  held.signal.addEventListener("abort", () => aborts++);
  return { held, asked, resigned, aborts: () => aborts };
}

describe("a term", () => {
  test("asks the gate for its own epoch", () => {
    const { held, asked } = term();
    expect(held.check({ forMs: 5, effect: "pay" })).toBe(7);
    expect(asked).toEqual([[7, { forMs: 5, effect: "pay" }]]);
  });

  test("its signal aborts once, when it must be wound up or when it is over, whichever comes first", async () => {
    const { held, aborts } = term();
    const reason = new Error("stop");
    held.windUp(reason);
    held.windUp(new Error("again"));
    held.finish("resigned");
    expect(held.signal.reason).toBe(reason);
    expect(aborts()).toBe(1);
    expect(await held.ended).toBe("resigned");
  });

  test("says why it is over, and is over once", async () => {
    const { held, aborts } = term();
    held.finish("superseded");
    expect(await held.ended).toBe("superseded");
    expect(aborts()).toBe(1);
    expect(String(held.signal.reason)).toMatch(/epoch 7 is over: superseded/);
    expect(() => held.finish("expired")).toThrow(/a term ends once/);
  });

  test("resigns when it is disposed of", async () => {
    const { held, resigned } = term();
    await held[Symbol.asyncDispose]();
    expect(resigned).toEqual([7]);
  });
});
