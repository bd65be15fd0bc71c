// Transactions over islands that wait for another island, as one node of this island has applied them: their rows, and what a person has to do. Pure.

import type { IslandsView, IslandTransactionsView } from "../../src/client/index.ts";
import type { Tone } from "./words.ts";

/** The same as of the alert txn_in_doubt. */
const ADVICE_AFTER_MS = 30_000;

export interface WaitingRow {
  readonly id: string;
  readonly phase: { readonly tone: Tone; readonly text: string };
  readonly sinceMs: number;
  readonly home: string;
  /** "value orders/cursor, scope orders and 3 more"; none: nothing is locked. */
  readonly locks: string;
  readonly waitsFor: readonly IslandName[];
}

export interface IslandName {
  readonly backendHash: string;
  /** "0123456789ab… (https://b:1)" */
  readonly text: string;
}

export function waitingRows({ transactions, registry, self }: IslandsView, nowMs: number): readonly WaitingRow[] {
  return (transactions?.waiting ?? []).map(({ txnId, home, phase, atMs, timeoutMs, locks, locksCount, waitsFor }) => {
    const isLate = nowMs - atMs > timeoutMs;
    const more = locksCount > locks.length ? ` and ${locksCount - locks.length} more` : "";
    return {
      id: txnId,
      phase: { tone: isLate ? "bad" : "busy", text: isLate ? `${phase}, in doubt` : phase },
      sinceMs: atMs,
      home: home === self.backendHash ? "this island" : nameOf(home, registry).text,
      locks: `${locks.join(", ")}${more}`,
      waitsFor: waitsFor.map((hash) => nameOf(hash, registry)),
    };
  });
}

function nameOf(backendHash: string, registry: IslandsView["registry"]): IslandName {
  const urls = registry.filter((entry) => entry.backendHash === backendHash).map(({ endpoint }) => endpoint);
  const where = urls.length === 0 ? "not registered" : urls.toSorted().join(", ");
  return { backendHash, text: `${backendHash.slice(0, 12)}… (${where})` };
}

/** What a person has to do; null: nothing. */
export function doubtAdvice(transactions: IslandTransactionsView | null | undefined): string | null {
  if (transactions === null || transactions === undefined) return null;
  const { inDoubt, oldestInDoubtMs } = transactions;
  if (inDoubt === 0 || oldestInDoubtMs <= ADVICE_AFTER_MS) return null;
  const count = inDoubt === 1 ? "1 transaction is" : `${inDoubt} transactions are`;
  return `${count} in doubt, the oldest for ${Math.round(oldestInDoubtMs / 1_000)} s: what is locked stays so until the islands that are waited for answer. Start them, or repair the network to them. See docs/runbooks/txn-in-doubt.md.`;
}
