// When an operator hears of transactions in doubt: how many, how old, and when no more.

import { expect, test } from "vitest";
import type { PeerKey } from "../kit/ids.ts";
import { AlertBoard } from "./alert-board.ts";
import { TXN_IN_DOUBT_AFTER_MS } from "./limits.ts";
import { judgeTransactions, type TransactionsSeen } from "./transactions.ts";

const SELF = "a@1" as PeerKey;
const AT = { nowMs: 0, wallMs: 0 };

function judged(board: AlertBoard, seen: TransactionsSeen | null): readonly string[] {
  return judgeTransactions(board, AT, SELF, seen).map((output) =>
    "alert" in output ? `${output.kind} ${output.alert.name} of ${output.alert.nodeId}` : output.kind,
  );
}

test("a transaction in doubt is reported after 30 s, as a warning, and no more when it is decided", () => {
  const board = new AlertBoard();
  expect(judged(board, { inDoubt: 1, oldestInDoubtMs: TXN_IN_DOUBT_AFTER_MS })).toEqual([]);
  expect(judged(board, { inDoubt: 1, oldestInDoubtMs: TXN_IN_DOUBT_AFTER_MS + 1 })).toEqual([
    "alert-raised txn_in_doubt of a",
  ]);
  expect(board.alerts).toMatchObject([{ name: "txn_in_doubt", severity: "warning" }]);
  expect(judged(board, { inDoubt: 0, oldestInDoubtMs: 0 })).toEqual(["alert-cleared txn_in_doubt of a"]);
});

test("it names how many and how old, as they are now", () => {
  const board = new AlertBoard();
  judged(board, { inDoubt: 1, oldestInDoubtMs: 31_000 });
  expect(board.alerts[0]!.message).toContain("1 transaction over islands is in doubt here, the oldest for 31 s");
  expect(judged(board, { inDoubt: 3, oldestInDoubtMs: 95_000 })).toEqual([]);
  expect(board.alerts[0]!.message).toContain("3 transactions over islands are in doubt here, the oldest for 95 s");
});

test("a node that keeps no transactions raises none", () => {
  const board = new AlertBoard();
  expect(judged(board, null)).toEqual([]);
  judged(board, { inDoubt: 2, oldestInDoubtMs: 60_000 });
  expect(judged(board, null)).toEqual(["alert-cleared txn_in_doubt of a"]);
});
