// The alert about transactions over islands that wait for their decision, or for an island that has not done yet what was decided. Each node raises it
// by what it has applied. What such a transaction names is locked; everything else goes on.

import type { TxnStats } from "../../ports/transactions.ts";
import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import type { AlertBoard } from "./alert-board.ts";
import { TXN_IN_DOUBT_AFTER_MS } from "./limits.ts";
import type { HealthOutput, Moment } from "./outputs.ts";

/** What a node sees of its island's transactions. */
export type TransactionsSeen = Pick<TxnStats, "inDoubt" | "oldestInDoubtMs">;

/** `seen`: null of a node that keeps no log of its own. */
export function judgeTransactions(
  board: AlertBoard,
  at: Moment,
  self: PeerKey,
  seen: TransactionsSeen | null,
): HealthOutput[] {
  const { inDoubt, oldestInDoubtMs } = seen ?? { inDoubt: 0, oldestInDoubtMs: 0 };
  const isDue = inDoubt > 0 && oldestInDoubtMs > TXN_IN_DOUBT_AFTER_MS;
  return board.set(at, "txn_in_doubt", nodeIdOf(self), isDue, () => {
    const [count, what] =
      inDoubt === 1 ? ["1 transaction over islands is", "it"] : [`${inDoubt} transactions over islands are`, "them"];
    return `${count} in doubt here, the oldest for ${Math.round(oldestInDoubtMs / 1_000)} s: the values and scopes that are prepared for ${what} stay locked. \`tenure txn list --in-doubt\` has the island that each waits for; start that one, or repair the network to it: docs/runbooks/txn-in-doubt.md`;
  });
}
