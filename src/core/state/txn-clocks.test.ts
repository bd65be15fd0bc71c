// Clients whose clocks are wrong by years: what they leave behind harms nobody else.

import { describe, expect, it } from "vitest";
import { createdMs, type TxnAnswer, type TxnHeader } from "../txn/index.ts";
import { TXN_SETTLED_MAX, TXNS_AHEAD_MAX } from "../txn/limits.ts";
import { header, Island, NOW_MS, put } from "./test-island.ts";

const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

/** The nth id of this moment. */
function idOf(ms: number, nth: number): string {
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${nth.toString(16).padStart(12, "0")}`;
}

describe("a client whose clock is a year ahead, and who tries again and again", () => {
  const calls: readonly (readonly [string, (island: Island, of: TxnHeader) => TxnAnswer])[] = [
    ["commit at home", (island, of) => island.commit(of, [put("x")])],
    ["rollback at home", (island, of) => island.rollback(of)],
    ["inquire", (island, of) => island.inquire(of)],
  ];

  it.each(calls)("by %s ends nobody else's transactions, and nothing of his is done", (_, call) => {
    const island = new Island("a");
    const aheadMs = NOW_MS + YEAR_MS;
    const answers = new Set<string>();
    for (let nth = 0; nth <= TXN_SETTLED_MAX + 1; nth++) {
      const answer = call(island, header("a", "a", { id: idOf(aheadMs, nth) }));
      answers.add(answer.kind === "refused" ? answer.code : answer.kind === "txn" ? String(answer.phase) : answer.kind);
    }
    const good = header("a", "a");
    expect(createdMs(good.id)).toBe(NOW_MS);
    expect(island.commit(good, [put("x")])).toMatchObject({ phase: "committed" });
    expect([...answers]).toEqual(["rolled-back", "OVERLOADED"]);
    expect(island.fold.txns.size).toBe(TXNS_AHEAD_MAX + 1);
    // What was decided of his stays so.
    expect(island.commit(header("a", "a", { id: idOf(aheadMs, 0) }), [put("x")])).toMatchObject({
      phase: "rolled-back",
    });
  });
});
